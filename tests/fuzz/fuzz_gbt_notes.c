/* Covers placement/predictor/gbt_notes.c. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "placement/predictor/gbt_private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check(const struct gbt *gbt) {
    assert(gbt->n_features <= GBT_MAX_FEATURES && gbt->n_checks <= GBT_MAX_CHECKS);
    assert(memchr(gbt->about.version, '\0', sizeof(gbt->about.version)) != NULL);
    assert(memchr(gbt->about.trained, '\0', sizeof(gbt->about.trained)) != NULL);
    for (size_t i = 0; i < gbt->n_features; i++) {
        assert(memchr(gbt->features[i].name, '\0', sizeof(gbt->features[i].name)) != NULL);
    }
}

/* The notes in a predictor's file: any bytes. Notes that are written and read again stay the same.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    struct gbt *gbt CLEANUP_FREE = calloc(1, sizeof(*gbt));
    struct gbt *again CLEANUP_FREE = calloc(1, sizeof(*again));
    struct buf copy CLEANUP_BUF = {0};
    struct error err = {0};
    buf_add(&copy, data, len);
    buf_add_char(&copy, '\n');
    int r = gbt_notes_read(copy.data, copy.len, gbt, &err);
    check(gbt);
    if (r < 0) {
        assert(err.text[0] != '\0');
        return 0;
    }
    buf_reset(&copy);
    gbt_notes_write(gbt, &copy);
    r = gbt_notes_read(copy.data, copy.len, again, &err);
    assert(r == 0 && again->n_features == gbt->n_features && again->n_checks == gbt->n_checks);
    assert(again->about.n_rows == gbt->about.n_rows);
    assert(strcmp(again->about.version, gbt->about.version) == 0);
    return 0;
}
