#pragma once

#include <stdbool.h>

#include "exporter/core/scan.h"

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

/* A mount point without the kernel's escapes; the caller frees it. NULL when memory is out. */
char *host_mount_unescape(struct scan_word word);

/* A path as the host sees it, when `rootfs` is where we see the host's "/". */
const char *host_mount_strip(const char *path, const char *rootfs);
