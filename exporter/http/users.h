#pragma once

#include <stdbool.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/error.h"

/* Who may come in by HTTP basic authentication: names with bcrypt hashes, and the verdicts reached
 * so far. bcrypt is slow on purpose (66 ms at cost 10), so the event loop only looks verdicts up
 * and a worker reaches them. The table belongs to one web_config; a later one takes the verdicts
 * over only if it has the same hashes. */
struct users;

enum users_verdict {
    USERS_GRANTED,
    USERS_DENIED,  /* wrong, malformed or missing */
    USERS_UNKNOWN, /* never seen: users_verify decides */
};

/* An empty table with a random key for its verdicts. The caller destroys it. NULL when memory or
 * randomness is out. */
struct users *users_create(void);
void users_destroy(struct users *users); /* accepts NULL */

static inline void users_cleanup(struct users **users) {
    users_destroy(*users);
}
#define CLEANUP_USERS CLEANUP(users_cleanup)

/* Adds a user before the table is shared. -EINVAL with the reason, which never quotes the hash. */
int users_add(struct users *users, const char *name, const char *hash, struct error *err);

/* Takes over the verdicts of another table if it has the same users, so that a reload makes nobody
 * wait for a check. Before the table is shared, or between tables that share their verdicts. */
void users_inherit(struct users *users, struct users *from);

/* What is known of an Authorization header (NULL: none was sent). Quick; from any thread. */
enum users_verdict users_lookup(struct users *users, const char *authorization);

/* Runs bcrypt for an Authorization header, remembers the verdict and returns whether it is good.
 * An unknown name takes as long as a known one. Slow; from any thread. */
bool users_verify(struct users *users, const char *authorization);

/* The name in an Authorization header that has been granted; the caller frees it. NULL where there
 * is none. */
char *users_name(const char *authorization);
