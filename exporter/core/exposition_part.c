#include "exporter/core/exposition.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/number.h"

/* Room around name and labels on a sample line: suffix, braces, space, newline. */
enum { LINE_OVERHEAD = 16 };

struct exposition_part {
    atomic_uint refs;
    size_t n_samples;
    struct buf text; /* lines of all blocks, then their strings */
    struct exposition_block *blocks;
    size_t n_blocks, cap_blocks;
};

/* While the text still moves, a block's pointers are offsets into it. */
static const char *offset_pointer(const struct buf *text) {
    return (const char *)(uintptr_t)text->len;
}

static const char *resolve(const struct buf *text, const char *offset) {
    return text->data + (uintptr_t)offset;
}

/* The set of series seen in one family: slots of hash and running number, 0 is free. */
struct seen {
    uint64_t *slots;
    size_t mask;
    size_t cap;
};

static bool seen_prepare(struct seen *seen, size_t n_series) {
    size_t n_slots = 16;
    while (n_slots < 2 * n_series) {
        n_slots *= 2;
    }
    if (n_slots > seen->cap) {
        free(seen->slots);
        seen->slots = malloc(n_slots * sizeof(*seen->slots));
        seen->cap = seen->slots != NULL ? n_slots : 0;
    }
    seen->mask = n_slots - 1;
    if (seen->slots != NULL) {
        memset(seen->slots, 0, n_slots * sizeof(*seen->slots));
    }
    return seen->slots != NULL;
}

/* No labels and an empty set of them are the same series, so they hash alike. */
static uint32_t sample_hash(const struct sample *sample) {
    const struct labels *labels = sample->labels;
    uint32_t hash = labels != NULL && labels->len > 0 ? labels->hash : 0;
    for (const char *c = sample->suffix; *c != '\0'; c++) {
        hash = (hash ^ (unsigned char)*c) * UINT32_C(0x01000193);
    }
    return hash;
}

/* A run of families of the same name; nearly always one. */
struct group {
    const struct family **families;
    size_t n_families;
    size_t n_samples;
};

static const struct sample *group_sample(const struct group *group, size_t number) {
    const struct family *const *family = group->families;
    while (number >= (*family)->n_samples) {
        number -= (*family)->n_samples;
        family++;
    }
    return &(*family)->samples[number];
}

/* Slots are hit at random and large families outgrow the cache: a slot is called for while the
 * samples before it are rendered. */
enum { SEEN_AHEAD = 12 };

static void seen_prefetch(const struct seen *seen, const struct sample *sample) {
    __builtin_prefetch(&seen->slots[sample_hash(sample) & seen->mask], 1);
}

/* Notes a sample; false if one with equal suffix and labels was there before. */
static bool seen_add(struct seen *seen, const struct group *group, const struct sample *sample,
                     size_t number) {
    uint32_t hash = sample_hash(sample);
    for (size_t i = hash & seen->mask;; i = (i + 1) & seen->mask) {
        uint64_t slot = seen->slots[i];
        if (slot == 0) {
            seen->slots[i] = (uint64_t)hash << 32 | (uint64_t)(number + 1);
            return true;
        }
        if (slot >> 32 != hash) {
            continue;
        }
        const struct sample *other = group_sample(group, (size_t)(slot & UINT32_MAX) - 1);
        if (strcmp(other->suffix, sample->suffix) == 0 &&
            labels_equal(other->labels, sample->labels)) {
            return false;
        }
    }
}

/* memcpy for the short texts that lines are made of: without a call where at most a few words are
 * moved. The last word overlaps the one before it. */
static inline char *copy_text(char *to, const char *from, size_t len) {
    enum { WORD = 16 };
    if (len < WORD) {
        return mempcpy(to, from, len);
    }
    for (size_t i = 0; i + WORD < len; i += WORD) {
        memcpy(to + i, from + i, WORD);
    }
    memcpy(to + len - WORD, from + len - WORD, WORD);
    return to + len;
}

static size_t labels_len(const struct sample *sample) {
    return sample->labels != NULL ? sample->labels->len : 0;
}

static size_t suffix_len(const struct sample *sample) {
    return sample->suffix[0] != '\0' ? strlen(sample->suffix) : 0;
}

/* The most that a line can take, but for the name. */
static size_t line_room(const struct sample *sample) {
    return suffix_len(sample) + labels_len(sample) + NUMBER_MAX_LEN + LINE_OVERHEAD;
}

/* Writes a line where there is room for it; returns its end. */
static char *write_line(char *to, const char *name, size_t name_len, const struct sample *sample) {
    to = copy_text(to, name, name_len);
    if (sample->suffix[0] != '\0') {
        to = stpcpy(to, sample->suffix);
    }
    size_t len = labels_len(sample);
    if (len > 0) {
        *to++ = '{';
        to = copy_text(to, sample->labels->text, len);
        *to++ = '}';
    }
    *to++ = ' ';
    to += number_format(sample->value, to);
    *to++ = '\n';
    return to;
}

static void add_line(struct buf *text, const char *name, size_t name_len,
                     const struct sample *sample) {
    char *start = buf_reserve(text, name_len + line_room(sample));
    if (start != NULL) {
        text->len += (size_t)(write_line(start, name, name_len, sample) - start);
    }
}

/* Series seen in their order, as one number; never 0 once settled by `| 1`. */
static uint64_t fingerprint_add(uint64_t fingerprint, const struct sample *sample) {
    fingerprint = (fingerprint ^ sample_hash(sample)) * UINT64_C(0x9e3779b97f4a7c15);
    return fingerprint ^ fingerprint >> 29;
}

/* Renders all samples of a family; returns the fingerprint of its series. Works in batches: the
 * first look at them fetches their labels from memory, many at a time. */
static uint64_t add_all(struct buf *text, const struct family *family) {
    enum { BATCH = 64 };
    const char *name = family->desc->name;
    size_t name_len = strlen(name);
    uint64_t fingerprint = family->n_samples;
    for (size_t i = 0; i < family->n_samples;) {
        size_t end = i + BATCH < family->n_samples ? i + BATCH : family->n_samples;
        size_t room = (end - i) * name_len;
        for (size_t k = i; k < end; k++) {
            room += line_room(&family->samples[k]);
            fingerprint = fingerprint_add(fingerprint, &family->samples[k]);
        }
        char *start = buf_reserve(text, room);
        if (start == NULL) {
            break;
        }
        char *to = start;
        for (; i < end; i++) {
            to = write_line(to, name, name_len, &family->samples[i]);
        }
        text->len += (size_t)(to - start);
    }
    return fingerprint | 1;
}

/* Renders the samples of a group that differ from all before them; counts them in `*ret_n_added`
 * and returns the fingerprint of all. */
static uint64_t add_distinct(struct buf *text, const struct group *group, struct seen *seen,
                             size_t *ret_n_added) {
    const struct metric_desc *desc = group->families[0]->desc;
    size_t name_len = strlen(desc->name);
    uint64_t fingerprint = group->n_samples;
    size_t number = 0;
    *ret_n_added = 0;
    for (size_t i = 0; i < group->n_families; i++) {
        const struct family *family = group->families[i];
        bool fits = family->desc->type == desc->type;
        for (size_t k = 0; k < family->n_samples; k++, number++) {
            const struct sample *sample = &family->samples[k];
            if (k + SEEN_AHEAD < family->n_samples) {
                seen_prefetch(seen, sample + SEEN_AHEAD);
            }
            fingerprint = fingerprint_add(fingerprint, sample);
            if (fits && seen_add(seen, group, sample, number)) {
                add_line(text, desc->name, name_len, sample);
                (*ret_n_added)++;
            }
        }
    }
    return fingerprint | 1;
}

/* Series mostly are what they were at the last rendering. Then they need not be compared with each
 * other again, which costs more than rendering them: `*known` tells by their fingerprint. */
static bool add_group(struct exposition_part *part, const struct group *group, struct seen *seen,
                      uint64_t *known) {
    struct buf *text = &part->text;
    struct exposition_block *block = &part->blocks[part->n_blocks++];
    *block = (struct exposition_block){
        .type = group->families[0]->desc->type,
        .lines = offset_pointer(text),
        .n_samples = group->n_samples,
    };
    size_t start = text->len;
    bool was_distinct = *known != 0 && group->n_families == 1;
    if (!was_distinct || add_all(text, group->families[0]) != *known) {
        if (!seen_prepare(seen, group->n_samples)) {
            return false;
        }
        buf_truncate(text, start);
        uint64_t fingerprint = add_distinct(text, group, seen, &block->n_samples);
        *known = block->n_samples == group->n_samples ? fingerprint : 0;
    }
    block->len = text->len - start;
    part->n_samples += block->n_samples;
    return true;
}

/* Copies the strings of a block behind the lines, so that the part outlives the collector's. */
static void add_strings(struct exposition_part *part, struct exposition_block *block,
                        const struct metric_desc *desc) {
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
        block->lines = resolve(text, block->lines);
        block->name = resolve(text, block->name);
        block->help = resolve(text, block->help);
        block->unit = block->unit != NULL ? resolve(text, block->unit) : NULL;
    }
}

/* By name; families of one name stay in the order they were added. */
static int compare_families(const void *a, const void *b) {
    const struct family *left = *(const struct family *const *)a;
    const struct family *right = *(const struct family *const *)b;
    int order = strcmp(left->desc->name, right->desc->name);
    return order != 0 ? order : (left > right) - (left < right);
}

static bool render(struct exposition_part *part, const struct family **sorted, size_t n_families,
                   uint64_t *known) {
    struct seen seen = {0};
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
        ok = group.n_samples < UINT32_MAX && add_group(part, &group, &seen, &known[part->n_blocks]);
        if (ok) {
            add_strings(part, &part->blocks[part->n_blocks - 1], sorted[i]->desc);
        }
        i += group.n_families;
    }
    free(seen.slots);
    return ok && !part->text.failed;
}

/* Makes room for `n` families in the renderer's table; those it has keep what is known of them. */
static bool prepare_known(struct exposition_renderer *renderer, size_t n) {
    if (n <= renderer->n_known) {
        return true;
    }
    uint64_t *known = realloc(renderer->known, n * sizeof(*known));
    if (known == NULL) {
        return false;
    }
    memset(known + renderer->n_known, 0, (n - renderer->n_known) * sizeof(*known));
    renderer->known = known;
    renderer->n_known = n;
    return true;
}

/* An empty part with room for `n` blocks: the last one if nobody reads it any more. */
static struct exposition_part *take_part(struct exposition_renderer *renderer, size_t n) {
    struct exposition_part *part = TAKE(renderer->last);
    if (part != NULL && atomic_load_explicit(&part->refs, memory_order_acquire) > 1) {
        exposition_part_unref(TAKE(part));
    }
    if (part == NULL) {
        part = calloc(1, sizeof(*part));
        if (part == NULL) {
            return NULL;
        }
        atomic_init(&part->refs, 1);
    }
    if (n > part->cap_blocks) {
        struct exposition_block *blocks = realloc(part->blocks, n * sizeof(*blocks));
        if (blocks == NULL) {
            exposition_part_unref(part);
            return NULL;
        }
        part->blocks = blocks;
        part->cap_blocks = n;
    }
    buf_reset(&part->text);
    part->n_blocks = 0;
    part->n_samples = 0;
    return part;
}

struct exposition_part *exposition_render(struct exposition_renderer *renderer,
                                          const struct snapshot *snapshot,
                                          uint64_t *ret_duplicates) {
    size_t n = snapshot->n_families;
    const struct family **sorted CLEANUP_FREE = malloc((n + 1) * sizeof(struct family *));
    if (sorted == NULL || snapshot->failed || !prepare_known(renderer, n)) {
        return NULL;
    }
    struct exposition_part *part = take_part(renderer, n);
    if (part == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        sorted[i] = &snapshot->families[i];
    }
    qsort(sorted, n, sizeof(struct family *), compare_families);
    if (!render(part, sorted, n, renderer->known)) {
        exposition_part_unref(part);
        return NULL;
    }
    settle(part);
    if (ret_duplicates != NULL) {
        *ret_duplicates = snapshot_n_samples(snapshot) - part->n_samples;
    }
    renderer->last = exposition_part_ref(part);
    return part;
}

void exposition_renderer_finish(struct exposition_renderer *renderer) {
    exposition_part_unref(renderer->last);
    free(renderer->known);
    *renderer = (struct exposition_renderer){0};
}

struct exposition_part *exposition_part_create(const struct snapshot *snapshot,
                                               uint64_t *ret_duplicates) {
    struct exposition_renderer renderer = {0};
    struct exposition_part *part = exposition_render(&renderer, snapshot, ret_duplicates);
    exposition_renderer_finish(&renderer);
    return part;
}

struct exposition_part *exposition_part_ref(struct exposition_part *part) {
    atomic_fetch_add_explicit(&part->refs, 1, memory_order_relaxed);
    return part;
}

void exposition_part_unref(struct exposition_part *part) {
    if (part != NULL && atomic_fetch_sub_explicit(&part->refs, 1, memory_order_acq_rel) == 1) {
        buf_finish(&part->text);
        free(part->blocks);
        free(part);
    }
}

const struct exposition_block *exposition_part_blocks(const struct exposition_part *part,
                                                      size_t *ret_n) {
    *ret_n = part->n_blocks;
    return part->blocks;
}

size_t exposition_part_n_samples(const struct exposition_part *part) {
    return part->n_samples;
}
