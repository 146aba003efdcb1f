#include "exporter/push_session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "exporter/core/container.h"
#include "exporter/core/number.h"
#include "exporter/push_claim.h"

enum { MAX_CLAIM = 32 };

/* ---- answers ---- */

static bool has_room(struct push_session *session, size_t max) {
    return session->out.len < max && !session->out.failed;
}

static void complain(struct push_session *session, const char *what, const char *name,
                     const char *text) {
    struct buf *out = &session->out;
    if (!has_room(session, PUSH_SESSION_MAX_COMPLAINTS)) {
        return;
    }
    buf_add_str(out, "{\"error\":");
    json_add_string(out, text);
    if (name != NULL) {
        buf_printf(out, ",\"%s\":", what);
        json_add_string(out, name);
    }
    buf_printf(out, ",\"line\":%zu}\n", session->line);
}

static void acknowledge(struct push_session *session, uint64_t seq) {
    char number[NUMBER_MAX_LEN];
    if (!has_room(session, PUSH_SESSION_MAX_OUT)) {
        session->overflowed = true;
        return;
    }
    buf_add(&session->out, "{\"ack\":", 7);
    buf_add(&session->out, number, number_format_u64(seq, number));
    buf_add(&session->out, "}\n", 2);
}

static void send_knob(struct params_link *link, const char *name, const struct param_value *value) {
    struct push_session *session = CONTAINER_OF(link, struct push_session, knobs);
    if (has_room(session, PUSH_SESSION_MAX_OUT)) {
        buf_add_str(&session->out, "{\"param\":");
        json_add_string(&session->out, name);
        buf_add_str(&session->out, ",\"value\":");
        param_value_format(value, &session->out);
        buf_add_str(&session->out, "}\n");
    } else {
        session->overflowed = true;
    }
    if (session->answered != NULL) {
        session->answered(session);
    }
}

/* Counts a refusal of ours; the store counts its own. */
static int counted(struct push_session *session, int code) {
    if (code < 0) {
        push_store_count_refused(session->env->store, code == -ENOENT ? -EINVAL : code);
    }
    return code;
}

/* ---- who it is ---- */

/* What makes a peer the same as the one that used a plugin's name before: its container by the
 * owner's labels, else its user. */
static void describe_claim(const struct push_peer *peer, char out[static MAX_CLAIM]) {
    if (peer->pid == 0) {
        snprintf(out, MAX_CLAIM, "unverified");
    } else if (peer->gone) {
        snprintf(out, MAX_CLAIM, "ended");
    } else if (peer->container_id != NULL) {
        snprintf(out, MAX_CLAIM, "container");
    } else {
        snprintf(out, MAX_CLAIM, "uid %u", (unsigned)peer->uid);
    }
}

static bool has_label(const struct push_owner_view *view, const char *name, const char *value) {
    size_t i = 0;
    while (i < view->n_labels && strcmp(view->labels[i].name, name) != 0) {
        i++;
    }
    bool there = i < view->n_labels;
    return value != NULL ? there && strcmp(view->labels[i].value, value) == 0 : !there;
}

/* One more name for a peer: it must leave some to others. */
static int check_share(const struct push_session *session, struct error *err) {
    const struct push_store *store = session->env->store;
    char who[MAX_CLAIM];
    describe_claim(&session->peer, who);
    size_t n = 0;
    struct push_owner *owner = NULL;
    while ((owner = push_store_next_owner(store, owner)) != NULL) {
        struct push_owner_view view = push_owner_view(store, owner);
        const char *claimant = push_claimant(store, owner);
        n += claimant != NULL && strcmp(claimant, who) == 0 &&
             (session->peer.container_id == NULL ||
              has_label(&view, "container", session->peer.container));
    }
    if (n < session->env->max_peer_plugins) {
        return 0;
    }
    return error_set(err, -E2BIG,
                     "%zu plugins of this container or user are there already "
                     "(push.max-plugins-per-peer)",
                     n);
}

/* Root on this machine may have everything. */
static int claim(struct push_session *session, struct push_owner *owner, struct error *err) {
    char who[MAX_CLAIM];
    describe_claim(&session->peer, who);
    return push_claim(session->env->store, owner, who, strcmp(who, "uid 0") == 0, err);
}

static void leave(struct push_session *session) {
    params_leave(session->env->params, &session->knobs);
    push_owner_unref(session->env->store, TAKE(session->owner));
}

/* Whether the labels of a hello say what only the kernel may say. */
static int check_labels(const struct push_hello *hello, struct error *err) {
    static const char *const known[] = {"container", "namespace", "pod"};
    for (size_t i = 0; i < hello->n_labels; i++) {
        for (size_t k = 0; k < ARRAY_LEN(known); k++) {
            if (strcmp(hello->labels[i].name, known[k]) == 0) {
                return error_set(err, -EINVAL, "label %s: comes from the kernel", known[k]);
            }
        }
    }
    return 0;
}

/* Finds out whose series these are; `hello` is empty where it said none. */
static int become(struct push_session *session, const struct push_hello *hello, struct error *err) {
    const struct push_peer *peer = &session->peer;
    bool believed = peer->pid == 0;
    struct push_identity identity = {
        .plugin = hello->plugin != NULL     ? hello->plugin
                  : peer->container != NULL ? peer->container
                  : peer->process != NULL   ? peer->process
                                            : "unknown",
        .job = hello->job,
        .container = believed ? hello->container : peer->container,
        .pod = believed ? hello->pod : peer->pod,
        .namespace = believed ? hello->namespace : peer->namespace,
        .labels = hello->labels,
        .n_labels = hello->n_labels,
    };
    struct push_store *store = session->env->store;
    struct push_owner *owner;
    int r = believed ? 0 : counted(session, check_labels(hello, err));
    if (r == 0 && push_store_find_owner(store, &identity) == NULL) {
        r = counted(session, check_share(session, err));
    }
    r = r < 0 ? r : push_store_owner(store, &identity, &owner, err);
    if (r < 0) {
        return r;
    }
    if (owner == session->owner) { /* it has one reference already */
        push_owner_unref(store, owner);
        return 0;
    }
    r = counted(session, claim(session, owner, err));
    if (r < 0) {
        push_owner_unref(store, owner);
        return r;
    }
    leave(session);
    session->owner = owner;
    return 0;
}

static int ensure_owner(struct push_session *session, struct error *err) {
    return session->owner != NULL ? 0 : become(session, &(struct push_hello){0}, err);
}

/* ---- what it says ---- */

static int take_metrics(struct push_session *session, const struct push_message *message,
                        struct error *err) {
    if (message->plugin != NULL) {
        return counted(session,
                       error_set(err, -EINVAL, "plugin: say it in a hello on this connection"));
    }
    struct push_batch batch = {.mode = PUSH_MERGE, .start = session->start};
    batch.updates = push_json_updates(session->env->reader, &batch.n_updates);
    return push_store_apply(session->env->store, session->owner, &batch, NULL, err);
}

static int take_message(struct push_session *session, const struct push_message *message,
                        struct error *err) {
    int r = 0;
    if (message->kind == PUSH_MESSAGE_HELLO) {
        r = become(session, &message->hello, err);
        if (r == 0) {
            const char *start = message->hello.start;
            session->start = start != NULL ? push_start_number(start) : 0;
        }
        return r;
    }
    r = message->kind != PUSH_MESSAGE_EMPTY ? ensure_owner(session, err) : 0;
    if (r < 0) {
        return r;
    }
    switch (message->kind) {
    case PUSH_MESSAGE_METRICS:
        return take_metrics(session, message, err);
    case PUSH_MESSAGE_DECLARE:
        r = params_declare(session->env->params, &session->knobs, session->owner,
                           &message->declared, err);
        return counted(session, r);
    case PUSH_MESSAGE_APPLIED:
        r = params_applied(session->env->params, &session->knobs, message->name, &message->applied,
                           err);
        return counted(session, r);
    default:
        return 0;
    }
}

void push_session_line(struct push_session *session, char *text, size_t len) {
    struct push_json *reader = session->env->reader;
    struct json json = json_begin(text, len, ++session->line);
    struct push_message message;
    struct error err;
    if (json_at_end(&json)) {
        return;
    }
    push_json_reset(reader);
    int r = push_json_read(reader, &json, session->line, &message, &err);
    if (r == 0 && !json_at_end(&json)) {
        r = json_fail(&json, &err, "more behind the object; the next begins on a line of its own");
    }
    if (r < 0) {
        push_store_count_refused(session->env->store, -EBADMSG);
    } else {
        r = take_message(session, &message, &err);
    }
    if (r < 0) {
        bool knob = message.kind == PUSH_MESSAGE_DECLARE || message.kind == PUSH_MESSAGE_APPLIED;
        complain(session, knob ? "param" : "metric", message.name, err.text);
    }
    if (message.has_seq) {
        acknowledge(session, message.seq);
    }
}

void push_session_refuse(struct push_session *session, int code, const char *why) {
    session->line++;
    push_store_count_refused(session->env->store, code);
    complain(session, "metric", NULL, why);
}

void push_session_init(struct push_session *session, const struct push_session_env *env) {
    *session = (struct push_session){.env = env, .knobs = {.send = send_knob}};
}

void push_session_finish(struct push_session *session) {
    leave(session);
    buf_finish(&session->out);
}
