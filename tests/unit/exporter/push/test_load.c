#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <unistd.h>

#include "exporter/core/clock.h"
#include "exporter/push/table.h"
#include "tests/unit/exporter/push/push_fixture.h"

static struct push_store *store;

static struct push_store *create(const char *path) {
    struct push_store *made = NULL;
    struct error err = {0};
    struct push_store_config config = fixture_config();
    config.table_path = path;
    int r = push_store_create(&config, &made, &err);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, r, err.text);
    return made;
}

void setUp(void) {
    store = create(NULL);
}

void tearDown(void) {
    push_store_destroy(store);
}

static void push(struct push_owner *owner, const struct push_update *update, uint64_t start) {
    int r = fixture_apply(store, owner, PUSH_MERGE, start, update, 1);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, r, fixture_err.text);
}

/* One of everything. */
static void fill(void) {
    struct error err;
    struct push_owner *a = fixture_plugin(store, "a");
    struct push_owner *g = fixture_group(store, "nightly");
    static const struct label labels[] = {{"cam", "top"}, {"x", "\"\\\n"}};
    static const double bounds[] = {0.5, 2};
    static const double observed[] = {0.1, 1, 3, 4};
    static const double quantiles[] = {10, 20, 5, 99};
    static const double total = 41;
    push(a,
         &(struct push_update){.name = "h",
                               .type = PUSH_HISTOGRAM,
                               .op = PUSH_OBSERVE,
                               .help = "How long",
                               .labels = labels,
                               .n_labels = 2,
                               .values = observed,
                               .n_values = 4,
                               .bounds = bounds,
                               .n_bounds = 2,
                               .ttl_ms = 7000},
         0);
    push(g,
         &(struct push_update){.name = "s",
                               .type = PUSH_SUMMARY,
                               .values = quantiles,
                               .n_values = 4,
                               .bounds = bounds,
                               .n_bounds = 2,
                               .ttl_ms = PUSH_TTL_DEFAULT},
         0);
    push(a,
         &(struct push_update){.name = "n",
                               .type = PUSH_COUNTER,
                               .op = PUSH_TOTAL,
                               .values = &total,
                               .n_values = 1,
                               .ttl_ms = PUSH_TTL_DEFAULT},
         77);
    fixture_push(store, a, "fps", PUSH_RATE, PUSH_INC, 5);
    fixture_push(store, a, "gone", PUSH_GAUGE, PUSH_SET, 1);
    fixture_push(store, g, "plain", PUSH_COUNTER, PUSH_SET, 3);
    fixture_push(store, g, "fps", PUSH_GAUGE, PUSH_SET, 7); /* beside the rate */
    push_owner_note_failure(store, g, clock_wall_seconds());
    TEST_ASSERT_EQUAL_INT(0, push_store_put_note(store, a, "res", "720", &err));
    TEST_ASSERT_EQUAL_INT(0, push_store_put_note(store, a, "res", "480", &err));
    push_owner_unref(store, a);
    push_owner_unref(store, g);
}

static bool is_gone(const struct push_series_view *series, void *context) {
    (void)context;
    return strcmp(series->name, "gone") == 0;
}

/* Puts pages into another store, which replaces ours. */
static struct push_load_report load(const void *pages, size_t len) {
    struct push_load_report report;
    struct push_store *other = create(NULL);
    push_store_load(other, pages, len, &report);
    push_store_destroy(store);
    store = other;
    return report;
}

static struct push_load_report reload(size_t max_len) {
    size_t len = 0;
    const void *pages = fixture_pages(store, &len);
    return load(pages, len < max_len ? len : max_len);
}

static void test_everything_comes_back(void) {
    fill();
    TEST_ASSERT_EQUAL_UINT64(1, push_store_remove_if(store, is_gone, NULL));
    char *before = fixture_scrape(store);
    struct push_load_report report = reload(SIZE_MAX);
    push_store_expire(store, SIZE_MAX); /* the time in which we were not there does not count */
    char *after = fixture_scrape(store);
    TEST_ASSERT_EQUAL_STRING(before, after);
    TEST_ASSERT_EQUAL_UINT64(7, report.n_series);
    TEST_ASSERT_EQUAL_UINT64(0, report.n_dropped + report.n_damaged_pages);
    free(before);
    free(after);
    struct push_owner *a = fixture_plugin(store, "a");
    TEST_ASSERT_EQUAL_STRING("480", push_store_note(store, a, "res"));
    struct push_update other = {
        .name = "n", .type = PUSH_GAUGE, .op = PUSH_SET, .values = &(double){1}, .n_values = 1};
    TEST_ASSERT_EQUAL_INT(-EEXIST, fixture_apply(store, a, PUSH_MERGE, 0, &other, 1));
    fixture_ms += 7001;
    push_store_expire(store, SIZE_MAX);
    char *page = fixture_scrape(store);
    TEST_ASSERT_NULL(strstr(page, "h_bucket"));
    TEST_ASSERT_NOT_NULL(strstr(page, "n_total{plugin=\"a\"} 41\n"));
    free(page);
    push_owner_unref(store, a);
}

/* A counter's name gets an ending; bounds mean nothing to a gauge. */
static void test_names_and_bounds_at_their_limits(void) {
    char name[PUSH_MAX_NAME + 1];
    memset(name, 'n', PUSH_MAX_NAME);
    name[PUSH_MAX_NAME] = '\0';
    struct push_owner *a = fixture_plugin(store, "a");
    TEST_ASSERT_EQUAL_INT(0, fixture_push(store, a, name, PUSH_COUNTER, PUSH_INC, 1));
    push(a,
         &(struct push_update){.name = "g",
                               .type = PUSH_GAUGE,
                               .op = PUSH_SET,
                               .values = &(double){1},
                               .n_values = 1,
                               .bounds = (const double[]){1, 2},
                               .n_bounds = 2,
                               .ttl_ms = PUSH_TTL_DEFAULT},
         0);
    push_owner_unref(store, a);
    struct push_load_report report = reload(SIZE_MAX);
    TEST_ASSERT_EQUAL_UINT64(2, report.n_series);
    TEST_ASSERT_EQUAL_UINT64(0, report.n_dropped + report.n_damaged_pages);
}

static void test_totals_go_on(void) {
    fill();
    reload(SIZE_MAX);
    reload(SIZE_MAX);
    struct push_owner *a = fixture_plugin(store, "a");
    static const double totals[] = {41, 42};
    for (int i = 0; i < 2; i++) {
        push(a,
             &(struct push_update){.name = "n",
                                   .op = PUSH_TOTAL,
                                   .values = &totals[i],
                                   .n_values = 1,
                                   .ttl_ms = PUSH_TTL_DEFAULT},
             77);
    }
    char *page = fixture_scrape(store);
    TEST_ASSERT_NOT_NULL(strstr(page, "n_total{plugin=\"a\"} 42\n"));
    free(page);
    push_owner_unref(store, a);
}

static void test_help_that_came_later(void) {
    struct push_owner *a = fixture_plugin(store, "a");
    static const double one = 1;
    fixture_push(store, a, "g", PUSH_GAUGE, PUSH_SET, 1);
    push(a,
         &(struct push_update){
             .name = "g", .help = "Words", .values = &one, .n_values = 1, .ttl_ms = -1},
         0);
    push_owner_unref(store, a);
    reload(SIZE_MAX);
    struct snapshot snapshot CLEANUP_SNAPSHOT = {0};
    struct push_reader *reader = push_reader_create(store);
    push_reader_collect(reader, &snapshot);
    TEST_ASSERT_EQUAL_STRING("Words", snapshot.families[0].desc->help);
    push_reader_destroy(reader);
}

/* Every beginning of the pages, however it cuts an entry, is loaded or left out. */
static void test_cut_off_anywhere(void) {
    fill();
    size_t len = 0;
    const void *pages = fixture_pages(store, &len);
    size_t n_before = 0;
    for (size_t n = 0; n <= len; n += 8) {
        struct push_store *other = create(NULL);
        struct push_load_report report;
        char *copy = malloc(n + 1);
        memcpy(copy, pages, n);
        push_store_load(other, copy, n, &report);
        TEST_ASSERT_TRUE(report.n_series >= n_before);
        n_before = report.n_series;
        free(copy);
        push_store_destroy(other);
    }
    TEST_ASSERT_EQUAL_UINT64(8, n_before);
}

static void test_wrong_entries_are_dropped(void) {
    struct push_store *other = create(NULL);
    char *memory = calloc(1, 4096);
    struct push_load_report report;
    push_store_load(other, memory, 4096, &report);
    TEST_ASSERT_EQUAL_UINT64(0, report.n_series + report.n_dropped + report.n_damaged_pages);
    memset(memory, 0xff, 4096);
    push_store_load(other, memory, 4096, &report);
    TEST_ASSERT_EQUAL_UINT64(1, report.n_damaged_pages);
    free(memory);
    push_store_destroy(other);
}

/* A file may say of a plugin that it is none. */
static void test_an_owner_without_name(void) {
    struct push_table *table = NULL;
    struct push_entry *entry;
    struct push_load_report report;
    struct error err;
    const struct push_entry_spec owner = {
        .type = PUSH_ENTRY_OWNER, .n_words = 7, .key = {{"job\0a", 6}}};
    TEST_ASSERT_EQUAL_INT(0, push_table_create(NULL, 1 << 20, &table, &err));
    TEST_ASSERT_EQUAL_INT(0, push_table_add(table, &owner, &entry, &err));
    push_table_commit(table, entry);
    size_t len = 0;
    const void *pages = push_table_pages(table, &len);
    push_store_load(store, pages, len, &report);
    TEST_ASSERT_EQUAL_UINT64(1, report.n_dropped);
    push_table_destroy(table);
}

/* Times of pushes are words, which no check covers. */
static void test_damaged_times(void) {
    static const double damaged[] = {1e300, -1, INFINITY, NAN};
    for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++) {
        struct push_owner *g = fixture_group(store, "nightly");
        fixture_push(store, g, "g", PUSH_GAUGE, PUSH_SET, 3);
        push_owner_note_failure(store, g, clock_wall_seconds());
        struct push_owner_view view = push_owner_view(store, g);
        push_owner_unref(store, g);
        size_t len = 0;
        char *pages = fixture_pages(store, &len);
        for (size_t at = 0; at < len; at += sizeof(double)) {
            if (memcmp(pages + at, &view.push_seconds, sizeof(double)) == 0 ||
                memcmp(pages + at, &view.push_failure_seconds, sizeof(double)) == 0) {
                memcpy(pages + at, &damaged[i], sizeof(double));
            }
        }
        TEST_ASSERT_EQUAL_UINT64(1, load(pages, len).n_series);
        view = push_owner_view(store, push_store_next_owner(store, NULL));
        TEST_ASSERT_EQUAL_DOUBLE(0, view.push_seconds);
        TEST_ASSERT_EQUAL_DOUBLE(0, view.push_failure_seconds);
    }
}

/* Series that come and go. */
static void churn(void) {
    struct push_owner *a = fixture_plugin(store, "a");
    struct push_owner *g = fixture_group(store, "churn");
    char name[32];
    static const double one = 1;
    for (int i = 0; i < 20000; i++) {
        snprintf(name, sizeof(name), "churn_%d", i);
        struct push_update update = {
            .name = name, .type = PUSH_GAUGE, .values = &one, .n_values = 1, .ttl_ms = -1};
        TEST_ASSERT_EQUAL_INT(0, fixture_apply(store, g, PUSH_REPLACE_ALL, 0, &update, 1));
        TEST_ASSERT_EQUAL_INT(0, fixture_push(store, a, "kept", PUSH_COUNTER, PUSH_INC, 1));
    }
    push_owner_unref(store, a);
    push_owner_unref(store, g);
}

static void test_what_comes_and_goes_needs_no_room(void) {
    churn();
    size_t len = 0;
    fixture_pages(store, &len);
    TEST_ASSERT_LESS_THAN_size_t(3 * 4096, len);
    reload(SIZE_MAX);
    char *page = fixture_scrape(store);
    TEST_ASSERT_NOT_NULL(strstr(page, "kept_total{plugin=\"a\"} 20000\n"));
    TEST_ASSERT_NOT_NULL(strstr(page, "churn_19999{instance=\"\",job=\"churn\"} 1\n"));
    free(page);
    TEST_ASSERT_EQUAL_UINT64(2, push_store_stats(store).n_series);
}

/* A copy in steps is as good if nothing is pushed between them; else it is still sound. */
static void test_copies_in_steps(void) {
    fill();
    char *before CLEANUP_FREE = fixture_scrape(store);
    struct buf pages CLEANUP_BUF = {0};
    while (push_store_copy_some(store, &pages, 100)) {
    }
    load(pages.data, pages.len);
    char *after CLEANUP_FREE = fixture_scrape(store);
    TEST_ASSERT_EQUAL_STRING(before, after);
    struct push_owner *a = fixture_plugin(store, "a");
    char name[16];
    buf_reset(&pages);
    for (int i = 0; i < 40 && push_store_copy_some(store, &pages, 100); i++) {
        snprintf(name, sizeof(name), "m%d", i);
        fixture_push(store, a, name, PUSH_GAUGE, PUSH_SET, 1);
    }
    while (push_store_copy_some(store, &pages, 100)) {
    }
    push_owner_unref(store, a);
    TEST_ASSERT_GREATER_OR_EQUAL_size_t(7, load(pages.data, pages.len).n_series);
}

/* Entries of families and of series take 64 bytes each, and so fill pages. */
static void push_many(struct push_owner *owner, char first, double value) {
    static const struct label label = {"pad", "0123456789abcdef"};
    char name[40];
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "%c%038d", first, i);
        push(owner,
             &(struct push_update){.name = name,
                                   .type = PUSH_GAUGE,
                                   .labels = &label,
                                   .n_labels = 1,
                                   .values = &value,
                                   .n_values = 1,
                                   .ttl_ms = PUSH_TTL_DEFAULT},
             0);
    }
}

/* A copy in two steps: between them a family went, and another took its place in the table. */
static void test_a_copy_confuses_no_places(void) {
    char first[40];
    memset(first, 'f', sizeof(first) - 1);
    first[sizeof(first) - 1] = '\0';
    struct push_store_config config = fixture_config();
    config.limits.max_owner_series = 1000;
    push_store_configure(store, &config);
    struct push_owner *a = fixture_plugin(store, "a");
    fixture_push(store, a, first, PUSH_GAUGE, PUSH_SET, 1);
    push_many(a, 'm', 1);
    struct buf pages CLEANUP_BUF = {0};
    TEST_ASSERT_TRUE(push_store_copy_some(store, &pages, 4096));
    TEST_ASSERT_EQUAL_size_t(1, push_store_remove_if(store, fixture_is_named, first));
    push_many(a, 'n', 2);
    TEST_ASSERT_FALSE(push_store_copy_some(store, &pages, SIZE_MAX));
    push_owner_unref(store, a);
    TEST_ASSERT_EQUAL_size_t(1, load(pages.data, pages.len).n_dropped);
    char *page CLEANUP_FREE = fixture_scrape(store);
    strcat(strcpy(pages.data, first), "{pad="); /* with a label that it never had */
    TEST_ASSERT_NULL(strstr(page, pages.data));
}

/* What is asked for while the table is full of others' pushes. */
static void test_pushes_leave_room_to_owners(void) {
    struct push_store_config config = fixture_config();
    config.limits.max_owner_series = 10000;
    config.table_bytes = 128 << 10;
    struct push_store *small = NULL;
    TEST_ASSERT_EQUAL_INT(0, push_store_create(&config, &small, NULL));
    struct push_owner *a = fixture_plugin(small, "a");
    char name[32];
    int r = 0;
    for (int i = 0; r == 0; i++) {
        TEST_ASSERT_LESS_THAN_INT_MESSAGE(10000, i, "the table has no end");
        snprintf(name, sizeof(name), "m%d", i);
        r = fixture_push(small, a, name, PUSH_GAUGE, PUSH_SET, i);
    }
    TEST_ASSERT_EQUAL_INT(-ENOSPC, r);
    TEST_ASSERT_NOT_NULL(strstr(fixture_err.text, "push.table-size"));
    struct push_owner *late = fixture_plugin(small, "late");
    TEST_ASSERT_EQUAL_INT(0, push_store_put_note(small, late, "knob", "1", NULL));
    TEST_ASSERT_EQUAL_INT(-ENOSPC, fixture_push(small, late, "m", PUSH_GAUGE, PUSH_SET, 1));
    for (int i = 0; i < 5; i++) {
        snprintf(name, sizeof(name), "m%d", i);
        TEST_ASSERT_EQUAL_size_t(1, push_store_remove_if(small, fixture_is_named, name));
    }
    TEST_ASSERT_EQUAL_INT(0, fixture_push(small, late, "m", PUSH_GAUGE, PUSH_SET, 1));
    push_store_destroy(small);
}

/* Which starts were heard of last is known after a copy and a restart, too. */
static void test_the_latest_starts_are_kept(void) {
    struct push_owner *a = fixture_plugin(store, "a");
    static const double one = 1;
    const struct push_update update = {.name = "n",
                                       .type = PUSH_COUNTER,
                                       .op = PUSH_TOTAL,
                                       .values = &one,
                                       .n_values = 1,
                                       .ttl_ms = PUSH_TTL_DEFAULT};
    for (uint64_t start = 1; start <= 64; start++) {
        push(a, &update, start);
    }
    churn();
    reload(SIZE_MAX);
    a = fixture_plugin(store, "a");
    push(a, &update, 65); /* replaces the first */
    for (uint64_t start = 2; start <= 64; start++) {
        push(a, &update, start);
    }
    char *page CLEANUP_FREE = fixture_scrape(store);
    TEST_ASSERT_NOT_NULL(strstr(page, "n_total{plugin=\"a\"} 65\n"));
}

/* A long-lived process beside many short ones: it came first, but was heard of last. */
static void test_the_latest_start_is_not_the_newest(void) {
    struct push_owner *a = fixture_plugin(store, "a");
    double total = 1;
    const struct push_update update = {.name = "n",
                                       .type = PUSH_COUNTER,
                                       .op = PUSH_TOTAL,
                                       .values = &total,
                                       .n_values = 1,
                                       .ttl_ms = PUSH_TTL_DEFAULT};
    for (uint64_t start = 1; start <= 64; start++) {
        push(a, &update, start);
    }
    total = 1000;
    push(a, &update, 1);
    reload(SIZE_MAX);
    a = fixture_plugin(store, "a");
    total = 1;
    push(a, &update, 65);
    total = 1000;
    push(a, &update, 1); /* said before: counts no more */
    char *page CLEANUP_FREE = fixture_scrape(store);
    TEST_ASSERT_NOT_NULL(strstr(page, "n_total{plugin=\"a\"} 1064\n"));
}

/* A table that is full refuses what would be added; what is there goes on. */
static void test_full_table(void) {
    struct push_store_config config = fixture_config();
    struct error err;
    config.table_bytes = 8 * 4096;
    config.limits.max_owner_series = 10000;
    struct push_store *small = NULL;
    TEST_ASSERT_EQUAL_INT(0, push_store_create(&config, &small, &err));
    struct push_owner *a = fixture_plugin(small, "a");
    fixture_push(small, a, "c", PUSH_COUNTER, PUSH_INC, 1);
    char name[16];
    int r = 0;
    int n = 0;
    for (; r == 0 && n < 1000; n++) {
        snprintf(name, sizeof(name), "g%d", n);
        r = fixture_push(small, a, name, PUSH_GAUGE, PUSH_SET, 1);
    }
    TEST_ASSERT_EQUAL_INT(-ENOSPC, r);
    TEST_ASSERT_EQUAL_INT(0, fixture_push(small, a, "c", PUSH_COUNTER, PUSH_INC, 1));
    char *page = fixture_scrape(small);
    TEST_ASSERT_NOT_NULL(strstr(page, "c_total{plugin=\"a\"} 2\n"));
    TEST_ASSERT_NULL(strstr(page, name));
    free(page);
    push_store_destroy(small);
}
