/* Covers 35 % of collectors/container/cri.c. */
#include "collectors/container/cri.h"
#include "exporter/core/cleanup.h"
#include "tests/fuzz/listener.h"

/* A container runtime's bytes, which should be HTTP/2, in two pieces: the first byte is the size of
 * the first piece. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    static const char *const methods[CRI_MAX_CALLS] = {"/s/A", "/s/B"};
    static struct listener listener;
    if (listener.fd == 0) {
        listener_init(&listener);
    }
    if (len == 0 || len > 65536) {
        return 0;
    }
    struct cri_call call;
    cri_call_init(&call);
    int r = cri_call_begin(&call, listener.path, methods, CRI_MAX_CALLS, INT64_MAX);
    assert(r == 0);
    int fd CLEANUP_CLOSE = listener_accept(&listener);
    size_t cut = data[0] < len - 1 ? data[0] : len - 1;
    ssize_t n = send(fd, data + 1, cut, MSG_NOSIGNAL);
    r = n >= 0 ? cri_call_step(&call, 0) : 0;
    n = send(fd, data + 1 + cut, len - 1 - cut, MSG_NOSIGNAL);
    r = r == 0 && n >= 0 ? cri_call_step(&call, 0) : r;
    for (size_t i = 0; r > 0 && i < CRI_MAX_CALLS; i++) {
        size_t answer_len;
        cri_call_answer(&call, i, &answer_len);
        assert(answer_len < len);
    }
    cri_call_finish(&call);
    return 0;
}
