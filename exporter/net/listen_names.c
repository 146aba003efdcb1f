#include "exporter/net/listen_names.h"

#include <errno.h>
#include <grp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/memory.h"
#include "exporter/net/address.h"

/* The result for an address, or for a group. */
struct name {
    char *text;
    bool is_group;
    int code; /* of getaddrinfo; of a group 0 or -ENOENT */
    struct addrinfo *infos;
    gid_t gid;
    struct name *next;
};

struct listen_names {
    struct name *first;
};

static const struct name *find(const struct listen_names *names, bool is_group, const char *text) {
    const struct name *name = names->first;
    while (name != NULL && (name->is_group != is_group || strcmp(name->text, text) != 0)) {
        name = name->next;
    }
    return name;
}

static struct name *add(struct listen_names *names, bool is_group, const char *text) {
    struct name *name = mem_alloc(sizeof(*name));
    *name = (struct name){.text = mem_strdup(text), .is_group = is_group, .next = names->first};
    names->first = name;
    return name;
}

struct listen_names *listen_names_create(void) {
    return mem_zalloc(1, sizeof(struct listen_names));
}

void listen_names_destroy(struct listen_names *names) {
    while (names != NULL && names->first != NULL) {
        struct name *name = names->first;
        names->first = name->next;
        if (name->infos != NULL) {
            freeaddrinfo(name->infos);
        }
        free(name->text);
        free(name);
    }
    free(names);
}

void listen_names_add_host(struct listen_names *names, const char *address) {
    static const struct addrinfo hints = {
        .ai_family = AF_UNSPEC,
        .ai_socktype = SOCK_STREAM,
        .ai_flags = AI_PASSIVE | AI_NUMERICSERV,
    };
    struct http_address parts;
    if (http_address_parse(address, &parts, NULL) == 0 && !parts.is_unix &&
        find(names, false, address) == NULL) {
        struct name *name = add(names, false, address);
        const char *host = parts.host[0] != '\0' ? parts.host : NULL;
        name->code = getaddrinfo(host, parts.port, &hints, &name->infos);
    }
}

void listen_names_add_group(struct listen_names *names, const char *group) {
    if (group[0] != '\0' && find(names, true, group) == NULL) {
        struct name *name = add(names, true, group);
        const struct group *entry = getgrnam(group);
        name->code = entry != NULL ? 0 : -ENOENT;
        name->gid = entry != NULL ? entry->gr_gid : 0;
    }
}

int listen_names_host(const struct listen_names *names, const char *address,
                      const struct addrinfo **ret_infos, struct error *err) {
    const struct name *found = find(names, false, address);
    int code = found != NULL ? found->code : EAI_NONAME;
    if (code != 0) {
        return error_set(err, -EADDRNOTAVAIL, "listen on %s: %s", address, gai_strerror(code));
    }
    *ret_infos = found->infos;
    return 0;
}

int listen_names_group(const struct listen_names *names, const char *group, gid_t *ret_gid) {
    const struct name *found = find(names, true, group);
    if (found == NULL || found->code < 0) {
        return -ENOENT;
    }
    *ret_gid = found->gid;
    return 0;
}
