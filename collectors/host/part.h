#pragma once

#include "collectors/collector.h"
#include "exporter/core/buf.h"
#include "exporter/core/scan.h"

/* One topic of the `host` collector: its row of HOST_PARTS, host_<topic>_part and
 * host_<topic>_metrics. A part that fails does not keep the others from collecting. A source that
 * this machine lacks is no failure: the part adds nothing. What a part does not need is NULL. */
struct host_part {
    size_t state_size; /* of the part's struct, zeroed before `open` */

    /* Files below procfs, NULL-terminated. Each line that is not empty goes to `line`, whose
     * context is a struct host_reading. "1/…" is what the host's first process sees; where that
     * cannot be read, it is what we see. */
    const char *const *files;
    scan_line *line;

    void (*open)(void *state, const struct collector_env *env);

    /* After the lines, if one of the files was read. `scratch` is for the text of other files. */
    int (*collect)(void *state, struct buf *scratch, struct snapshot *out, struct error *err);

    void (*close)(void *state); /* frees what the struct holds */
};

struct host_reading {
    void *state;
    size_t file; /* of `files`: the one that the line is of */
    struct snapshot *out;
};

/* All parts, sorted. */
#define HOST_PARTS(PART)                                                                           \
    PART(character)                                                                                \
    PART(cpu)                                                                                      \
    PART(disk)                                                                                     \
    PART(filesystem)                                                                               \
    PART(load)                                                                                     \
    PART(memory)                                                                                   \
    PART(network)                                                                                  \
    PART(pressure)                                                                                 \
    PART(system)                                                                                   \
    PART(thermal)

/* What a part may emit is ended by a nameless row. */
#define HOST_PART_DECLARE(name)                                                                    \
    extern const struct host_part host_##name##_part;                                              \
    extern const struct metric_desc host_##name##_metrics[];
HOST_PARTS(HOST_PART_DECLARE)
