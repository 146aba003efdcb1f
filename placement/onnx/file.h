#pragma once

#include "placement/onnx/graph.h"

/* Maps the file at `path` and reads it into `ret_model`, which is zeroed; texts and tensors point
 * into the mapping. Fails with words that name the file. */
int onnx_file_open(const char *path, struct onnx_model *ret_model, struct error *err);

/* The same for an open file that is called `name`; the descriptor may be closed afterwards. */
int onnx_file_map(int fd, const char *name, struct onnx_model *ret_model, struct error *err);

/* Unmaps and frees. */
void onnx_file_close(struct onnx_model *model);
#define CLEANUP_ONNX_FILE CLEANUP(onnx_file_close)
