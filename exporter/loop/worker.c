#include "exporter/loop/worker.h"

#include <pthread.h>
#include <stdlib.h>

#include "exporter/core/container_of.h"
#include "exporter/core/list.h"
#include "exporter/core/memory.h"
#include "exporter/loop/thread.h"

struct worker {
    struct loop *loop;
    pthread_t thread;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t changed;
    struct worker_job *first;
    bool quit;
};

static void deliver_done(struct loop_message *message) {
    struct worker_job *job = CONTAINER_OF(message, struct worker_job, message);
    job->done(job);
}

static struct worker_job *wait_for_job(struct worker *worker) {
    pthread_mutex_lock(&worker->lock);
    while (worker->first == NULL && !worker->quit) {
        pthread_cond_wait(&worker->changed, &worker->lock);
    }
    struct worker_job *job = worker->first;
    if (job != NULL) {
        worker->first = job->next;
    }
    pthread_mutex_unlock(&worker->lock);
    return job;
}

static void *worker_main(void *context) {
    struct worker *worker = context;
    struct worker_job *job;
    while ((job = wait_for_job(worker)) != NULL) {
        bool is_awaited = job->done != NULL;
        job->run(job);
        if (is_awaited) {
            job->message.deliver = deliver_done;
            loop_post(worker->loop, &job->message);
        }
    }
    return NULL;
}

int worker_create(struct loop *loop, const char *name, struct worker **ret_worker,
                  struct error *err) {
    struct worker *worker = mem_zalloc(1, sizeof(*worker));
    worker->loop = loop;
    pthread_mutex_init(&worker->lock, NULL);
    pthread_cond_init(&worker->changed, NULL);
    int r = thread_start(&worker->thread, name, worker_main, worker, err);
    if (r < 0) {
        free(worker);
        return r;
    }
    *ret_worker = worker;
    return 0;
}

bool worker_destroy(struct worker *worker, int64_t timeout_ms) {
    if (worker == NULL) {
        return true;
    }
    pthread_mutex_lock(&worker->lock);
    worker->quit = true;
    pthread_cond_signal(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
    if (!thread_join(worker->thread, timeout_ms)) {
        return false;
    }
    pthread_cond_destroy(&worker->changed);
    pthread_mutex_destroy(&worker->lock);
    free(worker);
    return true;
}

void worker_submit(struct worker *worker, struct worker_job *job) {
    job->next = NULL;
    pthread_mutex_lock(&worker->lock);
    *LIST_LINK(&worker->first, NULL, next) = job;
    pthread_cond_signal(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
}
