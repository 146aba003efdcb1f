/* Covers placement/client/promql.c. */
#include <assert.h>
#include <stdint.h>

#include "placement/client/promql.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Whatever comes, what is taken for an answer is one. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    enum { MAX_SERIES = 100 };
    struct promql_answer answer CLEANUP_PROMQL_ANSWER = {0};
    struct error error;
    buf_add(&answer.text, data, len);
    if (promql_answer_parse(&answer, MAX_SERIES, &error) < 0) {
        return 0;
    }
    assert(answer.n_series <= MAX_SERIES && promql_kind_name(answer.kind) != NULL);
    for (size_t i = 0; i < answer.n_series; i++) {
        promql_series_label(&answer.series[i], "instance");
    }
    return 0;
}
