#include "exporter/push/files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unity.h>

#include "exporter/push/table.h"

static struct error err;

enum { PAGES = 1500, LEN = (PAGES - 1) * PUSH_PAGE_SIZE + 100 };

static char *make_pages(void) {
    char *pages = malloc(LEN);
    TEST_ASSERT_NOT_NULL(pages);
    for (size_t i = 0; i < LEN; i++) {
        pages[i] = (char)(i * 7 + i / 4096);
    }
    return pages;
}

static void test_there_and_back(void) {
    static const size_t lens[] = {0, 1, PUSH_PAGE_SIZE, PUSH_PAGE_SIZE + 1, LEN};
    char *pages = make_pages();
    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        struct buf content CLEANUP_BUF = {0};
        size_t offset = 0, len = 0, n_damaged = 9;
        push_state_encode(pages, lens[i], &content);
        TEST_ASSERT_EQUAL_INT(
            0, push_state_decode(content.data, content.len, &offset, &len, &n_damaged, &err));
        TEST_ASSERT_EQUAL_UINT64(0, n_damaged);
        TEST_ASSERT_EQUAL_UINT64(0, offset % 4096);
        TEST_ASSERT_TRUE(len >= lens[i] && len < lens[i] + PUSH_PAGE_SIZE);
        TEST_ASSERT_EQUAL_INT(0, memcmp(pages, content.data + offset, lens[i]));
    }
    free(pages);
}

static void test_cut_off(void) {
    char *pages = make_pages();
    struct buf content CLEANUP_BUF = {0};
    push_state_encode(pages, LEN, &content);
    for (size_t len = 0; len < content.len; len += 60013) {
        size_t offset, left, n_damaged;
        int r = push_state_decode(content.data, len, &offset, &left, &n_damaged, &err);
        TEST_ASSERT_EQUAL_INT(len < 3 * PUSH_PAGE_SIZE ? -EINVAL : 0, r);
        if (r == 0) {
            TEST_ASSERT_EQUAL_UINT64((len - offset) / PUSH_PAGE_SIZE, left / PUSH_PAGE_SIZE);
            TEST_ASSERT_EQUAL_UINT64(PAGES, n_damaged + left / PUSH_PAGE_SIZE);
        }
    }
    free(pages);
}

static void test_flipped_bits(void) {
    char *pages = make_pages();
    struct buf content CLEANUP_BUF = {0};
    push_state_encode(pages, 3 * PUSH_PAGE_SIZE, &content);
    char *copy = malloc(content.len);
    for (size_t at = 0; at < content.len; at += at < 64 ? 1 : 97) {
        memcpy(copy, content.data, content.len);
        copy[at] ^= 4;
        size_t offset, len, n_damaged = 0;
        int r = push_state_decode(copy, content.len, &offset, &len, &n_damaged, &err);
        bool version = at >= 8 && at < 16;
        bool described = at < 32 || (at >= 4096 && at < 4096 + 12);
        TEST_ASSERT_EQUAL_INT(version ? -EPROTO : described ? -EINVAL : 0, r);
        if (r == 0) {
            TEST_ASSERT_EQUAL_UINT64(at >= 8192 ? 1 : 0, n_damaged);
        }
    }
    free(copy);
    free(pages);
}
