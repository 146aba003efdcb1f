#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "collectors/collector.h"

/* The names that collectors declare and nobody may push. A zeroed struct has none. */
struct push_reserved {
    const char **names; /* sorted */
    size_t n_names;
};

/* Gathers them; `collectors` may be NULL. -ENOMEM. */
int push_reserved_init(struct push_reserved *reserved, const struct collector *const *collectors,
                       struct error *err);
void push_reserved_finish(struct push_reserved *reserved);

/* Whether the name is one of them, or begins with waap_. */
bool push_reserved_has(const struct push_reserved *reserved, const char *name);
