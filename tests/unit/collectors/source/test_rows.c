#include "collectors/source/rows.h"

#include <stdio.h>
#include <string.h>
#include <unity.h>

struct thing {
    struct row row;
    int number;
};

static int n_finished;

static void finish(void *row) {
    struct thing *thing = row;
    n_finished += thing->number != 0;
}

static struct rows rows;

void setUp(void) {
    n_finished = 0;
    rows = (struct rows){sizeof(struct thing), finish};
}

void tearDown(void) {
    rows_finish(&rows);
}

static struct thing *see(const char *key) {
    struct thing *thing = rows_see(&rows, (struct scan_word){.text = key, .len = strlen(key)});
    TEST_ASSERT_NOT_NULL(thing);
    TEST_ASSERT_EQUAL_STRING(key, thing->row.key);
    TEST_ASSERT_EQUAL_INT(thing->row.is_new, thing->number == 0);
    thing->number = 7;
    return thing;
}

static void test_what_is_not_seen_is_forgotten(void) {
    see("sda");
    see("sdb");
    struct thing *kept = see("sdc");
    rows_sweep(&rows);
    TEST_ASSERT_EQUAL_UINT64(3, rows.n);

    TEST_ASSERT_EQUAL_PTR(kept, see("sdc"));
    see("sda");
    rows_sweep(&rows);
    TEST_ASSERT_EQUAL_UINT64(2, rows.n);
    TEST_ASSERT_EQUAL_INT(1, n_finished);
    TEST_ASSERT_EQUAL_PTR(kept, rows.all[1]);

    see("sdb");
    rows_sweep(&rows);
    TEST_ASSERT_EQUAL_UINT64(1, rows.n);
    TEST_ASSERT_EQUAL_INT(3, n_finished);
}

static void test_again_is_within_a_round(void) {
    TEST_ASSERT_FALSE(see("sda")->row.again);
    TEST_ASSERT_TRUE(see("sda")->row.again);
    rows_sweep(&rows);
    TEST_ASSERT_FALSE(see("sda")->row.again);
    TEST_ASSERT_TRUE(see("sda")->row.again);
}

static void test_a_limit_keeps_those_that_are_there(void) {
    rows.max = 2;
    see("sda");
    see("sdb");
    TEST_ASSERT_NULL(rows_see(&rows, (struct scan_word){.text = "sdc", .len = 3}));
    see("sda");
    TEST_ASSERT_EQUAL_UINT64(2, rows.n);
}

static void test_a_key_is_compared_as_a_whole(void) {
    see("sda");
    see("sda1");
    see("sd");
    see("");
    TEST_ASSERT_EQUAL_UINT64(4, rows.n);
}

static void test_many_keys_in_any_order(void) {
    char key[16];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 100; i++) {
            snprintf(key, sizeof(key), "d%d", (i * 37 + round) % 100);
            see(key);
        }
        rows_sweep(&rows);
        TEST_ASSERT_EQUAL_UINT64(100, rows.n);
    }
    TEST_ASSERT_EQUAL_INT(0, n_finished);
}

static void test_find_adds_nothing(void) {
    const struct scan_word a = {"a", 1}, b = {"b", 1};
    TEST_ASSERT_NULL(rows_find(&rows, a));
    struct thing *thing = rows_see(&rows, a);
    rows_sweep(&rows);
    TEST_ASSERT_EQUAL_PTR(thing, rows_find(&rows, a));
    TEST_ASSERT_FALSE(thing->row.is_new);
    TEST_ASSERT_FALSE(thing->row.again);
    TEST_ASSERT_EQUAL_PTR(thing, rows_find(&rows, a));
    TEST_ASSERT_TRUE(thing->row.again);
    TEST_ASSERT_NULL(rows_find(&rows, b));
    rows_sweep(&rows);
    TEST_ASSERT_EQUAL_UINT64(1, rows.n);
    rows_find(&rows, a);
    rows_unsee(&rows, &thing->row);
    rows_sweep(&rows);
    TEST_ASSERT_EQUAL_UINT64(0, rows.n);
}
