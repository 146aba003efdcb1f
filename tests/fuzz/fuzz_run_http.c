#include <assert.h>
#include <stdint.h>

#include "profiler/run_engine.h"
#include "profiler/run_http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* What a container engine answers: any bytes, as they come and when it has hung up. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    struct run_http_answer answer CLEANUP_RUN_HTTP_ANSWER = {0};
    const char *text = (const char *)data;
    int r = run_http_parse(text, len, false, &answer);
    assert(r == 0 || !answer.complete);
    assert(answer.body.len <= len);
    if (r == 0 && answer.complete) {
        struct run_container_state state;
        run_engine_parse_state(buf_str(&answer.body), answer.body.len, &state);
    }
    r = run_http_parse(text, len, true, &answer);
    assert(r < 0 || answer.complete);
    return 0;
}
