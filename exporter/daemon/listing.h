#pragma once

#include "exporter/core/buf.h"
#include "exporter/http/request.h"
#include "exporter/push/store.h"

struct daemon;

/* Answers that list all owners of the push store. They can become as large as the store, so they
 * are written in turns, between which the loop does other things: each series is shown as it is at
 * one moment, all of them perhaps not. Nothing in an answer is older than its request; requests
 * that wait share one text. */

/* How far an owner is written. */
struct http_listing_item {
    uint64_t owner; /* its number; 0: not begun */
    struct push_place place;
    size_t until; /* length of the text at which the turn is over */
};

struct http_listing_kind {
    const char *begin, *end;
    bool (*is_meant)(const struct push_owner_view *view);
    /* Writes an owner, or the next piece of it. False: there is more for another turn. */
    bool (*add)(struct daemon *daemon, struct push_owner *owner, struct http_listing_item *item,
                struct buf *out);
    /* Ends an owner that has gone meanwhile. NULL: `add` takes one turn only. */
    void (*close)(const struct http_listing_item *item, struct buf *out);
};

/* Answers with the JSON that begins, has all owners that are meant with commas between, and ends as
 * `kind` says. */
void http_listing_reply(struct http_request *request, const struct http_listing_kind *kind);
