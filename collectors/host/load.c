#include "collectors/host/parse.h"

#include <errno.h>
#include <stdlib.h>

#include "collectors/host/part.h"
#include "collectors/source/source_file.h"
#include "exporter/core/memory.h"
#include "exporter/core/number.h"
#include "exporter/core/scan.h"

const struct metric_desc host_load_metrics[] = {
    {"node_load1", "Mean number of running or blocked processes over one minute.", METRIC_GAUGE},
    {"node_load5", "Mean number of running or blocked processes over five minutes.", METRIC_GAUGE},
    {"node_load15", "Mean number of running or blocked processes over fifteen minutes.",
     METRIC_GAUGE},
    {0},
};

struct load {
    struct source_file file;
    struct snapshot *out;
};

int host_load_parse(const char *text, double ret_loads[static HOST_LOAD_FIELDS]) {
    double loads[HOST_LOAD_FIELDS];
    for (size_t i = 0; i < HOST_LOAD_FIELDS; i++) {
        struct scan_word word;
        if (!scan_word(&text, &word) || number_parse(word.text, word.len, &loads[i]) < 0) {
            return -EINVAL;
        }
    }
    for (size_t i = 0; i < HOST_LOAD_FIELDS; i++) {
        ret_loads[i] = loads[i];
    }
    return 0;
}

static int load_line(void *context, size_t number, const char *line) {
    struct load *load = context;
    double loads[HOST_LOAD_FIELDS];
    int r = number == 1 ? host_load_parse(line, loads) : -EINVAL;
    for (size_t i = 0; r == 0 && i < HOST_LOAD_FIELDS; i++) {
        snapshot_add(load->out, &host_load_metrics[i], NULL, loads[i]);
    }
    return r;
}

static int load_collect(void *state, struct buf *scratch, struct snapshot *out, struct error *err) {
    struct load *load = state;
    int r = source_file_read(&load->file, scratch, err);
    if (r < 0) {
        return source_file_absent(r) ? 0 : r;
    }
    load->out = out;
    return scan_lines(buf_str(scratch), load->file.path, load_line, load, err);
}

static void load_close(void *state) {
    struct load *load = state;
    source_file_finish(&load->file);
    free(load);
}

static void *load_open(const struct collector_env *env) {
    struct load *load = mem_zalloc(1, sizeof(*load));
    source_file_init(&load->file, env->procfs, "loadavg", NULL);
    return load;
}

const struct host_part host_load_part = {
    .name = "load",
    .open = load_open,
    .collect = load_collect,
    .close = load_close,
};
