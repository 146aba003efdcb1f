#pragma once

#include "exporter/loop/loop.h"

/* Refused pushes in the log. The first of a peer for a reason is logged at once; how many more
 * there were follows once a minute, until a minute passes without one. Where too many different
 * ones come, as a hostile peer can arrange, the rest is only counted. On the loop thread. */
struct push_log;

struct push_log *push_log_create(struct loop *loop);

/* Says what is left to be said; accepts NULL. */
void push_log_destroy(struct push_log *log);

/* Notes that `who` was refused, with a code as push_store_count_refused has it. `metric` is NULL
 * where it is not known or `why` begins with it. Does nothing where `log` is NULL. */
void push_log_refused(struct push_log *log, const char *who, int code, const char *metric,
                      const char *why);

/* Says how many more there were since the last time; the log does so itself once a minute. */
void push_log_sum_up(struct push_log *log);
