#include <stdlib.h>
#include <string.h>

#include "exporter/core/arena.h"
#include "exporter/core/hash.h"
#include "exporter/core/memory.h"
#include "exporter/core/utf8.h"
#include "exporter/metrics/exposition.h"

/* ---- one family from several parts ---- */

/* One part only provides a series, or all samples of one histogram or summary: its owner. */
struct key {
    const char *text;
    size_t len;
    size_t owner; /* the part it comes from */
};

struct merge {
    struct buf *out;
    struct hash_index keys;
    struct arena arena; /* the keys, and texts of those that are no part of a line */
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

/* The labels of a histogram's or summary's sample without `le` or `quantile`. */
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
    char *text = arena_take(&merge->arena, (size_t)(end - labels));
    char *text_end = mempcpy(text, labels, (size_t)(from - labels));
    text_end = mempcpy(text_end, to, (size_t)(end - to));
    return (struct key){.text = text, .len = (size_t)(text_end - text)};
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

/* Whether no other part has the key. */
static bool claim(struct merge *merge, const struct key *key) {
    uint32_t hash = hash_bytes(key->text, key->len);
    size_t cursor = 0;
    const struct key *other;
    while ((other = hash_index_next(&merge->keys, hash, &cursor)) != NULL) {
        if (other->len == key->len && memcmp(other->text, key->text, key->len) == 0) {
            return other->owner == key->owner;
        }
    }
    hash_index_add(&merge->keys, hash, arena_copy(&merge->arena, key, sizeof(*key)));
    return true;
}

/* Label values may contain spaces, numbers never do: the last space ends the series. */
static void merge_piece(struct merge *merge, enum metric_type type, const struct iovec *piece,
                        size_t owner, uint64_t *dropped) {
    const char *end = (const char *)piece->iov_base + piece->iov_len;
    for (const char *line = piece->iov_base; line < end;) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        const char *space = memrchr(line, ' ', (size_t)(newline - line));
        struct key key = key_of(merge, type, line, (size_t)(space - line));
        key.owner = owner;
        if (claim(merge, &key)) {
            buf_add(merge->out, line, (size_t)(newline + 1 - line));
        } else {
            (*dropped)++;
        }
        line = newline + 1;
    }
}

void exposition_merge(struct buf *out, const struct exposition_block *const *blocks,
                      size_t n_blocks, uint64_t *dropped) {
    struct merge merge = {.out = out};
    const struct exposition_block *first = NULL;
    for (size_t i = 0; i < n_blocks; i++) {
        const struct exposition_block *block = blocks[i];
        if (block == NULL) {
            continue;
        }
        first = first != NULL ? first : block;
        if (block->type != first->type) {
            dropped[i] += block->n_samples;
            continue;
        }
        for (size_t k = 0; k < block->n_pieces; k++) {
            merge_piece(&merge, block->type, &block->pieces[k], i, &dropped[i]);
        }
    }
    hash_index_finish(&merge.keys);
    arena_finish(&merge.arena);
}

/* ---- pages ---- */

/* One place in each part's sorted blocks: pages are written by merging the parts by name. */
struct cursor {
    const struct exposition_block *block;
    const struct exposition_block *end;
    const struct exposition_block *first;
};

/* Lines of a family that are at least this long are referred to, not copied. */
enum { REFERENCE_MIN = 4096 };

struct page {
    struct exposition_page *result;
    struct buf *out;  /* the result's text */
    size_t run_start; /* where in it the piece under way begins */
    enum exposition_format format;
    struct cursor *cursors;
    size_t n_cursors;
    uint64_t *duplicates; /* per cursor, or NULL */
};

/* The block named `name` (its first `len` bytes) plus `ending` of the earliest of `n_parts` parts,
 * or NULL. */
static const struct exposition_block *find_block(const struct page *page, size_t n_parts,
                                                 const char *name, size_t len, const char *ending) {
    for (size_t i = 0; i < n_parts; i++) {
        const struct exposition_block *low = page->cursors[i].first;
        const struct exposition_block *high = page->cursors[i].end;
        while (low < high) {
            const struct exposition_block *mid = low + (high - low) / 2;
            int order = strncmp(mid->name, name, len);
            order = order != 0 ? order : strcmp(mid->name + len, ending);
            if (order == 0) {
                return mid;
            }
            if (order < 0) {
                low = mid + 1;
            } else {
                high = mid;
            }
        }
    }
    return NULL;
}

static bool is_composite(const struct exposition_block *block) {
    return block != NULL && (block->type == METRIC_HISTOGRAM || block->type == METRIC_SUMMARY);
}

/* The endings of a histogram's or summary's samples. */
static const char *const sample_endings[] = {"_bucket", "_count", "_sum"};

/* Whether a histogram or summary of the first `n_parts` parts has samples of that name: x_count. */
static bool is_sample_name(const struct page *page, size_t n_parts, const char *name, size_t len) {
    for (size_t i = 0; i < ARRAY_LEN(sample_endings); i++) {
        if (metric_name_ends_with(name, len, sample_endings[i]) &&
            is_composite(find_block(page, n_parts, name, len - strlen(sample_endings[i]), ""))) {
            return true;
        }
    }
    return false;
}

/* Whether readers would take the samples of a family for another's: of a histogram x and a gauge
 * x_count only the one of the earlier part is served. */
static bool is_ambiguous(const struct page *page, size_t part,
                         const struct exposition_block *block) {
    size_t len = strlen(block->name);
    if (is_sample_name(page, part + 1, block->name, len)) {
        return true;
    }
    for (size_t i = 0; is_composite(block) && i < ARRAY_LEN(sample_endings); i++) {
        if (find_block(page, part, block->name, len, sample_endings[i]) != NULL) {
            return true;
        }
    }
    return false;
}

/* OpenMetrics reserves x_created for the creation time of a counter, histogram or summary x.
 * Python's client writes such gauges in the text format. */
static bool is_creation_time(const struct page *page, const struct exposition_block *block) {
    size_t len = strlen(block->name);
    if (!metric_name_ends_with(block->name, len, "_created")) {
        return false;
    }
    len -= strlen("_created");
    const struct exposition_block *owner = find_block(page, page->n_cursors, block->name, len, "");
    if (owner != NULL) {
        return is_composite(owner);
    }
    owner = find_block(page, page->n_cursors, block->name, len, "_total");
    return owner != NULL && owner->type == METRIC_COUNTER;
}

/* "# TYPE name text": pages of small families consist of these, hence without printf. */
static void begin_comment(struct buf *out, const char *keyword, const char *name, size_t len) {
    buf_add_str(out, keyword);
    buf_add(out, name, len);
    buf_add_char(out, ' ');
}

static void write_comment(struct buf *out, const char *keyword, const char *name, size_t len,
                          const char *text) {
    begin_comment(out, keyword, name, len);
    buf_add_str(out, text);
    buf_add_char(out, '\n');
}

static void write_help(struct buf *out, const struct exposition_block *block, size_t len,
                       bool quotes) {
    if (block->help[0] != '\0') {
        begin_comment(out, "# HELP ", block->name, len);
        utf8_add_escaped(out, block->help, quotes);
        buf_add_char(out, '\n');
    }
}

static void write_text_head(struct buf *out, const struct exposition_block *block) {
    enum metric_type type = block->type == METRIC_INFO ? METRIC_GAUGE : block->type;
    size_t len = strlen(block->name);
    write_help(out, block, len, false);
    write_comment(out, "# TYPE ", block->name, len, metric_type_name(type));
}

/* OpenMetrics names the family of the counter x_total and of the info x_info just x. If the name
 * lacks that ending, or x is also another family's name (a counter fps_total beside a gauge fps),
 * the family keeps its full name and gets the type that allows it. */
static bool loses_ending(const struct page *page, const struct exposition_block *block,
                         const char *ending) {
    size_t len = strlen(block->name);
    if (!metric_name_ends_with(block->name, len, ending)) {
        return false;
    }
    len -= strlen(ending);
    bool is_info = block->type == METRIC_INFO;
    return find_block(page, page->n_cursors, block->name, len, "") == NULL &&
           !(is_info && find_block(page, page->n_cursors, block->name, len, "_total") != NULL) &&
           !is_sample_name(page, page->n_cursors, block->name, len);
}

static void write_openmetrics_head(const struct page *page, const struct exposition_block *block) {
    static const struct {
        const char *type, *ending, *type_with_ending;
    } kinds[] = {
        [METRIC_UNTYPED] = {.type = "unknown"}, [METRIC_COUNTER] = {"counter", "_total", "unknown"},
        [METRIC_GAUGE] = {.type = "gauge"},     [METRIC_HISTOGRAM] = {.type = "histogram"},
        [METRIC_SUMMARY] = {.type = "summary"}, [METRIC_INFO] = {"info", "_info", "gauge"},
    };
    const char *type = kinds[block->type].type;
    const char *ending = kinds[block->type].ending;
    size_t len = strlen(block->name);
    if (ending != NULL && loses_ending(page, block, ending)) {
        len -= strlen(ending);
    } else if (ending != NULL) {
        type = kinds[block->type].type_with_ending;
    }
    write_comment(page->out, "# TYPE ", block->name, len, type);
    /* The unit must be the name's last word, and an info can have none. */
    if (block->unit != NULL && block->unit[0] != '\0' && block->type != METRIC_INFO &&
        metric_name_has_unit(block->name, len, block->unit)) {
        write_comment(page->out, "# UNIT ", block->name, len, block->unit);
    }
    write_help(page->out, block, len, true);
}

/* Writes the blocks of that name of all cursors and moves these on. */
static void write_shared(struct page *page, const char *name) {
    const struct exposition_block **blocks CLEANUP_FREE =
        mem_zalloc(page->n_cursors, sizeof(*blocks));
    uint64_t *dropped CLEANUP_FREE = mem_zalloc(page->n_cursors, sizeof(*dropped));
    for (size_t i = 0; i < page->n_cursors; i++) {
        struct cursor *cursor = &page->cursors[i];
        if (cursor->block < cursor->end && strcmp(cursor->block->name, name) == 0) {
            blocks[i] = cursor->block++;
        }
    }
    exposition_merge(page->out, blocks, page->n_cursors, dropped);
    for (size_t i = 0; i < page->n_cursors && page->duplicates != NULL; i++) {
        page->duplicates[i] += dropped[i];
    }
}

/* The cursor with the smallest name; how many are at that name. */
static struct cursor *next_cursor(const struct page *page, size_t *ret_n_same) {
    struct cursor *next = NULL;
    for (size_t i = 0; i < page->n_cursors; i++) {
        struct cursor *cursor = &page->cursors[i];
        if (cursor->block == cursor->end) {
            continue;
        }
        int order = next == NULL ? -1 : strcmp(cursor->block->name, next->block->name);
        if (order < 0) {
            next = cursor;
            *ret_n_same = 1;
        } else if (order == 0) {
            (*ret_n_same)++;
        }
    }
    return next;
}

static void add_piece(struct page *page, const char *data, size_t len) {
    struct exposition_page *result = page->result;
    ARRAY_GROW(&result->pieces, &result->cap_pieces, result->n_pieces + 1);
    result->pieces[result->n_pieces++] = (struct iovec){(char *)data, len};
    result->len += len;
}

/* Ends the piece of own text under way; it has no address yet, as the text may still move. */
static void end_run(struct page *page) {
    size_t len = page->out->len - page->run_start;
    if (len > 0) {
        add_piece(page, NULL, len);
    }
    page->run_start = page->out->len;
}

static void write_lines(struct page *page, const struct exposition_block *block) {
    bool refer = block->len >= REFERENCE_MIN;
    if (refer) {
        end_run(page);
    }
    for (size_t i = 0; i < block->n_pieces; i++) {
        const struct iovec *piece = &block->pieces[i];
        if (refer) {
            add_piece(page, piece->iov_base, piece->iov_len);
        } else {
            buf_add(page->out, piece->iov_base, piece->iov_len);
        }
    }
}

/* Skips the blocks of that name. */
static void skip(struct page *page, const char *name, bool counted) {
    for (size_t i = 0; i < page->n_cursors; i++) {
        struct cursor *cursor = &page->cursors[i];
        if (cursor->block == cursor->end || strcmp(cursor->block->name, name) != 0) {
            continue;
        }
        if (counted && page->duplicates != NULL) {
            page->duplicates[i] += cursor->block->n_samples;
        }
        cursor->block++;
    }
}

static void write_family(struct page *page, struct cursor *cursor, size_t n_same) {
    const struct exposition_block *block = cursor->block;
    bool text = page->format == EXPOSITION_TEXT;
    if (is_ambiguous(page, (size_t)(cursor - page->cursors), block)) {
        skip(page, block->name, true);
        return;
    }
    if (!text && is_creation_time(page, block)) {
        skip(page, block->name, false);
        return;
    }
    if (text) {
        write_text_head(page->out, block);
    } else {
        write_openmetrics_head(page, block);
    }
    if (n_same > 1) {
        write_shared(page, block->name);
    } else {
        write_lines(page, block);
        cursor->block++;
    }
}

/* Gives the pieces of own text their addresses. */
static void settle(struct exposition_page *result) {
    char *text = result->text.data;
    for (size_t i = 0; i < result->n_pieces; i++) {
        if (result->pieces[i].iov_base == NULL) {
            result->pieces[i].iov_base = text;
            text += result->pieces[i].iov_len;
        }
    }
}

void exposition_page_write(struct exposition_page *result, struct exposition_choice choice,
                           struct exposition_part *const *parts, size_t n_parts,
                           uint64_t *duplicates) {
    struct cursor *cursors CLEANUP_FREE = mem_zalloc(n_parts, sizeof(*cursors));
    for (size_t i = 0; i < n_parts; i++) {
        size_t n_blocks = 0;
        const struct exposition_block *blocks =
            parts[i] != NULL ? exposition_part_blocks(parts[i], &n_blocks) : NULL;
        if (n_blocks == 0) {
            continue; /* a zeroed cursor is at its end */
        }
        cursors[i] = (struct cursor){.block = blocks, .first = blocks, .end = blocks + n_blocks};
    }
    struct page page = {
        .result = result,
        .out = &result->text,
        .format = choice.format,
        .cursors = cursors,
        .n_cursors = n_parts,
        .duplicates = duplicates,
    };
    size_t n_same = 0;
    struct cursor *next;
    while ((next = next_cursor(&page, &n_same)) != NULL) {
        write_family(&page, next, n_same);
    }
    if (choice.format != EXPOSITION_TEXT) {
        buf_add_str(page.out, "# EOF\n");
    }
    end_run(&page);
    settle(result);
}

void exposition_page_finish(struct exposition_page *page) {
    buf_finish(&page->text);
    free(page->pieces);
    *page = (struct exposition_page){0};
}
