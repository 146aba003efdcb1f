#include "exporter/http/checks.h"

#include "exporter/net/network.h"

static int64_t failed_ns(const struct http_checks *checks, const struct in6_addr *address) {
    for (size_t i = 0; i < HTTP_CHECKS_MAX_FAILURES && checks->failures[i].at_ns != 0; i++) {
        if (network_is_same_peer(&checks->failures[i].address, address)) {
            return checks->failures[i].at_ns;
        }
    }
    return 0;
}

/* Whether `a` goes before `b` whatever their age. */
static bool precedes(const struct http_checks *checks, const struct http_check *a,
                     const struct http_check *b) {
    return failed_ns(checks, &a->address) < failed_ns(checks, &b->address);
}

static struct http_check *take_out(struct http_checks *checks, struct http_check **link) {
    struct http_check *check = *link;
    *link = check->next;
    checks->n_waiting--;
    return check;
}

/* The last in order; of one address if it is not NULL. */
static struct http_check **find_last(struct http_checks *checks, const struct in6_addr *address) {
    struct http_check **last = NULL;
    for (struct http_check **link = &checks->newest; *link != NULL; link = &(*link)->next) {
        bool counts = address == NULL || network_is_same_peer(&(*link)->address, address);
        if (counts && (last == NULL || !precedes(checks, *link, *last))) {
            last = link;
        }
    }
    return last;
}

struct http_check *http_checks_add(struct http_checks *checks, struct http_check *check) {
    check->next = checks->newest;
    checks->newest = check;
    checks->n_waiting++;
    size_t n_same = 0;
    for (const struct http_check *c = checks->newest; c != NULL; c = c->next) {
        n_same += network_is_same_peer(&c->address, &check->address);
    }
    if (n_same > checks->max * 3 / 4) {
        return take_out(checks, find_last(checks, &check->address));
    }
    return checks->n_waiting > checks->max ? take_out(checks, find_last(checks, NULL)) : NULL;
}

struct http_check *http_checks_take(struct http_checks *checks) {
    struct http_check **first = &checks->newest;
    size_t n_equal = 0;
    for (struct http_check **link = first; *link != NULL; link = &(*link)->next) {
        if (precedes(checks, *link, *first)) {
            first = link;
            n_equal = 1;
        } else if (n_equal < HTTP_CHECKS_TURN && !precedes(checks, *first, *link)) {
            first = link;
            n_equal++;
        }
    }
    return *first != NULL ? take_out(checks, first) : NULL;
}

void http_checks_note_failure(struct http_checks *checks, const struct in6_addr *address,
                              int64_t now_ns) {
    struct http_check_failure *oldest = &checks->failures[0];
    for (size_t i = 0; i < HTTP_CHECKS_MAX_FAILURES; i++) {
        struct http_check_failure *failure = &checks->failures[i];
        if (failure->at_ns == 0 || network_is_same_peer(&failure->address, address)) {
            oldest = failure;
            break;
        }
        oldest = failure->at_ns < oldest->at_ns ? failure : oldest;
    }
    *oldest = (struct http_check_failure){*address, now_ns};
}
