#include "collectors/jetson/board.h"

#include <errno.h>
#include <unity.h>

#include "exporter/core/cleanup.h"

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
