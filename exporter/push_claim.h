#pragma once

#include <stdbool.h>

#include "exporter/core/error.h"
#include "exporter/push_store.h"

/* Whose a plugin's name is. Who uses it first is noted with the owner, by what the kernel vouches
 * for ("uid 1000", "container") or does not ("unverified", "http"); no other takes it over while
 * that one is connected or has series. Containers are told apart by the owner's labels already. */

/* The caller holds a reference of the owner and is `who`; `may_take` lets it have what is
 * another's. -EACCES says whose it is. */
int push_claim(struct push_store *store, struct push_owner *owner, const char *who, bool may_take,
               struct error *err);

/* Who has it, or NULL. Valid until the next claim. */
const char *push_claimant(const struct push_store *store, const struct push_owner *owner);
