#include "placement/control/waggle.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "exporter/core/file.h"
#include "exporter/core/log.h"
#include "exporter/loop/worker.h"
#include "placement/client/waggle.h"
#include "placement/control/measure.h"

/* Where nobody picks them up, files must not fill the memory that /run is made of. */
enum { MAX_FILES = 3000, STOP_MS = 3000 };

struct control_waggle {
    const struct control_config *config;
    struct loop *loop;
    struct web_client *exporter;
    struct waggle *waggle;
    char *place; /* the folder of our own below the directory */
    struct worker *worker;
    struct worker_job job;
    struct loop_timer timer;
    bool is_running;
    bool is_failing; /* it has been logged */

    /* of the round under way */
    int64_t wall_ns;
    int dir_fd;
    size_t n_files, n_written;
    int code;
    struct error error;
};

/* ---- files ---- */

/* The agent takes no file whose name begins with a dot, so it never sees half a message. */
static int write_file(int dir_fd, const char *name, const struct buf *text) {
    static const char temporary[] = ".waap";
    int fd CLEANUP_CLOSE =
        openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0) {
        return -errno;
    }
    ssize_t n = write(fd, text->data, text->len);
    if (n != (ssize_t)text->len) {
        return n < 0 ? -errno : -ENOSPC;
    }
    return renameat(dir_fd, temporary, dir_fd, name) < 0 ? -errno : 0;
}

static void emit(void *context, const char *name, const struct buf *json) {
    struct control_waggle *waggle = context;
    if (waggle->code < 0) {
        return;
    }
    if (waggle->n_files >= MAX_FILES) {
        waggle->code = error_set(&waggle->error, -ENOSPC,
                                 "%s: %d files wait for wes-metrics-agent: no more are written",
                                 waggle->place, MAX_FILES);
        return;
    }
    struct buf file CLEANUP_BUF = {0};
    buf_printf(&file, "%" PRId64 "-%zu-%s", waggle->wall_ns, waggle->n_written, name);
    int r = write_file(waggle->dir_fd, buf_str(&file), json);
    if (r < 0) {
        waggle->code =
            error_set(&waggle->error, r, "%s/%s: %s", waggle->place, buf_str(&file), strerror(-r));
        return;
    }
    waggle->n_files++;
    waggle->n_written++;
}

static int open_place(struct control_waggle *waggle, struct error *err) {
    if (mkdir(waggle->place, 0755) < 0 && errno != EEXIST) {
        return error_set(err, -errno, "create %s: %m", waggle->place);
    }
    DIR *directory = opendir(waggle->place);
    if (directory == NULL) {
        return error_set(err, -errno, "open %s: %m", waggle->place);
    }
    const struct dirent *entry;
    waggle->n_files = 0;
    while ((entry = readdir(directory)) != NULL) {
        waggle->n_files += entry->d_name[0] != '.';
    }
    waggle->dir_fd = fcntl(dirfd(directory), F_DUPFD_CLOEXEC, 0);
    closedir(directory);
    return waggle->dir_fd < 0 ? error_set(err, -errno, "open %s: %m", waggle->place) : 0;
}

int control_waggle_run(struct control_waggle *waggle, struct error *err) {
    struct buf text CLEANUP_BUF = {0};
    struct exposition_doc page CLEANUP_EXPOSITION_DOC = {0};
    int r = control_measure_page(waggle->config, waggle->exporter, &text, &page, err);
    if (r == 0) {
        r = open_place(waggle, err);
    }
    if (r < 0) {
        return r;
    }
    waggle->wall_ns = (int64_t)(clock_wall_seconds() * 1e9);
    waggle->n_written = 0;
    waggle->code = 0;
    r = waggle_take(waggle->waggle, &page, waggle->config->waggle.namespace, waggle->wall_ns,
                    clock_monotonic_ns(), emit, waggle);
    close(waggle->dir_fd);
    if (waggle->code < 0) {
        *err = waggle->error;
        return waggle->code;
    }
    return r < 0 ? error_set(err, r, "out of memory") : (int)waggle->n_written;
}

/* ---- on the loop ---- */

static void round_run(struct worker_job *job) {
    struct control_waggle *waggle = CONTAINER_OF(job, struct control_waggle, job);
    struct error err;
    int r = control_waggle_run(waggle, &err);
    waggle->code = r < 0 ? r : 0;
    if (r < 0) {
        waggle->error = err;
    }
}

static void round_done(struct worker_job *job) {
    struct control_waggle *waggle = CONTAINER_OF(job, struct control_waggle, job);
    bool failed = waggle->code < 0;
    waggle->is_running = false;
    if (failed && !waggle->is_failing) {
        log_warn("control: waggle: %s", waggle->error.text);
    } else if (!failed && waggle->is_failing) {
        log_info("control: waggle: fine again");
    }
    waggle->is_failing = failed;
}

static void timer_fire(struct loop_timer *timer) {
    struct control_waggle *waggle = CONTAINER_OF(timer, struct control_waggle, timer);
    timer->due_ns = clock_monotonic_ns() + waggle->config->waggle.interval_ms * CLOCK_NS_PER_MS;
    if (!waggle->is_running) {
        waggle->is_running = true;
        waggle->job = (struct worker_job){.run = round_run, .done = round_done};
        worker_submit(waggle->worker, &waggle->job);
    }
}

int control_waggle_create(struct loop *loop, const struct control_config *config,
                          struct control_waggle **ret_waggle, struct error *err) {
    struct control_waggle *waggle = calloc(1, sizeof(*waggle));
    if (waggle == NULL) {
        error_set(err, -ENOMEM, "out of memory");
        return -ENOMEM;
    }
    waggle->config = config;
    waggle->loop = loop;
    waggle->waggle = waggle_create();
    waggle->place = file_path_join(config->waggle.directory, "waap");
    int r = waggle->waggle == NULL || waggle->place == NULL
                ? error_set(err, -ENOMEM, "out of memory")
                : web_client_create(&config->exporter, &waggle->exporter, err);
    if (r == 0) {
        r = worker_create(loop, "waggle", &waggle->worker, err);
    }
    waggle->timer = (struct loop_timer){.due_ns = clock_monotonic_ns(), .fire = timer_fire};
    loop_timer_add(loop, &waggle->timer);
    if (r < 0) {
        control_waggle_destroy(waggle);
        return r;
    }
    *ret_waggle = waggle;
    return 0;
}

bool control_waggle_destroy(struct control_waggle *waggle) {
    if (waggle == NULL) {
        return true;
    }
    if (waggle->exporter != NULL) {
        web_client_abort(waggle->exporter);
    }
    if (!worker_destroy(waggle->worker, STOP_MS)) {
        return false;
    }
    loop_cancel(waggle->loop, &waggle->job.message);
    loop_timer_remove(waggle->loop, &waggle->timer);
    web_client_destroy(waggle->exporter);
    waggle_destroy(waggle->waggle);
    free(waggle->place);
    free(waggle);
    return true;
}
