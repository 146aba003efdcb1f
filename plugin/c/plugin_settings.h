#pragma once

#include "include/waap/plugin.h"

/* What waap_configure set, completed from the environment; waap_lock is held. */
struct waap_settings {
    char *socket;
    char *plugin;
    char *job;    /* NULL: none */
    char *labels; /* a JSON object, NULL: none */
    unsigned interval_ms;
    unsigned max_series;
    void (*on_error)(const char *text, void *data);
    void *data;
    bool debug;
};

/* Takes over what the caller sets. Returns 0, -ENOMEM or -EINVAL. */
int waap_settings_set(struct waap_settings *settings, const struct waap_options *options);

/* Fills in what is not set yet. Returns 0 or -ENOMEM. */
int waap_settings_complete(struct waap_settings *settings);

/* Prints once per name why there is no such metric or param, by errno, which stays: `wrong` is for
 * EINVAL. */
void waap_settings_tell(const char *what, const char *name, const char *wrong);
