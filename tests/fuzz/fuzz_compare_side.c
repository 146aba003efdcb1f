/* Covers profiler/compare/compare.c. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "profiler/compare/compare.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static int parse(const uint8_t *data, size_t len, struct compare_side *ret_side) {
    struct error err = {0};
    int r = compare_side_parse("side", (const char *)data, len, ret_side, &err);
    assert(r == 0 || err.text[0] != '\0');
    return r;
}

/* Two summaries, the second behind a NUL; where there is none, one with itself. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    struct comparison comparison CLEANUP_COMPARISON = {.threshold = 0.05};
    struct error err = {0};
    const uint8_t *end = len > 0 ? memchr(data, '\0', len) : NULL;
    size_t n = end != NULL ? (size_t)(end - data) : len;
    const uint8_t *other = end != NULL ? end + 1 : data;
    if (parse(data, n, &comparison.a) < 0 ||
        parse(other, end != NULL ? len - n - 1 : n, &comparison.b) < 0 ||
        compare_make(&comparison, &err) < 0) {
        return 0;
    }
    struct buf text CLEANUP_BUF = {0}, json CLEANUP_BUF = {0};
    compare_write_text(&comparison, true, true, &text);
    compare_write_json(&comparison, &json);
    assert(text.len > 0 || comparison.n_rows == 0);
    assert(json.len > 0);
    int code = compare_exit_code(&comparison);
    assert(code >= 0 && code <= 4 && (code != 3 || comparison.b.n_failed_runs > 0));
    return 0;
}
