#pragma once

#include <regex.h>
#include <stdbool.h>

#include "exporter/core/error.h"
#include "exporter/core/settings.h"

/* What a user wants left out, as a POSIX extended regular expression; "" leaves out nothing. */
struct host_filter {
    regex_t regex;
    bool set;
};

/* Takes the expression from the setting `name`. */
int host_filter_init(struct host_filter *filter, const struct settings *settings, const char *name,
                     struct error *err);
void host_filter_finish(struct host_filter *filter);

bool host_filter_excludes(const struct host_filter *filter, const char *text);
