#include "placement/control/measure.h"

#include <errno.h>
#include <math.h>

#include "exporter/metrics/exposition_parse.h"
#include "placement/client/promql.h"

enum { HTTP_OK = 200 };

static const struct exposition_limits page_limits = {.max_families = 1000000,
                                                     .max_samples = 1000000,
                                                     .max_labels = 100,
                                                     .max_name_len = 1024,
                                                     .max_value_len = 1 << 16};

static void fail(struct control_measure *measure, enum control_reason trouble) {
    measure->trouble = trouble;
    measure->has_value = false;
}

static void take_number(struct control_measure *measure, double value) {
    measure->value = value;
    measure->has_value = isfinite(value);
    if (!measure->has_value) {
        error_set(&measure->words, -EINVAL, "the query answers with %s",
                  isnan(value) ? "NaN" : "an infinite number");
        fail(measure, CONTROL_NAN);
    }
}

/* Anything but one value is a fault of the query: which of several is meant nobody knows. */
static void take_count(struct control_measure *measure, size_t n, double value) {
    if (n == 1) {
        take_number(measure, value);
    } else if (n == 0) {
        error_set(&measure->words, -ENODATA, "the query answers with nothing");
        fail(measure, CONTROL_EMPTY);
    } else {
        error_set(&measure->words, -EINVAL, "the query answers with %zu series instead of one", n);
        fail(measure, CONTROL_SEVERAL);
    }
}

void control_measure_judge(const struct promql_answer *answer,
                           struct control_measure *ret_measure) {
    if (answer->kind == PROMQL_MATRIX || answer->kind == PROMQL_STRING) {
        error_set(&ret_measure->words, -EINVAL, "the query answers with a %s instead of a number",
                  promql_kind_name(answer->kind));
        fail(ret_measure, CONTROL_FAILED);
        return;
    }
    size_t n = answer->n_series + answer->n_histograms;
    take_count(ret_measure, n == 1 ? answer->n_series : n,
               answer->n_series > 0 ? answer->series[0].points[0].value : NAN);
}

static void query(struct web_client *prometheus, const char *expression,
                  struct control_measure *measure) {
    struct promql_answer answer CLEANUP_PROMQL_ANSWER = {0};
    if (promql_query(prometheus, expression, &answer, &measure->words) < 0) {
        fail(measure, CONTROL_FAILED);
        return;
    }
    if (answer.n_remarks > 0) {
        error_set(&measure->remark, 0, "%s", answer.remarks[0]);
    }
    control_measure_judge(&answer, measure);
}

/* Prometheus goes on showing what it has not seen for minutes. */
static void check_age(const struct control_loop_config *loop, struct web_client *prometheus,
                      struct control_measure *measure) {
    struct control_measure age = {0};
    query(prometheus, loop->age_query, &age);
    if (!age.has_value) {
        error_set(&measure->words, -EINVAL, "age: %s", age.words.text);
        fail(measure, age.trouble == CONTROL_FAILED ? CONTROL_FAILED : CONTROL_STALE);
    } else if (age.value * 1000 > (double)loop->stale_ms) {
        error_set(&measure->words, -ESTALE, "the measure is %.1f s old", age.value);
        fail(measure, CONTROL_STALE);
    }
}

int control_measure_page(const struct control_config *config, struct web_client *exporter,
                         struct buf *text, struct exposition_doc *page, struct error *err) {
    const struct web_request request = {.path = config->metrics_path,
                                        .accept = "text/plain;version=0.0.4"};
    unsigned status;
    int r = web_client_call(exporter, &request, &status, text, err);
    if (r < 0) {
        return r;
    }
    if (status != HTTP_OK) {
        return web_client_fail(exporter, &request, status, buf_str(text), err);
    }
    struct error reason;
    buf_add_char(text, '\n'); /* an empty page has memory too */
    r = exposition_parse(text->data, text->len, &page_limits, page, &reason);
    if (r < 0) {
        web_client_fail(exporter, &request, status, reason.text, err);
    }
    return r;
}

static void look(const struct control_config *config, const struct control_loop_config *loop,
                 struct web_client *exporter, struct control_measure *measure) {
    struct buf text CLEANUP_BUF = {0};
    struct exposition_doc page CLEANUP_EXPOSITION_DOC = {0};
    if (control_measure_page(config, exporter, &text, &page, &measure->words) < 0) {
        fail(measure, CONTROL_FAILED);
        return;
    }
    double value = NAN;
    size_t n = selector_find(loop->selector, &page, &value);
    take_count(measure, n, value);
}

void control_measure_take(const struct control_config *config,
                          const struct control_loop_config *loop, struct web_client *prometheus,
                          struct web_client *exporter, struct control_measure *ret_measure) {
    *ret_measure = (struct control_measure){0};
    if (loop->from_exporter) {
        look(config, loop, exporter, ret_measure);
        return;
    }
    query(prometheus, loop->query, ret_measure);
    if (ret_measure->has_value && loop->age_query != NULL) {
        check_age(loop, prometheus, ret_measure);
    }
}
