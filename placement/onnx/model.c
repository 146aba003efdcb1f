#include "placement/onnx/model.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "exporter/core/json.h"

/* ---- text ---- */

static void add_json_text(struct buf *out, struct protobuf text) {
    struct buf copy CLEANUP_BUF = {0};
    buf_add(&copy, text.data, text.len);
    json_add_string(out, buf_str(&copy));
}

/* A text of the file; unprintable characters become question marks. */
static void add_plain(struct buf *out, struct protobuf text) {
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        buf_add_char(out, c < ' ' || c == 0x7f ? '?' : (char)c);
    }
}

static void add_size(struct buf *out, const char *key, int64_t bytes) {
    if (bytes < 0) {
        buf_printf(out, "\"%s\": null", key);
    } else {
        buf_printf(out, "\"%s\": %" PRId64, key, bytes);
    }
}

static const char *type_name(int64_t data_type) {
    static const char *const names[] = {
        "undefined", "float",  "uint8",     "int8",       "uint16",   "int16",
        "int32",     "int64",  "string",    "bool",       "float16",  "double",
        "uint32",    "uint64", "complex64", "complex128", "bfloat16",
    };
    return data_type > 0 && data_type < (int64_t)ARRAY_LEN(names) ? names[data_type] : "other";
}

static void add_shape(struct buf *out, const struct onnx_shape *shape, const char *open_dim) {
    if (!shape->known) {
        buf_add_str(out, open_dim[0] == 'n' ? "null" : "of any shape");
        return;
    }
    buf_add_char(out, '[');
    for (size_t i = 0; i < shape->n_dims; i++) {
        buf_add_str(out, i > 0 ? ", " : "");
        if (shape->dims[i] < 0) {
            buf_add_str(out, open_dim);
        } else {
            buf_printf(out, "%" PRId64, shape->dims[i]);
        }
    }
    buf_add_char(out, ']');
}

static void add_json_ports(struct buf *out, const char *key, const struct onnx_port *ports) {
    buf_printf(out, "    \"%s\": [", key);
    const char *separator = "";
    for (const struct onnx_port *port = ports; port != NULL; port = port->next) {
        if (port->value->is_initializer) {
            continue;
        }
        buf_printf(out, "%s{\"name\": ", separator);
        add_json_text(out, port->value->name);
        buf_printf(out, ", \"type\": \"%s\", \"shape\": ", type_name(port->shape.data_type));
        add_shape(out, &port->shape, "null");
        buf_add_char(out, '}');
        separator = ", ";
    }
    buf_add_str(out, "],\n");
}

/* If some multiplications are unknown, the sum is null. */
static void add_json_totals(struct buf *out, const struct onnx_traits *traits) {
    for (size_t i = 0; i < ONNX_N_TOTALS; i++) {
        if (i == ONNX_MACS && traits->totals[ONNX_MACS_UNKNOWN] > 0) {
            buf_printf(out, "    \"macs\": null,\n    \"macs_known\": %" PRIu64 ",\n",
                       traits->totals[i]);
        } else {
            buf_printf(out, "    \"%s\": %" PRIu64 ",\n", onnx_total_names[i], traits->totals[i]);
        }
    }
}

void model_text_write_json(const struct model_text *text, struct buf *out) {
    const struct onnx_model *model = text->model;
    const struct onnx_traits *traits = text->traits;
    buf_printf(out, "{\n  \"conv_layers\": %" PRIu64 ",\n  \"fc_layers\": %" PRIu64 ",\n",
               traits->conv_layers, traits->fc_layers);
    buf_printf(out, "  \"filter_details\": %" PRIu64 ",\n  \"model\": ", traits->filter_details);
    json_add_string(out, text->name);
    buf_add_str(out, ",\n  ");
    add_size(out, "model_input_size", traits->input_bytes);
    buf_add_str(out, ",\n  ");
    add_size(out, "model_output_size", traits->output_bytes);
    buf_printf(out, ",\n  \"pool_layers\": %" PRIu64 ",\n  \"total_parameters\": %" PRIu64 ",\n",
               traits->pool_layers, traits->total_parameters);
    buf_add_str(out, "  \"details\": {\n");
    add_json_totals(out, traits);
    add_json_ports(out, "inputs", model->graph->inputs);
    add_json_ports(out, "outputs", model->graph->outputs);
    buf_printf(out, "    \"batch_assumed\": %s,\n    \"external_data\": %s,\n",
               traits->batch_assumed ? "true" : "false",
               model->has_external_data ? "true" : "false");
    buf_add_str(out, "    \"producer\": ");
    add_json_text(out, model->producer_name);
    buf_add_str(out, ",\n    \"producer_version\": ");
    add_json_text(out, model->producer_version);
    buf_printf(out, ",\n    \"ir_version\": %" PRId64 ",\n    \"opset\": %" PRId64 "\n  }\n}\n",
               model->ir_version, model->opset);
}

static void add_ports(struct buf *out, const char *title, const struct onnx_port *ports) {
    for (const struct onnx_port *port = ports; port != NULL; port = port->next) {
        if (port->value->is_initializer) {
            continue;
        }
        buf_printf(out, "%-24s ", title);
        add_plain(out, port->value->name);
        buf_printf(out, ": %s ", type_name(port->shape.data_type));
        add_shape(out, &port->shape, "?");
        buf_add_char(out, '\n');
    }
}

static void add_row(struct buf *out, const char *name, uint64_t value) {
    buf_printf(out, "%-24s %" PRIu64 "\n", name, value);
}

static void add_bytes_row(struct buf *out, const char *name, int64_t bytes) {
    if (bytes < 0) {
        buf_printf(out, "%-24s unknown: an open dimension; set its size in the request\n", name);
    } else {
        add_row(out, name, (uint64_t)bytes);
    }
}

void model_text_write(const struct model_text *text, struct buf *out) {
    const struct onnx_model *model = text->model;
    const struct onnx_traits *traits = text->traits;
    buf_printf(out, "%s: ONNX IR %" PRId64 ", opset %" PRId64 ", by ", text->name,
               model->ir_version, model->opset);
    add_plain(out, model->producer_name.len > 0 ? model->producer_name
                                                : (struct protobuf){"unknown", 7});
    buf_printf(out, "%s", model->producer_version.len > 0 ? " " : "");
    add_plain(out, model->producer_version);
    buf_add_str(out, "\n\nfor POST /api/profiling\n");
    add_row(out, "conv_layers", traits->conv_layers);
    add_row(out, "fc_layers", traits->fc_layers);
    add_row(out, "filter_details", traits->filter_details);
    add_row(out, "pool_layers", traits->pool_layers);
    add_row(out, "total_parameters", traits->total_parameters);
    add_bytes_row(out, "model_input_size", traits->input_bytes);
    add_bytes_row(out, "model_output_size", traits->output_bytes);
    buf_add_str(out, "\nwith Constant nodes, subgraphs and functions\n");
    for (size_t i = 0; i < ONNX_N_TOTALS; i++) {
        add_row(out, onnx_total_names[i], traits->totals[i]);
    }
    add_ports(out, "input", model->graph->inputs);
    add_ports(out, "output", model->graph->outputs);
    if (traits->batch_assumed) {
        buf_add_str(out, "an open first dimension counts as 1\n");
    }
    if (model->has_external_data) {
        buf_add_str(out, "weights are in another file\n");
    }
}

/* ---- the command ---- */

static const char usage[] =
    "usage: waap model FILE.onnx [--json]\n\n"
    "Prints what a model is made of, without reading its weights: layers, parameters and\n"
    "multiplications. The JSON object can be sent to POST /api/profiling of waap place.\n";

static int print(const struct buf *text) {
    if (fputs(buf_str(text), stdout) == EOF || fflush(stdout) == EOF) {
        perror("waap model: standard output");
        return 1;
    }
    return 0;
}

/* "vgg16" of "models/vgg16.onnx". */
static void name_of(const char *path, struct buf *out) {
    const char *slash = strrchr(path, '/');
    const char *base = slash != NULL ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    buf_add(out, base,
            dot != NULL && strcmp(dot, ".onnx") == 0 ? (size_t)(dot - base) : strlen(base));
}

static int show(const char *path, bool json) {
    struct onnx_model model CLEANUP_ONNX_FILE = {0};
    struct onnx_traits traits;
    struct error err = {0};
    int r = onnx_file_open(path, &model, &err);
    if (r < 0) {
        fprintf(stderr, "waap model: %s\n", err.text);
        return 1;
    }
    r = onnx_traits_get(&model, &traits, &err);
    if (r < 0) {
        fprintf(stderr, "waap model: %s: %s\n", path, err.text);
        return 1;
    }
    struct buf name CLEANUP_BUF = {0}, out CLEANUP_BUF = {0};
    name_of(path, &name);
    struct model_text text = {.name = buf_str(&name), .model = &model, .traits = &traits};
    (json ? model_text_write_json : model_text_write)(&text, &out);
    return print(&out);
}

int model_main(int argc, char **argv) {
    const char *path = NULL;
    bool json = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            fputs(usage, stdout);
            return 0;
        }
        if (strcmp(argv[i], "--json") == 0) {
            json = true;
        } else if (path == NULL && argv[i][0] != '-') {
            path = argv[i];
        } else {
            fprintf(stderr, "waap model: %s: unknown argument\n\n%s", argv[i], usage);
            return 2;
        }
    }
    if (path == NULL) {
        fputs(usage, stderr);
        return 2;
    }
    return show(path, json);
}
