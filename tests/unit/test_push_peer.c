#include "exporter/push_peer.h"

#include <stdlib.h>
#include <string.h>
#include <unity.h>

#include "exporter/core/cleanup.h"

void setUp(void) {
}

void tearDown(void) {
}

#define WORDS(text) text, sizeof(text) - 1

static void test_program(void) {
    static const struct {
        const char *words;
        size_t len;
        const char *expected; /* NULL: cannot be told */
    } rows[] = {
        {WORDS("/usr/bin/app\0"), "app"},
        {WORDS("app\0-v\0x.py\0"), "app"},
        {WORDS("/usr/bin/python3\0/srv/cars.py\0--fast\0"), "cars"},
        {WORDS("python3.8\0-u\0-B\0cars.py\0"), "cars"},
        {WORDS("python\0run\0"), "run"},
        {WORDS("python3\0.py\0"), ".py"},
        {WORDS("python3\0"), "python"},
        {WORDS("python3\0-\0"), "python"},
        {WORDS("python3\0-c\0from waap import plugin\0"), "python"},
        {WORDS("python3\0-uc\0import this\0x.py\0"), "python"},
        {WORDS("python3\0-m\0cars.main\0-c\0x\0"), "cars.main"},
        {WORDS("python3\0-W\0ignore\0-X\0dev\0cars.py\0"), "cars"},
        {WORDS("python3\0--check-hash-based-pycs\0cars.py\0"), "cars"},
        {WORDS("app"), "app"}, /* some overwrite theirs */
        {WORDS("/usr/bin/\0"), NULL},
        {WORDS(""), NULL},
        {WORDS("\0"), NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char *copy CLEANUP_FREE = malloc(rows[i].len > 0 ? rows[i].len : 1);
        memcpy(copy, rows[i].words, rows[i].len);
        char *program CLEANUP_FREE = push_peer_program(copy, rows[i].len);
        if (rows[i].expected == NULL) {
            TEST_ASSERT_NULL(program);
        } else {
            TEST_ASSERT_EQUAL_STRING(rows[i].expected, program);
        }
    }
}

int main(void) {
    UNITY_BEGIN();
    RUN_TEST(test_program);
    return UNITY_END();
}
