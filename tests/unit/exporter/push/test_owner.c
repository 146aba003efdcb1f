#include <errno.h>

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

static void test_identity(void) {
    struct push_owner *owner = NULL;
    struct error err;
    struct label labels[] = {{"cam", "top"}, {"area", "1"}};
    struct push_identity identity = {
        .plugin = "p", .container = "c1", .labels = labels, .n_labels = 2};
    TEST_ASSERT_EQUAL_INT(0, push_store_owner(store, &identity, &owner, &err));
    struct push_owner_view view = push_owner_view(store, owner);
    TEST_ASSERT_EQUAL_STRING("plugin p, area 1, cam top, container c1", view.name);
    TEST_ASSERT_EQUAL_PTR(owner, push_store_find_owner(store, &identity));
    identity.container = "c2";
    TEST_ASSERT_NULL(push_store_find_owner(store, &identity));
    const struct {
        struct push_identity identity;
    } bad[] = {
        {{.plugin = ""}},
        {{.job = "x"}},
        {{.plugin = "a\xff"}},
        {{.plugin = "p", .labels = (const struct label[]){{"plugin", "q"}}, .n_labels = 1}},
        {{.plugin = "p", .labels = (const struct label[]){{"node", "q"}}, .n_labels = 1}},
        {{.plugin = "p", .labels = (const struct label[]){{"a-b", "q"}}, .n_labels = 1}},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct push_owner *none = NULL;
        TEST_ASSERT_EQUAL_INT(-EINVAL, push_store_owner(store, &bad[i].identity, &none, &err));
    }
    push_owner_unref(store, owner);
    TEST_ASSERT_NULL(push_store_next_owner(store, NULL));
}

static void test_notes(void) {
    struct push_owner *a = fixture_plugin(store, "a");
    struct error err;
    TEST_ASSERT_NULL(push_store_note(store, a, "res"));
    TEST_ASSERT_EQUAL_INT(0, push_store_put_note(store, a, "res", "720", &err));
    TEST_ASSERT_EQUAL_INT(0, push_store_put_note(store, a, "fps", "5", &err));
    TEST_ASSERT_EQUAL_INT(0, push_store_put_note(store, a, "res", "480", &err));
    push_owner_unref(store, a);
    fixture_ms += 10000000;
    push_store_expire(store, SIZE_MAX);
    a = fixture_plugin(store, "a");
    TEST_ASSERT_EQUAL_STRING("480", push_store_note(store, a, "res"));
    TEST_ASSERT_EQUAL_INT(0, push_store_put_note(store, a, "res", NULL, &err));
    TEST_ASSERT_EQUAL_STRING("5", push_store_note(store, a, "fps"));
    TEST_ASSERT_EQUAL_INT(0, push_store_put_note(store, a, "fps", NULL, &err));
    TEST_ASSERT_NULL(push_store_note(store, a, "res"));
    push_owner_unref(store, a);
    TEST_ASSERT_NULL(push_store_next_owner(store, NULL));
}

static int push_for(struct push_owner *owner, const char *name, int64_t ttl_ms) {
    const double value = 1;
    struct push_update update = {
        .name = name, .type = PUSH_GAUGE, .values = &value, .n_values = 1, .ttl_ms = ttl_ms};
    return fixture_apply(store, owner, PUSH_REPLACE_ALL, 0, &update, 1);
}

static void test_groups_go_with_their_last_series(void) {
    struct push_owner *group = fixture_group(store, "ci");
    TEST_ASSERT_EQUAL_INT(0, push_for(group, "a", 1000));
    push_owner_note_failure(store, group, clock_wall_seconds());
    push_owner_unref(store, group);
    struct push_owner *kept = fixture_group(store, "kept");
    TEST_ASSERT_EQUAL_INT(0, push_for(kept, "a", 1000));
    TEST_ASSERT_EQUAL_INT(0, fixture_apply(store, kept, PUSH_REPLACE_ALL, 0, NULL, 0));
    push_owner_unref(store, kept);
    fixture_ms += 1001;
    push_store_expire(store, SIZE_MAX);
    fixture_ms += 10000000;
    push_store_expire(store, SIZE_MAX);
    /* What was emptied by a push stays, as in a Pushgateway. */
    TEST_ASSERT_EQUAL_PTR(kept, push_store_next_owner(store, NULL));
    TEST_ASSERT_NULL(push_store_next_owner(store, kept));
}

static void test_groups_stay_unless_their_last_push_says_otherwise(void) {
    struct push_owner *group = fixture_group(store, "ci");
    TEST_ASSERT_EQUAL_INT(0, push_for(group, "a", 1000));
    TEST_ASSERT_EQUAL_INT(0, push_for(group, "a", PUSH_TTL_DEFAULT));
    struct push_owner *plugin = fixture_plugin(store, "p");
    const double value = 1;
    struct push_update update = {
        .name = "b", .type = PUSH_GAUGE, .values = &value, .n_values = 1, .ttl_ms = 1000};
    TEST_ASSERT_EQUAL_INT(0, fixture_apply(store, plugin, PUSH_MERGE, 0, &update, 1));
    update.ttl_ms = PUSH_TTL_DEFAULT;
    TEST_ASSERT_EQUAL_INT(0, fixture_apply(store, plugin, PUSH_MERGE, 0, &update, 1));
    fixture_ms += 2000;
    push_store_expire(store, SIZE_MAX);
    TEST_ASSERT_EQUAL_size_t(1, push_owner_view(store, group).n_series);
    TEST_ASSERT_EQUAL_size_t(0, push_owner_view(store, plugin).n_series);
    push_owner_unref(store, group);
    push_owner_unref(store, plugin);
}

static void test_groups_that_were_only_refused_go(void) {
    struct push_owner *group = fixture_group(store, "ci");
    push_owner_note_failure(store, group, clock_wall_seconds());
    push_owner_unref(store, group);
    fixture_ms += 299000;
    push_store_expire(store, SIZE_MAX);
    TEST_ASSERT_NOT_NULL(push_store_next_owner(store, NULL));
    fixture_ms += 2000;
    push_store_expire(store, SIZE_MAX);
    TEST_ASSERT_NULL(push_store_next_owner(store, NULL));
}

static bool is_of_ci(const struct push_series_view *series, void *context) {
    struct push_owner_view owner = push_owner_view(store, series->owner);
    return strcmp(owner.name, "group job=ci") == 0 &&
           (context == NULL || strcmp(series->name, context) == 0);
}

static void test_groups_are_removed_by_selector(void) {
    struct push_owner *group = fixture_group(store, "ci");
    TEST_ASSERT_EQUAL_INT(0, push_for(group, "a", 0));
    push_owner_unref(store, group);
    TEST_ASSERT_EQUAL_size_t(0, push_store_remove_if(store, is_of_ci, "push_time_seconds"));
    TEST_ASSERT_EQUAL_size_t(1, push_store_remove_if(store, is_of_ci, NULL));
    TEST_ASSERT_NULL(push_store_next_owner(store, NULL));
    group = fixture_group(store, "ci");
    push_owner_note_failure(store, group, clock_wall_seconds());
    push_owner_unref(store, group);
    TEST_ASSERT_EQUAL_size_t(0, push_store_remove_if(store, is_of_ci, "a"));
    TEST_ASSERT_EQUAL_size_t(1, push_store_remove_if(store, is_of_ci, "push_failure_time_seconds"));
    TEST_ASSERT_NULL(push_store_next_owner(store, NULL));
}

static void test_allowance(void) {
    enum { MAX = 10 };
    struct push_allowance allowance = {0};
    int64_t now_ns = 1000 * CLOCK_NS_PER_SEC; /* the system is up for longer than a second */
    for (int i = 0; i < MAX; i++) {
        TEST_ASSERT_EQUAL_INT64(0, push_allowance_wait_ns(&allowance, MAX, now_ns));
        push_allowance_spend(&allowance, MAX, 1);
    }
    TEST_ASSERT_INT64_WITHIN(1000, CLOCK_NS_PER_SEC / MAX,
                             push_allowance_wait_ns(&allowance, MAX, now_ns));
    push_allowance_spend(&allowance, MAX, 2 * MAX); /* is owed */
    TEST_ASSERT_INT64_WITHIN(1000, 21 * CLOCK_NS_PER_SEC / MAX,
                             push_allowance_wait_ns(&allowance, MAX, now_ns));
    push_allowance_spend(&allowance, MAX, 1000000); /* but not for ever */
    TEST_ASSERT_INT64_WITHIN(1000, 101 * CLOCK_NS_PER_SEC / MAX,
                             push_allowance_wait_ns(&allowance, MAX, now_ns));
    now_ns += 100 * CLOCK_NS_PER_SEC; /* and no more than a second's worth is saved up */
    TEST_ASSERT_EQUAL_INT64(0, push_allowance_wait_ns(&allowance, MAX, now_ns));
    push_allowance_spend(&allowance, MAX, MAX);
    TEST_ASSERT_GREATER_THAN_INT64(0, push_allowance_wait_ns(&allowance, MAX, now_ns));
}
