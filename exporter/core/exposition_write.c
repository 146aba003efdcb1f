#include "exporter/core/exposition.h"

#include <stdlib.h>
#include <string.h>

#include "exporter/core/escape.h"
#include "exporter/core/exposition_escape.h"
#include "exporter/core/hash.h"

/* One place in each part's sorted blocks: pages are written by merging the parts by name. */
struct cursor {
    const struct exposition_block *block;
    const struct exposition_block *end;
    const struct exposition_block *first;
};

struct page {
    struct buf *out;
    enum exposition_format format;
    struct cursor *cursors;
    size_t n_cursors;
    uint64_t *duplicates; /* per cursor, or NULL */
};

static bool has_family(const struct page *page, const char *name, size_t len, const char *ending) {
    for (size_t i = 0; i < page->n_cursors; i++) {
        const struct exposition_block *low = page->cursors[i].first;
        const struct exposition_block *high = page->cursors[i].end;
        while (low < high) {
            const struct exposition_block *mid = low + (high - low) / 2;
            int order = strncmp(mid->name, name, len);
            order = order != 0 ? order : strcmp(mid->name + len, ending);
            if (order == 0) {
                return true;
            }
            if (order < 0) {
                low = mid + 1;
            } else {
                high = mid;
            }
        }
    }
    return false;
}

static bool ends_with(const char *text, size_t len, const char *ending) {
    size_t n = strlen(ending);
    return len > n && memcmp(text + len - n, ending, n) == 0;
}

static void write_text_head(struct buf *out, const struct exposition_block *block) {
    enum metric_type type = block->type == METRIC_INFO ? METRIC_GAUGE : block->type;
    if (block->help[0] != '\0') {
        buf_printf(out, "# HELP %s ", block->name);
        escape_add(out, block->help, false);
        buf_add_char(out, '\n');
    }
    buf_printf(out, "# TYPE %s %s\n", block->name, metric_type_name(type));
}

/* OpenMetrics names a counter's family without _total and an info's without _info. Where the
 * samples lack that ending, or another family already has the shorter name (a counter fps_total
 * beside a gauge fps), the family keeps its full name and the type that allows it. */
static void write_openmetrics_head(const struct page *page, const struct exposition_block *block) {
    const char *type = block->type == METRIC_UNTYPED ? "unknown" : metric_type_name(block->type);
    size_t len = strlen(block->name);
    struct buf *out = page->out;
    if (block->type == METRIC_COUNTER) {
        size_t base = len - strlen("_total");
        bool plain =
            ends_with(block->name, len, "_total") && !has_family(page, block->name, base, "");
        type = plain ? type : "unknown";
        len = plain ? base : len;
    } else if (block->type == METRIC_INFO) {
        size_t base = len - strlen("_info");
        bool plain = ends_with(block->name, len, "_info") &&
                     !has_family(page, block->name, base, "") &&
                     !has_family(page, block->name, base, "_total");
        type = plain ? type : "gauge";
        len = plain ? base : len;
    }
    buf_printf(out, "# TYPE %.*s %s\n", (int)len, block->name, type);
    if (block->unit != NULL && ends_with(block->name, len, block->unit)) {
        buf_printf(out, "# UNIT %.*s %s\n", (int)len, block->name, block->unit);
    }
    if (block->help[0] != '\0') {
        buf_printf(out, "# HELP %.*s ", (int)len, block->name);
        escape_add(out, block->help, true);
        buf_add_char(out, '\n');
    }
}

/* The lines already written for a family that several parts share. Label values may contain spaces,
 * numbers never do: a series is what stands before the last space. */
struct line_set {
    const char **lines;
    size_t mask;
};

static size_t series_len(const char *line, const char *newline) {
    const char *space = memrchr(line, ' ', (size_t)(newline - line));
    return (size_t)(space - line);
}

static bool line_set_add(struct line_set *set, const char *line, size_t len) {
    for (size_t i = hash_bytes(line, len) & set->mask;; i = (i + 1) & set->mask) {
        const char *other = set->lines[i];
        if (other == NULL) {
            set->lines[i] = line;
            return true;
        }
        const char *newline = strchr(other, '\n');
        if (series_len(other, newline) == len && memcmp(other, line, len) == 0) {
            return false;
        }
    }
}

static void write_distinct(struct page *page, const struct exposition_block *block,
                           struct line_set *set, uint64_t *dropped) {
    const char *end = block->lines + block->len;
    for (const char *line = block->lines; line < end;) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        if (line_set_add(set, line, series_len(line, newline))) {
            buf_add(page->out, line, (size_t)(newline + 1 - line));
        } else {
            (*dropped)++;
        }
        line = newline + 1;
    }
}

/* Writes the blocks named like `first` of all cursors and moves these on. */
static void write_shared(struct page *page, const struct exposition_block *first) {
    size_t n_samples = 0;
    for (size_t i = 0; i < page->n_cursors; i++) {
        const struct cursor *cursor = &page->cursors[i];
        bool same = cursor->block < cursor->end && strcmp(cursor->block->name, first->name) == 0;
        n_samples += same ? cursor->block->n_samples : 0;
    }
    struct line_set set = {.mask = 15};
    while (set.mask < 2 * n_samples) {
        set.mask = 2 * set.mask + 1;
    }
    set.lines = calloc(set.mask + 1, sizeof(*set.lines));
    page->out->failed |= set.lines == NULL;
    for (size_t i = 0; i < page->n_cursors && set.lines != NULL; i++) {
        struct cursor *cursor = &page->cursors[i];
        if (cursor->block == cursor->end || strcmp(cursor->block->name, first->name) != 0) {
            continue;
        }
        const struct exposition_block *block = cursor->block++;
        uint64_t dropped = 0;
        if (block->type == first->type) {
            write_distinct(page, block, &set, &dropped);
        } else {
            dropped = block->n_samples;
        }
        if (page->duplicates != NULL) {
            page->duplicates[i] += dropped;
        }
    }
    free(set.lines);
}

/* The cursor with the smallest name; how many stand at that name. */
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

static void write_page(struct page *page) {
    size_t n_same = 0;
    struct cursor *next;
    while ((next = next_cursor(page, &n_same)) != NULL && !page->out->failed) {
        const struct exposition_block *block = next->block;
        if (page->format == EXPOSITION_TEXT) {
            write_text_head(page->out, block);
        } else {
            write_openmetrics_head(page, block);
        }
        if (n_same > 1) {
            write_shared(page, block);
        } else {
            buf_add(page->out, block->lines, block->len);
            next->block++;
        }
    }
    if (page->format != EXPOSITION_TEXT) {
        buf_add_str(page->out, "# EOF\n");
    }
}

void exposition_write(struct buf *out, struct exposition_choice choice,
                      struct exposition_part *const *parts, size_t n_parts, uint64_t *duplicates) {
    struct buf plain CLEANUP_BUF = {0};
    bool escape = choice.escaping == EXPOSITION_ESCAPING_DOTS;
    struct cursor *cursors CLEANUP_FREE = calloc(n_parts + 1, sizeof(*cursors));
    if (cursors == NULL) {
        out->failed = true;
        return;
    }
    size_t total = 0;
    for (size_t i = 0; i < n_parts; i++) {
        size_t n_blocks = 0;
        const struct exposition_block *blocks =
            parts[i] != NULL ? exposition_part_blocks(parts[i], &n_blocks) : NULL;
        cursors[i] = (struct cursor){.block = blocks, .first = blocks, .end = blocks + n_blocks};
        total += parts[i] != NULL ? exposition_part_len(parts[i]) : 0;
    }
    struct page page = {
        .out = escape ? &plain : out,
        .format = choice.format,
        .cursors = cursors,
        .n_cursors = n_parts,
        .duplicates = duplicates,
    };
    buf_reserve(page.out, total + total / 8);
    write_page(&page);
    if (escape) {
        exposition_escape_dots(plain.data, plain.len, out);
        out->failed |= plain.failed;
    }
}
