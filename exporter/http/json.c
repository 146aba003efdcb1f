#include "exporter/http/json.h"

#include <errno.h>

#include "exporter/core/json.h"

#define CONTENT_TYPE "application/json"

static const struct {
    int code;
    unsigned status;
} statuses[] = {
    {-E2BIG, MHD_HTTP_CONTENT_TOO_LARGE},
    {-EACCES, MHD_HTTP_FORBIDDEN},
    {-EAGAIN, MHD_HTTP_TOO_MANY_REQUESTS},
    {-EBUSY, MHD_HTTP_SERVICE_UNAVAILABLE},
    {-EEXIST, MHD_HTTP_CONFLICT},
    {-EFBIG, MHD_HTTP_CONTENT_TOO_LARGE},
    {-ENOENT, MHD_HTTP_NOT_FOUND},
    {-ENOMEM, MHD_HTTP_SERVICE_UNAVAILABLE},
    {-ENOSPC, MHD_HTTP_INSUFFICIENT_STORAGE},
    {-EPROTONOSUPPORT, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE},
};

unsigned http_json_status(int code) {
    for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
        if (statuses[i].code == code) {
            return statuses[i].status;
        }
    }
    return MHD_HTTP_BAD_REQUEST;
}

void http_json_reply(struct http_request *request, struct buf *data) {
    struct buf body CLEANUP_BUF = {0};
    buf_add_str(&body, "{\"status\":\"success\",\"data\":");
    buf_add(&body, data->data, data->len);
    buf_add_str(&body, "}\n");
    body.failed |= data->failed;
    buf_finish(data);
    http_reply_buf(request, MHD_HTTP_OK, CONTENT_TYPE, &body);
}

void http_json_fail(struct http_request *request, unsigned status, const char *text) {
    struct buf body CLEANUP_BUF = {0};
    buf_add_str(&body, "{\"status\":\"error\",\"error\":");
    json_add_string(&body, text);
    buf_add_str(&body, "}\n");
    http_reply_buf(request, status, CONTENT_TYPE, &body);
}
