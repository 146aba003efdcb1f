#pragma once

#include <stdbool.h>

#include "exporter/core/regex.h"
#include "exporter/settings/settings.h"

/* The names to show or to leave out: those in which a regular expression matches any part. */
struct filter {
    struct regex *regex; /* NULL: all are shown */
};

/* Takes the expression from the setting `name`, an OPTION_REGEX: it was checked when it was set. */
void filter_init(struct filter *filter, const struct settings *settings, const char *name);
void filter_finish(struct filter *filter);

/* Whether a name is shown, or left out, by the filter. If the match exceeds its limit, the name is
 * not shown, so that the name of a container cannot defeat an exclusion. */
bool filter_includes(const struct filter *filter, const char *text);
bool filter_excludes(const struct filter *filter, const char *text);
