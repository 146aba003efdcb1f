#include "collectors/container/cri_client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/container/cri_call.h"
#include "collectors/container/cri_message.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/clock.h"

#define ANSWER_NS (10 * CLOCK_NS_PER_SEC)
#define MIN_LIST_NS (CLOCK_NS_PER_SEC / 4)
#define MIN_RETRY_NS CLOCK_NS_PER_SEC
#define MAX_RETRY_NS (60 * CLOCK_NS_PER_SEC)

enum { CALL_PODS, CALL_CONTAINERS, N_CALLS };

/* Runtimes before 2022 know the second only; what is said is the same. */
static const char *const services[][N_CALLS] = {
    {"/runtime.v1.RuntimeService/ListPodSandbox", "/runtime.v1.RuntimeService/ListContainers"},
    {"/runtime.v1alpha2.RuntimeService/ListPodSandbox",
     "/runtime.v1alpha2.RuntimeService/ListContainers"},
};

struct cri_client {
    char **sockets;
    size_t n_sockets;
    container_label_patterns wanted;
    size_t way;        /* which socket and service is tried: the one that has answered */
    size_t n_failures; /* in a row */
    struct cri_call call;
    struct cri_items items; /* sorted by id */
    unsigned generation;
    bool asked;
    int64_t next_ns; /* no call before then */
    int64_t retry_ns;
};

struct cri_client *cri_client_create(char *const *sockets, size_t n_sockets,
                                     container_label_patterns wanted) {
    struct cri_client *client = calloc(1, sizeof(*client));
    if (client == NULL) {
        return NULL;
    }
    cri_call_init(&client->call);
    client->wanted = wanted;
    client->retry_ns = MIN_RETRY_NS;
    client->sockets = calloc(n_sockets, sizeof(char *));
    client->n_sockets = client->sockets != NULL ? n_sockets : 0;
    bool complete = client->sockets != NULL;
    for (size_t i = 0; complete && i < n_sockets; i++) {
        client->sockets[i] = strdup(sockets[i]);
        complete = client->sockets[i] != NULL;
    }
    if (!complete) {
        cri_client_destroy(client);
        return NULL;
    }
    return client;
}

void cri_client_destroy(struct cri_client *client) {
    if (client == NULL) {
        return;
    }
    for (size_t i = 0; i < client->n_sockets; i++) {
        free(client->sockets[i]);
    }
    free(client->sockets);
    cri_call_finish(&client->call);
    cri_items_finish(&client->items);
    free(client);
}

static int compare(const void *a, const void *b) {
    return strcmp(((const struct cri_item *)a)->info.id, ((const struct cri_item *)b)->info.id);
}

static const struct cri_item *find(const struct cri_items *items, const char *id) {
    struct cri_item key = {.info.id = (char *)id};
    return items->n_rows > 0
               ? bsearch(&key, items->rows, items->n_rows, sizeof(*items->rows), compare)
               : NULL;
}

static void sort(struct cri_items *items) {
    if (items->n_rows > 1) {
        qsort(items->rows, items->n_rows, sizeof(*items->rows), compare);
    }
}

/* A container has its pod's name and labels. */
static int join(struct cri_items *containers, const struct cri_items *pods) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < containers->n_rows; i++) {
        struct cri_item *item = &containers->rows[i];
        const struct cri_item *pod = item->sandbox_id != NULL ? find(pods, item->sandbox_id) : NULL;
        r = pod != NULL ? container_info_fill(&item->info, &pod->info) : 0;
    }
    return r;
}

static int move(struct cri_items *from, struct cri_items *to) {
    struct cri_item *rows =
        reallocarray(to->rows, to->n_rows + from->n_rows + 1, sizeof(*to->rows));
    if (rows == NULL) {
        return -ENOMEM;
    }
    if (from->n_rows > 0) {
        memcpy(rows + to->n_rows, from->rows, from->n_rows * sizeof(*rows));
    }
    to->rows = rows;
    to->n_rows += from->n_rows;
    to->cap_rows = to->n_rows + 1;
    from->n_rows = 0;
    return 0;
}

static int take_answers(struct cri_client *client) {
    struct cri_items pods CLEANUP_CRI_ITEMS = {0};
    struct cri_items containers CLEANUP_CRI_ITEMS = {0};
    size_t len;
    const char *text = cri_call_answer(&client->call, CALL_PODS, &len);
    int r = cri_message_pods(text, len, client->wanted, &pods);
    text = cri_call_answer(&client->call, CALL_CONTAINERS, &len);
    r = r == 0 ? cri_message_containers(text, len, client->wanted, &containers) : r;
    sort(&pods);
    r = r == 0 ? join(&containers, &pods) : r;
    r = r == 0 ? move(&containers, &pods) : r;
    if (r < 0) {
        return r;
    }
    sort(&pods);
    cri_items_finish(&client->items);
    client->items = pods;
    pods = (struct cri_items){0};
    client->generation++;
    return 0;
}

/* Tries every way once, then waits 1, 2, 4, … seconds. */
static void fail(struct cri_client *client, int64_t now_ns) {
    size_t n_ways = client->n_sockets * ARRAY_LEN(services);
    cri_call_finish(&client->call);
    client->way = (client->way + 1) % n_ways;
    if (++client->n_failures % n_ways == 0) {
        client->next_ns = now_ns + client->retry_ns;
        client->retry_ns =
            client->retry_ns < MAX_RETRY_NS / 2 ? 2 * client->retry_ns : MAX_RETRY_NS;
    }
}

static void begin(struct cri_client *client, int64_t now_ns) {
    while (now_ns >= client->next_ns) {
        const char *socket = client->sockets[client->way / ARRAY_LEN(services)];
        const char *const *methods = services[client->way % ARRAY_LEN(services)];
        if (cri_call_begin(&client->call, socket, methods, N_CALLS, now_ns + ANSWER_NS) == 0) {
            client->asked = false;
            return;
        }
        fail(client, now_ns);
    }
}

void cri_client_step(struct cri_client *client, int64_t now_ns) {
    if (client->call.fd < 0 && client->asked) {
        begin(client, now_ns);
    }
    if (client->call.fd < 0) {
        return;
    }
    int r = cri_call_step(&client->call, now_ns);
    if (r == 0) {
        return;
    }
    r = r > 0 ? take_answers(client) : r;
    if (r < 0) {
        client->asked = true;
        fail(client, now_ns);
        return;
    }
    cri_call_finish(&client->call);
    client->n_failures = 0;
    client->retry_ns = MIN_RETRY_NS;
    client->next_ns = now_ns + MIN_LIST_NS;
}

const struct container_info *cri_client_find(const struct cri_client *client, const char *id) {
    const struct cri_item *item = find(&client->items, id);
    return item != NULL ? &item->info : NULL;
}

void cri_client_ask(struct cri_client *client) {
    client->asked = true;
}

unsigned cri_client_generation(const struct cri_client *client) {
    return client->generation;
}
