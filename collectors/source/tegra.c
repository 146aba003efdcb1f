#include "collectors/source/tegra.h"

#include <errno.h>
#include <string.h>

#include "collectors/source/tegra_gpu.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/file.h"
#include "exporter/core/uuid.h"

static const struct tegra_soc socs[] = {
    {"tegra124", "GK20A", false, false},  {"tegra186", "NVIDIA Tegra X2", false, false},
    {"tegra194", "Xavier", false, false}, {"tegra210", "NVIDIA Tegra X1", false, false},
    {"tegra234", "Orin", true, false},    {"tegra264", "NVIDIA Thor", true, true},
};

/* One that came after them all, to judge by a GPU without a file for its load. */
static const struct tegra_soc successor = {"", "", true, true};

static const char vendor[] = "nvidia,";

const struct tegra_soc *tegra_soc_parse(const char *text, size_t len) {
    for (const char *at = text; at < text + len; at += strnlen(at, (size_t)(text + len - at)) + 1) {
        size_t n = strnlen(at, (size_t)(text + len - at));
        for (size_t i = 0; i < ARRAY_LEN(socs); i++) {
            size_t prefix = strlen(vendor);
            if (n == prefix + strlen(socs[i].name) && memcmp(at, vendor, prefix) == 0 &&
                memcmp(at + prefix, socs[i].name, n - prefix) == 0) {
                return &socs[i];
            }
        }
    }
    return NULL;
}

/* /proc/device-tree is a link to the other place; containers often see only one of them. */
int tegra_read_device_tree(const struct collector_env *env, const char *name, struct buf *out) {
    char *proc CLEANUP_FREE = file_path_join(env->procfs, "device-tree");
    char *sys CLEANUP_FREE = file_path_join(env->sysfs, "firmware/devicetree/base");
    char *first CLEANUP_FREE = proc != NULL ? file_path_join(proc, name) : NULL;
    char *second CLEANUP_FREE = sys != NULL ? file_path_join(sys, name) : NULL;
    if (first == NULL || second == NULL) {
        return -ENOMEM;
    }
    return file_read(first, out, NULL) == 0 ? 0 : file_read(second, out, NULL);
}

int tegra_detect(const struct collector_env *env, const struct tegra_soc **ret_soc,
                 struct error *err) {
    struct buf text CLEANUP_BUF = {0};
    const struct tegra_soc *soc = NULL;
    if (tegra_read_device_tree(env, "compatible", &text) == 0) {
        soc = tegra_soc_parse(buf_str(&text), text.len);
    }
    if (soc != NULL) {
        *ret_soc = soc;
        return 0;
    }
    struct jetson_gpu_paths paths CLEANUP_JETSON_GPU_PATHS = {0};
    int r = jetson_gpu_find(env->sysfs, &paths, err);
    if (r == -ENODEV) {
        return error_set(err, r, "no Tegra in the device tree, no integrated GPU in %s",
                         env->sysfs);
    }
    if (r == 0) {
        *ret_soc = paths.device == NULL ? &successor : NULL;
    }
    return r;
}

bool tegra_gpu_is_integrated(const char *name) {
    static const char *const names[] = {"nvgpu", "Orin", "Tegra", "Thor", "Xavier"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (strstr(name, names[i]) != NULL) {
            return true;
        }
    }
    return false;
}

/* Boards whose maker left it out have zeros or nothing. */
static bool is_serial(const char *serial) {
    return serial[strspn(serial, "0 \n")] != '\0';
}

void tegra_gpu_uuid(const char *serial, struct buf *out) {
    struct buf text CLEANUP_BUF = {0};
    buf_add(&text, serial, strcspn(serial, "\n"));
    if (is_serial(serial) && !text.failed) {
        buf_add_str(out, "IGPU-");
        uuid_derive("waap gpu uuid", buf_str(&text), out);
    }
}
