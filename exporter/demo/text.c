#include "exporter/demo/text.h"

#include <math.h>

/* Of the kernel's units. */
static const double ticks_per_second = 100;
static const double bytes_per_sector = 512;

static long long whole(double value) {
    return llround(value);
}

static long long kib(double bytes) {
    return whole(bytes / 1024);
}

/* The modes as the kernel orders them; those without a value here are always 0. */
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

static void write_stat(const struct demo_model *model, double boot_seconds, struct buf *out) {
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
               whole(model->interrupts), whole(model->switches), whole(boot_seconds),
               whole(model->forks));
    buf_printf(out, "procs_running %3lld\nprocs_blocked %3d\n", 1 + whole(running), 0);
}

static void write_meminfo(const struct demo_model *model, double boot_seconds, struct buf *out) {
    (void)boot_seconds;
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
    size_t n_of_jetson = 2; /* the last ones */
    size_t n = ARRAY_LEN(rows) - (model->board == DEMO_BOARD_XAVIER_NX ? 0 : n_of_jetson);
    for (size_t i = 0; i < n; i++) {
        buf_printf(out, "%-15s %10lld kB\n", rows[i].key, kib(rows[i].bytes));
    }
}

/* Free blocks of 4 KiB, 8 KiB, …; the largest take what the smaller ones leave. */
static void write_buddyinfo(const struct demo_model *model, double boot_seconds, struct buf *out) {
    (void)boot_seconds;
    double free = model->memory_total_bytes - model->memory_used_bytes - model->memory_cached_bytes;
    buf_add_str(out, "Node 0, zone   Normal   1204   1021    877    403    201    110     54"
                     "     20     11      4");
    buf_printf(out, " %6lld\n", whole(0.8 * free / (4 << 20)));
}

static void write_loadavg(const struct demo_model *model, double boot_seconds, struct buf *out) {
    (void)boot_seconds;
    const double *loads = model->load_averages;
    buf_printf(out, "%.2f %.2f %.2f 2/412 %7lld\n", loads[0], loads[1], loads[2],
               whole(model->forks));
}

static void write_disk(const struct demo_model *model, double boot_seconds, struct buf *out) {
    (void)boot_seconds;
    const struct demo_traffic *read = &model->read, *written = &model->written;
    double read_ms = 0.8 * read->operations, write_ms = 3 * written->operations;
    buf_printf(out, " 179       0 mmcblk0 %10lld 0 %12lld %10lld %10lld 0 %12lld %10lld 0",
               whole(read->operations), whole(read->bytes / bytes_per_sector), whole(read_ms),
               whole(written->operations), whole(written->bytes / bytes_per_sector),
               whole(write_ms));
    buf_printf(out, " %10lld %10lld\n", whole(0.7 * (read_ms + write_ms)),
               whole(read_ms + write_ms));
}

static void write_device(struct buf *out, const char *name, const struct demo_traffic *received,
                         const struct demo_traffic *sent) {
    buf_printf(out, "%6s: %14lld %12lld 0 0 0 0 0 0 %14lld %12lld 0 0 0 0 0 0\n", name,
               whole(received->bytes), whole(received->operations), whole(sent->bytes),
               whole(sent->operations));
}

static void write_network(const struct demo_model *model, double boot_seconds, struct buf *out) {
    (void)boot_seconds;
    /* The detector and its neighbours talk over the loopback about as much as with the world. */
    const struct demo_traffic *loopback = &model->sent;
    buf_add_str(out,
                "Inter-|   Receive                                                |  Transmit\n"
                " face |bytes    packets errs drop fifo frame compressed multicast"
                "|bytes    packets errs drop fifo colls carrier compressed\n");
    write_device(out, "lo", loopback, loopback);
    write_device(out, "eth0", &model->received, &model->sent);
}

static void write_pressure(struct buf *out, const char *kind, double seconds) {
    buf_printf(out, "%s avg10=0.00 avg60=0.00 avg300=0.00 total=%015lld\n", kind,
               whole(seconds * 1e6));
}

static void write_cpu_pressure(const struct demo_model *model, double boot_seconds,
                               struct buf *out) {
    (void)boot_seconds;
    write_pressure(out, "some", model->cpu_waiting_seconds);
}

static void write_io_pressure(const struct demo_model *model, double boot_seconds,
                              struct buf *out) {
    (void)boot_seconds;
    write_pressure(out, "some", model->io_waiting_seconds);
    write_pressure(out, "full", 0.4 * model->io_waiting_seconds);
}

static void write_clients(const struct demo_model *model, double boot_seconds, struct buf *out) {
    (void)boot_seconds;
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
