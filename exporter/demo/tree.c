#include "exporter/demo/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/core/cleanup.h"
#include "exporter/demo/container.h"
#include "exporter/demo/text.h"

#define GPU "sys/devices/17000000.gv11b/"
#define GPU_CLOCK "sys/class/devfreq/17000000.gv11b/"
#define CPU "sys/devices/system/cpu/cpu#/"
#define MONITOR "sys/class/hwmon/hwmon3/"
#define ZONE "sys/class/thermal/thermal_zone"
#define CLOCKS "sys/kernel/debug/clk/"
#define EMC "sys/kernel/debug/bpmp/debug/clk/emc/"
#define TEXT(text)                                                                                 \
    text, sizeof(text) - 1 /* may hold NULs, as the device tree's texts end in one                 \
                            */

/* Files that never change. In paths here and below '#' is a number, counted from `first`. */
static const struct fixed {
    const char *path;
    const char *text;
    size_t len;
    unsigned first, n;
} fixed_files[] = {
    {"etc/nv_tegra_release", TEXT("# R35 (release), REVISION: 4.1, GCID: 33958178, BOARD: t186ref,"
                                  " EABI: aarch64, DATE: Tue Aug  1 19:57:35 UTC 2023\n")},
    {"etc/nvpmodel.conf", TEXT("< POWER_MODEL ID=2 NAME=MODE_15W_6CORE >\n"
                               "< POWER_MODEL ID=8 NAME=MODE_20W_6CORE >\n"
                               "< PM_CONFIG DEFAULT=2 >\n")},
    {"proc/1/ns/net", TEXT("")},
    {"proc/2108/cgroup", TEXT("0::/system.slice/camera-decoder.service\n")},
    {"proc/2214/comm", TEXT("object-detector\n")},
    {"proc/3187/cgroup", TEXT("0::/system.slice/batch-job.service\n")},
    {"proc/3187/comm", TEXT("batch-job\n")},
    {"sys/fs/cgroup/cgroup.controllers", TEXT("cpu io memory pids\n")},
    {"proc/1/mounts", TEXT("/dev/mmcblk0p1 / ext4 rw,relatime 0 0\n")},
    {"proc/device-tree/compatible", TEXT("nvidia,p3509-0000+p3668-0000\0nvidia,tegra194\0")},
    {"proc/device-tree/model", TEXT("NVIDIA Jetson Xavier NX Developer Kit\0")},
    {"proc/device-tree/serial-number", TEXT("1420000000000\0")},
    {"proc/pressure/memory", TEXT("some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
                                  "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n")},
    {GPU "power/autosuspend_delay_ms", TEXT("500\n")},
    {GPU "power/runtime_status", TEXT("active\n")},
    {GPU_CLOCK "max_freq", TEXT("1109250000\n")},
    {GPU_CLOCK "min_freq", TEXT("114750000\n")},
    {CPU "online", TEXT("1\n"), 0, DEMO_N_CPUS},
    {CPU "cpufreq/scaling_max_freq", TEXT("1420800\n"), 0, DEMO_N_CPUS},
    {CPU "cpufreq/scaling_min_freq", TEXT("1190400\n"), 0, DEMO_N_CPUS},
    {"sys/class/hwmon/hwmon1/name", TEXT("pwm_tach\n")},
    {"sys/class/hwmon/hwmon2/name", TEXT("pwmfan\n")},
    {MONITOR "in1_label", TEXT("VDD_IN\n")},
    {MONITOR "in2_label", TEXT("VDD_CPU_GPU_CV\n")},
    {MONITOR "in3_label", TEXT("VDD_SOC\n")},
    {MONITOR "name", TEXT("ina3221\n")},
    {"sys/class/hwmon/hwmon4/name", TEXT("soctherm_oc\n")},
    {"sys/class/hwmon/hwmon4/oc#_event_cnt", TEXT("0\n"), 1, 2},
    {"sys/class/thermal/cooling_device0/cur_state", TEXT("0\n")},
    {"sys/class/thermal/cooling_device0/type", TEXT("cpu-throttle-alert\n")},
    {"sys/class/thermal/cooling_device1/cur_state", TEXT("0\n")},
    {"sys/class/thermal/cooling_device1/type", TEXT("gpu-throttle-alert\n")},
    {ZONE "0/trip_point_0_temp", TEXT("95000\n")},
    {ZONE "0/trip_point_0_type", TEXT("passive\n")},
    {ZONE "0/type", TEXT("CPU-therm\n")},
    {ZONE "1/trip_point_0_temp", TEXT("95000\n")},
    {ZONE "1/trip_point_0_type", TEXT("passive\n")},
    {ZONE "1/type", TEXT("GPU-therm\n")},
    {ZONE "2/type", TEXT("AUX-therm\n")},
    {ZONE "3/type", TEXT("AO-therm\n")},
    {ZONE "4/temp", TEXT("50000\n")},
    {ZONE "4/type", TEXT("PMIC-Die\n")},
    {EMC "max_rate", TEXT("1866000000\n")},
    {EMC "min_rate", TEXT("204000000\n")},
    {EMC "rate", TEXT("1600000000\n")},
    {CLOCKS "nvdec/clk_enable_count", TEXT("1\n")},
    {CLOCKS "nvdec/clk_rate", TEXT("793600000\n")},
    {CLOCKS "nvenc/clk_enable_count", TEXT("0\n")},
    {CLOCKS "nvenc/clk_rate", TEXT("601600000\n")},
    {CLOCKS "vic/clk_enable_count", TEXT("1\n")},
    {CLOCKS "vic/clk_rate", TEXT("601600000\n")},
    {"var/lib/nvpmodel/status", TEXT("pmode:0008\n")},
};

/* Files that hold a number of the model, in the kernel's unit. */
static const struct number {
    const char *path;
    size_t offset; /* of a double in struct demo_model; the next number is the next double */
    double scale;
    unsigned first, n;
} number_files[] = {
    {CPU "cpufreq/scaling_cur_freq", offsetof(struct demo_model, cpu_hertz), 1e-3, 0, DEMO_N_CPUS},
    {GPU "load", offsetof(struct demo_model, gpu_load), 1000},
    {GPU_CLOCK "cur_freq", offsetof(struct demo_model, gpu_hertz), 1},
    {"sys/class/hwmon/hwmon1/rpm", offsetof(struct demo_model, fan_rpm), 1},
    {"sys/class/hwmon/hwmon2/pwm1", offsetof(struct demo_model, fan_duty), 255},
    {MONITOR "curr#_input", offsetof(struct demo_model, rail_amperes), 1000, 1, DEMO_N_RAILS},
    {MONITOR "in#_input", offsetof(struct demo_model, rail_volts), 1000, 1, DEMO_N_RAILS},
    {ZONE "#/temp", offsetof(struct demo_model, zone_celsius), 1000, 0, DEMO_N_ZONES},
    /* Percent of the clock in kilohertz. */
    {"sys/kernel/actmon_avg_activity/mc_all", offsetof(struct demo_model, emc_load), 100 * 1.6e6},
    {"sys/kernel/debug/vic/actmon_avg_norm", offsetof(struct demo_model, vic_load), 1000},
};

/* What begins so is a Jetson's alone. */
static const char *const jetson_paths[] = {
    "etc/nv",           "proc/device-tree/",  "sys/class/devfreq/",
    "sys/class/hwmon/", "sys/class/thermal/", "sys/devices/17000000.gv11b/",
    "sys/kernel/",      "var/lib/nvpmodel/",
};

/* A file that changes. */
struct live {
    int fd;
    struct buf text; /* what it holds */
};

struct demo_tree {
    const char *path;
    int dirfd;
    double boot_seconds;
    struct live *files; /* texts, containers, numbers, in the order of the tables */
    size_t n_files;
    struct buf scratch;
};

static bool has_file(const struct demo_model *model, const char *path) {
    for (size_t i = 0; i < ARRAY_LEN(jetson_paths); i++) {
        if (strncmp(path, jetson_paths[i], strlen(jetson_paths[i])) == 0) {
            return model->board == DEMO_BOARD_XAVIER_NX;
        }
    }
    return true;
}

static unsigned count_of(unsigned n) {
    return n > 0 ? n : 1;
}

static void add_path(struct buf *out, const char *pattern, unsigned number) {
    buf_reset(out);
    for (const char *c = pattern; *c != '\0'; c++) {
        if (*c == '#') {
            buf_printf(out, "%u", number);
        } else {
            buf_add_char(out, *c);
        }
    }
}

/* ---- making files ---- */

static int make_parents(const struct demo_tree *tree, char *path, struct error *err) {
    for (char *c = path; *c != '\0'; c++) {
        if (*c != '/') {
            continue;
        }
        *c = '\0';
        int code = mkdirat(tree->dirfd, path, 0700) < 0 && errno != EEXIST ? errno : 0;
        if (code != 0) {
            return error_set(err, -code, "mkdir %s/%s: %m", tree->path, path);
        }
        *c = '/';
    }
    return 0;
}

static int make_file(struct demo_tree *tree, const char *pattern, unsigned number, int *ret_fd,
                     struct error *err) {
    struct buf path CLEANUP_BUF = {0};
    add_path(&path, pattern, number);
    if (path.failed) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    int r = make_parents(tree, path.data, err);
    if (r < 0) {
        return r;
    }
    int fd = openat(tree->dirfd, path.data, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        return error_set(err, -errno, "open %s/%s: %m", tree->path, path.data);
    }
    *ret_fd = fd;
    return 0;
}

static int make_fixed(struct demo_tree *tree, const struct fixed *fixed, struct error *err) {
    for (unsigned i = 0; i < count_of(fixed->n); i++) {
        int fd CLEANUP_CLOSE = -1;
        int r = make_file(tree, fixed->path, fixed->first + i, &fd, err);
        if (r < 0) {
            return r;
        }
        if (write(fd, fixed->text, fixed->len) != (ssize_t)fixed->len) {
            return error_set(err, -EIO, "write %s/%s: %m", tree->path, fixed->path);
        }
    }
    return 0;
}

static int make_live(struct demo_tree *tree, const char *pattern, unsigned number,
                     struct error *err) {
    struct live *files = realloc(tree->files, (tree->n_files + 1) * sizeof(*files));
    if (files == NULL) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    tree->files = files;
    files[tree->n_files] = (struct live){.fd = -1};
    return make_file(tree, pattern, number, &files[tree->n_files++].fd, err);
}

/* The kernel names a disk's number by a link to it. */
static int make_disk(struct demo_tree *tree, struct error *err) {
    char path[] = "sys/dev/block/179:0";
    int r = make_parents(tree, path, err);
    if (r == 0 && symlinkat("../../block/mmcblk0", tree->dirfd, path) < 0) {
        r = error_set(err, -errno, "link %s/%s: %m", tree->path, path);
    }
    return r;
}

static int make_all(struct demo_tree *tree, const struct demo_model *model, struct error *err) {
    int r = 0;
    for (size_t i = 0; i < ARRAY_LEN(fixed_files) && r == 0; i++) {
        r = has_file(model, fixed_files[i].path) ? make_fixed(tree, &fixed_files[i], err) : 0;
    }
    if (r == 0) {
        r = make_disk(tree, err);
    }
    for (const struct demo_text *text = demo_texts; text->path != NULL && r == 0; text++) {
        r = has_file(model, text->path) ? make_live(tree, text->path, 0, err) : 0;
    }
    for (size_t i = 0; i < demo_container_n_files() && r == 0; i++) {
        demo_container_path(i, &tree->scratch);
        r = make_live(tree, buf_str(&tree->scratch), 0, err);
    }
    for (size_t i = 0; i < ARRAY_LEN(number_files); i++) {
        bool has = has_file(model, number_files[i].path);
        for (unsigned j = 0; has && j < count_of(number_files[i].n) && r == 0; j++) {
            r = make_live(tree, number_files[i].path, number_files[i].first + j, err);
        }
    }
    return r;
}

/* ---- changing them ---- */

/* One call per file, so that readers see the old text or the new. Numbers may become shorter: until
 * the rest is cut off, what lies behind the end of the line is more of the old number's line. */
static int change(struct live *file, const struct buf *text, struct error *err) {
    if (text->failed) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    if (text->len == file->text.len &&
        (text->len == 0 || memcmp(text->data, file->text.data, text->len) == 0)) {
        return 0;
    }
    if (pwrite(file->fd, text->data, text->len, 0) != (ssize_t)text->len ||
        (text->len < file->text.len && ftruncate(file->fd, (off_t)text->len) < 0)) {
        return error_set(err, errno != 0 ? -errno : -EIO, "write the simulated files: %m");
    }
    buf_reset(&file->text);
    buf_add(&file->text, text->data, text->len);
    return 0;
}

static double number_at(const struct demo_model *model, const struct number *number, unsigned i) {
    const double *values = (const double *)(const void *)((const char *)model + number->offset);
    return values[i] * number->scale;
}

int demo_tree_update(struct demo_tree *tree, const struct demo_model *model, struct error *err) {
    struct live *file = tree->files;
    struct buf *scratch = &tree->scratch;
    int r = 0;
    for (const struct demo_text *text = demo_texts; text->path != NULL && r == 0; text++) {
        if (!has_file(model, text->path)) {
            continue;
        }
        buf_reset(scratch);
        text->write(model, tree->boot_seconds, scratch);
        r = change(file++, scratch, err);
    }
    for (size_t i = 0; i < demo_container_n_files() && r == 0; i++) {
        buf_reset(scratch);
        demo_container_write(i, model, scratch);
        r = change(file++, scratch, err);
    }
    for (size_t i = 0; i < ARRAY_LEN(number_files); i++) {
        bool has = has_file(model, number_files[i].path);
        for (unsigned j = 0; has && j < count_of(number_files[i].n) && r == 0; j++) {
            buf_reset(scratch);
            buf_printf(scratch, "%lld\n", llround(number_at(model, &number_files[i], j)));
            r = change(file++, scratch, err);
        }
    }
    return r;
}

int demo_tree_create(const char *path, double boot_seconds, const struct demo_model *model,
                     struct demo_tree **ret_tree, struct error *err) {
    struct demo_tree *tree = calloc(1, sizeof(*tree));
    if (tree == NULL) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    tree->path = path;
    tree->boot_seconds = boot_seconds;
    tree->dirfd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int r = tree->dirfd >= 0 ? 0 : error_set(err, -errno, "open %s: %m", path);
    if (r == 0) {
        r = make_all(tree, model, err);
    }
    if (r == 0) {
        r = demo_tree_update(tree, model, err);
    }
    if (r < 0) {
        demo_tree_destroy(tree);
        return r;
    }
    *ret_tree = tree;
    return 0;
}

void demo_tree_destroy(struct demo_tree *tree) {
    if (tree == NULL) {
        return;
    }
    for (size_t i = 0; i < tree->n_files; i++) {
        if (tree->files[i].fd >= 0) {
            close(tree->files[i].fd);
        }
        buf_finish(&tree->files[i].text);
    }
    if (tree->dirfd >= 0) {
        close(tree->dirfd);
    }
    free(tree->files);
    buf_finish(&tree->scratch);
    free(tree);
}
