#pragma once

#include <string.h>
#include <unity.h>

#include "exporter/metrics/snapshot.h"

/* The sample of `name{labels}` or NULL; two of them are a failure. */
static inline const struct sample *snapshot_find(const struct snapshot *in, const char *name,
                                                 const char *labels) {
    const struct sample *found = NULL;
    for (size_t i = 0; i < in->n_families; i++) {
        const struct family *family = &in->families[i];
        for (size_t j = 0; j < family->n_samples; j++) {
            const struct sample *sample = &family->samples[j];
            const char *text = sample->labels != NULL ? sample->labels->text : "";
            if (strcmp(family->desc->name, name) == 0 && strcmp(text, labels) == 0) {
                TEST_ASSERT_NULL_MESSAGE(found, name);
                found = sample;
            }
        }
    }
    return found;
}

/* How many samples there are in the families whose name begins with `prefix`. */
static inline size_t snapshot_count(const struct snapshot *in, const char *prefix) {
    size_t n = 0;
    for (size_t i = 0; i < in->n_families; i++) {
        bool match = strncmp(in->families[i].desc->name, prefix, strlen(prefix)) == 0;
        n += match ? in->families[i].n_samples : 0;
    }
    return n;
}
