#include "exporter/metrics/snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "exporter/core/memory.h"

enum { SNAPSHOT_MIN_FAMILIES = 16 }; /* a power of two */

static size_t slots_for(size_t cap_families) {
    return 2 * cap_families;
}

void snapshot_finish(struct snapshot *snapshot) {
    for (size_t i = 0; i < snapshot->cap_families; i++) {
        free(snapshot->families[i].samples);
    }
    free(snapshot->families);
    free(snapshot->slots);
    *snapshot = (struct snapshot){0};
}

void snapshot_reset(struct snapshot *snapshot) {
    for (size_t i = 0; i < snapshot->n_families; i++) {
        snapshot->families[i].n_samples = 0;
    }
    if (snapshot->n_families > 0) {
        memset(snapshot->slots, 0, slots_for(snapshot->cap_families) * sizeof(*snapshot->slots));
    }
    snapshot->n_families = 0;
    snapshot->last = 0;
}

/* The slot of `desc`, or the one that it would get: half of the slots are always free. */
static uint32_t *find_slot(const struct snapshot *snapshot, const struct metric_desc *desc) {
    size_t mask = slots_for(snapshot->cap_families) - 1;
    uint64_t mixed = (uint64_t)(uintptr_t)desc * UINT64_C(0x9e3779b97f4a7c15);
    for (size_t i = (size_t)(mixed >> 32) & mask;; i = (i + 1) & mask) {
        uint32_t *slot = &snapshot->slots[i];
        if (*slot == 0 || snapshot->families[*slot - 1].desc == desc) {
            return slot;
        }
    }
}

static void grow_families(struct snapshot *out) {
    size_t cap = out->cap_families == 0 ? SNAPSHOT_MIN_FAMILIES : 2 * out->cap_families;
    out->families = mem_resize(out->families, cap, sizeof(*out->families));
    memset(out->families + out->cap_families, 0,
           (cap - out->cap_families) * sizeof(*out->families));
    out->cap_families = cap;
    free(out->slots);
    out->slots = mem_zalloc(slots_for(cap), sizeof(*out->slots));
    for (size_t i = 0; i < out->n_families; i++) {
        *find_slot(out, out->families[i].desc) = (uint32_t)i + 1;
    }
}

/* Families beyond n_families keep their sample arrays for the next round. */
static struct family *new_family(struct snapshot *out, const struct metric_desc *desc) {
    if (out->n_families == out->cap_families) {
        grow_families(out);
    }
    out->last = out->n_families++;
    out->families[out->last].desc = desc;
    *find_slot(out, desc) = (uint32_t)out->n_families;
    return &out->families[out->last];
}

/* Collectors add family by family, or for each thing they see all families in one order: so the
 * last one and the one behind it are tried first. */
static struct family *find_family(struct snapshot *out, const struct metric_desc *desc) {
    for (size_t i = out->last; i < out->n_families && i <= out->last + 1; i++) {
        if (out->families[i].desc == desc) {
            out->last = i;
            return &out->families[i];
        }
    }
    uint32_t slot = out->n_families > 0 ? *find_slot(out, desc) : 0;
    if (slot == 0) {
        return new_family(out, desc);
    }
    out->last = slot - 1;
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
