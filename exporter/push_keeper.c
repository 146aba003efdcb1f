#include "exporter/push_keeper.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/core/clock.h"
#include "exporter/core/container.h"
#include "exporter/core/log.h"
#include "exporter/push_metrics.h"
#include "exporter/push_recover.h"
#include "exporter/push_state.h"
#include "exporter/worker.h"

enum { MAX_NAME_LEN = 256, MAX_HELP_LEN = 1024, STOP_WORKER_MS = 10000 };

#define EXPIRE_INTERVAL_NS CLOCK_NS_PER_SEC
#define RETRY_NS (50 * CLOCK_NS_PER_MS) /* while a batch is being applied */

struct push_keeper {
    struct loop *loop;
    struct push_store *store;
    struct push_metrics metrics;
    int lock_fd; /* -1: none */
    struct loop_timer expire;
    char *places; /* what the settings of the start said of files */

    char *state_path; /* NULL: no state file */
    int64_t save_interval_ns;
    struct loop_timer save;
    struct worker *worker;
    uint64_t saved_changes;
    double saved_seconds;
    bool failing; /* the fault was logged, its end was not */

    /* A save under way. */
    struct worker_job job;
    bool saving;
    struct buf pages;
    uint64_t changes;
    int code;
    struct error error;
};

/* ---- settings ---- */

static size_t size_setting(const struct settings *settings, const char *name) {
    return (size_t)settings_int(settings, name);
}

static struct push_store_config read_settings(const struct settings *settings) {
    return (struct push_store_config){
        .limits =
            {
                .max_owners = size_setting(settings, "push.max-plugins"),
                .max_series = size_setting(settings, "push.max-series"),
                .max_owner_series = size_setting(settings, "push.max-series-per-plugin"),
                .max_labels = size_setting(settings, "push.max-labels"),
                .max_name_len = MAX_NAME_LEN,
                .max_value_len = size_setting(settings, "push.max-label-length"),
                .max_help_len = MAX_HELP_LEN,
                .max_buckets = size_setting(settings, "push.max-buckets"),
            },
        .ttl_ms = settings_duration_ms(settings, "push.ttl"),
        .table_bytes = size_setting(settings, "push.table-size"),
    };
}

static const char *path_setting(const struct settings *settings, const char *name) {
    const char *path = settings_string(settings, name);
    return path[0] != '\0' ? path : NULL;
}

/* What only a start can change, as one text. */
static char *describe_places(const struct settings *settings) {
    struct buf text = {0};
    buf_printf(&text, "table \"%s\" of %zu bytes, state file \"%s\"",
               settings_string(settings, "push.table"), size_setting(settings, "push.table-size"),
               settings_string(settings, "push.state-file"));
    return buf_take(&text);
}

/* ---- opening ---- */

/* Whether there is something to load; a file of no use is put out of the way. */
static bool take_remains(const char *path, struct push_remains *remains,
                         int (*recover)(const char *path, struct push_remains *ret_remains,
                                        struct error *err)) {
    struct error err;
    int r = path != NULL ? recover(path, remains, &err) : -ENOENT;
    if (r == -EINVAL || r == -EPROTO) {
        struct buf words CLEANUP_BUF = {0};
        push_recover_set_aside(path, &words);
        log_warn("push: %s: %s; %s", path, err.text, buf_str(&words));
    } else if (r < 0 && r != -ENOENT) {
        log_warn("push: %s", err.text);
    }
    return r == 0;
}

static void load(struct push_store *store, const char *path, const struct push_remains *remains) {
    struct push_load_report report;
    push_store_load(store, remains->file.data + remains->offset, remains->len, &report);
    size_t n_damaged = remains->n_damaged + report.n_damaged_pages;
    if (n_damaged > 0 || report.n_dropped > 0) {
        log_warn("push: %s: %zu damaged pages and %zu entries of no use; %zu series are left", path,
                 n_damaged, report.n_dropped, report.n_series);
    } else if (report.n_series > 0) {
        log_info("push: %s: %zu series taken over", path, report.n_series);
    }
}

/* The table of this boot is the truth; after another boot the state file is, which was written as a
 * whole. Says whether the state file is up to date. */
static bool restore(struct push_store *store, const char *table_path, const char *state_path) {
    struct push_remains table CLEANUP_PUSH_REMAINS = {0};
    struct push_remains state CLEANUP_PUSH_REMAINS = {0};
    bool has_table = take_remains(table_path, &table, push_recover_table);
    bool has_state =
        !(has_table && table.same_boot) && take_remains(state_path, &state, push_recover_state);
    if (has_state) {
        load(store, state_path, &state);
    } else if (has_table) {
        load(store, table_path, &table);
    }
    if (state.n_damaged > 0) {
        struct buf words CLEANUP_BUF = {0};
        push_recover_set_aside(state_path, &words);
        log_warn("push: %s: %s", state_path, buf_str(&words));
    }
    return has_state && state.n_damaged == 0;
}

/* Without its file the store is kept in memory: pushing goes on. */
static int open_store(struct push_keeper *keeper, struct push_store_config *config,
                      const char *state_path, struct error *err) {
    struct error problem;
    int r = 0;
    if (config->table_path != NULL) {
        r = push_recover_lock(config->table_path, &keeper->lock_fd, &problem);
        if (r == 0) {
            r = push_store_create(config, &keeper->store, &problem);
        }
        if (r < 0) {
            log_warn("push: %s; what is pushed is in memory only, and gone after a restart "
                     "(see --push.table)",
                     problem.text);
        }
    }
    /* The table of another daemon is not ours to take over, nor is its state file. */
    const char *table_path = keeper->lock_fd >= 0 ? config->table_path : NULL;
    if (keeper->store == NULL) {
        config->table_path = NULL;
        r = push_store_create(config, &keeper->store, err);
        if (r < 0) {
            return r;
        }
    }
    if (restore(keeper->store, table_path, state_path)) {
        keeper->saved_changes = push_store_stats(keeper->store).changes;
    }
    if (push_store_publish(keeper->store, &problem) < 0) {
        log_warn("push: %s; what is pushed is gone after a restart", problem.text);
    }
    return 0;
}

/* ---- saving ---- */

static void note_saved(struct push_keeper *keeper) {
    if (keeper->code < 0) {
        if (!keeper->failing) {
            log_warn("push: state file: %s", keeper->error.text);
        }
        keeper->failing = true;
        return;
    }
    if (keeper->failing) {
        log_info("push: state file: can be written again");
    }
    keeper->failing = false;
    keeper->saved_changes = keeper->changes;
    keeper->saved_seconds = clock_wall_seconds();
}

static void copy_pages(struct push_keeper *keeper) {
    size_t len = 0;
    const void *pages = push_store_pages(keeper->store, &len);
    buf_reset(&keeper->pages);
    buf_add(&keeper->pages, pages, len);
    keeper->changes = push_store_stats(keeper->store).changes;
}

static void save_run(struct worker_job *job) {
    struct push_keeper *keeper = CONTAINER_OF(job, struct push_keeper, job);
    struct buf content CLEANUP_BUF = {.failed = keeper->pages.failed};
    push_state_encode(buf_str(&keeper->pages), keeper->pages.len, &content);
    buf_finish(&keeper->pages);
    keeper->code = push_state_write(keeper->state_path, &content, &keeper->error);
}

static void save_done(struct worker_job *job) {
    struct push_keeper *keeper = CONTAINER_OF(job, struct push_keeper, job);
    keeper->saving = false;
    note_saved(keeper);
}

static bool has_changed(const struct push_keeper *keeper) {
    return push_store_stats(keeper->store).changes != keeper->saved_changes;
}

static void save_fire(struct loop_timer *timer) {
    struct push_keeper *keeper = CONTAINER_OF(timer, struct push_keeper, save);
    if (push_store_is_applying(keeper->store)) {
        timer->due_ns = clock_monotonic_ns() + RETRY_NS;
        return;
    }
    timer->due_ns = clock_monotonic_ns() + keeper->save_interval_ns;
    if (keeper->saving || !has_changed(keeper)) {
        return;
    }
    copy_pages(keeper);
    keeper->saving = true;
    keeper->job = (struct worker_job){.run = save_run, .done = save_done};
    worker_submit(keeper->worker, &keeper->job);
}

bool push_keeper_stop(struct push_keeper *keeper) {
    if (keeper == NULL || keeper->worker == NULL) {
        return true;
    }
    if (!worker_destroy(keeper->worker, STOP_WORKER_MS)) {
        return false;
    }
    keeper->worker = NULL;
    keeper->save.due_ns = LOOP_NEVER;
    loop_cancel(keeper->loop, &keeper->job.message);
    if (has_changed(keeper)) {
        copy_pages(keeper);
        save_run(&keeper->job);
        note_saved(keeper);
    }
    return true;
}

static int prepare_saving(struct push_keeper *keeper, const char *state_path, struct error *err) {
    keeper->save = (struct loop_timer){.due_ns = LOOP_NEVER, .fire = save_fire};
    loop_timer_add(keeper->loop, &keeper->save);
    if (state_path == NULL) {
        return 0;
    }
    keeper->state_path = strdup(state_path);
    if (keeper->state_path == NULL) {
        return error_set(err, -ENOMEM, "push: out of memory");
    }
    struct push_stats stats = push_store_stats(keeper->store);
    if (stats.n_owners == 0) {
        keeper->saved_changes = stats.changes; /* an empty file would say no more than none */
    }
    keeper->save.due_ns = clock_monotonic_ns() + keeper->save_interval_ns;
    return worker_create(keeper->loop, "push", &keeper->worker, err);
}

/* ---- life ---- */

static void expire_fire(struct loop_timer *timer) {
    struct push_keeper *keeper = CONTAINER_OF(timer, struct push_keeper, expire);
    if (push_store_is_applying(keeper->store)) {
        timer->due_ns = clock_monotonic_ns() + RETRY_NS;
        return;
    }
    push_store_expire(keeper->store);
    timer->due_ns = clock_monotonic_ns() + EXPIRE_INTERVAL_NS;
}

int push_keeper_create(struct loop *loop, const struct settings *settings,
                       const struct collector *const *collectors, struct push_keeper **ret_keeper,
                       struct error *err) {
    struct push_keeper *keeper = calloc(1, sizeof(*keeper));
    if (keeper == NULL) {
        return error_set(err, -ENOMEM, "push: out of memory");
    }
    keeper->loop = loop;
    keeper->lock_fd = -1;
    keeper->saved_changes = UINT64_MAX;
    keeper->expire = (struct loop_timer){.fire = expire_fire};
    loop_timer_add(loop, &keeper->expire);
    struct push_store_config config = read_settings(settings);
    config.collectors = collectors;
    config.table_path = path_setting(settings, "push.table");
    const char *state_path = path_setting(settings, "push.state-file");
    keeper->save_interval_ns =
        settings_duration_ms(settings, "push.state-interval") * CLOCK_NS_PER_MS;
    keeper->places = describe_places(settings);
    int r = keeper->places != NULL ? open_store(keeper, &config, state_path, err)
                                   : error_set(err, -ENOMEM, "push: out of memory");
    if (r == 0) {
        r = prepare_saving(keeper, state_path, err);
    }
    if (r < 0) {
        push_keeper_destroy(keeper);
        return r;
    }
    *ret_keeper = keeper;
    return 0;
}

void push_keeper_destroy(struct push_keeper *keeper) {
    if (keeper == NULL) {
        return;
    }
    loop_timer_remove(keeper->loop, &keeper->expire);
    loop_timer_remove(keeper->loop, &keeper->save);
    push_store_destroy(keeper->store);
    push_metrics_finish(&keeper->metrics);
    buf_finish(&keeper->pages);
    free(keeper->state_path);
    free(keeper->places);
    if (keeper->lock_fd >= 0) {
        close(keeper->lock_fd);
    }
    free(keeper);
}

void push_keeper_configure(struct push_keeper *keeper, const struct settings *settings) {
    char *places CLEANUP_FREE = describe_places(settings);
    if (places != NULL && strcmp(places, keeper->places) != 0) {
        log_warn("push: in use stays %s until the next start", keeper->places);
    }
    struct push_store_config config = read_settings(settings);
    push_store_configure(keeper->store, &config);
    keeper->save_interval_ns =
        settings_duration_ms(settings, "push.state-interval") * CLOCK_NS_PER_MS;
}

struct push_store *push_keeper_store(struct push_keeper *keeper) {
    return keeper->store;
}

void push_keeper_collect(struct push_keeper *keeper, struct snapshot *out) {
    struct push_stats stats = push_store_stats(keeper->store);
    push_metrics_collect(&keeper->metrics, &stats, keeper->saved_seconds, out);
}
