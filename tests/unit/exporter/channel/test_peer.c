#include "exporter/channel/peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unity.h>

#include "exporter/core/cleanup.h"

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

static void test_who_counts_as_one(void) {
    const struct push_peer user = {.pid = 1, .uid = 1000};
    const struct {
        struct push_peer a, b;
        bool same;
    } rows[] = {
        {user, {.pid = 2, .uid = 1000}, true},
        {user, {.pid = 2, .uid = 1001}, false},
        {user, {.pid = 2, .uid = 1000, .gone = true, .of_our_network = true}, true},
        {user, {.pid = 2, .uid = 1000, .gone = true}, false},
        {user, {.uid = 1000}, false},
        {user, {.pid = 2, .uid = 1000, .container_id = "a"}, false},
        {{.uid = 0}, {.uid = 1000}, true},
        {{.pid = 1, .uid = 0, .gone = true}, {.pid = 2, .uid = 1, .gone = true}, true},
        {{.pid = 1, .uid = 65536}, {.pid = 2, .uid = 165535}, true},
        {{.pid = 1, .uid = 65536}, {.pid = 2, .uid = 65535}, false},
        {{.pid = 1, .uid = 65536}, {.pid = 2, .uid = 1, .gone = true}, true},
        {{.pid = 1, .container_id = "a"}, {.pid = 2, .uid = 70000, .container_id = "a"}, true},
        {{.pid = 1, .container_id = "a"}, {.pid = 2, .container_id = "b"}, false},
        {{.pid = 1, .uid = 70000, .container_id = "a"}, {.pid = 2, .uid = 70000}, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char row[24];
        snprintf(row, sizeof(row), "row %zu", i);
        TEST_ASSERT_EQUAL_MESSAGE(rows[i].same, push_peer_is_same(&rows[i].a, &rows[i].b), row);
        TEST_ASSERT_EQUAL_MESSAGE(rows[i].same, push_peer_is_same(&rows[i].b, &rows[i].a), row);
    }
}
