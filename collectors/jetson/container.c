#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/cgroup/container_path.h"
#include "collectors/jetson/files.h"
#include "collectors/jetson/part.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/clock.h"
#include "exporter/core/memory.h"

/* The GPU's clients, added up by the container they run in. */

enum { MAX_CONTAINERS = 1024 };

#define FOLLOW_NS (5 * CLOCK_NS_PER_SEC)

struct holder {
    char *id; /* the path of its cgroup */
    struct labels *labels;
    unsigned round; /* of the latest list that it was in */
    double bytes;
};

struct holders {
    const char *procfs;
    const struct labels *gpu;
    struct source_file clients;
    struct container_homes homes;
    struct holder *rows;
    size_t n_rows;
    size_t cap_rows;
    unsigned round;
    bool followed; /* the energy accounts need the holders between collections */
    int64_t next_ns;
    struct energy_share share;
};

static void holder_finish(struct holder *holder) {
    free(holder->id);
    labels_destroy(holder->labels);
}

static struct holder *see(struct holders *holders, const char *id) {
    for (size_t i = 0; i < holders->n_rows; i++) {
        if (strcmp(holders->rows[i].id, id) == 0) {
            return &holders->rows[i];
        }
    }
    if (holders->n_rows == MAX_CONTAINERS) {
        return NULL;
    }
    ARRAY_GROW(&holders->rows, &holders->cap_rows, holders->n_rows + 1);
    struct holder *row = &holders->rows[holders->n_rows++];
    *row = (struct holder){.id = mem_strdup(id), .labels = labels_with(holders->gpu, "id", id)};
    return row;
}

static int client_line(void *context, size_t number, const char *text) {
    (void)number;
    struct holders *holders = context;
    struct jetson_nvmap_line line;
    int r = jetson_nvmap_parse(text, &line);
    if (r < 0 || line.total) {
        return r == -ENODATA ? 0 : r;
    }
    const char *id = line.pid <= INT32_MAX
                         ? container_homes_see(&holders->homes, holders->procfs, (pid_t)line.pid)
                         : NULL;
    struct holder *holder = id != NULL ? see(holders, id) : NULL;
    if (holder != NULL) {
        holder->bytes = holder->round == holders->round ? holder->bytes + line.bytes : line.bytes;
        holder->round = holders->round;
    }
    return 0;
}

static void sweep(struct holders *holders) {
    size_t kept = 0;
    for (size_t i = 0; i < holders->n_rows; i++) {
        if (holders->rows[i].round == holders->round) {
            holders->rows[kept++] = holders->rows[i];
        } else {
            holder_finish(&holders->rows[i]);
        }
    }
    holders->n_rows = kept;
}

/* -ENOENT where the list cannot be read: without root, or where nvmap is not in use. */
static int update(struct holders *holders, struct buf *scratch, struct error *err) {
    holders->round++;
    container_homes_begin(&holders->homes);
    int r = source_file_read(&holders->clients, scratch, NULL) < 0 ? -ENOENT : 0;
    if (r == 0) {
        r = scan_lines(buf_str(scratch), holders->clients.path, client_line, holders, err);
    }
    sweep(holders);
    return r;
}

static void container_sample(void *state, struct jetson_round *round) {
    struct holders *holders = state;
    if (round->board->nvml) {
        return;
    }
    if (holders->followed && round->now_ns >= holders->next_ns) {
        holders->next_ns = round->now_ns + FOLLOW_NS;
        update(holders, round->scratch, NULL);
    }
    /* The only one that has GPU memory is the one that uses it. */
    if (holders->n_rows == 1) {
        holders->share = (struct energy_share){.id = holders->rows[0].id, .ratio = 1};
        round->gpu_shares = &holders->share;
        round->n_gpu_shares = 1;
    }
}

static int container_collect(void *state, struct jetson_round *round, struct snapshot *out,
                             struct error *err) {
    struct holders *holders = state;
    if (round->board->nvml) {
        return 0;
    }
    int r = update(holders, round->scratch, err);
    for (size_t i = 0; i < holders->n_rows; i++) {
        const struct holder *row = &holders->rows[i];
        snapshot_add(out, &gpu_descs[CONTAINER_GPU_MEMORY], row->labels, row->bytes);
    }
    return r == -ENOENT ? 0 : r;
}

static void container_close(void *state) {
    struct holders *holders = state;
    for (size_t i = 0; i < holders->n_rows; i++) {
        holder_finish(&holders->rows[i]);
    }
    free(holders->rows);
    container_homes_finish(&holders->homes);
    source_file_finish(&holders->clients);
    free(holders);
}

static void *container_open(const struct collector_env *env, const struct jetson_board *board) {
    struct holders *holders = mem_zalloc(1, sizeof(*holders));
    holders->procfs = env->procfs;
    holders->gpu = board->gpu;
    holders->followed = env->energy != NULL;
    source_file_init(&holders->clients, env->sysfs, JETSON_DEBUGFS "nvmap/iovmm/clients", NULL);
    return holders;
}

const struct jetson_part jetson_container_part = {
    .name = "container",
    .open = container_open,
    .sample = container_sample,
    .collect = container_collect,
    .close = container_close,
};
