#pragma once

#include "exporter/core/buf.h"
#include "exporter/http_request.h"
#include "exporter/push_store.h"

/* Answers that tell of all owners in the push store. They can become as large as the store, so they
 * are written in turns, between which the loop does other things: an owner is shown as it is at one
 * moment, one beside the other perhaps not. Whoever asks is shown nothing older than the question;
 * those who wait share one text. */

struct http_listing_kind {
    const char *begin, *end;
    bool (*is_meant)(const struct push_owner_view *view);
    void (*add)(struct daemon *daemon, struct push_owner *owner, struct buf *out);
};

/* Answers with the JSON that begins, has all owners that are meant with commas between, and ends as
 * `kind` says. */
void http_listing_reply(struct http_request *request, const struct http_listing_kind *kind);
