/* Covers placement/onnx/graph.c. */
#include <assert.h>
#include <stdint.h>

#include "exporter/core/buf.h"
#include "placement/onnx/model.h"
#include "placement/onnx/traits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* A file that calls itself a model, down to what is printed about it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    struct onnx_model model CLEANUP_ONNX_MODEL = {.file = {(const char *)data, len}};
    struct onnx_traits traits;
    struct error err = {0};
    if (onnx_model_read(&model, &err) < 0 || onnx_traits_get(&model, &traits, &err) < 0) {
        assert(err.text[0] != '\0');
        return 0;
    }
    assert(traits.conv_layers <= traits.totals[ONNX_CONV_LAYERS]);
    assert(traits.pool_layers <= traits.totals[ONNX_POOL_LAYERS]);
    assert(traits.total_parameters <= traits.totals[ONNX_PARAMETERS]);
    struct buf out CLEANUP_BUF = {0};
    model_write("fuzz", &model, &traits, &out);
    model_write_json("fuzz", &model, &traits, &out);
    return 0;
}
