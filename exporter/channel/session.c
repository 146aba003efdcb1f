#include "exporter/channel/session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "exporter/core/number.h"
#include "exporter/push/claim.h"

/* How long a client with a rejected hello stays connected. It reconnects with the same hello, which
 * is accepted if the name or memory has become free. */
#define PATIENCE_NS (10 * CLOCK_NS_PER_SEC)

/* ---- the log ---- */

/* Names the client without its pid, so that one that reconnects again and again looks the same. */
static void log_refused(const struct push_session *session, int code, const char *name,
                        const char *why) {
    const struct push_peer *peer = &session->peer;
    struct buf source CLEANUP_BUF = {0};
    if (session->env->log == NULL) {
        return;
    }
    if (session->owner != NULL) {
        buf_add_str(&source, push_owner_view(session->env->store, session->owner).name);
    } else {
        buf_printf(&source, "process %s", peer->process != NULL ? peer->process : "unknown");
    }
    if (peer->container != NULL) {
        buf_printf(&source, " in %s", peer->container);
    } else if (peer->pid != 0) {
        buf_printf(&source, " of uid %u", (unsigned)peer->uid);
    }
    push_log_refused(session->env->log, buf_str(&source), code, name, why);
}

/* ---- answers ---- */

static void complain(struct push_session *session, const char *what, const char *name,
                     const char *text) {
    struct buf *out = &session->out;
    if (session->out.len >= PUSH_SESSION_MAX_COMPLAINTS) {
        return;
    }
    buf_add_char(out, '{');
    json_put_string(out, "error", text);
    if (name != NULL) {
        json_put_string(out, what, name);
    }
    json_put(out, "line", "%zu", session->line);
    buf_add_str(out, "}\n");
}

static void note_not_reading(struct push_session *session) {
    if (session->must_end != PUSH_SESSION_NOT_READING) {
        session->must_end = PUSH_SESSION_NOT_READING;
        log_refused(session, -E2BIG, NULL, "not reading its replies; disconnected");
    }
}

static void acknowledge(struct push_session *session, uint64_t seq) {
    char number[NUMBER_MAX_LEN];
    if (session->out.len >= PUSH_SESSION_MAX_OUT) {
        note_not_reading(session);
        return;
    }
    buf_add(&session->out, "{\"ack\":", 7);
    buf_add(&session->out, number, number_format_u64(seq, number));
    buf_add(&session->out, "}\n", 2);
}

/* Whether the session still has its owner: a better known peer may have claimed it. */
static bool owns(const struct push_session *session) {
    return session->claim == push_claim_number(session->owner);
}

static void send_knob(struct knobs_link *link, const char *name, const struct knob_value *value) {
    struct push_session *session = CONTAINER_OF(link, struct push_session, knobs);
    if (!owns(session)) {
        return;
    }
    if (session->out.len < PUSH_SESSION_MAX_OUT) {
        buf_add_char(&session->out, '{');
        json_put_string(&session->out, "param", name);
        knob_value_put(&session->out, "value", value);
        buf_add_str(&session->out, "}\n");
    } else {
        note_not_reading(session);
    }
    if (session->answered != NULL) {
        session->answered(session);
    }
}

/* Counts a rejection of the session; the store counts its own. */
static int counted(struct push_session *session, int code) {
    if (code < 0) {
        push_store_count_refused(session->env->store, code);
    }
    return code;
}

/* ---- identity ---- */

/* A peer is the same as before by its container, else by its user. Whether a process that pushes
 * once and ends is seen alive is chance, so one outside of containers' networks counts by its user.
 */
static struct push_claim claim_of(const struct push_peer *peer) {
    if (peer->pid == 0) {
        return (struct push_claim){.kind = PUSH_CLAIM_UNVERIFIED};
    }
    bool may_be_contained = peer->gone && !peer->of_our_network;
    if (!may_be_contained && peer->container_id != NULL) {
        return (struct push_claim){.kind = PUSH_CLAIM_CONTAINER};
    }
    return (struct push_claim){.kind = may_be_contained ? PUSH_CLAIM_ENDED : PUSH_CLAIM_UID,
                               .has_uid = true,
                               .uid = peer->uid};
}

/* Root on this machine may take any owner, unless the process may be in a container. */
static int claim(struct push_session *session, struct push_owner *owner, struct error *err) {
    const struct push_peer *peer = &session->peer;
    struct push_claim own = claim_of(peer);
    bool may_take =
        own.kind == PUSH_CLAIM_UID && own.uid == 0 && !peer->gone && peer->container == NULL;
    int r = push_claim(session->env->store, owner, &own, may_take, err);
    session->claim = r == 0 ? push_claim_number(owner) : session->claim;
    return r;
}

static void leave(struct push_session *session) {
    knobs_leave(&session->knobs);
    push_owner_unref(session->env->store, TAKE(session->owner));
}

/* Finds the owner of the session's series; `hello` is empty if none was sent. */
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
    struct push_claim own = claim_of(peer);
    for (size_t i = 0; !believed && i < hello->n_labels; i++) {
        const char *name = hello->labels[i].name;
        if (push_label_is_identity(name)) {
            return counted(session,
                           error_set(err, -EINVAL, "label %s: comes from the kernel", name));
        }
    }
    int r = counted(session, push_claim_check(store, &identity, &own, err));
    r = r < 0 ? r : push_store_owner(store, &identity, &owner, err);
    if (r < 0) {
        return r;
    }
    r = counted(session, claim(session, owner, err));
    if (r < 0 || owner == session->owner) { /* which has its reference already */
        push_owner_unref(store, owner);
        return r;
    }
    leave(session);
    session->owner = owner;
    return 0;
}

/* 0: none. */
static void begin_start(struct push_session *session, uint64_t start) {
    struct push_store *store = session->env->store;
    if (start != 0) {
        push_store_start_enter(store, start);
    }
    if (session->start != 0) {
        push_store_start_leave(store, session->start);
    }
    session->start = start;
}

static int take_hello(struct push_session *session, const struct push_hello *hello,
                      struct error *err) {
    int r = hello->plugin != NULL
                ? become(session, hello, err)
                : counted(session, error_set(err, -EINVAL, "hello: has no plugin"));
    if (r == 0) {
        begin_start(session, hello->start != NULL ? push_start_number(hello->start) : 0);
        session->is_refused = false;
    }
    return r;
}

static void note_refusal(struct push_session *session) {
    leave(session);
    session->is_refused = true;
    session->refused_ns = clock_monotonic_ns();
}

/* Claims the owner again if another peer has claimed it; if that fails, the session has lost it. */
static int keep_owner(struct push_session *session, struct error *err) {
    if (owns(session)) {
        return 0;
    }
    int r = counted(session, claim(session, session->owner, err));
    if (r < 0) {
        note_refusal(session);
    }
    return r;
}

void push_session_check(struct push_session *session) {
    struct error err;
    int r = session->owner != NULL ? keep_owner(session, &err) : 0;
    if (r < 0) {
        log_refused(session, r, NULL, err.text);
        complain(session, "metric", NULL, err.text);
    }
}

/* Ensures that the next line has an owner, and that it is still the session's. */
static int ensure_owner(struct push_session *session, struct error *err) {
    if (session->is_refused) {
        bool too_long = clock_monotonic_ns() - session->refused_ns > PATIENCE_NS;
        session->must_end = too_long ? PUSH_SESSION_REFUSED : session->must_end;
        return counted(session, error_set(err, -EACCES, "hello rejected; send a new one"));
    }
    if (session->owner == NULL) {
        return become(session, &(struct push_hello){0}, err);
    }
    return keep_owner(session, err);
}

/* ---- messages ---- */

static int take_metrics(struct push_session *session, const struct push_message *message,
                        struct error *err) {
    if (message->group != NULL) {
        return counted(session, error_set(err, -EINVAL, "group: groups are pushed over HTTP"));
    }
    struct push_batch batch = {
        .mode = PUSH_MERGE,
        .start = session->start,
        .updates = session->env->reader->updates,
        .n_updates = session->env->reader->n_updates,
    };
    return push_store_apply(session->env->store, session->owner, &batch, NULL, err);
}

static int take_message(struct push_session *session, const struct push_message *message,
                        struct error *err) {
    if (message->kind == PUSH_MESSAGE_HELLO) {
        return take_hello(session, &message->hello, err);
    }
    int r = message->kind != PUSH_MESSAGE_EMPTY ? ensure_owner(session, err) : 0;
    if (r < 0 || message->kind == PUSH_MESSAGE_EMPTY) {
        return r;
    }
    if (message->plugin != NULL) {
        return counted(session,
                       error_set(err, -EINVAL, "plugin: name it in a hello on this connection"));
    }
    if (message->kind == PUSH_MESSAGE_METRICS) {
        return take_metrics(session, message, err);
    }
    r = message->kind == PUSH_MESSAGE_DECLARE
            ? knobs_declare(session->env->knobs, &session->knobs, session->owner,
                            &message->declared, err)
            : knobs_applied(session->env->knobs, session->knobs.plugin, message->name,
                            &message->applied, err);
    return counted(session, r);
}

/* Neither a plugin with many connections nor a connection with many names may send more. */
int64_t push_session_wait_ns(struct push_session *session, size_t max_rate) {
    if (max_rate == 0) {
        return 0;
    }
    int64_t now_ns = clock_monotonic_ns();
    struct push_allowance *const allowances[] = {
        &session->allowance,
        session->owner != NULL ? push_owner_allowance(session->owner) : NULL,
    };
    int64_t wait_ns = 0;
    for (size_t i = 0; i < ARRAY_LEN(allowances) && allowances[i] != NULL; i++) {
        int64_t ns = push_allowance_wait_ns(allowances[i], max_rate, now_ns);
        wait_ns = ns > wait_ns ? ns : wait_ns;
    }
    for (size_t i = 0; wait_ns == 0 && i < ARRAY_LEN(allowances) && allowances[i] != NULL; i++) {
        push_allowance_spend(allowances[i], max_rate, 1);
    }
    return wait_ns;
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
        r = json_fail(&json, &err,
                      "unexpected text after the object; send the next on its own line");
    }
    if (r < 0) {
        r = -EBADMSG;
        push_store_count_refused(session->env->store, r);
    } else {
        r = take_message(session, &message, &err);
    }
    if (r < 0) {
        log_refused(session, r, message.name, err.text);
        if (message.kind == PUSH_MESSAGE_HELLO) {
            note_refusal(session);
        }
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
    log_refused(session, code, NULL, why);
    complain(session, "metric", NULL, why);
}

void push_session_init(struct push_session *session, const struct push_session_env *env) {
    *session = (struct push_session){.env = env, .knobs = {.send = send_knob}};
}

void push_session_finish(struct push_session *session) {
    begin_start(session, 0);
    leave(session);
    buf_finish(&session->out);
}

/* ---- lines ---- */

enum { KEPT_BYTES = 4 * 1024 };

static bool offer_line(struct push_lines *lines, char *text, size_t len) {
    if (lines->skipping) { /* its end: the next is another line */
        lines->skipping = false;
    } else if (len > lines->max_line) {
        lines->too_long(lines);
    } else {
        lines->held = !lines->take(lines, text, len);
    }
    return !lines->held;
}

/* Takes the whole lines; returns how many bytes those were that were taken. */
static size_t take_lines(struct push_lines *lines, char *data, size_t len) {
    char *line = data;
    char *end = data + len;
    char *newline;
    while (line < end && (newline = memchr(line, '\n', (size_t)(end - line))) != NULL &&
           offer_line(lines, line, (size_t)(newline - line))) {
        line = newline + 1;
    }
    return (size_t)(line - data);
}

static void take_rest(struct push_lines *lines) {
    struct buf *rest = &lines->rest;
    size_t n = take_lines(lines, rest->data, rest->len);
    memmove(rest->data, rest->data + n, rest->len - n);
    buf_truncate(rest, rest->len - n);
}

/* Handles text without a newline, once no line is before it. */
static void take_end(struct push_lines *lines) {
    struct buf *rest = &lines->rest;
    if (!lines->held && lines->ended && rest->len > 0 && offer_line(lines, rest->data, rest->len)) {
        buf_reset(rest);
    }
    if (!lines->held && rest->len > lines->max_line) {
        lines->too_long(lines);
        lines->skipping = true;
        buf_reset(rest);
    }
    if (rest->len == 0 && rest->cap > KEPT_BYTES) {
        buf_finish(rest);
    }
}

/* Lines are taken in place. Only the end of a line that began earlier is copied. */
void push_lines_add(struct push_lines *lines, char *data, size_t len) {
    size_t n = 0;
    if (lines->rest.len > 0) {
        const char *newline = memchr(data, '\n', len);
        n = newline != NULL ? (size_t)(newline - data) + 1 : len;
        buf_add(&lines->rest, data, n);
        if (newline != NULL) {
            take_rest(lines);
        }
    }
    if (!lines->held) {
        n += take_lines(lines, data + n, len - n);
    }
    if (!lines->skipping) {
        buf_add(&lines->rest, data + n, len - n);
    }
    take_end(lines);
}

void push_lines_end(struct push_lines *lines) {
    lines->ended = true;
    take_end(lines);
}

size_t push_lines_resume(struct push_lines *lines) {
    size_t n_before = lines->rest.len;
    lines->held = false;
    take_rest(lines);
    size_t n = n_before - lines->rest.len;
    take_end(lines);
    return n;
}

void push_lines_finish(struct push_lines *lines) {
    buf_finish(&lines->rest);
}
