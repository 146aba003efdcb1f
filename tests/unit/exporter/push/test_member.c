#include "exporter/push/store.h"

#include <errno.h>

#include "tests/unit/exporter/push/push_fixture.h"

static struct push_store *store;

void setUp(void) {
    struct push_store_config config = fixture_config();
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
