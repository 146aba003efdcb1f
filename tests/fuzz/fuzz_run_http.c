/* Covers exporter/net/http_client.c. */
#include <pthread.h>

#include "exporter/net/http_client.h"
#include "profiler/run/engine.h"
#include "tests/fuzz/listener.h"

/* A container engine that answers one request with these bytes. */
struct engine {
    struct listener listener;
    const uint8_t *data;
    size_t len;
    int fd;
};

static void *answer_request(void *context) {
    struct engine *engine = context;
    engine->fd = listener_accept(&engine->listener);
    ssize_t n = send(engine->fd, engine->data, engine->len, MSG_NOSIGNAL);
    assert(n == (ssize_t)engine->len);
    shutdown(engine->fd, SHUT_WR);
    return NULL;
}

/* An answer: any bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    static struct engine engine;
    if (engine.listener.fd == 0) {
        listener_init(&engine.listener);
    }
    if (len > 65536) {
        return 0;
    }
    pthread_t thread;
    engine.data = data;
    engine.len = len;
    int r = pthread_create(&thread, NULL, answer_request, &engine);
    assert(r == 0);
    const char *body = len % 2 == 0 ? "{}" : NULL;
    struct http_client client CLEANUP_HTTP_CLIENT = HTTP_CLIENT_NONE;
    r = http_client_call(&client, engine.listener.path, "POST", "/x", body, 65536, 5000);
    pthread_join(thread, NULL);
    close(engine.fd);
    assert(client.answer.len <= len);
    struct run_container_state state;
    if (r == 0) {
        assert(client.ended && client.status >= 100);
        run_engine_parse_state(buf_str(&client.answer), client.answer.len, &state);
    }
    return 0;
}
