#include "collectors/container/item.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/core/cleanup.h"

enum { SHORT_ID_LEN = 12, MAX_OWN_LABELS = 6, MAX_LABELS = 64 + MAX_OWN_LABELS };

const enum cgroup_value container_failure_values[CONTAINER_N_FAILURES] = {
    CGROUP_MEMORY_PGFAULT,
    CGROUP_MEMORY_PGFAULT,
    CGROUP_MEMORY_PGMAJFAULT,
    CGROUP_MEMORY_PGMAJFAULT,
};
static const char *const failure_types[] = {"pgfault", "pgfault", "pgmajfault", "pgmajfault"};
static const char *const energy_sources[] = {
    [CONTAINER_ENERGY_CPU] = "cpu",
    [CONTAINER_ENERGY_GPU] = "gpu",
};
static const char *const failure_scopes[] = {"container", "hierarchy", "container", "hierarchy"};

struct container *container_create(const char *path, const struct container_path *classified,
                                   int64_t peak_window_ns) {
    struct container *container = calloc(1, sizeof(*container));
    if (container == NULL) {
        return NULL;
    }
    cgroup_place_init(&container->place);
    container_network_init(&container->network);
    peak_init(&container->peak, peak_window_ns);
    container->cpu_fd = -1;
    container->counted_seconds = NAN;
    container->runtime = classified->runtime;
    container->path = strdup(path);
    container->id = strndup(classified->id, classified->id_len);
    if (classified->pod_uid != NULL) {
        container->pod_uid = strndup(classified->pod_uid, classified->pod_uid_len);
    }
    if (container->path == NULL || container->id == NULL) {
        container_destroy(container);
        return NULL;
    }
    return container;
}

static void drop_labels(struct container *container) {
    labels_destroy(TAKE(container->labels));
    labels_destroy(TAKE(container->cpu_labels));
    for (size_t i = 0; i < CONTAINER_N_FAILURES; i++) {
        labels_destroy(TAKE(container->failure_labels[i]));
    }
    for (size_t i = 0; i < CONTAINER_N_ENERGY_SOURCES; i++) {
        labels_destroy(TAKE(container->energy_labels[i]));
    }
    io_series_finish(&container->io);
    container_network_relabel(&container->network);
}

void container_destroy(struct container *container) {
    drop_labels(container);
    container_info_finish(&container->info);
    container_network_finish(&container->network);
    cgroup_place_finish(&container->place);
    if (container->cpu_fd >= 0) {
        close(container->cpu_fd);
    }
    free(container->path);
    free(container->id);
    free(container->pod_uid);
    free(container);
}

static int hex_digit(char c) {
    const char *digits = "0123456789abcdef";
    const char *at = c != '\0' ? strchr(digits, c) : NULL;
    return at != NULL ? (int)(at - digits) : -1;
}

/* systemd writes what a unit's name may not hold as \xNN. */
static char *unescape(const char *text) {
    struct buf out = {0};
    while (*text != '\0') {
        if (text[0] == '\\' && text[1] == 'x' && hex_digit(text[2]) > 0 &&
            hex_digit(text[3]) >= 0) {
            buf_add_char(&out, (char)(hex_digit(text[2]) * 16 + hex_digit(text[3])));
            text += 4;
        } else {
            buf_add_char(&out, *text++);
        }
    }
    return buf_take(&out);
}

/* What a container is called where no runtime tells: by its own name, by all of its id as the
 * kubelet does, or by as much of the id as people use. */
static char *fallback_name(const struct container *container) {
    switch (container->runtime) {
    case CONTAINER_LXC:
    case CONTAINER_NSPAWN:
        return unescape(container->id);
    case CONTAINER_CONTAINERD:
    case CONTAINER_CRIO:
        return strdup(container->id);
    default:
        return strndup(container->id, SHORT_ID_LEN);
    }
}

/* "com.docker.compose.service" becomes container_label_com_docker_compose_service. */
static char *label_name(const char *name) {
    struct buf out = {0};
    buf_add_str(&out, "container_label_");
    for (; *name != '\0'; name++) {
        buf_add_char(&out, isalnum((unsigned char)*name) ? *name : '_');
    }
    return buf_take(&out);
}

static bool has_label(const struct label *labels, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++) {
        if (strcmp(labels[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static struct labels *render_own(const struct container *container) {
    const struct container_info *info = &container->info;
    struct label labels[MAX_LABELS] = {
        {"id", container->path},        {"name", info->name},           {"image", info->image},
        {"container", info->container}, {"namespace", info->namespace}, {"pod", info->pod},
    };
    size_t n = MAX_OWN_LABELS;
    for (size_t i = 0; i < info->n_labels && n < MAX_LABELS; i++) {
        char *name = label_name(info->labels[i].name);
        if (name == NULL || has_label(labels, n, name)) { /* two may become one */
            free(name);
            continue;
        }
        labels[n++] = (struct label){.name = name, .value = info->labels[i].value};
    }
    struct labels *rendered = labels_create(labels, n);
    for (size_t i = MAX_OWN_LABELS; i < n; i++) {
        free((char *)labels[i].name);
    }
    return rendered;
}

static int render(struct container *container) {
    container->labels = render_own(container);
    if (container->labels == NULL) {
        return -ENOMEM;
    }
    container->cpu_labels = labels_with(container->labels, "cpu", "total");
    bool failed = container->cpu_labels == NULL;
    for (size_t i = 0; i < CONTAINER_N_FAILURES; i++) {
        struct labels *type CLEANUP_LABELS =
            labels_with(container->labels, "failure_type", failure_types[i]);
        container->failure_labels[i] =
            type != NULL ? labels_with(type, "scope", failure_scopes[i]) : NULL;
        failed = failed || container->failure_labels[i] == NULL;
    }
    for (size_t i = 0; i < CONTAINER_N_ENERGY_SOURCES; i++) {
        container->energy_labels[i] = labels_with(container->labels, "source", energy_sources[i]);
        failed = failed || container->energy_labels[i] == NULL;
    }
    if (failed) {
        drop_labels(container);
    }
    return failed ? -ENOMEM : 0;
}

int container_describe(struct container *container, struct container_info *info,
                       bool (*shown)(void *context, const char *name, const char *image),
                       void *context) {
    if (info->name == NULL) {
        info->name = fallback_name(container);
    }
    if (container->labels != NULL && container_info_equal(&container->info, info)) {
        container_info_finish(info);
        return 0;
    }
    drop_labels(container);
    container_info_finish(&container->info);
    container->info = *info;
    *info = (struct container_info){0};
    const char *name = container->info.name;
    const char *image = container->info.image;
    return shown(context, name != NULL ? name : "", image != NULL ? image : "") ? render(container)
                                                                                : 0;
}
