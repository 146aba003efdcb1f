#include "placement/client/promql.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/json.h"
#include "exporter/core/number.h"

/* ---- answers ---- */

static const char *const kinds[] = {"vector", "matrix", "scalar", "string"};

/* What has been read of the outer object so far; keys come in any order. */
struct reading {
    struct promql_answer *answer;
    size_t max_series;
    const char *status, *error_type, *error, *result_type;
    bool has_result;
    const char *pair_value;   /* of a scalar or string, which are pairs of time and text */
    size_t n_values, n_lists; /* series of vectors and matrices */
    struct promql_series series;
    size_t cap_labels;        /* of the series */
    bool has_value, has_list; /* of the series */
};

/* Room for one more element at the end of an array in the arena, which moves when it grows. */
static void *grow(struct reading *in, void *items, size_t n, size_t *capacity, size_t size) {
    if (n < *capacity) {
        return items;
    }
    *capacity = *capacity > 0 ? 2 * *capacity : 4;
    void *moved = arena_take(&in->answer->arena, *capacity * size);
    return n > 0 ? memcpy(moved, items, n * size) : moved;
}

/* ---- parts of a series ---- */

static int read_text(struct json *json, const char **ret_text, struct error *err) {
    char *text;
    size_t len;
    int r = json_read_string(json, &text, &len, err);
    if (r == 0) {
        *ret_text = text;
    }
    return r;
}

static int read_label(struct json *json, const char *key, void *context, struct error *err) {
    struct reading *in = context;
    struct promql_series *series = &in->series;
    series->labels =
        grow(in, series->labels, series->n_labels, &in->cap_labels, sizeof(*series->labels));
    struct label *label = &series->labels[series->n_labels++];
    label->name = key;
    return read_text(json, &label->value, err);
}

/* The `[1700000000.123, "42"]` after its first bracket; the time is that of the query. */
static int read_pair(struct json *json, const char **ret_text, struct error *err) {
    double seconds;
    int r = json_read_number(json, &seconds, err);
    if (r == 0 && !json_take(json, ',')) {
        r = json_fail(json, err, "expected a time and a value");
    }
    r = r < 0 ? r : read_text(json, ret_text, err);
    if (r == 0 && !json_take(json, ']')) {
        r = json_fail(json, err, "expected ] after a value");
    }
    return r;
}

static int read_value(struct json *json, struct reading *in, struct error *err) {
    const char *text;
    if (!json_take(json, '[')) {
        return json_fail(json, err, "expected [ before a time");
    }
    int r = read_pair(json, &text, err);
    if (r == 0 && number_parse(text, strlen(text), &in->series.value) < 0) {
        r = json_fail(json, err, "expected a number, got \"%.64s\"", text);
    }
    return r;
}

/* ---- series ---- */

static int read_series_key(struct json *json, const char *key, void *context, struct error *err) {
    struct reading *in = context;
    if (strcmp(key, "metric") == 0 && in->series.labels == NULL) {
        return json_each(json, '{', "the labels of a series", read_label, in, err);
    }
    if (strcmp(key, "value") == 0 && !in->has_value) {
        in->has_value = true;
        return read_value(json, in, err);
    }
    in->has_list = in->has_list || strcmp(key, "values") == 0;
    return json_skip(json, err);
}

static int read_series(struct json *json, const char *key, void *context, struct error *err) {
    (void)key;
    struct reading *in = context;
    struct promql_answer *answer = in->answer;
    in->series = (struct promql_series){0};
    in->cap_labels = 0;
    in->has_value = in->has_list = false;
    int r = json_each(json, '{', "a series", read_series_key, in, err);
    if (r < 0) {
        return r;
    }
    in->n_values += in->has_value;
    in->n_lists += in->has_list;
    if (!in->has_value) {
        answer->n_histograms += !in->has_list;
        return 0;
    }
    if (answer->n_series == in->max_series) {
        return error_set(err, -E2BIG, "more than %zu series", in->max_series);
    }
    answer->series =
        grow(in, answer->series, answer->n_series, &answer->cap_series, sizeof(in->series));
    answer->series[answer->n_series++] = in->series;
    return 0;
}

/* A list of series, or the time and value of a scalar or string: both begin with a bracket. */
static int read_result(struct json *json, struct reading *in, struct error *err) {
    struct json after = *json;
    in->has_result = true;
    if (json_take(&after, '[') && json_peek(&after) != '{' && json_peek(&after) != ']') {
        *json = after;
        return read_pair(json, &in->pair_value, err);
    }
    return json_each(json, '[', "a list as result", read_series, in, err);
}

/* ---- the outer objects ---- */

static int read_remark(struct json *json, const char *key, void *context, struct error *err) {
    (void)key;
    struct reading *in = context;
    const char **remark = &in->answer->remark;
    return *remark == NULL ? read_text(json, remark, err) : json_skip(json, err);
}

static int read_data_key(struct json *json, const char *key, void *context, struct error *err) {
    struct reading *in = context;
    if (strcmp(key, "result") == 0 && !in->has_result) {
        return read_result(json, in, err);
    }
    return strcmp(key, "resultType") == 0 ? read_text(json, &in->result_type, err)
                                          : json_skip(json, err);
}

static int read_outer_key(struct json *json, const char *key, void *context, struct error *err) {
    struct reading *in = context;
    const struct {
        const char *key;
        const char **text;
    } texts[] = {
        {"error", &in->error},
        {"errorType", &in->error_type},
        {"status", &in->status},
    };
    char c = json_peek(json);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        if (strcmp(texts[i].key, key) == 0 && c == '"') {
            return read_text(json, texts[i].text, err);
        }
    }
    if (strcmp(key, "data") == 0 && c == '{') {
        return json_each(json, '{', "data", read_data_key, in, err);
    }
    if ((strcmp(key, "warnings") == 0 || strcmp(key, "infos") == 0) && c != 'n') {
        return json_each(json, '[', "a list of warnings", read_remark, in, err);
    }
    return json_skip(json, err);
}

/* ---- whether it all fits together ---- */

static int take_scalar(struct reading *in, struct error *err) {
    struct promql_answer *answer = in->answer;
    double value;
    if (number_parse(in->pair_value, strlen(in->pair_value), &value) < 0) {
        return error_set(err, -EBADMSG, "scalar: expected a number, got \"%.64s\"", in->pair_value);
    }
    answer->series = arena_take(&answer->arena, sizeof(*answer->series));
    answer->series[0] = (struct promql_series){.value = value};
    answer->n_series = 1;
    return 0;
}

static int judge(struct reading *in, struct error *err) {
    if (in->status == NULL) {
        return error_set(err, -EBADMSG, "not an answer to a query: no status");
    }
    if (strcmp(in->status, "success") != 0) {
        const char *type = in->error_type != NULL ? in->error_type : in->status;
        return error_set(err, -EREMOTEIO, "%.64s: %.700s", type,
                         in->error != NULL ? in->error : "no reason given");
    }
    const char *type = in->result_type != NULL ? in->result_type : "";
    size_t kind = 0;
    while (kind < ARRAY_LEN(kinds) && strcmp(kinds[kind], type) != 0) {
        kind++;
    }
    const bool fits[] = {
        [PROMQL_VECTOR] = in->pair_value == NULL && in->n_lists == 0,
        [PROMQL_MATRIX] = in->pair_value == NULL && in->n_values == 0,
        [PROMQL_SCALAR] = in->pair_value != NULL,
        [PROMQL_STRING] = in->pair_value != NULL,
    };
    if (kind == ARRAY_LEN(kinds) || !in->has_result || !fits[kind]) {
        return error_set(err, -EBADMSG, "unexpected result type \"%.32s\"", type);
    }
    in->answer->kind = (enum promql_kind)kind;
    return kind == PROMQL_SCALAR ? take_scalar(in, err) : 0;
}

int promql_answer_parse(struct promql_answer *answer, size_t max_series, struct error *err) {
    if (answer->text.len == 0) {
        return error_set(err, -EBADMSG, "empty answer");
    }
    struct reading in = {.answer = answer, .max_series = max_series};
    struct json json = json_begin(answer->text.data, answer->text.len, 1);
    int r = json_each(&json, '{', "an object", read_outer_key, &in, err);
    if (r == 0 && !json_at_end(&json)) {
        r = json_fail(&json, err, "expected nothing after the answer");
    }
    if (r == -EINVAL) {
        r = -EBADMSG;
    }
    return r < 0 ? r : judge(&in, err);
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

static int parse_answer(void *context, struct buf *body, struct error *err) {
    struct promql_answer *answer = context;
    answer->text = *body;
    *body = (struct buf){0};
    return promql_answer_parse(answer, PROMQL_MAX_SERIES, err);
}

int promql_query(struct web_client *client, const char *expression, struct promql_answer *answer,
                 struct error *err) {
    struct buf form CLEANUP_BUF = {0};
    buf_add_str(&form, "query=");
    web_add_escaped(&form, expression);
    const struct web_request request = {
        .method = "POST",
        .path = "/api/v1/query",
        .body = buf_str(&form),
        .content_type = "application/x-www-form-urlencoded",
        .accept = "application/json",
    };
    promql_answer_finish(answer);
    return web_client_ask(client, &request, parse_answer, answer, err);
}
