#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "exporter/core/error.h"
#include "exporter/push/store.h"

/* Whose a plugin's name is. Who uses it first is noted with the owner, by what the kernel vouches
 * for ("container", "uid 1000"), in part ("ended uid 1000": it may have been in a container) or not
 * at all ("pywaggle", "unverified", "http"). While that one is connected or has series, it is taken
 * over only by somebody of whom more is known. Containers are told apart by the owner's labels
 * already. */

/* Users from this number on are subordinate ones (/etc/subuid, from 100000 on by default), of which
 * every user of the machine may have 65,536 and appear as each. The kernel does not tell whose they
 * are, so they count as one peer. */
enum { PUSH_CLAIM_SUBORDINATE_UIDS = 1 << 16 };

/* The caller holds a reference of the owner and is `who`; `may_take` lets it have what is
 * another's. What a weaker claimant had pushed goes. Groups, and series of groups, that have all
 * labels of a plugin whose claimant is better known than HTTP go with the next pass of
 * push_store_expire. -EACCES says whose it is. */
int push_claim(struct push_store *store, struct push_owner *owner, const char *who, bool may_take,
               struct error *err);

/* Whether a series of the owner may have these labels: a group's must not seem to be a plugin's,
 * see above. -EACCES. */
int push_claim_check_labels(const struct push_store *store, const struct push_owner *owner,
                            const char *name, const struct label *labels, size_t n_labels,
                            struct error *err);

/* Whether `who` may have one more plugin or group; true of one that is there already. -E2BIG. */
int push_claim_check(const struct push_store *store, const struct push_identity *identity,
                     const char *who, struct error *err);

/* Finds out again whose share of the room the owner is part of, once its notes are back. */
int push_claim_restore(struct push_store *store, struct push_owner *owner);

/* Who has it, or NULL. Valid until the next claim. */
const char *push_claimant(const struct push_store *store, const struct push_owner *owner);

/* What its claimant is called under all the names that it has claimed, or NULL. Valid as long. */
const char *push_claim_share(const struct push_owner *owner);

/* Whether who has the one is known better than who has the other. Groups, and what nobody has
 * claimed, come last. */
bool push_claim_outranks(const struct push_store *store, const struct push_owner *owner,
                         const struct push_owner *other);

/* Is another number once the owner is another's: who keeps a reference has to claim it again. */
uint64_t push_claim_number(const struct push_owner *owner);
