#include "exporter/channel/pywaggle_file.h"

#include <errno.h>
#include <stdio.h>
#include <unity.h>

#include "exporter/core/clock.h"

static const struct pywaggle_span followed = {.begin_ns = 1000, .end_ns = 2000};

static void test_where_a_log_is_read_from(void) {
    const struct pywaggle_sight known = {.device = 1, .inode = 7, .birth_ns = 500, .size = 90};
    const struct {
        const char *what;
        bool early;
        struct pywaggle_sight before, now;
        off_t want;
    } rows[] = {
        {"new", false, {0}, {1, 7, 500, 90}, 0},
        {"there before us", true, {0}, {1, 7, 500, 90}, 90},
        {"as old as we are", true, {0}, {1, 7, 1000, 90}, 90},
        {"of an unknown age", true, {0}, {1, 7, 0, 90}, 90},
        {"of another's clock", true, {0}, {1, 7, 2001, 90}, 90},
        {"younger than us", true, {0}, {1, 7, 1001, 90}, 0},
        {"as it was", false, known, {1, 7, 500, 90}, 50},
        {"back by another mount", true, known, {2, 7, 500, 90}, 50},
        {"cut", false, known, {1, 7, 500, 49}, 0},
        {"anew", false, known, {1, 8, 1500, 90}, 0},
        {"anew with its old inode", false, known, {1, 7, 1500, 90}, 0},
        {"anew in another directory", true, known, {1, 8, 1500, 90}, 0},
        {"another in another directory", true, known, {1, 8, 400, 90}, 90},
        {"of an unknown age by another mount", false, {1, 7, 0, 90}, {2, 7, 0, 90}, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct pywaggle_file file = {.device = rows[i].before.device,
                                     .inode = rows[i].before.inode,
                                     .birth_ns = rows[i].before.birth_ns,
                                     .offset = rows[i].before.inode != 0 ? 50 : 0,
                                     .gone_ns = 1,
                                     .early = rows[i].early};
        pywaggle_file_meet(&file, &rows[i].now, &followed);
        TEST_ASSERT_EQUAL_INT64_MESSAGE(rows[i].want, file.offset, rows[i].what);
        TEST_ASSERT_EQUAL_INT64_MESSAGE(0, file.gone_ns, rows[i].what);
        TEST_ASSERT_FALSE_MESSAGE(file.early, rows[i].what);
    }
}

static void test_what_is_missed(void) {
    struct pywaggle_file file = {.inode = 7, .early = true};
    pywaggle_file_miss(&file, -EMFILE); /* nothing is known of it */
    TEST_ASSERT_TRUE(file.early);
    TEST_ASSERT_EQUAL_INT64(0, file.gone_ns);
    pywaggle_file_miss(&file, -ENOENT);
    TEST_ASSERT_FALSE(file.early);
    int64_t gone = file.gone_ns;
    TEST_ASSERT_NOT_EQUAL_INT64(0, gone);
    pywaggle_file_miss(&file, -ENOTDIR);
    TEST_ASSERT_EQUAL_INT64(gone, file.gone_ns);

    struct pywaggle_file never = {.early = true};
    pywaggle_file_miss(&never, -EACCES);
    TEST_ASSERT_TRUE(never.early);
    TEST_ASSERT_NOT_EQUAL_INT64(0, never.gone_ns); /* its place may be another's */
}

/* Only who has been away for minutes makes room. */
static void test_room(void) {
    struct pywaggle_files files;
    TEST_ASSERT_TRUE(pywaggle_files_init(&files));
    for (int i = 0; i < PYWAGGLE_MAX_FILES; i++) {
        char plugin[16];
        snprintf(plugin, sizeof(plugin), "p%d", i);
        TEST_ASSERT_NOT_NULL(pywaggle_files_add(&files, "/logs", plugin, true));
    }
    TEST_ASSERT_NULL(pywaggle_files_add(&files, "/logs", "new", true));
    struct pywaggle_file *away = pywaggle_files_find(&files, "/logs", "p3", true);
    away->gone_ns = clock_monotonic_ns() - 60 * CLOCK_NS_PER_SEC;
    TEST_ASSERT_NULL(pywaggle_files_add(&files, "/logs", "new", true));
    away->gone_ns = clock_monotonic_ns() - 600 * CLOCK_NS_PER_SEC;
    TEST_ASSERT_NOT_NULL(pywaggle_files_add(&files, "/logs", "new", true));
    TEST_ASSERT_NULL(pywaggle_files_find(&files, "/logs", "p3", true));
    TEST_ASSERT_NULL(pywaggle_files_find(&files, "/logs", "p4", false));
    TEST_ASSERT_NULL(pywaggle_files_find(&files, "/other", "p4", true));
    TEST_ASSERT_NOT_NULL(pywaggle_files_find(&files, "/logs", "p4", true));
    pywaggle_files_finish(&files);
}
