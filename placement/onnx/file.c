#include "placement/onnx/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

int onnx_file_map(int fd, const char *name, struct onnx_model *ret_model, struct error *err) {
    struct stat status;
    if (fstat(fd, &status) < 0) {
        return error_set(err, -errno, "%s: %m", name);
    }
    if (!S_ISREG(status.st_mode)) {
        return error_set(err, -EINVAL, "%s: not a regular file", name);
    }
    if (status.st_size == 0) {
        return error_set(err, -EINVAL, "%s: empty file", name);
    }
    void *data = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) {
        return error_set(err, -errno, "map %s: %m", name);
    }
    madvise(data, (size_t)status.st_size, MADV_RANDOM); /* no reading ahead into the weights */
    *ret_model = (struct onnx_model){.file = {data, (size_t)status.st_size}, .mapped = true};
    int r = onnx_model_read(ret_model, err);
    if (r < 0) {
        onnx_file_close(ret_model);
        error_set(err, r, "%s: %s", name, err != NULL ? err->text : "");
    }
    return r;
}

int onnx_file_open(const char *path, struct onnx_model *ret_model, struct error *err) {
    /* A pipe without a writer must not hold us up. */
    int fd CLEANUP_CLOSE = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return error_set(err, -errno, "open %s: %m", path);
    }
    return onnx_file_map(fd, path, ret_model, err);
}

void onnx_file_close(struct onnx_model *model) {
    onnx_model_finish(model);
    if (model->mapped) {
        munmap((void *)model->file.data, model->file.len);
    }
    *model = (struct onnx_model){.mapped = false};
}
