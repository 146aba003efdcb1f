#include "exporter/http_push.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/container.h"
#include "exporter/daemon.h"
#include "exporter/http_access.h"
#include "exporter/http_json.h"
#include "exporter/http_upload.h"
#include "exporter/push_claim.h"
#include "exporter/push_json.h"

/* Objects one behind the other that name the same plugin. */
struct push_run {
    const char *plugin;
    size_t first; /* of its updates */
    struct push_owner *owner;
};

/* A request while it is being taken. */
struct push_request {
    struct http_upload upload;
    struct push_json *reader;
    struct push_store *store;
    struct push_hello hello;
    struct push_run *runs;
    size_t n_runs, cap_runs;
    size_t index;     /* of the object that is wrong, from 1; 0: none alone */
    const char *name; /* of its metric */
};

static void push_request_destroy(struct push_request *push) {
    for (size_t i = 0; i < push->n_runs; i++) {
        push_owner_unref(push->store, push->runs[i].owner);
    }
    free(push->runs);
    push_json_destroy(push->reader);
    free(push);
}

/* ---- reading ---- */

/* Begins a run of the plugin at update number `first`, unless it goes on. Who names none means the
 * one named before, or the first that is named; else that of the hello or of the query. */
static int name_plugin(struct push_request *push, const char *plugin, size_t first,
                       struct error *err) {
    const char *said = push->hello.plugin;
    if (said != NULL && plugin != NULL && strcmp(said, plugin) != 0) {
        return error_set(err, -EINVAL, "plugin %s: the hello says that all is plugin %s's", plugin,
                         said);
    }
    struct push_run *last = push->n_runs > 0 ? &push->runs[push->n_runs - 1] : NULL;
    if (last != NULL && last->plugin == NULL) {
        last->plugin = plugin;
    }
    if (last != NULL && (plugin == NULL || strcmp(last->plugin, plugin) == 0)) {
        return 0;
    }
    if (push->runs == NULL || push->n_runs == push->cap_runs) {
        size_t cap = push->cap_runs > 0 ? 2 * push->cap_runs : 4;
        struct push_run *runs = reallocarray(push->runs, cap, sizeof(*runs));
        if (runs == NULL) {
            error_set(err, -ENOMEM, "out of memory");
            return -ENOMEM;
        }
        push->runs = runs;
        push->cap_runs = cap;
    }
    push->runs[push->n_runs++] = (struct push_run){.plugin = plugin, .first = first};
    return 0;
}

static int take_message(struct push_request *push, const struct push_message *message, size_t first,
                        struct error *err) {
    switch (message->kind) {
    case PUSH_MESSAGE_HELLO:
        if (push->index > 1) {
            return error_set(err, -EINVAL, "hello: comes first");
        }
        push->hello = message->hello;
        return 0;
    case PUSH_MESSAGE_METRICS:
        return name_plugin(push, message->plugin, first, err);
    case PUSH_MESSAGE_EMPTY:
        return 0;
    default:
        return error_set(err, -EINVAL, "param %s: knobs need the plugin's own connection",
                         message->name);
    }
}

static int read_object(struct push_request *push, struct json *json, struct error *err) {
    struct push_message message;
    size_t first;
    push_json_updates(push->reader, &first);
    push->index++;
    int r = push_json_read(push->reader, json, push->index, &message, err);
    push->name = message.name;
    return r < 0 ? r : take_message(push, &message, first, err);
}

/* One object, several behind each other, or an array of them. */
static int read_objects(struct push_request *push, char *text, size_t len, struct error *err) {
    struct json json = len > 0 ? json_begin(text, len, 1) : (struct json){0};
    bool array = json_take(&json, '[');
    bool first = true;
    int r = 0;
    while (r == 0 && (array || !json_at_end(&json))) {
        r = array ? json_next_element(&json, &first, err) : 1;
        if (r <= 0) {
            break;
        }
        r = read_object(push, &json, err);
    }
    if (r == 0 && !json_at_end(&json)) {
        r = json_fail(&json, err, "more behind the array");
    }
    if (r == 0 && push->index == 0) {
        r = error_set(err, -EINVAL, "nothing was sent: expected {\"metric\": …}");
    }
    push->index = r < 0 ? push->index : 0;
    return r;
}

static int read_body(struct http_upload *upload, struct error *err) {
    struct buf *body = &upload->request->body;
    return read_objects(CONTAINER_OF(upload, struct push_request, upload), body->data, body->len,
                        err);
}

/* ---- applying ---- */

/* Finds whose the run is, and that it may be. */
static int find_owner(const struct push_request *push, const struct http_url *url,
                      struct push_run *run, struct error *err) {
    const char *plugin = run->plugin != NULL          ? run->plugin
                         : push->hello.plugin != NULL ? push->hello.plugin
                                                      : http_url_parameter(url, "plugin");
    if (plugin == NULL || plugin[0] == '\0') {
        push_store_count_refused(push->store, -EINVAL);
        return error_set(err, -EINVAL,
                         "whose metrics are these? say \"plugin\" in an object, in a hello, or as "
                         "?plugin=NAME");
    }
    struct push_identity identity = {
        .plugin = plugin,
        .job = push->hello.job != NULL ? push->hello.job : http_url_parameter(url, "job"),
        .container = push->hello.container,
        .pod = push->hello.pod,
        .namespace = push->hello.namespace,
        .labels = push->hello.labels,
        .n_labels = push->hello.n_labels,
    };
    int r = push_store_owner(push->store, &identity, &run->owner, err);
    if (r < 0) {
        return r;
    }
    r = push_claim(push->store, run->owner, "http", false, err);
    if (r < 0) {
        push_store_count_refused(push->store, r);
    }
    return r;
}

static int prepare(struct http_upload *upload, struct error *err) {
    struct push_request *push = CONTAINER_OF(upload, struct push_request, upload);
    const char *start = push->hello.start;
    struct push_batch *batch = &upload->batch;
    *batch = (struct push_batch){
        .mode = PUSH_MERGE,
        .start = start != NULL ? push_start_number(start) : 0,
    };
    batch->updates = push_json_updates(push->reader, &batch->n_updates);
    int r = push->n_runs == 0 ? name_plugin(push, NULL, 0, err) : 0;
    for (size_t i = 0; i < push->n_runs && r == 0; i++) {
        struct push_run *run = &push->runs[i];
        r = find_owner(push, &upload->request->url, run, err);
        size_t end = i + 1 < push->n_runs ? push->runs[i + 1].first : batch->n_updates;
        push_json_assign(push->reader, run->first, end, run->owner);
    }
    upload->owner = push->n_runs > 0 ? push->runs[0].owner : NULL;
    return r;
}

/* ---- answering ---- */

static void fail(struct http_request *request, const struct push_request *push, int code,
                 const struct error *err) {
    struct buf body CLEANUP_BUF = {0};
    buf_add_str(&body, "{\"status\":\"error\",\"error\":");
    json_add_string(&body, err->text);
    if (push->index > 0) {
        buf_printf(&body, ",\"index\":%zu", push->index);
    }
    if (push->index > 0 && push->name != NULL) {
        buf_add_str(&body, ",\"metric\":");
        json_add_string(&body, push->name);
    }
    buf_add_str(&body, "}\n");
    http_reply_buf(request, http_json_status(code), "application/json", &body);
}

static void finish(struct http_upload *upload, int code, const struct error *err) {
    struct push_request *push = CONTAINER_OF(upload, struct push_request, upload);
    const struct push_batch *batch = &upload->batch;
    if (code < 0) {
        if (upload->failed < batch->n_updates) {
            push->index = batch->updates[upload->failed].index;
            push->name = batch->updates[upload->failed].name;
        }
        fail(upload->request, push, code, err);
    } else {
        struct buf data CLEANUP_BUF = {0};
        buf_printf(&data, "{\"applied\":%zu}", batch->n_updates);
        http_json_reply(upload->request, &data);
    }
    push_request_destroy(push);
}

void http_push_handle(struct http_request *request) {
    if (!http_access_may_write(request)) {
        return;
    }
    struct push_request *push = calloc(1, sizeof(*push));
    struct push_json *reader = push_json_create();
    if (push == NULL || reader == NULL) {
        push_json_destroy(reader);
        free(push);
        http_json_fail(request, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory");
        return;
    }
    push->reader = reader;
    push->store = request->daemon->push_store;
    push->upload = (struct http_upload){
        .request = request, .read = read_body, .prepare = prepare, .finish = finish};
    http_upload_start(&push->upload);
}
