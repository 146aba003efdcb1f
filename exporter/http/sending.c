#include "exporter/http/sending.h"

#include <string.h>

#include "exporter/core/container_of.h"
#include "exporter/core/list.h"
#include "exporter/http/server.h"
#include "exporter/net/network.h"

static void append(struct http_sendings *all, struct http_sending *sending) {
    sending->older = all->youngest;
    sending->younger = NULL;
    *(all->youngest != NULL ? &all->youngest->younger : &all->oldest) = sending;
    all->youngest = sending;
    all->n_bytes += sending->len;
}

static void take_out(struct http_sendings *all, struct http_sending *sending) {
    *(sending->older != NULL ? &sending->older->younger : &all->oldest) = sending->younger;
    *(sending->younger != NULL ? &sending->younger->older : &all->youngest) = sending->older;
    all->n_bytes -= sending->len;
}

static bool is_read_from(const struct http_sending *sending, const struct in6_addr *address) {
    for (const struct http_request *r = sending->readers; r != NULL; r = r->next_reader) {
        if (!network_is_same_peer(&r->client->address, address)) {
            return false;
        }
    }
    return true;
}

static void cut_readers(struct http_server *server, struct http_sending *sending) {
    while (sending->readers != NULL) {
        struct http_request *request = sending->readers;
        http_sending_end(request);
        http_gate_evict(&server->gate, request->client);
        server->sendings.n_cut++;
    }
}

/* Cuts off responses older than `newest` until the rest is within the limit, only those whose
 * readers all have the address (NULL: any). */
static void make_room(struct http_server *server, const struct http_sending *newest,
                      const struct in6_addr *address) {
    struct http_sendings *all = &server->sendings;
    struct http_sending *sending = all->oldest;
    while (sending != newest && all->n_bytes > all->max_bytes) {
        struct http_sending *younger = sending->younger;
        if (address == NULL || is_read_from(sending, address)) {
            cut_readers(server, sending);
        }
        sending = younger;
    }
}

void http_sending_begin(struct http_request *request, struct http_sending *sending) {
    if (sending->len <= HTTP_SENDING_SMALL) {
        return;
    }
    struct http_server *server = request->server;
    bool is_new = sending->readers == NULL;
    request->sending = sending;
    request->next_reader = sending->readers;
    sending->readers = request;
    if (is_new) {
        append(&server->sendings, sending);
        make_room(server, sending, &request->client->address);
        make_room(server, sending, NULL);
    }
}

void http_sending_end(struct http_request *request) {
    struct http_sending *sending = TAKE(request->sending);
    if (sending == NULL) {
        return;
    }
    *LIST_LINK(&sending->readers, request, next_reader) = request->next_reader;
    if (sending->readers == NULL) {
        take_out(&request->server->sendings, sending);
    }
}
