#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "include/waap/plugin.h"
#include "plugin_json.h"

/* A knob. Numbers are read with no lock; all else changes under waap_lock only. */
struct waap_param {
    struct waap_param_spec
        spec; /* with texts of its own; an enum's number is its default's index */
    struct waap_param *next;

    _Atomic double value; /* of an int, float or bool; an enum's index */
    char *value_text;     /* of a string */
    atomic_uint version;  /* goes up when the value is turned */
    atomic_uint applied;  /* the version that the application has taken over */
    bool to_call;         /* on_change is due */

    /* As last sent on this connection. */
    bool declared;
    bool reported;
    unsigned reported_version;
};

extern struct waap_param *waap_params;

/* Takes over what the exporter asks for, with waap_lock held. NULL, or why that cannot be. */
const char *waap_param_turn(struct waap_param *param, const struct waap_json_value *value);

/* Calls every on_change that is due; not with waap_lock held. */
void waap_params_call(void);

/* All parameters as if nothing had been sent. */
void waap_params_forget(void);
