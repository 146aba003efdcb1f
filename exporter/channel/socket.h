#pragma once

#include <stddef.h>
#include <stdint.h>

#include "exporter/channel/knobs.h"
#include "exporter/core/error.h"
#include "exporter/loop/loop.h"
#include "exporter/push/log.h"
#include "exporter/push/store.h"
#include "exporter/settings/config.h"

/* The plugin channel: Unix stream sockets, one JSON object per line, both ways. */
struct push_socket;

struct push_socket *push_socket_create(struct loop *loop, struct push_store *store,
                                       struct knobs *knobs, struct push_log *log);

/* Asks for the names in the settings, which may take long. */
void push_socket_lookup(const struct settings *settings, struct listen_names *names);

/* Listens on the paths and applies the limits of the settings. An unusable path is a warning. */
void push_socket_configure(struct push_socket *socket, struct config *config);

/* Ends all connections and removes the sockets. Accepts NULL. */
void push_socket_destroy(struct push_socket *socket);

struct push_socket_stats {
    size_t n_connections;
    uint64_t n_refused; /* connections, for lack of room */
    uint64_t n_cut;     /* connections that did not read their replies */
};

struct push_socket_stats push_socket_stats(const struct push_socket *socket);
