#include "profiler/run/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "exporter/core/file.h"
#include "exporter/core/memory.h"
#include "profiler/record/read.h"

int run_output_make(const char *dir, struct error *err) {
    char *path CLEANUP_FREE = mem_strdup(dir);
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0755);
        *slash = '/';
    }
    return mkdir(path, 0755) == 0 || errno == EEXIST ? 0
                                                     : error_set(err, -errno, "make %s: %m", dir);
}

/* Yields when the first measured phase began and returns 1, or 0 if there is none. */
static int first_run(const char *path, double *ret_at, struct error *err) {
    struct record *record CLEANUP_RECORD = NULL;
    struct record_line line;
    int r = record_open(path, &record, err);
    while (r >= 0 && (r = record_next(record, &line, err)) > 0) {
        if (line.kind == RECORD_PHASE && line.phase == PHASE_RUN) {
            *ret_at = line.at;
            return 1;
        }
    }
    return r;
}

#define REMEDY "give another --out, or --force to replace it"

int run_output_check(const char *dir, struct error *err) {
    char *record CLEANUP_FREE = file_path_join(dir, "samples.jsonl");
    char *summary CLEANUP_FREE = file_path_join(dir, "summary.json");
    struct error why;
    double at = 0;
    int r = first_run(record, &at, &why);
    if (r == -ENOENT && access(summary, F_OK) == 0) {
        return error_set(err, -EEXIST, "%s has the summary of a run: " REMEDY, dir);
    }
    if (r == 0 || r == -ENOENT || r == -ENOTDIR) {
        return 0;
    }
    if (r < 0) {
        return error_set(err, -EEXIST, "%s: " REMEDY, why.text);
    }
    char when[32];
    time_t seconds = (time_t)at;
    struct tm local;
    localtime_r(&seconds, &local);
    strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &local);
    return error_set(err, -EEXIST, "%s has the record of a run of %s: " REMEDY, dir, when);
}

void run_output_add_name(struct buf *out, const char *text) {
    enum { MAX_LEN = 200 }; /* file systems allow 255 */
    for (size_t i = 0; i < MAX_LEN && text[i] != '\0'; i++) {
        buf_add_char(out, text[i] == '/' ? '_' : text[i]);
    }
}

int run_output_open(const char *dir, const char *name, struct error *err) {
    struct buf path CLEANUP_BUF = {0};
    buf_printf(&path, "%s/output", dir);
    int r = run_output_make(buf_str(&path), err);
    if (r < 0) {
        return r;
    }
    buf_printf(&path, "/%s.log", name);
    int fd = open(buf_str(&path), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
    return fd >= 0 ? fd : error_set(err, -errno, "open %s: %m", buf_str(&path));
}

char *run_output_resolve(const char *base, const char *path, struct error *err) {
    char *joined CLEANUP_FREE =
        path[0] == '/' || base == NULL ? mem_strdup(path) : file_path_join(base, path);
    char *resolved = realpath(joined, NULL);
    if (resolved == NULL) {
        error_set(err, -errno, "%s: %m", joined);
    }
    return resolved;
}
