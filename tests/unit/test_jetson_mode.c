#include "collectors/jetson_mode.h"

#include <errno.h>
#include <unity.h>

#include "exporter/core/cleanup.h"

void setUp(void) {
}

void tearDown(void) {
}

static void test_status(void) {
    static const struct {
        const char *text;
        int result;
        unsigned id;
    } cases[] = {
        {"pmode:0002\n", 0, 2},        {"pmode:0008 fmode:quiet\n", 0, 8},
        {"pmode:12", 0, 12},           {"pmode:\n", -EINVAL, 7},
        {"pmode:two\n", -EINVAL, 7},   {"pmode:00000000000000000009\n", -EINVAL, 7},
        {"fmode:quiet\n", -EINVAL, 7}, {"", -EINVAL, 7},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        unsigned id = 7;
        TEST_ASSERT_EQUAL_INT_MESSAGE(cases[i].result, jetson_mode_parse(cases[i].text, &id),
                                      cases[i].text);
        TEST_ASSERT_EQUAL_UINT(cases[i].id, id);
    }
}

static void test_names(void) {
    static const char config[] = "# a comment\n"
                                 "< POWER_MODEL ID=0 NAME=MAXN >\n"
                                 "CPU_ONLINE CORE_0 1\n"
                                 "\n"
                                 "<POWER_MODEL ID=4 NAME=GLUED>\n"
                                 "< POWER_MODEL ID=3 >\n"
                                 "< PM_CONFIG DEFAULT=2 >\n"
                                 "  < POWER_MODEL ID=2 NAME=MODE_15W_6CORE >";
    static const struct {
        unsigned id;
        const char *name; /* "": none */
    } cases[] = {{0, "MAXN"}, {2, "MODE_15W_6CORE"}, {3, ""}, {4, ""}, {9, ""}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf name CLEANUP_BUF = {0};
        int r = jetson_mode_name(config, cases[i].id, &name);
        TEST_ASSERT_EQUAL_INT(cases[i].name[0] != '\0' ? 0 : -ENOENT, r);
        TEST_ASSERT_EQUAL_STRING(cases[i].name, buf_str(&name));
    }
}

int main(void) {
    UNITY_BEGIN();
    RUN_TEST(test_status);
    RUN_TEST(test_names);
    return UNITY_END();
}
