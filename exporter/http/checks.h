#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Passwords that wait to be checked, which takes a worker 66 ms each at cost 10. Guesses must not
 * keep a right password out, so the next one is from the address whose latest wrong password is
 * oldest, or that has sent none: addresses that guess are served in turn, after all others. Of that
 * address it is the oldest of the newest four. If many clients guess from there, a newcomer waits
 * for four of them at most, because each of them guesses again only when its check has ended. If
 * there are too many, the oldest of the address that goes last is dropped. Addresses of IPv6 count
 * by their /64. */

/* Embedded in what waits. */
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

/* Adds a check. Returns the one that has to go, which may be the same, or NULL. */
struct http_check *http_checks_add(struct http_checks *checks, struct http_check *check);

/* Takes the next one out; NULL: none waits. */
struct http_check *http_checks_take(struct http_checks *checks);

/* Notes a wrong password from an address. */
void http_checks_note_failure(struct http_checks *checks, const struct in6_addr *address,
                              int64_t now_ns);
