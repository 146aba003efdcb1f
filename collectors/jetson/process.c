#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/jetson/files.h"
#include "collectors/jetson/part.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/memory.h"
#include "exporter/settings/settings.h"

enum { PROCESS_MAX = 1024 };

/* GPU memory by process; off unless asked for, as processes come and go without end. */
struct process {
    uint64_t pid;
    double bytes;
    struct labels *labels;
};

struct processes {
    bool enabled;
    const char *uuid; /* of the GPU */
    struct source_file clients;
    struct process *rows;
    size_t n_rows;
};

static void clear(struct processes *processes) {
    for (size_t i = 0; i < processes->n_rows; i++) {
        labels_destroy(processes->rows[i].labels);
    }
    processes->n_rows = 0;
}

static struct process *see(struct processes *processes, const struct jetson_nvmap_line *line) {
    for (size_t i = 0; i < processes->n_rows; i++) {
        if (processes->rows[i].pid == line->pid) {
            return &processes->rows[i];
        }
    }
    if (processes->n_rows == PROCESS_MAX) {
        return NULL;
    }
    char pid[24];
    char *name CLEANUP_FREE = mem_strndup(line->process.text, line->process.len);
    snprintf(pid, sizeof(pid), "%" PRIu64, line->pid);
    struct process *row = &processes->rows[processes->n_rows++];
    *row = (struct process){
        .pid = line->pid,
        .labels = labels_render("comm", name, "gpu", "0", "pid", pid, "uuid", processes->uuid),
    };
    return row;
}

/* A process has a row for each time it has opened the device. */
static int client_line(void *context, size_t number, const char *text) {
    (void)number;
    struct processes *processes = context;
    struct jetson_nvmap_line line;
    int r = jetson_nvmap_parse(text, &line);
    if (r < 0) {
        return r == -ENODATA ? 0 : r;
    }
    struct process *row = line.total ? NULL : see(processes, &line);
    if (row != NULL) {
        row->bytes += line.bytes;
    }
    return 0;
}

static int process_collect(void *state, struct jetson_round *round, struct snapshot *out,
                           struct error *err) {
    struct processes *processes = state;
    if (!processes->enabled || source_file_read(&processes->clients, round->scratch, NULL) < 0) {
        return 0;
    }
    clear(processes);
    processes->uuid = round->board->gpu_uuid;
    int r =
        scan_lines(buf_str(round->scratch), processes->clients.path, client_line, processes, err);
    for (size_t i = 0; i < processes->n_rows; i++) {
        const struct process *row = &processes->rows[i];
        snapshot_add(out, &gpu_descs[GPU_PROCESS_MEMORY], row->labels, row->bytes);
    }
    return r;
}

static void process_close(void *state) {
    struct processes *processes = state;
    clear(processes);
    free(processes->rows);
    source_file_finish(&processes->clients);
    free(processes);
}

static void *process_open(const struct collector_env *env, const struct jetson_board *board) {
    struct processes *processes = mem_zalloc(1, sizeof(*processes));
    processes->enabled = !board->nvml && settings_bool(env->settings, "collector.jetson.processes");
    if (processes->enabled) {
        processes->rows = mem_zalloc(PROCESS_MAX, sizeof(*processes->rows));
    }
    source_file_init(&processes->clients, env->sysfs, JETSON_DEBUGFS "nvmap/iovmm/clients", NULL);
    return processes;
}

const struct jetson_part jetson_process_part = {
    .name = "process",
    .open = process_open,
    .collect = process_collect,
    .close = process_close,
};
