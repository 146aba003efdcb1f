#include "collectors/source/filter.h"

#include <assert.h>

#include "exporter/settings/settings.h"

void filter_init(struct filter *filter, const struct settings *settings, const char *name) {
    const char *pattern = settings_string(settings, name);
    filter->regex = NULL;
    int r = pattern[0] != '\0' ? regex_create(pattern, &filter->regex, NULL) : 0;
    assert(r == 0);
    (void)r;
}

void filter_finish(struct filter *filter) {
    regex_destroy(TAKE(filter->regex));
}

bool filter_includes(const struct filter *filter, const char *text) {
    return filter->regex == NULL || regex_search(filter->regex, text) == 1;
}

bool filter_excludes(const struct filter *filter, const char *text) {
    return filter->regex != NULL && regex_search(filter->regex, text) != 0;
}
