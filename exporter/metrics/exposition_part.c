#include "exporter/metrics/exposition.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/number.h"
#include "exporter/metrics/exposition_lines.h"
#include "exporter/metrics/series_set.h"

/* Families with at least as many samples keep their lines for the next rendering. */
enum { KEPT_MIN = 32 };

struct exposition_part {
    atomic_uint refs;
    size_t n_samples;
    struct buf text; /* lines of the other blocks, then the strings of all */
    struct exposition_block *blocks;
    size_t n_blocks;
};

/* While the text still moves, what points into it is an offset. */
static char *offset_pointer(const struct buf *text) {
    return (char *)(uintptr_t)text->len;
}

static char *resolve(const struct buf *text, const char *offset) {
    return text->data + (uintptr_t)offset;
}

/* A run of families of the same name; nearly always one. */
struct group {
    const struct family **families;
    size_t n_families;
    size_t n_samples;
};

/* One rendering. */
struct rendering {
    struct exposition_part *part;
    struct series_set seen;
    bool keeps;                    /* lines are of use for a next rendering */
    bool owns_last;                /* nobody else reads the last part */
    struct exposition_block *last; /* where we are in its blocks, sorted like ours */
    struct exposition_block *last_end;
};

static void add_line(struct buf *text, const char *name, size_t name_len,
                     const struct sample *sample) {
    char *start = buf_reserve(text, name_len + exposition_line_room(sample));
    if (start != NULL) {
        char *to = exposition_line_begin(start, name, name_len, sample);
        to += number_format(sample->value, to);
        *to++ = '\n';
        text->len += (size_t)(to - start);
    }
}

/* Renders the samples of a group that differ from all before them; returns how many. */
static size_t add_distinct(struct rendering *rendering, const struct group *group) {
    const struct metric_desc *desc = group->families[0]->desc;
    size_t name_len = strlen(desc->name);
    size_t n_added = 0;
    for (size_t i = 0; i < group->n_families; i++) {
        const struct family *family = group->families[i];
        bool fits = family->desc->type == desc->type;
        for (size_t k = 0; fits && k < family->n_samples; k++) {
            const struct sample *sample = &family->samples[k];
            if (series_set_add(&rendering->seen, sample)) {
                add_line(&rendering->part->text, desc->name, name_len, sample);
                n_added++;
            }
        }
    }
    return n_added;
}

/* The lines that the last part has of a family, or NULL; the caller drops them. */
static struct exposition_lines *take_last(struct rendering *rendering, const char *name) {
    struct exposition_block *last = rendering->last;
    while (last < rendering->last_end && strcmp(last->name, name) < 0) {
        last++;
    }
    rendering->last = last;
    if (last == rendering->last_end || last->kept == NULL || strcmp(last->name, name) != 0) {
        return NULL;
    }
    return rendering->owns_last ? TAKE(last->kept) : exposition_lines_ref(last->kept);
}

static bool is_distinct(struct series_set *seen, const struct family *family) {
    for (size_t i = 0; i < family->n_samples; i++) {
        if (!series_set_add(seen, &family->samples[i])) {
            return false;
        }
    }
    return true;
}

/* The lines of a family with many samples, all distinct: those of the last part brought up to date,
 * or made anew. NULL where samples are the same series, or memory is out. Lines that could be
 * brought up to date need not be compared with each other: they were, when they were made. */
static struct exposition_lines *keep(struct rendering *rendering, const struct family *family) {
    struct exposition_lines *lines = take_last(rendering, family->desc->name);
    if (lines != NULL && exposition_lines_update(lines, family)) {
        return lines;
    }
    exposition_lines_unref(lines);
    bool distinct = series_set_prepare(&rendering->seen, family->n_samples) &&
                    is_distinct(&rendering->seen, family);
    return distinct ? exposition_lines_create(family) : NULL;
}

static bool add_group(struct rendering *rendering, const struct group *group) {
    struct exposition_part *part = rendering->part;
    struct buf *text = &part->text;
    struct exposition_block *block = &part->blocks[part->n_blocks++];
    *block = (struct exposition_block){
        .type = group->families[0]->desc->type,
        .n_samples = group->n_samples,
    };
    if (rendering->keeps && group->n_families == 1 && group->n_samples >= KEPT_MIN) {
        block->kept = keep(rendering, group->families[0]);
    }
    if (block->kept != NULL) {
        block->pieces = exposition_lines_pieces(block->kept, &block->n_pieces);
        block->len = exposition_lines_len(block->kept);
    } else {
        if (!series_set_prepare(&rendering->seen, group->n_samples)) {
            return false;
        }
        block->own.iov_base = offset_pointer(text);
        size_t start = text->len;
        block->n_samples = add_distinct(rendering, group);
        block->len = text->len - start;
    }
    part->n_samples += block->n_samples;
    return true;
}

/* Copies the strings of a block behind the lines, so that the part outlives the collector's. */
static void add_strings(struct exposition_part *part, const struct metric_desc *desc) {
    struct exposition_block *block = &part->blocks[part->n_blocks - 1];
    struct buf *text = &part->text;
    block->name = offset_pointer(text);
    buf_add(text, desc->name, strlen(desc->name) + 1);
    block->help = offset_pointer(text);
    buf_add(text, desc->help, strlen(desc->help) + 1);
    if (desc->unit != NULL) {
        block->unit = offset_pointer(text);
        buf_add(text, desc->unit, strlen(desc->unit) + 1);
    }
}

static void settle(struct exposition_part *part) {
    const struct buf *text = &part->text;
    for (size_t i = 0; i < part->n_blocks; i++) {
        struct exposition_block *block = &part->blocks[i];
        block->name = resolve(text, block->name);
        block->help = resolve(text, block->help);
        block->unit = block->unit != NULL ? resolve(text, block->unit) : NULL;
        if (block->kept == NULL) {
            block->own = (struct iovec){resolve(text, block->own.iov_base), block->len};
            block->pieces = &block->own;
            block->n_pieces = 1;
        }
    }
}

/* By name; families of one name stay in the order they were added. */
static int compare_families(const void *a, const void *b) {
    const struct family *left = *(const struct family *const *)a;
    const struct family *right = *(const struct family *const *)b;
    int order = strcmp(left->desc->name, right->desc->name);
    return order != 0 ? order : (left > right) - (left < right);
}

static bool render(struct rendering *rendering, const struct family **sorted, size_t n_families) {
    bool ok = true;
    for (size_t i = 0; ok && i < n_families;) {
        struct group group = {
            .families = sorted + i,
            .n_families = 1,
            .n_samples = sorted[i]->n_samples,
        };
        while (i + group.n_families < n_families &&
               strcmp(sorted[i]->desc->name, sorted[i + group.n_families]->desc->name) == 0) {
            group.n_samples += sorted[i + group.n_families++]->n_samples;
        }
        ok = add_group(rendering, &group);
        add_strings(rendering->part, sorted[i]->desc);
        i += group.n_families;
    }
    return ok && !rendering->part->text.failed;
}

/* An empty part with room for `n` blocks. */
static struct exposition_part *create_part(size_t n, size_t text_len) {
    struct exposition_part *part = calloc(1, sizeof(*part));
    if (part == NULL) {
        return NULL;
    }
    atomic_init(&part->refs, 1);
    part->blocks = calloc(n + 1, sizeof(*part->blocks));
    if (part->blocks == NULL) {
        exposition_part_unref(part);
        return NULL;
    }
    buf_reserve(&part->text, text_len + 1);
    return part;
}

/* Renders `snapshot`; of `last` (may be NULL) lines are taken over, out of it where nobody else
 * reads it. */
static struct exposition_part *create(const struct snapshot *snapshot, struct exposition_part *last,
                                      bool keeps, uint64_t *ret_duplicates) {
    size_t n = snapshot->n_families;
    const struct family **sorted CLEANUP_FREE = malloc((n + 1) * sizeof(struct family *));
    struct exposition_part *part = create_part(n, last != NULL ? last->text.len : 0);
    if (sorted == NULL || part == NULL || snapshot->failed) {
        exposition_part_unref(part);
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        sorted[i] = &snapshot->families[i];
    }
    qsort(sorted, n, sizeof(struct family *), compare_families);
    struct rendering rendering = {.part = part, .keeps = keeps};
    if (last != NULL) {
        rendering.owns_last = atomic_load_explicit(&last->refs, memory_order_acquire) == 1;
        rendering.last = last->blocks;
        rendering.last_end = last->blocks + last->n_blocks;
    }
    bool ok = render(&rendering, sorted, n);
    series_set_finish(&rendering.seen);
    if (!ok) {
        exposition_part_unref(part);
        return NULL;
    }
    settle(part);
    if (ret_duplicates != NULL) {
        *ret_duplicates = snapshot_n_samples(snapshot) - part->n_samples;
    }
    return part;
}

struct exposition_part *exposition_render(struct exposition_renderer *renderer,
                                          const struct snapshot *snapshot,
                                          uint64_t *ret_duplicates) {
    struct exposition_part *last = TAKE(renderer->last);
    struct exposition_part *part = create(snapshot, last, true, ret_duplicates);
    exposition_part_unref(last);
    renderer->last = part != NULL ? exposition_part_ref(part) : NULL;
    return part;
}

void exposition_renderer_finish(struct exposition_renderer *renderer) {
    exposition_part_unref(TAKE(renderer->last));
}

struct exposition_part *exposition_part_create(const struct snapshot *snapshot,
                                               uint64_t *ret_duplicates) {
    return create(snapshot, NULL, false, ret_duplicates);
}

struct exposition_part *exposition_part_ref(struct exposition_part *part) {
    atomic_fetch_add_explicit(&part->refs, 1, memory_order_relaxed);
    return part;
}

void exposition_part_unref(struct exposition_part *part) {
    if (part == NULL || atomic_fetch_sub_explicit(&part->refs, 1, memory_order_acq_rel) > 1) {
        return;
    }
    for (size_t i = 0; i < part->n_blocks; i++) {
        exposition_lines_unref(part->blocks[i].kept);
    }
    buf_finish(&part->text);
    free(part->blocks);
    free(part);
}

const struct exposition_block *exposition_part_blocks(const struct exposition_part *part,
                                                      size_t *ret_n) {
    *ret_n = part->n_blocks;
    return part->blocks;
}
