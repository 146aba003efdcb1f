#include "placement/client/promql.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/json.h"
#include "exporter/core/number.h"

/* ---- answers ---- */

static const char *const kinds[] = {"vector", "matrix", "scalar", "string"};

/* What the outer object has told so far; keys come in any order. */
struct reading {
    struct promql_answer *answer;
    struct json json;
    struct error *err;
    size_t max_series;
    const char *status, *error_type, *error, *result_type;
    bool has_result;
    bool is_pair;           /* of time and text, as scalars and strings are */
    const char *pair_value; /* its text */
    double pair_seconds;
    size_t n_values, n_lists; /* series that vectors and matrices have */
};

/* ---- growing ---- */

static int out_of_memory(struct error *err) {
    error_set(err, -ENOMEM, "out of memory");
    return -ENOMEM;
}

/* Room for one more at the end of an array in the arena, whose content moves when it grows. */
static void *grow(struct arena *arena, void *items, size_t n, size_t *cap, size_t size) {
    if (n < *cap) {
        return items;
    }
    size_t larger = *cap > 0 ? 2 * *cap : 4;
    void *moved = arena_take(arena, larger * size);
    if (moved != NULL && n > 0) {
        memcpy(moved, items, n * size);
    }
    *cap = moved != NULL ? larger : *cap;
    return moved;
}

/* ---- parts of a series ---- */

static int read_text(struct reading *in, const char **ret_text) {
    char *text;
    size_t len;
    int r = json_string(&in->json, &text, &len, in->err);
    if (r == 0) {
        *ret_text = text;
    }
    return r;
}

static int read_labels(struct reading *in, struct promql_series *series) {
    bool first = true;
    size_t cap = 0;
    char *key;
    size_t len;
    int r;
    if (!json_take(&in->json, '{')) {
        return json_fail(&in->json, in->err, "expected the labels of a series");
    }
    while ((r = json_next_key(&in->json, &first, &key, &len, in->err)) > 0) {
        series->labels = grow(&in->answer->arena, series->labels, series->n_labels, &cap,
                              sizeof(*series->labels));
        if (series->labels == NULL) {
            return out_of_memory(in->err);
        }
        struct label *label = &series->labels[series->n_labels];
        label->name = key;
        r = read_text(in, &label->value);
        if (r < 0) {
            return r;
        }
        series->n_labels++;
    }
    return r;
}

/* The `[1700000000.123, "42"]` behind its first bracket. */
static int read_pair(struct reading *in, double *ret_seconds, const char **ret_text) {
    struct json *json = &in->json;
    int r = json_number(json, ret_seconds, in->err);
    if (r == 0 && !json_take(json, ',')) {
        r = json_fail(json, in->err, "expected a time and a value");
    }
    if (r == 0) {
        r = read_text(in, ret_text);
    }
    if (r == 0 && !json_take(json, ']')) {
        r = json_fail(json, in->err, "expected ] behind a value");
    }
    return r;
}

static int read_point(struct reading *in, struct promql_point *ret_point) {
    const char *text;
    if (!json_take(&in->json, '[')) {
        return json_fail(&in->json, in->err, "expected [ before a time");
    }
    int r = read_pair(in, &ret_point->seconds, &text);
    if (r == 0 && number_parse(text, strlen(text), &ret_point->value) < 0) {
        r = json_fail(&in->json, in->err, "expected a number, got \"%.64s\"", text);
    }
    return r;
}

static int read_points(struct reading *in, struct promql_series *series) {
    bool first = true;
    size_t cap = 0;
    int r;
    if (!json_take(&in->json, '[')) {
        return json_fail(&in->json, in->err, "expected a list of points");
    }
    while ((r = json_next_element(&in->json, &first, in->err)) > 0) {
        series->points = grow(&in->answer->arena, series->points, series->n_points, &cap,
                              sizeof(*series->points));
        if (series->points == NULL) {
            return out_of_memory(in->err);
        }
        r = read_point(in, &series->points[series->n_points]);
        if (r < 0) {
            return r;
        }
        series->n_points++;
    }
    return r;
}

static int read_one_point(struct reading *in, struct promql_series *series) {
    series->points = arena_take(&in->answer->arena, sizeof(*series->points));
    if (series->points == NULL) {
        return out_of_memory(in->err);
    }
    series->n_points = 1;
    return read_point(in, series->points);
}

/* ---- series ---- */

static int read_series_key(struct reading *in, const char *key, struct promql_series *series) {
    bool has_labels = series->labels != NULL, has_points = series->points != NULL;
    if (strcmp(key, "metric") == 0 && !has_labels) {
        return read_labels(in, series);
    }
    if (strcmp(key, "value") == 0 && !has_points) {
        in->n_values++;
        return read_one_point(in, series);
    }
    if (strcmp(key, "values") == 0 && !has_points) {
        in->n_lists++;
        return read_points(in, series);
    }
    return json_skip(&in->json, in->err);
}

static int read_series(struct reading *in) {
    struct promql_answer *answer = in->answer;
    struct promql_series series = {0};
    bool first = true;
    char *key;
    size_t len;
    int r;
    if (!json_take(&in->json, '{')) {
        return json_fail(&in->json, in->err, "expected a series");
    }
    while ((r = json_next_key(&in->json, &first, &key, &len, in->err)) > 0) {
        r = read_series_key(in, key, &series);
        if (r < 0) {
            return r;
        }
    }
    if (r < 0) {
        return r;
    }
    if (series.n_points == 0) {
        answer->n_histograms++;
        return 0;
    }
    if (answer->n_series == in->max_series) {
        return error_set(in->err, -E2BIG, "more than %zu series", in->max_series);
    }
    answer->series =
        grow(&answer->arena, answer->series, answer->n_series, &answer->cap_series, sizeof(series));
    if (answer->series == NULL) {
        answer->n_series = 0;
        return out_of_memory(in->err);
    }
    answer->series[answer->n_series++] = series;
    return 0;
}

/* A list of series, or the time and value of a scalar or string: both begin with a bracket. */
static int read_result(struct reading *in) {
    bool first = true;
    int r;
    in->has_result = true;
    if (!json_take(&in->json, '[')) {
        return json_fail(&in->json, in->err, "expected a list as result");
    }
    char c = json_peek(&in->json);
    if (c != '{' && c != ']') {
        in->is_pair = true;
        return read_pair(in, &in->pair_seconds, &in->pair_value);
    }
    while ((r = json_next_element(&in->json, &first, in->err)) > 0) {
        r = read_series(in);
        if (r < 0) {
            return r;
        }
    }
    return r;
}

/* ---- the outer objects ---- */

static int read_remarks(struct reading *in) {
    struct promql_answer *answer = in->answer;
    bool first = true;
    int r;
    if (json_peek(&in->json) == 'n') {
        return json_null(&in->json, in->err);
    }
    if (!json_take(&in->json, '[')) {
        return json_fail(&in->json, in->err, "expected a list of warnings");
    }
    while ((r = json_next_element(&in->json, &first, in->err)) > 0) {
        answer->remarks = grow(&answer->arena, answer->remarks, answer->n_remarks,
                               &answer->cap_remarks, sizeof(*answer->remarks));
        if (answer->remarks == NULL) {
            answer->n_remarks = 0;
            return out_of_memory(in->err);
        }
        r = read_text(in, &answer->remarks[answer->n_remarks]);
        if (r < 0) {
            return r;
        }
        answer->n_remarks++;
    }
    return r;
}

static int read_data(struct reading *in) {
    bool first = true;
    char *key;
    size_t len;
    int r;
    if (!json_take(&in->json, '{')) {
        return json_skip(&in->json, in->err);
    }
    while ((r = json_next_key(&in->json, &first, &key, &len, in->err)) > 0) {
        if (strcmp(key, "result") == 0 && !in->has_result) {
            r = read_result(in);
        } else if (strcmp(key, "resultType") == 0) {
            r = read_text(in, &in->result_type);
        } else {
            r = json_skip(&in->json, in->err);
        }
        if (r < 0) {
            return r;
        }
    }
    return r;
}

static int read_outer_key(struct reading *in, const char *key) {
    const struct {
        const char *key;
        const char **text;
    } texts[] = {
        {"error", &in->error},
        {"errorType", &in->error_type},
        {"status", &in->status},
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        if (strcmp(texts[i].key, key) == 0 && json_peek(&in->json) == '"') {
            return read_text(in, texts[i].text);
        }
    }
    if (strcmp(key, "data") == 0) {
        return read_data(in);
    }
    if (strcmp(key, "warnings") == 0 || strcmp(key, "infos") == 0) {
        return read_remarks(in);
    }
    return json_skip(&in->json, in->err);
}

static int read_outer(struct reading *in) {
    bool first = true;
    char *key;
    size_t len;
    int r;
    if (!json_take(&in->json, '{')) {
        return json_fail(&in->json, in->err, "expected an object");
    }
    while ((r = json_next_key(&in->json, &first, &key, &len, in->err)) > 0) {
        r = read_outer_key(in, key);
        if (r < 0) {
            return r;
        }
    }
    if (r == 0 && !json_at_end(&in->json)) {
        r = json_fail(&in->json, in->err, "expected nothing behind the answer");
    }
    return r;
}

/* ---- whether it all fits together ---- */

static int take_scalar(struct reading *in) {
    struct promql_answer *answer = in->answer;
    double value;
    if (number_parse(in->pair_value, strlen(in->pair_value), &value) < 0) {
        return error_set(in->err, -EBADMSG, "scalar: expected a number, got \"%.64s\"",
                         in->pair_value);
    }
    answer->series = arena_take(&answer->arena, sizeof(*answer->series));
    struct promql_point *point = arena_take(&answer->arena, sizeof(*point));
    if (answer->series == NULL || point == NULL) {
        return out_of_memory(in->err);
    }
    *point = (struct promql_point){.seconds = in->pair_seconds, .value = value};
    answer->series[0] = (struct promql_series){.points = point, .n_points = 1};
    answer->n_series = 1;
    return 0;
}

static int find_kind(struct reading *in) {
    const char *type = in->result_type != NULL ? in->result_type : "";
    size_t kind = 0;
    while (kind < ARRAY_LEN(kinds) && strcmp(kinds[kind], type) != 0) {
        kind++;
    }
    const bool fits[] = {
        [PROMQL_VECTOR] = !in->is_pair && in->n_lists == 0,
        [PROMQL_MATRIX] = !in->is_pair && in->n_values == 0,
        [PROMQL_SCALAR] = in->is_pair,
        [PROMQL_STRING] = in->is_pair,
    };
    if (kind == ARRAY_LEN(kinds) || !in->has_result || !fits[kind]) {
        return error_set(in->err, -EBADMSG, "a result of type \"%.32s\" that is none", type);
    }
    in->answer->kind = (enum promql_kind)kind;
    return kind == PROMQL_SCALAR ? take_scalar(in) : 0;
}

static int judge(struct reading *in) {
    if (in->status == NULL) {
        return error_set(in->err, -EBADMSG, "no answer to a query: it has no status");
    }
    if (strcmp(in->status, "success") != 0) {
        const char *type = in->error_type != NULL ? in->error_type : in->status;
        return error_set(in->err, -EREMOTEIO, "%.64s: %.700s", type,
                         in->error != NULL ? in->error : "no reason given");
    }
    return find_kind(in);
}

int promql_answer_parse(struct promql_answer *answer, size_t max_series, struct error *err) {
    if (answer->text.len == 0) {
        return error_set(err, -EBADMSG, "an empty answer");
    }
    struct reading in = {
        .answer = answer,
        .json = json_begin(answer->text.data, answer->text.len, 1),
        .err = err,
        .max_series = max_series,
    };
    int r = read_outer(&in);
    if (r == -EINVAL) {
        r = -EBADMSG;
    }
    return r < 0 ? r : judge(&in);
}

void promql_answer_finish(struct promql_answer *answer) {
    arena_finish(&answer->arena);
    buf_finish(&answer->text);
    *answer = (struct promql_answer){0};
}

const char *promql_series_label(const struct promql_series *series, const char *name) {
    for (size_t i = 0; i < series->n_labels; i++) {
        if (strcmp(series->labels[i].name, name) == 0) {
            return series->labels[i].value;
        }
    }
    return NULL;
}

const char *promql_kind_name(enum promql_kind kind) {
    return kinds[kind];
}

/* ---- queries ---- */

/* Proxies answer with pages of their own: what is no error of Prometheus is shown as it stands. */
static int refuse(struct web_client *client, const struct web_request *request, unsigned status,
                  struct promql_answer *answer, struct error *err) {
    struct buf words CLEANUP_BUF = {0};
    struct error reason;
    enum { MAX_WORDS = 200 };
    buf_add(&words, buf_str(&answer->text),
            answer->text.len < MAX_WORDS ? answer->text.len : MAX_WORDS);
    int r = promql_answer_parse(answer, PROMQL_MAX_SERIES, &reason);
    return web_client_fail(client, request, status, r == -EREMOTEIO ? reason.text : buf_str(&words),
                           err);
}

int promql_query(struct web_client *client, const char *expression, struct promql_answer *answer,
                 struct error *err) {
    enum { HTTP_OK = 200 };
    promql_answer_finish(answer);
    struct buf form CLEANUP_BUF = {0};
    buf_add_str(&form, "query=");
    web_add_escaped(&form, expression);
    if (form.failed) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    const struct web_request request = {
        .method = "POST",
        .path = "/api/v1/query",
        .body = buf_str(&form),
        .content_type = "application/x-www-form-urlencoded",
        .accept = "application/json",
    };
    unsigned status;
    int r = web_client_call(client, &request, &status, &answer->text, err);
    if (r < 0) {
        return r;
    }
    if (status != HTTP_OK) {
        return refuse(client, &request, status, answer, err);
    }
    struct error reason;
    r = promql_answer_parse(answer, PROMQL_MAX_SERIES, &reason);
    if (r < 0) {
        web_client_fail(client, &request, status, reason.text, err);
    }
    return r;
}
