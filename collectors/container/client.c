#include "collectors/container/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "collectors/container/info.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/clock.h"
#include "exporter/core/memory.h"
#include "exporter/net/http_client.h"

#define ANSWER_NS (10 * CLOCK_NS_PER_SEC)
#define MIN_RETRY_NS CLOCK_NS_PER_SEC
#define MAX_RETRY_NS (60 * CLOCK_NS_PER_SEC)
#define MIN_LIST_NS CLOCK_NS_PER_SEC

/* filters={"type":["container"]} */
#define EVENTS_PATH "/events?filters=%7B%22type%22%3A%5B%22container%22%5D%7D"

enum { MAX_LIST_BYTES = 32 << 20, MAX_EVENT_BYTES = 1 << 20 };

struct container_client {
    char *socket;
    container_label_patterns wanted;
    struct container_infos infos;
    unsigned generation;

    struct http_client list;
    struct http_client events;
    bool stale;           /* the list must be requested */
    int64_t next_list_ns; /* not before then */
    int64_t next_events_ns;
    int64_t retry_ns;
};

struct container_client *container_client_create(const char *socket,
                                                 container_label_patterns wanted) {
    struct container_client *client = mem_zalloc(1, sizeof(*client));
    client->wanted = wanted;
    client->socket = mem_strdup(socket);
    client->stale = true;
    client->retry_ns = MIN_RETRY_NS;
    client->list = HTTP_CLIENT_NONE;
    client->events = HTTP_CLIENT_NONE;
    return client;
}

void container_client_destroy(struct container_client *client) {
    if (client == NULL) {
        return;
    }
    container_infos_finish(&client->infos);
    http_client_finish(&client->list);
    http_client_finish(&client->events);
    free(client->socket);
    free(client);
}

bool container_client_serves(const struct container_client *client, uid_t user) {
    struct stat info;
    return stat(client->socket, &info) == 0 && info.st_uid == user;
}

bool container_client_listens(const struct container_client *client) {
    return client->events.fd >= 0;
}

unsigned container_client_generation(const struct container_client *client) {
    return client->generation;
}

static struct container_info *find_info(const struct container_client *client, const char *id) {
    for (size_t i = 0; i < client->infos.n_rows; i++) {
        if (strcmp(client->infos.rows[i].id, id) == 0) {
            return &client->infos.rows[i];
        }
    }
    return NULL;
}

void container_client_forget(struct container_client *client, const char *id) {
    struct container_info *info = find_info(client, id);
    if (info != NULL) {
        container_info_finish(info);
        *info = client->infos.rows[--client->infos.n_rows];
    }
}

const struct container_info *container_client_find(struct container_client *client,
                                                   const char *id) {
    struct container_info *info = find_info(client, id);
    if (info == NULL && client->events.fd < 0 && client->list.fd < 0) {
        client->stale = true; /* no event will announce a container that started since */
    }
    return info;
}

/* A runtime that fails is tried again after 1, 2, 4, … seconds. */
static void back_off(struct container_client *client, int64_t now_ns) {
    client->next_list_ns = now_ns + client->retry_ns;
    client->next_events_ns = client->next_list_ns;
    client->retry_ns = client->retry_ns < MAX_RETRY_NS / 2 ? 2 * client->retry_ns : MAX_RETRY_NS;
}

static void take_list(struct container_client *client) {
    struct container_infos infos CLEANUP_CONTAINER_INFOS = {0};
    struct buf *answer = &client->list.answer;
    if (client->list.status != 200 ||
        container_json_list(answer->data, answer->len, client->wanted, &infos) < 0) {
        return;
    }
    container_infos_finish(&client->infos);
    client->infos = infos;
    infos = (struct container_infos){0};
    client->retry_ns = MIN_RETRY_NS;
    client->generation++;
}

static int begin_list(struct container_client *client, int64_t now_ns) {
    if (!client->stale || now_ns < client->next_list_ns) {
        return 0;
    }
    client->stale = false;
    client->next_list_ns = now_ns + MIN_LIST_NS;
    return http_client_begin(&client->list, client->socket, "GET", "/containers/json", NULL,
                             now_ns + ANSWER_NS);
}

static void step_list(struct container_client *client, int64_t now_ns) {
    int r = client->list.fd < 0 ? begin_list(client, now_ns) : 0;
    if (r == 0 && client->list.fd >= 0) {
        r = http_client_step(&client->list, MAX_LIST_BYTES, now_ns);
    }
    if (r < 0) {
        http_client_finish(&client->list);
        client->stale = true;
        back_off(client, now_ns);
    } else if (client->list.fd >= 0 && client->list.ended) {
        take_list(client);
        http_client_finish(&client->list);
    }
}

static void take_event(struct container_client *client, char *line, size_t len) {
    struct container_info info CLEANUP_CONTAINER_INFO = {0};
    bool gone = false;
    if (container_json_event(line, len, client->wanted, &info, &gone) < 0) {
        return;
    }
    container_client_forget(client, info.id);
    if (!gone) {
        container_infos_add(&client->infos, &info);
        client->generation++;
    }
}

static void take_events(struct container_client *client) {
    struct buf *text = &client->events.answer;
    size_t used = 0;
    const char *newline;
    while (used < text->len &&
           (newline = memchr(text->data + used, '\n', text->len - used)) != NULL) {
        size_t len = (size_t)(newline - text->data) - used;
        take_event(client, text->data + used, len);
        used += len + 1;
    }
    if (used > 0) {
        memmove(text->data, text->data + used, text->len - used);
        buf_truncate(text, text->len - used);
    }
}

static void step_events(struct container_client *client, int64_t now_ns) {
    struct http_client *events = &client->events;
    if (events->fd < 0) {
        if (now_ns < client->next_events_ns) {
            return;
        }
        client->next_events_ns = now_ns + MAX_RETRY_NS;
        client->stale = true;
        /* Events since a moment ago, however long the runtime takes to answer, so that none is
         * missed between them and the list, which is requested afterwards. */
        char path[sizeof(EVENTS_PATH) + 32];
        snprintf(path, sizeof(path), "%s&since=%lld", EVENTS_PATH,
                 (long long)clock_wall_seconds() - 1);
        if (http_client_begin(events, client->socket, "GET", path, NULL, INT64_MAX) < 0) {
            back_off(client, now_ns);
            return;
        }
    }
    if (http_client_step(events, MAX_EVENT_BYTES, now_ns) < 0 || events->ended ||
        (events->status != 0 && events->status != 200)) {
        http_client_finish(events);
        client->next_events_ns = now_ns + client->retry_ns;
    }
}

void container_client_step(struct container_client *client, int64_t now_ns) {
    step_events(client, now_ns);
    step_list(client, now_ns);
    /* A list under way may be older than the events: it comes first. */
    if (client->events.status == 200 && client->list.fd < 0) {
        take_events(client);
    }
}
