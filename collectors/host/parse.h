#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "collectors/source/procfs.h"
#include "exporter/core/buf.h"
#include "exporter/core/scan.h"

/* The texts that the parts read, without the files. */

/* ---- memory ---- */

/* Appends node_exporter's name for a key: "node_memory_Active_anon_bytes". */
void host_memory_name(struct buf *out, struct scan_word key, bool kilobytes);

/* ---- load ---- */

enum { HOST_LOAD_FIELDS = 3 };

/* "0.08 0.04 0.01 2/95 6904": the loads of one, five and fifteen minutes; 0 or -EINVAL. */
int host_load_parse(const char *text, double ret_loads[static HOST_LOAD_FIELDS]);

/* ---- thermal ---- */

/* "45500\n", thousandths of a degree, below zero too; 0 or -EINVAL. */
int host_thermal_parse(const char *text, double *ret_celsius);

/* ---- CPUs ---- */

/* Takes over newer readings. The kernel's idle and iowait counters now and then step back by a few
 * ticks, which Prometheus would take for a restart: such a counter stays where it is. A CPU whose
 * idle time falls by three seconds was unplugged and plugged in again: it starts afresh. */
void host_cpu_follow(struct cpu_stat_line *kept, const struct cpu_stat_line *seen,
                     uint64_t ticks_per_second);

/* ---- what the node is ---- */

/* Appends what os-release says under a key, without quotes: "Debian GNU/Linux" for NAME. False
 * where it says nothing. */
bool host_os_release_find(const char *text, const char *key, struct buf *out);

/* Appends what /proc/cpuinfo says of the first CPU under a key: "model name". False where it says
 * nothing. */
bool host_cpuinfo_find(const char *text, const char *key, struct buf *out);

/* Whether a text has a word, between blanks: one of the flags in /proc/cpuinfo. */
bool host_has_word(const char *text, const char *word);

/* How many CPUs a list of them has: "0-3,5"; 0 where it is none. */
unsigned host_count_cpus(const char *list);

/* Appends what a board is called: its model without "Developer Kit". */
void host_device_name(const char *model, struct buf *out);

/* ---- the mount table ---- */

/* One line of /proc/mounts, as the kernel wrote it. */
struct host_mount_line {
    struct scan_word key; /* the first three together, as they stand */
    struct scan_word device;
    struct scan_word mount_point; /* escaped: "\040" for a blank */
    struct scan_word type;
    bool read_only;
};

/* "/dev/vda / ext4 rw,relatime 0 0"; 0 or -EINVAL. */
int host_mount_parse(const char *line, struct host_mount_line *ret_line);

/* A mount point without the kernel's escapes; the caller frees it. */
char *host_mount_unescape(struct scan_word word);

/* A path as the host sees it, when `rootfs` is where we see the host's "/". */
const char *host_mount_strip(const char *path, const char *rootfs);
