#include "exporter/core/snapshot.h"

#include <stdlib.h>

enum { SNAPSHOT_MIN_FAMILIES = 16, SNAPSHOT_MIN_SAMPLES = 4 };

void snapshot_finish(struct snapshot *snapshot) {
    for (size_t i = 0; i < snapshot->cap_families; i++) {
        free(snapshot->families[i].samples);
    }
    free(snapshot->families);
    *snapshot = (struct snapshot){0};
}

void snapshot_reset(struct snapshot *snapshot) {
    for (size_t i = 0; i < snapshot->n_families; i++) {
        snapshot->families[i].n_samples = 0;
    }
    snapshot->n_families = 0;
    snapshot->last = 0;
    snapshot->failed = false;
}

/* Families beyond n_families keep their sample arrays for the next round. */
static struct family *new_family(struct snapshot *out, const struct metric_desc *desc) {
    if (out->n_families == out->cap_families) {
        size_t cap = out->cap_families == 0 ? SNAPSHOT_MIN_FAMILIES : 2 * out->cap_families;
        struct family *families = reallocarray(out->families, cap, sizeof(*families));
        if (families == NULL) {
            out->failed = true;
            return NULL;
        }
        for (size_t i = out->cap_families; i < cap; i++) {
            families[i] = (struct family){0};
        }
        out->families = families;
        out->cap_families = cap;
    }
    out->last = out->n_families++;
    out->families[out->last].desc = desc;
    return &out->families[out->last];
}

/* Collectors add family by family, or for each thing they see all families in one order: so the
 * search starts at the last one. */
static struct family *find_family(struct snapshot *out, const struct metric_desc *desc) {
    size_t at = out->last;
    for (size_t i = 0; i < out->n_families; i++) {
        if (out->families[at].desc == desc) {
            out->last = at;
            return &out->families[at];
        }
        at = at + 1 < out->n_families ? at + 1 : 0;
    }
    return new_family(out, desc);
}

static bool make_room(struct snapshot *out, struct family *family, size_t n) {
    if (family->n_samples + n <= family->cap_samples) {
        return true;
    }
    size_t cap = family->cap_samples == 0 ? SNAPSHOT_MIN_SAMPLES : 2 * family->cap_samples;
    cap = cap < family->n_samples + n ? family->n_samples + n : cap;
    struct sample *samples = reallocarray(family->samples, cap, sizeof(*samples));
    if (samples == NULL) {
        out->failed = true;
        return false;
    }
    family->samples = samples;
    family->cap_samples = cap;
    return true;
}

void snapshot_add_suffixed(struct snapshot *out, const struct metric_desc *desc, const char *suffix,
                           const struct labels *labels, double value) {
    struct family *family = find_family(out, desc);
    if (family == NULL || !make_room(out, family, 1)) {
        return;
    }
    family->samples[family->n_samples++] = (struct sample){
        .labels = labels,
        .suffix = suffix,
        .value = value,
    };
}

void snapshot_add(struct snapshot *out, const struct metric_desc *desc, const struct labels *labels,
                  double value) {
    snapshot_add_suffixed(out, desc, "", labels, value);
}

void snapshot_add_family(struct snapshot *out, const struct metric_desc *desc, size_t n_samples) {
    struct family *family = find_family(out, desc);
    if (family != NULL) {
        make_room(out, family, n_samples);
    }
}

size_t snapshot_n_samples(const struct snapshot *snapshot) {
    size_t n = 0;
    for (size_t i = 0; i < snapshot->n_families; i++) {
        n += snapshot->families[i].n_samples;
    }
    return n;
}
