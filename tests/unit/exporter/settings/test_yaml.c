#include "exporter/settings/yaml.h"

#include <stdlib.h>
#include <unity.h>

#include "exporter/core/buf.h"

static struct problems problems;
static struct yaml_doc *doc;

void tearDown(void) {
    problems_finish(&problems);
    yaml_doc_destroy(doc);
    doc = NULL;
}

static const struct yaml_node *parse(const char *text) {
    yaml_doc_destroy(doc);
    problems_finish(&problems);
    doc = yaml_doc_parse("f", text, strlen(text), &problems);
    return doc != NULL ? yaml_doc_root(doc) : NULL;
}

/* All problems, one per line. */
static char *problem_text(void) {
    struct buf text = {0};
    for (size_t i = 0; i < problems.n_lines; i++) {
        buf_printf(&text, "%s\n", problems.lines[i]);
    }
    return buf_take(&text);
}

static void test_tree_knows_values_and_places(void) {
    const struct yaml_node *root = parse("# comment\n"
                                         "web:\n"
                                         "  listen_address: [\":9090\", unix:/run/x]\n"
                                         "  empty:\n"
                                         "other: 'text'\n");
    TEST_ASSERT_NOT_NULL(root);
    TEST_ASSERT_EQUAL_UINT64(0, problems.n_lines);
    TEST_ASSERT_EQUAL_INT(YAML_KIND_MAPPING, root->kind);
    TEST_ASSERT_EQUAL_UINT64(2, root->n_items);

    const struct yaml_node *web = yaml_node_get(root, "web");
    TEST_ASSERT_EQUAL_INT(YAML_KIND_MAPPING, web->kind);
    TEST_ASSERT_EQUAL_UINT64(2, web->key_line);
    TEST_ASSERT_EQUAL_UINT64(1, web->key_column);

    const struct yaml_node *list = yaml_node_get(web, "listen_address");
    TEST_ASSERT_EQUAL_INT(YAML_KIND_SEQUENCE, list->kind);
    TEST_ASSERT_EQUAL_UINT64(2, list->n_items);
    TEST_ASSERT_EQUAL_STRING(":9090", list->items[0].text);
    TEST_ASSERT_FALSE(list->items[0].plain);
    TEST_ASSERT_EQUAL_STRING("unix:/run/x", list->items[1].text);
    TEST_ASSERT_TRUE(list->items[1].plain);
    TEST_ASSERT_EQUAL_UINT64(3, list->items[1].line);
    TEST_ASSERT_EQUAL_UINT64(29, list->items[1].column);
    TEST_ASSERT_NULL(list->items[1].key);

    TEST_ASSERT_TRUE(yaml_node_is_null(yaml_node_get(web, "empty")));
    TEST_ASSERT_EQUAL_STRING("text", yaml_node_get(root, "other")->text);
    TEST_ASSERT_NULL(yaml_node_get(root, "missing"));
}

static void test_nothing_is_an_empty_mapping(void) {
    static const char *const texts[] = {"",      "\n\n", "# only a comment\n",
                                        "---\n", "~\n",  "\xef\xbb\xbf# byte order mark\n"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        const struct yaml_node *root = parse(texts[i]);
        TEST_ASSERT_NOT_NULL_MESSAGE(root, texts[i]);
        TEST_ASSERT_EQUAL_INT_MESSAGE(YAML_KIND_MAPPING, root->kind, texts[i]);
        TEST_ASSERT_EQUAL_UINT64_MESSAGE(0, root->n_items, texts[i]);
        TEST_ASSERT_EQUAL_UINT64_MESSAGE(0, problems.n_lines, texts[i]);
    }
}

static void test_null_only_without_quotes(void) {
    const struct yaml_node *root = parse("[null, NULL, ~, '', \"null\", nil, {}]");
    static const bool expected[] = {true, true, true, false, false, false, false};
    TEST_ASSERT_EQUAL_UINT64(ARRAY_LEN(expected), root->n_items);
    for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
        TEST_ASSERT_EQUAL_INT(expected[i], yaml_node_is_null(&root->items[i]));
    }
}

static void test_kinds_have_names(void) {
    const struct yaml_node *root = parse("[~, x, [], {}]");
    TEST_ASSERT_EQUAL_STRING("nothing", yaml_node_kind_name(&root->items[0]));
    TEST_ASSERT_EQUAL_STRING("a value", yaml_node_kind_name(&root->items[1]));
    TEST_ASSERT_EQUAL_STRING("a list", yaml_node_kind_name(&root->items[2]));
    TEST_ASSERT_EQUAL_STRING("a mapping", yaml_node_kind_name(&root->items[3]));
}

struct bad_text {
    const char *text;
    const char *expected; /* all problem lines */
    bool has_tree;
};

static const struct bad_text bad_texts[] = {
    {"a: 1\nb: 2\na: 3\n", "f:3:1: a: duplicate key, first given in line 1\n", true},
    {"a:\n  b: 1\n  c: 1\n  b: 2\n  c: 2\n",
     "f:4:3: a.b: duplicate key, first given in line 2\n"
     "f:5:3: a.c: duplicate key, first given in line 3\n",
     true},
    {"l:\n- {a: 1, a: 2}\n", "f:2:10: l[0].a: duplicate key, first given in line 2\n", true},
    {"a: &x 1\nb: *x\n", "f:2:4: b: aliases (*…) are not supported\n", true},
    {"a: &x [*x]\n", "f:1:8: a[0]: aliases (*…) are not supported\n", true},
    {"a: !!int 5\n", "f:1:4: a: tags (!…) are not supported\n", true},
    {"[a, b]: c\nd: e\n", "f:1:1: a key must be a plain text\n", true},
    {"a: \"x\\0y\"\n", "f:1:4: a: a text must not contain NUL\n", true},
    {"\"k\\n\\e\": 1\n\"k\\n\\e\": 2\n", "f:2:1: k??: duplicate key, first given in line 1\n",
     true},
    {"a: 1\n---\nb: 2\n", "f:2:1: a second document, only one is read\n", true},
    {"a: b: c\n", "f:1:5: not valid YAML: mapping values are not allowed in this context\n", false},
    {"a: [1, 2\nb: 3\n",
     "f:2:2: not valid YAML: did not find expected ',' or ']' while parsing a flow sequence that "
     "began in line 1\n",
     false},
    {"a:\n\t- 1\n", "f:2:1: not valid YAML: a tab, only spaces may indent a line\n", false},
    {"a:\n  \xc3\xa9: 1\n  \tb: 2\n",
     "f:3:3: not valid YAML: a tab, only spaces may indent a line\n", false},
    {"a: @b\n",
     "f:1:4: not valid YAML: found character that cannot start any token while scanning for the "
     "next token that began in line 1\n",
     false},
    {"ok: 1\nbad: \xff\n", "f:2:6: not valid YAML: invalid leading UTF-8 octet\n", false},
    {"ok: 1\nbad: \x01\n", "f:2:6: not valid YAML: control characters are not allowed\n", false},
};

static void test_bad_texts_are_reported_with_their_place(void) {
    for (size_t i = 0; i < ARRAY_LEN(bad_texts); i++) {
        const struct yaml_node *root = parse(bad_texts[i].text);
        char *lines CLEANUP_FREE = problem_text();
        TEST_ASSERT_EQUAL_STRING_MESSAGE(bad_texts[i].expected, lines, bad_texts[i].text);
        TEST_ASSERT_EQUAL_INT_MESSAGE(bad_texts[i].has_tree, root != NULL, bad_texts[i].text);
    }
}

static void test_doubtful_items_are_left_out(void) {
    const struct yaml_node *root = parse("a: 1\nb: *x\n[c]: 2\na: 3\nd: 4\n");
    TEST_ASSERT_EQUAL_UINT64(2, root->n_items);
    TEST_ASSERT_EQUAL_STRING("1", yaml_node_get(root, "a")->text);
    TEST_ASSERT_EQUAL_STRING("4", yaml_node_get(root, "d")->text);
}

static void test_depth_is_bounded(void) {
    char text[67] = {0};
    memset(text, '[', 32);
    memset(text + 32, ']', 32);
    TEST_ASSERT_NOT_NULL(parse(text));
    TEST_ASSERT_EQUAL_UINT64(0, problems.n_lines);

    memset(text, '[', 33);
    memset(text + 33, ']', 33);
    TEST_ASSERT_NULL(parse(text));
    TEST_ASSERT_EQUAL_UINT64(1, problems.n_lines);
    TEST_ASSERT_NOT_NULL(strstr(problems.lines[0], "nested too deep, at most 32 levels are read"));
}

static void test_number_of_values_is_bounded(void) {
    struct buf text CLEANUP_BUF = {0};
    for (int i = 0; i < 19999; i++) {
        buf_add_str(&text, "- x\n");
    }
    TEST_ASSERT_NOT_NULL(parse(buf_str(&text)));
    buf_add_str(&text, "- x\n");
    TEST_ASSERT_NULL(parse(buf_str(&text)));
    TEST_ASSERT_EQUAL_STRING("f:20000:3: [19999]: too long, at most 20000 values are read",
                             problems.lines[0]);
}
