#include "exporter/core/labels.h"

#include <string.h>

#include "exporter/core/buf.h"
#include "exporter/core/escape.h"
#include "exporter/core/hash.h"

static void add_label(struct buf *out, const char *name, const char *value) {
    if (value == NULL || value[0] == '\0') {
        return;
    }
    if (out->len > sizeof(struct labels)) {
        buf_add_char(out, ',');
    }
    buf_add_str(out, name);
    buf_add_str(out, "=\"");
    escape_add(out, value, true);
    buf_add_char(out, '"');
}

/* The buffer holds the struct's head, then the text: it becomes the struct itself. */
static struct labels *finish(struct buf *buf) {
    size_t len = buf->len - sizeof(struct labels);
    struct labels *labels = (struct labels *)buf_take(buf);
    if (labels == NULL || len > UINT32_MAX) {
        free(labels);
        return NULL;
    }
    labels->len = (uint32_t)len;
    labels->hash = hash_bytes(labels->text, len);
    return labels;
}

struct labels *labels_create(const struct label *labels, size_t n) {
    struct buf buf = {0};
    buf_add(&buf, &(struct labels){0}, sizeof(struct labels));
    for (size_t i = 0; i < n; i++) {
        add_label(&buf, labels[i].name, labels[i].value);
    }
    return finish(&buf);
}

struct labels *labels_with(const struct labels *base, const char *name, const char *value) {
    struct buf buf = {0};
    buf_add(&buf, &(struct labels){0}, sizeof(struct labels));
    if (base != NULL) {
        buf_add(&buf, base->text, base->len);
    }
    add_label(&buf, name, value);
    return finish(&buf);
}

void labels_destroy(struct labels *labels) {
    free(labels);
}

bool labels_equal(const struct labels *a, const struct labels *b) {
    size_t a_len = a != NULL ? a->len : 0;
    size_t b_len = b != NULL ? b->len : 0;
    return a_len == b_len && (a_len == 0 || memcmp(a->text, b->text, a_len) == 0);
}
