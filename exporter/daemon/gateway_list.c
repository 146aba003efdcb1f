#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "exporter/core/json.h"
#include "exporter/core/number.h"
#include "exporter/core/version.h"
#include "exporter/daemon/daemon.h"
#include "exporter/daemon/handlers.h"
#include "exporter/daemon/listing.h"
#include "exporter/push/metrics.h"
#include "exporter/push/store.h"

/* The families of one group, as they are written. */
struct listing {
    struct buf *out;
    const struct push_owner_view *owner;
    uint64_t family; /* that is open; 0: none */
    size_t until;    /* length of `out` at which the turn is over */
};

/* ---- pieces ---- */

/* All values are texts, because of NaN and infinities: as Go writes them, exponents
 * from 1e6 on. */
static void format_number(double value, char out[static NUMBER_MAX_LEN + 1]) {
    size_t len = number_format_canonical(value, out);
    len -= len > 2 && memcmp(out + len - 2, ".0", 2) == 0 ? 2 : 0;
    out[len] = '\0';
}

static void put_number(struct buf *out, const char *key, double value) {
    char text[NUMBER_MAX_LEN + 1];
    format_number(value, text);
    json_put_string(out, key, text);
}

/* Counts are integers there. */
static void put_count(struct buf *out, const char *key, double value) {
    char text[NUMBER_MAX_LEN + 1];
    text[number_format(value, text)] = '\0';
    json_put_string(out, key, text);
}

/* "2026-11-16T11:04:31.012405875Z" */
static void put_time(struct buf *out, const char *key, double seconds) {
    double whole = floor(seconds);
    time_t moment = (time_t)whole;
    struct tm parts;
    char text[32];
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", gmtime_r(&moment, &parts));
    json_put(out, key, "\"%s.%09" PRId64 "Z\"", text, (int64_t)((seconds - whole) * 1e9));
}

static void put_labels(struct buf *out, const struct label *labels, size_t n) {
    for (size_t i = 0; i < n; i++) {
        json_put_string(out, labels[i].name, labels[i].value);
    }
}

/* Begins a series of the group with its labels; an instance is shown even if there is none, as on
 * the page. */
static void open_series(struct buf *out, const struct push_owner_view *owner,
                        const struct label *labels, size_t n) {
    json_open(out, NULL, '{');
    json_open(out, "labels", '{');
    if (label_find(owner->labels, owner->n_labels, "instance") == NULL &&
        label_find(labels, n, "instance") == NULL) {
        json_put_string(out, "instance", "");
    }
    put_labels(out, owner->labels, owner->n_labels);
    put_labels(out, labels, n);
    json_close(out, '}');
}

/* ---- series ---- */

static const char *type_name(enum push_type type) {
    static const char *const names[] = {
        [PUSH_UNSAID] = "UNTYPED", [PUSH_UNTYPED] = "UNTYPED",     [PUSH_COUNTER] = "COUNTER",
        [PUSH_GAUGE] = "GAUGE",    [PUSH_HISTOGRAM] = "HISTOGRAM", [PUSH_SUMMARY] = "SUMMARY",
        [PUSH_RATE] = "GAUGE",
    };
    return names[type];
}

/* Buckets or quantiles by their bound, then count and sum. */
static void put_composed(struct buf *out, const struct push_series_view *series) {
    bool histogram = series->type == PUSH_HISTOGRAM;
    json_open(out, histogram ? "buckets" : "quantiles", '{');
    for (size_t i = 0; i < series->n_bounds; i++) {
        char bound[NUMBER_MAX_LEN + 1];
        format_number(series->bounds[i], bound);
        (histogram ? put_count : put_number)(out, bound, series->values[i]);
    }
    double count = series->values[series->n_bounds];
    if (histogram) {
        put_count(out, "+Inf", count);
    }
    json_close(out, '}');
    put_count(out, "count", count);
    put_number(out, "sum", series->values[series->n_bounds + 1]);
}

static void open_family(struct buf *out, const char *name, const char *type, const char *help,
                        double seconds) {
    json_open(out, name, '{');
    put_time(out, "time_stamp", seconds);
    json_put_string(out, "type", type);
    if (help != NULL && help[0] != '\0') {
        json_put_string(out, "help", help);
    }
    json_open(out, "metrics", '[');
}

static void close_family(struct listing *listing) {
    buf_add_str(listing->out, listing->family != 0 ? "]}" : "");
    listing->family = 0;
}

/* False: the turn is over. */
static bool add_series(const struct push_series_view *series, void *context) {
    struct listing *listing = context;
    struct buf *out = listing->out;
    if (listing->family != series->family) {
        close_family(listing);
        open_family(out, series->name, type_name(series->type), series->help,
                    listing->owner->push_seconds);
        listing->family = series->family;
    }
    open_series(out, listing->owner, series->labels, series->n_labels);
    if (series->type == PUSH_HISTOGRAM || series->type == PUSH_SUMMARY) {
        put_composed(out, series);
    } else {
        put_number(out, "value", series->values[0]);
    }
    json_close(out, '}');
    return out->len < listing->until;
}

/* ---- groups ---- */

/* push_time_seconds and its sibling are not kept as series, but shown as such. */
static void put_moment(const struct listing *listing, const struct metric_desc *desc,
                       double seconds) {
    open_family(listing->out, desc->name, "GAUGE", desc->help, listing->owner->push_seconds);
    open_series(listing->out, listing->owner, NULL, 0);
    put_number(listing->out, "value", seconds);
    buf_add_str(listing->out, "}]}");
}

static void open_group(struct buf *out, const struct push_owner_view *view) {
    bool is_good = view->push_seconds > 0 && view->push_failure_seconds <= view->push_seconds;
    json_open(out, NULL, '{');
    json_open(out, "labels", '{');
    put_labels(out, view->labels, view->n_labels);
    json_close(out, '}');
    json_put_bool(out, "last_push_successful", is_good);
}

static bool add_group(struct daemon *daemon, struct push_owner *owner,
                      struct http_listing_item *item, struct buf *out) {
    struct push_owner_view view = push_owner_view(daemon->push_store, owner);
    struct listing listing = {out, &view, item->place.family, item->until};
    if (item->owner == 0) {
        open_group(out, &view);
    }
    if (push_store_visit_some(daemon->push_store, owner, &item->place, add_series, &listing)) {
        return false;
    }
    close_family(&listing);
    put_moment(&listing, &push_failure_time, view.push_failure_seconds);
    put_moment(&listing, &push_time, view.push_seconds);
    buf_add_char(out, '}');
    return true;
}

static void close_group(const struct http_listing_item *item, struct buf *out) {
    buf_add_str(out, item->place.family != 0 ? "]}}" : "}");
}

static bool is_group(const struct push_owner_view *view) {
    return view->group;
}

void http_gateway_metrics(struct http_request *request) {
    static const struct http_listing_kind groups = {
        .begin = "{\"status\":\"success\",\"data\":[",
        .end = "]}",
        .is_meant = is_group,
        .add = add_group,
        .close = close_group,
    };
    http_listing_reply(request, &groups);
}

void http_gateway_status(struct http_request *request) {
    /* The switches that clients may want to know of. */
    static const char *const flags[] = {"web.enable-admin-api", "web.enable-lifecycle"};
    const struct settings *settings = daemon_of(request)->config->settings;
    struct buf out CLEANUP_BUF = {0};
    json_open(&out, NULL, '{');
    json_put_string(&out, "status", "success");
    json_open(&out, "data", '{');
    json_open(&out, "build_information", '{');
    json_put_string(&out, "version", VERSION_TEXT);
    json_put_string(&out, "revision", version_revision);
    json_put_string(&out, "compiler", VERSION_COMPILER);
    json_close(&out, '}');
    json_open(&out, "flags", '{');
    for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
        json_put_string(&out, flags[i], settings_bool(settings, flags[i]) ? "true" : "false");
    }
    json_close(&out, '}');
    put_time(&out, "start_time", daemon_of(request)->start_wall_seconds);
    buf_add_str(&out, "}}");
    http_reply_buf(request, MHD_HTTP_OK, "application/json", &out);
}
