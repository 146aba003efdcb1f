#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/vfs.h>

/* Asks file systems how full they are, on helper threads: statfs on a dead network mount never
 * returns and cannot be interrupted. Such a call keeps its helper until it comes back; everybody
 * else goes on. All calls below come from one thread and none of them waits longer than told. */
struct host_statfs;

/* One mount point's question, asked again in each round. */
struct host_statfs_job;

/* Same contract as statfs(2). */
typedef int host_statfs_call(const char *path, struct statfs *ret_stat);

/* No helper is started before the first question. */
struct host_statfs *host_statfs_create(host_statfs_call *call);

/* Does not wait for calls under way: they free the rest when they return. Accepts NULL. All jobs
 * must have been destroyed before. */
void host_statfs_destroy(struct host_statfs *statfs);

struct host_statfs_job *host_statfs_job_create(struct host_statfs *statfs, const char *path);
void host_statfs_job_destroy(struct host_statfs_job *job); /* accepts NULL */

/* Asks for all jobs, but for those whose last call has not returned, and waits until all have
 * answered or the time is over. */
void host_statfs_ask(struct host_statfs *statfs, struct host_statfs_job *const *jobs, size_t n_jobs,
                     int64_t timeout_ms);

/* What the job answered in the last round: 0, a negative errno, or -ETIMEDOUT. */
int host_statfs_answer(struct host_statfs_job *job, struct statfs *ret_stat);
