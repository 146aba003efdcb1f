#include "placement/control/knob.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "exporter/core/json.h"

enum { HTTP_OK = 200, HTTP_NOT_FOUND = 404 };

void control_knob_finish(struct control_knob *knob) {
    buf_finish(&knob->text);
    *knob = (struct control_knob){0};
}

/* ---- reading ---- */

static int read_type(struct json *json, enum knob_type *ret_type, struct error *err) {
    char *text;
    size_t len;
    int r = json_string(json, &text, &len, err);
    if (r == 0 && !knob_type_find(text, ret_type)) {
        r = json_fail(json, err, "unknown type %s", text);
    }
    return r;
}

static int read_knob_key(struct json *json, const char *key, void *context, struct error *err) {
    struct control_knob *knob = context;
    static const struct {
        const char *key;
        size_t offset;
        bool is_value;
    } keys[] = {
        {"applied", offsetof(struct control_knob, applied), true},
        {"applied_at", offsetof(struct control_knob, applied_seconds), false},
        {"default", offsetof(struct control_knob, initial), true},
        {"max", offsetof(struct control_knob, max), false},
        {"min", offsetof(struct control_knob, min), false},
        {"requested", offsetof(struct control_knob, requested), true},
        {"requested_at", offsetof(struct control_knob, requested_seconds), false},
        {"step", offsetof(struct control_knob, step), false},
    };
    if (strcmp(key, "type") == 0) {
        return read_type(json, &knob->type, err);
    }
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        void *to = (char *)knob + keys[i].offset;
        if (strcmp(keys[i].key, key) == 0) {
            return keys[i].is_value ? knob_value_read(json, to, err) : json_number(json, to, err);
        }
    }
    return json_skip(json, err);
}

struct reading {
    struct control_knob *knob;
    bool has_data;
    char *error;
};

static int read_key(struct json *json, const char *key, void *context, struct error *err) {
    struct reading *in = context;
    size_t len;
    if (strcmp(key, "data") == 0) {
        in->has_data = true;
        return json_each(json, '{', "a knob", read_knob_key, in->knob, err);
    }
    return strcmp(key, "error") == 0 ? json_string(json, &in->error, &len, err)
                                     : json_skip(json, err);
}

/* Reads `knob->text`, in place: {"status": "success", "data": {"param": …}}. -EINVAL if it is not a
 * knob, -EREMOTEIO with the exporter's words if it is an error. */
static int parse(struct control_knob *knob, struct error *err) {
    struct json json = knob->text.len > 0 ? json_begin(knob->text.data, knob->text.len, 1)
                                          : (struct json){.line = 1};
    struct reading in = {.knob = knob};
    knob->min = -INFINITY;
    knob->max = INFINITY;
    int r = json_each(&json, '{', "an object", read_key, &in, err);
    if (r < 0) {
        return r;
    }
    if (in.error != NULL) {
        return error_set(err, -EREMOTEIO, "%.800s", in.error);
    }
    return in.has_data ? 0 : error_set(err, -EINVAL, "no knob in it");
}

/* ---- asking ---- */

static void add_path(struct buf *out, const struct control_knob_name *name) {
    const struct {
        const char *key;
        const char *value;
    } selectors[] = {
        {"container", name->container},
        {"job", name->job},
        {"namespace", name->namespace},
        {"pod", name->pod},
    };
    char before = '?';
    buf_add_str(out, "/api/v1/plugins/");
    web_add_escaped(out, name->plugin);
    buf_add_str(out, "/params/");
    web_add_escaped(out, name->param);
    for (size_t i = 0; i < ARRAY_LEN(selectors); i++) {
        if (selectors[i].value != NULL) {
            buf_printf(out, "%c%s=", before, selectors[i].key);
            web_add_escaped(out, selectors[i].value);
            before = '&';
        }
    }
}

static int call(struct web_client *exporter, const struct control_knob_name *name,
                const char *method, const char *body, struct control_knob *knob,
                struct error *err) {
    struct buf path CLEANUP_BUF = {0};
    add_path(&path, name);
    const struct web_request request = {
        .method = method,
        .path = buf_str(&path),
        .body = body,
        .content_type = "application/json",
        .accept = "application/json",
    };
    unsigned status;
    control_knob_finish(knob);
    int r = web_client_call(exporter, &request, &status, &knob->text, err);
    if (r < 0) {
        return r;
    }
    /* A request without the right to write is rejected in plain text. */
    char head[400] = {0};
    memcpy(head, buf_str(&knob->text),
           knob->text.len < sizeof(head) ? knob->text.len : sizeof(head) - 1);
    struct error reason;
    r = parse(knob, &reason);
    if (status == HTTP_OK && r == 0) {
        return 0;
    }
    web_client_fail(exporter, &request, status,
                    r == -EREMOTEIO || status == HTTP_OK ? reason.text : head, err);
    return status == HTTP_NOT_FOUND ? -ENOENT : -EREMOTEIO;
}

int control_knob_read(struct web_client *exporter, const struct control_knob_name *name,
                      struct control_knob *knob, struct error *err) {
    return call(exporter, name, "GET", NULL, knob, err);
}

int control_knob_write(struct web_client *exporter, const struct control_knob_name *name,
                       const struct knob_value *value, struct control_knob *knob,
                       struct error *err) {
    struct buf body CLEANUP_BUF = {0};
    buf_add_str(&body, "{\"value\":");
    knob_value_format(value, &body);
    buf_add_char(&body, '}');
    return call(exporter, name, "PUT", buf_str(&body), knob, err);
}

bool control_knob_is_pending(const struct control_knob *knob) {
    if (knob->requested.form == KNOB_ABSENT) {
        return false;
    }
    /* A plugin may apply another value than the one asked for; it has answered then, too. */
    return knob->applied.form == KNOB_ABSENT ||
           (!knob_value_equal(&knob->requested, &knob->applied) &&
            knob->applied_seconds < knob->requested_seconds);
}

const struct knob_value *control_knob_value(const struct control_knob *knob) {
    return knob->applied.form != KNOB_ABSENT     ? &knob->applied
           : knob->requested.form != KNOB_ABSENT ? &knob->requested
                                                 : &knob->initial;
}
