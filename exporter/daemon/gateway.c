#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "exporter/core/json.h"
#include "exporter/core/memory.h"
#include "exporter/core/number.h"
#include "exporter/core/version.h"
#include "exporter/daemon/daemon.h"
#include "exporter/daemon/handlers.h"
#include "exporter/daemon/listing.h"
#include "exporter/daemon/upload.h"
#include "exporter/gateway/body.h"
#include "exporter/gateway/path.h"
#include "exporter/http/access.h"
#include "exporter/metrics/selector.h"
#include "exporter/push/metrics.h"
#include "exporter/push/store.h"
#include "exporter/settings/option.h"
#include "exporter/settings/suggest.h"

static const char path_prefix[] = "/metrics/";

/* Answers a push that could not be read or applied. As a Pushgateway does, a conflict with what is
 * there is an invalid request. */
static void reject(struct http_request *request, int code, const struct error *error) {
    bool invalid = code == -EEXIST || code == -EPROTONOSUPPORT;
    http_reply_text(request, invalid ? MHD_HTTP_BAD_REQUEST : http_json_status(code), "%s",
                    error->text);
}

/* A push to a group. */
struct gateway_push {
    struct http_upload upload;
    struct gateway_path path;
    struct gateway_body body;
    struct exposition_limits limits;
    bool protobuf;
};

static void destroy_push(struct http_upload *upload) {
    struct gateway_push *push = CONTAINER_OF(upload, struct gateway_push, upload);
    gateway_path_finish(&push->path);
    gateway_body_finish(&push->body);
    free(push);
}

/* ---- what goes beyond the Pushgateway ---- */

static int read_ttl(const char *text, int64_t *ret_ttl_ms, struct error *err) {
    static const struct option duration = {.type = OPTION_DURATION};
    int r = option_parse(&duration, text, ret_ttl_ms, err);
    return r < 0 ? error_set(err, r, "ttl: %s", err->text) : 0;
}

static int read_mode(const char *text, bool *ret_add, struct error *err) {
    *ret_add = strcmp(text, "add") == 0;
    if (!*ret_add && strcmp(text, "replace") != 0) {
        return error_set(err, -EINVAL, "mode: expected \"add\" or \"replace\", got \"%s\"", text);
    }
    return 0;
}

/* Proxies and clients add parameters of their own, which a Pushgateway ignores; but one that looks
 * like ours is a typing error. */
static int check_unknown(const char *name, struct error *err) {
    char lower[SUGGEST_MAX_LEN + 1] = "";
    for (size_t i = 0; i < SUGGEST_MAX_LEN && name[i] != '\0'; i++) {
        lower[i] = (char)tolower((unsigned char)name[i]);
    }
    struct suggest suggest;
    suggest_init(&suggest, lower);
    suggest_offer(&suggest, "mode", strlen("mode"));
    suggest_offer(&suggest, "ttl", strlen("ttl"));
    if (suggest.best[0] == '\0') {
        return 0;
    }
    return error_set(err, -EINVAL, "unknown parameter \"%s\", did you mean %s?", name,
                     suggest.best);
}

/* Of a gauge the last value counts; other types that cannot be added must not replace values. */
static int make_add(struct push_update *update, struct error *err) {
    if (update->type == PUSH_COUNTER || update->type == PUSH_HISTOGRAM) {
        update->op = PUSH_INC;
        return 0;
    }
    if (update->type == PUSH_GAUGE) {
        return 0;
    }
    return error_set(err, -EINVAL,
                     "%s: is %s: mode=add takes counters, histograms and gauges, each "
                     "with its TYPE",
                     update->name, update->type == PUSH_SUMMARY ? "a summary" : "untyped");
}

/* Applies the query to the updates; `*ret_mode` decides about the other series of the group. */
static int apply_query(const struct http_request *request, struct gateway_body *body,
                       enum push_mode *ret_mode, struct error *err) {
    int64_t ttl_ms = PUSH_TTL_DEFAULT;
    bool add = false;
    for (size_t i = 0; i < request->url.n_parameters; i++) {
        const struct http_parameter *parameter = &request->url.parameters[i];
        int r = strcmp(parameter->name, "ttl") == 0    ? read_ttl(parameter->value, &ttl_ms, err)
                : strcmp(parameter->name, "mode") == 0 ? read_mode(parameter->value, &add, err)
                                                       : check_unknown(parameter->name, err);
        if (r < 0) {
            return r;
        }
    }
    for (size_t i = 0; i < body->n_updates; i++) {
        struct push_update *update = &body->updates[i];
        update->ttl_ms = ttl_ms;
        int r = add ? make_add(update, err) : 0;
        if (r < 0) {
            return r;
        }
    }
    if (add && request->method == HTTP_PUT) {
        return error_set(err, -EINVAL, "mode=add goes with POST: PUT replaces the whole group");
    }
    *ret_mode = request->method == HTTP_PUT ? PUSH_REPLACE_ALL
                : add                       ? PUSH_MERGE
                                            : PUSH_REPLACE_FAMILIES;
    return 0;
}

/* ---- groups ---- */

static struct push_identity identity_of(const struct gateway_path *path) {
    return (struct push_identity){
        .group = true, .labels = path->labels, .n_labels = path->n_labels};
}

static int read_push(struct http_upload *upload, struct error *err) {
    struct gateway_push *push = CONTAINER_OF(upload, struct gateway_push, upload);
    struct gateway_body *body = &push->body;
    struct buf *text = &upload->request->body;
    push->limits.max_bytes = upload->max_memory;
    int r = push->protobuf ? gateway_protobuf_read(text->data, text->len, &push->limits, body, err)
                           : gateway_text_read(text->data, text->len, &push->limits, body, err);
    if (r == 0) {
        r = apply_query(upload->request, body, &upload->batch.mode, err);
    }
    if (r == 0) {
        gateway_body_drop_labels(body, push->path.labels, push->path.n_labels);
    }
    upload->batch.updates = body->updates;
    upload->batch.n_updates = body->n_updates;
    return r;
}

static int prepare_push(struct http_upload *upload, struct error *err) {
    struct gateway_push *push = CONTAINER_OF(upload, struct gateway_push, upload);
    struct push_store *store = daemon_of(upload->request)->push_store;
    struct push_identity identity = identity_of(&push->path);
    int r = http_push_owner(upload->request, &identity, &upload->owner, err);
    r = r == 0 ? http_push_check_rate(store, upload->owner, err) : r;
    if (r == 0 && push->body.has_timestamps) {
        r = error_set(err, -EINVAL, "pushed metrics must not have timestamps");
        push_store_count_refused(store, r);
    }
    if (r == 0) {
        http_push_spend_rate(store, upload->owner, upload->batch.n_updates);
    }
    return r;
}

/* A push that could be read sets push_failure_time_seconds of its group. */
static void note_failure(struct http_upload *upload, int code) {
    const struct gateway_push *push = CONTAINER_OF(upload, struct gateway_push, upload);
    struct push_store *store = daemon_of(upload->request)->push_store;
    struct push_identity identity = identity_of(&push->path);
    if (upload->owner != NULL || (code == -EEXIST && http_push_owner(upload->request, &identity,
                                                                     &upload->owner, NULL) == 0)) {
        push_owner_note_failure(store, upload->owner, clock_wall_seconds());
    }
}

static void finish_push(struct http_upload *upload, int code, const struct error *err) {
    struct http_request *request = upload->request;
    if (code < 0) {
        note_failure(upload, code);
        reject(request, code, err);
    } else {
        struct buf empty = {0};
        http_reply_buf(request, MHD_HTTP_OK, "text/plain; charset=utf-8", &empty);
    }
    push_owner_unref(daemon_of(request)->push_store, upload->owner);
}

/* Takes the path over. */
static void take_push(struct http_request *request, struct gateway_path *path) {
    const struct push_limits *limits = push_store_limits(daemon_of(request)->push_store);
    struct gateway_push *push = mem_zalloc(1, sizeof(*push));
    push->limits = (struct exposition_limits){
        .max_families = limits->max_owner_series,
        .max_samples = limits->max_owner_series * (PUSH_MAX_BUCKETS + 3),
        .max_labels = PUSH_MAX_LABELS + 1, /* le or quantile */
        .max_name_len = PUSH_MAX_NAME,
        .max_value_len = PUSH_MAX_VALUE,
    };
    push->path = *path;
    *path = (struct gateway_path){0};
    push->upload = (struct http_upload){.request = request,
                                        .read = read_push,
                                        .prepare = prepare_push,
                                        .finish = finish_push,
                                        .destroy = destroy_push};
    if (gateway_type_parse(http_header(request, MHD_HTTP_HEADER_CONTENT_TYPE), &push->protobuf,
                           &push->upload.error) < 0) {
        push->upload.code = -EBADMSG;
    }
    http_upload_start(&push->upload);
}

/* A slash within a value would be taken for one between labels, so that the push would go to
 * another group. False: the request has got a reply. */
static bool read_path(struct http_request *request, struct gateway_path *ret_path) {
    const struct http_url *url = &request->url;
    struct error error;
    int r = url->has_encoded_slash
                ? error_set(&error, -EINVAL,
                            "%%2F in the path: use LABEL@base64/… for a value with a slash")
                : gateway_path_parse(url->path + strlen(path_prefix), ret_path, &error);
    if (r < 0) {
        http_upload_refused(request, -EBADMSG, error.text);
        reject(request, r, &error);
    }
    return r == 0;
}

static void delete_group(struct http_request *request) {
    struct gateway_path path CLEANUP_GATEWAY_PATH = {0};
    if (!read_path(request, &path)) {
        return;
    }
    struct push_identity identity = identity_of(&path);
    struct push_owner *owner = push_store_find_owner(daemon_of(request)->push_store, &identity);
    if (owner != NULL) {
        push_store_remove_owner(daemon_of(request)->push_store, owner);
    }
    http_reply_text(request, MHD_HTTP_ACCEPTED, "deleted");
}

void http_gateway_push(struct http_request *request) {
    struct gateway_path path CLEANUP_GATEWAY_PATH = {0};
    if (request->method == HTTP_DELETE) {
        delete_group(request);
    } else if (read_path(request, &path)) {
        take_push(request, &path);
    }
}

/* ---- deleting in turns ---- */

/* How long the selectors of one request may take with all series, and how many regular expressions
 * they may have: all of them are tried on one series before the loop has its turn. */
#define MAX_TRIAL_NS (200 * CLOCK_NS_PER_MS)
enum { MAX_REGEXES = 8 };

struct deletion {
    struct http_request *request;
    struct selector *selectors[HTTP_URL_MAX_PARAMETERS];
    size_t n_selectors; /* 0: all series are deleted */
    bool is_tried;      /* the selectors were tried on all series */
    bool is_costly;     /* they take too long: nothing is deleted */
    int64_t trial_ns;
    size_t n_deleted;
    struct push_cursor cursor;
    struct loop_timer turn;
};

static void deletion_destroy(struct deletion *deletion) {
    for (size_t i = 0; i < deletion->n_selectors; i++) {
        selector_destroy(deletion->selectors[i]);
    }
    free(deletion);
}

static bool is_selected(const struct push_series_view *series, void *context) {
    struct deletion *deletion = context;
    const struct push_store *store = daemon_of(deletion->request)->push_store;
    struct push_owner_view owner = push_owner_view(store, series->owner);
    int r = deletion->n_selectors == 0;
    for (size_t i = 0; i < deletion->n_selectors && r == 0; i++) {
        r = selector_match(deletion->selectors[i], series->name, owner.labels, owner.n_labels,
                           series->labels, series->n_labels);
    }
    deletion->is_costly |= r < 0 && !deletion->is_tried;
    return r == 1;
}

/* Before anything is deleted the selectors are tried on all series: regular expressions can take
 * long with long values, many matchers with many series. */
static bool try_selectors(const struct push_series_view *series, void *context) {
    is_selected(series, context);
    return false;
}

static void reply_deleted(const struct deletion *deletion) {
    struct buf data CLEANUP_BUF = {0};
    if (deletion->n_selectors == 0) {
        http_reply_text(deletion->request, MHD_HTTP_ACCEPTED, "wiped");
    } else if (deletion->is_costly) {
        http_json_fail(deletion->request, MHD_HTTP_BAD_REQUEST,
                       "the selectors take too long with the series that are there: use simpler "
                       "ones, or fewer at a time");
    } else {
        buf_printf(&data, "{\"deleted\":%zu}", deletion->n_deleted);
        http_json_reply(deletion->request, &data);
    }
}

static void end_deletion(struct deletion *deletion) {
    struct daemon *daemon = deletion->request->context;
    loop_timer_remove(daemon->loop, &deletion->turn);
    push_cursor_end(daemon->push_store, &deletion->cursor);
    reply_deleted(deletion);
    deletion_destroy(deletion);
}

static bool try_some(struct push_store *store, struct deletion *deletion) {
    int64_t begin_ns = clock_monotonic_ns();
    bool more = push_store_remove_some(store, &deletion->cursor, 1, try_selectors, deletion,
                                       &deletion->n_deleted);
    deletion->trial_ns += clock_monotonic_ns() - begin_ns;
    deletion->is_costly |= deletion->trial_ns > MAX_TRIAL_NS;
    if (!more) {
        push_cursor_end(store, &deletion->cursor);
        push_cursor_begin(store, &deletion->cursor);
        deletion->is_tried = true;
    }
    return !deletion->is_costly;
}

/* Looks at one series; false: there is no more to do. */
static bool delete_some(struct push_store *store, struct deletion *deletion) {
    return deletion->is_tried ? push_store_remove_some(store, &deletion->cursor, 1, is_selected,
                                                       deletion, &deletion->n_deleted)
                              : try_some(store, deletion);
}

static void delete_turn(struct loop_timer *timer) {
    struct deletion *deletion = CONTAINER_OF(timer, struct deletion, turn);
    struct daemon *daemon = deletion->request->context;
    bool more;
    do {
        more = delete_some(daemon->push_store, deletion);
    } while (more && !loop_turn_is_long(daemon->loop));
    timer->due_ns = 0;
    if (!more) {
        end_deletion(deletion);
    }
}

static struct deletion *deletion_create(struct http_request *request) {
    struct deletion *deletion = mem_zalloc(1, sizeof(*deletion));
    deletion->request = request;
    deletion->turn = (struct loop_timer){.due_ns = 0, .fire = delete_turn};
    return deletion;
}

static void begin_deletion(struct deletion *deletion) {
    struct daemon *daemon = deletion->request->context;
    if (!http_hold(deletion->request)) {
        deletion_destroy(deletion);
        return;
    }
    deletion->is_tried = deletion->n_selectors == 0;
    push_cursor_begin(daemon->push_store, &deletion->cursor);
    loop_timer_add(daemon->loop, &deletion->turn);
}

bool http_gateway_may_wipe(struct http_request *request) {
    if (settings_bool(daemon_of(request)->config->settings, "web.enable-admin-api")) {
        return http_access_may_write(request);
    }
    http_reply_text(request, MHD_HTTP_FORBIDDEN,
                    "wiping is not allowed: start with --web.enable-admin-api");
    return false;
}

void http_gateway_wipe(struct http_request *request) {
    begin_deletion(deletion_create(request));
}

/* ---- deleting by selector ---- */

/* Reads all selectors before anything is deleted. */
static int read_selectors(const struct http_url *url, struct deletion *deletion,
                          struct error *err) {
    size_t n_regexes = 0;
    for (size_t i = 0; i < url->n_parameters; i++) {
        const struct http_parameter *parameter = &url->parameters[i];
        if (strcmp(parameter->name, "match[]") != 0) {
            return error_set(err, -EINVAL, "unknown parameter \"%s\": match[] is known",
                             parameter->name);
        }
        struct selector **selector = &deletion->selectors[deletion->n_selectors];
        int r = selector_create(parameter->value, selector, err);
        if (r < 0) {
            return r;
        }
        deletion->n_selectors++;
        n_regexes += selector_n_regexes(*selector);
        if (n_regexes > MAX_REGEXES) {
            return error_set(err, -EINVAL, "at most %d regular expressions in one request",
                             MAX_REGEXES);
        }
    }
    return deletion->n_selectors > 0
               ? 0
               : error_set(err, -EINVAL, "no selector: use ?match[]=fps{plugin=\"x\"}");
}

void http_gateway_delete(struct http_request *request) {
    struct error error;
    struct deletion *deletion = deletion_create(request);
    int r = read_selectors(&request->url, deletion, &error);
    if (r == 0) {
        begin_deletion(deletion);
    } else {
        deletion_destroy(deletion);
        http_json_fail(request, http_json_status(r), error.text);
    }
}

/* ---- lists: pieces of JSON ---- */

/* The families of one group, as they are written. */
struct listing {
    struct buf *out;
    const struct push_owner_view *owner;
    uint64_t family; /* that is open; 0: none */
    size_t until;    /* length of `out` at which the turn is over */
};

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

/* ---- listed series ---- */

static const char *type_name(enum push_type type) {
    static const char *const names[] = {
        [PUSH_UNSAID] = "UNTYPED", [PUSH_UNTYPED] = "UNTYPED",     [PUSH_COUNTER] = "COUNTER",
        [PUSH_GAUGE] = "GAUGE",    [PUSH_HISTOGRAM] = "HISTOGRAM", [PUSH_SUMMARY] = "SUMMARY",
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

/* ---- listed groups ---- */

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
