#include "collectors/container/names.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectors/container/client.h"
#include "collectors/container/cri.h"
#include "collectors/container/info.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/clock.h"
#include "exporter/core/file.h"
#include "exporter/core/memory.h"
#include "exporter/settings/settings.h"

#define MIN_BUNDLE_WAIT_NS CLOCK_NS_PER_SEC
#define MIN_CRI_WAIT_NS (CLOCK_NS_PER_SEC / 4)
#define MAX_WAIT_NS (300 * CLOCK_NS_PER_SEC)

enum { MAX_BUNDLE_BYTES = 4 << 20 };

/* Runtimes with an HTTP API, by the setting for their socket. */
static const struct {
    const char *setting;
    enum container_runtime runtime;
} runtimes[] = {
    {"collector.container.docker-socket", CONTAINER_DOCKER},
    {"collector.container.podman-socket", CONTAINER_PODMAN},
};

/* Where containerd keeps the bundles of Kubernetes' running containers. */
static const char *const bundle_directories[] = {
    "run/k3s/containerd/io.containerd.runtime.v2.task/k8s.io",
    "run/containerd/io.containerd.runtime.v2.task/k8s.io",
    "run/k0s/containerd/io.containerd.runtime.v2.task/k8s.io",
    "var/snap/microk8s/common/run/containerd/io.containerd.runtime.v2.task/k8s.io",
};

/* Sockets of CRI. */
static const char *const cri_sockets[] = {
    "run/k3s/containerd/containerd.sock",
    "run/containerd/containerd.sock",
    "run/crio/crio.sock",
    "run/cri-dockerd.sock",
    "run/k0s/containerd.sock",
    "var/snap/microk8s/common/run/containerd.sock",
};

struct container_names {
    struct source {
        struct container_client *client;
        enum container_runtime runtime;
    } sources[ARRAY_LEN(runtimes)];
    size_t n_sources;
    struct cri_client *cri; /* NULL: not used */
    char *bundles[ARRAY_LEN(bundle_directories)];
    container_label_patterns wanted;
    struct buf scratch;
};

static void open_client(struct container_names *names, size_t i, const char *rootfs,
                        const struct settings *settings) {
    const char *setting = settings_string(settings, runtimes[i].setting);
    if (setting[0] != '\0') {
        char *path CLEANUP_FREE = file_path_join(rootfs, setting);
        names->sources[names->n_sources++] = (struct source){
            .client = container_client_create(path, names->wanted),
            .runtime = runtimes[i].runtime,
        };
    }
}

/* "auto", "off" or a path. */
static void open_cri(struct container_names *names, const char *rootfs,
                     const struct settings *settings) {
    const char *setting = settings_string(settings, "collector.container.cri-socket");
    if (strcmp(setting, "auto") == 0) {
        names->cri = cri_client_create(rootfs, cri_sockets, ARRAY_LEN(cri_sockets), names->wanted);
    } else if (setting[0] != '\0' && strcmp(setting, "off") != 0) {
        names->cri = cri_client_create(rootfs, &setting, 1, names->wanted);
    }
}

static bool may(const char *rootfs, const char *path, int mode) {
    char *whole CLEANUP_FREE = file_path_join(rootfs, path);
    return path[0] != '\0' && access(whole, mode) == 0;
}

bool container_names_reachable(const char *rootfs, const struct settings *settings) {
    bool reachable = may(rootfs, settings_string(settings, "collector.container.cri-socket"), W_OK);
    for (size_t i = 0; i < ARRAY_LEN(runtimes); i++) {
        reachable |= may(rootfs, settings_string(settings, runtimes[i].setting), W_OK);
    }
    for (size_t i = 0; i < ARRAY_LEN(cri_sockets); i++) {
        reachable |= may(rootfs, cri_sockets[i], W_OK);
    }
    for (size_t i = 0; i < ARRAY_LEN(bundle_directories); i++) {
        reachable |= may(rootfs, bundle_directories[i], R_OK);
    }
    return reachable;
}

struct container_names *container_names_create(const char *rootfs,
                                               const struct settings *settings) {
    struct container_names *names = mem_zalloc(1, sizeof(*names));
    names->wanted = settings_list(settings, "collector.container.label-include");
    open_cri(names, rootfs, settings);
    for (size_t i = 0; i < ARRAY_LEN(runtimes); i++) {
        open_client(names, i, rootfs, settings);
    }
    for (size_t i = 0; i < ARRAY_LEN(bundle_directories); i++) {
        names->bundles[i] = file_path_join(rootfs, bundle_directories[i]);
    }
    return names;
}

void container_names_destroy(struct container_names *names) {
    if (names == NULL) {
        return;
    }
    for (size_t i = 0; i < names->n_sources; i++) {
        container_client_destroy(names->sources[i].client);
    }
    cri_client_destroy(names->cri);
    for (size_t i = 0; i < ARRAY_LEN(bundle_directories); i++) {
        free(names->bundles[i]);
    }
    buf_finish(&names->scratch);
    free(names);
}

void container_names_step(struct container_names *names, int64_t now_ns) {
    for (size_t i = 0; i < names->n_sources; i++) {
        container_client_step(names->sources[i].client, now_ns);
    }
    if (names->cri != NULL) {
        cri_client_step(names->cri, now_ns);
    }
}

static unsigned generation(const struct container_names *names) {
    unsigned sum = 1; /* 0 means: never looked up */
    for (size_t i = 0; i < names->n_sources; i++) {
        sum += container_client_generation(names->sources[i].client);
    }
    return sum + (names->cri != NULL ? cri_client_generation(names->cri) : 0);
}

/* Bundles and CRI are for root's containers only. */
static bool may_have_bundle(const struct container *container) {
    return container->owner == 0 &&
           (container->runtime == CONTAINER_CONTAINERD || container->runtime == CONTAINER_UNKNOWN);
}

static bool may_be_in_pod(const struct container *container) {
    if (container->owner != 0) {
        return false;
    }
    return container->pod_uid != NULL || container->runtime == CONTAINER_CONTAINERD ||
           container->runtime == CONTAINER_CRIO || container->runtime == CONTAINER_UNKNOWN;
}

static bool cri_due(const struct container_names *names, const struct container *container,
                    int64_t now_ns) {
    return names->cri != NULL && now_ns >= container->cri.next_ns && may_be_in_pod(container);
}

bool container_names_due(const struct container_names *names, const struct container *container,
                         int64_t now_ns) {
    return container->names_generation != generation(names) || cri_due(names, container, now_ns) ||
           (may_have_bundle(container) && now_ns >= container->bundle.next_ns);
}

/* A name must not lead out of the directory. */
static bool is_plain(const char *id) {
    return id[0] != '.' && strchr(id, '/') == NULL;
}

static int read_bundle(struct container_names *names, const char *directory, const char *id,
                       struct container_info *ret_info) {
    struct buf path CLEANUP_BUF = {0};
    buf_printf(&path, "%s/%s/config.json", directory, id);
    int r = file_read_at(AT_FDCWD, buf_str(&path), MAX_BUNDLE_BYTES, &names->scratch, NULL);
    return r < 0 ? r
                 : container_json_bundle(names->scratch.data, names->scratch.len, names->wanted,
                                         ret_info);
}

/* Waits twice as long each time. */
static void wait_longer(struct retry *retry, int64_t min_ns, int64_t now_ns) {
    int64_t wait_ns = retry->wait_ns == 0 ? min_ns : 2 * retry->wait_ns;
    retry->wait_ns = wait_ns < MAX_WAIT_NS ? wait_ns : MAX_WAIT_NS;
    retry->next_ns = now_ns + retry->wait_ns;
}

static bool look_into_bundles(struct container_names *names, struct container *container,
                              struct container_info *ret_info) {
    for (size_t i = 0; is_plain(container->id) && i < ARRAY_LEN(bundle_directories); i++) {
        if (read_bundle(names, names->bundles[i], container->id, ret_info) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether the source can know the container. */
static bool is_responsible(const struct source *source, const struct container *container) {
    bool runs = container->runtime == source->runtime || container->runtime == CONTAINER_UNKNOWN ||
                (container->runtime == CONTAINER_CONTAINERD && source->runtime == CONTAINER_DOCKER);
    return runs &&
           (container->owner == 0 || container_client_serves(source->client, container->owner));
}

/* An image's labels become labels of its containers. Only the kubelet overwrites those that name a
 * pod, so they count only for a container in one of its cgroups. */
static void ask_clients(struct container_names *names, const struct container *container,
                        struct container_info *info) {
    for (size_t i = 0; i < names->n_sources; i++) {
        const struct source *source = &names->sources[i];
        const struct container_info *found =
            is_responsible(source, container) ? container_client_find(source->client, container->id)
                                              : NULL;
        if (found != NULL) {
            info->sandbox = found->sandbox;
            container_info_fill(info, found);
            if (container->pod_uid == NULL) {
                container_info_leave_pod(info);
            }
            return;
        }
    }
}

/* The runtime may know a container later than the kernel does, or never. */
static void ask_cri(struct container_names *names, struct container *container, int64_t now_ns,
                    struct container_info *info) {
    if (names->cri == NULL || !may_be_in_pod(container)) {
        return;
    }
    const struct container_info *found = cri_client_find(names->cri, container->id);
    if (found != NULL) {
        container->cri.next_ns = INT64_MAX;
        info->sandbox = info->sandbox || found->sandbox;
        container_info_fill(info, found);
    } else if (now_ns >= container->cri.next_ns) {
        wait_longer(&container->cri, MIN_CRI_WAIT_NS, now_ns);
        cri_client_ask(names->cri);
    }
}

void container_names_look_up(struct container_names *names, struct container *container,
                             int64_t now_ns, struct container_info *ret_info) {
    struct container_info info = {0};
    container->names_generation = generation(names);
    bool from_bundle = false;
    if (container->bundle.next_ns == INT64_MAX) {
        from_bundle = true;
        info.sandbox = container->info.sandbox;
        container_info_fill(&info, &container->info);
    } else if (may_have_bundle(container) && now_ns >= container->bundle.next_ns) {
        from_bundle = look_into_bundles(names, container, &info);
        if (from_bundle) { /* a bundle does not change: it is read once */
            container->bundle.next_ns = INT64_MAX;
        } else {
            wait_longer(&container->bundle, MIN_BUNDLE_WAIT_NS, now_ns);
        }
    }
    if (!from_bundle) {
        ask_clients(names, container, &info);
    }
    ask_cri(names, container, now_ns, &info);
    *ret_info = info;
}

bool container_names_will_come(const struct container_names *names,
                               const struct container *container) {
    for (size_t i = 0; i < names->n_sources; i++) {
        const struct source *source = &names->sources[i];
        if (is_responsible(source, container) && container_client_listens(source->client)) {
            return true;
        }
    }
    return false;
}

void container_names_forget(struct container_names *names, const struct container *container) {
    for (size_t i = 0; i < names->n_sources; i++) {
        container_client_forget(names->sources[i].client, container->id);
    }
}
