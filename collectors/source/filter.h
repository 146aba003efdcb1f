#pragma once

#include <regex.h>
#include <stdbool.h>

#include "exporter/core/error.h"
#include "exporter/settings/settings.h"

/* What a user wants left out, as a POSIX extended regular expression; "" leaves out nothing. */
struct filter {
    regex_t regex;
    bool set;
};

/* Takes the expression from the setting `name`. */
int filter_init(struct filter *filter, const struct settings *settings, const char *name,
                struct error *err);
void filter_finish(struct filter *filter);

bool filter_matches(const struct filter *filter, const char *text);
