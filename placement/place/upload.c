#include "placement/place/upload.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "exporter/core/json.h"
#include "placement/onnx/traits.h"

struct part {
    const char *data;
    size_t len;
};

struct form {
    struct part file, file_name, input_size, output_size;
};

static bool is_given(struct part part) {
    return part.data != NULL;
}

/* What follows `name=` in a header's line, with or without quotes; no data where it is not there.
 */
static struct part parameter(struct part line, const char *name) {
    size_t name_len = strlen(name);
    for (const char *at = line.data; at + name_len < line.data + line.len; at++) {
        bool begins = at == line.data || at[-1] == ' ' || at[-1] == ';';
        if (!begins || strncasecmp(at, name, name_len) != 0 || at[name_len] != '=') {
            continue;
        }
        const char *value = at + name_len + 1;
        const char *end = line.data + line.len;
        bool quoted = value < end && *value == '"';
        value += quoted;
        const char *stop = value;
        while (stop < end && (quoted ? *stop != '"' : *stop != ';' && *stop != ' ')) {
            stop++;
        }
        return (struct part){value, (size_t)(stop - value)};
    }
    return (struct part){0};
}

static struct part find(struct part in, const void *what, size_t len) {
    const char *at = in.len > 0 ? memmem(in.data, in.len, what, len) : NULL;
    return at != NULL ? (struct part){at, in.len - (size_t)(at - in.data)} : (struct part){0};
}

static struct part disposition_of(struct part headers) {
    static const char name[] = "content-disposition:";
    for (struct part left = headers; left.len > 0;) {
        struct part end = find(left, "\r\n", 2);
        size_t len = is_given(end) ? (size_t)(end.data - left.data) : left.len;
        if (len > strlen(name) && strncasecmp(left.data, name, strlen(name)) == 0) {
            return (struct part){left.data, len};
        }
        size_t step = is_given(end) ? len + 2 : left.len;
        left = (struct part){left.data + step, left.len - step};
    }
    return (struct part){0};
}

/* One part of the form: its headers, an empty line, what it holds. */
static void take_part(struct form *form, struct part part) {
    struct part body = find(part, "\r\n\r\n", 4);
    if (!is_given(body)) {
        return;
    }
    struct part disposition =
        disposition_of((struct part){part.data, (size_t)(body.data - part.data)});
    struct part content = {body.data + 4, body.len - 4};
    struct part name = is_given(disposition) ? parameter(disposition, "name") : (struct part){0};
    const struct {
        const char *name;
        struct part *part;
    } known[] = {
        {"file", &form->file},
        {"model_input_size", &form->input_size},
        {"model_output_size", &form->output_size},
    };
    for (size_t i = 0; is_given(name) && i < ARRAY_LEN(known); i++) {
        if (name.len == strlen(known[i].name) && memcmp(name.data, known[i].name, name.len) == 0) {
            *known[i].part = content;
        }
    }
    if (is_given(form->file) && form->file.data == content.data) {
        form->file_name = parameter(disposition, "filename");
    }
}

static int split_form(const char *content_type, struct part body, struct form *form,
                      struct error *err) {
    struct part type = {content_type, content_type != NULL ? strlen(content_type) : 0};
    struct part boundary = type.len > 0 && strncasecmp(content_type, "multipart/form-data", 19) == 0
                               ? parameter(type, "boundary")
                               : (struct part){0};
    if (!is_given(boundary) || boundary.len == 0 || boundary.len > 200) {
        return error_set(err, -EINVAL, "expected a form (multipart/form-data) with a file");
    }
    struct buf line CLEANUP_BUF = {0};
    buf_add_str(&line, "\r\n--");
    buf_add(&line, boundary.data, boundary.len);
    if (line.failed) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    /* The first line has nothing before it. */
    if (body.len < line.len || memcmp(body.data, line.data + 2, line.len - 2) != 0) {
        return error_set(err, -EINVAL, "the form does not begin with its boundary");
    }
    struct part left = {body.data + line.len - 2, body.len - (line.len - 2)};
    while (left.len >= 2 && memcmp(left.data, "\r\n", 2) == 0) {
        struct part end = find(left, line.data, line.len);
        if (!is_given(end)) {
            return error_set(err, -EINVAL, "the form is cut off");
        }
        /* Two boundaries in a row share the end of their line. */
        size_t len = (size_t)(end.data - left.data);
        if (len > 2) {
            take_part(form, (struct part){left.data + 2, len - 2});
        }
        left = (struct part){end.data + line.len, end.len - line.len};
    }
    return 0;
}

/* "vgg16" of "vgg16.onnx". */
static int check_file(struct form *form, struct error *err) {
    static const char ending[] = ".onnx";
    size_t len = strlen(ending);
    if (!is_given(form->file)) {
        return error_set(err, -EINVAL, "file: missing");
    }
    struct part *name = &form->file_name;
    if (name->len <= len || strncasecmp(name->data + name->len - len, ending, len) != 0) {
        return error_set(err, -EINVAL, "file: expected a name that ends in .onnx");
    }
    name->len -= len;
    return 0;
}

static int add_size(struct buf *out, const char *key, struct part given, int64_t known,
                    struct error *err) {
    buf_printf(out, ",\"%s\":", key);
    if (!is_given(given) && known < 0) {
        return error_set(err, -EINVAL, "%s: missing, and the model has an open dimension", key);
    }
    if (!is_given(given)) {
        buf_printf(out, "%" PRId64, known);
        return 0;
    }
    if (given.len == 0 || given.len > 18 || strspn(given.data, "0123456789") < given.len) {
        return error_set(err, -EINVAL, "%s: expected a number of bytes, got \"%.*s\"", key,
                         (int)(given.len < 64 ? given.len : 64), given.data);
    }
    buf_add(out, given.data, given.len);
    return 0;
}

static int describe(const struct form *form, const struct onnx_traits *traits, struct buf *out,
                    struct error *err) {
    struct buf name CLEANUP_BUF = {0};
    buf_add(&name, form->file_name.data, form->file_name.len);
    buf_printf(out,
               "{\"conv_layers\":%" PRIu64 ",\"fc_layers\":%" PRIu64 ",\"filter_details\":%" PRIu64
               ",\"pool_layers\":%" PRIu64 ",\"total_parameters\":%" PRIu64 ",\"model\":",
               traits->conv_layers, traits->fc_layers, traits->filter_details, traits->pool_layers,
               traits->total_parameters);
    json_add_string(out, buf_str(&name));
    int r = add_size(out, "model_input_size", form->input_size, traits->input_bytes, err);
    r = r < 0 ? r
              : add_size(out, "model_output_size", form->output_size, traits->output_bytes, err);
    buf_add_char(out, '}');
    return r == 0 && out->failed ? error_set(err, -ENOMEM, "out of memory") : r;
}

int place_upload_read(const char *content_type, const char *body, size_t len, size_t max_memory,
                      struct buf *ret_json, struct error *err) {
    struct form form = {.file = {0}};
    int r = split_form(content_type, (struct part){body, len}, &form, err);
    r = r < 0 ? r : check_file(&form, err);
    if (r < 0) {
        return r;
    }
    struct onnx_model model CLEANUP_ONNX_MODEL = {
        .file = {form.file.data, form.file.len},
        .max_memory = max_memory,
    };
    struct onnx_traits traits;
    struct error why = {0};
    r = onnx_model_read(&model, &why);
    r = r < 0 ? r : onnx_traits_get(&model, &traits, &why);
    if (r < 0) {
        return error_set(err, r == -EINVAL ? -ERANGE : r, "file: %s%s", why.text,
                         r == -EFBIG ? " (--upload.max-memory)" : "");
    }
    return describe(&form, &traits, ret_json, err);
}
