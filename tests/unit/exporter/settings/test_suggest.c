#include "exporter/settings/suggest.h"

#include <string.h>
#include <unity.h>

static const char *const words[] = {"web.listen-address", "web.listen-group", "log.level", "a",
                                    "config.file",        "web.config.file"};

static void test_nearest_word_or_nothing(void) {
    static const struct {
        const char *wanted;
        const char *expected;
    } rows[] = {
        {"web.listen-address", "web.listen-address"},
        {"web.listen_address", "web.listen-address"},
        {"web.listen-adress", "web.listen-address"},
        {"web.listen-groups", "web.listen-group"},
        {"listen-address", "web.listen-address"},
        {"loglevel", "log.level"},
        {"listen", "web.listen-address"},
        {"group", "web.listen-group"},
        {"file", "config.file"},
        {"config", "config.file"},
        {"web", ""},
        {"list", ""},
        {"isten", ""},
        {"lvl", ""},
        {"", ""},
        {"something quite different", ""},
        {"a word that is longer than any name that we would ever offer to anybody here", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct suggest suggest;
        suggest_init(&suggest, rows[i].wanted);
        for (size_t j = 0; j < ARRAY_LEN(words); j++) {
            suggest_offer(&suggest, words[j], strlen(words[j]));
        }
        TEST_ASSERT_EQUAL_STRING_MESSAGE(rows[i].expected, suggest.best, rows[i].wanted);
    }
}

static void test_only_len_bytes_of_a_word_count(void) {
    struct suggest suggest;
    suggest_init(&suggest, "webb");
    suggest_offer(&suggest, "web.listen", 3);
    TEST_ASSERT_EQUAL_STRING("web", suggest.best);
}

static void test_phrase(void) {
    struct suggest suggest;
    struct buf text CLEANUP_BUF = {0};
    suggest_init(&suggest, "log.lvel");
    suggest_write(&suggest, "--", &text);
    TEST_ASSERT_EQUAL_STRING("", buf_str(&text));
    suggest_offer(&suggest, "log.level", strlen("log.level"));
    suggest_write(&suggest, "--", &text);
    TEST_ASSERT_EQUAL_STRING(", did you mean --log.level?", buf_str(&text));
}
