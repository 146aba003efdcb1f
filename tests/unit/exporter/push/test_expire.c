#include "tests/unit/exporter/push/push_fixture.h"

#include "exporter/core/container_of.h"
#include "exporter/push/claim.h"

enum { N_SERIES = 20 };

static struct push_store *store;

void setUp(void) {
    struct push_store_config config = fixture_config();
    TEST_ASSERT_EQUAL_INT(0, push_store_create(&config, &store, NULL));
}

void tearDown(void) {
    push_store_destroy(store);
}

static size_t n_series(void) {
    return push_store_stats(store).n_series;
}

/* Series that go with their owner. */
static void push_many(struct push_owner *owner) {
    for (size_t i = 0; i < N_SERIES; i++) {
        char name[16];
        snprintf(name, sizeof(name), "%s%zu", push_owner_view(store, owner).name, i);
        for (char *c = name; *c != '\0'; c++) {
            *c = *c == ' ' || *c == '=' ? '_' : *c;
        }
        TEST_ASSERT_EQUAL_INT(0, fixture_push(store, owner, name, PUSH_GAUGE, PUSH_SET, 1));
    }
}

/* A call does no more than it was asked for, and a pass comes to everything. */
static void test_a_pass_in_steps(void) {
    static const size_t steps[] = {1, 3, 7, 1000};
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        struct push_owner *a = fixture_plugin(store, "a"), *b = fixture_plugin(store, "b");
        push_many(a);
        push_many(b);
        push_owner_unref(store, a);
        push_owner_unref(store, b);
        fixture_ms += 300001;
        size_t before = n_series();
        TEST_ASSERT_EQUAL_size_t(2 * N_SERIES, before);
        bool more = true;
        while (more) {
            more = push_store_expire(store, steps[i]);
            TEST_ASSERT_LESS_OR_EQUAL_size_t(steps[i], before - n_series());
            before = n_series();
        }
        TEST_ASSERT_EQUAL_size_t(0, n_series());
        TEST_ASSERT_EQUAL_size_t(0, push_store_stats(store).n_owners);
    }
}

/* What the next step would look at may have gone before it. */
static void test_removals_between_steps(void) {
    for (size_t n = 1; n < 2 * N_SERIES; n++) {
        struct push_owner *owners[3];
        for (size_t k = 0; k < ARRAY_LEN(owners); k++) {
            owners[k] = fixture_plugin(store, (const char *[]){"a", "b", "c"}[k]);
        }
        push_many(owners[0]);
        push_many(owners[1]);
        push_owner_unref(store, owners[0]);
        push_owner_unref(store, owners[1]);
        fixture_ms += 300001;
        push_store_expire(store, n);
        if (n < N_SERIES) { /* all that is left of the one, and one of the other */
            push_store_remove_owner(store, owners[0]);
            push_store_remove_if(store, fixture_is_named, "plugin_b5");
        }
        while (push_store_expire(store, n)) {
        }
        TEST_ASSERT_EQUAL_size_t(0, n_series());
        TEST_ASSERT_EQUAL_size_t(1, push_store_stats(store).n_owners);
        push_owner_unref(store, owners[2]);
    }
}

/* A plugin that is back keeps what is left. */
static void test_a_plugin_returns_between_steps(void) {
    struct push_owner *a = fixture_plugin(store, "a");
    push_many(a);
    push_owner_unref(store, a);
    fixture_ms += 300001;
    TEST_ASSERT_TRUE(push_store_expire(store, N_SERIES / 2));
    size_t left = n_series();
    TEST_ASSERT_GREATER_THAN_size_t(0, left);
    a = fixture_plugin(store, "a");
    while (push_store_expire(store, 1)) {
    }
    TEST_ASSERT_EQUAL_size_t(left, n_series());
    push_owner_unref(store, a);
}

/* A claim during a pass counts in the next one. */
static void test_a_claim_between_steps(void) {
    static const struct label labels[] = {{"job", "cars"}, {"plugin", "p"}};
    struct push_identity identity = {.group = true, .labels = labels, .n_labels = 2};
    struct push_owner *group = NULL, *first = fixture_plugin(store, "first");
    TEST_ASSERT_EQUAL_INT(0, push_store_owner(store, &identity, &group, NULL));
    push_many(group);
    push_owner_unref(store, group);
    TEST_ASSERT_TRUE(push_store_expire(store, 1));
    struct push_owner *plugin = fixture_plugin(store, "p");
    TEST_ASSERT_EQUAL_INT(0, fixture_claim_as(store, plugin, "uid 1", NULL));
    while (push_store_expire(store, 1)) {
    }
    while (push_store_expire(store, 4)) {
    }
    TEST_ASSERT_EQUAL_size_t(0, n_series());
    TEST_ASSERT_EQUAL_size_t(2, push_store_stats(store).n_owners);
    push_owner_unref(store, first);
    push_owner_unref(store, plugin);
}
