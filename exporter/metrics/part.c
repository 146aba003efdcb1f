#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "exporter/core/arena.h"
#include "exporter/core/hash.h"
#include "exporter/core/memory.h"
#include "exporter/core/number.h"
#include "exporter/metrics/exposition.h"

/* ---- series that are the same ---- */

/* No labels and an empty set of them are the same series, so they hash alike. */
static uint32_t series_hash(const struct sample *sample) {
    const struct labels *labels = sample->labels;
    uint32_t result = labels != NULL && labels->len > 0 ? labels->hash : 0;
    for (const char *c = sample->suffix; *c != '\0'; c++) {
        result = (result ^ (unsigned char)*c) * UINT32_C(0x01000193);
    }
    return result;
}

static bool is_same_series(const struct sample *a, const struct sample *b) {
    return strcmp(a->suffix, b->suffix) == 0 && labels_equal(a->labels, b->labels);
}

/* Adds a series; false if it was there before. */
static bool add_series(struct hash_index *seen, const struct sample *sample) {
    uint32_t hash = series_hash(sample);
    size_t cursor = 0;
    const struct sample *other;
    while ((other = hash_index_next(seen, hash, &cursor)) != NULL) {
        if (is_same_series(other, sample)) {
            return false;
        }
    }
    hash_index_add(seen, hash, (void *)sample);
    return true;
}

/* ---- kept lines ---- */

/* Room around name and labels on a line: braces, space, newline. */
enum { LINE_OVERHEAD = 4 };

/* Lines per piece. If a value becomes longer or shorter, only the lines of its piece move. */
enum { PIECE_LINES = 512 };

/* The place of a value in its piece. */
struct number_place {
    uint32_t at;
    uint32_t len;
};

/* The lines of a family with many series, kept for the next rendering: only new values are written.
 */
struct exposition_lines {
    atomic_uint refs;
    char *name;
    size_t name_len;
    size_t n_lines;
    struct sample *samples;       /* as they were rendered; their labels may be gone */
    uint64_t *ids;                /* of the labels */
    uint64_t last_id;             /* labels_last_id() when the samples had these labels */
    struct number_place *numbers; /* of each line */
    struct iovec *pieces;
    size_t n_pieces;
    size_t len; /* of all pieces */
    char *text;
};

/* ---- one line ---- */

/* memcpy without a call, for short texts. The last word overlaps the one before it. */
static inline char *copy_text(char *to, const char *from, size_t len) {
    if (len < 4) {
        for (size_t i = 0; i < len; i++) {
            to[i] = from[i];
        }
    } else if (len < 8) {
        memcpy(to, from, 4);
        memcpy(to + len - 4, from + len - 4, 4);
    } else if (len < 16) {
        memcpy(to, from, 8);
        memcpy(to + len - 8, from + len - 8, 8);
    } else {
        for (size_t i = 0; i + 16 < len; i += 16) {
            memcpy(to + i, from + i, 16);
        }
        memcpy(to + len - 16, from + len - 16, 16);
    }
    return to + len;
}

static size_t labels_len(const struct sample *sample) {
    return sample->labels != NULL ? sample->labels->len : 0;
}

/* The most that one line can take, but for the family's name. */
static size_t line_room(const struct sample *sample) {
    size_t suffix_len = sample->suffix[0] != '\0' ? strlen(sample->suffix) : 0;
    return suffix_len + labels_len(sample) + NUMBER_MAX_LEN + LINE_OVERHEAD;
}

/* Writes a line up to its value; returns the end. */
static char *begin_line(char *to, const char *name, size_t name_len, const struct sample *sample) {
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
    return to;
}

/* Compared as bits one NaN is like another, and 0 is not -0. */
static uint64_t value_bits(const struct sample *sample) {
    uint64_t bits;
    memcpy(&bits, &sample->value, sizeof(bits));
    return bits;
}

static uint64_t labels_id(const struct sample *sample) {
    return sample->labels != NULL ? sample->labels->id : 0;
}

/* ---- one piece ---- */

static size_t piece_begin(size_t piece) {
    return piece * PIECE_LINES;
}

static size_t piece_end(const struct exposition_lines *lines, size_t piece) {
    size_t end = piece_begin(piece + 1);
    return end < lines->n_lines ? end : lines->n_lines;
}

static void render_piece(struct exposition_lines *lines, const struct family *family,
                         size_t number) {
    struct iovec *piece = &lines->pieces[number];
    char *start = piece->iov_base;
    char *to = start;
    size_t end = piece_end(lines, number);
    for (size_t i = piece_begin(number); i < end; i++) {
        const struct sample *sample = &family->samples[i];
        lines->samples[i] = *sample;
        to = begin_line(to, lines->name, lines->name_len, sample);
        size_t len = number_format(sample->value, to);
        lines->numbers[i] = (struct number_place){(uint32_t)(to - start), (uint32_t)len};
        to += len;
        *to++ = '\n';
    }
    lines->len += (size_t)(to - start) - piece->iov_len;
    piece->iov_len = (size_t)(to - start);
}

/* Overwrites a value and restores the bytes behind it; false: the new one has another length. */
static bool patch_number(char *to, size_t len, double value) {
    char behind[NUMBER_MAX_LEN];
    memcpy(behind, to + len, sizeof(behind));
    bool fits = number_format(value, to) == len;
    memcpy(to + len, behind, sizeof(behind));
    return fits;
}

/* Writes the values that have changed, up to one that has another length. */
static bool patch_piece(struct exposition_lines *lines, const struct family *family,
                        size_t number) {
    char *start = lines->pieces[number].iov_base;
    size_t end = piece_end(lines, number);
    for (size_t i = piece_begin(number); i < end; i++) {
        struct sample *sample = &lines->samples[i];
        if (value_bits(sample) == value_bits(&family->samples[i])) {
            continue;
        }
        sample->value = family->samples[i].value;
        if (!patch_number(start + lines->numbers[i].at, lines->numbers[i].len, sample->value)) {
            return false;
        }
    }
    return true;
}

/* Whether the labels that lie where they lay are still the same ones. */
static bool has_same_labels(const struct exposition_lines *lines, const struct family *family,
                            size_t piece) {
    bool differ = false;
    size_t end = piece_end(lines, piece);
    for (size_t i = piece_begin(piece); i < end; i++) {
        differ |= labels_id(&family->samples[i]) != lines->ids[i];
    }
    return !differ;
}

static bool has_same_series(const struct exposition_lines *lines, const struct family *family,
                            size_t piece) {
    uintptr_t differ = 0;
    size_t end = piece_end(lines, piece);
    for (size_t i = piece_begin(piece); i < end; i++) {
        const struct sample *sample = &family->samples[i];
        const struct sample *last = &lines->samples[i];
        differ |= (uintptr_t)sample->labels ^ (uintptr_t)last->labels;
        differ |= (uintptr_t)sample->suffix ^ (uintptr_t)last->suffix;
    }
    return differ == 0;
}

static bool has_same_samples(const struct exposition_lines *lines, const struct family *family,
                             size_t piece) {
    size_t begin = piece_begin(piece);
    size_t size = (piece_end(lines, piece) - begin) * sizeof(struct sample);
    return memcmp(&lines->samples[begin], &family->samples[begin], size) == 0;
}

/* ---- all of them ---- */

/* Large pages for much text: the kernel copies it for every scrape and looks each page up. */
static char *allocate_text(size_t size) {
    enum { LARGE_PAGE = 2 << 20 };
    if (size < 2 * LARGE_PAGE) {
        return mem_alloc(size);
    }
    size = (size + LARGE_PAGE - 1) & ~(size_t)(LARGE_PAGE - 1);
    char *text = aligned_alloc(LARGE_PAGE, size);
    if (text == NULL) {
        mem_out();
    }
    madvise(text, size, MADV_HUGEPAGE); /* if that fails, small pages do as well */
    return text;
}

/* Divides the text into pieces with room for their lines and for patch_number; returns its size. */
static size_t lay_out(struct exposition_lines *lines, const struct family *family) {
    size_t room = 0;
    for (size_t piece = 0; piece < lines->n_pieces; piece++) {
        lines->pieces[piece] = (struct iovec){(char *)(uintptr_t)room, 0};
        for (size_t i = piece_begin(piece); i < piece_end(lines, piece); i++) {
            lines->ids[i] = labels_id(&family->samples[i]);
            room += lines->name_len + line_room(&family->samples[i]);
        }
    }
    return room + NUMBER_MAX_LEN;
}

static struct exposition_lines *lines_create(const struct family *family) {
    struct exposition_lines *lines = mem_zalloc(1, sizeof(*lines));
    atomic_init(&lines->refs, 1);
    lines->n_lines = family->n_samples;
    lines->n_pieces = (lines->n_lines + PIECE_LINES - 1) / PIECE_LINES;
    lines->name = mem_strdup(family->desc->name);
    lines->name_len = strlen(lines->name);
    lines->samples = mem_zalloc(lines->n_lines, sizeof(*lines->samples));
    lines->ids = mem_zalloc(lines->n_lines, sizeof(*lines->ids));
    lines->numbers = mem_zalloc(lines->n_lines, sizeof(*lines->numbers));
    lines->pieces = mem_zalloc(lines->n_pieces, sizeof(*lines->pieces));
    lines->text = allocate_text(lay_out(lines, family));
    lines->last_id = labels_last_id();
    for (size_t i = 0; i < lines->n_pieces; i++) {
        lines->pieces[i].iov_base = lines->text + (uintptr_t)lines->pieces[i].iov_base;
        render_piece(lines, family, i);
    }
    return lines;
}

/* Updates the lines if the family still has the same series in the same order, and no other reader
 * holds lines that would change. False: the caller drops them. */
static bool lines_update(struct exposition_lines *lines, const struct family *family) {
    if (lines->n_lines != family->n_samples || strcmp(lines->name, family->desc->name) != 0) {
        return false;
    }
    bool shared = atomic_load_explicit(&lines->refs, memory_order_acquire) > 1;
    uint64_t last_id = labels_last_id();
    for (size_t i = 0; i < lines->n_pieces; i++) {
        if (last_id != lines->last_id && !has_same_labels(lines, family, i)) {
            return false;
        }
        if (has_same_samples(lines, family, i)) {
            continue;
        }
        if (shared || !has_same_series(lines, family, i)) {
            return false;
        }
        if (!patch_piece(lines, family, i)) {
            render_piece(lines, family, i);
        }
    }
    lines->last_id = last_id;
    return true;
}

static struct exposition_lines *lines_ref(struct exposition_lines *lines) {
    atomic_fetch_add_explicit(&lines->refs, 1, memory_order_relaxed);
    return lines;
}

static void lines_unref(struct exposition_lines *lines) {
    if (lines != NULL && atomic_fetch_sub_explicit(&lines->refs, 1, memory_order_acq_rel) == 1) {
        free(lines->name);
        free(lines->samples);
        free(lines->ids);
        free(lines->numbers);
        free(lines->pieces);
        free(lines->text);
        free(lines);
    }
}

/* ---- parts ---- */

/* Families with at least as many samples keep their lines for the next rendering. */
enum { KEPT_MIN = 32 };

struct exposition_part {
    atomic_uint refs;
    size_t n_samples;
    struct buf text;      /* lines of the blocks that keep none */
    struct arena strings; /* of all blocks, so that the part outlives the collector's */
    struct exposition_block *blocks;
    size_t n_blocks;
};

/* A run of families of the same name; nearly always one. */
struct group {
    const struct family **families;
    size_t n_families;
    size_t n_samples;
};

/* One rendering. */
struct rendering {
    struct exposition_part *part;
    struct hash_index seen;        /* series of the family */
    bool keeps;                    /* there will be a next rendering */
    bool owns_last;                /* nobody else reads the last part */
    struct exposition_block *last; /* the place in its blocks, sorted like ours */
    struct exposition_block *last_end;
};

static void add_line(struct buf *text, const char *name, size_t name_len,
                     const struct sample *sample) {
    char *start = buf_reserve(text, name_len + line_room(sample));
    char *to = begin_line(start, name, name_len, sample);
    to += number_format(sample->value, to);
    *to++ = '\n';
    text->len += (size_t)(to - start);
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
            if (add_series(&rendering->seen, sample)) {
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
    return rendering->owns_last ? TAKE(last->kept) : lines_ref(last->kept);
}

/* The lines of a family with many samples: those of the last part, updated, or new ones. NULL if
 * two samples are the same series, which is checked only when lines are created. */
static struct exposition_lines *keep(struct rendering *rendering, const struct family *family) {
    struct exposition_lines *lines = take_last(rendering, family->desc->name);
    if (lines != NULL && lines_update(lines, family)) {
        return lines;
    }
    lines_unref(lines);
    hash_index_reset(&rendering->seen, family->n_samples);
    for (size_t i = 0; i < family->n_samples; i++) {
        if (!add_series(&rendering->seen, &family->samples[i])) {
            return NULL;
        }
    }
    return lines_create(family);
}

static const char *copy_string(struct exposition_part *part, const char *text) {
    return arena_copy(&part->strings, text, strlen(text) + 1);
}

static void add_group(struct rendering *rendering, const struct group *group) {
    struct exposition_part *part = rendering->part;
    struct exposition_block *block = &part->blocks[part->n_blocks++];
    const struct metric_desc *desc = group->families[0]->desc;
    *block = (struct exposition_block){
        .name = copy_string(part, desc->name),
        .help = copy_string(part, desc->help),
        .unit = desc->unit != NULL ? copy_string(part, desc->unit) : NULL,
        .type = desc->type,
        .n_samples = group->n_samples,
    };
    if (rendering->keeps && group->n_families == 1 && group->n_samples >= KEPT_MIN) {
        block->kept = keep(rendering, group->families[0]);
    }
    if (block->kept != NULL) {
        block->pieces = block->kept->pieces;
        block->n_pieces = block->kept->n_pieces;
        block->len = block->kept->len;
    } else {
        hash_index_reset(&rendering->seen, group->n_samples);
        size_t start = part->text.len;
        block->n_samples = add_distinct(rendering, group);
        block->len = part->text.len - start;
    }
    part->n_samples += block->n_samples;
}

/* Gives the blocks their lines in the text, which no longer moves. */
static void settle(struct exposition_part *part) {
    char *lines = part->text.data;
    for (size_t i = 0; i < part->n_blocks; i++) {
        struct exposition_block *block = &part->blocks[i];
        if (block->kept == NULL) {
            block->own = (struct iovec){lines, block->len};
            block->pieces = &block->own;
            block->n_pieces = 1;
            lines += block->len;
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

static void render(struct rendering *rendering, const struct family **sorted, size_t n_families) {
    for (size_t i = 0; i < n_families;) {
        struct group group = {
            .families = sorted + i,
            .n_families = 1,
            .n_samples = sorted[i]->n_samples,
        };
        while (i + group.n_families < n_families &&
               strcmp(sorted[i]->desc->name, sorted[i + group.n_families]->desc->name) == 0) {
            group.n_samples += sorted[i + group.n_families++]->n_samples;
        }
        add_group(rendering, &group);
        i += group.n_families;
    }
}

/* An empty part with room for `n` blocks. */
static struct exposition_part *create_part(size_t n, size_t text_len) {
    struct exposition_part *part = mem_zalloc(1, sizeof(*part));
    atomic_init(&part->refs, 1);
    part->blocks = mem_zalloc(n, sizeof(*part->blocks));
    buf_reserve(&part->text, text_len + 1);
    return part;
}

/* Renders `snapshot`; takes lines out of `last` (may be NULL) if it has no other reader. */
static struct exposition_part *create(const struct snapshot *snapshot, struct exposition_part *last,
                                      bool keeps, uint64_t *ret_duplicates) {
    size_t n = snapshot->n_families;
    const struct family **sorted CLEANUP_FREE = mem_alloc(n * sizeof(struct family *));
    struct exposition_part *part = create_part(n, last != NULL ? last->text.len : 0);
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
    render(&rendering, sorted, n);
    hash_index_finish(&rendering.seen);
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
    renderer->last = exposition_part_ref(part);
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
        lines_unref(part->blocks[i].kept);
    }
    buf_finish(&part->text);
    arena_finish(&part->strings);
    free(part->blocks);
    free(part);
}

const struct exposition_block *exposition_part_blocks(const struct exposition_part *part,
                                                      size_t *ret_n) {
    *ret_n = part->n_blocks;
    return part->blocks;
}
