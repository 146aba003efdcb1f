#include "exporter/http/body.h"

#include <errno.h>
#include <stdlib.h>

#include "exporter/http/server_private.h"

enum { SMALL_BODY = 64 << 10 };

static bool has_room(const struct http_server *server, size_t others, size_t room) {
    return room <= server->max_bodies && others <= server->max_bodies - room;
}

static int refuse(const struct http_server *server, size_t others, size_t room, struct error *err) {
    return error_set(err, -EBUSY,
                     "no room for a body of %zu bytes: others take %zu of %zu "
                     "(--web.max-bodies-size), try again later",
                     room, others, server->max_bodies);
}

static int count(struct http_request *request, size_t room, struct error *err) {
    struct http_server *server = request->server;
    size_t others = server->bodies_room - request->body_room;
    if (!has_room(server, others, room)) {
        return refuse(server, others, room, err);
    }
    server->bodies_room = others + room;
    request->body_room = room;
    return 0;
}

int http_body_announce(struct http_request *request, size_t len, struct error *err) {
    const struct http_server *server = request->server;
    request->body_announced = len;
    return len > SMALL_BODY && !has_room(server, server->bodies_room, len)
               ? refuse(server, server->bodies_room, len, err)
               : 0;
}

/* To no more than was counted: a buffer left to itself grows to the next power of two. */
static void grow(struct buf *body, size_t room) {
    char *data = body->failed ? NULL : realloc(body->data, room + 1);
    if (data == NULL) {
        body->failed = true;
        return;
    }
    body->data = data;
    body->cap = room + 1;
}

int http_body_add(struct http_request *request, const char *data, size_t size, struct error *err) {
    struct buf *body = &request->body;
    size_t len = body->len + size;
    if (len > SMALL_BODY && len > request->body_room) {
        size_t announced = request->body_announced;
        size_t max = announced >= len ? announced : request->server->max_body;
        size_t room = 2 * len < max ? 2 * len : max > len ? max : len;
        int r = count(request, room, err);
        if (r < 0) {
            return r;
        }
    }
    if (request->body_room > 0 && request->body_room >= body->cap) {
        grow(body, request->body_room);
    }
    buf_add(body, data, size);
    return 0;
}

void http_body_drop(struct http_request *request) {
    buf_finish(&request->body);
    request->server->bodies_room -= request->body_room;
    request->body_room = 0;
}
