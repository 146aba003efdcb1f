#include "profiler/record/read.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "exporter/core/memory.h"

struct record {
    char *path;
    FILE *file;
    struct record_parser parser;
    char *text; /* unread text is from `start` to `end` */
    size_t start, end, cap;
    size_t line; /* of the last line taken */
    bool torn;
};

enum { BLOCK = 64 * 1024 };

static const char app[] = "app.";

bool record_key_is_app(const char *key) {
    return strncmp(key, app, strlen(app)) == 0;
}

const char *record_short_key(const char *key) {
    return key + (record_key_is_app(key) ? strlen(app) : 0);
}

int record_open(const char *path, struct record **ret_record, struct error *err) {
    struct record *record CLEANUP_RECORD = mem_zalloc(1, sizeof(*record));
    record->path = mem_strdup(path);
    record->file = fopen(path, "re");
    if (record->file == NULL) {
        return error_set(err, -errno, "open %s: %m", path);
    }
    *ret_record = TAKE(record);
    return 0;
}

/* Reads another block; 1, or 0 at the end of the file. */
static int fill(struct record *record, struct error *err) {
    if (record->start > 0) {
        memmove(record->text, record->text + record->start, record->end - record->start);
        record->end -= record->start;
        record->start = 0;
    }
    if (record->end > RECORD_MAX_LINE) {
        return error_set(err, -EFBIG, "%s:%zu: a line of more than %d bytes", record->path,
                         record->line + 1, RECORD_MAX_LINE);
    }
    ARRAY_GROW(&record->text, &record->cap, record->end + BLOCK);
    size_t n = fread(record->text + record->end, 1, BLOCK, record->file);
    if (n == 0 && ferror(record->file)) {
        return error_set(err, -EIO, "read %s: %m", record->path);
    }
    record->end += n;
    return n > 0;
}

/* Takes the next line without its newline; 1, or 0 at the end. */
static int take_line(struct record *record, char **ret_text, size_t *ret_len, struct error *err) {
    size_t searched = 0;
    for (;;) {
        size_t left = record->end - record->start;
        char *from = left > 0 ? record->text + record->start : NULL;
        char *newline = left > searched ? memchr(from + searched, '\n', left - searched) : NULL;
        if (newline != NULL) {
            *ret_text = from;
            *ret_len = (size_t)(newline - from);
            record->start += *ret_len + 1;
            record->line++;
            return 1;
        }
        searched = left;
        int r = fill(record, err);
        if (r <= 0) {
            record->torn = r == 0 && left > 0;
            return r;
        }
    }
}

/* Each line is parsed by itself, so its errors name "line 1". */
static const char *without_line(const char *fault) {
    static const char line[] = "line 1, ";
    return strncmp(fault, line, strlen(line)) == 0 ? fault + strlen(line) : fault;
}

int record_next(struct record *record, struct record_line *ret_line, struct error *err) {
    char *text;
    size_t len;
    int r = take_line(record, &text, &len, err);
    if (r <= 0) {
        return r;
    }
    struct error fault = {0};
    r = record_parse(&record->parser, text, len, ret_line, &fault);
    if (r < 0) {
        error_set(err, r, "%s:%zu: %s", record->path, record->line, without_line(fault.text));
        return r;
    }
    return 1;
}

bool record_is_torn(const struct record *record) {
    return record->torn;
}

size_t record_n_series(const struct record *record) {
    return record->parser.n_series;
}

const struct record_series *record_series_at(const struct record *record, size_t index) {
    return record->parser.series[index];
}

void record_close(struct record *record) {
    if (record == NULL) {
        return;
    }
    if (record->file != NULL) {
        fclose(record->file);
    }
    record_parser_finish(&record->parser);
    free(record->text);
    free(record->path);
    free(record);
}
