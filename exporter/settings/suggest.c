#include "exporter/settings/suggest.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Letters to add, remove or replace to get from `a` to `b` (Levenshtein), row by row. */
static size_t edit_distance(const char *a, const char *b, size_t b_len) {
    size_t row[SUGGEST_MAX_LEN + 1];
    for (size_t j = 0; j <= b_len; j++) {
        row[j] = j;
    }
    for (size_t i = 1; a[i - 1] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            size_t replace = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = smaller(replace, smaller(row[j], row[j - 1]) + 1);
        }
    }
    return row[b_len];
}

/* Two swapped letters count as two. */
void suggest_init(struct suggest *suggest, const char *wanted) {
    size_t len = strlen(wanted);
    size_t allowed = len < 6 ? len / 2 : len / 3;
    *suggest = (struct suggest){.wanted = wanted, .allowed = allowed, .distance = SIZE_MAX};
}

static bool is_between(char c) {
    return c == '.' || c == '-' || c == '_';
}

/* Whether `part` is one or some of the parts of `word`; `*ret_group`: the first, before a dot. */
static bool has_part(const char *word, size_t len, const char *part, bool *ret_group) {
    enum { SHORTEST = 3 };
    size_t part_len = strlen(part);
    for (size_t i = 0; part_len >= SHORTEST && i + part_len <= len; i++) {
        bool begins = i == 0 || is_between(word[i - 1]);
        bool ends = i + part_len == len || is_between(word[i + part_len]);
        bool group = i + part_len < len && word[i + part_len] == '.';
        if (begins && ends && (i == 0 || !group) && memcmp(word + i, part, part_len) == 0) {
            *ret_group = group;
            return true;
        }
    }
    return false;
}

void suggest_offer(struct suggest *suggest, const char *word, size_t len) {
    if (len > SUGGEST_MAX_LEN || strlen(suggest->wanted) > SUGGEST_MAX_LEN) {
        return;
    }
    size_t distance = edit_distance(suggest->wanted, word, len);
    if (distance > suggest->allowed) {
        bool group;
        if (!has_part(word, len, suggest->wanted, &group)) {
            return;
        }
        distance = suggest->allowed + (group ? 2 : 1);
        if (group && distance == suggest->distance) {
            suggest->best[0] = '\0'; /* one of several */
        }
    }
    if (distance < suggest->distance) {
        suggest->distance = distance;
        memcpy(suggest->best, word, len);
        suggest->best[len] = '\0';
    }
}

void suggest_write(const struct suggest *suggest, const char *prefix, struct buf *out) {
    if (suggest->best[0] != '\0') {
        buf_printf(out, ", did you mean %s%s?", prefix, suggest->best);
    }
}
