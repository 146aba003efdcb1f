#pragma once

#include "exporter/core/buf.h"
#include "exporter/http/request.h"
#include "exporter/push/store.h"

struct daemon;

/* Replies that list all owners of the push store. They can become as large as the store, so they
 * are written in turns, between which the loop does other work: each series is consistent, but the
 * series may be of different moments. Nothing is older than the request; waiting requests share one
 * text. */

/* How far an owner is written. */
struct http_listing_item {
    uint64_t owner; /* its number; 0: not begun */
    struct push_place place;
    size_t until; /* length of the text at which the turn ends */
};

struct http_listing_kind {
    const char *end; /* of the list and the reply */
    bool (*is_meant)(const struct push_owner_view *view);
    /* Writes an owner, or the next piece of it. False: it needs another turn. */
    bool (*add)(struct daemon *daemon, struct push_owner *owner, struct http_listing_item *item,
                struct buf *out);
    /* Closes an owner that is gone. NULL: `add` always takes one turn. */
    void (*close)(const struct http_listing_item *item, struct buf *out);
};

/* Replies with a list of all owners for which `is_meant` is true, separated by commas, and `end`.
 */
void http_listing_reply(struct http_request *request, const struct http_listing_kind *kind);
