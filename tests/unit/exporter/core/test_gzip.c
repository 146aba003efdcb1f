#include "exporter/core/gzip.h"

#include <errno.h>
#include <libdeflate.h>
#include <unity.h>

/* In three pieces, the middle one empty. */
static void compress_one(const char *data, size_t n, struct buf *out) {
    size_t half = n / 2;
    struct iovec pieces[] = {
        {(char *)data, half},
        {(char *)data, 0},
        {data != NULL ? (char *)data + half : NULL, n - half},
    };
    gzip_compress(pieces, ARRAY_LEN(pieces), out);
}

/* Unpacks one whole gzip member, and nothing else, into `out`. */
static void unpack(const char *data, size_t n, struct buf *out, size_t expected) {
    struct libdeflate_decompressor *decompressor = libdeflate_alloc_decompressor();
    char *to = buf_reserve(out, expected);
    size_t n_read = 0;
    enum libdeflate_result result =
        libdeflate_gzip_decompress_ex(decompressor, data, n, to, expected, &n_read, &out->len);
    libdeflate_free_decompressor(decompressor);
    TEST_ASSERT_EQUAL_INT(LIBDEFLATE_SUCCESS, result);
    TEST_ASSERT_EQUAL_UINT64(n, n_read);
}

static void check_round_trip(const char *data, size_t n) {
    struct buf packed CLEANUP_BUF = {0}, unpacked CLEANUP_BUF = {0};
    buf_add_str(&packed, "before");
    compress_one(data, n, &packed);
    TEST_ASSERT_EQUAL_MEMORY("before\x1f\x8b", packed.data, 8);
    TEST_ASSERT_EQUAL_CHAR('\0', packed.data[packed.len]);
    unpack(packed.data + 6, packed.len - 6, &unpacked, n);
    TEST_ASSERT_EQUAL_UINT64(n, unpacked.len);
    TEST_ASSERT_TRUE(n == 0 || memcmp(data, unpacked.data, n) == 0);
}

static void test_round_trips(void) {
    check_round_trip(NULL, 0);
    check_round_trip("x", 1);
    check_round_trip("a\0b", 3);
    struct buf page CLEANUP_BUF = {0};
    for (int i = 0; i < 20000; i++) {
        buf_printf(&page, "node_cpu_seconds_total{cpu=\"%d\",mode=\"idle\"} %d.%02d\n", i, i * 7,
                   i % 100);
    }
    check_round_trip(page.data, page.len);
}

/* What cannot be packed grows; the room must do for that too. */
static void test_noise(void) {
    enum { LEN = 300000 };
    char *noise CLEANUP_FREE = malloc(LEN);
    uint32_t state = 1;
    for (size_t i = 0; i < LEN; i++) {
        state = state * 1664525 + 1013904223;
        noise[i] = (char)(state >> 24);
    }
    check_round_trip(noise, LEN);
}

static void test_pages_shrink(void) {
    struct buf page CLEANUP_BUF = {0}, packed CLEANUP_BUF = {0};
    for (int i = 0; i < 1000; i++) {
        buf_printf(&page, "container_memory_usage_bytes{id=\"%d\"} %d\n", i, i * 4096);
    }
    compress_one(page.data, page.len, &packed);
    TEST_ASSERT_LESS_THAN(page.len / 4, packed.len);
}

/* ---- unpacking ---- */

static void test_unpacks_several_members(void) {
    struct buf packed CLEANUP_BUF = {0}, text CLEANUP_BUF = {0};
    struct error err = {""};
    compress_one("one ", 4, &packed);
    compress_one("", 0, &packed);
    compress_one("two", 3, &packed);
    buf_add_str(&text, "before ");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, gzip_unpack(packed.data, packed.len, 7, &text, &err),
                                  err.text);
    TEST_ASSERT_EQUAL_STRING("before one two", buf_str(&text));
}

static void test_unpacks_up_to_a_limit(void) {
    enum { LEN = 1 << 20 };
    struct buf packed CLEANUP_BUF = {0}, text CLEANUP_BUF = {0};
    struct error err = {""};
    char *zeros CLEANUP_FREE = calloc(1, LEN);
    compress_one(zeros, LEN, &packed);
    TEST_ASSERT_EQUAL_INT(0, gzip_unpack(packed.data, packed.len, LEN, &text, &err));
    TEST_ASSERT_EQUAL_size_t(LEN, text.len);
    TEST_ASSERT_EQUAL_INT(-EFBIG, gzip_unpack(packed.data, packed.len, LEN - 1, &text, &err));
    TEST_ASSERT_EQUAL_STRING("gzip: unpacked it is more than 1048575 bytes", err.text);
    TEST_ASSERT_EQUAL_size_t(LEN, text.len);
    /* A promise that is not kept costs nothing. */
    memset(packed.data + packed.len - 4, 0xff, 4);
    struct buf small CLEANUP_BUF = {0};
    TEST_ASSERT_NOT_EQUAL(0, gzip_unpack(packed.data, packed.len, 1000, &small, &err));
    TEST_ASSERT_LESS_THAN(4096, small.cap);
    TEST_ASSERT_EQUAL_size_t(0, small.len);
}

static void test_damage_is_an_error(void) {
    struct buf packed CLEANUP_BUF = {0}, text CLEANUP_BUF = {0};
    struct error err = {""};
    compress_one("some text of ours", 17, &packed);
    for (size_t n = 0; n < packed.len; n++) {
        char *cut CLEANUP_FREE = malloc(n + 1);
        memcpy(cut, packed.data, n);
        TEST_ASSERT_EQUAL_INT(-EINVAL, gzip_unpack(cut, n, 1000, &text, &err));
        TEST_ASSERT_EQUAL_size_t(0, text.len);
    }
    TEST_ASSERT_EQUAL_STRING("gzip: the data is damaged", err.text);
    packed.data[packed.len - 8] ^= 1; /* the checksum */
    TEST_ASSERT_EQUAL_INT(-EINVAL, gzip_unpack(packed.data, packed.len, 1000, &text, &err));
    TEST_ASSERT_EQUAL_INT(-EINVAL, gzip_unpack("plain text", 10, 1000, &text, &err));
}
