#include "placement/place/request.h"

#include <errno.h>
#include <string.h>

#include "exporter/core/json.h"
#include "placement/place/json_sorted.h"

/* The extractor of the original says fully_conn_layers, its service fc_layers. */
static const struct {
    const char *key;
    enum feature feature;
} fields[] = {
    {"conv_layers", FEATURE_CONV_LAYERS},     {"fc_layers", FEATURE_FC_LAYERS},
    {"filter_details", FEATURE_FILTERS},      {"fully_conn_layers", FEATURE_FC_LAYERS},
    {"model_input_size", FEATURE_READ_BYTES}, {"model_output_size", FEATURE_WRITE_BYTES},
    {"pool_layers", FEATURE_POOL_LAYERS},     {"total_parameters", FEATURE_PARAMETERS},
};

static int read_count(struct json *json, const char *key, float *ret_count, struct error *err) {
    double number;
    struct error why;
    if (json_number(json, &number, &why) < 0) {
        return error_set(err, -EINVAL, "%s: expected a number: %s", key, why.text);
    }
    if (number < 0 || number > 1e30) {
        return error_set(err, -ERANGE, "%s: %g makes no sense", key, number);
    }
    *ret_count = (float)number;
    return 0;
}

static int read_model(struct place_request *request, struct json *json, struct error *err) {
    char *text;
    size_t len;
    struct error why;
    if (json_string(json, &text, &len, &why) < 0) {
        return error_set(err, -EINVAL, "model: expected a name: %s", why.text);
    }
    buf_reset(&request->model);
    json_add_string(&request->model, text);
    return 0;
}

static int read_field(struct place_request *request, struct json *json, const char *key,
                      bool seen[static N_FEATURES], struct error *err) {
    if (strcmp(key, "model") == 0) {
        return read_model(request, json, err);
    }
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        if (strcmp(key, fields[i].key) == 0) {
            seen[fields[i].feature] = true;
            return read_count(json, key, &request->features[fields[i].feature], err);
        }
    }
    return json_skip(json, err);
}

static int read_fields(struct place_request *request, char *text, size_t len, struct error *err) {
    struct json json = json_begin(text, len, 1);
    bool seen[N_FEATURES] = {false};
    if (!json_take(&json, '{')) {
        return json_fail(&json, err, "expected an object with the characteristics of a model");
    }
    bool first = true;
    char *key;
    size_t key_len;
    int r;
    while ((r = json_next_key(&json, &first, &key, &key_len, err)) > 0) {
        r = read_field(request, &json, key, seen, err);
        if (r < 0) {
            return r;
        }
    }
    if (r == 0 && request->model.len == 0) {
        return error_set(err, -EINVAL, "model: missing");
    }
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(fields); i++) {
        if (!seen[fields[i].feature]) {
            return error_set(err, -EINVAL, "%s: missing", fields[i].key);
        }
    }
    return r;
}

int place_request_read(struct place_request *request, char *text, size_t len, struct error *err) {
    struct buf copy CLEANUP_BUF = {0};
    buf_add(&copy, text, len);
    if (len == 0 || copy.failed) {
        return error_set(err, len == 0 ? -EINVAL : -ENOMEM,
                         len == 0 ? "expected a JSON object, got nothing" : "out of memory");
    }
    int r = read_fields(request, copy.data, copy.len, err);
    struct json json = json_begin(text, len, 1);
    r = r < 0 ? r : json_sorted_add(&json, &request->echo, err);
    if (r == 0 && !json_at_end(&json)) {
        r = json_fail(&json, err, "something behind the object");
    }
    if (r == 0 && (request->echo.failed || request->model.failed)) {
        r = error_set(err, -ENOMEM, "out of memory");
    }
    return r;
}

void place_request_finish(struct place_request *request) {
    buf_finish(&request->echo);
    buf_finish(&request->model);
}
