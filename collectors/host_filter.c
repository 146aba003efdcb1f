#include "collectors/host_filter.h"

#include <errno.h>

int host_filter_init(struct host_filter *filter, const struct settings *settings, const char *name,
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

void host_filter_finish(struct host_filter *filter) {
    if (filter->set) {
        regfree(&filter->regex);
    }
    filter->set = false;
}

bool host_filter_excludes(const struct host_filter *filter, const char *text) {
    return filter->set && regexec(&filter->regex, text, 0, NULL, 0) == 0;
}
