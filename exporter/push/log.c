#include "exporter/push/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "exporter/core/log.h"
#include "exporter/core/memory.h"
#include "exporter/push/store.h"

enum { MAX_KINDS = 16, MAX_WHO = 160, MAX_NAME = 80, INTERVAL_MS = 60000 };

/* Refusals of one peer for one reason. */
struct kind {
    char who[MAX_WHO];
    const char *reason;
    uint64_t n_more; /* that were not logged */
};

struct push_log {
    struct loop *loop;
    struct loop_timer timer;
    struct kind kinds[MAX_KINDS];
    size_t n_kinds;
    uint64_t n_others; /* of kinds beyond MAX_KINDS */
};

static struct kind *find(struct push_log *log, const char *who, const char *reason) {
    for (size_t i = 0; i < log->n_kinds; i++) {
        struct kind *kind = &log->kinds[i];
        if (kind->reason == reason && strncmp(kind->who, who, MAX_WHO - 1) == 0) {
            return kind;
        }
    }
    return NULL;
}

static void log_first(const struct kind *kind, const char *metric, const char *why) {
    if (metric != NULL && strncmp(why, metric, strlen(metric)) != 0) {
        log_warn("push: %s: refused (%s): metric %.*s: %s", kind->who, kind->reason, MAX_NAME,
                 metric, why);
    } else {
        log_warn("push: %s: refused (%s): %s", kind->who, kind->reason, why);
    }
}

void push_log_refused(struct push_log *log, const char *who, int code, const char *metric,
                      const char *why) {
    const char *reason = push_reason(code);
    if (log == NULL) {
        return;
    }
    if (log->timer.due_ns == LOOP_NEVER) {
        log->timer.due_ns = clock_monotonic_ns() + INTERVAL_MS * CLOCK_NS_PER_MS;
    }
    struct kind *kind = find(log, who, reason);
    if (kind != NULL) {
        kind->n_more++;
    } else if (log->n_kinds == MAX_KINDS) {
        log->n_others++;
    } else {
        kind = &log->kinds[log->n_kinds++];
        *kind = (struct kind){.reason = reason};
        snprintf(kind->who, sizeof(kind->who), "%s", who);
        log_first(kind, metric, why);
    }
}

void push_log_sum_up(struct push_log *log) {
    size_t n_kept = 0;
    for (size_t i = 0; i < log->n_kinds; i++) {
        struct kind *kind = &log->kinds[i];
        if (kind->n_more > 0) {
            log_warn("push: %s: refused (%s): and %llu more", kind->who, kind->reason,
                     (unsigned long long)kind->n_more);
            kind->n_more = 0;
            log->kinds[n_kept++] = *kind;
        }
    }
    log->n_kinds = n_kept;
    if (log->n_others > 0) {
        log_warn("push: others: refused: and %llu more (see waap_push_refused_total)",
                 (unsigned long long)log->n_others);
        log->n_others = 0;
    }
}

static void fire(struct loop_timer *timer) {
    struct push_log *log = CONTAINER_OF(timer, struct push_log, timer);
    push_log_sum_up(log);
    timer->due_ns =
        log->n_kinds > 0 ? clock_monotonic_ns() + INTERVAL_MS * CLOCK_NS_PER_MS : LOOP_NEVER;
}

struct push_log *push_log_create(struct loop *loop) {
    struct push_log *log = mem_zalloc(1, sizeof(*log));
    log->loop = loop;
    log->timer = (struct loop_timer){.due_ns = LOOP_NEVER, .fire = fire};
    loop_timer_add(loop, &log->timer);
    return log;
}

void push_log_destroy(struct push_log *log) {
    if (log != NULL) {
        push_log_sum_up(log);
        loop_timer_remove(log->loop, &log->timer);
        free(log);
    }
}
