#include "exporter/channel/listen.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "exporter/core/log.h"
#include "exporter/net/listen_passed.h"

/* Stands for the sockets that systemd hands over, all together. */
#define PASSED "systemd"

/* How often what is not open is tried again. */
#define RETRY_NS (5 * CLOCK_NS_PER_SEC)

/* One path. */
struct place {
    char *address; /* "unix:/path", or PASSED */
    struct http_listeners *listeners;
    bool open;
    bool keep;
    struct place *next;
};

struct push_listen {
    struct loop *loop;
    http_accept_function *accepted;
    void *context;
    struct place *places;
    struct config *config;
    struct loop_timer retry;
};

static void place_destroy(struct place *place) {
    http_listeners_destroy(place->listeners);
    free(place->address);
    free(place);
}

static struct place *find(const struct push_listen *listen, const char *address) {
    struct place *place = listen->places;
    while (place != NULL && strcmp(place->address, address) != 0) {
        place = place->next;
    }
    return place;
}

static struct place *add(struct push_listen *listen, const char *address) {
    struct place *place = calloc(1, sizeof(*place));
    if (place == NULL) {
        return NULL;
    }
    place->address = strdup(address);
    if (place->address == NULL ||
        http_listeners_create(listen->loop, listen->accepted, listen->context, &place->listeners,
                              NULL) < 0) {
        place_destroy(place);
        return NULL;
    }
    place->next = listen->places;
    listen->places = place;
    return place;
}

/* Makes the directory that the socket is to be in; what is missing above it is not ours to make. */
static void make_directory(const char *path) {
    const char *slash = strrchr(path, '/');
    char *directory CLEANUP_FREE =
        slash != NULL && slash > path ? strndup(path, (size_t)(slash - path)) : NULL;
    if (directory != NULL) {
        mkdir(directory, 0755);
    }
}

static int open_place(struct place *place, const struct config *config, struct error *err) {
    const struct settings *settings = config->settings;
    bool passed = strcmp(place->address, PASSED) == 0;
    const struct http_listen_config listen_config = {
        .name = "push",
        .addresses = (const char *const[]){place->address, NULL},
        .passed = passed,
        .mode = settings_string(settings, "push.socket-mode"),
        .group = settings_string(settings, "push.socket-group"),
        .group_option = "push.socket-group",
        .names = config->names,
    };
    if (!passed) {
        make_directory(place->address + strlen("unix:"));
    }
    int r = http_listeners_listen(place->listeners, &listen_config, err);
    place->open = r == 0;
    return r;
}

static void say_closed(const struct error *err) {
    log_warn("push: %s; plugins cannot connect there (see --push.socket)", err->text);
}

/* Whoever had a path may have left it, and who tidies up may have removed our socket. That it is
 * open again is logged as it was the first time. */
static void retry_fire(struct loop_timer *timer) {
    struct push_listen *listen = CONTAINER_OF(timer, struct push_listen, retry);
    timer->due_ns = clock_monotonic_ns() + RETRY_NS;
    for (struct place *place = listen->places; place != NULL; place = place->next) {
        struct error err;
        bool was_open = place->open;
        if (was_open && http_listeners_are_there(place->listeners)) {
            continue;
        }
        if (was_open) {
            log_warn("push: %s has been removed, making it anew", place->address);
        }
        if (open_place(place, listen->config, &err) < 0 && was_open) {
            say_closed(&err);
        }
    }
}

int push_listen_lookup(const struct settings *settings, struct listen_names *names) {
    return listen_names_add_group(names, settings_string(settings, "push.socket-group"));
}

static void use_place(struct push_listen *listen, const char *address) {
    struct error err;
    struct place *place = find(listen, address);
    place = place != NULL ? place : add(listen, address);
    if (place == NULL) {
        return;
    }
    place->keep = true;
    if (open_place(place, listen->config, &err) < 0) {
        say_closed(&err);
    }
}

void push_listen_configure(struct push_listen *listen, struct config *config) {
    int fds[LISTEN_PASSED_MAX];
    bool passed = listen_passed_find("push", fds) > 0;
    struct config *old = listen->config;
    listen->config = config_ref(config);
    config_unref(old);
    for (struct place *place = listen->places; place != NULL; place = place->next) {
        place->keep = false;
    }
    if (passed) {
        use_place(listen, PASSED);
    }
    const char *const *paths = settings_list(config->settings, "push.socket");
    for (; !passed && *paths != NULL; paths++) {
        struct buf address CLEANUP_BUF = {0};
        buf_printf(&address, "unix:%s", *paths);
        use_place(listen, buf_str(&address));
    }
    listen->retry.due_ns = clock_monotonic_ns() + RETRY_NS;
    for (struct place **link = &listen->places; *link != NULL;) {
        struct place *place = *link;
        if (place->keep) {
            link = &place->next;
        } else {
            *link = place->next;
            place_destroy(place);
        }
    }
}

size_t push_listen_room(const struct settings *settings) {
    enum { FDS_KEPT = 128 }; /* for everything but connections */
    rlim_t wanted = (rlim_t)settings_int(settings, "push.max-connections");
    rlim_t others = (rlim_t)settings_int(settings, "web.max-connections") + FDS_KEPT;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= wanted + others) {
        return (size_t)wanted;
    }
    limit.rlim_cur = limit.rlim_max < wanted + others ? limit.rlim_max : wanted + others;
    setrlimit(RLIMIT_NOFILE, &limit);
    rlim_t left = limit.rlim_cur > others ? limit.rlim_cur - others : 0;
    if (left >= wanted) {
        return (size_t)wanted;
    }
    log_warn("push: room for %zu connections only: the process may have %zu descriptors",
             (size_t)left, (size_t)limit.rlim_cur);
    return (size_t)left;
}

struct push_listen *push_listen_create(struct loop *loop, http_accept_function *accepted,
                                       void *context) {
    struct push_listen *listen = calloc(1, sizeof(*listen));
    if (listen != NULL) {
        *listen = (struct push_listen){.loop = loop, .accepted = accepted, .context = context};
        listen->retry = (struct loop_timer){.due_ns = LOOP_NEVER, .fire = retry_fire};
        loop_timer_add(loop, &listen->retry);
    }
    return listen;
}

void push_listen_destroy(struct push_listen *listen) {
    if (listen == NULL) {
        return;
    }
    while (listen->places != NULL) {
        struct place *place = listen->places;
        listen->places = place->next;
        place_destroy(place);
    }
    loop_timer_remove(listen->loop, &listen->retry);
    config_unref(listen->config);
    free(listen);
}
