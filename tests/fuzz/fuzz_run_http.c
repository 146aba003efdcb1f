/* Covers profiler/run/http.c. */
#include <pthread.h>

#include "profiler/run/engine.h"
#include "profiler/run/http.h"
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

static void check(int r, const struct run_http_answer *answer, size_t len) {
    struct run_container_state state;
    assert(r == 0 || !answer->complete);
    assert(answer->body.len <= len);
    if (r == 0 && answer->complete) {
        run_engine_parse_state(buf_str(&answer->body), answer->body.len, &state);
    }
}

/* An answer: any bytes, before and after the engine ends the connection. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    static struct engine engine;
    if (engine.listener.fd == 0) {
        listener_init(&engine.listener);
    }
    if (len > 65536) {
        return 0;
    }
    struct run_http_answer answer CLEANUP_RUN_HTTP_ANSWER = {0};
    int r = run_http_parse((const char *)data, len, false, &answer);
    check(r, &answer, len);
    struct error err = {0};
    pthread_t thread;
    engine.data = data;
    engine.len = len;
    r = pthread_create(&thread, NULL, answer_request, &engine);
    assert(r == 0);
    const char *body = len % 2 == 0 ? "{}" : NULL;
    r = run_http_call(engine.listener.path, "POST", "/x", body, 5000, &answer, &err);
    pthread_join(thread, NULL);
    close(engine.fd);
    assert(r < 0 ? err.text[0] != '\0' : answer.complete);
    check(r, &answer, len);
    return 0;
}
