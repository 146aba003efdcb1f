#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/vfs.h>

/* Calls statfs on helper threads: on a dead network mount it never returns and cannot be
 * interrupted. Such a call occupies its helper until it returns; other helpers continue. All calls
 * below are for one thread, and none waits longer than its timeout. */
struct host_statfs;

/* One mount point, asked in each round. */
struct host_statfs_job;

/* Same contract as statfs(2). */
typedef int host_statfs_call(const char *path, struct statfs *ret_stat);

/* Helpers are started when they are needed. */
struct host_statfs *host_statfs_create(host_statfs_call *call);

/* Does not wait for running calls: they free the rest when they return. Accepts NULL. All jobs must
 * have been destroyed before. */
void host_statfs_destroy(struct host_statfs *statfs);

struct host_statfs_job *host_statfs_job_create(struct host_statfs *statfs, const char *path);
void host_statfs_job_destroy(struct host_statfs_job *job); /* accepts NULL */

/* Runs all jobs, except those whose last call has not returned, and waits until all have answered
 * or the timeout is over. */
void host_statfs_ask(struct host_statfs *statfs, struct host_statfs_job *const *jobs, size_t n_jobs,
                     int64_t timeout_ms);

/* The answer of the job in the last round: 0, a negative errno, or -ETIMEDOUT. */
int host_statfs_answer(struct host_statfs_job *job, struct statfs *ret_stat);
