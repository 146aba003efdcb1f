#pragma once

#include <stddef.h>

#include "exporter/core/arena.h"
#include "exporter/core/buf.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/error.h"
#include "exporter/metrics/labels.h"
#include "placement/client/web_client.h"

/* What Prometheus answers to a query. The order of series means nothing: find them by labels. */

enum promql_kind { PROMQL_VECTOR, PROMQL_MATRIX, PROMQL_SCALAR, PROMQL_STRING };

struct promql_series {
    struct label *labels; /* in no order; the name of the metric is __name__ */
    size_t n_labels;
    double value; /* may be NaN or infinite */
};

struct promql_answer {
    enum promql_kind kind;
    struct promql_series *series; /* of a vector; one without labels of a scalar */
    size_t n_series;
    size_t n_histograms; /* series left out: native histograms */
    const char *remark;  /* the server's first warning or info, or NULL */

    struct buf text; /* what all texts point into */
    struct arena arena;
    size_t cap_series;
};

/* Parses the body in `answer->text`, in place; the rest of `answer` is zeroed. -EREMOTEIO with the
 * server's words ("bad_data: invalid …") if it is an error, -EBADMSG if it is not an answer to a
 * query, -E2BIG beyond `max_series`. Free it with promql_answer_finish in any case. */
int promql_answer_parse(struct promql_answer *answer, size_t max_series, struct error *err);

void promql_answer_finish(struct promql_answer *answer);
#define CLEANUP_PROMQL_ANSWER CLEANUP(promql_answer_finish)

/* The value of a label, or NULL. */
const char *promql_series_label(const struct promql_series *series, const char *name);

/* The name of a kind: "vector". */
const char *promql_kind_name(enum promql_kind kind);

/* Queries to Prometheus and what speaks like it: Thanos, Mimir, VictoriaMetrics; their path prefix
 * is part of the client's address. */

enum { PROMQL_MAX_SERIES = 200000 };

/* Asks for the value of an expression at this moment. `answer` is emptied first; the caller frees
 * it with promql_answer_finish. Errors name the address, the status code and the server's own
 * words. */
int promql_query(struct web_client *client, const char *expression, struct promql_answer *answer,
                 struct error *err);
