/* Covers exporter/metrics/parse.c. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/buf.h"
#include "exporter/metrics/exposition.h"
#include "exporter/metrics/parse.h"
#include "exporter/metrics/snapshot.h"
#include "tests/unit/exporter/metrics/exposition_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const struct exposition_limits limits = {
    .max_families = 1000,
    .max_samples = 1000,
    .max_labels = 16,
    .max_name_len = 64,
    .max_value_len = 256,
};

static void render(const struct exposition_doc *doc, struct buf *out) {
    struct snapshot snapshot CLEANUP_SNAPSHOT = {0};
    struct labels **labels = calloc(doc->n_samples + 1, sizeof(struct labels *));
    for (size_t i = 0; i < doc->n_samples; i++) {
        const struct exposition_sample *sample = &doc->samples[i];
        struct exposition_family *family = &doc->families[sample->family];
        family->desc.help = family->desc.help != NULL ? family->desc.help : "none";
        labels[i] = labels_create(exposition_doc_labels(doc, sample), sample->n_labels);
        snapshot_add_suffixed(&snapshot, &family->desc, sample->suffix, labels[i], sample->value);
    }
    uint64_t duplicates = 0;
    struct exposition_part *part = exposition_part_create(&snapshot, &duplicates);
    assert(part != NULL && duplicates == 0);
    exposition_text(out, (struct exposition_choice){.format = EXPOSITION_TEXT}, &part, 1, NULL);
    exposition_part_unref(part);
    for (size_t i = 0; i < doc->n_samples; i++) {
        labels_destroy(labels[i]);
    }
    free(labels);
}

/* Any bytes: a page that is accepted comes out of our writer as one with as many samples. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    struct exposition_doc doc CLEANUP_EXPOSITION_DOC = {0};
    struct error err;
    char *text CLEANUP_FREE = malloc(len + 1);
    memcpy(text, data, len);
    if (exposition_parse(text, len, &limits, &doc, &err) < 0) {
        assert(doc.n_samples == 0);
        return 0;
    }
    struct buf page CLEANUP_BUF = {0};
    render(&doc, &page);
    size_t n_samples = doc.n_samples;
    int r = page.len > 0 ? exposition_parse(page.data, page.len, &limits, &doc, &err) : 0;
    assert(r == 0 && doc.n_samples == n_samples);
    return 0;
}
