#include "exporter/metrics/exposition_merge.h"

#include <stdlib.h>
#include <string.h>

#include "exporter/core/hash.h"

/* What may come from one part only: a series, or all samples of one histogram or summary. */
struct key {
    const char *text; /* NULL: a free slot */
    size_t len;
    size_t owner; /* the part it comes from */
};

struct merge {
    struct buf *out;
    struct key *slots;
    size_t mask;
    struct buf texts; /* of keys that are no part of a line; has room for all, so it never moves */
};

/* Finds the label `name` in rendered labels: `*ret_from` to `*ret_to`, without commas. */
static bool find_label(const char *labels, const char *end, const char *name, const char **ret_from,
                       const char **ret_to) {
    size_t name_len = strlen(name);
    for (const char *from = labels; from < end;) {
        const char *equals = memchr(from, '=', (size_t)(end - from));
        const char *to = equals + 2;
        while (*to != '"') {
            to += *to == '\\' ? 2 : 1;
        }
        to++;
        if ((size_t)(equals - from) == name_len && memcmp(from, name, name_len) == 0) {
            *ret_from = from;
            *ret_to = to;
            return true;
        }
        from = to < end ? to + 1 : end; /* a comma is between */
    }
    return false;
}

/* The labels of a histogram's or summary's sample without the one that tells its samples apart. */
static struct key composite_key(struct merge *merge, const char *series, size_t len,
                                const char *edge) {
    const char *brace = memchr(series, '{', len);
    if (brace == NULL) {
        return (struct key){.text = ""};
    }
    const char *labels = brace + 1;
    const char *end = series + len - 1;
    const char *from, *to;
    if (!find_label(labels, end, edge, &from, &to)) {
        return (struct key){.text = labels, .len = (size_t)(end - labels)};
    }
    if (to < end) {
        to++;
    } else if (from > labels) {
        from--;
    }
    struct buf *texts = &merge->texts;
    size_t start = texts->len;
    buf_add(texts, labels, (size_t)(from - labels));
    buf_add(texts, to, (size_t)(end - to));
    return (struct key){.text = texts->data + start, .len = texts->len - start};
}

static struct key key_of(struct merge *merge, enum metric_type type, const char *series,
                         size_t len) {
    switch (type) {
    case METRIC_HISTOGRAM:
        return composite_key(merge, series, len, "le");
    case METRIC_SUMMARY:
        return composite_key(merge, series, len, "quantile");
    default:
        return (struct key){.text = series, .len = len};
    }
}

/* Whether the key is its owner's: nobody had it before. */
static bool claim(struct merge *merge, struct key key) {
    for (size_t i = hash_bytes(key.text, key.len) & merge->mask;; i = (i + 1) & merge->mask) {
        struct key *other = &merge->slots[i];
        if (other->text == NULL) {
            *other = key;
            return true;
        }
        if (other->len == key.len && memcmp(other->text, key.text, key.len) == 0) {
            return other->owner == key.owner;
        }
    }
}

/* Label values may contain spaces, numbers never do: a series is what stands before the last. */
static void add_piece(struct merge *merge, enum metric_type type, const struct iovec *piece,
                      size_t owner, uint64_t *dropped) {
    const char *end = (const char *)piece->iov_base + piece->iov_len;
    for (const char *line = piece->iov_base; line < end;) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        const char *space = memrchr(line, ' ', (size_t)(newline - line));
        struct key key = key_of(merge, type, line, (size_t)(space - line));
        key.owner = owner;
        if (claim(merge, key)) {
            buf_add(merge->out, line, (size_t)(newline + 1 - line));
        } else {
            (*dropped)++;
        }
        line = newline + 1;
    }
}

static void add_block(struct merge *merge, const struct exposition_block *block, size_t owner,
                      uint64_t *dropped) {
    for (size_t i = 0; i < block->n_pieces; i++) {
        add_piece(merge, block->type, &block->pieces[i], owner, dropped);
    }
}

static bool prepare(struct merge *merge, const struct exposition_block *const *blocks,
                    size_t n_blocks) {
    size_t n_samples = 0, len = 0;
    for (size_t i = 0; i < n_blocks; i++) {
        n_samples += blocks[i] != NULL ? blocks[i]->n_samples : 0;
        len += blocks[i] != NULL ? blocks[i]->len : 0;
    }
    merge->mask = 15;
    while (merge->mask < 2 * n_samples) {
        merge->mask = 2 * merge->mask + 1;
    }
    merge->slots = calloc(merge->mask + 1, sizeof(*merge->slots));
    return merge->slots != NULL && buf_reserve(&merge->texts, len) != NULL;
}

void exposition_merge(struct buf *out, const struct exposition_block *const *blocks,
                      size_t n_blocks, uint64_t *dropped) {
    struct merge merge = {.out = out};
    const struct exposition_block *first = NULL;
    bool ok = prepare(&merge, blocks, n_blocks);
    out->failed |= !ok;
    for (size_t i = 0; ok && i < n_blocks; i++) {
        if (blocks[i] == NULL) {
            continue;
        }
        first = first != NULL ? first : blocks[i];
        if (blocks[i]->type == first->type) {
            add_block(&merge, blocks[i], i, &dropped[i]);
        } else {
            dropped[i] += blocks[i]->n_samples;
        }
    }
    free(merge.slots);
    buf_finish(&merge.texts);
}
