#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/push/claim.h"
#include "exporter/push/store_private.h"
#include "tests/unit/exporter/push/push_fixture.h"

enum { TABLE_BYTES = 128 << 10 };

static struct push_store *store;
static char dir[] = "/tmp/push_persist.XXXXXX", path[64], new_path[80];

void setUp(void) {
    struct error err;
    strcpy(dir + strlen(dir) - 6, "XXXXXX");
    TEST_ASSERT_NOT_NULL(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/t", dir);
    snprintf(new_path, sizeof(new_path), "%s.new", path);
    struct push_store_config config = fixture_config();
    config.table_path = path;
    config.table_bytes = TABLE_BYTES;
    config.limits.max_value_len = 1000;
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, push_store_create(&config, &store, &err), err.text);
    TEST_ASSERT_EQUAL_INT(0, push_store_publish(store, &err));
}

void tearDown(void) {
    push_store_destroy(store);
    rmdir(new_path);
    unlink(path);
    rmdir(dir);
}

/* `n` series that take about 1 KiB each. */
static int push_large(struct push_owner *owner, enum push_mode mode, size_t n, char first) {
    static char values[50][900];
    struct label labels[50];
    struct push_update updates[50];
    static const double one = 1;
    for (size_t i = 0; i < n; i++) {
        memset(values[i], 'x', sizeof(values[i]) - 1);
        values[i][0] = first;
        values[i][1] = (char)('0' + i);
        labels[i] = (struct label){"x", values[i]};
        updates[i] = (struct push_update){
            .name = "m",
            .type = PUSH_GAUGE,
            .op = PUSH_SET,
            .labels = &labels[i],
            .n_labels = 1,
            .values = &one,
            .n_values = 1,
            .ttl_ms = PUSH_TTL_DEFAULT,
        };
    }
    return fixture_apply(store, owner, mode, 0, updates, n);
}

static void test_what_comes_and_goes_needs_no_room(void) {
    for (int i = 0; i < 2000; i++) {
        struct push_owner *owner = fixture_plugin(store, "p");
        int r = push_large(owner, PUSH_MERGE, 1, 'a');
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, r, fixture_err.text);
        push_store_remove_owner(store, owner);
        push_owner_unref(store, owner);
    }
}

/* More than half is alive, but what is dead is enough for what comes. */
static void test_a_batch_makes_room_for_itself(void) {
    struct push_owner *a = fixture_plugin(store, "a"), *b = fixture_plugin(store, "b");
    TEST_ASSERT_EQUAL_INT(0, push_large(a, PUSH_MERGE, 50, 'a'));
    for (char first = 'a'; first <= 'z'; first++) {
        int r = push_large(b, PUSH_REPLACE_ALL, 25, first);
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, r, fixture_err.text);
    }
    TEST_ASSERT_EQUAL_UINT64(75, push_store_stats(store).n_series);
    push_owner_unref(store, a);
    push_owner_unref(store, b);
}

/* Who comes does not find it full, nor has it copied at once. */
static void test_pushes_leave_room_to_owners(void) {
    struct push_store_config config = fixture_config();
    config.limits.max_series = config.limits.max_owner_series = 10000;
    push_store_configure(store, &config);
    struct push_owner *a = fixture_plugin(store, "a");
    char name[32];
    int r = 0;
    for (int i = 0; r == 0; i++) {
        TEST_ASSERT_LESS_THAN_INT_MESSAGE(10000, i, "the table has no end");
        snprintf(name, sizeof(name), "m%d", i);
        r = fixture_push(store, a, name, PUSH_GAUGE, PUSH_SET, i);
    }
    TEST_ASSERT_EQUAL_INT(-ENOSPC, r);
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof(name), "m%d", i);
        TEST_ASSERT_TRUE(push_store_remove_series(store, a, &(struct push_update){.name = name}));
    }
    const struct push_table *before = store->table;
    struct push_owner *late = fixture_plugin(store, "late");
    TEST_ASSERT_EQUAL_INT(0, push_store_put_note(store, late, "knob", "1", NULL));
    TEST_ASSERT_EQUAL_PTR(before, store->table);
    while (push_store_tidy(store, 1)) { /* in time */
    }
    TEST_ASSERT_NOT_EQUAL(before, store->table);
    TEST_ASSERT_EQUAL_INT(0, fixture_push(store, late, "m", PUSH_GAUGE, PUSH_SET, 1));
    push_owner_unref(store, a);
    push_owner_unref(store, late);
}

static void test_a_copy_that_fails_is_tried_again(void) {
    struct push_owner *owner = fixture_plugin(store, "p");
    TEST_ASSERT_EQUAL_INT(0, mkdir(new_path, 0700));
    int r = 0;
    for (char first = 'a'; r == 0; first++) {
        TEST_ASSERT_TRUE_MESSAGE(first <= 'z', "the table has no end");
        r = push_large(owner, PUSH_REPLACE_ALL, 25, first);
    }
    TEST_ASSERT_EQUAL_INT(-ENOSPC, r);
    TEST_ASSERT_EQUAL_INT(0, rmdir(new_path));
    TEST_ASSERT_EQUAL_INT(-ENOSPC, push_large(owner, PUSH_REPLACE_ALL, 25, 'A'));
    fixture_ms += 60 * 1000;
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, push_large(owner, PUSH_REPLACE_ALL, 25, 'A'),
                                  fixture_err.text);
    push_owner_unref(store, owner);
}

static struct push_store *load_again(void) {
    struct push_store *other = NULL;
    struct push_store_config config = fixture_config();
    struct push_load_report report;
    TEST_ASSERT_EQUAL_INT(0, push_store_create(&config, &other, NULL));
    size_t len;
    const void *pages = fixture_pages(store, &len);
    push_store_load(other, pages, len, &report);
    TEST_ASSERT_EQUAL_UINT64(0, report.n_dropped);
    return other;
}

/* Nothing is confused with something else, however much has been there before. */
static void test_numbers_do_not_run_out(void) {
    struct push_owner *a = fixture_plugin(store, "a");
    TEST_ASSERT_EQUAL_INT(0, fixture_push(store, a, "n", PUSH_COUNTER, PUSH_TOTAL, 5));
    store->last_id = UINT32_MAX - 200;
    for (int i = 0; i < 1000; i++) {
        struct push_owner *p = fixture_plugin(store, "p");
        TEST_ASSERT_EQUAL_INT(0, fixture_push(store, p, "n", PUSH_COUNTER, PUSH_TOTAL, i));
        TEST_ASSERT_EQUAL_INT(0, push_large(p, PUSH_MERGE, 1, 'a'));
        TEST_ASSERT_EQUAL_INT(0, push_store_put_note(store, p, "knob", "1", NULL));
        push_store_remove_owner(store, p);
        push_owner_unref(store, p);
    }
    TEST_ASSERT_LESS_THAN_UINT32(1000, store->last_id);
    struct push_owner *b = fixture_plugin(store, "b");
    TEST_ASSERT_EQUAL_INT(0, fixture_push(store, b, "n", PUSH_COUNTER, PUSH_TOTAL, 7));
    TEST_ASSERT_EQUAL_INT(0, push_store_put_note(store, b, "knob", "2", NULL));
    struct push_store *other = load_again();
    fixture_expect(other, "# TYPE n_total counter\n"
                          "n_total{plugin=\"a\"} 5\nn_total{plugin=\"b\"} 7\n");
    struct push_owner *again = fixture_plugin(other, "b");
    TEST_ASSERT_EQUAL_STRING("2", push_store_note(other, again, "knob"));
    TEST_ASSERT_EQUAL_INT(0, fixture_push(other, again, "n", PUSH_COUNTER, PUSH_TOTAL, 8));
    fixture_expect(other, "# TYPE n_total counter\n"
                          "n_total{plugin=\"a\"} 5\nn_total{plugin=\"b\"} 8\n");
    push_owner_unref(other, again);
    push_store_destroy(other);
    push_owner_unref(store, a);
    push_owner_unref(store, b);
}

static void test_refused_batches_take_no_numbers(void) {
    struct push_owner *owner = fixture_plugin(store, "p");
    uint32_t before = store->last_id;
    for (int i = 0; i < 10; i++) {
        TEST_ASSERT_EQUAL_INT(0, push_large(owner, PUSH_REPLACE_ALL, 1, 'a'));
        TEST_ASSERT_EQUAL_INT(-E2BIG, push_large(owner, PUSH_MERGE, 50, 'b'));
    }
    TEST_ASSERT_LESS_THAN_UINT32(before + 30, store->last_id);
    push_owner_unref(store, owner);
}

/* ---- who pays ---- */

static struct push_owner *claimed(const char *plugin, const char *who) {
    struct push_owner *owner = fixture_plugin(store, plugin);
    TEST_ASSERT_EQUAL_INT(0, push_claim(store, owner, who, false, NULL));
    return owner;
}

static int push_start(struct push_owner *owner, uint64_t start, size_t n) {
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    static const double bounds[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, figures[12] = {0};
    struct push_update updates[8];
    for (size_t i = 0; i < n; i++) {
        updates[i] = (struct push_update){
            .name = names[i],
            .type = PUSH_HISTOGRAM,
            .op = PUSH_TOTAL,
            .values = figures,
            .n_values = 12,
            .bounds = bounds,
            .n_bounds = 10,
            .ttl_ms = PUSH_TTL_DEFAULT,
        };
    }
    return fixture_apply(store, owner, PUSH_MERGE, start, updates, n);
}

/* Starts that have gone make room; those that are there do not, and are told so. */
static void test_totals_of_one_peer_leave_room_to_others(void) {
    struct push_owner *evil = claimed("evil", "uid 1");
    fixture_ms += 60 * 1000; /* nobody from before us is awaited */
    for (uint64_t start = 1; start <= 2000; start++) {
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, push_start(evil, start, 8), fixture_err.text);
    }
    uint64_t start = 10000;
    int r = 0;
    for (; r == 0 && start < 12000; start++) {
        push_store_start_enter(store, start);
        r = push_start(evil, start, 8);
    }
    TEST_ASSERT_EQUAL_INT(-E2BIG, r);
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(fixture_err.text, "uid 1 pushes would take more than"),
                                 fixture_err.text);
    struct push_owner *good = claimed("good", "uid 2");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, push_large(good, PUSH_MERGE, 20, 'a'), fixture_err.text);
    push_owner_unref(store, good);
    push_owner_unref(store, evil);
}

/* One that may come back within a minute is not counted twice when it does. */
static void test_need_of_room_doubles_nothing(void) {
    struct push_store_config config = fixture_config();
    config.limits.max_series = 1000; /* of which one peer has 60, and so 7.8 KB of the table */
    config.limits.max_value_len = 1000;
    push_store_configure(store, &config);
    struct push_owner *owner = claimed("p", "uid 1");
    fixture_ms += 60 * 1000;
    struct push_update total = {.name = "c",
                                .type = PUSH_COUNTER,
                                .op = PUSH_TOTAL,
                                .values = &(double){1000},
                                .n_values = 1,
                                .ttl_ms = PUSH_TTL_DEFAULT};
    push_store_start_enter(store, 1);
    TEST_ASSERT_EQUAL_INT(0, fixture_apply(store, owner, PUSH_MERGE, 1, &total, 1));
    push_store_start_leave(store, 1);
    for (size_t n = 40; n > 0; n--) {
        push_large(owner, PUSH_MERGE, n, (char)('A' + n)); /* until there is no room */
    }
    total.values = &(double){5};
    int r = 0;
    for (uint64_t start = 2; r == 0 && start < 60; start++) {
        push_store_start_enter(store, start);
        r = fixture_apply(store, owner, PUSH_MERGE, start, &total, 1);
    }
    TEST_ASSERT_EQUAL_INT(-E2BIG, r);
    double before = 0;
    char *page = fixture_scrape(store);
    TEST_ASSERT_EQUAL_INT(1,
                          sscanf(strstr(page, "c_total{"), "c_total{plugin=\"p\"} %lf", &before));
    free(page);
    total.values = &(double){1001};
    TEST_ASSERT_EQUAL_INT(0, fixture_apply(store, owner, PUSH_MERGE, 1, &total, 1));
    double after = 0;
    page = fixture_scrape(store);
    TEST_ASSERT_EQUAL_INT(1, sscanf(strstr(page, "c_total{"), "c_total{plugin=\"p\"} %lf", &after));
    free(page);
    TEST_ASSERT_EQUAL_DOUBLE(before + 1, after);
    push_owner_unref(store, owner);
}

/* Entries cross no page: two that are larger than half of one take two. */
static void test_what_a_page_loses_is_paid_for(void) {
    static const struct {
        size_t size, cost;
    } rows[] = {{8, 8}, {64, 64}, {1000, 1024}, {2048, 2048}, {2056, 4096}, {4096, 4096}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        TEST_ASSERT_EQUAL_size_t(rows[i].cost, push_table_cost(rows[i].size));
    }
}

/* Whatever was done, in the end nobody has to pay. */
static void test_what_is_gone_is_paid_back(void) {
    struct push_owner *a = claimed("a", "uid 1"), *b = claimed("b", "uid 1");
    size_t before = a->share->table_size;
    TEST_ASSERT_EQUAL_INT(0, push_start(a, 1, 8));
    TEST_ASSERT_EQUAL_INT(0, push_start(b, 2, 8)); /* series in the families of the other */
    TEST_ASSERT_EQUAL_INT(0, push_large(a, PUSH_REPLACE_ALL, 10, 'a'));
    TEST_ASSERT_EQUAL_INT(-E2BIG, push_large(a, PUSH_MERGE, 50, 'b'));
    struct push_update help = {
        .name = "m",
        .type = PUSH_GAUGE,
        .op = PUSH_SET,
        .help = "longer than none",
        .values = &(double){1},
        .n_values = 1,
        .ttl_ms = PUSH_TTL_DEFAULT,
    };
    TEST_ASSERT_EQUAL_INT(0, fixture_apply(store, a, PUSH_MERGE, 0, &help, 1));
    TEST_ASSERT_GREATER_THAN_size_t(before, a->share->table_size);
    push_store_remove_if(store, NULL, NULL);
    TEST_ASSERT_EQUAL_size_t(before, a->share->table_size);
    push_owner_unref(store, a);
    push_owner_unref(store, b);
}
