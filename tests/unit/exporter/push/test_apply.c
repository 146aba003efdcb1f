#include <errno.h>

#include "tests/unit/exporter/push/push_fixture.h"

/* Batches as a whole. What applying does to one series is the matter of test_store.c. */

enum { N = 10 };

static struct push_store *store;
static struct push_owner *owner;
static char names[N][8];
static double values[N];
static struct push_update updates[N];
static struct push_batch batch;
static size_t failed;

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
}

void tearDown(void) {
    push_owner_unref(store, owner);
    push_store_destroy(store);
}

static size_t n_series(void) {
    return push_store_stats(store).n_series;
}

static int apply(struct push_owner *by) {
    fixture_err.text[0] = '\0';
    return push_store_apply(store, by, &batch, &failed, &fixture_err);
}

static void test_nothing_to_apply(void) {
    batch.n_updates = 0;
    TEST_ASSERT_EQUAL_INT(0, apply(owner));
}

static void test_the_last_one_fails(void) {
    fixture_push(store, owner, "m9", PUSH_COUNTER, PUSH_INC, 1);
    TEST_ASSERT_EQUAL_INT(-EEXIST, apply(owner));
    TEST_ASSERT_EQUAL_UINT64(N - 1, failed);
    TEST_ASSERT_NOT_NULL(strstr(fixture_err.text, "m9"));
    TEST_ASSERT_EQUAL_UINT64(1, n_series());
}

static void test_what_is_replaced_goes(void) {
    struct push_owner *group = fixture_group(store, "g");
    TEST_ASSERT_EQUAL_INT(0, fixture_apply(store, group, PUSH_MERGE, 0, updates, N - 1));
    batch = (struct push_batch){.mode = PUSH_REPLACE_ALL, .updates = updates, .n_updates = 1};
    TEST_ASSERT_EQUAL_INT(0, apply(group));
    TEST_ASSERT_EQUAL_UINT64(1, n_series());
    push_owner_unref(store, group);
}

/* A family of another type, with fewer series. */
static void test_a_smaller_family_replaces_a_larger_one(void) {
    static const enum push_mode modes[] = {PUSH_REPLACE_FAMILIES, PUSH_REPLACE_ALL};
    struct push_owner *group = fixture_group(store, "g");
    struct label labels[N];
    for (size_t i = 0; i < N; i++) {
        labels[i] = (struct label){"i", names[i]};
        updates[i].name = "family";
        updates[i].labels = &labels[i];
        updates[i].n_labels = 1;
    }
    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        for (size_t k = 0; k < N; k++) {
            updates[k].type = PUSH_GAUGE;
        }
        batch = (struct push_batch){.mode = modes[i], .updates = updates, .n_updates = N};
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, apply(group), fixture_err.text);
        TEST_ASSERT_EQUAL_UINT64(N, n_series());
        updates[0].type = PUSH_COUNTER;
        batch.n_updates = 1;
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, apply(group), fixture_err.text);
        TEST_ASSERT_EQUAL_UINT64(1, n_series());
    }
    push_owner_unref(store, group);
}

/* Families that a new process of the plugin has given another type. */
static void test_a_new_process_changes_types(void) {
    uint64_t starts[] = {push_start_number("a"), push_start_number("b")};
    batch.start = starts[0];
    push_store_start_enter(store, starts[0]);
    TEST_ASSERT_EQUAL_INT(0, apply(owner));
    push_store_start_leave(store, starts[0]);
    push_store_start_enter(store, starts[1]);
    batch.start = starts[1];
    for (size_t i = 0; i < N; i++) {
        updates[i].type = PUSH_COUNTER;
        updates[i].op = PUSH_INC;
    }
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, apply(owner), fixture_err.text);
    TEST_ASSERT_EQUAL_UINT64(N, n_series());
    char *page CLEANUP_FREE = fixture_scrape(store);
    TEST_ASSERT_NOT_NULL(strstr(page, "m9_total{plugin=\"a\"} 9\n"));
    TEST_ASSERT_NULL(strstr(page, "\nm9{"));
    push_store_start_leave(store, starts[1]);
}

/* What one update of a batch makes is there for the next ones. */
static void test_updates_of_one_batch_see_each_other(void) {
    static const double bounds[] = {1, 2}, one = 1;
    static const struct label labels[] = {{"i", "1"}, {"i", "2"}};
    struct push_update pairs[4] = {
        {.name = "h", .type = PUSH_HISTOGRAM, .op = PUSH_OBSERVE, .bounds = bounds, .n_bounds = 2},
        {.name = "h", .op = PUSH_OBSERVE},
        {.name = "fps", .type = PUSH_RATE, .op = PUSH_INC},
        {.name = "fps", .op = PUSH_INC},
    };
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        pairs[i].labels = &labels[i % 2];
        pairs[i].n_labels = 1;
        pairs[i].values = &one;
        pairs[i].n_values = 1;
        pairs[i].ttl_ms = PUSH_TTL_DEFAULT;
    }
    batch = (struct push_batch){.updates = pairs, .n_updates = ARRAY_LEN(pairs)};
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, apply(owner), fixture_err.text);
    fixture_expect(store, "# TYPE fps_total counter\n"
                          "fps_total{i=\"1\",plugin=\"a\"} 1\nfps_total{i=\"2\",plugin=\"a\"} 1\n"
                          "# TYPE h histogram\n"
                          "h_bucket{i=\"1\",plugin=\"a\",le=\"1.0\"} 1\n"
                          "h_bucket{i=\"1\",plugin=\"a\",le=\"2.0\"} 1\n"
                          "h_bucket{i=\"1\",plugin=\"a\",le=\"+Inf\"} 1\n"
                          "h_sum{i=\"1\",plugin=\"a\"} 1\nh_count{i=\"1\",plugin=\"a\"} 1\n"
                          "h_bucket{i=\"2\",plugin=\"a\",le=\"1.0\"} 1\n"
                          "h_bucket{i=\"2\",plugin=\"a\",le=\"2.0\"} 1\n"
                          "h_bucket{i=\"2\",plugin=\"a\",le=\"+Inf\"} 1\n"
                          "h_sum{i=\"2\",plugin=\"a\"} 1\nh_count{i=\"2\",plugin=\"a\"} 1\n");
}

static void test_a_batch_has_a_limit(void) {
    struct push_update *many = calloc(PUSH_MAX_UPDATES + 1, sizeof(*many));
    for (size_t i = 0; i <= PUSH_MAX_UPDATES; i++) {
        many[i] = updates[i % N];
    }
    batch = (struct push_batch){.updates = many, .n_updates = PUSH_MAX_UPDATES + 1};
    TEST_ASSERT_EQUAL_INT(-EFBIG, apply(owner));
    TEST_ASSERT_EQUAL_size_t(0, n_series());
    batch.n_updates = PUSH_MAX_UPDATES;
    TEST_ASSERT_EQUAL_INT(0, apply(owner));
    free(many);
}

/* Not only once all of them have been made. */
static void test_too_many_are_refused_at_the_first(void) {
    static const enum push_mode modes[] = {PUSH_MERGE, PUSH_REPLACE_FAMILIES, PUSH_REPLACE_ALL};
    struct push_store_config config = fixture_config();
    config.limits.max_owner_series = N / 2;
    push_store_configure(store, &config);
    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        batch.mode = modes[i];
        TEST_ASSERT_EQUAL_INT(-E2BIG, apply(owner));
        TEST_ASSERT_EQUAL_size_t(N / 2, failed);
        fixture_expect(store, "");
    }
}

static void test_groups_have_no_rates(void) {
    struct push_owner *group = fixture_group(store, "j");
    TEST_ASSERT_EQUAL_INT(-EINVAL, fixture_push(store, group, "m", PUSH_RATE, PUSH_INC, 1));
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(fixture_err.text, "for plugins only"), fixture_err.text);
    push_owner_unref(store, group);
}

/* Each new series shows the labels of its owner: long ones count as updates. */
static void test_long_labels_of_the_owner_count(void) {
    enum { MANY = 1000 };
    static char value[900], many_names[MANY][16];
    static struct push_update many[MANY];
    memset(value, 'v', sizeof(value) - 1);
    struct label labels[] = {{"a", value}, {"b", value}, {"c", value}};
    struct push_identity identity = {.plugin = "long", .labels = labels, .n_labels = 3};
    struct push_store_config config = fixture_config();
    config.limits = (struct push_limits){.max_owner_series = MANY, .max_peer_bytes = 64 << 20};
    config.table_bytes = 64 << 20;
    struct push_store *large = NULL;
    struct push_owner *long_one = NULL;
    TEST_ASSERT_EQUAL_INT(0, push_store_create(&config, &large, NULL));
    TEST_ASSERT_EQUAL_INT(0, push_store_owner(large, &identity, &long_one, NULL));
    for (size_t i = 0; i < MANY; i++) {
        snprintf(many_names[i], sizeof(many_names[i]), "m%zu", i);
        many[i] = updates[0];
        many[i].name = many_names[i];
    }
    TEST_ASSERT_EQUAL_INT(-EFBIG, fixture_apply(large, long_one, PUSH_MERGE, 0, many, MANY));
    TEST_ASSERT_EQUAL_INT(0, fixture_apply(large, long_one, PUSH_MERGE, 0, many, 100));
    push_owner_unref(large, long_one);
    push_store_destroy(large);
}

/* A help text that comes later is left out if its peer has no room for it. */
static void test_help_counts(void) {
    char help[1000];
    memset(help, 'h', sizeof(help) - 1);
    help[sizeof(help) - 1] = '\0';
    struct push_store_config config = fixture_config();
    config.limits.max_peer_bytes = 8 << 10;
    struct push_store *small = NULL;
    TEST_ASSERT_EQUAL_INT(0, push_store_create(&config, &small, NULL));
    struct push_owner *a = fixture_plugin(small, "a");
    TEST_ASSERT_EQUAL_INT(0, fixture_claim_as(small, a, "uid 1000", NULL));
    size_t n = 0;
    while (n < N && fixture_apply(small, a, PUSH_MERGE, 0, &updates[n], 1) == 0) {
        n++;
    }
    TEST_ASSERT_GREATER_THAN_size_t(4, n);
    for (size_t i = 0; i < n; i++) {
        updates[i].help = help;
        TEST_ASSERT_EQUAL_INT(0, fixture_apply(small, a, PUSH_MERGE, 0, &updates[i], 1));
    }
    TEST_ASSERT_LESS_OR_EQUAL_size_t(8 << 10, push_store_stats(small).table_bytes);
    push_owner_unref(small, a);
    push_store_destroy(small);
}
