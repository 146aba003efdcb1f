#include "exporter/daemon/listing.h"

#include <stdlib.h>
#include <string.h>

#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "exporter/core/list.h"
#include "exporter/core/memory.h"
#include "exporter/daemon/daemon.h"

/* TURN_BYTES are written per turn, in a millisecond or two; then the loop has REST times as long
 * for other work. */
enum { TURN_BYTES = 128 << 10, REST = 1 };

struct http_listing {
    const struct http_listing_kind *kind;
    struct daemon *daemon;
    struct http_request *waiting;
    struct loop_timer turn;
    struct buf out;
    uint64_t newest;               /* number of its last owner; 0: not begun */
    uint64_t last;                 /* number of the last owner that is written */
    struct http_listing_item item; /* how far the next one is written */
    struct http_listing *next;
};

/* A complete text while it is being sent. */
struct text {
    char *data;
    struct http_sending sending;
    size_t n_refs;
};

/* ---- sending ---- */

static void text_unref(void *context) {
    struct text *text = context;
    if (--text->n_refs == 0) {
        free(text->data);
        free(text);
    }
}

static struct text *text_create(struct http_listing *listing) {
    struct text *text = mem_alloc(sizeof(*text));
    *text = (struct text){.sending.len = listing->out.len, .n_refs = 1};
    text->data = buf_take(&listing->out);
    return text;
}

static void reply(struct http_request *request, struct text *text) {
    struct MHD_Response *response = MHD_create_response_from_buffer_with_free_callback_cls(
        text->sending.len, text->data, text_unref, text);
    if (response == NULL) {
        http_json_fail(request, MHD_HTTP_SERVICE_UNAVAILABLE, "cannot create a response");
        return;
    }
    text->n_refs++;
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
    http_sending_begin(request, &text->sending);
    http_reply(request, MHD_HTTP_OK, response);
}

/* ---- writing ---- */

/* Closes an owner that is partly written, if it is gone. */
static void close_if_gone(struct http_listing *listing, const struct push_owner *owner) {
    const struct push_store *store = listing->daemon->push_store;
    if (listing->item.owner != 0 &&
        (owner == NULL || push_owner_view(store, owner).number != listing->item.owner)) {
        listing->kind->close(&listing->item, &listing->out);
        listing->item.owner = 0;
        listing->item.place = (struct push_place){.newest = listing->newest};
    }
}

/* False: the owner is not complete. */
static bool add_owner(struct http_listing *listing, struct push_owner *owner) {
    const struct http_listing_kind *kind = listing->kind;
    struct push_owner_view view = push_owner_view(listing->daemon->push_store, owner);
    if (kind->is_meant(&view)) {
        if (!kind->add(listing->daemon, owner, &listing->item, &listing->out)) {
            listing->item.owner = view.number;
            return false;
        }
    }
    listing->item.owner = 0;
    listing->item.place = (struct push_place){.newest = listing->newest};
    listing->last = view.number;
    return true;
}

/* Later owners are not listed: new ones could come faster than they are written. */
static bool is_listed(const struct http_listing *listing, const struct push_owner *owner) {
    return owner != NULL &&
           push_owner_view(listing->daemon->push_store, owner).number <= listing->newest;
}

/* False: there is more to write. */
static bool write_some(struct http_listing *listing) {
    const struct push_store *store = listing->daemon->push_store;
    struct buf *out = &listing->out;
    if (listing->newest == 0) {
        listing->newest = push_store_newest(store);
        listing->item.place.newest = listing->newest;
    }
    struct push_owner *owner = push_store_owner_after(store, listing->last);
    close_if_gone(listing, owner);
    listing->item.until = out->len + TURN_BYTES;
    while (is_listed(listing, owner) && out->len < listing->item.until &&
           add_owner(listing, owner)) {
        owner = push_store_next_owner(store, owner);
    }
    if (is_listed(listing, owner)) {
        return false;
    }
    buf_add_str(out, listing->kind->end);
    return true;
}

static void take_turn(struct loop_timer *timer);

static void begin_first(struct daemon *daemon) {
    struct http_listing *listing = daemon->listings;
    if (listing != NULL) {
        listing->turn = (struct loop_timer){.due_ns = 0, .fire = take_turn};
        loop_timer_add(daemon->loop, &listing->turn);
        buf_add_str(&listing->out, "{\"status\":\"success\",\"data\":[");
    }
}

/* Removes the first and starts the next. */
static void end_first(struct daemon *daemon) {
    struct http_listing *listing = daemon->listings;
    daemon->listings = listing->next;
    loop_timer_remove(daemon->loop, &listing->turn);
    buf_finish(&listing->out);
    free(listing);
    begin_first(daemon);
}

static void reply_all(struct http_listing *listing) {
    struct text *text = text_create(listing);
    while (listing->waiting != NULL) {
        struct http_request *request = listing->waiting;
        listing->waiting = request->next_waiting;
        reply(request, text);
    }
    text_unref(text);
}

static void take_turn(struct loop_timer *timer) {
    struct http_listing *listing = CONTAINER_OF(timer, struct http_listing, turn);
    struct daemon *daemon = listing->daemon;
    int64_t begin_ns = clock_monotonic_ns();
    if (write_some(listing)) {
        reply_all(listing);
        end_first(daemon);
        return;
    }
    int64_t end_ns = clock_monotonic_ns();
    timer->due_ns = end_ns + REST * (end_ns - begin_ns);
}

/* ---- requests ---- */

/* A listing that has not begun, so that it will include everything that exists now. */
static struct http_listing *find(const struct daemon *daemon,
                                 const struct http_listing_kind *kind) {
    struct http_listing *listing = daemon->listings;
    while (listing != NULL && (listing->kind != kind || listing->newest > 0)) {
        listing = listing->next;
    }
    return listing;
}

static struct http_listing *enqueue(struct daemon *daemon, const struct http_listing_kind *kind) {
    struct http_listing *listing = mem_alloc(sizeof(*listing));
    *listing = (struct http_listing){.kind = kind, .daemon = daemon};
    *LIST_LINK(&daemon->listings, NULL, next) = listing;
    if (daemon->listings == listing) {
        begin_first(daemon);
    }
    return listing;
}

/* Replies at once if the listing is the first and one turn is enough. */
void http_listing_reply(struct http_request *request, const struct http_listing_kind *kind) {
    struct daemon *daemon = request->context;
    bool is_first = daemon->listings == NULL;
    if (!is_first && !http_hold(request)) {
        return;
    }
    struct http_listing *listing = find(daemon, kind);
    listing = listing != NULL ? listing : enqueue(daemon, kind);
    request->next_waiting = listing->waiting;
    listing->waiting = request;
    if (is_first) {
        take_turn(&listing->turn);
        if (request->status == 0 && !http_hold(request)) {
            end_first(daemon);
        }
    }
}
