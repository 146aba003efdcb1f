#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/error.h"
#include "exporter/settings/option.h"

/* The values of a set of options. Asking for a name or type that is not in the table is a bug of
 * ours and aborts. */
struct settings;

/* All options at their defaults. `options` must outlive the settings. The caller destroys it. */
struct settings *settings_create(const struct option *const *options, size_t n_options);
void settings_destroy(struct settings *settings); /* accepts NULL */

static inline void settings_cleanup(struct settings **settings) {
    settings_destroy(*settings);
}
#define CLEANUP_SETTINGS CLEANUP(settings_cleanup)

/* The option of that name, or NULL. */
const struct option *settings_option(const struct settings *settings, const char *name);

/* All options, as they were given to settings_create. */
const struct option *const *settings_options(const struct settings *settings, size_t *ret_n);

/* The source of a value; the higher wins. */
enum settings_source {
    SETTINGS_DEFAULT,
    SETTINGS_FILE,
    SETTINGS_ENVIRONMENT,
    SETTINGS_FLAG,
};

/* Sets an option from text. The first call of one source replaces the values of lower sources; a
 * further one appends if the option is repeatable and replaces otherwise. The text is checked even
 * if a higher source has set the option already, but changes nothing then. An empty text sets a
 * repeatable option to no values. -EINVAL with the reason ("expected a duration such as 10s, got
 * \"ten\"") without the option's name. */
int settings_set(struct settings *settings, const struct option *option,
                 enum settings_source source, const char *text, struct error *err);

/* The source of that option's value. */
enum settings_source settings_origin(const struct settings *settings, const char *name);

/* Whether both hold equal values for every option whose name begins with `prefix`. Both must have
 * been created from tables of the same names. */
bool settings_equal(const struct settings *a, const struct settings *b, const char *prefix);

bool settings_bool(const struct settings *settings, const char *name);
int64_t settings_int(const struct settings *settings, const char *name); /* also sizes */
int64_t settings_duration_ms(const struct settings *settings, const char *name);
const char *settings_string(const struct settings *settings, const char *name); /* "" if unset */
size_t settings_choice(const struct settings *settings, const char *name);      /* index */
/* The choices of a repeatable option: the sum of 1 << index. */
uint64_t settings_choices(const struct settings *settings, const char *name);
/* The values of a repeatable option, NULL-terminated, owned by the settings. */
const char *const *settings_list(const struct settings *settings, const char *name);
