#include "exporter/channel/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collectors/cgroup/container_path.h"
#include "collectors/container/names.h"
#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "exporter/core/file.h"
#include "exporter/core/memory.h"
#include "exporter/push/claim.h"
#include "exporter/settings/settings.h"

/* Linux 6.5; older headers lack it. */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* Linux 5.14. */
#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

#define STEP_NS (10 * CLOCK_NS_PER_MS)
/* A busy Docker names a container seconds after its start; without a runtime no name comes. */
#define PATIENCE_NS CLOCK_NS_PER_SEC
#define PATIENCE_LISTENING_NS (10 * CLOCK_NS_PER_SEC)

enum { SHORT_ID_LEN = 12, N_KNOWN = 64 };

struct push_peers {
    struct loop *loop;
    struct config *config;
    struct container_names *names; /* while a peer waits */
    struct config *names_config;   /* what they were opened with */
    struct loop_timer step;
    struct push_peer *waiting;
    struct push_peer known[N_KNOWN]; /* their containers' ids and names only */
    size_t next_known;
};

/* ---- names of containers ---- */

static char *copy(const char *text) {
    return text != NULL && text[0] != '\0' ? mem_strdup(text) : NULL;
}

static void copy_names(struct push_peer *to, const struct push_peer *from) {
    to->container = copy(from->container);
    to->pod = copy(from->pod);
    to->namespace = copy(from->namespace);
}

static void forget(struct push_peer *peer) {
    free(peer->process);
    free(peer->container_id);
    free(peer->container);
    free(peer->pod);
    free(peer->namespace);
    *peer = (struct push_peer){0};
}

static bool recall(const struct push_peers *peers, struct push_peer *peer) {
    for (size_t i = 0; i < N_KNOWN; i++) {
        const struct push_peer *known = &peers->known[i];
        if (known->container_id != NULL && strcmp(known->container_id, peer->container_id) == 0) {
            copy_names(peer, known);
            return true;
        }
    }
    return false;
}

static void remember(struct push_peers *peers, const struct push_peer *peer) {
    struct push_peer *known = &peers->known[peers->next_known];
    peers->next_known = (peers->next_known + 1) % N_KNOWN;
    forget(known);
    known->container_id = mem_strdup(peer->container_id);
    copy_names(known, peer);
}

/* Asks once more; true: the names are there. */
static bool look_up(struct push_peers *peers, struct push_peer *peer, int64_t now_ns) {
    struct container_info info CLEANUP_CONTAINER_INFO = {0};
    container_names_look_up(peers->names, peer->asked, now_ns, &info);
    const char *name = info.container != NULL ? info.container : info.name;
    if (name == NULL) {
        return false;
    }
    peer->container = copy(name);
    peer->pod = copy(info.pod);
    peer->namespace = copy(info.namespace);
    remember(peers, peer);
    return true;
}

static void stop_waiting(struct push_peers *peers, struct push_peer *peer) {
    struct push_peer **link = &peers->waiting;
    while (*link != NULL && *link != peer) {
        link = &(*link)->next;
    }
    if (*link != NULL) {
        *link = peer->next;
    }
    if (peer->asked != NULL) {
        container_destroy(TAKE(peer->asked));
    }
    peer->waiting = false;
    /* Runtimes send events as long as a client listens: stop when no peer waits. */
    if (peers->waiting == NULL) {
        container_names_destroy(TAKE(peers->names));
        config_unref(TAKE(peers->names_config));
        peers->step.due_ns = LOOP_NEVER;
    }
}

static void take_short_id(struct push_peer *peer) {
    if (peer->container == NULL && peer->container_id != NULL) {
        peer->container = mem_strndup(peer->container_id, SHORT_ID_LEN);
    }
}

static bool gives_up(const struct push_peers *peers, const struct push_peer *peer, int64_t now_ns) {
    bool will_come = container_names_will_come(peers->names, peer->asked);
    return now_ns - peer->asked_ns >= (will_come ? PATIENCE_LISTENING_NS : PATIENCE_NS);
}

static void step_fire(struct loop_timer *timer) {
    struct push_peers *peers = CONTAINER_OF(timer, struct push_peers, step);
    int64_t now_ns = clock_monotonic_ns();
    timer->due_ns = now_ns + STEP_NS;
    container_names_step(peers->names, now_ns);
    for (struct push_peer *peer = peers->waiting; peer != NULL;) {
        struct push_peer *next = peer->next; /* `named` ends no other's waiting */
        if (look_up(peers, peer, now_ns) || gives_up(peers, peer, now_ns)) {
            take_short_id(peer);
            stop_waiting(peers, peer);
            peer->named(peer);
        }
        peer = next;
    }
}

static const char *const name_options[] = {
    "collector.container.docker-socket",
    "collector.container.label-include",
    "collector.container.podman-socket",
};

static struct container_names *open_names(struct push_peers *peers) {
    const struct settings *settings = peers->config->settings;
    for (size_t i = 0; i < ARRAY_LEN(name_options); i++) {
        if (settings_option(settings, name_options[i]) == NULL) {
            return NULL;
        }
    }
    peers->names_config = config_ref(peers->config);
    return container_names_create(settings_string(settings, "path.rootfs"), settings);
}

/* Begins to wait for the runtime's answer; false: there is no runtime to ask. */
static bool ask(struct push_peers *peers, struct push_peer *peer,
                const struct container_path *path) {
    peers->names = peers->names != NULL ? peers->names : open_names(peers);
    peer->asked = peers->names != NULL ? container_create("", path, 0) : NULL;
    int64_t now_ns = clock_monotonic_ns();
    peer->asked_ns = now_ns;
    peer->next = peers->waiting;
    peers->waiting = peer;
    if (peer->asked == NULL || look_up(peers, peer, now_ns)) {
        stop_waiting(peers, peer);
        return false;
    }
    peer->waiting = true;
    peers->step.due_ns = now_ns;
    return true;
}

/* ---- the process ---- */

/* The meaning of the word after an option of the interpreter, by the option's last letter: -uc
 * CODE, -m MODULE, -W FILTER. */
enum behind { BEHIND_IS_SCRIPT, BEHIND_IS_CODE, BEHIND_IS_MODULE, BEHIND_IS_SETTING };

static enum behind behind_option(const char *word, size_t len) {
    char last = len >= 2 && word[1] != '-' ? word[len - 1] : '-';
    return last == 'c'                  ? BEHIND_IS_CODE
           : last == 'm'                ? BEHIND_IS_MODULE
           : last == 'W' || last == 'X' ? BEHIND_IS_SETTING
                                        : BEHIND_IS_SCRIPT;
}

/* The word without the folders in front. */
static const char *base_of(const char *word, size_t len) {
    const char *slash = memrchr(word, '/', len);
    return slash != NULL ? slash + 1 : word;
}

static char *name_of(const char *word, size_t len, bool script) {
    const char *base = base_of(word, len);
    size_t base_len = (size_t)(word + len - base);
    bool py = script && base_len > 3 && memcmp(base + base_len - 3, ".py", 3) == 0;
    return base_len > 0 ? mem_strndup(base, py ? base_len - 3 : base_len) : NULL;
}

static bool is_python(const char *word, size_t len) {
    const char *base = base_of(word, len);
    return word + len - base >= 6 && memcmp(base, "python", 6) == 0;
}

char *push_peer_program(const char *command_line, size_t len) {
    const char *end = command_line + len;
    bool script = false;
    enum behind behind = BEHIND_IS_SCRIPT;
    for (const char *word = command_line; word < end;) {
        size_t word_len = strnlen(word, (size_t)(end - word));
        if (word == command_line && is_python(word, word_len)) {
            script = true;
        } else if (behind == BEHIND_IS_SETTING) {
            behind = BEHIND_IS_SCRIPT;
        } else if (script && behind == BEHIND_IS_SCRIPT && word[0] == '-') {
            behind = behind_option(word, word_len);
            if (behind == BEHIND_IS_CODE) {
                break;
            }
        } else {
            return name_of(word, word_len, script);
        }
        word += word_len + 1;
    }
    return script ? mem_strdup("python") : NULL;
}

/* Reads a file of the process in /proc. */
static bool read_proc(const struct push_peers *peers, pid_t pid, const char *name,
                      struct buf *out) {
    struct buf path CLEANUP_BUF = {0};
    const char *procfs = settings_string(peers->config->settings, "path.procfs");
    buf_printf(&path, "%s/%d/%s", procfs, (int)pid, name);
    return file_read(buf_str(&path), out, NULL) == 0;
}

static char *program_of(const struct push_peers *peers, pid_t pid) {
    struct buf text CLEANUP_BUF = {0};
    bool found = read_proc(peers, pid, "cmdline", &text) && text.len > 0;
    return found ? push_peer_program(text.data, text.len) : NULL;
}

/* Whether the process that connected still exists, if only as a zombie: a process could connect and
 * exit, and its pid be reused in another container. */
static bool is_there(int fd) {
    int pidfd CLEANUP_CLOSE = -1;
    socklen_t len = sizeof(pidfd);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &len) < 0) {
        return errno == ENOPROTOOPT; /* an older kernel */
    }
    return syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) == 0 || errno == EPERM;
}

/* The network namespace of the socket, or of its client; false: not supported by the kernel. */
static bool network_of(int fd, uint64_t *ret_cookie) {
    socklen_t len = sizeof(*ret_cookie);
    return getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, ret_cookie, &len) == 0;
}

static bool is_of_our_network(int fd) {
    int ours CLEANUP_CLOSE = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    uint64_t here, there;
    return ours >= 0 && network_of(ours, &here) && network_of(fd, &there) && here == there;
}

static void find_container(struct push_peers *peers, int fd, struct push_peer *peer) {
    struct buf text CLEANUP_BUF = {0};
    struct container_path path;
    if (!read_proc(peers, peer->pid, "cgroup", &text) || !is_there(fd)) {
        free(TAKE(peer->process));
        peer->gone = true;
        peer->of_our_network = is_of_our_network(fd);
        return;
    }
    if (!container_id_parse(buf_str(&text), &path)) {
        return;
    }
    const char *cgroupfs = settings_string(peers->config->settings, "path.cgroupfs");
    if (container_owner_in(cgroupfs, buf_str(&text), &path) != 0) { /* a label, but no proof */
        peer->container =
            mem_strndup(path.id, path.id_len < SHORT_ID_LEN ? path.id_len : SHORT_ID_LEN);
        return;
    }
    peer->container_id = mem_strndup(path.id, path.id_len);
    if (!recall(peers, peer) && !ask(peers, peer, &path)) {
        take_short_id(peer);
    }
}

int push_peers_identify(struct push_peers *peers, int fd, struct push_peer *peer,
                        struct error *err) {
    struct ucred credentials;
    socklen_t len = sizeof(credentials);
    *peer = (struct push_peer){.named = peer->named};
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &len) < 0) {
        return error_set(err, -errno, "push: SO_PEERCRED: %m");
    }
    peer->pid = credentials.pid;
    peer->uid = credentials.uid;
    if (peer->pid > 0) {
        peer->process = program_of(peers, peer->pid);
        find_container(peers, fd, peer);
    }
    return 0;
}

/* Whether one container or user can appear as many peers of that kind. */
static bool is_one_of_many(const struct push_peer *peer) {
    return peer->pid == 0 || (peer->gone && !peer->of_our_network) ||
           peer->uid >= PUSH_CLAIM_SUBORDINATE_UIDS;
}

bool push_peer_is_same(const struct push_peer *a, const struct push_peer *b) {
    if (a->container_id != NULL && b->container_id != NULL) {
        return strcmp(a->container_id, b->container_id) == 0;
    }
    if (a->container_id != NULL || b->container_id != NULL) {
        return false;
    }
    return is_one_of_many(a) ? is_one_of_many(b) : !is_one_of_many(b) && a->uid == b->uid;
}

void push_peers_forget(struct push_peers *peers, struct push_peer *peer) {
    if (peer->waiting) {
        stop_waiting(peers, peer);
    }
    forget(peer);
}

/* ---- life ---- */

struct push_peers *push_peers_create(struct loop *loop) {
    struct push_peers *peers = mem_zalloc(1, sizeof(*peers));
    peers->loop = loop;
    peers->step = (struct loop_timer){.due_ns = LOOP_NEVER, .fire = step_fire};
    loop_timer_add(loop, &peers->step);
    return peers;
}

void push_peers_configure(struct push_peers *peers, struct config *config) {
    struct config *old = peers->config;
    peers->config = config_ref(config);
    config_unref(old);
}

void push_peers_destroy(struct push_peers *peers) {
    if (peers == NULL) {
        return;
    }
    loop_timer_remove(peers->loop, &peers->step);
    container_names_destroy(peers->names);
    config_unref(peers->names_config);
    for (size_t i = 0; i < N_KNOWN; i++) {
        forget(&peers->known[i]);
    }
    config_unref(peers->config);
    free(peers);
}
