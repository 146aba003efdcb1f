#include "exporter/net/listen_names.h"

#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/memory.h"
#include "exporter/net/address.h"

struct host {
    char *address;
    int code; /* of getaddrinfo */
    struct addrinfo *infos;
    struct host *next;
};

struct group_id {
    char *name;
    bool known;
    gid_t gid;
    struct group_id *next;
};

struct listen_names {
    struct host *hosts;
    struct group_id *groups;
};

static const struct host *find_host(const struct listen_names *names, const char *address) {
    const struct host *host = names->hosts;
    while (host != NULL && strcmp(host->address, address) != 0) {
        host = host->next;
    }
    return host;
}

static const struct group_id *find_group(const struct listen_names *names, const char *name) {
    const struct group_id *group = names->groups;
    while (group != NULL && strcmp(group->name, name) != 0) {
        group = group->next;
    }
    return group;
}

struct listen_names *listen_names_create(void) {
    return mem_zalloc(1, sizeof(struct listen_names));
}

void listen_names_destroy(struct listen_names *names) {
    if (names == NULL) {
        return;
    }
    while (names->hosts != NULL) {
        struct host *host = names->hosts;
        names->hosts = host->next;
        if (host->infos != NULL) {
            freeaddrinfo(host->infos);
        }
        free(host->address);
        free(host);
    }
    while (names->groups != NULL) {
        struct group_id *group = names->groups;
        names->groups = group->next;
        free(group->name);
        free(group);
    }
    free(names);
}

void listen_names_add_host(struct listen_names *names, const char *address) {
    struct http_address parts;
    if (http_address_parse(address, &parts, NULL) < 0 || parts.is_unix ||
        find_host(names, address) != NULL) {
        return;
    }
    struct host *host = mem_zalloc(1, sizeof(*host));
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC,
        .ai_socktype = SOCK_STREAM,
        .ai_flags = AI_PASSIVE | AI_NUMERICSERV,
    };
    const char *name = parts.host[0] != '\0' ? parts.host : NULL;
    *host = (struct host){.address = mem_strdup(address), .next = names->hosts};
    host->code = getaddrinfo(name, parts.port, &hints, &host->infos);
    names->hosts = host;
}

void listen_names_add_group(struct listen_names *names, const char *name) {
    if (name[0] == '\0' || find_group(names, name) != NULL) {
        return;
    }
    struct group_id *group = mem_zalloc(1, sizeof(*group));
    const struct group *entry = getgrnam(name);
    *group = (struct group_id){
        .name = mem_strdup(name),
        .known = entry != NULL,
        .gid = entry != NULL ? entry->gr_gid : 0,
        .next = names->groups,
    };
    names->groups = group;
}

int listen_names_host(const struct listen_names *names, const char *address,
                      const struct addrinfo **ret_infos, struct error *err) {
    const struct host *host = find_host(names, address);
    int code = host != NULL ? host->code : EAI_NONAME;
    if (code != 0) {
        return error_set(err, -EADDRNOTAVAIL, "listen on %s: %s", address, gai_strerror(code));
    }
    *ret_infos = host->infos;
    return 0;
}

int listen_names_group(const struct listen_names *names, const char *name, gid_t *ret_gid) {
    const struct group_id *found = find_group(names, name);
    if (found == NULL || !found->known) {
        return -ENOENT;
    }
    *ret_gid = found->gid;
    return 0;
}
