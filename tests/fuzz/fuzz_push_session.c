/* Covers exporter/channel/session.c. */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/channel/session.h"
#include "exporter/core/container_of.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { MAX_LINE = 1024, HOLD_EVERY = 3, DEAF = 0x80 };

/* The kinds of peer that a session can have. */
static const struct push_peer peers[] = {
    {.pid = 7, .uid = 1000},
    {.pid = 7, .uid = 0, .process = "python3"},
    {.pid = 7, .container_id = "id", .container = "c", .pod = "p", .namespace = "n"},
    {.pid = 7, .uid = 1000, .gone = true},
    {.pid = 0},
};

/* A daemon with this connection and one of another user, whose plugin is "taken". */
struct connection {
    struct push_lines lines;
    struct push_session session, other;
    struct push_session_env env;
    size_t n_offered; /* lines; 0: no line has to wait */
};

static int64_t still_ms(void) {
    return 1000000;
}

static bool take(struct push_lines *lines, char *text, size_t len) {
    struct connection *connection = CONTAINER_OF(lines, struct connection, lines);
    if (connection->n_offered > 0 && ++connection->n_offered % HOLD_EVERY == 0) {
        return false;
    }
    push_session_wait_ns(&connection->session, 1000);
    push_session_line(&connection->session, text, len);
    return true;
}

static void refuse(struct push_lines *lines) {
    struct connection *connection = CONTAINER_OF(lines, struct connection, lines);
    push_session_refuse(&connection->session, -E2BIG, "too long");
}

static void say(struct push_session *session, const char *line) {
    char *copy CLEANUP_FREE = strdup(line);
    push_session_line(session, copy, strlen(copy));
}

static void begin(struct connection *connection, const struct push_peer *peer) {
    struct push_store_config config = {
        .limits = {.max_owner_series = 10, .max_peer_bytes = 8 << 10},
        .table_bytes = 1 << 20,
        .ttl_ms = 300000,
        .now_ms = still_ms,
    };
    struct push_session_env *env = &connection->env;
    int r = push_store_create(&config, &env->store, NULL);
    assert(r == 0);
    env->knobs = knobs_create(env->store);
    env->reader = push_json_create();
    push_session_init(&connection->session, env);
    push_session_init(&connection->other, env);
    connection->session.peer = *peer;
    connection->other.peer = (struct push_peer){.pid = 8, .uid = 1001};
    connection->lines = (struct push_lines){.max_line = MAX_LINE, .take = take, .too_long = refuse};
    say(&connection->other, "{\"hello\":{\"plugin\":\"taken\",\"start\":\"s\"}}");
    say(&connection->other, "{\"metric\":\"n\",\"type\":\"counter\",\"total\":1}");
}

/* Sends the bytes in pieces of that size. */
static void feed(struct connection *connection, const uint8_t *data, size_t len, size_t piece) {
    struct push_lines *lines = &connection->lines;
    while (len > 0) {
        size_t n = piece < len ? piece : len;
        char *copy CLEANUP_FREE = malloc(n);
        memcpy(copy, data, n);
        push_lines_add(lines, copy, n);
        while (lines->held) {
            push_lines_resume(lines);
        }
        data += n;
        len -= n;
    }
    push_lines_end(lines);
    while (lines->held) {
        push_lines_resume(lines);
    }
    assert(lines->rest.len == 0);
}

/* Requests the default of each knob, which the session sends to the plugin. */
static void turn_knobs(struct connection *connection) {
    struct push_session *session = &connection->session;
    struct knobs_plugin *plugin =
        session->owner != NULL ? knobs_of(connection->env.knobs, session->owner) : NULL;
    struct knob *knob = plugin != NULL ? plugin->knobs : NULL;
    for (; knob != NULL; knob = knob->next) {
        knobs_request(connection->env.knobs, session->owner, plugin, knob, &knob->spec.initial,
                      "fuzz", NULL);
    }
}

static void fill(struct buf *answers) {
    while (answers->len < PUSH_SESSION_MAX_OUT - 100) {
        buf_add_str(answers, "..........");
    }
}

static void end(struct connection *connection) {
    push_session_check(&connection->other);
    push_session_finish(&connection->session);
    push_session_finish(&connection->other);
    push_lines_finish(&connection->lines);
    push_json_destroy(connection->env.reader);
    knobs_destroy(connection->env.knobs);
    push_store_destroy(connection->env.store);
}

/* The bytes of a connection, behind one that selects the peer and one with the size of the pieces
 * that arrive. The answers must not depend on that size. A deaf peer has left answers unread. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    if (len < 2) {
        return 0;
    }
    const struct push_peer *peer = &peers[data[0] % ARRAY_LEN(peers)];
    struct connection whole = {0}, pieces = {.n_offered = 1};
    begin(&whole, peer);
    begin(&pieces, peer);
    if ((data[0] & DEAF) != 0) {
        fill(&whole.session.out);
        fill(&pieces.session.out);
    }
    feed(&whole, data + 2, len - 2, len);
    feed(&pieces, data + 2, len - 2, data[1] + 1u);
    turn_knobs(&whole);
    turn_knobs(&pieces);
    struct buf *answers = &whole.session.out;
    assert(answers->len < PUSH_SESSION_MAX_OUT + 2 * MAX_LINE);
    assert(strcmp(buf_str(answers), buf_str(&pieces.session.out)) == 0);
    end(&whole);
    end(&pieces);
    return 0;
}
