#include "collectors/jetson_memory.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectors/jetson_nvmap.h"
#include "collectors/jetson_part.h"
#include "collectors/meminfo.h"
#include "collectors/scan.h"
#include "exporter/core/cleanup.h"

enum { BUDDY_MAX_ORDERS = 32 };

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

static const char *const meminfo_keys[MEMINFO_N_FIELDS] = {
    [MEMINFO_BUFFERS] = "Buffers",        [MEMINFO_CACHED] = "Cached",
    [MEMINFO_FREE] = "MemFree",           [MEMINFO_NVMAP_USED] = "NvMapMemUsed",
    [MEMINFO_SWAP_CACHED] = "SwapCached", [MEMINFO_SWAP_FREE] = "SwapFree",
    [MEMINFO_SWAP_TOTAL] = "SwapTotal",   [MEMINFO_TOTAL] = "MemTotal",
};

static int take_line(void *context, size_t number, const char *text) {
    (void)number;
    double *bytes = context;
    struct meminfo_line line;
    if (meminfo_parse(text, &line) < 0) {
        return 0;
    }
    for (size_t i = 0; i < MEMINFO_N_FIELDS; i++) {
        if (scan_word_equal(line.key, meminfo_keys[i])) {
            bytes[i] = (double)line.value * 1024;
        }
    }
    return 0;
}

void jetson_meminfo_parse(const char *text, double ret_bytes[static MEMINFO_N_FIELDS]) {
    for (size_t i = 0; i < MEMINFO_N_FIELDS; i++) {
        ret_bytes[i] = NAN;
    }
    scan_lines(text, "", take_line, ret_bytes, NULL);
}

static int buddy_line(void *context, size_t number, const char *line) {
    (void)number;
    uint64_t *counts = context;
    uint64_t row[BUDDY_MAX_ORDERS];
    struct scan_word word;
    for (int i = 0; i < 4; i++) { /* "Node 0, zone Normal" */
        if (!scan_word(&line, &word)) {
            return -EINVAL;
        }
    }
    int n = scan_numbers(&line, row, BUDDY_MAX_ORDERS);
    for (int i = 0; i < n; i++) {
        counts[i] += row[i];
    }
    return n > 0 ? 0 : -EINVAL;
}

int jetson_buddyinfo_parse(const char *text, struct jetson_free_blocks *ret_blocks) {
    uint64_t counts[BUDDY_MAX_ORDERS] = {0};
    int r = scan_lines(text, "buddyinfo", buddy_line, counts, NULL);
    for (unsigned order = BUDDY_MAX_ORDERS; r == 0 && order-- > 0;) {
        if (counts[order] > 0) {
            *ret_blocks = (struct jetson_free_blocks){.order = order, .n_blocks = counts[order]};
            return 0;
        }
    }
    return r < 0 ? r : -ENODATA;
}

int jetson_iram_parse(const char *text, double *ret_bytes) {
    struct scan_word word;
    if (!scan_word(&text, &word) || word.len < 3 || word.len > 18 || word.text[0] != '0' ||
        word.text[1] != 'x') {
        return -EINVAL;
    }
    uint64_t value = 0;
    for (size_t i = 2; i < word.len; i++) {
        static const char digits[] = "0123456789abcdef";
        const char *digit = memchr(digits, word.text[i] | 0x20, strlen(digits));
        if (digit == NULL) {
            return -EINVAL;
        }
        value = value * 16 + (uint64_t)(digit - digits);
    }
    *ret_bytes = (double)value;
    return 0;
}

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
        return NAN; /* nvmap is not in use: it would tell 0 */
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
    double not_free = info[MEMINFO_TOTAL] - info[MEMINFO_FREE];
    add(out, &jetson_descs[JETSON_MEMORY_TOTAL], NULL, info[MEMINFO_TOTAL]);
    add(out, &jetson_descs[JETSON_MEMORY_USED], NULL,
        not_free - info[MEMINFO_BUFFERS] - info[MEMINFO_CACHED]);
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
    for (size_t i = 0; memory != NULL && i < MEMORY_N_FILES; i++) {
        source_file_finish(&memory->files[i]);
    }
    free(memory);
}

static int memory_open(const struct collector_env *env, const struct jetson_board *board,
                       void **ret_state, struct error *err) {
    (void)board;
    struct memory *memory = calloc(1, sizeof(*memory));
    if (memory == NULL) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    memory->page_size = (double)sysconf(_SC_PAGESIZE);
    int r = 0;
    for (size_t i = 0; i < MEMORY_N_FILES && r == 0; i++) {
        const char *base = memory_files[i].procfs ? env->procfs : env->sysfs;
        r = source_file_init(&memory->files[i], base, memory_files[i].name, NULL, err);
    }
    if (r < 0) {
        memory_close(memory);
        return r;
    }
    *ret_state = memory;
    return 0;
}

const struct jetson_part jetson_memory_part = {
    .name = "memory",
    .open = memory_open,
    .collect = memory_collect,
    .close = memory_close,
};
