#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "exporter/core/json.h"
#include "exporter/core/number.h"
#include "exporter/core/version.h"
#include "exporter/daemon/daemon.h"
#include "exporter/daemon/gateway.h"
#include "exporter/daemon/listing.h"
#include "exporter/push/metrics.h"
#include "exporter/push/store.h"

static const char json_type[] = "application/json";

/* The families of one group, as they are written. */
struct listing {
    struct buf *out;
    const struct push_owner_view *owner;
    uint64_t family; /* that is open; 0: none */
    size_t until;    /* length of `out` at which the turn is over */
};

/* ---- pieces ---- */

static void add_key(struct buf *out, const char *key) {
    json_add_string(out, key);
    buf_add_char(out, ':');
}

/* All values are texts there, so that NaN and infinities can be said: as Go writes them, exponents
 * from 1e6 on. */
static void add_number(struct buf *out, double value) {
    char text[NUMBER_MAX_LEN + 1];
    size_t len = number_format_canonical(value, text);
    len -= len > 2 && memcmp(text + len - 2, ".0", 2) == 0 ? 2 : 0;
    text[len] = '\0';
    json_add_string(out, text);
}

/* Counts are integers there. */
static void add_count(struct buf *out, double value) {
    char text[NUMBER_MAX_LEN + 1];
    text[number_format(value, text)] = '\0';
    json_add_string(out, text);
}

/* "2026-11-16T11:04:31.012405875Z" */
static void add_time(struct buf *out, double seconds) {
    double whole = floor(seconds);
    time_t moment = (time_t)whole;
    struct tm parts;
    char text[32];
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", gmtime_r(&moment, &parts));
    buf_printf(out, "\"%s.%09" PRId64 "Z\"", text, (int64_t)((seconds - whole) * 1e9));
}

static void add_labels(struct buf *out, const struct label *labels, size_t n, bool *first) {
    for (size_t i = 0; i < n; i++) {
        buf_add_str(out, *first ? "" : ",");
        add_key(out, labels[i].name);
        json_add_string(out, labels[i].value);
        *first = false;
    }
}

/* Those of a series of the group; an instance is said even where there is none, as on the page. */
static void add_all_labels(struct buf *out, const struct push_owner_view *owner,
                           const struct label *labels, size_t n) {
    bool first = true;
    buf_add_str(out, "{\"labels\":{");
    if (label_find(owner->labels, owner->n_labels, "instance") == NULL &&
        label_find(labels, n, "instance") == NULL) {
        add_labels(out, &(const struct label){"instance", ""}, 1, &first);
    }
    add_labels(out, owner->labels, owner->n_labels, &first);
    add_labels(out, labels, n, &first);
    buf_add_str(out, "},");
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
static void add_composed(struct buf *out, const struct push_series_view *series) {
    bool histogram = series->type == PUSH_HISTOGRAM;
    add_key(out, histogram ? "buckets" : "quantiles");
    buf_add_char(out, '{');
    for (size_t i = 0; i < series->n_bounds; i++) {
        buf_add_str(out, i > 0 ? "," : "");
        add_number(out, series->bounds[i]);
        buf_add_char(out, ':');
        (histogram ? add_count : add_number)(out, series->values[i]);
    }
    double count = series->values[series->n_bounds];
    if (histogram) {
        buf_add_str(out, series->n_bounds > 0 ? ",\"+Inf\":" : "\"+Inf\":");
        add_count(out, count);
    }
    buf_add_str(out, "},\"count\":");
    add_count(out, count);
    buf_add_str(out, ",\"sum\":");
    add_number(out, series->values[series->n_bounds + 1]);
}

static void open_family(struct buf *out, const char *name, const char *type, const char *help,
                        double seconds) {
    buf_add_char(out, ',');
    add_key(out, name);
    buf_add_str(out, "{\"time_stamp\":");
    add_time(out, seconds);
    buf_printf(out, ",\"type\":\"%s\",", type);
    if (help != NULL && help[0] != '\0') {
        add_key(out, "help");
        json_add_string(out, help);
        buf_add_char(out, ',');
    }
    buf_add_str(out, "\"metrics\":[");
}

static void close_family(struct listing *listing) {
    buf_add_str(listing->out, listing->family != 0 ? "]}" : "");
    listing->family = 0;
}

/* False: the turn is over. */
static bool add_series(const struct push_series_view *series, void *context) {
    struct listing *listing = context;
    struct buf *out = listing->out;
    if (listing->family == series->family) {
        buf_add_char(out, ',');
    } else {
        close_family(listing);
        open_family(out, series->name, type_name(series->type), series->help,
                    listing->owner->push_seconds);
        listing->family = series->family;
    }
    add_all_labels(out, listing->owner, series->labels, series->n_labels);
    if (series->type == PUSH_HISTOGRAM || series->type == PUSH_SUMMARY) {
        add_composed(out, series);
    } else {
        add_key(out, "value");
        add_number(out, series->values[0]);
    }
    buf_add_char(out, '}');
    return out->len < listing->until;
}

/* ---- groups ---- */

/* push_time_seconds and its sibling are not kept as series, but shown as such. */
static void add_moment(const struct listing *listing, const struct metric_desc *desc,
                       double seconds) {
    open_family(listing->out, desc->name, "GAUGE", desc->help, listing->owner->push_seconds);
    add_all_labels(listing->out, listing->owner, NULL, 0);
    buf_add_str(listing->out, "\"value\":");
    add_number(listing->out, seconds);
    buf_add_str(listing->out, "}]}");
}

static void begin_group(struct buf *out, const struct push_owner_view *view) {
    bool first = true;
    bool is_good = view->push_seconds > 0 && view->push_failure_seconds <= view->push_seconds;
    buf_add_str(out, "{\"labels\":{");
    add_labels(out, view->labels, view->n_labels, &first);
    buf_printf(out, "},\"last_push_successful\":%s", is_good ? "true" : "false");
}

static bool add_group(struct daemon *daemon, struct push_owner *owner,
                      struct http_listing_item *item, struct buf *out) {
    struct push_owner_view view = push_owner_view(daemon->push_store, owner);
    struct listing listing = {out, &view, item->place.family, item->until};
    if (item->owner == 0) {
        begin_group(out, &view);
    }
    if (push_store_visit_some(daemon->push_store, owner, &item->place, add_series, &listing)) {
        return false;
    }
    close_family(&listing);
    add_moment(&listing, &push_failure_time, view.push_failure_seconds);
    add_moment(&listing, &push_time, view.push_seconds);
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

/* The switches that clients may want to know of. */
static void add_flags(struct buf *out, const struct settings *settings) {
    static const char *const names[] = {"web.enable-admin-api", "web.enable-lifecycle"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        buf_printf(out, "%s\"%s\":\"%s\"", i > 0 ? "," : "", names[i],
                   settings_bool(settings, names[i]) ? "true" : "false");
    }
}

void http_gateway_status(struct http_request *request) {
    struct buf out CLEANUP_BUF = {0};
    buf_printf(&out,
               "{\"status\":\"success\",\"data\":{\"build_information\":{\"version\":\"%s\","
               "\"revision\":\"%s\",\"compiler\":\"%s\"},\"flags\":{",
               VERSION_TEXT, version_revision, VERSION_COMPILER);
    add_flags(&out, daemon_of(request)->config->settings);
    buf_add_str(&out, "},\"start_time\":");
    add_time(&out, daemon_of(request)->start_wall_seconds);
    buf_add_str(&out, "}}");
    http_reply_buf(request, MHD_HTTP_OK, json_type, &out);
}
