#include "exporter/metrics/snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "exporter/core/memory.h"

void snapshot_finish(struct snapshot *snapshot) {
    for (size_t i = 0; i < snapshot->cap_families; i++) {
        free(snapshot->families[i].samples);
    }
    free(snapshot->families);
    hash_index_finish(&snapshot->index);
    *snapshot = (struct snapshot){0};
}

void snapshot_reset(struct snapshot *snapshot) {
    for (size_t i = 0; i < snapshot->n_families; i++) {
        snapshot->families[i].n_samples = 0;
    }
    hash_index_reset(&snapshot->index, 0);
    snapshot->n_families = 0;
    snapshot->last = 0;
}

/* Different descriptions have different hashes. */
static uint64_t hash_of(const struct metric_desc *desc) {
    uint64_t mixed = (uint64_t)(uintptr_t)desc * UINT64_C(0x9e3779b97f4a7c15);
    return mixed << 32 | mixed >> 32;
}

/* Families beyond n_families keep their sample arrays for the next round. */
static struct family *new_family(struct snapshot *out, const struct metric_desc *desc) {
    size_t cap = out->cap_families;
    ARRAY_GROW(&out->families, &out->cap_families, out->n_families + 1);
    for (; cap < out->cap_families; cap++) {
        out->families[cap] = (struct family){0};
    }
    out->last = out->n_families++;
    out->families[out->last].desc = desc;
    hash_index_add(&out->index, hash_of(desc), (void *)(uintptr_t)out->n_families);
    return &out->families[out->last];
}

/* Collectors add family by family, or all in one order: the last and the next are tried first. */
static struct family *find_family(struct snapshot *out, const struct metric_desc *desc) {
    for (size_t i = out->last; i < out->n_families && i <= out->last + 1; i++) {
        if (out->families[i].desc == desc) {
            out->last = i;
            return &out->families[i];
        }
    }
    size_t cursor = 0;
    uintptr_t number = (uintptr_t)hash_index_next(&out->index, hash_of(desc), &cursor);
    if (number == 0) {
        return new_family(out, desc);
    }
    out->last = number - 1;
    return &out->families[out->last];
}

void snapshot_add_elsewhere(struct snapshot *out, const struct metric_desc *desc,
                            const char *suffix, const struct labels *labels, double value) {
    struct family *family = find_family(out, desc);
    ARRAY_GROW(&family->samples, &family->cap_samples, family->n_samples + 1);
    family->samples[family->n_samples++] = (struct sample){labels, suffix, value};
}

void snapshot_append(struct snapshot *out, const struct metric_desc *desc,
                     const struct sample *samples, size_t n_samples) {
    bool same = out->n_families > 0 && out->families[out->n_families - 1].desc == desc;
    struct family *family = same ? &out->families[out->n_families - 1] : new_family(out, desc);
    if (n_samples > 0) {
        ARRAY_GROW(&family->samples, &family->cap_samples, family->n_samples + n_samples);
        memcpy(family->samples + family->n_samples, samples, n_samples * sizeof(*samples));
        family->n_samples += n_samples;
    }
}

size_t snapshot_n_samples(const struct snapshot *snapshot) {
    size_t n = 0;
    for (size_t i = 0; i < snapshot->n_families; i++) {
        n += snapshot->families[i].n_samples;
    }
    return n;
}
