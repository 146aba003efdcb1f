#include "placement/control/config.h"

#include <errno.h>
#include <string.h>
#include <unity.h>

static struct arena arena;
static struct error error;
static const struct control_entry *entries;
static size_t n;

void tearDown(void) {
    arena_finish(&arena);
}

static int parse(const struct control_loop_config *loop, const char *text) {
    struct buf copy CLEANUP_BUF = {0};
    buf_add_str(&copy, text);
    buf_add_char(&copy, ' ');
    return control_table_parse(copy.data, copy.len, loop, "fps", &arena, &entries, &n, &error);
}

static void test_sorted_and_averaged(void) {
    static const struct control_loop_config loop = {.knob = {.param = "res"}};
    TEST_ASSERT_EQUAL_INT(
        0,
        parse(&loop, "{\"app\":\"x\",\"sweep\":["
                     "{\"knobs\":{\"res\":720,\"mode\":\"a\"},\"measures\":{\"fps\":20,\"w\":5}},"
                     "{\"measures\":{\"fps\":60},\"knobs\":{\"res\":240},\"status\":\"ok\"},"
                     "{\"knobs\":{\"res\":720},\"measures\":{\"fps\":22}},"
                     "{\"knobs\":{\"res\":960},\"measures\":{\"fps\":null}},"
                     "{\"knobs\":{},\"measures\":{\"fps\":1}}"
                     "],\"targets\":[]}"));
    TEST_ASSERT_EQUAL_size_t(2, n);
    TEST_ASSERT_EQUAL_DOUBLE(240, entries[0].position);
    TEST_ASSERT_EQUAL_DOUBLE(60, entries[0].measure);
    TEST_ASSERT_EQUAL_DOUBLE(720, entries[1].position);
    TEST_ASSERT_EQUAL_DOUBLE(21, entries[1].measure);
}

static void test_levels(void) {
    struct knob_value levels[] = {{.form = KNOB_TEXT, .text = "slow"},
                                  {.form = KNOB_TEXT, .text = "fast"}};
    struct control_loop_config loop = {.knob = {.param = "mode"}, .levels = levels, .n_levels = 2};
    TEST_ASSERT_EQUAL_INT(
        0, parse(&loop, "{\"sweep\":[{\"knobs\":{\"mode\":\"fast\"},\"measures\":{\"fps\":20}},"
                        "{\"knobs\":{\"mode\":\"odd\"},\"measures\":{\"fps\":1}},"
                        "{\"knobs\":{\"mode\":\"slow\"},\"measures\":{\"fps\":10}}]}"));
    TEST_ASSERT_EQUAL_size_t(2, n);
    TEST_ASSERT_EQUAL_DOUBLE(0, entries[0].position);
    TEST_ASSERT_EQUAL_DOUBLE(10, entries[0].measure);
}

static void test_what_is_no_table(void) {
    static const struct control_loop_config loop = {.knob = {.param = "res"}};
    static const struct {
        const char *text;
        const char *words;
    } cases[] = {
        {"", "expected a summary"},
        {"[]", "expected a summary"},
        {"{}", "has no \"sweep\""},
        {"{\"sweep\":{}}", "expected a list of runs"},
        {"{\"sweep\":[1]}", "expected knobs and measures"},
        {"{\"sweep\":[{\"knobs\":[]}]}", "expected names and values"},
        {"{\"sweep\":[{\"measures\":{\"fps\":\"x\"}}]}", "number"},
        {"{\"sweep\":[]}", "of 0 runs in the sweep, 0 positions of res have a measure fps"},
        {"{\"sweep\":[{\"knobs\":{\"res\":1},\"measures\":{\"fps\":1}},"
         "{\"knobs\":{\"res\":1},\"measures\":{\"fps\":1}}]}",
         "of 2 runs in the sweep, 1 positions"},
        {"{\"sweep\":[", "line 1"},
        {"{\"sweep\":[{\"knobs\":{\"res\":1,\"mode\":2},\"measures\":{\"p.fps\":1,\"cpu\":null}},"
         "{\"knobs\":{\"res\":2},\"measures\":{\"cpu\":1,\"p.fps\":2,\"fps_max\":3}}]}",
         "of 2 runs in the sweep, 0 positions of res have a measure fps: at least two are needed; "
         "its "
         "knobs: res, mode; its measures: p.fps, cpu, fps_max"},
        {"{\"sweep\":[{\"knobs\":{},\"measures\":{}}]}", "its knobs: none; its measures: none"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        TEST_ASSERT_EQUAL_INT_MESSAGE(-EINVAL, parse(&loop, cases[i].text), cases[i].text);
        TEST_ASSERT_NOT_NULL_MESSAGE(strstr(error.text, cases[i].words), error.text);
    }
}

/* However many there are, the error has room for them. */
static void test_many_measures(void) {
    static const struct control_loop_config loop = {.knob = {.param = "res"}};
    struct buf text CLEANUP_BUF = {0};
    buf_add_str(&text, "{\"sweep\":[{\"measures\":{\"m\":1");
    for (int i = 0; i < 500; i++) {
        buf_printf(&text, ",\"measure_%d\":1", i);
    }
    buf_add_str(&text, "}}]}");
    TEST_ASSERT_EQUAL_INT(-EINVAL, parse(&loop, buf_str(&text)));
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(error.text, "measure_30,"), error.text);
    TEST_ASSERT_EQUAL_STRING(", …", error.text + strlen(error.text) - strlen(", …"));
}
