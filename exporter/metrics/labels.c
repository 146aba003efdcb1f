#include "exporter/metrics/labels.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/hash.h"
#include "exporter/core/memory.h"
#include "exporter/core/utf8.h"

const char label_empty[] = "";

const char *label_find(const struct label *labels, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++) {
        if (strcmp(labels[i].name, name) == 0) {
            return labels[i].value;
        }
    }
    return NULL;
}

bool label_insert(struct label *labels, size_t *n, struct label label) {
    size_t at = *n;
    while (at > 0 && strcmp(labels[at - 1].name, label.name) > 0) {
        at--;
    }
    if (at > 0 && strcmp(labels[at - 1].name, label.name) == 0) {
        return false;
    }
    memmove(labels + at + 1, labels + at, (*n - at) * sizeof(*labels));
    labels[at] = label;
    ++*n;
    return true;
}

static atomic_uint_fast64_t last_id;

/* Begins a set at the end of the buffer, aligned for the struct; returns its place. */
static size_t begin(struct buf *out) {
    static const char padding[_Alignof(struct labels)];
    buf_add(out, padding, -out->len % _Alignof(struct labels));
    size_t start = out->len;
    buf_add(out, &(struct labels){0}, sizeof(struct labels));
    return start;
}

static void add_label(struct buf *out, size_t start, const char *name, const char *value) {
    if (value == NULL || (value[0] == '\0' && value != label_empty)) {
        return;
    }
    if (out->len > start + sizeof(struct labels)) {
        buf_add_char(out, ',');
    }
    buf_add_str(out, name);
    buf_add_str(out, "=\"");
    utf8_add_escaped(out, value, true);
    buf_add_char(out, '"');
}

/* Fills in the struct's head before the text. */
static void end(struct buf *out, size_t start) {
    size_t len = out->len - start - sizeof(struct labels);
    if (len > UINT32_MAX) {
        mem_out();
    }
    struct labels *labels = (struct labels *)(out->data + start);
    labels->id = atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) + 1;
    labels->len = (uint32_t)len;
    labels->hash = hash_bytes(labels->text, len);
}

size_t labels_append(struct buf *out, const struct label *labels, size_t n) {
    size_t start = begin(out);
    for (size_t i = 0; i < n; i++) {
        add_label(out, start, labels[i].name, labels[i].value);
    }
    end(out, start);
    return start;
}

struct labels *labels_create(const struct label *labels, size_t n) {
    struct buf buf = {0};
    labels_append(&buf, labels, n);
    return (struct labels *)buf_take(&buf);
}

struct labels *labels_with(const struct labels *base, const char *name, const char *value) {
    struct buf buf = {0};
    size_t start = begin(&buf);
    if (base != NULL) {
        buf_add(&buf, base->text, base->len);
    }
    add_label(&buf, start, name, value);
    end(&buf, start);
    return (struct labels *)buf_take(&buf);
}

void labels_destroy(struct labels *labels) {
    free(labels);
}

uint64_t labels_last_id(void) {
    return atomic_load_explicit(&last_id, memory_order_relaxed);
}

bool labels_equal(const struct labels *a, const struct labels *b) {
    size_t a_len = a != NULL ? a->len : 0;
    size_t b_len = b != NULL ? b->len : 0;
    return a_len == b_len && (a_len == 0 || memcmp(a->text, b->text, a_len) == 0);
}
