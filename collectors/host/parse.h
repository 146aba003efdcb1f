#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "collectors/source/procfs.h"
#include "exporter/core/buf.h"
#include "exporter/core/scan.h"

/* Parsers of the texts that the parts read. */

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

/* Updates `kept`. The kernel's idle and iowait counters sometimes go back by a few ticks, which
 * Prometheus would take for a restart: such a counter keeps its value. A CPU whose idle time goes
 * back by three seconds was unplugged and plugged in again: its counters restart. */
void host_cpu_follow(struct cpu_stat_line *kept, const struct cpu_stat_line *seen,
                     uint64_t ticks_per_second);

/* ---- characterization of the node ---- */

/* Appends the value of a key of os-release, without quotes: "Debian GNU/Linux" for NAME. False if
 * there is none. */
bool host_os_release_find(const char *text, const char *key, struct buf *out);

/* Appends the value of a key ("model name") of the first CPU in /proc/cpuinfo. False if there is
 * none. */
bool host_cpuinfo_find(const char *text, const char *key, struct buf *out);

/* Whether a text contains a word between blanks, such as a flag in /proc/cpuinfo. */
bool host_has_word(const char *text, const char *word);

/* The number of CPUs in a list such as "0-3,5"; 0 if it is malformed. */
unsigned host_count_cpus(const char *list);

/* Appends the model of a board without "Developer Kit". */
void host_device_name(const char *model, struct buf *out);

/* ---- the mount table ---- */

/* One line of /proc/mounts, as the kernel wrote it. */
struct host_mount_line {
    struct scan_word key; /* the first three words together */
    struct scan_word device;
    struct scan_word mount_point; /* escaped: "\040" for a blank */
    struct scan_word type;
    bool read_only;
};

/* "/dev/vda / ext4 rw,relatime 0 0"; 0 or -EINVAL. */
int host_mount_parse(const char *line, struct host_mount_line *ret_line);

/* A mount point without the kernel's escapes; the caller frees it. */
char *host_mount_unescape(struct scan_word word);

/* A path as the host sees it, if the host's "/" is mounted at `rootfs`. */
const char *host_mount_strip(const char *path, const char *rootfs);
