/* Covers placement/place/request.c. */
#include <assert.h>
#include <stdint.h>

#include "placement/place/request.h"
#include "placement/place/upload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* What POST /api/profiling and POST /upload are sent. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    struct place_request request CLEANUP_PLACE_REQUEST = {0};
    struct buf body CLEANUP_BUF = {0}, json CLEANUP_BUF = {0};
    struct error err = {0};
    buf_add(&body, data, len);
    place_upload_read("multipart/form-data; boundary=x", buf_str(&body), body.len, 1 << 20, &json,
                      &err);
    if (body.data != NULL && place_request_read(&request, body.data, body.len, &err) == 0) {
        assert(request.echo.data[0] == '{' && request.model.data[0] == '"');
    }
    return 0;
}
