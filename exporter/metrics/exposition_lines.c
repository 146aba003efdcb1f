#include "exporter/metrics/exposition_lines.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "exporter/core/number.h"

/* Room around name and labels on a line: braces, space, newline. */
enum { LINE_OVERHEAD = 4 };

/* Lines per piece. A piece has room for values of any length: where one becomes longer or shorter,
 * the lines behind it move in this piece only. */
enum { PIECE_LINES = 512 };

/* Where the value stands in its piece. */
struct number_place {
    uint32_t at;
    uint32_t len;
};

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

/* memcpy for the short texts that lines are made of, without a call. The last word overlaps the one
 * before it. */
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

size_t exposition_line_room(const struct sample *sample) {
    size_t suffix_len = sample->suffix[0] != '\0' ? strlen(sample->suffix) : 0;
    return suffix_len + labels_len(sample) + NUMBER_MAX_LEN + LINE_OVERHEAD;
}

char *exposition_line_begin(char *to, const char *name, size_t name_len,
                            const struct sample *sample) {
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
        to = exposition_line_begin(to, lines->name, lines->name_len, sample);
        size_t len = number_format(sample->value, to);
        lines->numbers[i] = (struct number_place){(uint32_t)(to - start), (uint32_t)len};
        to += len;
        *to++ = '\n';
    }
    lines->len += (size_t)(to - start) - piece->iov_len;
    piece->iov_len = (size_t)(to - start);
}

/* Writes a value over the one there and puts back what stood behind that, as more is written than
 * counts. False where it has another length. */
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

/* Large pages where there is much text: the kernel copies it for every scrape and looks each page
 * up. */
static char *allocate_text(size_t size) {
    enum { LARGE_PAGE = 2 << 20 };
    if (size < 2 * LARGE_PAGE) {
        return malloc(size);
    }
    size = (size + LARGE_PAGE - 1) & ~(size_t)(LARGE_PAGE - 1);
    char *text = aligned_alloc(LARGE_PAGE, size);
    if (text != NULL) {
        madvise(text, size, MADV_HUGEPAGE); /* refused: small ones do as well */
    }
    return text;
}

/* Divides the text into pieces with room for their lines; returns the room for all, and for what
 * patch_number puts back behind the last. */
static size_t lay_out(struct exposition_lines *lines, const struct family *family) {
    size_t room = 0;
    for (size_t piece = 0; piece < lines->n_pieces; piece++) {
        lines->pieces[piece] = (struct iovec){(char *)(uintptr_t)room, 0};
        for (size_t i = piece_begin(piece); i < piece_end(lines, piece); i++) {
            lines->ids[i] = labels_id(&family->samples[i]);
            room += lines->name_len + exposition_line_room(&family->samples[i]);
        }
    }
    return room + NUMBER_MAX_LEN;
}

static bool allocate(struct exposition_lines *lines, const struct family *family) {
    lines->n_lines = family->n_samples;
    lines->n_pieces = (lines->n_lines + PIECE_LINES - 1) / PIECE_LINES;
    lines->name = strdup(family->desc->name);
    lines->samples = calloc(lines->n_lines, sizeof(*lines->samples));
    lines->ids = calloc(lines->n_lines, sizeof(*lines->ids));
    lines->numbers = calloc(lines->n_lines, sizeof(*lines->numbers));
    lines->pieces = calloc(lines->n_pieces, sizeof(*lines->pieces));
    if (lines->name == NULL || lines->samples == NULL || lines->ids == NULL ||
        lines->numbers == NULL || lines->pieces == NULL) {
        return false;
    }
    lines->name_len = strlen(lines->name);
    lines->text = allocate_text(lay_out(lines, family));
    return lines->text != NULL;
}

struct exposition_lines *exposition_lines_create(const struct family *family) {
    struct exposition_lines *lines = calloc(1, sizeof(*lines));
    if (lines == NULL) {
        return NULL;
    }
    atomic_init(&lines->refs, 1);
    if (!allocate(lines, family)) {
        exposition_lines_unref(lines);
        return NULL;
    }
    lines->last_id = labels_last_id();
    for (size_t i = 0; i < lines->n_pieces; i++) {
        lines->pieces[i].iov_base = lines->text + (uintptr_t)lines->pieces[i].iov_base;
        render_piece(lines, family, i);
    }
    return lines;
}

bool exposition_lines_update(struct exposition_lines *lines, const struct family *family) {
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

struct exposition_lines *exposition_lines_ref(struct exposition_lines *lines) {
    atomic_fetch_add_explicit(&lines->refs, 1, memory_order_relaxed);
    return lines;
}

void exposition_lines_unref(struct exposition_lines *lines) {
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

const struct iovec *exposition_lines_pieces(const struct exposition_lines *lines, size_t *ret_n) {
    *ret_n = lines->n_pieces;
    return lines->pieces;
}

size_t exposition_lines_len(const struct exposition_lines *lines) {
    return lines->len;
}
