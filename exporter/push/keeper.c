#include "exporter/push/keeper.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "exporter/core/file.h"
#include "exporter/core/log.h"
#include "exporter/core/memory.h"
#include "exporter/loop/worker.h"
#include "exporter/push/files.h"
#include "exporter/push/metrics.h"

/* …_AT_ONCE: the work between two checks of the length of the turn. */
enum {
    STOP_WORKER_MS = 10000,
    SERIES_AT_ONCE = 100,
    BYTES_AT_ONCE = 256 << 10,
};

#define INTERVAL_NS CLOCK_NS_PER_SEC
#define PAUSE_NS (2 * CLOCK_NS_PER_MS) /* for others, between the turns of one pass */

#define IN_MEMORY "pushes are in memory only, and lost at a restart (see --push.table)"

struct push_keeper {
    struct loop *loop;
    struct push_store *store;
    struct push_log *log;
    struct push_metrics metrics;
    int table_lock_fd; /* -1: none */
    struct loop_timer expire;
    char *places; /* describe_places at the start */

    char *state_path;  /* NULL: no state file, or it must not be written */
    int state_lock_fd; /* -1: none yet; a running save may use it */
    int64_t save_interval_ns;
    struct loop_timer save;
    struct worker *worker;
    uint64_t saved_changes;
    double saved_seconds;
    bool copying; /* the pages, for the next save */
    bool failing; /* logged, until a save succeeds */

    /* The running save. */
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
                .max_owner_series = size_setting(settings, "push.max-series-per-plugin"),
                .max_peer_bytes = size_setting(settings, "push.max-size-per-peer"),
                .max_line_rate = size_setting(settings, "push.max-line-rate"),
            },
        .ttl_ms = settings_duration_ms(settings, "push.ttl"),
        .table_bytes = size_setting(settings, "push.table-size"),
    };
}

static const char *path_setting(const struct settings *settings, const char *name) {
    const char *path = settings_string(settings, name);
    return path[0] != '\0' ? path : NULL;
}

/* The settings that need a restart, as one text. */
static char *describe_places(const struct settings *settings) {
    struct buf text = {0};
    buf_printf(&text, "table \"%s\" of %zu bytes, state file \"%s\"",
               settings_string(settings, "push.table"), size_setting(settings, "push.table-size"),
               settings_string(settings, "push.state-file"));
    return buf_take(&text);
}

/* ---- opening ---- */

/* A file that was there at the start. */
struct old_file {
    const char *path; /* NULL: none */
    struct push_remains remains;
    bool is_found;
    bool is_stuck; /* it must not be written: of another kind, or it could not be set aside */
};

static void old_file_finish(struct old_file *old) {
    push_remains_finish(&old->remains);
}
#define CLEANUP_OLD_FILE CLEANUP(old_file_finish)

static void set_aside(struct old_file *old, const char *why) {
    struct buf name CLEANUP_BUF = {0};
    struct error err;
    old->is_stuck = push_recover_set_aside(old->path, &name, &err) < 0;
    if (old->is_stuck) {
        log_warn("push: %s; it cannot be set aside: %s", why, err.text);
    } else {
        log_warn("push: %s; set aside as %s", why, buf_str(&name));
    }
}

/* Reads a file if there is one. A damaged one is kept under another name. */
static void read_old_file(struct old_file *old, enum push_file kind) {
    struct error err;
    int r = old->path != NULL ? push_recover(kind, old->path, &old->remains, &err) : -ENOENT;
    old->is_found = r == 0;
    if (r == -EMEDIUMTYPE || r == -EPERM) { /* a path given by mistake, or another user's file */
        log_warn("push: %s", err.text);
        old->is_stuck = true;
    } else if (r < 0 && r != -ENOENT) {
        set_aside(old, err.text);
    } else if (old->remains.n_damaged > 0) {
        struct buf why CLEANUP_BUF = {0};
        buf_printf(&why, "%s: %zu damaged pages", old->path, old->remains.n_damaged);
        set_aside(old, buf_str(&why));
    }
}

static void load(struct push_store *store, const struct old_file *old) {
    struct push_load_report report;
    const struct push_remains *remains = &old->remains;
    push_store_load(store, remains->file.data + remains->offset, remains->len, &report);
    size_t n_damaged = remains->n_damaged + report.n_damaged_pages;
    if (n_damaged > 0 || report.n_dropped > 0) {
        log_warn("push: %s: %zu damaged pages and %zu invalid entries; %zu series are left",
                 old->path, n_damaged, report.n_dropped, report.n_series);
    } else if (report.n_series > 0) {
        log_info("push: %s: %zu series restored", old->path, report.n_series);
    }
}

/* The state file has a lock of its own, as daemons with other tables may be given the same file. If
 * it fails for another reason, such as a full disk, each save tries again. */
static void claim_state(struct push_keeper *keeper, const char *path) {
    if (path == NULL) {
        return;
    }
    keeper->state_path = mem_strdup(path);
    struct error problem;
    int r = push_recover_lock(path, &keeper->state_lock_fd, &problem);
    if (r < 0 && r != -EBUSY) {
        log_warn("push: %s; nothing can be saved so far (see --push.state-file)", problem.text);
    } else if (r < 0) {
        log_warn("push: %s; nothing is taken from it, and nothing is saved (see --push.state-file)",
                 problem.text);
        free(TAKE(keeper->state_path));
    }
}

/* Without its file the store is in memory: pushing goes on. */
static int make_store(struct push_keeper *keeper, struct push_store_config *config,
                      struct error *err) {
    struct error problem;
    if (config->table_path != NULL && push_store_create(config, &keeper->store, &problem) < 0) {
        log_warn("push: %s; " IN_MEMORY, problem.text);
    }
    if (keeper->store != NULL) {
        return 0;
    }
    config->table_path = NULL;
    return push_store_create(config, &keeper->store, err);
}

/* A table of this boot is newer than the state file. After a reboot the state file is used, which
 * was written as a whole. */
static void restore(struct push_keeper *keeper, const struct old_file *table,
                    const struct old_file *state) {
    bool use_table = table->is_found && (table->remains.same_boot || !state->is_found);
    if (use_table) {
        load(keeper->store, table);
    } else if (state->is_found) {
        load(keeper->store, state);
    }
    if (!use_table && state->is_found && state->remains.n_damaged == 0) {
        keeper->saved_changes = push_store_stats(keeper->store).changes;
    }
}

static int open_store(struct push_keeper *keeper, struct push_store_config *config,
                      struct error *err) {
    struct old_file table CLEANUP_OLD_FILE = {.path = config->table_path};
    struct old_file state CLEANUP_OLD_FILE = {.path = keeper->state_path};
    struct error problem;
    if (table.path != NULL && push_recover_lock(table.path, &keeper->table_lock_fd, &problem) < 0) {
        log_warn("push: %s; " IN_MEMORY, problem.text);
        table.path = NULL;
    }
    read_old_file(&table, PUSH_FILE_TABLE);
    read_old_file(&state, PUSH_FILE_STATE);
    if (table.is_stuck) {
        log_warn("push: %s is left as it is; " IN_MEMORY, table.path);
    }
    config->table_path = table.is_stuck ? NULL : table.path;
    int r = make_store(keeper, config, err);
    if (r < 0) {
        return r;
    }
    restore(keeper, &table, &state);
    if (push_store_publish(keeper->store, &problem) < 0) {
        log_warn("push: %s; pushes are lost at a restart", problem.text);
    }
    if (state.is_stuck) {
        log_warn("push: %s is left as it is; nothing is saved until the next start",
                 keeper->state_path);
        free(TAKE(keeper->state_path));
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

static void begin_copy(struct push_keeper *keeper) {
    buf_reset(&keeper->pages);
    keeper->changes = push_store_stats(keeper->store).changes;
    keeper->copying = true;
}

static void save_run(struct worker_job *job) {
    struct push_keeper *keeper = CONTAINER_OF(job, struct push_keeper, job);
    struct buf content CLEANUP_BUF = {0};
    push_state_encode(buf_str(&keeper->pages), keeper->pages.len, &content);
    buf_finish(&keeper->pages);
    int r = 0;
    if (keeper->state_lock_fd < 0) {
        r = push_recover_lock(keeper->state_path, &keeper->state_lock_fd, &keeper->error);
    }
    if (r == 0) {
        r = file_replace(keeper->state_path, 0600, content.data, content.len, &keeper->error);
    }
    keeper->code = r;
}

static void save_done(struct worker_job *job) {
    struct push_keeper *keeper = CONTAINER_OF(job, struct push_keeper, job);
    keeper->saving = false;
    note_saved(keeper);
}

static bool has_changed(const struct push_keeper *keeper) {
    return push_store_stats(keeper->store).changes != keeper->saved_changes;
}

static void copy_turn(struct push_keeper *keeper) {
    bool more;
    do {
        more = push_store_copy_some(keeper->store, &keeper->pages, BYTES_AT_ONCE);
    } while (more && !loop_turn_is_long(keeper->loop));
    if (more) {
        keeper->save.due_ns = 0;
        return;
    }
    keeper->copying = false;
    keeper->save.due_ns = clock_monotonic_ns() + keeper->save_interval_ns;
    keeper->saving = true;
    keeper->job = (struct worker_job){.run = save_run, .done = save_done};
    worker_submit(keeper->worker, &keeper->job);
}

static void save_fire(struct loop_timer *timer) {
    struct push_keeper *keeper = CONTAINER_OF(timer, struct push_keeper, save);
    timer->due_ns = clock_monotonic_ns() + keeper->save_interval_ns;
    if (!keeper->copying && !keeper->saving && has_changed(keeper)) {
        begin_copy(keeper);
    }
    if (keeper->copying) {
        copy_turn(keeper);
    }
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
        begin_copy(keeper);
        push_store_copy_some(keeper->store, &keeper->pages, SIZE_MAX);
        save_run(&keeper->job);
        note_saved(keeper);
    }
    return true;
}

static int prepare_saving(struct push_keeper *keeper, struct error *err) {
    keeper->save = (struct loop_timer){.due_ns = LOOP_NEVER, .fire = save_fire};
    loop_timer_add(keeper->loop, &keeper->save);
    if (keeper->state_path == NULL) {
        return 0;
    }
    struct push_stats stats = push_store_stats(keeper->store);
    if (stats.n_owners == 0) {
        keeper->saved_changes = stats.changes; /* no need for an empty file */
    }
    keeper->save.due_ns = clock_monotonic_ns() + keeper->save_interval_ns;
    return worker_create(keeper->loop, "push", &keeper->worker, err);
}

/* ---- life ---- */

static void expire_fire(struct loop_timer *timer) {
    struct push_keeper *keeper = CONTAINER_OF(timer, struct push_keeper, expire);
    bool more;
    do {
        more = push_store_expire(keeper->store, SERIES_AT_ONCE);
    } while (more && !loop_turn_is_long(keeper->loop));
    timer->due_ns = clock_monotonic_ns() + (more ? PAUSE_NS : INTERVAL_NS);
}

int push_keeper_create(struct loop *loop, const struct settings *settings,
                       const struct collector *const *collectors, struct push_keeper **ret_keeper,
                       struct error *err) {
    struct push_keeper *keeper = mem_zalloc(1, sizeof(*keeper));
    keeper->loop = loop;
    keeper->table_lock_fd = -1;
    keeper->state_lock_fd = -1;
    keeper->saved_changes = UINT64_MAX;
    keeper->expire = (struct loop_timer){.fire = expire_fire};
    loop_timer_add(loop, &keeper->expire);
    struct push_store_config config = read_settings(settings);
    config.collectors = collectors;
    config.table_path = path_setting(settings, "push.table");
    keeper->save_interval_ns =
        settings_duration_ms(settings, "push.state-interval") * CLOCK_NS_PER_MS;
    keeper->places = describe_places(settings);
    keeper->log = push_log_create(loop);
    claim_state(keeper, path_setting(settings, "push.state-file"));
    int r = open_store(keeper, &config, err);
    if (r == 0) {
        r = prepare_saving(keeper, err);
    }
    if (r < 0) {
        push_keeper_destroy(keeper);
        return r;
    }
    *ret_keeper = keeper;
    return 0;
}

static void close_lock(int fd) {
    if (fd >= 0) {
        close(fd);
    }
}

void push_keeper_destroy(struct push_keeper *keeper) {
    if (keeper == NULL) {
        return;
    }
    loop_timer_remove(keeper->loop, &keeper->expire);
    loop_timer_remove(keeper->loop, &keeper->save);
    push_log_destroy(keeper->log);
    push_store_destroy(keeper->store);
    push_metrics_finish(&keeper->metrics);
    buf_finish(&keeper->pages);
    free(keeper->state_path);
    free(keeper->places);
    close_lock(keeper->table_lock_fd);
    close_lock(keeper->state_lock_fd);
    free(keeper);
}

void push_keeper_configure(struct push_keeper *keeper, const struct settings *settings) {
    char *places CLEANUP_FREE = describe_places(settings);
    if (strcmp(places, keeper->places) != 0) {
        log_warn("push: still using %s; restart to change it", keeper->places);
    }
    struct push_store_config config = read_settings(settings);
    push_store_configure(keeper->store, &config);
    keeper->save_interval_ns =
        settings_duration_ms(settings, "push.state-interval") * CLOCK_NS_PER_MS;
}

struct push_store *push_keeper_store(struct push_keeper *keeper) {
    return keeper->store;
}

struct push_log *push_keeper_log(struct push_keeper *keeper) {
    return keeper->log;
}

void push_keeper_collect(struct push_keeper *keeper, struct snapshot *out) {
    struct push_stats stats = push_store_stats(keeper->store);
    push_metrics_collect(&keeper->metrics, &stats, keeper->saved_seconds, out);
}
