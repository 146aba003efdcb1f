#include "placement/place/request.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "exporter/core/json.h"
#include "exporter/core/memory.h"
#include "exporter/core/scan.h"
#include "placement/onnx/model.h"

/* The original's extractor writes fully_conn_layers, its service reads fc_layers. */
static const struct {
    const char *key;
    enum feature feature;
} fields[] = {
    {"conv_layers", FEATURE_CONV_LAYERS},     {"fc_layers", FEATURE_FC_LAYERS},
    {"filter_details", FEATURE_FILTERS},      {"fully_conn_layers", FEATURE_FC_LAYERS},
    {"model_input_size", FEATURE_READ_BYTES}, {"model_output_size", FEATURE_WRITE_BYTES},
    {"pool_layers", FEATURE_POOL_LAYERS},     {"total_parameters", FEATURE_PARAMETERS},
};

/* ---- the request as Flask writes it ---- */

struct member {
    const char *key;
    struct buf value;
};

/* An object, an array or a single value; of an object, its members are collected. */
struct sorted {
    struct buf *out;
    int depth;
    bool is_object;
    struct member *members;
    size_t n, capacity;
};

/* Equal keys stay in the order of the text, which the keys point into. */
static int compare(const void *left, const void *right) {
    const struct member *a = left, *b = right;
    int order = strcmp(a->key, b->key);
    return order != 0 ? order : (a->key > b->key) - (a->key < b->key);
}

/* Writes the members and frees them. Of equal keys the last counts. */
static void put_members(struct sorted *object) {
    const struct member *members = object->members;
    if (object->n > 0) {
        qsort(object->members, object->n, sizeof(*members), compare);
    }
    for (size_t i = 0; i < object->n; i++) {
        if (i + 1 == object->n || strcmp(members[i].key, members[i + 1].key) != 0) {
            json_put(object->out, members[i].key, "%s", buf_str(&members[i].value));
        }
        buf_finish(&object->members[i].value);
    }
    free(object->members);
}

/* Appends one value with the keys of its objects sorted and without blanks. Numbers stay as they
 * are: clients of the original send some of more than 64 bits. */
static int put_sorted(struct json *json, const char *key, void *context, struct error *err) {
    struct sorted *in = context;
    struct buf *out = in->out;
    if (in->depth == JSON_MAX_DEPTH) {
        return json_fail(json, err, "nested more than %d deep", JSON_MAX_DEPTH);
    }
    if (in->is_object) {
        ARRAY_GROW(&in->members, &in->capacity, in->n + 1);
        in->members[in->n] = (struct member){.key = key};
        out = &in->members[in->n++].value;
    }
    char c = json_peek(json);
    const char *begin = json->at;
    int r;
    if (c == '{' || c == '[') {
        struct sorted inner = {.out = out, .depth = in->depth + 1, .is_object = c == '{'};
        json_open(out, NULL, c);
        r = json_each(json, c, "a value", put_sorted, &inner, err);
        put_members(&inner);
        json_close(out, c == '{' ? '}' : ']');
    } else if (c == '"') {
        char *text;
        size_t len;
        r = json_read_string(json, &text, &len, err);
        json_put_string(out, NULL, r == 0 ? text : "");
    } else {
        r = json_skip(json, err);
        json_put(out, NULL, "%.*s", (int)(json->at - begin), begin);
    }
    return r;
}

/* ---- fields ---- */

struct reading {
    struct place_request *request;
    bool seen[N_FEATURES];
};

static int read_field(struct json *json, const char *key, void *context, struct error *err) {
    struct reading *in = context;
    struct error why;
    if (strcmp(key, "model") == 0) {
        char *text;
        size_t len;
        if (json_read_string(json, &text, &len, &why) < 0) {
            return error_set(err, -EINVAL, "model: expected a name: %s", why.text);
        }
        free(in->request->model);
        in->request->model = mem_strdup(text);
        return 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        double number;
        if (strcmp(key, fields[i].key) != 0) {
            continue;
        }
        if (json_read_number(json, &number, &why) < 0) {
            return error_set(err, -EINVAL, "%s: expected a number: %s", key, why.text);
        }
        if (number < 0 || number > 1e30) {
            return error_set(err, -ERANGE, "%s: %g is out of range", key, number);
        }
        in->request->features[fields[i].feature] = (float)number;
        in->seen[fields[i].feature] = true;
        return 0;
    }
    return json_skip(json, err);
}

static int read_fields(struct place_request *request, struct json *json, struct error *err) {
    struct reading in = {.request = request};
    int r =
        json_each(json, '{', "an object with the characteristics of a model", read_field, &in, err);
    if (r == 0 && !json_at_end(json)) {
        r = json_fail(json, err, "expected nothing after the object");
    }
    if (r == 0 && request->model == NULL) {
        return error_set(err, -EINVAL, "model: missing");
    }
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(fields); i++) {
        if (!in.seen[fields[i].feature]) {
            return error_set(err, -EINVAL, "%s: missing", fields[i].key);
        }
    }
    return r;
}

/* Reads a copy twice, as strings are decoded in place. */
int place_request_read(struct place_request *request, const char *text, size_t len,
                       struct error *err) {
    char *copies[] = {mem_dup(text, len), mem_dup(text, len)};
    struct json json = json_begin(copies[0], len, 1);
    int r = read_fields(request, &json, err);
    struct sorted echo = {.out = &request->echo};
    json = json_begin(copies[1], len, 1);
    r = r < 0 ? r : put_sorted(&json, NULL, &echo, err);
    free(copies[0]);
    free(copies[1]);
    return r;
}

void place_request_finish(struct place_request *request) {
    buf_finish(&request->echo);
    free(request->model);
}

/* ---- uploads ---- */

enum { PART_FILE, PART_INPUT_SIZE, PART_OUTPUT_SIZE, N_PARTS };

static const char *const part_names[N_PARTS] = {
    [PART_FILE] = "file",
    [PART_INPUT_SIZE] = "model_input_size",
    [PART_OUTPUT_SIZE] = "model_output_size",
};

/* Texts lie in the body; NULL: missing. */
struct form {
    struct scan_word parts[N_PARTS];
    struct scan_word file_name;
};

/* The value of `name=` in a header line, with or without quotes; no data if it is missing. */
static struct scan_word parameter(struct scan_word line, const char *name) {
    size_t name_len = strlen(name);
    for (size_t i = 0; i + name_len < line.len; i++) {
        const char *at = line.text + i;
        bool begins = i == 0 || at[-1] == ' ' || at[-1] == ';';
        if (!begins || strncasecmp(at, name, name_len) != 0 || at[name_len] != '=') {
            continue;
        }
        const char *value = at + name_len + 1;
        const char *end = line.text + line.len;
        bool quoted = value < end && *value == '"';
        value += quoted;
        const char *stop = value;
        while (stop < end && (quoted ? *stop != '"' : *stop != ';' && *stop != ' ')) {
            stop++;
        }
        return (struct scan_word){value, (size_t)(stop - value)};
    }
    return (struct scan_word){0};
}

static struct scan_word find(struct scan_word in, const void *what, size_t len) {
    const char *at = in.len > 0 ? memmem(in.text, in.len, what, len) : NULL;
    return at != NULL ? (struct scan_word){at, in.len - (size_t)(at - in.text)}
                      : (struct scan_word){0};
}

/* `headers` are lines that end in "\r\n". */
static struct scan_word disposition_of(struct scan_word headers) {
    static const char name[] = "content-disposition:";
    struct scan_word end;
    for (; (end = find(headers, "\r\n", 2)).text != NULL;
         headers = (struct scan_word){end.text + 2, end.len - 2}) {
        size_t len = (size_t)(end.text - headers.text);
        if (len > strlen(name) && strncasecmp(headers.text, name, strlen(name)) == 0) {
            return (struct scan_word){headers.text, len};
        }
    }
    return (struct scan_word){0};
}

/* One part of the form: its headers, an empty line, its content. */
static void take_part(struct form *form, struct scan_word part) {
    struct scan_word body = find(part, "\r\n\r\n", 4);
    if (body.text == NULL) {
        return;
    }
    struct scan_word disposition =
        disposition_of((struct scan_word){part.text, (size_t)(body.text - part.text) + 2});
    struct scan_word name = parameter(disposition, "name");
    for (size_t i = 0; name.text != NULL && i < N_PARTS; i++) {
        if (scan_word_equal(name, part_names[i])) {
            form->parts[i] = (struct scan_word){body.text + 4, body.len - 4};
            form->file_name = i == PART_FILE ? parameter(disposition, "filename") : form->file_name;
        }
    }
}

static int split_form(const char *content_type, struct scan_word body, struct form *form,
                      struct error *err) {
    static const char form_type[] = "multipart/form-data";
    content_type = content_type != NULL ? content_type : "";
    struct scan_word boundary = {0};
    if (strncasecmp(content_type, form_type, strlen(form_type)) == 0) {
        boundary = parameter((struct scan_word){content_type, strlen(content_type)}, "boundary");
    }
    if (boundary.len == 0 || boundary.len > 200) {
        return error_set(err, -EINVAL, "expected a form (multipart/form-data) with a file");
    }
    struct buf line CLEANUP_BUF = {0};
    buf_add_str(&line, "\r\n--");
    buf_add(&line, boundary.text, boundary.len);
    /* The first line has nothing before it. */
    if (body.len < line.len || memcmp(body.text, line.data + 2, line.len - 2) != 0) {
        return error_set(err, -EINVAL, "the form does not begin with its boundary");
    }
    struct scan_word left = {body.text + line.len - 2, body.len - (line.len - 2)};
    while (left.len >= 2 && memcmp(left.text, "\r\n", 2) == 0) {
        struct scan_word end = find(left, line.data, line.len);
        if (end.text == NULL) {
            return error_set(err, -EINVAL, "the form is truncated");
        }
        /* Two boundaries in a row share the end of their line. */
        size_t len = (size_t)(end.text - left.text);
        if (len > 2) {
            take_part(form, (struct scan_word){left.text + 2, len - 2});
        }
        left = (struct scan_word){end.text + line.len, end.len - line.len};
    }
    return 0;
}

/* "vgg16" of "vgg16.onnx". */
static int check_file(struct form *form, struct error *err) {
    static const char ending[] = ".onnx";
    size_t len = strlen(ending);
    if (form->parts[PART_FILE].text == NULL) {
        return error_set(err, -EINVAL, "file: missing");
    }
    struct scan_word *name = &form->file_name;
    if (name->len <= len || strncasecmp(name->text + name->len - len, ending, len) != 0) {
        return error_set(err, -EINVAL, "file: expected a name that ends in .onnx");
    }
    name->len -= len;
    return 0;
}

static int put_size(struct buf *out, const struct form *form, size_t part, int64_t known,
                    struct error *err) {
    const char *key = part_names[part];
    struct scan_word given = form->parts[part];
    if (given.text == NULL && known < 0) {
        return error_set(err, -EINVAL, "%s: missing, and the model has an open dimension", key);
    }
    if (given.text == NULL) {
        json_put(out, key, "%" PRId64, known);
        return 0;
    }
    if (given.len == 0 || given.len > 18 || strspn(given.text, "0123456789") < given.len) {
        return error_set(err, -EINVAL, "%s: expected a number of bytes, got \"%.*s\"", key,
                         (int)(given.len < 64 ? given.len : 64), given.text);
    }
    json_put(out, key, "%.*s", (int)given.len, given.text);
    return 0;
}

/* Makes the form into the object that POST /api/profiling takes. */
static int put_form(struct buf *out, const struct form *form, const struct onnx_traits *traits,
                    struct error *err) {
    char *name CLEANUP_FREE = mem_strndup(form->file_name.text, form->file_name.len);
    json_open(out, NULL, '{');
    onnx_traits_put(traits, name, out);
    int r = put_size(out, form, PART_INPUT_SIZE, traits->input_bytes, err);
    r = r < 0 ? r : put_size(out, form, PART_OUTPUT_SIZE, traits->output_bytes, err);
    json_close(out, '}');
    return r;
}

int place_request_read_upload(struct place_request *request, const char *content_type,
                              const char *body, size_t len, size_t max_memory, struct error *err) {
    struct form form = {.file_name = {0}};
    int r = split_form(content_type, (struct scan_word){body, len}, &form, err);
    r = r < 0 ? r : check_file(&form, err);
    if (r < 0) {
        return r;
    }
    struct onnx_model model CLEANUP_ONNX_MODEL = {
        .file = {form.parts[PART_FILE].text, form.parts[PART_FILE].len},
        .arena = {.max = max_memory},
    };
    struct onnx_traits traits;
    struct error why = {0};
    r = onnx_model_read(&model, &why);
    r = r < 0 ? r : onnx_traits_get(&model, &traits, &why);
    if (r < 0) {
        return error_set(err, r == -EINVAL ? -ERANGE : r, "file: %s%s", why.text,
                         r == -EFBIG ? " (--upload.max-memory)" : "");
    }
    struct buf json CLEANUP_BUF = {0};
    r = put_form(&json, &form, &traits, err);
    return r < 0 ? r : place_request_read(request, buf_str(&json), json.len, err);
}
