#include "collectors/source/filter.h"

#include <errno.h>

#include "exporter/settings/settings.h"

int filter_init(struct filter *filter, const struct settings *settings, const char *name,
                struct error *err) {
    const char *pattern = settings_string(settings, name);
    filter->set = false;
    if (pattern[0] == '\0') {
        return 0;
    }
    int r = regcomp(&filter->regex, pattern, REG_EXTENDED | REG_NOSUB);
    if (r != 0) {
        char reason[128];
        regerror(r, &filter->regex, reason, sizeof(reason));
        return error_set(err, -EINVAL, "%s: \"%s\": %s", name, pattern, reason);
    }
    filter->set = true;
    return 0;
}

void filter_finish(struct filter *filter) {
    if (filter->set) {
        regfree(&filter->regex);
    }
    filter->set = false;
}

bool filter_matches(const struct filter *filter, const char *text) {
    return filter->set && regexec(&filter->regex, text, 0, NULL, 0) == 0;
}
