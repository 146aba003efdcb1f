#include "exporter/push/store.h"

#include <errno.h>
#include <math.h>

#include "exporter/core/clock.h"
#include "tests/unit/exporter/push/push_fixture.h"

static struct push_store *store;

void setUp(void) {
    struct error err;
    struct push_store_config config = fixture_config();
    TEST_ASSERT_EQUAL_INT(0, push_store_create(&config, &store, &err));
}

void tearDown(void) {
    push_store_destroy(store);
}

static void test_types(void) {
    struct push_owner *a = fixture_plugin(store, "a");
    TEST_ASSERT_EQUAL_INT(0, fixture_push(store, a, "frames", PUSH_COUNTER, PUSH_INC, 2));
    TEST_ASSERT_EQUAL_INT(0, fixture_push(store, a, "frames_total", PUSH_COUNTER, PUSH_INC, 3));
    TEST_ASSERT_EQUAL_INT(0, fixture_push(store, a, "frames", PUSH_UNSAID, PUSH_INC, 1));
    TEST_ASSERT_EQUAL_INT(0, fixture_push(store, a, "level", PUSH_GAUGE, PUSH_SET, 2.5));
    TEST_ASSERT_EQUAL_INT(0, fixture_push(store, a, "level", PUSH_UNSAID, PUSH_INC, -4));
    TEST_ASSERT_EQUAL_INT(0, fixture_push(store, a, "odd", PUSH_UNTYPED, PUSH_SET, NAN));
    fixture_expect(store, "# TYPE frames_total counter\n"
                          "frames_total{plugin=\"a\"} 6\n"
                          "# TYPE level gauge\n"
                          "level{plugin=\"a\"} -1.5\n"
                          "# TYPE odd untyped\n"
                          "odd{plugin=\"a\"} NaN\n");
    push_owner_unref(store, a);
}

static void test_rate_exports_total_and_mean(void) {
    struct push_owner *a = fixture_plugin(store, "a");
    for (int i = 0; i <= 200; i++) {
        TEST_ASSERT_EQUAL_INT(0, fixture_push(store, a, "fps", PUSH_RATE, PUSH_INC, 3));
        fixture_ms += 100;
    }
    fixture_ms -= 100;
    fixture_expect(store, "# TYPE fps gauge\n"
                          "fps{plugin=\"a\"} 30\n"
                          "# TYPE fps_total counter\n"
                          "fps_total{plugin=\"a\"} 603\n");
    fixture_ms += 5000;
    fixture_expect(store, "# TYPE fps gauge\n"
                          "fps{plugin=\"a\"} 15\n"
                          "# TYPE fps_total counter\n"
                          "fps_total{plugin=\"a\"} 603\n");
    push_owner_unref(store, a);
}

static void test_histogram(void) {
    struct push_owner *a = fixture_plugin(store, "a");
    static const double values[] = {0.5, 1, 1.5, 99};
    static const double bounds[] = {1, 2};
    struct push_update update = {
        .name = "h",
        .type = PUSH_HISTOGRAM,
        .op = PUSH_OBSERVE,
        .values = values,
        .n_values = 4,
        .bounds = bounds,
        .n_bounds = 2,
        .ttl_ms = PUSH_TTL_DEFAULT,
    };
    TEST_ASSERT_EQUAL_INT(0, fixture_apply(store, a, PUSH_MERGE, 0, &update, 1));
    fixture_expect(store, "# TYPE h histogram\n"
                          "h_bucket{plugin=\"a\",le=\"1.0\"} 2\n"
                          "h_bucket{plugin=\"a\",le=\"2.0\"} 3\n"
                          "h_bucket{plugin=\"a\",le=\"+Inf\"} 4\n"
                          "h_sum{plugin=\"a\"} 102\n"
                          "h_count{plugin=\"a\"} 4\n");
    update.bounds = (const double[]){1, 3};
    TEST_ASSERT_EQUAL_INT(-EEXIST, fixture_apply(store, a, PUSH_MERGE, 0, &update, 1));
    update.bounds = (const double[]){2, 1};
    update.name = "other";
    TEST_ASSERT_EQUAL_INT(-EINVAL, fixture_apply(store, a, PUSH_MERGE, 0, &update, 1));
    push_owner_unref(store, a);
}

static void test_totals_of_a_histogram(void) {
    struct push_owner *a = fixture_plugin(store, "a");
    static const double bounds[] = {1};
    static const double rounds[][3] = {{1, 2, 7}, {1, 2, 7}, {3, 5, 9}, {2, 4, 8}};
    struct push_update update = {
        .name = "h",
        .type = PUSH_HISTOGRAM,
        .op = PUSH_TOTAL,
        .n_values = 3,
        .bounds = bounds,
        .n_bounds = 1,
        .ttl_ms = PUSH_TTL_DEFAULT,
    };
    for (size_t i = 0; i < ARRAY_LEN(rounds); i++) {
        update.values = rounds[i];
        TEST_ASSERT_EQUAL_INT(0, fixture_apply(store, a, PUSH_MERGE, 1, &update, 1));
    }
    fixture_expect(store, "# TYPE h histogram\n"
                          "h_bucket{plugin=\"a\",le=\"1.0\"} 3\n"
                          "h_bucket{plugin=\"a\",le=\"+Inf\"} 5\n"
                          "h_sum{plugin=\"a\"} 9\n"
                          "h_count{plugin=\"a\"} 5\n");
    push_owner_unref(store, a);
}

static void test_conflicts_name_both_owners(void) {
    struct push_owner *a = fixture_plugin(store, "a");
    struct push_owner *b = fixture_plugin(store, "b");
    fixture_push(store, a, "x", PUSH_COUNTER, PUSH_INC, 1);
    TEST_ASSERT_EQUAL_INT(-EEXIST, fixture_push(store, b, "x_total", PUSH_GAUGE, PUSH_SET, 1));
    TEST_ASSERT_EQUAL_STRING("x_total: is a counter of plugin a, not a gauge of plugin b",
                             fixture_err.text);
    TEST_ASSERT_EQUAL_INT(-EEXIST, fixture_push(store, b, "x_total", PUSH_UNTYPED, PUSH_SET, 1));
    TEST_ASSERT_EQUAL_STRING("x_total: is a counter of plugin a, not an untyped metric of plugin b",
                             fixture_err.text);
    TEST_ASSERT_EQUAL_INT(-EEXIST, fixture_push(store, b, "x", PUSH_GAUGE, PUSH_SET, 1));
    TEST_ASSERT_EQUAL_INT(-EEXIST, fixture_push(store, b, "x", PUSH_RATE, PUSH_INC, 1));
    fixture_push(store, a, "h_count", PUSH_GAUGE, PUSH_SET, 1);
    TEST_ASSERT_EQUAL_INT(-EEXIST, fixture_push(store, b, "h", PUSH_HISTOGRAM, PUSH_OBSERVE, 1));
    TEST_ASSERT_EQUAL_STRING(
        "h: as a histogram of plugin b it would clash with h_count, a gauge of plugin a",
        fixture_err.text);
    push_store_remove_owner(store, a);
    TEST_ASSERT_EQUAL_INT(0, fixture_push(store, b, "x", PUSH_GAUGE, PUSH_SET, 1));
    push_owner_unref(store, a);
    push_owner_unref(store, b);
}

static void test_a_rate_beside_gauges_of_others(void) {
    struct push_owner *a = fixture_plugin(store, "a");
    struct push_owner *b = fixture_plugin(store, "b");
    struct push_owner *c = fixture_plugin(store, "c");
    for (int turn = 0; turn < 2; turn++) {
        struct push_owner *first = turn == 0 ? a : b, *second = turn == 0 ? b : a;
        for (int i = 0; i < 11; i++) {
            struct push_owner *const owners[] = {first, second};
            for (size_t k = 0; k < ARRAY_LEN(owners); k++) {
                int r = owners[k] == a ? fixture_push(store, a, "fps", PUSH_RATE, PUSH_INC, 30)
                                       : fixture_push(store, b, "fps", PUSH_GAUGE, PUSH_SET, 7);
                TEST_ASSERT_EQUAL_INT_MESSAGE(0, r, fixture_err.text);
            }
            TEST_ASSERT_EQUAL_INT(0, fixture_push(store, b, "fps", PUSH_UNSAID, PUSH_SET, 8));
            fixture_ms += 1000;
        }
        fixture_expect(store, turn == 0
                                  ? "# TYPE fps gauge\nfps{plugin=\"a\"} 27\nfps{plugin=\"b\"} 8\n"
                                    "# TYPE fps_total counter\nfps_total{plugin=\"a\"} 330\n"
                                  : "# TYPE fps gauge\nfps{plugin=\"b\"} 8\nfps{plugin=\"a\"} 27\n"
                                    "# TYPE fps_total counter\nfps_total{plugin=\"a\"} 330\n");
        TEST_ASSERT_EQUAL_INT(-EEXIST, fixture_push(store, a, "fps", PUSH_GAUGE, PUSH_SET, 1));
        TEST_ASSERT_EQUAL_STRING("fps: is a rate of plugin a, not a gauge", fixture_err.text);
        TEST_ASSERT_EQUAL_INT(-EEXIST, fixture_push(store, b, "fps", PUSH_RATE, PUSH_INC, 1));
        TEST_ASSERT_EQUAL_INT(-EEXIST, fixture_push(store, c, "fps", PUSH_COUNTER, PUSH_INC, 1));
        TEST_ASSERT_EQUAL_INT(-EEXIST,
                              fixture_push(store, c, "fps_total", PUSH_GAUGE, PUSH_SET, 1));
        TEST_ASSERT_EQUAL_INT(0, fixture_push(store, c, "fps_total", PUSH_COUNTER, PUSH_INC, 1));
        TEST_ASSERT_EQUAL_INT(0, fixture_push(store, c, "fps", PUSH_UNSAID, PUSH_INC, 1));
        TEST_ASSERT_EQUAL_INT(-EEXIST, fixture_push(store, c, "fps", PUSH_GAUGE, PUSH_SET, 1));
        push_store_remove_owner(store, first);
        push_store_remove_owner(store, second);
        push_store_remove_owner(store, c);
        fixture_expect(store, "");
    }
    push_owner_unref(store, a);
    push_owner_unref(store, b);
    push_owner_unref(store, c);
}

static void test_all_or_nothing(void) {
    struct push_owner *a = fixture_plugin(store, "a");
    fixture_push(store, a, "old", PUSH_COUNTER, PUSH_INC, 1);
    static const double one = 1;
    const struct push_update updates[] = {
        {.name = "old", .op = PUSH_INC, .values = &one, .n_values = 1, .ttl_ms = -1},
        {.name = "fresh", .type = PUSH_GAUGE, .values = &one, .n_values = 1, .ttl_ms = -1},
        {.name = "old", .type = PUSH_GAUGE, .values = &one, .n_values = 1, .ttl_ms = -1},
    };
    size_t failed = 0;
    struct push_batch batch = {.updates = updates, .n_updates = 3};
    struct error err;
    TEST_ASSERT_EQUAL_INT(-EEXIST, push_store_apply(store, a, &batch, &failed, &err));
    TEST_ASSERT_EQUAL_UINT64(2, failed);
    fixture_expect(store, "# TYPE old_total counter\nold_total{plugin=\"a\"} 1\n");
    batch.n_updates = 2;
    TEST_ASSERT_EQUAL_INT(0, push_store_apply(store, a, &batch, &failed, &err));
    fixture_expect(store, "# TYPE fresh gauge\nfresh{plugin=\"a\"} 1\n"
                          "# TYPE old_total counter\nold_total{plugin=\"a\"} 2\n");
    push_owner_unref(store, a);
}

static int push_group(struct push_owner *group, enum push_mode mode, const char *names,
                      enum push_type type) {
    static const double one = 1;
    struct push_update updates[8] = {0};
    char text[8][2] = {0};
    size_t n = strlen(names);
    for (size_t i = 0; i < n; i++) {
        text[i][0] = names[i];
        updates[i] = (struct push_update){
            .name = text[i],
            .type = type,
            .values = &one,
            .n_values = 1,
            .ttl_ms = PUSH_TTL_DEFAULT,
        };
    }
    return fixture_apply(store, group, mode, 0, updates, n);
}

/* The series of a page, each as the first letter of its name; without push times. */
static void expect_names(const char *expected) {
    char *page = fixture_scrape(store);
    char names[64] = "";
    for (char *save = NULL, *line = strtok_r(page, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        if (line[0] != '#' && strncmp(line, "push_", 5) != 0) {
            strncat(names, line, 1);
        }
    }
    TEST_ASSERT_EQUAL_STRING(expected, names);
    free(page);
}

static void test_groups_replace(void) {
    struct push_owner *g = fixture_group(store, "j");
    struct push_owner *other = fixture_group(store, "other");
    TEST_ASSERT_EQUAL_INT(0, push_group(g, PUSH_REPLACE_ALL, "abc", PUSH_GAUGE));
    expect_names("abc");
    TEST_ASSERT_EQUAL_INT(0, push_group(g, PUSH_REPLACE_FAMILIES, "d", PUSH_GAUGE));
    expect_names("abcd");
    TEST_ASSERT_EQUAL_INT(0, push_group(g, PUSH_REPLACE_ALL, "bd", PUSH_GAUGE));
    expect_names("bd");
    TEST_ASSERT_EQUAL_INT(-EINVAL, push_group(g, PUSH_REPLACE_ALL, "bb", PUSH_GAUGE));
    expect_names("bd");
    TEST_ASSERT_EQUAL_INT(0, push_group(g, PUSH_REPLACE_FAMILIES, "b", PUSH_COUNTER));
    expect_names("bd");
    TEST_ASSERT_EQUAL_INT(0, push_group(other, PUSH_REPLACE_FAMILIES, "b", PUSH_COUNTER));
    TEST_ASSERT_EQUAL_INT(-EEXIST, push_group(g, PUSH_REPLACE_ALL, "db", PUSH_GAUGE));
    expect_names("bbd");
    TEST_ASSERT_EQUAL_INT(-EINVAL, push_group(g, PUSH_REPLACE_ALL, "d!", PUSH_COUNTER));
    char *page = fixture_scrape(store);
    TEST_ASSERT_NOT_NULL(strstr(page, "# TYPE d gauge\n"));
    free(page);
    TEST_ASSERT_EQUAL_INT(0, push_group(g, PUSH_REPLACE_ALL, "", PUSH_GAUGE));
    expect_names("b");
    push_owner_unref(store, g);
    push_owner_unref(store, other);
}

static void test_groups_show_push_times_and_an_instance(void) {
    struct push_owner *g = fixture_group(store, "j");
    fixture_push(store, g, "push_time_seconds", PUSH_GAUGE, PUSH_SET, 3);
    fixture_push(store, g, "c", PUSH_COUNTER, PUSH_SET, 5);
    char *page = fixture_scrape(store);
    TEST_ASSERT_NOT_NULL(strstr(page, "c{instance=\"\",job=\"j\"} 5\n"));
    TEST_ASSERT_NOT_NULL(strstr(page, "push_failure_time_seconds{instance=\"\",job=\"j\"} 0\n"));
    TEST_ASSERT_NOT_NULL(strstr(page, "push_time_seconds{instance=\"\",job=\"j\"} 1"));
    free(page);
    push_owner_note_failure(store, g, clock_wall_seconds());
    TEST_ASSERT_GREATER_THAN(1e9, push_owner_view(store, g).push_failure_seconds);
    push_owner_unref(store, g);
    fixture_ms += 1000000000;
    push_store_expire(store, SIZE_MAX);
    expect_names("c");
    push_store_remove_if(store, NULL, NULL);
    fixture_expect(store, "");
    TEST_ASSERT_NULL(push_store_next_owner(store, NULL));
}

static void test_summary_changes_its_quantiles(void) {
    struct push_owner *g = fixture_group(store, "j");
    struct push_update update = {
        .name = "s",
        .type = PUSH_SUMMARY,
        .values = (const double[]){10, 20, 4, 55},
        .n_values = 4,
        .bounds = (const double[]){0.5, 0.9},
        .n_bounds = 2,
        .ttl_ms = PUSH_TTL_DEFAULT,
    };
    TEST_ASSERT_EQUAL_INT(0, fixture_apply(store, g, PUSH_REPLACE_FAMILIES, 0, &update, 1));
    update.values = (const double[]){11, 6, 66};
    update.n_values = 3;
    update.n_bounds = 1;
    TEST_ASSERT_EQUAL_INT(0, fixture_apply(store, g, PUSH_MERGE, 0, &update, 1));
    char *page = fixture_scrape(store);
    TEST_ASSERT_NOT_NULL(strstr(page, "# TYPE s summary\n"
                                      "s{instance=\"\",job=\"j\",quantile=\"0.5\"} 11\n"
                                      "s_sum{instance=\"\",job=\"j\"} 66\n"
                                      "s_count{instance=\"\",job=\"j\"} 6\n"));
    TEST_ASSERT_NULL(strstr(page, "quantile=\"0.9\""));
    free(page);
    TEST_ASSERT_EQUAL_UINT64(1, push_store_stats(store).n_series);
    push_owner_unref(store, g);
}

/* The same series with one set of buckets, then with another, in one body. */
static void test_other_buckets_twice_in_a_batch(void) {
    static const double figures[] = {1, 2, 3, 4}, one = 1;
    static const double bounds[] = {1, 2};
    struct push_update histogram = {
        .name = "h",
        .type = PUSH_HISTOGRAM,
        .op = PUSH_SET,
        .values = figures,
        .n_values = 3,
        .bounds = bounds,
        .n_bounds = 1,
        .ttl_ms = PUSH_TTL_DEFAULT,
    };
    struct push_update wider = histogram;
    wider.n_values = 4;
    wider.n_bounds = 2;
    struct push_update after = {.name = "waap_x",
                                .type = PUSH_GAUGE,
                                .values = &one,
                                .n_values = 1,
                                .ttl_ms = PUSH_TTL_DEFAULT};
    const struct push_update batch[] = {histogram, wider, after};
    static const enum push_mode modes[] = {PUSH_MERGE, PUSH_REPLACE_FAMILIES, PUSH_REPLACE_ALL};
    struct push_owner *group = fixture_group(store, "g");
    for (size_t i = 0; i < 3; i++) {
        TEST_ASSERT_EQUAL_INT(-EINVAL, fixture_apply(store, group, modes[i], 0, batch, 3));
        TEST_ASSERT_EQUAL_STRING("h{instance=\"\",job=\"g\"}: given twice", fixture_err.text);
        TEST_ASSERT_EQUAL_UINT64(0, push_store_stats(store).n_series);
    }
    /* Where it was there before, too. */
    TEST_ASSERT_EQUAL_INT(0, fixture_apply(store, group, PUSH_MERGE, 0, &histogram, 1));
    const struct push_update narrow[] = {histogram, wider, histogram};
    for (size_t i = 0; i < 3; i++) {
        TEST_ASSERT_EQUAL_INT(-EINVAL, fixture_apply(store, group, modes[i], 0, narrow, 2));
        TEST_ASSERT_EQUAL_INT(-EINVAL, fixture_apply(store, group, modes[i], 0, narrow + 1, 2));
        TEST_ASSERT_EQUAL_UINT64(1, push_store_stats(store).n_series);
    }
    TEST_ASSERT_EQUAL_INT(0, fixture_apply(store, group, PUSH_REPLACE_ALL, 0, &wider, 1));
    push_owner_unref(store, group);
}

static void test_equal_series_of_two_groups(void) {
    struct push_owner *g = fixture_group(store, "j");
    struct push_owner *other = NULL;
    struct label more[] = {{"x", "1"}};
    struct push_identity identity = {.job = "j", .labels = more, .n_labels = 1, .group = true};
    struct error err;
    TEST_ASSERT_EQUAL_INT(0, push_store_owner(store, &identity, &other, &err));
    static const double one = 1;
    struct push_update update = {
        .name = "m",
        .type = PUSH_GAUGE,
        .values = &one,
        .n_values = 1,
        .ttl_ms = PUSH_TTL_DEFAULT,
    };
    TEST_ASSERT_EQUAL_INT(0, fixture_apply(store, other, PUSH_MERGE, 0, &update, 1));
    update.labels = more;
    update.n_labels = 1;
    TEST_ASSERT_EQUAL_INT(-EEXIST, fixture_apply(store, g, PUSH_MERGE, 0, &update, 1));
    TEST_ASSERT_EQUAL_STRING(
        "m{instance=\"\",job=\"j\",x=\"1\"}: is a series of group job=j x=1, not of group job=j",
        fixture_err.text);
    push_owner_unref(store, g);
    push_owner_unref(store, other);
}

static void test_limits(void) {
    struct push_owner *owners[3];
    char name[16];
    static const char *const names[] = {"a", "b", "c"};
    size_t n_refused = 0;
    for (size_t k = 0; k < 3; k++) {
        owners[k] = fixture_plugin(store, names[k]);
        for (int i = 0; i < 60; i++) {
            snprintf(name, sizeof(name), "%s%d", names[k], i);
            int r = fixture_push(store, owners[k], name, PUSH_GAUGE, PUSH_SET, 1);
            TEST_ASSERT_TRUE(r == 0 || r == -E2BIG);
            n_refused += r < 0 ? 1 : 0;
        }
    }
    TEST_ASSERT_EQUAL_UINT64(30, n_refused);
    TEST_ASSERT_EQUAL_UINT64(150, push_store_stats(store).n_series);
    for (size_t i = 0; i < PUSH_REASONS; i++) {
        struct push_refused refused = push_store_stats(store).refused[i];
        TEST_ASSERT_EQUAL_UINT64(strcmp(refused.reason, "limit") == 0 ? 30 : 0, refused.n);
    }
    for (size_t k = 0; k < 3; k++) {
        push_owner_unref(store, owners[k]);
    }
}

static void test_times_to_live(void) {
    struct push_owner *a = fixture_plugin(store, "a");
    static const double one = 1;
    struct push_update updates[] = {
        {.name = "d", .type = PUSH_GAUGE, .values = &one, .n_values = 1, .ttl_ms = -1},
        {.name = "e", .type = PUSH_GAUGE, .values = &one, .n_values = 1, .ttl_ms = 0},
        {.name = "s", .type = PUSH_GAUGE, .values = &one, .n_values = 1, .ttl_ms = 5000},
    };
    TEST_ASSERT_EQUAL_INT(0, fixture_apply(store, a, PUSH_MERGE, 0, updates, 3));
    fixture_ms += 5000;
    push_store_expire(store, SIZE_MAX);
    expect_names("des");
    fixture_ms += 1;
    push_store_expire(store, SIZE_MAX);
    expect_names("de");
    fixture_ms += 1000000;
    push_store_expire(store, SIZE_MAX);
    expect_names("de"); /* it is connected */
    push_owner_unref(store, a);
    fixture_ms += 300000;
    push_store_expire(store, SIZE_MAX);
    expect_names("de");
    fixture_ms += 1;
    push_store_expire(store, SIZE_MAX);
    expect_names("e");
    TEST_ASSERT_EQUAL_UINT64(2, push_store_stats(store).expired);
}

/* A family may get its help after its first use, but no other than it would have got then. */
static void test_help_that_comes_later(void) {
    struct push_owner *a = fixture_plugin(store, "a");
    char help[PUSH_MAX_HELP + 2]; /* one more than is allowed */
    static const double one = 1;
    struct push_update update = {
        .name = "g", .type = PUSH_GAUGE, .values = &one, .n_values = 1, .ttl_ms = -1};
    TEST_ASSERT_EQUAL_INT(0, fixture_apply(store, a, PUSH_MERGE, 0, &update, 1));
    memset(help, 'x', sizeof(help) - 1);
    help[sizeof(help) - 1] = '\0';
    update.help = help;
    TEST_ASSERT_EQUAL_INT(-E2BIG, fixture_apply(store, a, PUSH_MERGE, 0, &update, 1));
    update.help = "\xff";
    TEST_ASSERT_EQUAL_INT(-EINVAL, fixture_apply(store, a, PUSH_MERGE, 0, &update, 1));
    help[sizeof(help) - 2] = '\0';
    update.help = help;
    TEST_ASSERT_EQUAL_INT(0, fixture_apply(store, a, PUSH_MERGE, 0, &update, 1));
    push_owner_unref(store, a);
}
