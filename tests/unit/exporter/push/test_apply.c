#include <errno.h>

#include "tests/unit/exporter/push/push_fixture.h"

/* Batches that are applied in turns. What applying does is the matter of test_push_store.c. */

enum { N = 10 };

static struct push_store *store;
static struct push_owner *owner;
static char names[N][8];
static double values[N];
static struct push_update updates[N];
static struct push_batch batch;
static struct push_applying applying;

void setUp(void) {
    struct push_store_config config = fixture_config();
    struct error err;
    TEST_ASSERT_EQUAL_INT(0, push_store_create(&config, &store, &err));
    owner = fixture_plugin(store, "a");
    for (size_t i = 0; i < N; i++) {
        snprintf(names[i], sizeof(names[i]), "m%zu", i);
        values[i] = (double)i;
        updates[i] = (struct push_update){
            .name = names[i],
            .type = PUSH_GAUGE,
            .op = PUSH_SET,
            .values = &values[i],
            .n_values = 1,
            .ttl_ms = PUSH_TTL_DEFAULT,
        };
    }
    batch = (struct push_batch){.updates = updates, .n_updates = N};
    memset(&applying, 0xff, sizeof(applying)); /* it need not be clean */
}

void tearDown(void) {
    push_owner_unref(store, owner);
    push_store_destroy(store);
}

static size_t n_series(void) {
    return push_store_stats(store).n_series;
}

/* Returns the number of turns. */
static size_t take_turns(size_t n_updates) {
    size_t n = 1;
    push_store_apply_begin(store, &applying, owner, &batch);
    while (push_store_apply_some(store, &applying, n_updates)) {
        TEST_ASSERT_TRUE(push_store_is_busy(store));
        n++;
    }
    TEST_ASSERT_TRUE(applying.over);
    TEST_ASSERT_FALSE(push_store_is_busy(store));
    return n;
}

static void test_turns_of_every_size(void) {
    static const struct {
        size_t n_updates, n_turns;
    } cases[] = {{1, 2 * N}, {3, 8}, {N - 1, 4}, {N, 2}, {SIZE_MAX, 2}};
    TEST_ASSERT_EQUAL_UINT64(3 * N, take_turns(1)); /* once more to give new series their values */
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        values[N - 1] = (double)i;
        TEST_ASSERT_EQUAL_UINT64(cases[i].n_turns, take_turns(cases[i].n_updates));
        TEST_ASSERT_EQUAL_INT(0, applying.code);
        TEST_ASSERT_EQUAL_UINT64(N, n_series());
        char line[64];
        snprintf(line, sizeof(line), "m9{plugin=\"a\"} %zu\n", i);
        char *page CLEANUP_FREE = fixture_scrape(store);
        TEST_ASSERT_NOT_NULL(strstr(page, line));
    }
}

static void test_nothing_to_apply(void) {
    batch.n_updates = 0;
    take_turns(1);
    TEST_ASSERT_EQUAL_INT(0, applying.code);
}

static void test_the_last_one_fails(void) {
    fixture_push(store, owner, "m9", PUSH_COUNTER, PUSH_INC, 1);
    take_turns(3);
    TEST_ASSERT_EQUAL_INT(-EEXIST, applying.code);
    TEST_ASSERT_EQUAL_UINT64(N - 1, applying.failed);
    TEST_ASSERT_NOT_NULL(strstr(applying.error.text, "m9"));
    TEST_ASSERT_EQUAL_UINT64(1, n_series());
}

/* What a batch has made goes as slowly as it came, and so does what it replaces. */
static void test_removing_takes_turns(void) {
    fixture_push(store, owner, "m9", PUSH_COUNTER, PUSH_INC, 1);
    TEST_ASSERT_GREATER_OR_EQUAL_size_t(2 * N, take_turns(1));
    TEST_ASSERT_EQUAL_INT(-EEXIST, applying.code);
    TEST_ASSERT_EQUAL_UINT64(1, n_series());
    struct push_owner *group = fixture_group(store, "g");
    TEST_ASSERT_EQUAL_INT(0, fixture_apply(store, group, PUSH_MERGE, 0, updates, N - 1));
    batch = (struct push_batch){.mode = PUSH_REPLACE_ALL, .updates = updates, .n_updates = 1};
    struct push_owner *plugin = owner;
    owner = group;
    TEST_ASSERT_GREATER_OR_EQUAL_size_t(N, take_turns(1));
    owner = plugin;
    TEST_ASSERT_EQUAL_INT(0, applying.code);
    TEST_ASSERT_EQUAL_UINT64(2, n_series());
    push_owner_unref(store, group);
}

/* Families that a new process of the plugin has given another type. */
static void test_the_merged_are_swept_in_turns(void) {
    uint64_t starts[] = {push_start_number("a"), push_start_number("b")};
    batch.start = starts[0];
    push_store_start_enter(store, starts[0]);
    take_turns(SIZE_MAX);
    push_store_start_leave(store, starts[0]);
    push_store_start_enter(store, starts[1]);
    batch.start = starts[1];
    for (size_t i = 0; i < N; i++) {
        updates[i].type = PUSH_COUNTER;
        updates[i].op = PUSH_INC;
    }
    TEST_ASSERT_EQUAL_UINT64(4 * N, take_turns(1));
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, applying.code, applying.error.text);
    TEST_ASSERT_EQUAL_UINT64(N, n_series());
    char *page CLEANUP_FREE = fixture_scrape(store);
    TEST_ASSERT_NOT_NULL(strstr(page, "m9_total{plugin=\"a\"} 9\n"));
    TEST_ASSERT_NULL(strstr(page, "\nm9{"));
    push_store_start_leave(store, starts[1]);
}

/* Whatever else changes the store: the batch comes first, and what became of it is not lost. */
static void test_others_take_it_to_its_end(void) {
    push_store_apply_begin(store, &applying, owner, &batch);
    TEST_ASSERT_TRUE(push_store_apply_some(store, &applying, 3));
    TEST_ASSERT_EQUAL_INT(0, fixture_push(store, owner, "m9", PUSH_GAUGE, PUSH_SET, 70));
    TEST_ASSERT_FALSE(push_store_is_busy(store));
    TEST_ASSERT_FALSE(push_store_apply_some(store, &applying, 3));
    TEST_ASSERT_EQUAL_INT(0, applying.code);
    TEST_ASSERT_EQUAL_UINT64(N, n_series());
    char *page CLEANUP_FREE = fixture_scrape(store);
    TEST_ASSERT_NOT_NULL(strstr(page, "m9{plugin=\"a\"} 70\n"));
}

static void expire(void) {
    push_store_expire(store, SIZE_MAX);
}

static void wipe(void) {
    push_store_remove_if(store, NULL, NULL);
}

static void copy(void) {
    size_t len;
    fixture_pages(store, &len);
}

static void nothing(const struct push_series_view *series, void *context) {
    (void)series;
    (void)context;
}

static void look(void) {
    push_store_visit(store, NULL, nothing, NULL);
}

static void note(void) {
    TEST_ASSERT_EQUAL_INT(0, push_store_put_note(store, owner, "key", "text", &fixture_err));
}

static void begin_another(void) {
    struct push_applying other;
    push_store_apply_begin(store, &other, owner, &batch);
    while (push_store_apply_some(store, &other, 1)) {
    }
}

static void test_all_that_must_not_see_it_half_done(void) {
    static void (*const calls[])(void) = {expire, copy, look, note, begin_another, wipe};
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        push_store_apply_begin(store, &applying, owner, &batch);
        TEST_ASSERT_TRUE(push_store_apply_some(store, &applying, N - 1));
        calls[i]();
        TEST_ASSERT_TRUE(applying.over);
        TEST_ASSERT_EQUAL_INT(0, applying.code);
    }
    TEST_ASSERT_EQUAL_UINT64(0, n_series());
}

/* Not only once all of them have been made. */
static void test_too_many_are_refused_at_the_first(void) {
    static const enum push_mode modes[] = {PUSH_MERGE, PUSH_REPLACE_FAMILIES, PUSH_REPLACE_ALL};
    struct push_store_config config = fixture_config();
    config.limits.max_owner_series = N / 2;
    push_store_configure(store, &config);
    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        size_t failed = 0;
        batch.mode = modes[i];
        TEST_ASSERT_EQUAL_INT(-E2BIG, push_store_apply(store, owner, &batch, &failed, NULL));
        TEST_ASSERT_EQUAL_size_t(N / 2, failed);
        fixture_expect(store, "");
    }
}
