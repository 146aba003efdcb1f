#include <math.h>

#include "exporter/core/clock.h"
#include "exporter/core/file.h"
#include "exporter/metrics/exposition.h"
#include "tests/unit/collectors/jetson/jetson_tree.h"
#include "tests/unit/exporter/metrics/exposition_text.h"

/* Every board's whole page against the one that was looked at: BOARD.prom beside BOARD.tree. With
 * WAAP_WRITE_GOLDEN set they are written instead. */

static const char *const boards[] = {
    "agx_orin_jp5", "agx_orin_jp7", "agx_xavier_jp5", "nano_jp4",      "orin_nano_jp6",
    "thor_jp7",     "tx2_jp4",      "xavier_nx_jp4",  "xavier_nx_jp5",
};

void setUp(void) {
    tree_begin();
}

void tearDown(void) {
    tree_end();
}

static void render(struct buf *page) {
    uint64_t duplicates = 0;
    struct exposition_part *part = exposition_part_create(&snapshot, &duplicates);
    TEST_ASSERT_NOT_NULL(part);
    struct exposition_choice choice = {.format = EXPOSITION_TEXT};
    exposition_text(page, choice, &part, 1, &duplicates);
    exposition_part_unref(part);
    TEST_ASSERT_EQUAL_UINT64_MESSAGE(0, duplicates, "two series of one name");
}

/* Machines differ in the last digit of a sum. */
static bool same_line(const char *expected, const char *got) {
    const char *expected_value = strrchr(expected, ' ');
    const char *got_value = strrchr(got, ' ');
    if (expected[0] == '#' || expected_value == NULL || got_value == NULL) {
        return strcmp(expected, got) == 0;
    }
    double want = strtod(expected_value, NULL);
    double have = strtod(got_value, NULL);
    return expected_value - expected == got_value - got &&
           memcmp(expected, got, (size_t)(got_value - got)) == 0 &&
           fabs(want - have) <= 1e-12 * fabs(want);
}

static void compare(const char *board, char *expected, char *got) {
    while (expected != NULL && got != NULL) {
        char *expected_line = strsep(&expected, "\n");
        char *line = strsep(&got, "\n");
        if (!same_line(expected_line, line)) {
            TEST_ASSERT_EQUAL_STRING_MESSAGE(expected_line, line, board);
        }
    }
    TEST_ASSERT_NULL_MESSAGE(expected, board);
    TEST_ASSERT_NULL_MESSAGE(got, board);
}

static void check_golden(const char *board, struct buf *page) {
    char path[512];
    snprintf(path, sizeof(path), "%s/tests/fixtures/jetson/%s.prom", source_root(), board);
    if (getenv("WAAP_WRITE_GOLDEN") != NULL) {
        FILE *file CLEANUP_FCLOSE = fopen(path, "we");
        TEST_ASSERT_NOT_NULL_MESSAGE(file, path);
        fputs(buf_str(page), file);
        return;
    }
    struct buf golden CLEANUP_BUF = {0};
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, file_read(path, &golden, &err), err.text);
    compare(board, golden.data, page->data);
}

static void test_boards(void) {
    for (size_t i = 0; i < ARRAY_LEN(boards); i++) {
        struct buf page CLEANUP_BUF = {0};
        int64_t now_ns = 5000 * CLOCK_NS_PER_SEC;
        plant_board(boards[i]);
        set_option("collector.jetson.nvml", "/nonexistent");
        set_option("collector.jetson.processes", "true");
        open_collector();
        for (int sample = 0; sample < 40; sample++, now_ns += CLOCK_NS_PER_SEC / 8) {
            jetson_sample_at(state, now_ns);
        }
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect_at(now_ns), err.text);
        render(&page);
        check_golden(boards[i], &page);
        tearDown();
        setUp();
    }
}
