/* Covers exporter/metrics/accept.c. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/metrics/exposition.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* A header that comes over the wire: any bytes up to the first NUL. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    char *header CLEANUP_FREE = strndup((const char *)data, len);
    if (header == NULL) {
        return 0;
    }
    assert(exposition_content_type(exposition_negotiate(header)) != NULL);
    exposition_accepts_gzip(header);
    return 0;
}
