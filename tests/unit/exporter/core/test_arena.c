#include "exporter/core/arena.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <unity.h>

static void test_pieces_stay_apart(void) {
    enum { N = 2000 };
    struct arena arena CLEANUP_ARENA = {0};
    unsigned char *pieces[N];
    for (int turn = 0; turn < 3; turn++) {
        for (size_t i = 0; i < N; i++) {
            pieces[i] = arena_take(&arena, i % 97);
            TEST_ASSERT_NOT_NULL(pieces[i]);
            TEST_ASSERT_EQUAL_UINT64(0, (uintptr_t)pieces[i] % _Alignof(double));
            memset(pieces[i], (int)(i % 251), i % 97);
        }
        for (size_t i = 0; i < N; i++) {
            for (size_t k = 0; k < i % 97; k++) {
                TEST_ASSERT_EQUAL_UINT8(i % 251, pieces[i][k]);
            }
        }
        arena_reset(&arena, SIZE_MAX);
    }
}

static void test_memory_is_used_again(void) {
    struct arena arena CLEANUP_ARENA = {0};
    void *first = arena_take(&arena, 100);
    arena_take(&arena, 100000);
    arena_reset(&arena, SIZE_MAX);
    TEST_ASSERT_EQUAL_PTR(first, arena_take(&arena, 100));
    arena_reset(&arena, 0);
    TEST_ASSERT_NULL(arena.first);
}

static void test_reset_gives_back_the_large(void) {
    struct arena arena CLEANUP_ARENA = {0};
    void *first = arena_take(&arena, 10);
    TEST_ASSERT_NOT_NULL(arena_take(&arena, 1 << 20));
    arena_reset(&arena, 64 * 1024);
    TEST_ASSERT_EQUAL_PTR(first, arena_take(&arena, 10));
    TEST_ASSERT_NOT_NULL(arena_take(&arena, 1 << 20));
}

static void test_copy(void) {
    struct arena arena CLEANUP_ARENA = {0};
    TEST_ASSERT_EQUAL_STRING("text", arena_copy(&arena, "text", 5));
    TEST_ASSERT_NOT_NULL(arena_copy(&arena, NULL, 0));
}

static void test_limit(void) {
    struct arena arena CLEANUP_ARENA = {.max = 1000};
    struct error err;
    TEST_ASSERT_NOT_NULL(arena_take(&arena, 400));
    TEST_ASSERT_TRUE(arena_charge(&arena, 400));
    TEST_ASSERT_NULL(arena_take(&arena, 400));
    TEST_ASSERT_FALSE(arena_charge(&arena, 400));
    TEST_ASSERT_NOT_NULL(arena_take(&arena, 100));
    TEST_ASSERT_EQUAL_INT(-EFBIG, arena_fail(&arena, &err));
    TEST_ASSERT_EQUAL_STRING("more than 1000 bytes of memory are needed", err.text);
    arena_reset(&arena, 0);
    TEST_ASSERT_NOT_NULL(arena_take(&arena, 800));
}
