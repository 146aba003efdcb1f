#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "exporter/core/error.h"
#include "exporter/push/store.h"

/* Which peer owns a plugin's name: the first that uses it. While that peer is connected, has series
 * or lingers (push_owner_linger), only a better known peer takes the name over. Containers have
 * different names by their labels. */

/* What is known of a peer, in ascending order. A user can name a cgroup like a container, see
 * channel/peer.c, so this counts less than the container itself. */
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
    struct in6_addr address; /* of HTTP: ::1 for this machine; zeroes: unknown */
};

/* User IDs from this number on are subordinate ones (/etc/subuid, by default from 100000 on). Each
 * user may have 65,536 of them, and the kernel does not know whose they are: all are one peer. */
enum { PUSH_CLAIM_SUBORDINATE_UIDS = 1 << 16 };

/* Appends "uid 1000", "http 10.0.0.1", "container". */
void push_claim_format(const struct push_claim *claim, struct buf *out);

/* Claims an owner to which the caller has a reference; `may_take` allows to take it from any peer.
 * Series of a less well known claimant are removed. Groups, and series of groups, with all labels
 * of a plugin whose claimant is better known than HTTP are removed by the next pass of
 * push_store_expire. -EACCES names the claimant. */
int push_claim(struct push_store *store, struct push_owner *owner, const struct push_claim *claim,
               bool may_take, struct error *err);

/* Checks that a series of a group with these labels does not look like one of a known plugin.
 * -EACCES. */
int push_claim_check_labels(const struct push_store *store, const struct push_owner *owner,
                            const char *name, const struct label *labels, size_t n_labels,
                            struct error *err);

/* Checks that the owner exists, or that the peer has room for one more. -E2BIG. */
int push_claim_check(struct push_store *store, const struct push_identity *identity,
                     const struct push_claim *claim, struct error *err);

/* The present claim, or NULL. Valid until the next one. */
const struct push_claim *push_claim_of(const struct push_owner *owner);

/* The name of its claimant, the same for all owners of that claimant, or NULL. Valid as long. */
const char *push_claim_share(const struct push_owner *owner);

/* Whether the claimant of `owner` is better known than that of `other`. Groups and unclaimed
 * plugins rank last. */
bool push_claim_outranks(const struct push_owner *owner, const struct push_owner *other);

/* Changes with the claimant: a session must then claim its owner again. */
uint64_t push_claim_number(const struct push_owner *owner);
