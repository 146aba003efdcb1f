#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "collectors/cgroup/container_path.h"
#include "collectors/jetson/files.h"
#include "collectors/jetson/part.h"
#include "collectors/source/rows.h"
#include "exporter/core/clock.h"
#include "exporter/core/memory.h"
#include "exporter/settings/settings.h"

/* The GPU's clients in nvmap's list, which has a row for each time that a process has opened the
 * device: added up by container and, if that is asked for (processes come and go without end), by
 * process. */

enum { MAX_CONTAINERS = 1024, MAX_PROCESSES = 1024 };

#define FOLLOW_NS (5 * CLOCK_NS_PER_SEC)

struct holder {
    struct row row; /* the path of a container's cgroup, or "<pid> <name>" of a process */
    struct labels *labels;
    double bytes;
};

struct clients {
    const struct jetson_board *board;
    const char *procfs;
    struct source_file file;
    struct container_homes homes;
    struct rows containers;
    struct rows processes;
    bool show_processes;
    bool followed; /* the energy accounts need the containers between collections */
    int64_t next_ns;
    struct energy_share share;
};

static void holder_finish(void *row) {
    struct holder *holder = row;
    labels_destroy(holder->labels);
}

static void add_to_container(struct clients *clients, const struct jetson_nvmap_line *line) {
    const char *id = line->pid <= INT32_MAX
                         ? container_homes_see(&clients->homes, clients->procfs, (pid_t)line->pid)
                         : NULL;
    struct holder *holder =
        id != NULL ? rows_see(&clients->containers, (struct scan_word){id, strlen(id)}) : NULL;
    if (holder == NULL) {
        return;
    }
    if (holder->row.is_new) {
        holder->labels = labels_with(clients->board->gpu, "id", id);
    }
    holder->bytes = holder->row.again ? holder->bytes + line->bytes : line->bytes;
}

static void add_to_process(struct clients *clients, const struct jetson_nvmap_line *line) {
    struct buf key CLEANUP_BUF = {0};
    buf_printf(&key, "%" PRIu64, line->pid);
    size_t len = key.len;
    buf_add_char(&key, ' ');
    buf_add(&key, line->process.text, line->process.len);
    struct holder *holder =
        rows_see(&clients->processes, (struct scan_word){buf_str(&key), key.len});
    if (holder == NULL) {
        return;
    }
    if (holder->row.is_new) {
        char *pid CLEANUP_FREE = mem_strndup(holder->row.key, len);
        holder->labels = labels_render("comm", holder->row.key + len + 1, "gpu", "0", "pid", pid,
                                       "uuid", clients->board->gpu_uuid);
    }
    holder->bytes = holder->row.again ? holder->bytes + line->bytes : line->bytes;
}

static int client_line(void *context, size_t number, const char *text) {
    (void)number;
    struct clients *clients = context;
    struct jetson_nvmap_line line;
    int r = jetson_nvmap_parse(text, &line);
    if (r < 0 || line.total) {
        return r == -ENODATA ? 0 : r;
    }
    add_to_container(clients, &line);
    if (clients->show_processes) {
        add_to_process(clients, &line);
    }
    return 0;
}

/* The list cannot be read without root, or where nvmap is not in use; then it counts as empty. */
static int update(struct clients *clients, struct buf *scratch, struct error *err) {
    container_homes_begin(&clients->homes);
    int r = 0;
    if (source_file_read(&clients->file, scratch, NULL) == 0) {
        r = scan_lines(buf_str(scratch), clients->file.path, client_line, clients, err);
    }
    rows_sweep(&clients->containers);
    rows_sweep(&clients->processes);
    return r;
}

static void client_sample(void *state, struct jetson_round *round) {
    struct clients *clients = state;
    if (round->board->nvml) {
        return;
    }
    if (clients->followed && round->now_ns >= clients->next_ns) {
        clients->next_ns = round->now_ns + FOLLOW_NS;
        update(clients, round->scratch, NULL);
    }
    /* The only one that has GPU memory is the one that uses it. */
    if (clients->containers.n == 1) {
        clients->share = (struct energy_share){.id = clients->containers.all[0]->key, .ratio = 1};
        round->gpu_shares = &clients->share;
        round->n_gpu_shares = 1;
    }
}

static void add(const struct rows *rows, enum gpu_metric metric, struct snapshot *out) {
    for (size_t i = 0; i < rows->n; i++) {
        const struct holder *holder = (const struct holder *)rows->all[i];
        snapshot_add(out, &gpu_descs[metric], holder->labels, holder->bytes);
    }
}

static int client_collect(void *state, struct jetson_round *round, struct snapshot *out,
                          struct error *err) {
    struct clients *clients = state;
    if (round->board->nvml) {
        return 0;
    }
    int r = update(clients, round->scratch, err);
    add(&clients->containers, CONTAINER_GPU_MEMORY, out);
    add(&clients->processes, GPU_PROCESS_MEMORY, out);
    return r;
}

static void client_close(void *state) {
    struct clients *clients = state;
    rows_finish(&clients->containers);
    rows_finish(&clients->processes);
    container_homes_finish(&clients->homes);
    source_file_finish(&clients->file);
}

static void client_open(void *state, const struct collector_env *env,
                        const struct jetson_board *board) {
    struct clients *clients = state;
    clients->board = board;
    clients->procfs = env->procfs;
    clients->followed = env->energy != NULL;
    clients->show_processes = settings_bool(env->settings, "collector.jetson.processes");
    clients->containers = (struct rows){sizeof(struct holder), holder_finish, MAX_CONTAINERS};
    clients->processes = (struct rows){sizeof(struct holder), holder_finish, MAX_PROCESSES};
    source_file_init(&clients->file, env->sysfs, JETSON_DEBUGFS "nvmap/iovmm/clients", NULL);
}

const struct jetson_part jetson_client_part = {
    .state_size = sizeof(struct clients),
    .open = client_open,
    .sample = client_sample,
    .collect = client_collect,
    .close = client_close,
};
