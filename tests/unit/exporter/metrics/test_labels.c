#include "exporter/metrics/labels.h"

#include <stdio.h>
#include <string.h>
#include <unity.h>

static void check_text(const char *expected, const struct labels *labels) {
    TEST_ASSERT_NOT_NULL(labels);
    TEST_ASSERT_EQUAL_STRING(expected, labels->text);
    TEST_ASSERT_EQUAL_UINT32(strlen(expected), labels->len);
}

static void test_values_are_escaped(void) {
    static const struct {
        const char *value;
        const char *text;
    } table[] = {
        {"idle", "x=\"idle\""},
        {"a b,c={}", "x=\"a b,c={}\""},
        {"C:\\dir", "x=\"C:\\\\dir\""},
        {"say \"hi\"", "x=\"say \\\"hi\\\"\""},
        {"one\ntwo", "x=\"one\\ntwo\""},
        {"\n", "x=\"\\n\""},
        {"\\n", "x=\"\\\\n\""},
        {"tab\tcr\r", "x=\"tab\tcr\r\""},
        {"gr\xc3\xbc\xc3\x9f", "x=\"gr\xc3\xbc\xc3\x9f\""},
        {"\xf0\x9f\x90\x9d", "x=\"\xf0\x9f\x90\x9d\""},
        {"a\xff"
         "b",
         "x=\"a\xef\xbf\xbd"
         "b\""},
        {"cut\xe2\x82", "x=\"cut\xef\xbf\xbd\xef\xbf\xbd\""},
        {"\xc3\"", "x=\"\xef\xbf\xbd\\\"\""},
        {"\xc3\n", "x=\"\xef\xbf\xbd\\n\""},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct labels *labels CLEANUP_LABELS = labels_render("x", table[i].value);
        check_text(table[i].text, labels);
    }
}

static void test_order_is_kept_and_empty_values_are_dropped(void) {
    struct labels *both CLEANUP_LABELS = labels_render("mode", "idle", "cpu", "0");
    check_text("mode=\"idle\",cpu=\"0\"", both);
    struct labels *first CLEANUP_LABELS = labels_render("a", "", "b", "1", "c", "2");
    check_text("b=\"1\",c=\"2\"", first);
    struct labels *middle CLEANUP_LABELS = labels_render("a", "1", "b", NULL, "c", "2");
    check_text("a=\"1\",c=\"2\"", middle);
    struct labels *all CLEANUP_LABELS = labels_render("a", "", "b", "");
    check_text("", all);
    struct labels *none CLEANUP_LABELS = labels_create(NULL, 0);
    check_text("", none);
}

static void test_with_adds_behind(void) {
    struct labels *base CLEANUP_LABELS = labels_render("code", "200");
    struct labels *bucket CLEANUP_LABELS = labels_with(base, "le", "+Inf");
    check_text("code=\"200\",le=\"+Inf\"", bucket);
    struct labels *alone CLEANUP_LABELS = labels_with(NULL, "le", "0.5");
    check_text("le=\"0.5\"", alone);
    struct labels *empty CLEANUP_LABELS = labels_render("a", "");
    struct labels *on_empty CLEANUP_LABELS = labels_with(empty, "le", "1.0");
    check_text("le=\"1.0\"", on_empty);
    struct labels *same CLEANUP_LABELS = labels_with(base, "le", "");
    check_text("code=\"200\"", same);
    TEST_ASSERT_EQUAL_HEX32(base->hash, same->hash);
}

static void test_equal_sets_have_equal_hashes(void) {
    struct labels *a CLEANUP_LABELS = labels_render("cpu", "0", "mode", "idle");
    struct labels *base CLEANUP_LABELS = labels_render("cpu", "0", "gone", "");
    struct labels *b CLEANUP_LABELS = labels_with(base, "mode", "idle");
    TEST_ASSERT_TRUE(labels_equal(a, b));
    TEST_ASSERT_EQUAL_HEX32(a->hash, b->hash);
    struct labels *other CLEANUP_LABELS = labels_render("cpu", "1", "mode", "idle");
    TEST_ASSERT_FALSE(labels_equal(a, other));
    TEST_ASSERT_NOT_EQUAL(a->hash, other->hash);
    struct labels *longer CLEANUP_LABELS = labels_with(a, "x", "y");
    TEST_ASSERT_FALSE(labels_equal(a, longer));
}

static void test_null_is_the_empty_set(void) {
    struct labels *empty CLEANUP_LABELS = labels_create(NULL, 0);
    struct labels *some CLEANUP_LABELS = labels_render("a", "1");
    TEST_ASSERT_TRUE(labels_equal(NULL, NULL));
    TEST_ASSERT_TRUE(labels_equal(NULL, empty));
    TEST_ASSERT_TRUE(labels_equal(empty, NULL));
    TEST_ASSERT_FALSE(labels_equal(NULL, some));
    TEST_ASSERT_FALSE(labels_equal(some, NULL));
    labels_destroy(NULL);
}

static void test_long_values_survive(void) {
    enum { LEN = 100000 };
    char *value CLEANUP_FREE = malloc(LEN + 1);
    memset(value, '"', LEN);
    value[LEN] = '\0';
    struct labels *labels CLEANUP_LABELS = labels_render("x", value);
    TEST_ASSERT_NOT_NULL(labels);
    TEST_ASSERT_EQUAL_UINT32(2 * LEN + 4, labels->len);
    TEST_ASSERT_EQUAL_STRING("\\\"\"", labels->text + labels->len - 3);
}

static void test_many_sets_lie_in_one_block(void) {
    struct buf block CLEANUP_BUF = {0};
    size_t places[100];
    char value[101] = "";
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        value[i] = 'x';
        places[i] = labels_append(&block, (struct label[]){{"a", value}, {"b", "\n"}}, 2);
    }
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        value[i + 1] = '\0';
        struct labels *alone CLEANUP_LABELS = labels_render("a", value, "b", "\n");
        const struct labels *set = (const struct labels *)(block.data + places[i]);
        TEST_ASSERT_EQUAL(0, (uintptr_t)set % _Alignof(struct labels));
        TEST_ASSERT_TRUE(labels_equal(alone, set));
        TEST_ASSERT_EQUAL_UINT32(alone->hash, set->hash);
        value[i + 1] = 'x';
    }
}

static void test_insert(void) {
    struct label labels[3] = {{"b", "1"}};
    size_t n = 1;
    TEST_ASSERT_TRUE(label_insert(labels, &n, (struct label){"c", "2"}));
    TEST_ASSERT_TRUE(label_insert(labels, &n, (struct label){"a", "3"}));
    TEST_ASSERT_FALSE(label_insert(labels, &n, (struct label){"b", "4"}));
    TEST_ASSERT_EQUAL_size_t(3, n);
    TEST_ASSERT_EQUAL_STRING("a", labels[0].name);
    TEST_ASSERT_EQUAL_STRING("1", labels[1].value);
    TEST_ASSERT_EQUAL_STRING("c", labels[2].name);
}
