#pragma once

/* libprom's little web server, for programs that want to keep theirs beside the exporter's. It
 * needs libmicrohttpd, which the program links anyway; nothing of it is in the library. */

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

#include "prom.h"

#ifdef __cplusplus
extern "C" {
#endif

#if MHD_VERSION >= 0x00097002
#define PROMHTTP_RESULT enum MHD_Result
#else
#define PROMHTTP_RESULT int
#endif

static inline PROMHTTP_RESULT promhttp_answer(struct MHD_Connection *connection, unsigned status,
                                              char *text, enum MHD_ResponseMemoryMode mode) {
    struct MHD_Response *response = MHD_create_response_from_buffer(strlen(text), text, mode);
    if (response == NULL) {
        return MHD_NO;
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/plain; version=0.0.4");
    PROMHTTP_RESULT result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static inline PROMHTTP_RESULT promhttp_handle(void *cls, struct MHD_Connection *connection,
                                              const char *url, const char *method,
                                              const char *version, const char *upload_data,
                                              size_t *upload_data_size, void **con_cls) {
    (void)cls;
    (void)version;
    (void)upload_data;
    (void)upload_data_size;
    (void)con_cls;
    static char bad_method[] = "GET only\n", alive[] = "OK\n", nothing[] = "try /metrics\n";
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
        return promhttp_answer(connection, 405, bad_method, MHD_RESPMEM_PERSISTENT);
    }
    if (strcmp(url, "/") == 0) {
        return promhttp_answer(connection, 200, alive, MHD_RESPMEM_PERSISTENT);
    }
    if (strcmp(url, "/metrics") != 0) {
        return promhttp_answer(connection, 404, nothing, MHD_RESPMEM_PERSISTENT);
    }
    char *page = (char *)prom_collector_registry_bridge(promhttp_get_active_collector_registry());
    return page == NULL ? MHD_NO : promhttp_answer(connection, 200, page, MHD_RESPMEM_MUST_FREE);
}

/* Serves the active registry at /metrics. End it with MHD_stop_daemon(). */
static inline struct MHD_Daemon *promhttp_start_daemon(unsigned int flags, unsigned short port,
                                                       MHD_AcceptPolicyCallback apc,
                                                       void *apc_cls) {
    return MHD_start_daemon(flags, port, apc, apc_cls, promhttp_handle, NULL, MHD_OPTION_END);
}

#ifdef __cplusplus
}
#endif
