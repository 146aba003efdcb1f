/* Covers exporter/gateway/protobuf.c. */
#include "tests/fuzz/gateway.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    static struct gateway_body body;
    struct error err = {0};
    int r = gateway_protobuf_read((const char *)data, len, &limits, &body, &err);
    assert((r == 0) == (err.text[0] == '\0'));
    check_body(&body);
    return 0;
}
