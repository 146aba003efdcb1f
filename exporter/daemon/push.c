#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/channel/push_json.h"
#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "exporter/core/memory.h"
#include "exporter/daemon/daemon.h"
#include "exporter/daemon/handlers.h"
#include "exporter/daemon/upload.h"

/* Each run is looked up on the loop, in about a microsecond. A knob takes up to 40 of them with
 * thousands of plugins, among which those of its peer are counted. */
enum { MAX_RUNS = 100, MAX_KNOBS = 100 };

/* The owner that an object names: a plugin, a group, or none. */
struct push_target {
    const char *plugin;
    const struct label *group;
    size_t n_group;
};

/* Consecutive objects that name the same owner. */
struct push_run {
    struct push_run *next;
    struct push_target target;
    size_t first; /* of its updates */
    size_t n_knobs;
    struct push_owner *owner;
};

/* A knob that the request declares, or has applied. */
struct push_knob {
    struct push_knob *next;
    const struct push_run *run;
    struct push_message message;
    size_t index; /* of the object */
};

/* A push request being read and applied. */
struct push_request {
    struct http_upload upload;
    struct push_json *reader;
    struct push_store *store;
    struct push_hello hello;
    struct push_run *runs, *last_run; /* in the reader's memory */
    size_t n_runs;
    struct push_knob *knobs, **last_knob; /* in the reader's memory */
    size_t n_knobs;
    size_t index;     /* of the object that is wrong, from 1; 0: none alone */
    const char *name; /* of its metric */
};

static void destroy(struct http_upload *upload) {
    struct push_request *push = CONTAINER_OF(upload, struct push_request, upload);
    push_json_destroy(push->reader);
    free(push);
}

/* ---- reading ---- */

static bool is_unnamed(const struct push_target *target) {
    return target->plugin == NULL && target->group == NULL;
}

static bool is_same(const struct push_target *a, const struct push_target *b) {
    if (a->plugin != NULL || b->plugin != NULL) {
        return a->plugin != NULL && b->plugin != NULL && strcmp(a->plugin, b->plugin) == 0;
    }
    bool same = a->n_group == b->n_group;
    for (size_t i = 0; same && i < a->n_group; i++) {
        same = strcmp(a->group[i].name, b->group[i].name) == 0 &&
               strcmp(a->group[i].value, b->group[i].value) == 0;
    }
    return same;
}

static int check_hello(const struct push_request *push, const struct push_target *target,
                       struct error *err) {
    const char *named = push->hello.plugin;
    if (named == NULL || is_unnamed(target) ||
        (target->plugin != NULL && strcmp(named, target->plugin) == 0)) {
        return 0;
    }
    return error_set(err, -EINVAL, "%s%s: the hello names plugin %s",
                     target->plugin != NULL ? "plugin " : "group",
                     target->plugin != NULL ? target->plugin : "", named);
}

/* Begins a run at update number `first`, unless the last one continues. An object without a name
 * belongs to the owner named before it, or to the first that is named; else to the plugin of the
 * hello or of the query. */
static int name_owner(struct push_request *push, const struct push_target *target, size_t first,
                      struct error *err) {
    int r = check_hello(push, target, err);
    if (r < 0) {
        return r;
    }
    struct push_run *last = push->last_run;
    if (last != NULL && is_unnamed(&last->target)) {
        last->target = *target;
    }
    if (last != NULL && (is_unnamed(target) || is_same(&last->target, target))) {
        return 0;
    }
    if (++push->n_runs > MAX_RUNS) {
        return error_set(err, -EFBIG, "more than %d changes of plugin or group", MAX_RUNS);
    }
    struct arena *arena = &push->reader->arena;
    struct push_run *run = arena_take(arena, sizeof(*run));
    if (run == NULL) {
        return arena_fail(arena, err);
    }
    *run = (struct push_run){.target = *target, .first = first};
    *(last != NULL ? &last->next : &push->runs) = run;
    push->last_run = run;
    return 0;
}

static int take_knob(struct push_request *push, const struct push_message *message, size_t first,
                     struct error *err) {
    if (++push->n_knobs > MAX_KNOBS) {
        return error_set(err, -EFBIG, "more than %d params at once", MAX_KNOBS);
    }
    int r = name_owner(push, &(struct push_target){.plugin = message->plugin}, first, err);
    struct push_knob *knob = r < 0 ? NULL : arena_take(&push->reader->arena, sizeof(*knob));
    if (r == 0 && knob == NULL) {
        return arena_fail(&push->reader->arena, err);
    }
    if (r == 0) {
        *knob =
            (struct push_knob){.run = push->last_run, .message = *message, .index = push->index};
        push->last_run->n_knobs++;
        *push->last_knob = knob;
        push->last_knob = &knob->next;
    }
    return r;
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
        return name_owner(push,
                          &(struct push_target){message->plugin, message->group, message->n_group},
                          first, err);
    case PUSH_MESSAGE_EMPTY:
        return 0;
    default:
        return take_knob(push, message, first, err);
    }
}

static int read_object(struct push_request *push, struct json *json, struct error *err) {
    struct push_message message;
    size_t first = push->reader->n_updates;
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
        r = json_fail(&json, err, "unexpected text after the array");
    }
    if (r == 0 && push->index == 0) {
        r = error_set(err, -EINVAL, "nothing was sent: expected {\"metric\": …}");
    }
    push->index = r < 0 ? push->index : 0;
    push->upload.metric = r < 0 ? push->name : NULL;
    return r;
}

static int read_body(struct http_upload *upload, struct error *err) {
    struct push_request *push = CONTAINER_OF(upload, struct push_request, upload);
    struct buf *body = &upload->request->body;
    push->reader->arena.max = upload->max_memory;
    return read_objects(push, body->data, body->len, err);
}

/* ---- applying ---- */

static int find_group(const struct push_request *push, struct push_run *run, struct error *err) {
    struct push_identity identity = {
        .group = true, .labels = run->target.group, .n_labels = run->target.n_group};
    for (size_t i = 0; i < identity.n_labels; i++) {
        if (strcmp(identity.labels[i].name, "job") == 0) {
            return http_push_owner(push->upload.request, &identity, &run->owner, err);
        }
    }
    push_store_count_refused(push->store, -EINVAL);
    return error_set(err, -EINVAL, "group: expected a job among its labels");
}

/* Finds and claims the owner of a run. */
static int find_owner(const struct push_request *push, const struct http_url *url,
                      struct push_run *run, struct error *err) {
    if (run->target.group != NULL) {
        return find_group(push, run, err);
    }
    const char *plugin = run->target.plugin != NULL   ? run->target.plugin
                         : push->hello.plugin != NULL ? push->hello.plugin
                                                      : http_url_parameter(url, "plugin");
    if (plugin == NULL || plugin[0] == '\0') {
        push_store_count_refused(push->store, -EINVAL);
        return error_set(err, -EINVAL,
                         "no plugin or group: set \"plugin\" in an object, in a hello, or as "
                         "?plugin=NAME; or \"group\" in an object");
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
    return http_push_owner(push->upload.request, &identity, &run->owner, err);
}

static size_t end_of_run(const struct push_run *run, const struct push_batch *batch) {
    return run->next != NULL ? run->next->first : batch->n_updates;
}

static int find_owners(struct push_request *push, const struct http_upload *upload,
                       struct error *err) {
    for (struct push_run *run = push->runs; run != NULL; run = run->next) {
        int r = find_owner(push, &upload->request->url, run, err);
        for (size_t i = run->first; i < end_of_run(run, &upload->batch); i++) {
            push->reader->updates[i].owner = run->owner;
        }
        r = r == 0 ? http_push_check_rate(push->store, run->owner, err) : r;
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

/* Between the trial of the metrics and their application: what is rejected rejects all. */
static int apply_knobs(struct push_request *push, struct error *err) {
    struct knobs *knobs = daemon_of(push->upload.request)->knobs;
    int r = 0;
    for (struct push_knob *knob = push->knobs; knob != NULL && r == 0; knob = knob->next) {
        const struct push_message *message = &knob->message;
        struct push_owner *owner = knob->run->owner;
        if (knob->run->target.group != NULL) {
            r = error_set(err, -EINVAL, "%s: a group has no knobs", message->name);
        } else if (message->kind == PUSH_MESSAGE_DECLARE) {
            r = knobs_declare(knobs, NULL, owner, &message->declared, err);
        } else {
            r = knobs_applied(knobs, knobs_of(knobs, owner), message->name, &message->applied, err);
        }
        push->index = r < 0 ? knob->index : 0;
        push->name = r < 0 ? message->name : push->name;
    }
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
        .updates = push->reader->updates,
        .n_updates = push->reader->n_updates,
    };
    int r = push->runs == NULL ? name_owner(push, &(struct push_target){0}, 0, err) : 0;
    r = r == 0 ? find_owners(push, upload, err) : r;
    upload->owner = push->runs != NULL ? push->runs->owner : NULL;
    if (r == 0 && push->knobs != NULL && batch->n_updates > 0) {
        r = push_store_try(push->store, upload->owner, batch, &upload->failed, err);
        r = r == -EFBIG ? error_set(err, r, "%s, and half of them beside params", err->text) : r;
    }
    r = r == 0 ? apply_knobs(push, err) : r;
    bool is_limited = push_store_limits(push->store)->max_line_rate > 0;
    for (struct push_run *run = push->runs; is_limited && run != NULL && r == 0; run = run->next) {
        size_t n_updates = end_of_run(run, batch) - run->first; /* once all may */
        http_push_spend_rate(push->store, run->owner, n_updates + run->n_knobs);
    }
    return r;
}

/* ---- replying ---- */

/* All groups of the request: none of it was applied. */
static void note_failures(const struct push_request *push) {
    double seconds = clock_wall_seconds();
    for (const struct push_run *run = push->runs; run != NULL; run = run->next) {
        if (run->owner != NULL && run->target.group != NULL) {
            push_owner_note_failure(push->store, run->owner, seconds);
        }
    }
}

static void fail(struct http_request *request, const struct push_request *push, int code,
                 const struct error *err) {
    struct buf body CLEANUP_BUF = {0};
    json_open(&body, NULL, '{');
    json_put_string(&body, "status", "error");
    json_put_string(&body, "error", err->text);
    if (push->index > 0) {
        json_put(&body, "index", "%zu", push->index);
    }
    if (push->index > 0 && push->name != NULL) {
        json_put_string(&body, "metric", push->name);
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
        note_failures(push);
        fail(upload->request, push, code, err);
    } else {
        struct buf data CLEANUP_BUF = {0};
        buf_printf(&data, "{\"applied\":%zu}", batch->n_updates);
        http_json_reply(upload->request, &data);
    }
    for (struct push_run *run = push->runs; run != NULL; run = run->next) {
        push_owner_unref(push->store, run->owner);
    }
}

void http_push_handle(struct http_request *request) {
    struct push_request *push = mem_zalloc(1, sizeof(*push));
    push->reader = push_json_create();
    push->store = daemon_of(request)->push_store;
    push->last_knob = &push->knobs;
    push->upload = (struct http_upload){.request = request,
                                        .read = read_body,
                                        .prepare = prepare,
                                        .finish = finish,
                                        .destroy = destroy};
    http_upload_start(&push->upload);
}
