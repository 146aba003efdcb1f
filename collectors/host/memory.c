#include "collectors/host/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/host/part.h"
#include "collectors/source/procfs.h"
#include "collectors/source/source_file.h"
#include "exporter/core/cleanup.h"

/* One field of meminfo as seen at run time, with what it is called here. */
struct memory_row {
    char *key;
    size_t key_len;
    bool kilobytes;
    const struct metric_desc *metric; /* of host_memory_metrics, or &own */
    struct metric_desc own;           /* of a field that this build has not heard of */
    char *own_name;
    char *own_help;
};

struct memory {
    struct source_file file;
    struct memory_row **rows; /* each on its own: snapshots point to `own` */
    size_t n_rows;
    size_t cap_rows;
    size_t next; /* where the next field is expected */
    struct snapshot *out;
};

enum { MEMORY_MIN_ROWS = 64 };

void host_memory_name(struct buf *out, struct scan_word key, bool kilobytes) {
    buf_add_str(out, "node_memory_");
    for (size_t i = 0; i < key.len; i++) {
        char c = key.text[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (c != ')') {
            buf_add_char(out, plain ? c : '_');
        }
    }
    buf_add_str(out, kilobytes ? "_bytes" : "");
}

static void row_destroy(struct memory_row *row) {
    if (row != NULL) {
        free(row->key);
        free(row->own_name);
        free(row->own_help);
    }
    free(row);
}

static void row_cleanup(struct memory_row **row) {
    row_destroy(*row);
}

static const struct metric_desc *known(const char *name) {
    for (size_t i = 0; i < ARRAY_LEN(host_memory_metrics); i++) {
        if (strcmp(host_memory_metrics[i].name, name) == 0) {
            return &host_memory_metrics[i];
        }
    }
    return NULL;
}

static struct memory_row *row_create(const struct meminfo_line *line) {
    struct memory_row *row CLEANUP(row_cleanup) = calloc(1, sizeof(*row));
    struct buf name CLEANUP_BUF = {0};
    struct buf help CLEANUP_BUF = {0};
    host_memory_name(&name, line->key, line->kilobytes);
    buf_printf(&help, "The field %.*s of /proc/meminfo.", (int)line->key.len, line->key.text);
    if (row == NULL || name.failed || help.failed) {
        return NULL;
    }
    row->key = strndup(line->key.text, line->key.len);
    row->key_len = line->key.len;
    row->kilobytes = line->kilobytes;
    row->metric = known(buf_str(&name));
    if (row->metric == NULL) {
        row->own_name = buf_take(&name);
        row->own_help = buf_take(&help);
        row->own = (struct metric_desc){
            .name = row->own_name,
            .help = row->own_help,
            .type = METRIC_GAUGE,
            .unit = line->kilobytes ? "bytes" : NULL,
        };
        row->metric = &row->own;
    }
    return row->key != NULL ? TAKE(row) : NULL;
}

static struct memory_row *find_row(struct memory *memory, const struct meminfo_line *line) {
    for (size_t i = 0; i < memory->n_rows; i++) {
        size_t at = (memory->next + i) % memory->n_rows;
        struct memory_row *row = memory->rows[at];
        if (row->key_len == line->key.len && row->kilobytes == line->kilobytes &&
            memcmp(row->key, line->key.text, line->key.len) == 0) {
            memory->next = at + 1;
            return row;
        }
    }
    return NULL;
}

static struct memory_row *add_row(struct memory *memory, const struct meminfo_line *line) {
    if (memory->n_rows == memory->cap_rows) {
        size_t cap = memory->cap_rows == 0 ? MEMORY_MIN_ROWS : 2 * memory->cap_rows;
        struct memory_row **rows = realloc(memory->rows, cap * sizeof(*rows));
        if (rows == NULL) {
            return NULL;
        }
        memory->rows = rows;
        memory->cap_rows = cap;
    }
    struct memory_row *row = row_create(line);
    if (row != NULL) {
        memory->rows[memory->n_rows++] = row;
        memory->next = memory->n_rows;
    }
    return row;
}

static int memory_line(void *context, size_t number, const char *text) {
    (void)number;
    struct memory *memory = context;
    struct meminfo_line line;
    int r = meminfo_parse(text, &line);
    if (r < 0) {
        return r;
    }
    struct memory_row *row = find_row(memory, &line);
    if (row == NULL) {
        row = add_row(memory, &line);
    }
    if (row == NULL) {
        return -ENOMEM;
    }
    double value = (double)line.value;
    snapshot_add(memory->out, row->metric, NULL, line.kilobytes ? value * 1024 : value);
    return 0;
}

static int memory_collect(void *state, struct buf *scratch, struct snapshot *out,
                          struct error *err) {
    struct memory *memory = state;
    int r = source_file_read(&memory->file, scratch, err);
    if (r < 0) {
        return source_file_absent(r) ? 0 : r;
    }
    memory->next = 0;
    memory->out = out;
    return scan_lines(buf_str(scratch), memory->file.path, memory_line, memory, err);
}

static void memory_close(void *state) {
    struct memory *memory = state;
    if (memory != NULL) {
        for (size_t i = 0; i < memory->n_rows; i++) {
            row_destroy(memory->rows[i]);
        }
        free(memory->rows);
        source_file_finish(&memory->file);
    }
    free(memory);
}

static int memory_open(const struct collector_env *env, void **ret_state, struct error *err) {
    struct memory *memory = calloc(1, sizeof(*memory));
    if (memory == NULL) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    int r = source_file_init(&memory->file, env->procfs, "meminfo", NULL, err);
    if (r < 0) {
        memory_close(memory);
        return r;
    }
    *ret_state = memory;
    return 0;
}

const struct host_part host_memory_part = {
    .name = "memory",
    .open = memory_open,
    .collect = memory_collect,
    .close = memory_close,
};
