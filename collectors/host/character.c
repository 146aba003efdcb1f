#include "collectors/host/parse.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>

#include "collectors/host/part.h"
#include "collectors/source/source_file.h"
#include "collectors/source/tegra.h"
#include "exporter/core/file.h"
#include "exporter/core/hash.h"
#include "exporter/core/memory.h"
#include "exporter/core/number.h"
#include "exporter/metrics/labels.h"
#include "exporter/settings/settings.h"

/* The characterization of a node under the names of EdgeCloud-Mon's agent, so that a scheduler that
 * uses them can do without it. What it asks the Internet for, or only guesses, is left out. */

enum {
    CHARACTER_BATTERY,
    CHARACTER_CORES,
    CHARACTER_MODEL,
    CHARACTER_DISK,
    CHARACTER_OS,
    CHARACTER_MEMORY,
};

#define NODE_LABELS "char_node_name, char_node_class, char_node_uuid"

const struct metric_desc host_character_metrics[] = {
    [CHARACTER_BATTERY] = {"char_node_battery", "Charge of the battery, in percent.", METRIC_GAUGE,
                           NULL, NODE_LABELS ", char_node_plugged_battery"},
    [CHARACTER_CORES] = {"char_node_cpu_total_cores", "CPUs of the node.", METRIC_GAUGE, NULL,
                         NODE_LABELS ", char_node_brand, char_node_arch, char_node_bits"},
    [CHARACTER_MODEL] = {"char_node_device_model", "What device the node is; always 1.",
                         METRIC_GAUGE, NULL, NODE_LABELS ", char_node_device_model_name"},
    [CHARACTER_DISK] = {"char_node_disk_total_size", "Size of the root file system, in bytes.",
                        METRIC_GAUGE, NULL, NODE_LABELS},
    [CHARACTER_OS] = {"char_node_os", "What system the node runs; always 1.", METRIC_GAUGE, NULL,
                      NODE_LABELS ", char_node_os_name, char_node_os_version"},
    [CHARACTER_MEMORY] = {"char_node_ram_total_bytes", "Memory of the node.", METRIC_GAUGE, "bytes",
                          NODE_LABELS},
    {0},
};

enum { N_NODE_LABELS = 3, N_OWN_LABELS = 3 };

struct host_character {
    bool on;
    char *rootfs;
    char *supplies;                 /* the folder of power supplies */
    struct buf node[N_NODE_LABELS]; /* name, class, uuid */
    struct labels *plain, *model, *cores, *os;
    struct labels *battery[2]; /* on its own, and plugged in */
    unsigned n_cpus;           /* 0: not known */
    double memory_bytes;       /* 0: not known */
};

/* ---- texts ---- */

/* The rest of the first line that begins with a key, behind what separates them. */
static bool find_line(const char *text, const char *key, const char *separators,
                      const char **ret_value, size_t *ret_len) {
    size_t key_len = strlen(key);
    for (const char *line = text; *line != '\0';) {
        size_t len = strcspn(line, "\n");
        if (len > key_len && strncmp(line, key, key_len) == 0 &&
            strchr(separators, line[key_len]) != NULL) {
            const char *value = line + key_len;
            value += strspn(value, separators);
            *ret_value = value;
            *ret_len = value < line + len ? (size_t)(line + len - value) : 0;
            return *ret_len > 0;
        }
        line += len + (line[len] == '\n');
    }
    return false;
}

bool host_os_release_find(const char *text, const char *key, struct buf *out) {
    const char *value;
    size_t len;
    if (!find_line(text, key, "=", &value, &len)) {
        return false;
    }
    bool quoted = len >= 2 && (value[0] == '"' || value[0] == '\'') && value[len - 1] == value[0];
    buf_add(out, value + quoted, len - 2 * (size_t)quoted);
    return len > 2 * (size_t)quoted;
}

bool host_cpuinfo_find(const char *text, const char *key, struct buf *out) {
    const char *value;
    size_t len;
    if (!find_line(text, key, "\t :", &value, &len)) {
        return false;
    }
    buf_add(out, value, len);
    return true;
}

bool host_has_word(const char *text, const char *word) {
    size_t len = strlen(word);
    for (const char *at = text; (at = strstr(at, word)) != NULL; at += len) {
        bool begins = at == text || at[-1] == ' ';
        if (begins && (at[len] == ' ' || at[len] == '\0')) {
            return true;
        }
    }
    return false;
}

unsigned host_count_cpus(const char *list) {
    unsigned n = 0;
    for (const char *at = list; *at >= '0' && *at <= '9';) {
        char *end;
        unsigned long first = strtoul(at, &end, 10);
        unsigned long last = *end == '-' ? strtoul(end + 1, &end, 10) : first;
        enum { MAX_CPUS = 65536 };
        if (last < first || last >= MAX_CPUS || (*end != ',' && *end != '\0')) {
            return 0;
        }
        n += (unsigned)(last - first) + 1;
        at = end + (*end == ',');
    }
    return n;
}

void host_device_name(const char *model, struct buf *out) {
    static const char kit[] = "Developer Kit";
    const char *end = strstr(model, kit);
    size_t len = end != NULL ? (size_t)(end - model) : strlen(model);
    while (len > 0 && (model[len - 1] == ' ' || model[len - 1] == '\n')) {
        len--;
    }
    buf_add(out, model, len);
}

/* ---- identity of the node ---- */

static void read_proc(const struct collector_env *env, const char *name, struct buf *out) {
    char *path CLEANUP_FREE = file_path_join(env->procfs, name);
    if (file_read(path, out, NULL) < 0) {
        buf_reset(out);
    }
}

static void find_name(const struct collector_env *env, struct buf *out) {
    const char *given = settings_string(env->settings, "collector.host.node-name");
    char *stored CLEANUP_FREE = source_file_text(env->rootfs, "etc/hostname");
    struct utsname system;
    if (given[0] != '\0') {
        buf_add_str(out, given);
    } else if (stored != NULL && stored[0] != '\0') {
        buf_add_str(out, stored); /* in a container the kernel tells that of the container */
    } else if (uname(&system) == 0) {
        buf_add_str(out, system.nodename);
    }
}

static void find_model(const struct collector_env *env, struct buf *out) {
    const char *given = settings_string(env->settings, "collector.host.device-model");
    struct buf model CLEANUP_BUF = {0};
    char *product CLEANUP_FREE = source_file_text(env->sysfs, "class/dmi/id/product_name");
    if (given[0] != '\0') {
        buf_add_str(out, given);
    } else if (tegra_read_device_tree(env, "model", &model) == 0) {
        host_device_name(buf_str(&model), out);
    } else if (product != NULL) {
        host_device_name(product, out);
    }
}

static bool is_virtual(const struct collector_env *env, const char *cpuinfo, const char *model) {
    struct buf flags CLEANUP_BUF = {0};
    char *vendor CLEANUP_FREE = source_file_text(env->sysfs, "class/dmi/id/sys_vendor");
    char *hypervisor CLEANUP_FREE = source_file_text(env->sysfs, "hypervisor/type");
    host_cpuinfo_find(cpuinfo, "flags", &flags);
    return host_has_word(buf_str(&flags), "hypervisor") || hypervisor != NULL ||
           (vendor != NULL && strcmp(vendor, "QEMU") == 0) ||
           strcmp(model, "linux,dummy-virt") == 0;
}

/* A board's serial number first: cards that were copied from one another share the machine id. */
static void find_uuid(const struct collector_env *env, struct buf *out) {
    struct buf serial CLEANUP_BUF = {0};
    tegra_read_device_tree(env, "serial-number", &serial);
    char *id CLEANUP_FREE = source_file_text(env->rootfs, "etc/machine-id");
    buf_truncate(&serial, strcspn(buf_str(&serial), "\n"));
    if (buf_str(&serial)[strspn(buf_str(&serial), "0 ")] != '\0') {
        hash_uuid("waap node serial", buf_str(&serial), out);
    } else if (id != NULL && id[0] != '\0' && strcmp(id, "uninitialized") != 0) {
        hash_uuid("waap node machine-id", id, out);
    }
}

/* ---- labels ---- */

static struct labels *render(const struct host_character *host, const struct label *own, size_t n) {
    struct label labels[N_NODE_LABELS + N_OWN_LABELS] = {
        {"char_node_name", buf_str(&host->node[0])},
        {"char_node_class", buf_str(&host->node[1])},
        {"char_node_uuid", buf_str(&host->node[2])},
    };
    for (size_t i = 0; i < n; i++) {
        labels[N_NODE_LABELS + i] = own[i];
    }
    return labels_create(labels, N_NODE_LABELS + n);
}

static void render_cores(struct host_character *host, const char *cpuinfo) {
    struct buf brand CLEANUP_BUF = {0};
    struct utsname system = {0};
    uname(&system);
    bool found = host_cpuinfo_find(cpuinfo, "model name", &brand) ||
                 host_cpuinfo_find(cpuinfo, "Hardware", &brand);
    host->cores = render(host,
                         (struct label[]){
                             {"char_node_brand", found ? buf_str(&brand) : ""},
                             {"char_node_arch", system.machine},
                             {"char_node_bits", strstr(system.machine, "64") ? "64" : "32"},
                         },
                         3);
}

static void render_os(struct host_character *host, const struct collector_env *env) {
    struct buf text CLEANUP_BUF = {0}, name CLEANUP_BUF = {0}, version CLEANUP_BUF = {0};
    char *path CLEANUP_FREE = file_path_join(env->rootfs, "etc/os-release");
    if (file_read(path, &text, NULL) < 0 || !host_os_release_find(buf_str(&text), "NAME", &name)) {
        return;
    }
    host_os_release_find(buf_str(&text), "VERSION_ID", &version);
    host->os = render(host,
                      (struct label[]){{"char_node_os_name", buf_str(&name)},
                                       {"char_node_os_version", buf_str(&version)}},
                      2);
}

static void look_around(struct host_character *host, const struct collector_env *env) {
    struct buf cpuinfo CLEANUP_BUF = {0}, meminfo CLEANUP_BUF = {0}, model CLEANUP_BUF = {0};
    struct buf total CLEANUP_BUF = {0};
    read_proc(env, "cpuinfo", &cpuinfo);
    read_proc(env, "meminfo", &meminfo);
    find_model(env, &model);
    find_name(env, &host->node[0]);
    bool virtual = is_virtual(env, buf_str(&cpuinfo), buf_str(&model));
    buf_add_str(&host->node[1], virtual ? "VM" : "Computer");
    find_uuid(env, &host->node[2]);
    host->plain = render(host, NULL, 0);
    if (model.len > 0) {
        struct label own = {"char_node_device_model_name", buf_str(&model)};
        host->model = render(host, &own, 1);
    }
    for (size_t i = 0; i < ARRAY_LEN(host->battery); i++) {
        struct label own = {"char_node_plugged_battery", i > 0 ? "True" : "False"};
        host->battery[i] = render(host, &own, 1);
    }
    /* Also those that a power mode has switched off. */
    char *present CLEANUP_FREE = source_file_text(env->sysfs, "devices/system/cpu/present");
    host->n_cpus = present != NULL ? host_count_cpus(present) : 0;
    render_cores(host, buf_str(&cpuinfo));
    render_os(host, env);
    if (host_cpuinfo_find(buf_str(&meminfo), "MemTotal", &total)) {
        host->memory_bytes = strtod(buf_str(&total), NULL) * 1024;
    }
}

/* ---- the part ---- */

static void character_close(void *state) {
    struct host_character *host = state;
    for (size_t i = 0; i < N_NODE_LABELS; i++) {
        buf_finish(&host->node[i]);
    }
    labels_destroy(host->plain);
    labels_destroy(host->model);
    labels_destroy(host->cores);
    labels_destroy(host->os);
    labels_destroy(host->battery[0]);
    labels_destroy(host->battery[1]);
    free(host->rootfs);
    free(host->supplies);
}

static void character_open(void *state, const struct collector_env *env) {
    struct host_character *host = state;
    host->on = settings_bool(env->settings, "collector.host.characterization");
    if (host->on) {
        host->rootfs = mem_strdup(env->rootfs);
        host->supplies = file_path_join(env->sysfs, "class/power_supply");
        look_around(host, env);
    }
}

/* The first battery; one of a mouse has "Device" as its scope. */
static void add_battery(const struct host_character *host, struct snapshot *out) {
    DIR *directory = opendir(host->supplies);
    const struct dirent *entry;
    bool done = directory == NULL;
    while (!done && (entry = readdir(directory)) != NULL) {
        char *place CLEANUP_FREE = file_path_join(host->supplies, entry->d_name);
        char *type CLEANUP_FREE = source_file_text(place, "type");
        char *scope CLEANUP_FREE = source_file_text(place, "scope");
        char *charge CLEANUP_FREE = source_file_text(place, "capacity");
        char *status CLEANUP_FREE = source_file_text(place, "status");
        double percent;
        if (type == NULL || strcmp(type, "Battery") != 0 || charge == NULL ||
            (scope != NULL && strcmp(scope, "Device") == 0) ||
            number_parse(charge, strlen(charge), &percent) < 0) {
            continue;
        }
        bool plugged = status != NULL && strcmp(status, "Discharging") != 0;
        snapshot_add(out, &host_character_metrics[CHARACTER_BATTERY], host->battery[plugged],
                     percent);
        done = true;
    }
    if (directory != NULL) {
        closedir(directory);
    }
}

static int character_collect(void *state, struct buf *scratch, struct snapshot *out,
                             struct error *err) {
    (void)scratch;
    (void)err;
    const struct host_character *host = state;
    struct statvfs disk;
    if (!host->on) {
        return 0;
    }
    add_battery(host, out);
    if (host->cores != NULL && host->n_cpus > 0) {
        snapshot_add(out, &host_character_metrics[CHARACTER_CORES], host->cores, host->n_cpus);
    }
    if (host->model != NULL) {
        snapshot_add(out, &host_character_metrics[CHARACTER_MODEL], host->model, 1);
    }
    if (statvfs(host->rootfs, &disk) == 0) {
        snapshot_add(out, &host_character_metrics[CHARACTER_DISK], host->plain,
                     (double)disk.f_blocks * (double)disk.f_frsize);
    }
    if (host->os != NULL) {
        snapshot_add(out, &host_character_metrics[CHARACTER_OS], host->os, 1);
    }
    if (host->memory_bytes > 0) {
        snapshot_add(out, &host_character_metrics[CHARACTER_MEMORY], host->plain,
                     host->memory_bytes);
    }
    return 0;
}

const struct host_part host_character_part = {
    .state_size = sizeof(struct host_character),
    .open = character_open,
    .collect = character_collect,
    .close = character_close,
};
