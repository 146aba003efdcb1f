#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/channel/knobs.h"
#include "exporter/channel/peer.h"
#include "exporter/channel/push_json.h"
#include "exporter/core/buf.h"
#include "exporter/push/log.h"
#include "exporter/push/store.h"

/* One peer on the plugin channel: its lines and the replies to them. Independent of sockets. */

struct push_session_env {
    struct push_store *store;
    struct knobs *knobs;
    struct push_json *reader;
    struct push_log *log; /* NULL: refusals are not logged */
};

/* Why a connection must end. */
enum push_session_end {
    PUSH_SESSION_OPEN,
    PUSH_SESSION_NOT_READING, /* it does not read its replies */
    PUSH_SESSION_REFUSED,     /* its hello was rejected; it may reconnect with the same */
};

struct push_session {
    const struct push_session_env *env;
    struct push_peer peer;           /* filled in by the owner of the connection */
    struct push_owner *owner;        /* NULL: it has not sent anything yet */
    uint64_t claim;                  /* of the owner, when it was this session's */
    bool is_refused;                 /* its hello was rejected: the lines after it have no owner */
    int64_t refused_ns;              /* since then */
    struct push_allowance allowance; /* of lines, where there is a limit */
    uint64_t start;
    struct knobs_link knobs;
    size_t line;    /* how many it has sent */
    struct buf out; /* answers that wait to be sent */
    enum push_session_end must_end;
    void (*answered)(struct push_session *session); /* something was added to `out` unasked */
};

/* Bytes that may wait to be sent. Errors are dropped earlier: clients may ignore them. */
enum { PUSH_SESSION_MAX_OUT = 64 * 1024, PUSH_SESSION_MAX_COMPLAINTS = 16 * 1024 };

void push_session_init(struct push_session *session, const struct push_session_env *env);

/* Leaves its owner and knobs; the peer is not freed. */
void push_session_finish(struct push_session *session);

/* How long the next line waits if a connection, and a plugin, may send `max_rate` lines in a second
 * (0: no limit). 0: not at all; the line has been counted. */
int64_t push_session_wait_ns(struct push_session *session, size_t max_rate);

/* Takes one line, without its newline; decodes it in place. Blank lines are ignored. */
void push_session_line(struct push_session *session, char *text, size_t len);

/* Leaves an owner that another peer has claimed; called about once a second. */
void push_session_check(struct push_session *session);

/* Rejects a line without reading it; counted under `code` as in push_store_count_refused. */
void push_session_refuse(struct push_session *session, int code, const char *why);

/* ---- lines ---- */

/* Splits the bytes of a connection into lines. If `take` returns false, lines are held, and nothing
 * more is read before push_lines_resume. Zeroed but for the first members it is an empty stream. */
struct push_lines {
    size_t max_line; /* bytes */

    /* Takes a line without its newline, which it may write to; false: not now. */
    bool (*take)(struct push_lines *lines, char *text, size_t len);
    void (*too_long)(struct push_lines *lines);

    struct buf rest; /* the beginning of a line or, while `held`, lines that wait */
    bool held;
    bool skipping; /* the rest of a line that is too long */
    bool ended;
};

void push_lines_finish(struct push_lines *lines);

/* Takes what has come. Not while lines are held. */
void push_lines_add(struct push_lines *lines, char *data, size_t len);

/* The stream ends; its last line needs no newline. Not while lines are held. */
void push_lines_end(struct push_lines *lines);

/* Tries again with the lines that are held; returns how many bytes were taken. */
size_t push_lines_resume(struct push_lines *lines);
