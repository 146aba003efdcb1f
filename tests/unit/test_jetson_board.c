#include "collectors/jetson_board.h"

#include <errno.h>
#include <unity.h>

#include "exporter/core/cleanup.h"

void setUp(void) {
}

void tearDown(void) {
}

static void test_chips(void) {
#define LIST(text) text, sizeof(text) - 1
    static const struct {
        const char *text;
        size_t len;
        const char *name; /* NULL: none */
    } cases[] = {
        {LIST("nvidia,p3509-0000+p3668-0000\0nvidia,tegra194\0"), "tegra194"},
        {LIST("nvidia,tegra210\0more\0"), "tegra210"},
        {LIST("nvidia,tegra264"), "tegra264"},
        {LIST("nvidia,tegra2641\0"), NULL},
        {LIST("nvidia,tegra99\0"), NULL},
        {LIST("raspberrypi,4-model-b\0brcm,bcm2711\0"), NULL},
        {LIST("tegra194\0"), NULL},
        {LIST("\0\0\0"), NULL},
        {LIST(""), NULL},
    };
#undef LIST
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct jetson_soc *soc = jetson_soc_parse(cases[i].text, cases[i].len);
        if (cases[i].name == NULL) {
            TEST_ASSERT_NULL_MESSAGE(soc, cases[i].text);
        } else {
            TEST_ASSERT_NOT_NULL_MESSAGE(soc, cases[i].text);
            TEST_ASSERT_EQUAL_STRING(cases[i].name, soc->name);
        }
    }
}

static void test_releases(void) {
    static const struct {
        const char *text;
        const char *l4t; /* "": not understood */
    } cases[] = {
        {"# R36 (release), REVISION: 4.4, GCID: 41062509, BOARD: generic", "36.4.4"},
        {"# R32 (release), REVISION: 7.1, GCID: 2", "32.7.1"},
        {"# R39 (release), REVISION: 2.0", "39.2.0"},
        {"# R21 (release), GCID: 1", ""},
        {"# R21 (release), REVISION:", ""},
        {"R36 (release), REVISION: 4.4,", ""},
        {"# R", ""},
        {"#", ""},
        {"", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf l4t CLEANUP_BUF = {0};
        int r = jetson_l4t_parse(cases[i].text, &l4t);
        TEST_ASSERT_EQUAL_INT_MESSAGE(cases[i].l4t[0] != '\0' ? 0 : -EINVAL, r, cases[i].text);
        TEST_ASSERT_EQUAL_STRING(cases[i].l4t, buf_str(&l4t));
    }
}

int main(void) {
    UNITY_BEGIN();
    RUN_TEST(test_chips);
    RUN_TEST(test_releases);
    return UNITY_END();
}
