#include "exporter/settings/yaml.h"

#include <stddef.h>
#include <string.h>
#include <unity.h>

struct inner {
    int64_t wait_ms;
};

struct outer {
    const char *name;
    int64_t count;
    struct inner inner;
    size_t n_items;
};

static struct problems problems;
static struct arena arena;
static struct outer outer;

void setUp(void) {
    outer = (struct outer){.count = 7};
}

void tearDown(void) {
    problems_finish(&problems);
    arena_finish(&arena);
}

static const struct yaml_key inner_keys[] = {
    {"wait", yaml_key_number, offsetof(struct inner, wait_ms), YAML_KEY_DURATION(1000, 60000)},
    {0},
};

static void read_inner(struct yaml_reader *reader, const struct yaml_key *key,
                       const struct yaml_node *node, void *to) {
    (void)key;
    yaml_key_read_all(reader, inner_keys, node, to);
}

static void read_item(struct yaml_reader *reader, const struct yaml_node *node, size_t index,
                      void *to) {
    TEST_ASSERT_EQUAL_UINT64(*(size_t *)to, index);
    *(size_t *)to += yaml_key_scalar(reader, node) != NULL;
}

static void read_items(struct yaml_reader *reader, const struct yaml_key *key,
                       const struct yaml_node *node, void *to) {
    (void)key;
    yaml_key_each(reader, node, read_item, to);
}

static const struct yaml_key outer_keys[] = {
    {"count",
     yaml_key_number,
     offsetof(struct outer, count),
     {.type = OPTION_INT, .min = 0, .max = 9}},
    {"inner", read_inner, offsetof(struct outer, inner), {0}},
    {"items", read_items, offsetof(struct outer, n_items), {0}},
    YAML_KEY_TEXT("name", struct outer, name),
    {0},
};

static void load(const char *text) {
    struct yaml_doc *doc CLEANUP_YAML_DOC = yaml_doc_parse("f", text, strlen(text), &problems);
    struct yaml_reader reader = {.file = "f", .problems = &problems, .arena = &arena};
    TEST_ASSERT_NOT_NULL(doc);
    yaml_key_read_all(&reader, outer_keys, yaml_doc_root(doc), &outer);
    TEST_ASSERT_EQUAL_UINT64(0, reader.path.len);
    buf_finish(&reader.path);
}

/* Texts outlive the document; what is not given is left alone. */
static void test_values(void) {
    load("name: x\ninner: {wait: 1m}\nitems: [a, b, c]\n");
    TEST_ASSERT_EQUAL_UINT64(0, problems.n_lines);
    TEST_ASSERT_EQUAL_STRING("x", outer.name);
    TEST_ASSERT_EQUAL_INT64(60000, outer.inner.wait_ms);
    TEST_ASSERT_EQUAL_UINT64(3, outer.n_items);
    TEST_ASSERT_EQUAL_INT64(7, outer.count);
}

static void test_nothing_given(void) {
    load("inner:\nitems: ~\n");
    TEST_ASSERT_EQUAL_UINT64(0, problems.n_lines);
}

static const struct {
    const char *text, *said;
} mistakes[] = {
    {"[]\n", "f:1:1: expected a mapping, got a list"},
    {"nam: x\n", "f:1:1: nam: unknown key, did you mean name?"},
    {"name: ''\n", "f:1:7: name: expected a text, got \"\""},
    {"name: [x]\n", "f:1:7: name: expected a value, got a list"},
    {"inner: 5\n", "f:1:8: inner: expected a mapping, got a value"},
    {"inner:\n  wait: 2h\n", "f:2:9: inner.wait: "},
    {"inner: {wait: {}}\n", "f:1:15: inner.wait: expected "},
    {"items: x\n", "f:1:8: items: expected a list, got a value"},
    {"items: [a, [b]]\n", "f:1:12: items[1]: expected a value, got a list"},
    {"count: 10\n", "f:1:8: count: "},
};

static void test_mistakes(void) {
    for (size_t i = 0; i < ARRAY_LEN(mistakes); i++) {
        load(mistakes[i].text);
        TEST_ASSERT_EQUAL_UINT64_MESSAGE(1, problems.n_lines, mistakes[i].text);
        TEST_ASSERT_EQUAL_STRING_LEN(mistakes[i].said, problems.lines[0], strlen(mistakes[i].said));
        TEST_ASSERT_EQUAL_INT64(7, outer.count);
        problems_finish(&problems);
        outer.n_items = 0;
    }
}

/* One mistake does not hide the next. */
static void test_reading_goes_on(void) {
    load("nam: x\ncount: -1\nname: y\n");
    TEST_ASSERT_EQUAL_UINT64(2, problems.n_lines);
    TEST_ASSERT_EQUAL_STRING("y", outer.name);
}
