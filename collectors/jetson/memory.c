#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectors/jetson/files.h"
#include "collectors/jetson/part.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/memory.h"

enum memory_file {
    MEMORY_MEMINFO,
    MEMORY_BUDDYINFO,
    MEMORY_NVMAP_TOTAL, /* bytes */
    MEMORY_NVMAP_CLIENTS,
    MEMORY_IRAM_SIZE,
    MEMORY_IRAM_CLIENTS,
    MEMORY_N_FILES,
};

static const struct {
    bool procfs; /* else sysfs */
    const char *name;
} memory_files[MEMORY_N_FILES] = {
    [MEMORY_MEMINFO] = {true, "meminfo"},
    [MEMORY_BUDDYINFO] = {true, "buddyinfo"},
    [MEMORY_NVMAP_TOTAL] = {false, JETSON_DEBUGFS "nvmap/stats/total_memory"},
    [MEMORY_NVMAP_CLIENTS] = {false, JETSON_DEBUGFS "nvmap/iovmm/clients"},
    [MEMORY_IRAM_SIZE] = {false, JETSON_DEBUGFS "nvmap/iram/size"},
    [MEMORY_IRAM_CLIENTS] = {false, JETSON_DEBUGFS "nvmap/iram/clients"},
};

struct memory {
    struct source_file files[MEMORY_N_FILES];
    double page_size;
};

static void add(struct snapshot *out, const struct metric_desc *desc, const struct labels *labels,
                double value) {
    if (!isnan(value)) {
        snapshot_add(out, desc, labels, value);
    }
}

/* The kernel's own figure needs no rights; the others are debugfs. */
static double gpu_memory_used(struct memory *memory, const double *info,
                              const struct jetson_round *round) {
    double bytes;
    struct buf *scratch = round->scratch;
    if (round->board->nvml) {
        return NAN; /* nvmap is not in use: it would read 0 */
    }
    if (!isnan(info[MEMINFO_NVMAP_USED])) {
        return info[MEMINFO_NVMAP_USED];
    }
    if (source_file_number(&memory->files[MEMORY_NVMAP_TOTAL], &bytes, NULL) > 0) {
        return bytes;
    }
    bool read = source_file_read(&memory->files[MEMORY_NVMAP_CLIENTS], scratch, NULL) == 0 &&
                jetson_nvmap_total(buf_str(scratch), &bytes) == 0;
    return read ? bytes : NAN;
}

static void add_meminfo(struct memory *memory, const struct jetson_round *round,
                        struct snapshot *out) {
    double info[MEMINFO_N_FIELDS];
    if (source_file_read(&memory->files[MEMORY_MEMINFO], round->scratch, NULL) < 0) {
        return;
    }
    jetson_meminfo_parse(buf_str(round->scratch), info);
    add(out, &jetson_descs[JETSON_MEMORY_TOTAL], NULL, info[MEMINFO_TOTAL]);
    add(out, &jetson_descs[JETSON_MEMORY_USED], NULL, jetson_meminfo_used(info));
    add(out, &jetson_descs[JETSON_SWAP_TOTAL], NULL, info[MEMINFO_SWAP_TOTAL]);
    add(out, &jetson_descs[JETSON_SWAP_USED], NULL,
        info[MEMINFO_SWAP_TOTAL] - info[MEMINFO_SWAP_FREE]);
    add(out, &jetson_descs[JETSON_SWAP_CACHED], NULL, info[MEMINFO_SWAP_CACHED]);
    add(out, &gpu_descs[GPU_MEMORY_TOTAL], round->board->gpu, info[MEMINFO_TOTAL]);
    add(out, &gpu_descs[GPU_MEMORY_USED], round->board->gpu, gpu_memory_used(memory, info, round));
}

static int add_free_blocks(struct memory *memory, struct buf *scratch, struct snapshot *out,
                           struct error *err) {
    struct jetson_free_blocks blocks;
    struct source_file *file = &memory->files[MEMORY_BUDDYINFO];
    if (source_file_read(file, scratch, NULL) < 0) {
        return 0;
    }
    int r = jetson_buddyinfo_parse(buf_str(scratch), &blocks);
    if (r < 0) {
        return r == -ENODATA ? 0 : error_set(err, r, "%s: not understood", file->path);
    }
    add(out, &jetson_descs[JETSON_FREE_BLOCK_BYTES], NULL,
        ldexp(memory->page_size, (int)blocks.order));
    add(out, &jetson_descs[JETSON_FREE_BLOCKS], NULL, (double)blocks.n_blocks);
    return 0;
}

static void add_iram(struct memory *memory, struct buf *scratch, struct snapshot *out) {
    double bytes;
    if (source_file_read(&memory->files[MEMORY_IRAM_SIZE], scratch, NULL) == 0 &&
        jetson_iram_parse(buf_str(scratch), &bytes) == 0) {
        add(out, &jetson_descs[JETSON_IRAM_TOTAL], NULL, bytes);
    }
    if (source_file_read(&memory->files[MEMORY_IRAM_CLIENTS], scratch, NULL) == 0 &&
        jetson_nvmap_total(buf_str(scratch), &bytes) == 0) {
        add(out, &jetson_descs[JETSON_IRAM_USED], NULL, bytes);
    }
}

static int memory_collect(void *state, struct jetson_round *round, struct snapshot *out,
                          struct error *err) {
    struct memory *memory = state;
    add_meminfo(memory, round, out);
    add_iram(memory, round->scratch, out);
    return add_free_blocks(memory, round->scratch, out, err);
}

static void memory_close(void *state) {
    struct memory *memory = state;
    for (size_t i = 0; i < MEMORY_N_FILES; i++) {
        source_file_finish(&memory->files[i]);
    }
}

static void memory_open(void *state, const struct collector_env *env,
                        const struct jetson_board *board) {
    (void)board;
    struct memory *memory = state;
    memory->page_size = (double)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < MEMORY_N_FILES; i++) {
        const char *base = memory_files[i].procfs ? env->procfs : env->sysfs;
        source_file_init(&memory->files[i], base, memory_files[i].name, NULL);
    }
}

const struct jetson_part jetson_memory_part = {
    .state_size = sizeof(struct memory),
    .open = memory_open,
    .collect = memory_collect,
    .close = memory_close,
};
