/* Covers 18 % of placement/predictor/gbt.c. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/memory.h"
#include "placement/predictor/gbt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check(const struct gbt_notes *notes) {
    assert(notes->n_features <= GBT_MAX_FEATURES && notes->n_checks <= GBT_MAX_CHECKS);
    assert(memchr(notes->version, '\0', sizeof(notes->version)) != NULL);
    assert(memchr(notes->trained, '\0', sizeof(notes->trained)) != NULL);
    for (size_t i = 0; i < notes->n_features; i++) {
        assert(memchr(notes->features[i].name, '\0', sizeof(notes->features[i].name)) != NULL);
    }
}

/* The notes in a predictor's file: any bytes. Notes that are written and read again stay the same.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    struct gbt_notes *notes CLEANUP_FREE = mem_zalloc(1, sizeof(*notes));
    struct gbt_notes *again CLEANUP_FREE = mem_zalloc(1, sizeof(*again));
    struct buf copy CLEANUP_BUF = {0};
    struct error err = {0};
    buf_add(&copy, data, len);
    buf_add_char(&copy, '\n');
    int r = gbt_notes_read(copy.data, copy.len, notes, &err);
    check(notes);
    if (r < 0) {
        assert(err.text[0] != '\0');
        return 0;
    }
    buf_reset(&copy);
    gbt_notes_write(notes, &copy);
    r = gbt_notes_read(copy.data, copy.len, again, &err);
    assert(r == 0 && again->n_features == notes->n_features && again->n_checks == notes->n_checks);
    assert(again->n_rows == notes->n_rows);
    assert(strcmp(again->version, notes->version) == 0);
    return 0;
}
