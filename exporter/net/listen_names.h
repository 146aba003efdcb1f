#pragma once

#include <netdb.h>
#include <sys/types.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/error.h"

/* The hosts and groups in the settings of listeners. DNS or a directory service may take many
 * seconds, so they are looked up when the settings are read, never on the loop. */
struct listen_names;

struct listen_names *listen_names_create(void);
void listen_names_destroy(struct listen_names *names); /* accepts NULL */

static inline void listen_names_cleanup(struct listen_names **names) {
    listen_names_destroy(*names);
}
#define CLEANUP_LISTEN_NAMES CLEANUP(listen_names_cleanup)

/* Looks up the host of an address such as "host:port"; a Unix socket has none. An unknown name
 * fails only when it is needed: open sockets stay open. */
void listen_names_add_host(struct listen_names *names, const char *address);

/* The same for a group; "" is skipped. */
void listen_names_add_group(struct listen_names *names, const char *group);

/* The result for an address; -EADDRNOTAVAIL if there is none. Lives as long as `names`. */
int listen_names_host(const struct listen_names *names, const char *address,
                      const struct addrinfo **ret_infos, struct error *err);

/* The same for a group; -ENOENT if there is none. */
int listen_names_group(const struct listen_names *names, const char *group, gid_t *ret_gid);
