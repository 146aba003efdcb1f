/* To be preloaded: lets libmicrohttpd 0.9.75 take connections as 1.0 and later do. They are queued
 * by MHD_add_connection and announced from the next MHD_run. */
#include <dlfcn.h>
#include <microhttpd.h>
#include <string.h>

enum { MAX_QUEUED = 4096 };

struct queued {
    struct MHD_Daemon *daemon;
    int fd;
    struct sockaddr_storage address;
    socklen_t address_len;
};

static struct queued queue[MAX_QUEUED];
static size_t n_queued;

_MHD_EXTERN enum MHD_Result MHD_add_connection(struct MHD_Daemon *daemon, MHD_socket fd,
                                               const struct sockaddr *address, socklen_t len) {
    if (n_queued == MAX_QUEUED) {
        return MHD_NO;
    }
    struct queued *queued = &queue[n_queued++];
    *queued = (struct queued){.daemon = daemon, .fd = fd, .address_len = len};
    memcpy(&queued->address, address, len);
    return MHD_YES;
}

_MHD_EXTERN enum MHD_Result MHD_run(struct MHD_Daemon *daemon) {
    enum MHD_Result (*add)(struct MHD_Daemon *, MHD_socket, const struct sockaddr *, socklen_t) =
        (typeof(add))dlsym(RTLD_NEXT, "MHD_add_connection");
    enum MHD_Result (*run)(struct MHD_Daemon *) = (typeof(run))dlsym(RTLD_NEXT, "MHD_run");
    size_t n_left = 0;
    for (size_t i = 0; i < n_queued; i++) {
        if (queue[i].daemon == daemon) {
            add(daemon, queue[i].fd, (struct sockaddr *)&queue[i].address, queue[i].address_len);
        } else {
            queue[n_left++] = queue[i];
        }
    }
    n_queued = n_left;
    return run(daemon);
}
