#include "collectors/host/statfs.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/clock.h"
#include "exporter/core/memory.h"
#include "exporter/loop/thread.h"

enum {
    STATFS_MAX_HELPERS = 16,
    STATFS_PATIENCE_MS = 20, /* after that, another helper continues with the queue */
};

enum job_state { JOB_IDLE, JOB_QUEUED, JOB_RUNNING };

/* Guarded by the lock of `statfs`, except for `statfs` and `path`, which never change. */
struct host_statfs_job {
    struct host_statfs *statfs;
    unsigned refs; /* of the owner and of the helper that runs it */
    enum job_state state;
    uint64_t round; /* in which it was queued */
    int answer;
    struct statfs stat;
    struct host_statfs_job *next; /* in the queue */
    char path[];
};

struct host_statfs {
    host_statfs_call *call;
    pthread_mutex_t lock; /* guards everything below, and all jobs */
    pthread_cond_t work;  /* a job was queued, or `closing` */
    pthread_cond_t done;  /* `open` became zero */
    unsigned refs;        /* of the owner and of each helper */
    bool closing;
    unsigned n_helpers;
    unsigned n_idle;
    uint64_t round;
    size_t open; /* jobs of this round without an answer */
    struct host_statfs_job *queue;
    struct host_statfs_job **queue_end;
};

struct host_statfs *host_statfs_create(host_statfs_call *call) {
    struct host_statfs *statfs = mem_zalloc(1, sizeof(*statfs));
    statfs->call = call;
    statfs->refs = 1;
    statfs->queue_end = &statfs->queue;
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&statfs->lock, NULL);
    pthread_cond_init(&statfs->work, NULL);
    pthread_cond_init(&statfs->done, &attr);
    pthread_condattr_destroy(&attr);
    return statfs;
}

/* Unlocks, and frees it with the last reference. */
static void unlock_and_unref(struct host_statfs *statfs) {
    bool last = --statfs->refs == 0;
    pthread_mutex_unlock(&statfs->lock);
    if (last) {
        pthread_cond_destroy(&statfs->work);
        pthread_cond_destroy(&statfs->done);
        pthread_mutex_destroy(&statfs->lock);
        free(statfs);
    }
}

void host_statfs_destroy(struct host_statfs *statfs) {
    if (statfs == NULL) {
        return;
    }
    pthread_mutex_lock(&statfs->lock);
    statfs->closing = true;
    pthread_cond_broadcast(&statfs->work);
    unlock_and_unref(statfs);
}

struct host_statfs_job *host_statfs_job_create(struct host_statfs *statfs, const char *path) {
    size_t size = strlen(path) + 1;
    struct host_statfs_job *job = mem_zalloc(1, sizeof(*job) + size);
    job->statfs = statfs;
    job->refs = 1;
    job->answer = -ETIMEDOUT;
    memcpy(job->path, path, size);
    return job;
}

static void job_unref(struct host_statfs_job *job) {
    if (--job->refs == 0) {
        free(job);
    }
}

void host_statfs_job_destroy(struct host_statfs_job *job) {
    if (job != NULL) {
        pthread_mutex_t *lock = &job->statfs->lock;
        pthread_mutex_lock(lock);
        job_unref(job);
        pthread_mutex_unlock(lock);
    }
}

static struct host_statfs_job *take_job(struct host_statfs *statfs) {
    struct host_statfs_job *job = statfs->queue;
    statfs->queue = job->next;
    if (statfs->queue == NULL) {
        statfs->queue_end = &statfs->queue;
    }
    return job;
}

/* Called with the lock held, which is released during the system call. */
static void run_job(struct host_statfs *statfs, struct host_statfs_job *job) {
    job->state = JOB_RUNNING;
    job->refs++;
    pthread_mutex_unlock(&statfs->lock);
    struct statfs stat = {0};
    int answer = statfs->call(job->path, &stat) < 0 ? -errno : 0;
    pthread_mutex_lock(&statfs->lock);
    job->state = JOB_IDLE;
    if (job->round == statfs->round && statfs->open > 0) {
        job->answer = answer;
        job->stat = stat;
        if (--statfs->open == 0) {
            pthread_cond_signal(&statfs->done);
        }
    }
    job_unref(job);
}

/* One helper stays for the next round; those that replaced a slow one end. */
static void *helper_main(void *argument) {
    struct host_statfs *statfs = argument;
    pthread_mutex_lock(&statfs->lock);
    while (!statfs->closing) {
        if (statfs->queue != NULL) {
            run_job(statfs, take_job(statfs));
            continue;
        }
        if (statfs->n_idle > 0) {
            break;
        }
        statfs->n_idle++;
        pthread_cond_wait(&statfs->work, &statfs->lock);
        statfs->n_idle--;
    }
    statfs->n_helpers--;
    unlock_and_unref(statfs);
    return NULL;
}

static bool start_helper(struct host_statfs *statfs) {
    pthread_t thread;
    if (statfs->n_helpers >= STATFS_MAX_HELPERS ||
        thread_start(&thread, "host", helper_main, statfs, NULL) < 0) {
        return false;
    }
    pthread_detach(thread);
    statfs->n_helpers++;
    statfs->refs++;
    return true;
}

static void enqueue(struct host_statfs *statfs, struct host_statfs_job *const *jobs,
                    size_t n_jobs) {
    for (size_t i = 0; i < n_jobs; i++) {
        struct host_statfs_job *job = jobs[i];
        job->answer = -ETIMEDOUT;
        if (job->state == JOB_IDLE) {
            job->state = JOB_QUEUED;
            job->round = statfs->round;
            job->next = NULL;
            *statfs->queue_end = job;
            statfs->queue_end = &job->next;
            statfs->open++;
        }
    }
}

/* Returns whether there is anything to wait for. Wakes the helper after unlocking, because it needs
 * the lock at once. */
static bool begin_round(struct host_statfs *statfs, struct host_statfs_job *const *jobs,
                        size_t n_jobs) {
    pthread_mutex_lock(&statfs->lock);
    statfs->round++;
    statfs->open = 0;
    enqueue(statfs, jobs, n_jobs);
    bool idle = statfs->n_idle > 0;
    bool helped = statfs->open > 0 && (idle || start_helper(statfs));
    pthread_mutex_unlock(&statfs->lock);
    if (helped && idle) {
        pthread_cond_signal(&statfs->work);
    }
    return helped;
}

static void await_round(struct host_statfs *statfs, int64_t deadline) {
    for (int64_t now; statfs->open > 0 && (now = clock_monotonic_ns()) < deadline;) {
        int64_t until_ns = now + STATFS_PATIENCE_MS * CLOCK_NS_PER_MS;
        until_ns = until_ns < deadline ? until_ns : deadline;
        struct timespec until = {
            .tv_sec = (time_t)(until_ns / CLOCK_NS_PER_SEC),
            .tv_nsec = (long)(until_ns % CLOCK_NS_PER_SEC),
        };
        size_t before = statfs->open;
        pthread_cond_timedwait(&statfs->done, &statfs->lock, &until);
        if (statfs->open == before && statfs->queue != NULL && statfs->n_idle == 0) {
            start_helper(statfs);
        }
    }
}

void host_statfs_ask(struct host_statfs *statfs, struct host_statfs_job *const *jobs, size_t n_jobs,
                     int64_t timeout_ms) {
    int64_t deadline = clock_monotonic_ns() + timeout_ms * CLOCK_NS_PER_MS;
    bool helped = begin_round(statfs, jobs, n_jobs);
    pthread_mutex_lock(&statfs->lock);
    if (helped) {
        await_round(statfs, deadline);
    }
    while (statfs->queue != NULL) {
        take_job(statfs)->state = JOB_IDLE;
    }
    statfs->open = 0;
    pthread_mutex_unlock(&statfs->lock);
}

int host_statfs_answer(struct host_statfs_job *job, struct statfs *ret_stat) {
    pthread_mutex_lock(&job->statfs->lock);
    int answer = job->answer;
    if (answer == 0) {
        *ret_stat = job->stat;
    }
    pthread_mutex_unlock(&job->statfs->lock);
    return answer;
}
