#include <errno.h>

#include "push_fixture.h"

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
    push_store_expire(store);
    a = fixture_plugin(store, "a");
    TEST_ASSERT_EQUAL_STRING("480", push_store_note(store, a, "res"));
    TEST_ASSERT_EQUAL_INT(0, push_store_put_note(store, a, "res", NULL, &err));
    TEST_ASSERT_EQUAL_STRING("5", push_store_note(store, a, "fps"));
    TEST_ASSERT_EQUAL_INT(0, push_store_put_note(store, a, "fps", NULL, &err));
    TEST_ASSERT_NULL(push_store_note(store, a, "res"));
    push_owner_unref(store, a);
    TEST_ASSERT_NULL(push_store_next_owner(store, NULL));
}

int main(void) {
    UNITY_BEGIN();
    RUN_TEST(test_identity);
    RUN_TEST(test_notes);
    return UNITY_END();
}
