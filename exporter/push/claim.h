#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "exporter/core/error.h"
#include "exporter/push/store.h"

/* Which peer owns a plugin's name. The first peer that uses it is kept with the owner. While that
 * peer is connected or has series, another one takes the name over only if more is known of it.
 * Containers are told apart by the owner's labels already. */

/* What is known of a peer; the least first. A user can name a cgroup after a container, see
 * channel/peer.c; the container itself is more. */
enum push_claim_kind {
    PUSH_CLAIM_HTTP,
    PUSH_CLAIM_UNVERIFIED,
    PUSH_CLAIM_PYWAGGLE,
    PUSH_CLAIM_ENDED, /* a user whose process has ended: it may have been in a container */
    PUSH_CLAIM_UID,
    PUSH_CLAIM_CONTAINER,
};

struct push_claim {
    enum push_claim_kind kind;
    bool has_uid;
    uid_t uid;
    struct in6_addr address; /* of HTTP: ::1 for this machine; zeroes: not known */
};

/* Users from this number on are subordinate ones (/etc/subuid, from 100000 on by default), of which
 * every user of the machine may have 65,536 and appear as each. The kernel does not tell whose they
 * are, so they count as one peer. */
enum { PUSH_CLAIM_SUBORDINATE_UIDS = 1 << 16 };

/* Appends "uid 1000", "http 10.0.0.1", "container". */
void push_claim_format(const struct push_claim *claim, struct buf *out);

/* Claims an owner of which the caller has a reference; `may_take` allows to take it from any peer.
 * What a weaker claimant had pushed is removed. Groups, and series of groups, that have all labels
 * of a plugin whose claimant is better known than HTTP go with the next pass of push_store_expire.
 * -EACCES names the claimant. */
int push_claim(struct push_store *store, struct push_owner *owner, const struct push_claim *claim,
               bool may_take, struct error *err);

/* Whether a series of the owner may have these labels: a group's must not seem to be a plugin's,
 * see above. -EACCES. */
int push_claim_check_labels(const struct push_store *store, const struct push_owner *owner,
                            const char *name, const struct label *labels, size_t n_labels,
                            struct error *err);

/* Whether the peer has room for one more plugin or group; true of one that is there already.
 * -E2BIG. */
int push_claim_check(struct push_store *store, const struct push_identity *identity,
                     const struct push_claim *claim, struct error *err);

/* The claim in force, or NULL. Valid until the next one. */
const struct push_claim *push_claim_of(const struct push_owner *owner);

/* What its claimant is called under all the names that it has claimed, or NULL. Valid as long. */
const char *push_claim_share(const struct push_owner *owner);

/* Whether more is known of the claimant of the one than of the other's. Groups, and what nobody has
 * claimed, come last. */
bool push_claim_outranks(const struct push_owner *owner, const struct push_owner *other);

/* Is another number once the owner is another's: a session that has a reference must claim again.
 */
uint64_t push_claim_number(const struct push_owner *owner);
