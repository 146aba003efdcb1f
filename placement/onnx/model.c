#include "placement/onnx/model.h"

#include <stdio.h>
#include <string.h>

#include "placement/onnx/file.h"
#include "placement/onnx/model_text.h"

static const char usage[] =
    "usage: waap model FILE.onnx [--json]\n\n"
    "Prints what a model is made of, without reading its weights: layers, parameters and\n"
    "multiplications. The JSON object can be sent to POST /api/profiling of waap place.\n";

static int print(const struct buf *text) {
    if (text->failed || fputs(buf_str(text), stdout) == EOF || fflush(stdout) == EOF) {
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
            fprintf(stderr, "waap model: %s: not understood\n\n%s", argv[i], usage);
            return 2;
        }
    }
    if (path == NULL) {
        fputs(usage, stderr);
        return 2;
    }
    return show(path, json);
}
