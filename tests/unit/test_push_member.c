#include "exporter/push_store.h"

#include <errno.h>

#include "exporter/core/clock.h"
#include "push_fixture.h"

enum { MANY = 5000, TRIES = 1000 };

static struct push_store *store;

void setUp(void) {
    struct push_store_config config = fixture_config();
    config.limits.max_series = config.limits.max_peer_series = 3 * MANY;
    config.limits.max_owner_series = MANY;
    TEST_ASSERT_EQUAL_INT(0, push_store_create(&config, &store, NULL));
}

void tearDown(void) {
    push_store_destroy(store);
}

static int push_as(enum push_mode mode, struct push_owner *owner, const char *name, size_t i) {
    static const double one = 1;
    char number[24];
    snprintf(number, sizeof(number), "%zu", i);
    struct label label = {"i", number};
    struct push_update update = {.name = name,
                                 .type = PUSH_GAUGE,
                                 .labels = &label,
                                 .n_labels = 1,
                                 .values = &one,
                                 .n_values = 1,
                                 .ttl_ms = PUSH_TTL_DEFAULT};
    return fixture_apply(store, owner, mode, 0, &update, 1);
}

static int push_labelled(struct push_owner *owner, const char *name, size_t i) {
    return push_as(PUSH_MERGE, owner, name, i);
}

/* How long it takes to refuse further series of that name. */
static int64_t time_refusals(struct push_owner *owner, const char *name) {
    int64_t begin_ns = clock_monotonic_ns();
    for (size_t i = 0; i < TRIES; i++) {
        TEST_ASSERT_EQUAL_INT(-E2BIG, push_labelled(owner, name, MANY + i));
    }
    return clock_monotonic_ns() - begin_ns;
}

/* A name that is a gauge of one and a rate of another costs a third, who has neither but many other
 * series, no more than any name. */
static void test_a_shared_name_is_cheap(void) {
    struct push_owner *gauges = fixture_plugin(store, "gauges");
    struct push_owner *rates = fixture_plugin(store, "rates");
    struct push_owner *third = fixture_plugin(store, "third");
    for (size_t i = 0; i < MANY; i++) {
        TEST_ASSERT_EQUAL_INT(0, push_labelled(gauges, "shared", i));
        TEST_ASSERT_EQUAL_INT(0, push_labelled(third, "own", i));
    }
    TEST_ASSERT_EQUAL_INT(0, fixture_push(store, rates, "shared", PUSH_RATE, PUSH_INC, 1));
    int64_t own_ns = time_refusals(third, "own");
    int64_t shared_ns = time_refusals(third, "shared");
    TEST_ASSERT_LESS_THAN_INT64(3 * own_ns + CLOCK_NS_PER_MS, shared_ns);
}

/* Who has a gauge of the name may have no rate of it, for as long as it has one. */
static void test_follows_what_comes_and_goes(void) {
    struct push_owner *owner = fixture_plugin(store, "p");
    struct push_owner *other = fixture_plugin(store, "other"); /* keeps the gauge what it is */
    TEST_ASSERT_EQUAL_INT(0, push_labelled(other, "m", 1));
    TEST_ASSERT_EQUAL_INT(0, push_labelled(owner, "m", 1));
    TEST_ASSERT_EQUAL_INT(0, push_labelled(owner, "m", 2));
    TEST_ASSERT_EQUAL_INT(-EEXIST, fixture_push(store, owner, "m", PUSH_RATE, PUSH_INC, 1));
    TEST_ASSERT_EQUAL_INT(0, push_as(PUSH_REPLACE_ALL, owner, "m", 2));
    TEST_ASSERT_EQUAL_size_t(1, push_owner_view(store, owner).n_series);
    TEST_ASSERT_EQUAL_INT(-EEXIST, fixture_push(store, owner, "m", PUSH_RATE, PUSH_INC, 1));
    TEST_ASSERT_EQUAL_INT(0, push_as(PUSH_REPLACE_ALL, owner, "n", 1));
    TEST_ASSERT_EQUAL_INT(0, fixture_push(store, owner, "m", PUSH_RATE, PUSH_INC, 1));
}

int main(void) {
    UNITY_BEGIN();
    RUN_TEST(test_a_shared_name_is_cheap);
    RUN_TEST(test_follows_what_comes_and_goes);
    return UNITY_END();
}
