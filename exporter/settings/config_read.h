#pragma once

#include "exporter/settings/config_table.h"
#include "exporter/settings/problems.h"
#include "exporter/settings/settings.h"

/* The three places settings come from. Each reader goes on after a mistake, so that all of them are
 * reported at once. */

/* --name=value, --name value, --bool, --no-bool; argv[0] is passed over. Of a flag that is given
 * again but not repeatable the last one counts. */
void config_read_flags(const struct config_table *table, int argc, char *const *argv,
                       struct settings *settings, struct problems *problems);

/* WAAP_…; an empty one counts as not set, one that nobody knows is a warning. */
void config_read_environment(const struct config_table *table, char *const *variables,
                             struct settings *settings, struct problems *problems,
                             struct problems *warnings);

/* The YAML text of `file`. */
void config_read_yaml(const struct config_table *table, const char *file, const char *text,
                      size_t len, struct settings *settings, struct problems *problems);
