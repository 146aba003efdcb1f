#include "exporter/push_listen.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/log.h"
#include "exporter/listen_passed.h"

/* Stands for the sockets that systemd hands over, all together. */
#define PASSED "systemd"

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

static void open_place(struct place *place, const struct settings *settings,
                       const struct listen_names *names) {
    bool passed = strcmp(place->address, PASSED) == 0;
    const struct http_listen_config config = {
        .name = "push",
        .addresses = (const char *const[]){place->address, NULL},
        .passed = passed,
        .mode = settings_string(settings, "push.socket-mode"),
        .group = settings_string(settings, "push.socket-group"),
        .group_option = "push.socket-group",
        .names = names,
    };
    struct error err;
    if (!place->open && !passed) {
        make_directory(place->address + strlen("unix:"));
    }
    place->open = http_listeners_listen(place->listeners, &config, &err) == 0;
    if (!place->open) {
        log_warn("push: %s; plugins cannot connect there (see --push.socket)", err.text);
    }
}

int push_listen_lookup(const struct settings *settings, struct listen_names *names) {
    return listen_names_add_group(names, settings_string(settings, "push.socket-group"));
}

static void use_place(struct push_listen *listen, const char *address,
                      const struct settings *settings, const struct listen_names *names) {
    struct place *place = find(listen, address);
    place = place != NULL ? place : add(listen, address);
    if (place != NULL) {
        place->keep = true;
        open_place(place, settings, names);
    }
}

void push_listen_configure(struct push_listen *listen, const struct settings *settings,
                           const struct listen_names *names) {
    int fds[LISTEN_PASSED_MAX];
    bool passed = listen_passed_find("push", fds) > 0;
    for (struct place *place = listen->places; place != NULL; place = place->next) {
        place->keep = false;
    }
    if (passed) {
        use_place(listen, PASSED, settings, names);
    }
    const char *const *paths = settings_list(settings, "push.socket");
    for (; !passed && *paths != NULL; paths++) {
        struct buf address CLEANUP_BUF = {0};
        buf_printf(&address, "unix:%s", *paths);
        use_place(listen, buf_str(&address), settings, names);
    }
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
    free(listen);
}
