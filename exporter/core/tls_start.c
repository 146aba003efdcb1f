#include "exporter/core/tls_start.h"

#include <dlfcn.h>
#include <gnutls/gnutls.h>
#include <pthread.h>

/* GnuTLS prepares itself when it is loaded, and libmicrohttpd asks it to once more: over a megabyte
 * of memory, wasted without TLS and passwords. The macro stops the first. The second finds this
 * function in place of the library's own, as the program's symbols come first. */

GNUTLS_SKIP_GLOBAL_INIT

int gnutls_global_init(void) {
    return GNUTLS_E_SUCCESS;
}

static void start(void) {
    int (*init)(void) = (int (*)(void))dlsym(RTLD_NEXT, "gnutls_global_init");
    if (init != NULL) {
        init();
    }
}

void tls_start(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start);
}
