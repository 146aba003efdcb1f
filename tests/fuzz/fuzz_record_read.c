/* Covers profiler/record/read.c. */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "profiler/record/read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check_line(const struct record *record, const struct record_line *line) {
    assert(line->target != NULL);
    assert((line->kind == RECORD_SAMPLE) == (line->object == NULL));
    assert(line->kind != RECORD_PHASE || line->phase != PHASE_NONE);
    for (size_t i = 0; i < line->n_values; i++) {
        const struct record_series *series = line->values[i].series;
        assert(record->series[series->index] == series);
        assert(strncmp(series->key, series->name, strlen(series->name)) == 0);
    }
}

/* A record; a line that is rejected does not stop the reader. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    int fd CLEANUP_CLOSE = memfd_create("record", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, len) != (ssize_t)len) {
        return 0;
    }
    char path[32];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    struct record *record CLEANUP_RECORD = NULL;
    struct record_line line;
    struct error err = {0};
    int r = record_open(path, &record, &err);
    assert(r == 0);
    while ((r = record_next(record, &line, &err)) != 0) {
        assert(r > 0 || err.text[0] != '\0');
        if (r > 0) {
            check_line(record, &line);
        }
    }
    return 0;
}
