#include "profiler/run/args.h"

#include <errno.h>
#include <string.h>

#include "exporter/core/buf.h"

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Takes one word, of which at least one character is there, and moves behind it. */
static int take_word(const char **at, struct buf *word, struct error *err) {
    char quote = '\0';
    for (; **at != '\0' && (quote != '\0' || !is_blank(**at)); ++*at) {
        char c = **at;
        if (c == quote) {
            quote = '\0';
        } else if (quote == '\0' && (c == '\'' || c == '"')) {
            quote = c;
        } else if (c == '\\' && quote != '\'') {
            c = *++*at;
            if (c == '\0') {
                return error_set(err, -EINVAL, "expected a character behind the last \\");
            }
            buf_add_char(word, c);
        } else {
            buf_add_char(word, c);
        }
    }
    if (quote != '\0') {
        return error_set(err, -EINVAL, "expected a closing %c", quote);
    }
    return word->failed ? error_set(err, -ENOMEM, "out of memory") : 0;
}

/* Appends the words to `words`, as pointers. */
static int take_words(const char *text, struct arena *arena, struct buf *words, struct error *err) {
    for (;;) {
        while (is_blank(*text)) {
            text++;
        }
        if (*text == '\0') {
            return 0;
        }
        struct buf word CLEANUP_BUF = {0};
        int r = take_word(&text, &word, err);
        if (r < 0) {
            return r;
        }
        char *copy = arena_copy(arena, buf_str(&word), word.len + 1);
        if (copy == NULL) {
            return error_set(err, -ENOMEM, "out of memory");
        }
        buf_add(words, &copy, sizeof(copy));
    }
}

const char *const *run_args_list(struct buf *words, struct arena *arena) {
    const char *end = NULL;
    buf_add(words, &end, sizeof(end));
    return words->failed ? NULL : arena_copy(arena, words->data, words->len);
}

int run_args_split(const char *text, struct arena *arena, const char *const **ret_words,
                   struct error *err) {
    struct buf words CLEANUP_BUF = {0};
    int r = take_words(text, arena, &words, err);
    if (r < 0) {
        return r;
    }
    const char *const *list = run_args_list(&words, arena);
    if (list == NULL) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    *ret_words = list;
    return 0;
}
