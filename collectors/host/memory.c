#include "collectors/host/parse.h"

#include <stdlib.h>
#include <string.h>

#include "collectors/host/part.h"
#include "collectors/source/procfs.h"
#include "collectors/source/rows.h"

#define BYTES(field, help)                                                                         \
    { "node_memory_" field "_bytes", help, METRIC_GAUGE, "bytes" }
#define COUNT(field, help)                                                                         \
    { "node_memory_" field, help, METRIC_GAUGE }

/* The fields of /proc/meminfo up to Linux 6.18, and those of the Jetson's kernel. One that is not
 * listed is exported all the same, with a plainer help text. */
const struct metric_desc host_memory_metrics[] = {
    BYTES("Active", "Memory used recently, kept if possible."),
    BYTES("Active_anon", "Anonymous memory used recently."),
    BYTES("Active_file", "Page cache used recently."),
    BYTES("AnonHugePages", "Anonymous memory in transparent huge pages."),
    BYTES("AnonPages", "Anonymous memory mapped by processes."),
    BYTES("Balloon", "Memory that a balloon driver has given back to the hypervisor."),
    BYTES("Bounce", "Memory of bounce buffers for block devices."),
    BYTES("Buffers", "Cache of raw block devices."),
    BYTES("Cached", "Page cache, without swap cache."),
    BYTES("CmaFree", "Free part of the contiguous memory area."),
    BYTES("CmaTotal", "Size of the contiguous memory area."),
    BYTES("CommitLimit", "Memory that may be promised while overcommit is strict."),
    BYTES("Committed_AS", "Memory promised to processes."),
    BYTES("DirectMap1G", "Kernel memory mapped by pages of 1 GiB."),
    BYTES("DirectMap2M", "Kernel memory mapped by pages of 2 MiB."),
    BYTES("DirectMap4M", "Kernel memory mapped by pages of 4 MiB."),
    BYTES("DirectMap4k", "Kernel memory mapped by pages of 4 KiB."),
    BYTES("Dirty", "Memory waiting to be written to disk."),
    BYTES("EarlyMemtestBad", "Memory found faulty by the test at boot."),
    BYTES("FileHugePages", "Page cache in huge pages."),
    BYTES("FilePmdMapped", "Page cache mapped into processes by huge pages."),
    BYTES("GPUActive", "Memory that graphics drivers use."),
    BYTES("GPUReclaim", "Memory that graphics drivers keep and could give back."),
    BYTES("HardwareCorrupted", "Memory given up as faulty."),
    BYTES("HighFree", "Free memory that the kernel does not map permanently."),
    BYTES("HighTotal", "Memory that the kernel does not map permanently."),
    COUNT("HugePages_Free", "Huge pages of the pool that are free."),
    COUNT("HugePages_Rsvd", "Huge pages promised but not yet used."),
    COUNT("HugePages_Surp", "Huge pages beyond the size of the pool."),
    COUNT("HugePages_Total", "Huge pages in the pool."),
    BYTES("Hugepagesize", "Default size of a huge page."),
    BYTES("Hugetlb", "Memory in huge pages of all sizes."),
    BYTES("Inactive", "Memory not used recently, first to be reclaimed."),
    BYTES("Inactive_anon", "Anonymous memory not used recently."),
    BYTES("Inactive_file", "Page cache not used recently."),
    BYTES("KReclaimable", "Kernel memory that can be reclaimed under pressure."),
    BYTES("KernelStack", "Stacks of tasks in the kernel."),
    BYTES("LowFree", "Free memory that the kernel maps permanently."),
    BYTES("LowTotal", "Memory that the kernel maps permanently."),
    BYTES("Mapped", "Page cache mapped by processes."),
    BYTES("MemAvailable", "Estimate of what can be allocated without swapping."),
    BYTES("MemFree", "Memory that is not used at all."),
    BYTES("MemTotal", "Usable memory of the machine."),
    BYTES("Mlocked", "Memory locked by mlock."),
    BYTES("NFS_Unstable", "Pages sent to an NFS server and not yet on its disk."),
    BYTES("NvMapMemFree", "Free memory of the Tegra carveout allocator."),
    BYTES("NvMapMemUsed", "Memory held by the Tegra allocator."),
    BYTES("PageTables", "Page tables of processes."),
    BYTES("Percpu", "Memory of per-CPU allocations."),
    BYTES("SReclaimable", "Slab that can be reclaimed, such as caches."),
    BYTES("SUnreclaim", "Slab that cannot be reclaimed."),
    BYTES("SecPageTables", "Secondary page tables, such as those of virtual machines."),
    BYTES("Shmem", "Shared memory and tmpfs."),
    BYTES("ShmemHugePages", "Shared memory and tmpfs in huge pages."),
    BYTES("ShmemPmdMapped", "Shared memory mapped into processes by huge pages."),
    BYTES("Slab", "Kernel's slab allocator."),
    BYTES("SwapCached", "Swapped memory that is also in memory."),
    BYTES("SwapFree", "Unused swap space."),
    BYTES("SwapTotal", "Size of the swap space."),
    BYTES("Unaccepted", "Memory that a confidential guest has not accepted yet."),
    BYTES("Unevictable", "Memory that cannot be reclaimed."),
    BYTES("VmallocChunk", "Largest free run of vmalloc space."),
    BYTES("VmallocTotal", "Size of the vmalloc space."),
    BYTES("VmallocUsed", "Used part of the vmalloc space."),
    BYTES("Writeback", "Memory being written to disk."),
    BYTES("WritebackTmp", "Temporary buffers of FUSE for writing back."),
    BYTES("Zswap", "Memory that compressed swap occupies."),
    BYTES("Zswapped", "Anonymous memory held in compressed swap, before compression."),
    {0},
};

/* One field of meminfo as seen at run time, with its metric. */
struct memory_row {
    struct row row;                   /* its key */
    const struct metric_desc *metric; /* of host_memory_metrics, or &own */
    struct metric_desc own;           /* of a field that is not listed above */
};

void host_memory_name(struct buf *out, struct scan_word key, bool kilobytes) {
    buf_add_str(out, "node_memory_");
    for (size_t i = 0; i < key.len; i++) {
        char c = key.text[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (c != ')') {
            buf_add_char(out, plain ? c : '_');
        }
    }
    buf_add_str(out, kilobytes ? "_bytes" : "");
}

static void finish_row(void *state) {
    struct memory_row *row = state;
    free((char *)row->own.name);
    free((char *)row->own.help);
}

static const struct metric_desc *known(const char *name) {
    const struct metric_desc *metric = host_memory_metrics;
    while (metric->name != NULL && strcmp(metric->name, name) != 0) {
        metric++;
    }
    return metric->name != NULL ? metric : NULL;
}

static void name_row(struct memory_row *row, const struct meminfo_line *line) {
    struct buf name CLEANUP_BUF = {0};
    struct buf help CLEANUP_BUF = {0};
    host_memory_name(&name, line->key, line->kilobytes);
    row->metric = known(buf_str(&name));
    if (row->metric == NULL) {
        buf_printf(&help, "The field %s of /proc/meminfo.", row->row.key);
        row->own = (struct metric_desc){
            .name = buf_take(&name),
            .help = buf_take(&help),
            .type = METRIC_GAUGE,
            .unit = line->kilobytes ? "bytes" : NULL,
        };
        row->metric = &row->own;
    }
}

static int memory_line(void *context, size_t number, const char *text) {
    (void)number;
    const struct host_reading *reading = context;
    struct meminfo_line line;
    int r = meminfo_parse(text, &line);
    if (r < 0) {
        return r;
    }
    struct memory_row *row = rows_see(reading->state, line.key);
    if (row->row.is_new) {
        name_row(row, &line);
    }
    double value = (double)line.value;
    snapshot_add(reading->out, row->metric, NULL, line.kilobytes ? value * 1024 : value);
    return 0;
}

static void memory_open(void *state, const struct collector_env *env) {
    (void)env;
    *(struct rows *)state = (struct rows){sizeof(struct memory_row), finish_row};
}

static void memory_close(void *state) {
    rows_finish(state);
}

const struct host_part host_memory_part = {
    .state_size = sizeof(struct rows),
    .files = (const char *const[]){"meminfo", NULL},
    .line = memory_line,
    .open = memory_open,
    .close = memory_close,
};
