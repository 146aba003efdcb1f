#include "collectors/container/network.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collectors/source/procfs.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/file.h"
#include "exporter/core/memory.h"

enum { MAX_BYTES = 1 << 20, MAX_INTERFACES = 256 };

/* The columns of /proc/net/dev, in the order of the metrics. */
static const size_t columns[] = {0, 1, 2, 3, 8, 9, 10, 11};

struct interface {
    struct row row; /* its name */
    struct labels *labels;
};

static void finish_interface(void *row) {
    struct interface *interface = row;
    labels_destroy(interface->labels);
}

void container_network_init(struct container_network *network) {
    *network = (struct container_network){
        .proc_fd = -1,
        .interfaces = {sizeof(struct interface), finish_interface, MAX_INTERFACES},
    };
}

void container_network_finish(struct container_network *network) {
    rows_finish(&network->interfaces);
    if (network->proc_fd >= 0) {
        close(network->proc_fd);
    }
    container_network_init(network);
}

/* If the process is gone, its directory is empty. */
bool container_network_alive(const struct container_network *network) {
    return network->proc_fd >= 0 && faccessat(network->proc_fd, "stat", F_OK, 0) == 0;
}

/* Every network namespace has its own files under net/, so that their inode identifies it; unlike
 * ns/net, any user may read it. */
static uint64_t namespace_of(int dirfd, const char *path) {
    struct stat stat;
    return fstatat(dirfd, path, &stat, 0) == 0 ? stat.st_ino : 0;
}

void container_network_enter(struct container_network *network, const char *procfs, pid_t pid) {
    if (network->proc_fd >= 0) {
        close(TAKE_FD(network->proc_fd));
    }
    network->namespace = 0;
    char number[16];
    snprintf(number, sizeof(number), "%d", (int)pid);
    char *path CLEANUP_FREE = file_path_join(procfs, number);
    if (pid > 0) {
        network->proc_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    }
    if (network->proc_fd >= 0) {
        network->namespace = namespace_of(network->proc_fd, "net/dev");
    }
}

uint64_t container_network_host(const char *procfs) {
    char *path CLEANUP_FREE = file_path_join(procfs, "1/net/dev");
    return namespace_of(AT_FDCWD, path);
}

static bool skipped(struct scan_word name) {
    static const char *const prefixes[] = {"lo", "veth", "docker", "nerdctl"};
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
        size_t len = strlen(prefixes[i]);
        if (name.len >= len && memcmp(name.text, prefixes[i], len) == 0) {
            return true;
        }
    }
    return false;
}

static void add_line(struct container_network *network, const char *text,
                     const struct metric_desc *descs, const struct labels *base,
                     struct snapshot *out) {
    struct net_dev_line line;
    if (net_dev_parse(text, &line) < 0 || skipped(line.device)) {
        return;
    }
    struct interface *interface = rows_see(&network->interfaces, line.device);
    if (interface == NULL) {
        return;
    }
    if (interface->row.is_new) {
        interface->labels = labels_with(base, "interface", interface->row.key);
    }
    for (size_t i = 0; i < ARRAY_LEN(columns); i++) {
        snapshot_add(out, &descs[CONTAINER_NETWORK_RECEIVE_BYTES + i], interface->labels,
                     (double)line.fields[columns[i]]);
    }
}

void container_network_add(struct container_network *network, const struct metric_desc *descs,
                           const struct labels *base, struct buf *scratch, struct snapshot *out) {
    if (file_read_at(network->proc_fd, "net/dev", MAX_BYTES, scratch, NULL) < 0) {
        return;
    }
    size_t number = 1;
    for (const char *line = buf_str(scratch); *line != '\0'; line = scan_next_line(line)) {
        if (number++ > 2) { /* two lines of headings */
            add_line(network, line, descs, base, out);
        }
    }
    rows_sweep(&network->interfaces);
}
