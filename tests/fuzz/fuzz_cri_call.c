#include <assert.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "collectors/cri_call.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* What a peer may send instead of HTTP/2, in two pieces: the first byte says where it is cut. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    int fds[2];
    if (len == 0 || len > 65536 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) < 0) {
        return 0;
    }
    struct cri_call call;
    cri_call_init(&call);
    call.fd = fds[0];
    call.n_answers = CRI_MAX_CALLS;
    call.deadline_ns = INT64_MAX;
    size_t cut = data[0] < len - 1 ? data[0] : len - 1;
    ssize_t n = send(fds[1], data + 1, cut, MSG_NOSIGNAL);
    int r = n >= 0 ? cri_call_step(&call, 0) : 0;
    n = send(fds[1], data + 1 + cut, len - 1 - cut, MSG_NOSIGNAL);
    r = r == 0 && n >= 0 ? cri_call_step(&call, 0) : r;
    for (size_t i = 0; r > 0 && i < CRI_MAX_CALLS; i++) {
        size_t answer_len;
        cri_call_answer(&call, i, &answer_len);
        assert(answer_len < len);
    }
    close(fds[1]);
    cri_call_finish(&call);
    return 0;
}
