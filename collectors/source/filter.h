#pragma once

#include <stdbool.h>

#include "exporter/core/regex.h"
#include "exporter/settings/settings.h"

/* The names to leave out: those in which a regular expression matches any part. */
struct filter {
    struct regex *regex; /* NULL leaves out nothing */
};

/* Takes the expression from the setting `name`, an OPTION_REGEX: it was checked when it was set. */
void filter_init(struct filter *filter, const struct settings *settings, const char *name);
void filter_finish(struct filter *filter);

bool filter_matches(const struct filter *filter, const char *text);
