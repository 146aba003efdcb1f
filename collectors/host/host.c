#include "collectors/host/host.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "collectors/host/part.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/file.h"
#include "exporter/core/memory.h"
#include "exporter/settings/option.h"

static const struct host_part *const parts[] = {
    &host_character_part, &host_cpu_part,     &host_disk_part,    &host_filesystem_part,
    &host_load_part,      &host_memory_part,  &host_network_part, &host_system_part,
    &host_pressure_part,  &host_thermal_part,
};

static const struct metric_desc *const tables[] = {
    host_character_metrics,
    host_cpu_metrics,
    host_disk_metrics,
    host_filesystem_metrics,
    host_load_metrics,
    host_memory_metrics,
    host_network_metrics,
    host_pressure_metrics,
    host_system_metrics,
    host_thermal_metrics,
    NULL,
};

struct host {
    void *states[ARRAY_LEN(parts)];
    struct buf scratch;
};

static const struct option host_options[] = {
    {
        .name = "collector.host.characterization",
        .type = OPTION_BOOL,
        .help = "Also describe the node under the names of EdgeCloud-Mon's agent (char_node_*)",
    },
    {
        .name = "collector.host.device-model",
        .type = OPTION_STRING,
        .help = "Name of this device in char_node_device_model; empty: the firmware's",
    },
    {
        .name = "collector.host.disk.device-exclude",
        .type = OPTION_REGEX,
        .default_text = "^(z?ram|loop|fd|(h|s|v|xv)d[a-z]|nvme[0-9]+n[0-9]+p)[0-9]+$",
        .help = "Leave out disks whose name matches",
    },
    {
        .name = "collector.host.filesystem.fs-types-exclude",
        .type = OPTION_REGEX,
        .default_text =
            "^(autofs|binfmt_misc|bpf|cgroup2?|configfs|debugfs|devpts|devtmpfs|fusectl|hugetlbfs|"
            "iso9660|mqueue|nsfs|overlay|proc|procfs|pstore|rpc_pipefs|securityfs|selinuxfs|"
            "squashfs|erofs|sysfs|tracefs)$",
        .help = "Leave out file systems whose type matches",
    },
    {
        .name = "collector.host.filesystem.mount-points-exclude",
        .type = OPTION_REGEX,
        .default_text = "^/(dev|proc|run/credentials/.+|sys|var/lib/docker/.+|"
                        "var/lib/containers/storage/.+)($|/)",
        .help = "Leave out file systems whose mount point matches",
    },
    {
        .name = "collector.host.network.device-exclude",
        .type = OPTION_REGEX,
        .default_text = "",
        .help = "Leave out network devices whose name matches",
    },
    {
        .name = "collector.host.node-name",
        .type = OPTION_STRING,
        .help = "Name of this node in char_node_*; empty: its host name",
    },
    {0},
};

static void host_close(void *state) {
    struct host *host = state;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        parts[i]->close(host->states[i]);
    }
    buf_finish(&host->scratch);
    free(host);
}

static int host_open(const struct collector_env *env, void **ret_state, struct error *err) {
    char *stat CLEANUP_FREE = file_path_join(env->procfs, "stat");
    if (access(stat, F_OK) < 0) {
        return error_set(err, -ENODEV, "%s: %m", stat);
    }
    struct host *host = mem_zalloc(1, sizeof(*host));
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        host->states[i] = parts[i]->open(env);
    }
    *ret_state = host;
    return 0;
}

/* Every part has its turn; the first failure is the one reported. */
static int host_collect(void *state, struct snapshot *out, struct error *err) {
    struct host *host = state;
    int result = 0;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        struct error *first = result == 0 ? err : NULL;
        int r = parts[i]->collect(host->states[i], &host->scratch, out, first);
        result = result == 0 ? r : result;
    }
    return result;
}

const struct collector host_collector = {
    .name = "host",
    .help = "CPUs, memory, load, file systems, disks, network devices, pressure, temperatures",
    .tables = tables,
    .options = host_options,
    .on_by_default = true,
    .open = host_open,
    .collect = host_collect,
    .close = host_close,
};
