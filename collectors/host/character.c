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

/* The characterization of a node under the names of EdgeCloud-Mon's agent, for schedulers that use
 * these. What the agent asks the Internet for, or only guesses, is left out. */

enum {
    CHARACTER_BATTERY,
    CHARACTER_CORES,
    CHARACTER_MODEL,
    CHARACTER_DISK,
    CHARACTER_OS,
    CHARACTER_MEMORY,
    CHARACTER_N_METRICS,
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
    char *supplies; /* the directory of power supplies */
    struct fact {
        struct labels *labels;
        double value; /* 0: not known */
    } facts[CHARACTER_N_METRICS];
    struct labels *battery[2]; /* discharging, and plugged in */
};

/* ---- texts ---- */

/* The rest of the first line that begins with a key, after the separators. */
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
        buf_add_str(out, stored); /* uname would return the name of our container */
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

/* The board's serial number is preferred: copied SD cards share the machine id. */
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

/* The labels of the node and those of one metric. */
static struct labels *render(const struct label *node, const struct label *own, size_t n) {
    struct label labels[N_NODE_LABELS + N_OWN_LABELS];
    memcpy(labels, node, N_NODE_LABELS * sizeof(*node));
    for (size_t i = 0; i < n; i++) {
        labels[N_NODE_LABELS + i] = own[i];
    }
    return labels_create(labels, N_NODE_LABELS + n);
}

/* Also counts CPUs that a power mode has switched off. */
static struct fact find_cores(const struct collector_env *env, const struct label *node,
                              const char *cpuinfo) {
    struct buf brand CLEANUP_BUF = {0};
    struct utsname system = {0};
    char *present CLEANUP_FREE = source_file_text(env->sysfs, "devices/system/cpu/present");
    uname(&system);
    bool found = host_cpuinfo_find(cpuinfo, "model name", &brand) ||
                 host_cpuinfo_find(cpuinfo, "Hardware", &brand);
    const struct label own[] = {
        {"char_node_brand", found ? buf_str(&brand) : ""},
        {"char_node_arch", system.machine},
        {"char_node_bits", strstr(system.machine, "64") ? "64" : "32"},
    };
    return (struct fact){
        .labels = render(node, own, ARRAY_LEN(own)),
        .value = present != NULL ? host_count_cpus(present) : 0,
    };
}

static struct fact find_os(const struct collector_env *env, const struct label *node) {
    struct buf text CLEANUP_BUF = {0}, name CLEANUP_BUF = {0}, version CLEANUP_BUF = {0};
    char *path CLEANUP_FREE = file_path_join(env->rootfs, "etc/os-release");
    if (file_read(path, &text, NULL) < 0 || !host_os_release_find(buf_str(&text), "NAME", &name)) {
        return (struct fact){0};
    }
    host_os_release_find(buf_str(&text), "VERSION_ID", &version);
    const struct label own[] = {
        {"char_node_os_name", buf_str(&name)},
        {"char_node_os_version", buf_str(&version)},
    };
    return (struct fact){render(node, own, ARRAY_LEN(own)), 1};
}

static void find_facts(struct host_character *host, const struct collector_env *env) {
    struct buf cpuinfo CLEANUP_BUF = {0}, meminfo CLEANUP_BUF = {0}, total CLEANUP_BUF = {0};
    struct buf model CLEANUP_BUF = {0}, name CLEANUP_BUF = {0}, uuid CLEANUP_BUF = {0};
    struct fact *facts = host->facts;
    read_proc(env, "cpuinfo", &cpuinfo);
    read_proc(env, "meminfo", &meminfo);
    find_model(env, &model);
    find_name(env, &name);
    find_uuid(env, &uuid);
    bool virtual = is_virtual(env, buf_str(&cpuinfo), buf_str(&model));
    const struct label node[N_NODE_LABELS] = {
        {"char_node_name", buf_str(&name)},
        {"char_node_class", virtual ? "VM" : "Computer"},
        {"char_node_uuid", buf_str(&uuid)},
    };
    for (size_t i = 0; i < ARRAY_LEN(host->battery); i++) {
        struct label own = {"char_node_plugged_battery", i > 0 ? "True" : "False"};
        host->battery[i] = render(node, &own, 1);
    }
    facts[CHARACTER_CORES] = find_cores(env, node, buf_str(&cpuinfo));
    const struct label own = {"char_node_device_model_name", buf_str(&model)};
    facts[CHARACTER_MODEL] = (struct fact){render(node, &own, 1), model.len > 0};
    facts[CHARACTER_DISK].labels = render(node, NULL, 0);
    facts[CHARACTER_OS] = find_os(env, node);
    if (host_cpuinfo_find(buf_str(&meminfo), "MemTotal", &total)) {
        facts[CHARACTER_MEMORY] =
            (struct fact){render(node, NULL, 0), strtod(buf_str(&total), NULL) * 1024};
    }
}

/* ---- the part ---- */

static void character_close(void *state) {
    struct host_character *host = state;
    for (size_t i = 0; i < CHARACTER_N_METRICS; i++) {
        labels_destroy(host->facts[i].labels);
    }
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
        find_facts(host, env);
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
    struct host_character *host = state;
    struct statvfs disk;
    if (!host->on) {
        return 0;
    }
    add_battery(host, out);
    bool known = statvfs(host->rootfs, &disk) == 0;
    host->facts[CHARACTER_DISK].value = known ? (double)disk.f_blocks * (double)disk.f_frsize : 0;
    for (size_t i = 0; i < CHARACTER_N_METRICS; i++) {
        if (host->facts[i].value > 0) {
            snapshot_add(out, &host_character_metrics[i], host->facts[i].labels,
                         host->facts[i].value);
        }
    }
    return 0;
}

const struct host_part host_character_part = {
    .state_size = sizeof(struct host_character),
    .open = character_open,
    .collect = character_collect,
    .close = character_close,
};
