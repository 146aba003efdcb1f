#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/error.h"

/* Users of HTTP basic authentication: names with bcrypt hashes, and the verdicts so far. bcrypt is
 * slow on purpose (66 ms at cost 10), so the event loop only looks verdicts up, and a worker
 * computes them. The table belongs to one web_config; a later one takes over its verdicts only if
 * it has the same hashes. */
struct users;

enum users_verdict {
    USERS_GRANTED,
    USERS_DENIED,  /* wrong, malformed or missing */
    USERS_UNKNOWN, /* never seen: users_verify decides */
};

/* An empty table with a random key for its verdicts. The caller destroys it. NULL without a source
 * of random numbers. */
struct users *users_create(void);
void users_destroy(struct users *users); /* accepts NULL */

static inline void users_cleanup(struct users **users) {
    users_destroy(*users);
}
#define CLEANUP_USERS CLEANUP(users_cleanup)

/* Adds a user before the table is shared. -EINVAL with the reason, which never quotes the hash. */
int users_add(struct users *users, const char *name, const char *hash, struct error *err);

/* Takes over the verdicts of another table if it has the same users, so that a reload makes no
 * client wait for a check. Before the table is shared, or between tables that share their verdicts.
 */
void users_inherit(struct users *users, struct users *from);

/* The verdict on an Authorization header (NULL: none was sent). Quick; from any thread. */
enum users_verdict users_lookup(struct users *users, const char *authorization);

/* Runs bcrypt for an Authorization header, remembers the verdict and returns whether it is right.
 * An unknown name takes as long as a known one. Slow; from any thread. */
bool users_verify(struct users *users, const char *authorization);

/* The name in an Authorization header that has been granted; the caller frees it, NULL: none. */
char *users_name(const char *authorization);

/* Passwords that wait to be checked. Guesses must not keep a right password waiting, so the next
 * one is from the address whose latest wrong password is oldest, or that has sent none: addresses
 * that guess are served in turn, after all others. Of that address it is the oldest of the newest
 * four. If many clients guess from there, a new client waits for four of them at most, because each
 * guesses again only after its check has ended. If there are too many, the oldest of the last
 * address is dropped. IPv6 addresses count by their /64. */

/* Embedded in the request that waits. */
struct http_check {
    struct in6_addr address;
    struct http_check *next;
};

enum { HTTP_CHECKS_TURN = 4, HTTP_CHECKS_MAX_FAILURES = 256 };

struct http_checks {
    size_t max; /* that wait at once; three quarters of them from one address */
    size_t n_waiting;
    struct http_check *newest;
    struct http_check_failure {
        struct in6_addr address;
        int64_t at_ns; /* 0: unused */
    } failures[HTTP_CHECKS_MAX_FAILURES];
};

/* Adds a check. Returns the one that is dropped for it, which may be the same, or NULL. */
struct http_check *http_checks_add(struct http_checks *checks, struct http_check *check);

/* Removes the next one; NULL: none waits. */
struct http_check *http_checks_take(struct http_checks *checks);

/* Notes a wrong password from an address. */
void http_checks_note_failure(struct http_checks *checks, const struct in6_addr *address,
                              int64_t now_ns);
