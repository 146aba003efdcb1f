#include "profiler/run/args.h"

#include <errno.h>
#include <unity.h>

/* The words, each in brackets; or the fault. */
static void show(const char *text, struct buf *out) {
    struct arena arena CLEANUP_ARENA = {0};
    struct error err;
    const char *const *words;
    int r = run_args_split(text, &arena, &words, &err);
    if (r < 0) {
        TEST_ASSERT_EQUAL_INT(-EINVAL, r);
        buf_add_str(out, err.text);
        return;
    }
    for (; *words != NULL; words++) {
        buf_printf(out, "[%s]", *words);
    }
}

static void test_words(void) {
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"", ""},
        {" \t\n ", ""},
        {"-interval 1 --use-gpu", "[-interval][1][--use-gpu]"},
        {"  a   b ", "[a][b]"},
        {"'a b' c", "[a b][c]"},
        {"\"a b\"c", "[a bc]"},
        {"a''b", "[ab]"},
        {"''", "[]"},
        {"\"\" ''", "[][]"},
        {"'a\"b' \"c'd\"", "[a\"b][c'd]"},
        {"a\\ b", "[a b]"},
        {"\"a\\\"b\\\\c\"", "[a\"b\\c]"},
        {"'a\\b'", "[a\\b]"},
        {"; rm -rf / && $(x) `y` $HOME *", "[;][rm][-rf][/][&&][$(x)][`y`][$HOME][*]"},
        {"a\nb", "[a][b]"},
        {"\xc3\xa4 \xe2\x82\xac", "[\xc3\xa4][\xe2\x82\xac]"},
        {"'a", "expected a closing '"},
        {"a \"b'", "expected a closing \""},
        {"a\\", "expected a character behind the last \\"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf shown CLEANUP_BUF = {0};
        show(cases[i].text, &shown);
        TEST_ASSERT_EQUAL_STRING_MESSAGE(cases[i].words, buf_str(&shown), cases[i].text);
    }
}
