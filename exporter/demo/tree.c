#include "exporter/demo/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/core/file.h"
#include "exporter/core/memory.h"
#include "exporter/demo/container.h"

/* ---- the directory ---- */

enum { DIR_MAX_TRIES = 10, DIR_MAX_OPEN = 16 };

static const char dir_prefix[] = "waap-demo-";

static int remove_one(const char *path, const struct stat *stat, int kind, struct FTW *place) {
    (void)stat;
    (void)kind;
    (void)place;
    remove(path);
    return 0;
}

static void remove_all(const char *path) {
    nftw(path, remove_one, DIR_MAX_OPEN, FTW_DEPTH | FTW_MOUNT | FTW_PHYS);
}

static int open_dir(const char *path) {
    return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static void remove_if_stale(const char *path) {
    int fd CLEANUP_CLOSE = open_dir(path);
    struct stat stat;
    bool ours = fd >= 0 && fstat(fd, &stat) == 0 && stat.st_uid == geteuid();
    if (ours && flock(fd, LOCK_EX | LOCK_NB) == 0) {
        remove_all(path);
    }
}

static void remove_stale(const char *parent) {
    DIR *list = opendir(parent);
    if (list == NULL) {
        return;
    }
    for (struct dirent *entry = readdir(list); entry != NULL; entry = readdir(list)) {
        if (strncmp(entry->d_name, dir_prefix, strlen(dir_prefix)) == 0) {
            char *path CLEANUP_FREE = file_path_join(parent, entry->d_name);
            remove_if_stale(path);
        }
    }
    closedir(list);
}

/* Before we locked the directory, another process may have removed it as stale. */
static bool is_still_there(const struct demo_dir *dir) {
    struct stat ours, there;
    return fstat(dir->fd, &ours) == 0 && stat(dir->path, &there) == 0 &&
           ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
}

static int make_dir(struct demo_dir *dir, const char *parent, struct error *err) {
    for (int i = 0; i < DIR_MAX_TRIES; i++) {
        struct buf path CLEANUP_BUF = {0};
        buf_printf(&path, "%s/%sXXXXXX", parent, dir_prefix);
        if (mkdtemp(path.data) == NULL) {
            return error_set(err, -errno, "create a directory in %s: %m", parent);
        }
        *dir = (struct demo_dir){.path = buf_take(&path)};
        dir->fd = open_dir(dir->path);
        if (dir->fd >= 0 && flock(dir->fd, LOCK_EX) == 0 && is_still_there(dir)) {
            return 0;
        }
        demo_dir_finish(dir);
    }
    return error_set(err, -EBUSY, "create a directory in %s: cannot lock it", parent);
}

int demo_dir_init(struct demo_dir *dir, const char *const *parents, struct error *err) {
    int r = error_set(err, -ENOENT, "no place for a directory");
    for (; *parents != NULL && r < 0; parents++) {
        remove_stale(*parents);
        r = make_dir(dir, *parents, err);
    }
    return r;
}

void demo_dir_finish(struct demo_dir *dir) {
    if (dir->path == NULL) {
        return;
    }
    remove_all(dir->path);
    free(TAKE(dir->path));
    if (dir->fd >= 0) {
        close(TAKE_FD(dir->fd));
    }
}

/* ---- texts that change ---- */

/* Units of the kernel. */
static const double ticks_per_second = 100;
static const double bytes_per_sector = 512;

static long long kib(double bytes) {
    return llround(bytes / 1024);
}

/* In the order of the kernel; -1: always 0. */
static void write_cpu(struct buf *out, const double seconds[static DEMO_CPU_N_MODES]) {
    static const int order[] = {
        DEMO_CPU_USER,
        -1,
        DEMO_CPU_SYSTEM,
        DEMO_CPU_IDLE,
        DEMO_CPU_IOWAIT,
        -1 /* irq */,
        DEMO_CPU_SOFTIRQ,
        -1,
        -1,
        -1,
    };
    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        long long ticks = order[i] >= 0 ? (long long)(seconds[order[i]] * ticks_per_second) : 0;
        buf_printf(out, " %10lld", ticks);
    }
    buf_add_char(out, '\n');
}

static void write_stat(const struct demo_model *model, struct buf *out) {
    double sums[DEMO_CPU_N_MODES] = {0};
    double running = 0;
    for (size_t cpu = 0; cpu < DEMO_N_CPUS; cpu++) {
        running += model->cpu_load[cpu];
        for (size_t mode = 0; mode < DEMO_CPU_N_MODES; mode++) {
            sums[mode] += model->cpu_seconds[cpu][mode];
        }
    }
    buf_add_str(out, "cpu ");
    write_cpu(out, sums);
    for (size_t cpu = 0; cpu < DEMO_N_CPUS; cpu++) {
        buf_printf(out, "cpu%zu", cpu);
        write_cpu(out, model->cpu_seconds[cpu]);
    }
    buf_printf(out, "intr %15lld\nctxt %15lld\nbtime %10lld\nprocesses %10lld\n",
               llround(model->interrupts), llround(model->switches), llround(model->boot_seconds),
               llround(model->forks));
    buf_printf(out, "procs_running %3lld\nprocs_blocked %3d\n", 1 + llround(running), 0);
}

static void write_meminfo(const struct demo_model *model, struct buf *out) {
    double buffers = 98 * 1024.0 * 1024;
    double free =
        model->memory_total_bytes - model->memory_used_bytes - model->memory_cached_bytes - buffers;
    double anonymous = model->memory_used_bytes - model->memory_gpu_bytes;
    double swap = 3493836 * 1024.0;
    const struct {
        const char *key;
        double bytes;
    } rows[] = {
        {"MemTotal:", model->memory_total_bytes},
        {"MemFree:", free},
        {"MemAvailable:", free + 0.9 * model->memory_cached_bytes},
        {"Buffers:", buffers},
        {"Cached:", model->memory_cached_bytes},
        {"SwapCached:", 0},
        {"Active:", 0.6 * anonymous + 0.5 * model->memory_cached_bytes},
        {"Inactive:", 0.3 * anonymous + 0.5 * model->memory_cached_bytes},
        {"SwapTotal:", swap},
        {"SwapFree:", swap},
        {"Dirty:", 1024 * 1024 * (0.2 + 4 * model->demand)},
        {"AnonPages:", 0.9 * anonymous},
        {"Slab:", 142 * 1024.0 * 1024},
        {"NvMapMemFree:", 0},
        {"NvMapMemUsed:", model->memory_gpu_bytes},
    };
    size_t n_of_jetson = 2; /* the last rows */
    size_t n = ARRAY_LEN(rows) - (model->board == DEMO_BOARD_XAVIER_NX ? 0 : n_of_jetson);
    for (size_t i = 0; i < n; i++) {
        buf_printf(out, "%-15s %10lld kB\n", rows[i].key, kib(rows[i].bytes));
    }
}

/* Free blocks of 4 KiB, 8 KiB, …; only the number of the largest changes. */
static void write_buddyinfo(const struct demo_model *model, struct buf *out) {
    double free = model->memory_total_bytes - model->memory_used_bytes - model->memory_cached_bytes;
    buf_add_str(out, "Node 0, zone   Normal   1204   1021    877    403    201    110     54"
                     "     20     11      4");
    buf_printf(out, " %6lld\n", llround(0.8 * free / (4 << 20)));
}

static void write_loadavg(const struct demo_model *model, struct buf *out) {
    const double *loads = model->load_averages;
    buf_printf(out, "%.2f %.2f %.2f 2/412 %7lld\n", loads[0], loads[1], loads[2],
               llround(model->forks));
}

static void write_disk(const struct demo_model *model, struct buf *out) {
    const struct demo_traffic *read = &model->read, *written = &model->written;
    double read_ms = 0.8 * read->operations, write_ms = 3 * written->operations;
    buf_printf(out, " 179       0 mmcblk0 %10lld 0 %12lld %10lld %10lld 0 %12lld %10lld 0",
               llround(read->operations), llround(read->bytes / bytes_per_sector), llround(read_ms),
               llround(written->operations), llround(written->bytes / bytes_per_sector),
               llround(write_ms));
    buf_printf(out, " %10lld %10lld\n", llround(0.7 * (read_ms + write_ms)),
               llround(read_ms + write_ms));
}

static void write_device(struct buf *out, const char *name, const struct demo_traffic *received,
                         const struct demo_traffic *sent) {
    buf_printf(out, "%6s: %14lld %12lld 0 0 0 0 0 0 %14lld %12lld 0 0 0 0 0 0\n", name,
               llround(received->bytes), llround(received->operations), llround(sent->bytes),
               llround(sent->operations));
}

static void write_network(const struct demo_model *model, struct buf *out) {
    /* Local traffic is about as much as sent to others. */
    const struct demo_traffic *loopback = &model->sent;
    buf_add_str(out,
                "Inter-|   Receive                                                |  Transmit\n"
                " face |bytes    packets errs drop fifo frame compressed multicast"
                "|bytes    packets errs drop fifo colls carrier compressed\n");
    write_device(out, "lo", loopback, loopback);
    write_device(out, "eth0", &model->received, &model->sent);
}

static void write_cpu_pressure(const struct demo_model *model, struct buf *out) {
    demo_write_pressure(out, "some", model->cpu_waiting_seconds);
}

static void write_io_pressure(const struct demo_model *model, struct buf *out) {
    demo_write_pressure(out, "some", model->io_waiting_seconds);
    demo_write_pressure(out, "full", 0.4 * model->io_waiting_seconds);
}

static void write_clients(const struct demo_model *model, struct buf *out) {
    static const char row[] = "%-18s %18s %8d %10lldK\n";
    double decoder = 96 * 1024.0 * 1024;
    buf_printf(out, "%-18s %18s %8s %11s\n", "CLIENT", "PROCESS", "PID", "SIZE");
    buf_printf(out, row, "user", "camera-decoder", 2108, kib(decoder));
    buf_printf(out, row, "user", "object-detector", 2214, kib(model->memory_gpu_bytes - decoder));
    buf_printf(out, "%-18s %18s %8s %10lldK\n", "total", "", "", kib(model->memory_gpu_bytes));
}

const struct demo_text demo_texts[] = {
    {"proc/1/net/dev", write_network},
    {"proc/buddyinfo", write_buddyinfo},
    {"proc/diskstats", write_disk},
    {"proc/loadavg", write_loadavg},
    {"proc/meminfo", write_meminfo},
    {"proc/pressure/cpu", write_cpu_pressure},
    {"proc/pressure/io", write_io_pressure},
    {"proc/stat", write_stat},
    {"sys/kernel/debug/nvmap/iovmm/clients", write_clients},
    {0},
};

/* ---- other files ---- */

#define GPU "sys/devices/17000000.gv11b/"
#define GPU_CLOCK "sys/class/devfreq/17000000.gv11b/"
#define CPU "sys/devices/system/cpu/cpu#/"
#define MONITOR "sys/class/hwmon/hwmon3/"
#define ZONE "sys/class/thermal/thermal_zone"
#define CLOCKS "sys/kernel/debug/clk/"
#define EMC "sys/kernel/debug/bpmp/debug/clk/emc/"
#define TEXT(text) text, sizeof(text) - 1 /* texts of the device tree end in NUL */

/* Constant files. In these paths '#' is a number, counted from `first`. */
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

/* Files with one number of the model, in the unit of the kernel. */
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

/* Paths that only a Jetson has. */
static const char *const jetson_paths[] = {
    "etc/nv",           "proc/device-tree/",  "sys/class/devfreq/",
    "sys/class/hwmon/", "sys/class/thermal/", "sys/devices/17000000.gv11b/",
    "sys/kernel/",      "var/lib/nvpmodel/",
};

/* A file that changes: a text, a number, or else a file of a container. */
struct live {
    int fd;
    struct buf content;
    const struct demo_text *text;
    const struct number *number;
    size_t index; /* of the number in its row, or of the container's file */
};

struct demo_tree {
    const char *path;
    int dirfd;
    struct live *files;
    size_t n_files, cap_files;
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

static int make_live(struct demo_tree *tree, const char *pattern, unsigned number, struct live live,
                     struct error *err) {
    ARRAY_GROW(&tree->files, &tree->cap_files, tree->n_files + 1);
    struct live *file = &tree->files[tree->n_files++];
    *file = live;
    file->fd = -1;
    return make_file(tree, pattern, number, &file->fd, err);
}

/* The kernel has a link from the number of a disk to its name. */
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
    r = r < 0 ? r : make_disk(tree, err);
    for (const struct demo_text *text = demo_texts; text->path != NULL && r == 0; text++) {
        if (has_file(model, text->path)) {
            r = make_live(tree, text->path, 0, (struct live){.text = text}, err);
        }
    }
    for (size_t i = 0; i < demo_container_n_files() && r == 0; i++) {
        demo_container_path(i, &tree->scratch);
        r = make_live(tree, buf_str(&tree->scratch), 0, (struct live){.index = i}, err);
    }
    for (size_t i = 0; i < ARRAY_LEN(number_files); i++) {
        const struct number *number = &number_files[i];
        bool has = has_file(model, number->path);
        for (unsigned j = 0; has && j < count_of(number->n) && r == 0; j++) {
            struct live live = {.number = number, .index = j};
            r = make_live(tree, number->path, number->first + j, live, err);
        }
    }
    return r;
}

/* ---- updating files ---- */

/* One call per file, so that readers see the old text or the new one. Numbers may become shorter:
 * until the file is truncated, the rest of the old line follows the new one. */
static int change(struct live *file, const struct buf *text, struct error *err) {
    if (text->len == file->content.len &&
        (text->len == 0 || memcmp(text->data, file->content.data, text->len) == 0)) {
        return 0;
    }
    if (pwrite(file->fd, text->data, text->len, 0) != (ssize_t)text->len ||
        (text->len < file->content.len && ftruncate(file->fd, (off_t)text->len) < 0)) {
        return error_set(err, errno != 0 ? -errno : -EIO, "write the simulated files: %m");
    }
    buf_reset(&file->content);
    buf_add(&file->content, text->data, text->len);
    return 0;
}

static void write_content(const struct live *file, const struct demo_model *model,
                          struct buf *out) {
    buf_reset(out);
    if (file->text != NULL) {
        file->text->write(model, out);
    } else if (file->number != NULL) {
        const char *values = (const char *)model + file->number->offset;
        double value = ((const double *)(const void *)values)[file->index];
        buf_printf(out, "%lld\n", llround(value * file->number->scale));
    } else {
        demo_container_write(file->index, model, out);
    }
}

int demo_tree_update(struct demo_tree *tree, const struct demo_model *model, struct error *err) {
    int r = 0;
    for (size_t i = 0; i < tree->n_files && r == 0; i++) {
        write_content(&tree->files[i], model, &tree->scratch);
        r = change(&tree->files[i], &tree->scratch, err);
    }
    return r;
}

int demo_tree_create(const char *path, const struct demo_model *model, struct demo_tree **ret_tree,
                     struct error *err) {
    struct demo_tree *tree = mem_zalloc(1, sizeof(*tree));
    tree->path = path;
    tree->dirfd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int r = tree->dirfd >= 0 ? 0 : error_set(err, -errno, "open %s: %m", path);
    r = r < 0 ? r : make_all(tree, model, err);
    r = r < 0 ? r : demo_tree_update(tree, model, err);
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
        buf_finish(&tree->files[i].content);
    }
    if (tree->dirfd >= 0) {
        close(tree->dirfd);
    }
    free(tree->files);
    buf_finish(&tree->scratch);
    free(tree);
}
