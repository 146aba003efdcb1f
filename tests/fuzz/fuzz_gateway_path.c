/* Covers exporter/gateway/path.c. */
#include "exporter/gateway/path.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    char *text CLEANUP_FREE = strndup((const char *)data, len);
    struct gateway_path path CLEANUP_GATEWAY_PATH = {0};
    struct error err = {0};
    if (gateway_path_parse(text, &path, &err) == 0) {
        assert(path.n_labels > 0 && path.n_labels <= GATEWAY_PATH_MAX_LABELS);
    } else {
        assert(err.text[0] != '\0');
    }
    return 0;
}
