#include "collectors/host/host.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectors/host/part.h"
#include "collectors/source/source_file.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/file.h"
#include "exporter/core/memory.h"
#include "exporter/settings/option.h"

#define PART(name) &host_##name##_part,
#define TABLE(name) host_##name##_metrics,

static const struct host_part *const parts[] = {HOST_PARTS(PART)};
static const struct metric_desc *const tables[] = {HOST_PARTS(TABLE) NULL};

enum { MAX_FILES = 4 };

struct host {
    struct opened {
        void *state;
        struct source_file files[MAX_FILES];
        size_t n_files;
    } parts[ARRAY_LEN(parts)];
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
        struct opened *opened = &host->parts[i];
        if (parts[i]->close != NULL) {
            parts[i]->close(opened->state);
        }
        free(opened->state);
        for (size_t file = 0; file < opened->n_files; file++) {
            source_file_finish(&opened->files[file]);
        }
    }
    buf_finish(&host->scratch);
    free(host);
}

static void open_part(const struct host_part *part, const struct collector_env *env,
                      struct opened *opened) {
    opened->state = mem_zalloc(1, part->state_size);
    for (const char *const *name = part->files; name != NULL && *name != NULL; name++) {
        const char *ours = strncmp(*name, "1/", 2) == 0 ? *name + 2 : NULL;
        assert(opened->n_files < MAX_FILES);
        source_file_init(&opened->files[opened->n_files++], env->procfs, *name, ours);
    }
    if (part->open != NULL) {
        part->open(opened->state, env);
    }
}

static int host_open(const struct collector_env *env, void **ret_state, struct error *err) {
    char *stat CLEANUP_FREE = file_path_join(env->procfs, "stat");
    if (access(stat, F_OK) < 0) {
        return error_set(err, -ENODEV, "%s: %m", stat);
    }
    struct host *host = mem_zalloc(1, sizeof(*host));
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        open_part(parts[i], env, &host->parts[i]);
    }
    *ret_state = host;
    return 0;
}

static int collect_part(const struct host_part *part, struct opened *opened, struct buf *scratch,
                        struct snapshot *out, struct error *err) {
    struct host_reading reading = {.state = opened->state, .out = out};
    bool any = opened->n_files == 0;
    int result = 0;
    for (; reading.file < opened->n_files; reading.file++) {
        struct source_file *file = &opened->files[reading.file];
        struct error *first = result == 0 ? err : NULL;
        int r = source_file_read(file, scratch, first);
        if (r == 0) {
            any = true;
            r = scan_lines(buf_str(scratch), file->path, part->line, &reading, first);
        }
        result = result == 0 && !source_file_absent(r) ? r : result;
    }
    if (any && part->collect != NULL) {
        int r = part->collect(opened->state, scratch, out, result == 0 ? err : NULL);
        result = result == 0 ? r : result;
    }
    return result;
}

/* Every part has its turn; the first failure is the one reported. */
static int host_collect(void *state, struct snapshot *out, struct error *err) {
    struct host *host = state;
    int result = 0;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        int r =
            collect_part(parts[i], &host->parts[i], &host->scratch, out, result == 0 ? err : NULL);
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
