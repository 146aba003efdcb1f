#include "profiler/run/record.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "exporter/core/clock.h"

/* The longest line that readers accept, less the bytes that end it. */
enum { MAX_SAMPLE = RECORD_MAX_LINE - 64 };

int run_record_open(struct run_record *record, const char *path, struct error *err) {
    int fd CLEANUP_CLOSE = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0) {
        return error_set(err, -errno, "open %s: %m", path);
    }
    /* Held until we exit; a file system without locks is accepted. */
    if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
        return error_set(err, -EBUSY, "%s: another waap run is writing it", path);
    }
    if (ftruncate(fd, 0) < 0 && errno != EINVAL) { /* for a device */
        return error_set(err, -errno, "empty %s: %m", path);
    }
    *record =
        (struct run_record){.fd = TAKE_FD(fd), .began_ns = clock_monotonic_ns(), .target = ""};
    return 0;
}

void run_record_close(struct run_record *record) {
    if (record->began_ns == 0) {
        return;
    }
    close(record->fd);
    buf_finish(&record->line);
    buf_finish(&record->declared);
    hash_index_finish(&record->keys);
    arena_finish(&record->arena);
    *record = (struct run_record){0};
}

double run_record_seconds(const struct run_record *record, int64_t now_ns) {
    return (double)(now_ns - record->began_ns) / 1e9;
}

/* A partial write is undone: readers accept an incomplete line only at the end of the file. */
static int write_all(struct run_record *record, const struct buf *text) {
    for (size_t done = 0; done < text->len;) {
        ssize_t n = write(record->fd, text->data + done, text->len - done);
        if (n < 0 && errno != EINTR) {
            bool first = record->error.text[0] == '\0';
            int r = error_set(first ? &record->error : NULL, -errno, "write the record: %m");
            if (ftruncate(record->fd, record->n_bytes) < 0) {
                return r; /* a device */
            }
            return r;
        }
        done += n > 0 ? (size_t)n : 0;
    }
    record->n_bytes += (off_t)text->len;
    return 0;
}

/* ---- lines ---- */

void run_record_begin(struct run_record *record, const char *kind) {
    buf_reset(&record->line);
    json_open(&record->line, NULL, '{');
    run_record_text(record, "kind", kind);
}

void run_record_text(struct run_record *record, const char *key, const char *text) {
    if (text != NULL) {
        json_put_string(&record->line, key, text);
    }
}

void run_record_number(struct run_record *record, const char *key, double number) {
    if (!isnan(number)) {
        json_put_number(&record->line, key, number);
    }
}

void run_record_moment(struct run_record *record, int64_t now_ns) {
    double ago = (double)(clock_monotonic_ns() - now_ns) / 1e9;
    run_record_text(record, "target", record->target);
    run_record_number(record, "run", record->run);
    run_record_number(record, "t", run_record_seconds(record, now_ns));
    run_record_number(record, "at", clock_wall_seconds() - ago);
}

int run_record_end(struct run_record *record) {
    buf_add_str(&record->line, "}\n");
    return write_all(record, &record->line);
}

int run_record_phase(struct run_record *record, const char *phase) {
    run_record_begin(record, "phase");
    run_record_text(record, "phase", phase);
    run_record_moment(record, clock_monotonic_ns());
    return run_record_end(record);
}

/* ---- samples ---- */

void run_record_begin_sample(struct run_record *record, int64_t now_ns) {
    buf_reset(&record->declared);
    run_record_begin(record, "sample");
    run_record_moment(record, now_ns);
    json_open(&record->line, "values", '{');
}

bool run_record_declare(struct run_record *record, const struct run_series *series) {
    size_t len = strlen(series->key);
    uint32_t hash = hash_bytes(series->key, len);
    size_t cursor = 0;
    const char *known;
    while ((known = hash_index_next(&record->keys, hash, &cursor)) != NULL) {
        if (strcmp(known, series->key) == 0) {
            return true;
        }
    }
    if (record->keys.n_items == RECORD_MAX_SERIES) {
        return false;
    }
    hash_index_add(&record->keys, hash, arena_copy(&record->arena, series->key, len + 1));
    struct buf *out = &record->declared;
    json_open(out, NULL, '{');
    json_put_string(out, "kind", "series");
    json_put_string(out, "key", series->key);
    json_put_string(out, "type", record_types[series->type]);
    json_put_string(out, "unit", series->unit);
    json_put_string(out, "help", series->help);
    buf_add_str(out, "}\n");
    return true;
}

void run_record_value(struct run_record *record, const struct run_series *series, double value) {
    size_t len = record->line.len;
    if (isnan(value)) {
        return;
    }
    bool declared = run_record_declare(record, series);
    if (declared) {
        run_record_number(record, series->key, value);
    }
    if (!declared || record->line.len > MAX_SAMPLE) {
        buf_truncate(&record->line, len);
        record->left_out = true;
    }
}

int run_record_end_sample(struct run_record *record) {
    if (record->line.len > 0 && record->line.data[record->line.len - 1] == '{') {
        return 0; /* no probe has returned a value */
    }
    json_close(&record->line, '}');
    buf_add_str(&record->line, "}\n");
    if (record->declared.len == 0) {
        return write_all(record, &record->line);
    }
    buf_add(&record->declared, record->line.data, record->line.len);
    return write_all(record, &record->declared);
}
