#include "collectors/source/filter.h"

#include "exporter/settings/settings.h"

int filter_init(struct filter *filter, const struct settings *settings, const char *name,
                struct error *err) {
    const char *pattern = settings_string(settings, name);
    struct error reason;
    filter->regex = NULL;
    int r = pattern[0] != '\0' ? regex_create(pattern, &filter->regex, &reason) : 0;
    return r < 0 ? error_set(err, r, "%s: \"%s\": %s", name, pattern, reason.text) : 0;
}

void filter_finish(struct filter *filter) {
    regex_destroy(TAKE(filter->regex));
}

bool filter_matches(const struct filter *filter, const char *text) {
    return filter->regex != NULL && regex_search(filter->regex, text) == 1;
}
