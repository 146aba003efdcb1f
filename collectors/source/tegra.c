#include "collectors/source/tegra.h"

#include <errno.h>
#include <string.h>

#include "collectors/source/entries.h"
#include "collectors/source/source_file.h"
#include "exporter/core/buf.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/file.h"
#include "exporter/core/hash.h"

/* Devices by generation, for kernels that do not list the GPU in /sys/class/devfreq. */
static const char *const devices[] = {
    "devices/gpu.0",                       /* alias up to L4T 35 */
    "devices/platform/gpu.0",              /* alias of L4T 35 */
    "devices/platform/bus@0/17000000.gpu", /* Orin, L4T 36 and 39 */
    "devices/platform/17000000.gpu",
    "devices/17000000.ga10b",          /* Orin, L4T 34 and 35 */
    "devices/17000000.gv11b",          /* Xavier */
    "devices/17000000.gp10b",          /* TX2 */
    "devices/57000000.gpu",            /* Nano, TX1 */
    "devices/platform/host1x/gk20a.0", /* TK1 */
    "devices/17810000.vgpu",           /* virtual machines */
    "devices/18000000.vgpu",
};

bool jetson_gpu_name_matches(const char *name) {
    static const char *const cores[] = {"gk20a", "gp10b", "gv11b", "ga10b", "gb10b", "gpu", "vgpu"};
    if (strcmp(name, "gpu-gpc-0") == 0) {
        return true; /* Thor; other clock domains are gpu-nvd-0, … */
    }
    const char *point = strchr(name, '.');
    const char *core = point != NULL && name[0] >= '0' && name[0] <= '9' ? point + 1 : name;
    size_t len = strcspn(core, ".");
    for (size_t i = 0; i < ARRAY_LEN(cores); i++) {
        if (strlen(cores[i]) == len && memcmp(core, cores[i], len) == 0) {
            return true;
        }
    }
    return false;
}

static bool entry_is_gpu(const char *entry, const char *name) {
    char *node CLEANUP_FREE = source_file_text(entry, "device/of_node/name");
    return jetson_gpu_name_matches(name) || (node != NULL && jetson_gpu_name_matches(node));
}

static void find_devfreq(const char *sysfs, struct jetson_gpu_paths *paths) {
    char *class CLEANUP_FREE = file_path_join(sysfs, "class/devfreq");
    struct entries entries CLEANUP_ENTRIES = {0};
    entries_init(&entries, class, "");
    for (size_t i = 0; i < entries.n_names && paths->devfreq == NULL; i++) {
        char *entry CLEANUP_FREE = file_path_join(class, entries.names[i]);
        if (entry_is_gpu(entry, entries.names[i])) {
            char *device CLEANUP_FREE = file_path_join(entry, "device");
            paths->device = source_file_exists(device, "load") ? TAKE(device) : NULL;
            paths->devfreq = TAKE(entry);
        }
    }
}

static void find_device(const char *sysfs, struct jetson_gpu_paths *paths) {
    for (size_t i = 0; i < ARRAY_LEN(devices) && paths->device == NULL; i++) {
        char *device CLEANUP_FREE = file_path_join(sysfs, devices[i]);
        paths->device = source_file_exists(device, "load") ? TAKE(device) : NULL;
    }
}

/* If the class has no entry, the device's directory may have one. */
static void find_devfreq_of_device(struct jetson_gpu_paths *paths) {
    char *dir CLEANUP_FREE = file_path_join(paths->device, "devfreq");
    struct entries entries CLEANUP_ENTRIES = {0};
    entries_init(&entries, dir, "");
    if (entries.n_names > 0) {
        paths->devfreq = file_path_join(dir, entries.names[0]);
    }
}

int jetson_gpu_find(const char *sysfs, struct jetson_gpu_paths *ret_paths, struct error *err) {
    struct jetson_gpu_paths paths CLEANUP_JETSON_GPU_PATHS = {0};
    find_devfreq(sysfs, &paths);
    if (paths.device == NULL) {
        find_device(sysfs, &paths);
    }
    if (paths.devfreq == NULL && paths.device != NULL) {
        find_devfreq_of_device(&paths);
    }
    if (paths.device == NULL && paths.devfreq == NULL) {
        return error_set(err, -ENODEV, "%s: no integrated GPU", sysfs);
    }
    *ret_paths = paths;
    paths = (struct jetson_gpu_paths){0};
    return 0;
}

void jetson_gpu_paths_finish(struct jetson_gpu_paths *paths) {
    free(paths->device);
    free(paths->devfreq);
    *paths = (struct jetson_gpu_paths){0};
}

static const struct tegra_soc socs[] = {
    {"tegra124", "GK20A", false, false},  {"tegra186", "NVIDIA Tegra X2", false, false},
    {"tegra194", "Xavier", false, false}, {"tegra210", "NVIDIA Tegra X1", false, false},
    {"tegra234", "Orin", true, false},    {"tegra264", "NVIDIA Thor", true, true},
};

/* A later chip: its GPU has no file for its load. */
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
    char *first CLEANUP_FREE = file_path_join(proc, name);
    char *second CLEANUP_FREE = file_path_join(sys, name);
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

/* Boards without a serial number have zeros or nothing. */
static bool is_serial(const char *serial) {
    return serial[strspn(serial, "0 \n")] != '\0';
}

void tegra_gpu_uuid(const char *serial, struct buf *out) {
    struct buf text CLEANUP_BUF = {0};
    buf_add(&text, serial, strcspn(serial, "\n"));
    if (is_serial(serial)) {
        buf_add_str(out, "IGPU-");
        hash_uuid("waap gpu uuid", buf_str(&text), out);
    }
}
