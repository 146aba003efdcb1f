#pragma once

#include "collectors/container/metrics.h"
#include "collectors/source/rows.h"
#include "exporter/core/buf.h"
#include "exporter/metrics/snapshot.h"

/* The network namespace of a container, seen through one of its processes. The descriptor of the
 * process' directory stays with that process if its number is used again. */
struct container_network {
    int proc_fd;
    uint64_t namespace;     /* 0: not known */
    struct rows interfaces; /* with their label sets */
};

void container_network_init(struct container_network *network);
void container_network_finish(struct container_network *network);

/* Whether the process still exists. */
bool container_network_alive(const struct container_network *network);

/* Uses process `pid`. */
void container_network_enter(struct container_network *network, const char *procfs, pid_t pid);

/* The host's network namespace, that of process 1; 0 if it cannot be read. */
uint64_t container_network_host(const char *procfs);

/* Adds the counters of every interface but lo and those of other containers (veth…). */
void container_network_add(struct container_network *network, const struct metric_desc *descs,
                           const struct labels *base, struct buf *scratch, struct snapshot *out);
