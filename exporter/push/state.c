#include "exporter/push/state.h"

#include <errno.h>
#include <libdeflate.h>
#include <stdint.h>
#include <string.h>

#include "exporter/push/entry.h"

enum { STATE_VERSION = 1 };

#define STATE_BYTE_ORDER UINT32_C(0x01020304)

static const char magic[8] = "waapstat";

/* Then, each at the begin of a page: the checks of the pages, the pages. */
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
    for (size_t i = 0; !padded.failed && i < padded.len / PUSH_PAGE_SIZE; i++) {
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
    out->failed |= padded.failed || checks.failed;
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
        return error_set(err, -EINVAL, "cut off or damaged near its begin");
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
