#pragma once

#include "exporter/loop/loop.h"

/* Refused pushes in the log. The first of a peer for a reason is logged at once, the number of
 * further ones once a minute, until a minute passes without one. Beyond 16 different ones, refusals
 * are only counted: a hostile peer must not fill the log. On the loop thread. */
struct push_log;

struct push_log *push_log_create(struct loop *loop);

/* Logs what is left; accepts NULL. */
void push_log_destroy(struct push_log *log);

/* Notes that `who` was refused, with a code as push_store_count_refused has it. `metric` is NULL
 * if it is unknown or `why` begins with it. Does nothing if `log` is NULL. */
void push_log_refused(struct push_log *log, const char *who, int code, const char *metric,
                      const char *why);

/* Logs the numbers of further refusals; the log does so itself once a minute. */
void push_log_sum_up(struct push_log *log);
