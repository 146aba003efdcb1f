#include "exporter/push/files.h"

#include <errno.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "exporter/core/file.h"
#include "exporter/core/memory.h"
#include "exporter/push/table.h"

/* ---- the state file ---- */

enum { STATE_VERSION = 1 };

#define STATE_BYTE_ORDER UINT32_C(0x01020304)

static const char magic[8] = "waapstat";

/* The checks of the pages follow, then the pages, each part at the start of a page. */
struct header {
    char magic[8];
    uint32_t version;
    uint32_t byte_order;
    uint64_t n_pages;
    uint32_t checks_check;
    uint32_t header_check; /* of all before it */
};

static size_t round_up(size_t len) {
    return (len + PUSH_PAGE_SIZE - 1) & ~(size_t)(PUSH_PAGE_SIZE - 1);
}

static void add_padding(struct buf *out, size_t begin) {
    static const char zeroes[PUSH_PAGE_SIZE];
    size_t len = out->len - begin;
    buf_add(out, zeroes, round_up(len) - len);
}

static uint32_t header_check(const struct header *header) {
    return libdeflate_crc32(0, header, offsetof(struct header, header_check));
}

static uint32_t page_check(const void *pages, size_t number) {
    return libdeflate_crc32(0, (const char *)pages + number * PUSH_PAGE_SIZE, PUSH_PAGE_SIZE);
}

void push_state_encode(const void *pages, size_t len, struct buf *out) {
    struct buf padded CLEANUP_BUF = {0};
    buf_add(&padded, pages, len);
    add_padding(&padded, 0);
    struct buf checks CLEANUP_BUF = {0};
    for (size_t i = 0; i < padded.len / PUSH_PAGE_SIZE; i++) {
        uint32_t check = page_check(padded.data, i);
        buf_add(&checks, &check, sizeof(check));
    }
    struct header header = {
        .version = STATE_VERSION,
        .byte_order = STATE_BYTE_ORDER,
        .n_pages = padded.len / PUSH_PAGE_SIZE,
        .checks_check = libdeflate_crc32(0, buf_str(&checks), checks.len),
    };
    memcpy(header.magic, magic, sizeof(magic));
    header.header_check = header_check(&header);
    size_t begin = out->len;
    buf_add(out, &header, sizeof(header));
    add_padding(out, begin);
    buf_add(out, buf_str(&checks), checks.len);
    add_padding(out, begin);
    buf_add(out, buf_str(&padded), padded.len);
}

static int check_header(const void *data, size_t len, struct header *ret_header,
                        struct error *err) {
    if (len < PUSH_PAGE_SIZE || memcmp(data, magic, sizeof(magic)) != 0) {
        return error_set(err, -EINVAL, "not a state file of pushed series");
    }
    memcpy(ret_header, data, sizeof(*ret_header));
    if (ret_header->version != STATE_VERSION || ret_header->byte_order != STATE_BYTE_ORDER) {
        return error_set(err, -EPROTO, "a state file of version %u, this program knows %d",
                         ret_header->version, STATE_VERSION);
    }
    if (ret_header->header_check != header_check(ret_header) ||
        ret_header->n_pages > SIZE_MAX / PUSH_PAGE_SIZE / 2) {
        return error_set(err, -EINVAL, "its header is damaged");
    }
    return 0;
}

int push_state_decode(void *data, size_t len, size_t *ret_offset, size_t *ret_len,
                      size_t *ret_n_damaged, struct error *err) {
    struct header header = {0};
    int r = check_header(data, len, &header, err);
    if (r < 0) {
        return r;
    }
    const char *checks = (const char *)data + PUSH_PAGE_SIZE;
    size_t n_pages = (size_t)header.n_pages;
    size_t checks_len = n_pages * sizeof(uint32_t);
    size_t offset = PUSH_PAGE_SIZE + round_up(checks_len);
    if (offset > len || libdeflate_crc32(0, checks, checks_len) != header.checks_check) {
        return error_set(err, -EINVAL, "truncated or corrupt header");
    }
    size_t n_there = (len - offset) / PUSH_PAGE_SIZE;
    n_there = n_there < n_pages ? n_there : n_pages;
    size_t n_damaged = n_pages - n_there;
    for (size_t i = 0; i < n_there; i++) {
        uint32_t check;
        memcpy(&check, checks + i * sizeof(check), sizeof(check));
        char *pages = (char *)data + offset;
        if (page_check(pages, i) != check) {
            memset(pages + i * PUSH_PAGE_SIZE, 0, PUSH_PAGE_SIZE);
            n_damaged++;
        }
    }
    *ret_offset = offset;
    *ret_len = n_there * PUSH_PAGE_SIZE;
    *ret_n_damaged = n_damaged;
    return 0;
}

/* ---- files of an earlier process ---- */

/* MAX_TABLE_BYTES: see push.table-size. A state file also has a header and the checks of pages, a
 * thousandth. */
enum { MAX_TABLE_BYTES = 1 << 30, MAX_FILE_BYTES = MAX_TABLE_BYTES + (MAX_TABLE_BYTES >> 8) };

void push_remains_finish(struct push_remains *remains) {
    buf_finish(&remains->file);
    *remains = (struct push_remains){0};
}

/* Whether the file is neither a table nor a state file, not even a damaged one. Both begin with
 * "waap"; damage is assumed to change one byte of it, or to clear all. */
static bool is_foreign(const struct buf *file) {
    static const char begin[] = {'w', 'a', 'a', 'p'};
    size_t n_like = 0, n_zero = 0;
    for (size_t i = 0; i < sizeof(begin) && i < file->len; i++) {
        n_like += file->data[i] == begin[i];
        n_zero += file->data[i] == '\0';
    }
    return n_like + 1 < sizeof(begin) && n_zero < sizeof(begin) && file->len > 0;
}

int push_recover(enum push_file kind, const char *path, struct push_remains *ret_remains,
                 struct error *err) {
    struct push_remains remains = {0};
    struct buf *file = &remains.file;
    int r = file_read_own(path, MAX_FILE_BYTES, file, err);
    if (r < 0) {
        return r;
    }
    if (kind == PUSH_FILE_TABLE) {
        r = push_table_recover(file->data, file->len, &remains.offset, &remains.same_boot, err);
        remains.len = file->len - remains.offset;
    } else {
        r = push_state_decode(file->data, file->len, &remains.offset, &remains.len,
                              &remains.n_damaged, err);
    }
    if (r < 0) {
        r = error_set(err, is_foreign(file) ? -EMEDIUMTYPE : r, "%s: %s", path, err->text);
        push_remains_finish(&remains);
        return r;
    }
    *ret_remains = remains;
    return 0;
}

int push_recover_set_aside(const char *path, struct buf *ret_name, struct error *err) {
    struct stat st;
    struct timespec now;
    if (lstat(path, &st) < 0) {
        return error_set(err, -errno, "look for %s: %m", path);
    }
    /* A directory or device was given by mistake, and must stay at its place. */
    if (!S_ISREG(st.st_mode)) {
        return error_set(err, -EINVAL, "%s is not a regular file", path);
    }
    clock_gettime(CLOCK_REALTIME, &now);
    buf_reset(ret_name);
    buf_printf(ret_name, "%s.bad-%lld.%09ld", path, (long long)now.tv_sec, now.tv_nsec);
    if (rename(path, buf_str(ret_name)) < 0) {
        return error_set(err, -errno, "rename %s to %s: %m", path, buf_str(ret_name));
    }
    return 0;
}

static int make_directory(const char *path, struct error *err) {
    char *directory CLEANUP_FREE = mem_strdup(path);
    char *slash = strrchr(directory, '/');
    if (slash == NULL || slash == directory) {
        return 0;
    }
    *slash = '\0';
    if (mkdir(directory, 0700) < 0 && errno != EEXIST) {
        return error_set(err, -errno, "make directory %s: %m", directory);
    }
    return 0;
}

/* The file itself is replaced by rename, so the lock is a file of its own. */
int push_recover_lock(const char *path, int *ret_fd, struct error *err) {
    struct buf name CLEANUP_BUF = {0};
    buf_printf(&name, "%s.lock", path);
    int r = make_directory(path, err);
    int fd CLEANUP_CLOSE = r == 0 ? file_open_own(buf_str(&name), O_RDWR | O_CREAT, err) : r;
    if (fd < 0) {
        return fd;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        return errno == EWOULDBLOCK ? error_set(err, -EBUSY, "%s is in use by another waap", path)
                                    : error_set(err, -errno, "lock %s: %m", buf_str(&name));
    }
    *ret_fd = TAKE_FD(fd);
    return 0;
}
