#include "collectors/textfile/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "exporter/core/clock.h"
#include "exporter/core/file.h"
#include "exporter/core/memory.h"

/* Time stamps of files have a granularity of up to two seconds: a file modified that recently may
 * change again without getting another stamp. */
enum { SETTLE_SECONDS = 3 };

/* Room to notice the end of the file without another allocation. */
enum { READ_SLACK = 8192 };

static void drop_families(struct textfile_file *file) {
    free(file->families);
    free(file->samples);
    buf_finish(&file->block);
    file->families = NULL;
    file->samples = NULL;
    file->n_families = 0;
}

void textfile_file_finish(void *row) {
    struct textfile_file *file = row;
    drop_families(file);
    free(file->problem);
    labels_destroy(file->labels);
}

/* While the block grows, pointers into it are offsets plus one, so that NULL stays NULL. */
static void *offset_pointer(size_t offset) {
    return (void *)(uintptr_t)(offset + 1);
}

static void *resolve(const struct buf *block, const void *pointer) {
    return pointer != NULL ? block->data + (uintptr_t)pointer - 1 : NULL;
}

static const char *add_string(struct buf *block, const char *text) {
    if (text == NULL) {
        return NULL;
    }
    size_t offset = block->len;
    buf_add(block, text, strlen(text) + 1);
    return offset_pointer(offset);
}

/* Takes the families that have samples; `starts[i]` becomes the index of the first sample of the
 * document's family i, so that the samples of a family are adjacent. */
static void take_families(struct textfile_file *file, const struct exposition_doc *doc,
                          size_t *starts) {
    size_t start = 0;
    for (size_t i = 0; i < doc->n_families; i++) {
        const struct exposition_family *family = &doc->families[i];
        starts[i] = start;
        start += family->n_samples;
        if (family->n_samples == 0) {
            continue;
        }
        file->families[file->n_families++] = (struct textfile_family){
            .desc =
                {
                    .name = add_string(&file->block, family->desc.name),
                    .help = add_string(&file->block, family->desc.help),
                    .type = family->desc.type,
                },
            .samples = file->samples + starts[i],
            .n_samples = family->n_samples,
        };
    }
}

static void take_samples(struct textfile_file *file, const struct exposition_doc *doc,
                         size_t *starts) {
    for (size_t i = 0; i < doc->n_samples; i++) {
        const struct exposition_sample *sample = &doc->samples[i];
        const struct label *labels = exposition_doc_labels(doc, sample);
        file->samples[starts[sample->family]++] = (struct sample){
            .labels = sample->n_labels > 0
                          ? offset_pointer(labels_append(&file->block, labels, sample->n_labels))
                          : NULL,
            .suffix = sample->suffix,
            .value = sample->value,
        };
    }
}

static void settle(struct textfile_file *file, size_t n_samples) {
    struct buf *block = &file->block;
    block->data = mem_resize(block->data, block->len + 1, 1);
    block->cap = block->len + 1;
    for (size_t i = 0; i < file->n_families; i++) {
        struct metric_desc *desc = &file->families[i].desc;
        desc->name = resolve(block, desc->name);
        desc->help = resolve(block, desc->help);
    }
    for (size_t i = 0; i < n_samples; i++) {
        file->samples[i].labels = resolve(block, file->samples[i].labels);
    }
}

static void take_doc(struct textfile_file *file, const struct exposition_doc *doc) {
    size_t *starts CLEANUP_FREE = mem_zalloc(doc->n_families + 1, sizeof(*starts));
    file->families = mem_zalloc(doc->n_families + 1, sizeof(*file->families));
    file->samples = mem_zalloc(doc->n_samples + 1, sizeof(*file->samples));
    take_families(file, doc, starts);
    take_samples(file, doc, starts);
    settle(file, doc->n_samples);
}

static int check_stat(const struct textfile_file *file, const struct stat *st,
                      const struct textfile_limits *limits, struct error *err) {
    if (!S_ISREG(st->st_mode)) {
        return error_set(err, -EINVAL, "%s: not a regular file", file->row.key);
    }
    if ((uint64_t)st->st_size > limits->max_bytes) {
        return error_set(err, -EFBIG, "%s: larger than %zu bytes", file->row.key,
                         limits->max_bytes);
    }
    if ((uint64_t)st->st_size > limits->left_bytes) {
        return error_set(err, -EFBIG, "%s: with it, the text files are larger than %zu bytes",
                         file->row.key, limits->max_total_bytes);
    }
    return 0;
}

static struct textfile_stamp stamp_of(const struct stat *st) {
    return (struct textfile_stamp){
        .dev = st->st_dev,
        .ino = st->st_ino,
        .size = st->st_size,
        .mtime = st->st_mtim,
        .ctime = st->st_ctim,
    };
}

static bool same_time(struct timespec a, struct timespec b) {
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool same_stamp(const struct textfile_stamp *a, const struct textfile_stamp *b) {
    return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
           same_time(a->mtime, b->mtime) && same_time(a->ctime, b->ctime);
}

static bool is_settled(const struct stat *st) {
    double age = clock_wall_seconds() - (double)st->st_ctim.tv_sec;
    return age > SETTLE_SECONDS || age < -SETTLE_SECONDS;
}

/* The stamp is taken before reading: a file that changes meanwhile is read again, and so is one
 * that could not be read. */
static int load(struct textfile_file *file, const struct textfile_limits *limits,
                struct error *err) {
    /* A pipe may have replaced the file since stat: do not wait for its other end. */
    int fd CLEANUP_CLOSE = open(file->row.key, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0) {
        return error_set(err, -errno, "open %s: %m", file->row.key);
    }
    size_t max_bytes =
        limits->left_bytes < limits->max_bytes ? limits->left_bytes : limits->max_bytes;
    struct buf text CLEANUP_BUF = {0};
    int r = check_stat(file, &st, limits, err);
    if (r == 0) {
        buf_reserve(&text, (size_t)st.st_size + READ_SLACK);
        r = file_reread(fd, file->row.key, max_bytes, &text, err);
    }
    if (r < 0) {
        return r;
    }
    file->stamp = stamp_of(&st);
    file->trusted = is_settled(&st);
    struct exposition_doc doc CLEANUP_EXPOSITION_DOC = {0};
    struct error reason;
    r = exposition_parse(text.data, text.len, &limits->page, &doc, &reason);
    if (r < 0) {
        return error_set(err, r, "%s: %s", file->row.key, reason.text);
    }
    take_doc(file, &doc);
    return 0;
}

/* Whether the path does not exist; a dangling link does. */
static bool is_gone(const char *path) {
    struct stat st;
    return lstat(path, &st) < 0 && errno == ENOENT;
}

int textfile_file_refresh(struct textfile_file *file, const struct textfile_limits *limits,
                          bool *changed) {
    struct stat st;
    struct error err = {0};
    int r = 0;
    if (stat(file->row.key, &st) < 0) {
        r = error_set(&err, -errno, "stat %s: %m", file->row.key);
    }
    if (r == -ENOENT && is_gone(file->row.key)) {
        return -ENOENT;
    }
    if (r == 0) {
        struct textfile_stamp stamp = stamp_of(&st);
        r = check_stat(file, &st, limits, &err);
        if (r == 0 && file->trusted && same_stamp(&stamp, &file->stamp)) {
            return 0;
        }
    }
    *changed = *changed || file->n_families > 0;
    file->trusted = false;
    drop_families(file);
    free(TAKE(file->problem));
    r = r < 0 ? r : load(file, limits, &err);
    if (r < 0) {
        file->problem = mem_strdup(err.text);
    }
    *changed = *changed || file->n_families > 0;
    return 0;
}
