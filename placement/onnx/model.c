#include "placement/onnx/model.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "exporter/core/json.h"
#include "exporter/settings/flags.h"

/* ---- text ---- */

static void put_text(struct buf *out, const char *key, struct protobuf text) {
    struct buf copy CLEANUP_BUF = {0};
    buf_add(&copy, text.data, text.len);
    json_put_string(out, key, buf_str(&copy));
}

/* A text of the file; unprintable characters become question marks. */
static void add_plain(struct buf *out, struct protobuf text) {
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        buf_add_char(out, c < ' ' || c == 0x7f ? '?' : (char)c);
    }
}

static void put_size(struct buf *out, const char *key, int64_t bytes) {
    if (bytes < 0) {
        json_put(out, key, "null");
    } else {
        json_put(out, key, "%" PRId64, bytes);
    }
}

static void put_ports(struct buf *out, const char *key, const struct onnx_port *ports) {
    json_open(out, key, '[');
    for (const struct onnx_port *port = ports; port != NULL; port = port->next) {
        if (port->value->is_initializer) {
            continue;
        }
        json_open(out, NULL, '{');
        put_text(out, "name", port->value->name);
        json_put_string(out, "type", onnx_type_name(port->shape.data_type));
        if (port->shape.known) {
            json_open(out, "shape", '[');
            for (size_t i = 0; i < port->shape.n_dims; i++) {
                put_size(out, NULL, port->shape.dims[i]);
            }
            json_close(out, ']');
        } else {
            json_put(out, "shape", "null");
        }
        json_close(out, '}');
    }
    json_close(out, ']');
}

/* If some multiplications are unknown, the sum is null. */
static void put_totals(struct buf *out, const struct onnx_traits *traits) {
    for (size_t i = 0; i < ONNX_N_TOTALS; i++) {
        bool unknown = i == ONNX_MACS && traits->totals[ONNX_MACS_UNKNOWN] > 0;
        if (unknown) {
            json_put(out, "macs", "null");
        }
        json_put(out, unknown ? "macs_known" : onnx_total_names[i], "%" PRIu64, traits->totals[i]);
    }
}

void onnx_traits_put(const struct onnx_traits *traits, const char *name, struct buf *out) {
    json_put(out, "conv_layers", "%" PRIu64, traits->conv_layers);
    json_put(out, "fc_layers", "%" PRIu64, traits->fc_layers);
    json_put(out, "filter_details", "%" PRIu64, traits->filter_details);
    json_put_string(out, "model", name);
    json_put(out, "pool_layers", "%" PRIu64, traits->pool_layers);
    json_put(out, "total_parameters", "%" PRIu64, traits->total_parameters);
}

void model_write_json(const char *name, const struct onnx_model *model,
                      const struct onnx_traits *traits, struct buf *out) {
    json_open(out, NULL, '{');
    onnx_traits_put(traits, name, out);
    put_size(out, "model_input_size", traits->input_bytes);
    put_size(out, "model_output_size", traits->output_bytes);
    json_open(out, "details", '{');
    put_totals(out, traits);
    put_ports(out, "inputs", model->graph->inputs);
    put_ports(out, "outputs", model->graph->outputs);
    json_put_bool(out, "batch_assumed", traits->batch_assumed);
    json_put_bool(out, "external_data", model->has_external_data);
    put_text(out, "producer", model->producer_name);
    put_text(out, "producer_version", model->producer_version);
    json_put(out, "ir_version", "%" PRId64, model->ir_version);
    json_put(out, "opset", "%" PRId64, model->opset);
    json_close(out, '}');
    json_close(out, '}');
    buf_add_char(out, '\n');
}

static void add_shape(struct buf *out, const struct onnx_shape *shape) {
    buf_add_str(out, shape->known ? "[" : "of any shape");
    for (size_t i = 0; i < shape->n_dims; i++) {
        buf_add_str(out, i > 0 ? ", " : "");
        if (shape->dims[i] < 0) {
            buf_add_char(out, '?');
        } else {
            buf_printf(out, "%" PRId64, shape->dims[i]);
        }
    }
    buf_add_str(out, shape->known ? "]" : "");
}

static void add_ports(struct buf *out, const char *title, const struct onnx_port *ports) {
    for (const struct onnx_port *port = ports; port != NULL; port = port->next) {
        if (port->value->is_initializer) {
            continue;
        }
        buf_printf(out, "%-24s ", title);
        add_plain(out, port->value->name);
        buf_printf(out, ": %s ", onnx_type_name(port->shape.data_type));
        add_shape(out, &port->shape);
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

void model_write(const char *name, const struct onnx_model *model, const struct onnx_traits *traits,
                 struct buf *out) {
    buf_printf(out, "%s: ONNX IR %" PRId64 ", opset %" PRId64 ", by ", name, model->ir_version,
               model->opset);
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
    "multiplications.\n\n";

static const struct option options[] = {
    {"json", OPTION_BOOL, .help = "As an object for POST /api/profiling of waap place"},
    {0},
};

void onnx_model_name(const char *path, struct buf *out) {
    const char *slash = strrchr(path, '/');
    const char *base = slash != NULL ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    buf_add(out, base,
            dot != NULL && strcmp(dot, ".onnx") == 0 ? (size_t)(dot - base) : strlen(base));
}

static int show(const char *path, bool json) {
    struct onnx_model model CLEANUP_ONNX_FILE = {0};
    struct onnx_traits traits = {0};
    struct error err = {0};
    int r = onnx_file_open(path, &model, &err);
    if (r == 0 && (r = onnx_traits_get(&model, &traits, &err)) < 0) {
        error_set(&err, r, "%s: %s", path, err.text);
    }
    if (r < 0) {
        fprintf(stderr, "waap model: %s\n", err.text);
        return 1;
    }
    struct buf name CLEANUP_BUF = {0}, out CLEANUP_BUF = {0};
    onnx_model_name(path, &name);
    (json ? model_write_json : model_write)(buf_str(&name), &model, &traits, &out);
    if (fputs(buf_str(&out), stdout) == EOF || fflush(stdout) == EOF) {
        perror("waap model: standard output");
        return 1;
    }
    return 0;
}

int model_main(int argc, char **argv) {
    struct flags flags CLEANUP_FLAGS;
    int code = flags_begin(&flags, usage, options, argc, argv);
    if (code >= 0) {
        return code;
    }
    if (flags.n_words != 1) {
        fputs(usage, stderr);
        return 2;
    }
    return show(flags.words[0], settings_bool(flags.settings, "json"));
}
