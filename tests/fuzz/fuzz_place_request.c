/* Covers placement/place/request.c. */
#include <assert.h>
#include <stdint.h>

#include "placement/place/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* The bodies of POST /api/profiling and POST /upload. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    struct place_request request CLEANUP_PLACE_REQUEST = {0}, uploaded CLEANUP_PLACE_REQUEST = {0};
    struct buf body CLEANUP_BUF = {0};
    struct error err = {0};
    buf_add(&body, data, len);
    place_request_read_upload(&uploaded, "multipart/form-data; boundary=x", buf_str(&body),
                              body.len, 1 << 20, &err);
    if (place_request_read(&request, buf_str(&body), body.len, &err) == 0) {
        assert(request.echo.data[0] == '{' && request.model != NULL);
    }
    return 0;
}
