#define _GNU_SOURCE 1
#include "plugin_session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "plugin_json.h"
#include "plugin_line.h"

enum {
    MAX_LINE = 64 * 1024,   /* that is understood, and what is read before others have their turn */
    CHUNK = 64 * 1024,      /* bytes on their way at a time */
    STABLE_MS = 1000,       /* a connection that has lasted is worth a quick second try */
    REFUSED_WAIT_MS = 5000, /* a series that was refused is offered again */
    REFRESH_MS = 60 * 1000, /* a series is sent even if it has not changed */
    AWAY_MS = 5000,         /* without an exporter, which is reported */
    MAX_ERRORS = 16,        /* kept for the application */
};

/* One connection to the exporter; no call waits. */
struct link {
    int fd;      /* -1: none */
    ino_t inode; /* of the socket */
    struct waap_text out;
    size_t n_sent; /* bytes of `out` that are gone */
    char *in;
    size_t in_len;
};

static int link_open(struct link *link, const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = strlen(path);
    if (len >= sizeof(address.sun_path)) {
        return -ENAMETOOLONG;
    }
    memcpy(address.sun_path, path, len + 1);
    link->in = link->in != NULL ? link->in : malloc(MAX_LINE);
    if (link->in == NULL) {
        return -ENOMEM;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return -errno;
    }
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
        int error = -errno;
        close(fd);
        return error;
    }
    struct stat st;
    link->inode = fstat(fd, &st) == 0 ? st.st_ino : 0;
    link->fd = fd;
    return 0;
}

/* Whether the descriptor still is our socket: a program that turns into a daemon may have closed
 * all it found, and opened others. One that is not is left alone. */
static bool link_check(struct link *link) {
    struct stat st;
    bool ours = fstat(link->fd, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_ino == link->inode;
    if (!ours) {
        link->fd = -1;
    }
    return ours;
}

/* Drops the connection and what was on its way. */
static void link_close(struct link *link) {
    if (link->fd >= 0 && link_check(link)) {
        close(link->fd);
    }
    link->fd = -1;
    link->in_len = 0;
    link->n_sent = 0;
    waap_text_finish(&link->out);
}

static void link_finish(struct link *link) {
    link_close(link);
    free(link->in);
    link->in = NULL;
}

static bool link_full(const struct link *link) {
    return link->n_sent < link->out.len;
}

static int link_send(struct link *link) {
    while (link_full(link)) {
        ssize_t n = send(link->fd, link->out.data + link->n_sent, link->out.len - link->n_sent,
                         MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return errno == EAGAIN ? 0 : -errno;
        }
        link->n_sent += (size_t)n;
    }
    link->n_sent = 0;
    link->out.len = 0;
    return 0;
}

/* Hands over the complete lines and keeps the rest for later. */
static int split_lines(struct link *link, void (*take)(char *line)) {
    char *line = link->in;
    char *end = link->in + link->in_len;
    for (;;) {
        char *newline = memchr(line, '\n', (size_t)(end - line));
        if (newline == NULL) {
            break;
        }
        *newline = '\0';
        take(line);
        line = newline + 1;
    }
    link->in_len = (size_t)(end - line);
    memmove(link->in, line, link->in_len);
    return link->in_len < MAX_LINE ? 0 : -EMSGSIZE;
}

static int link_receive(struct link *link, void (*take)(char *line)) {
    ssize_t n = recv(link->fd, link->in + link->in_len, MAX_LINE - link->in_len, 0);
    if (n < 0) {
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    }
    if (n == 0) {
        return -EPIPE;
    }
    link->in_len += (size_t)n;
    return split_lines(link, take);
}

/* ---- the session ---- */

static struct {
    struct link link;
    uint64_t start;
    unsigned seed;
    uint64_t opened_ms;
    uint64_t retry_ms;
    int wait_ms;      /* before the next attempt */
    int open_fault;   /* why the last attempt failed, which is said once */
    uint64_t away_ms; /* of the first attempt that failed, 0: none has */
    bool is_away, absence_told;

    /* A round looks at every series once, chunk by chunk; `next` is where it goes on. */
    bool in_round;
    struct waap_metric *next;
    uint64_t round_asked; /* what the round confirms */
    uint64_t round_ms;    /* when the next one is due */

    uint64_t asked;    /* the last number handed out */
    uint64_t answered; /* the last number acknowledged */
    uint64_t seen;     /* the last number handed out before the application was asked to collect */
    uint64_t sent;     /* the last number on its way on this connection */

    char *errors[MAX_ERRORS];
    size_t n_errors;
    struct waap_stats stats;
    uint64_t n_lost;
} session = {.link = {.fd = -1}};

static uint64_t random_start(void) {
    uint64_t start = 0;
    if (getrandom(&start, sizeof(start), GRND_NONBLOCK) != sizeof(start)) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        start = ((uint64_t)getpid() << 40) ^ ((uint64_t)now.tv_sec << 30) ^ (uint64_t)now.tv_nsec;
    }
    return start;
}

void waap_session_init(void) {
    session.start = random_start();
    session.seed = (unsigned)session.start;
    session.wait_ms = WAAP_FIRST_WAIT_MS;
    session.retry_ms = 0;
    session.away_ms = 0;
    session.is_away = false;
}

static void note_text(const char *subject, const char *text) {
    char *copy;
    if (session.n_errors < MAX_ERRORS && asprintf(&copy, "%s%s", subject, text) >= 0) {
        session.errors[session.n_errors++] = copy;
    }
}

static void note_error(const char *subject, const char *text) {
    session.stats.n_errors++;
    note_text(subject, text);
}

char *waap_session_take_error(void) {
    if (session.n_errors == 0) {
        return NULL;
    }
    char *first = session.errors[0];
    session.n_errors--;
    memmove(session.errors, session.errors + 1, session.n_errors * sizeof(session.errors[0]));
    return first;
}

static void session_forget(void) {
    link_close(&session.link);
    session.in_round = false;
    session.sent = 0;
    session.stats.connected = false;
    waap_params_forget();
}

static void drop_errors(void) {
    for (char *text = waap_session_take_error(); text != NULL; text = waap_session_take_error()) {
        free(text);
    }
}

void waap_session_end(void) {
    session_forget();
    link_finish(&session.link);
    drop_errors();
}

void waap_session_leave(void) {
    session_forget();
    waap_metrics_forget(true);
    session.answered = session.asked;
    session.seen = session.asked;
    session.stats = (struct waap_stats){0};
    drop_errors();
}

static void session_lost(uint64_t now_ms) {
    bool lasted = session.stats.connected && now_ms - session.opened_ms >= STABLE_MS;
    session_forget();
    waap_metrics_forget(false);
    session.n_lost++;
    if (lasted) {
        session.wait_ms = WAAP_FIRST_WAIT_MS;
    }
    /* Plugins of one node shall not all knock at once. rand() is the application's. */
    int earlier_ms = rand_r(&session.seed) % (session.wait_ms / 4);
    session.retry_ms = now_ms + (uint64_t)(session.wait_ms - earlier_ms);
    session.wait_ms *= 2;
    if (session.wait_ms > WAAP_LONGEST_WAIT_MS) {
        session.wait_ms = WAAP_LONGEST_WAIT_MS;
    }
}

static uint64_t turn_ms; /* the time of this turn, for what a line brings */

static void metric_refused(const char *name) {
    for (struct waap_metric *m = waap_metrics; m != NULL; m = m->next) {
        if (strcmp(m->name, name) == 0) {
            m->refused_ms = turn_ms;
            m->declared = false;
        }
    }
}

static void param_asked(const char *name, const struct waap_json_value *value) {
    const char *fault = "is not known";
    for (struct waap_param *param = waap_params; param != NULL; param = param->next) {
        if (strcmp(param->spec.name, name) == 0) {
            fault = waap_param_turn(param, value);
        }
    }
    if (fault != NULL) {
        char subject[128];
        snprintf(subject, sizeof(subject), "param %.80s: the value ", name);
        note_error(subject, fault);
    }
}

static void take_line(char *text) {
    struct waap_json_line line;
    if (text[strspn(text, " \t\r")] == '\0') {
        return;
    }
    if (!waap_json_read(text, &line)) {
        note_error("not understood: ", text);
        return;
    }
    if (line.error != NULL) {
        note_error("", line.error);
        if (line.metric != NULL) {
            metric_refused(line.metric);
        }
    } else if (line.param != NULL && line.has_value) {
        param_asked(line.param, &line.value);
    }
    if (line.ack > (double)session.answered && line.ack <= (double)session.sent) {
        session.answered = (uint64_t)line.ack;
        session.wait_ms = WAAP_FIRST_WAIT_MS;
    }
}

static bool metric_due(struct waap_metric *metric, uint64_t now_ms, bool all) {
    if (waap_metric_is_empty(metric)) {
        return false;
    }
    bool refused = metric->refused_ms != 0 && now_ms - metric->refused_ms < REFUSED_WAIT_MS;
    if (refused && !all) {
        return false;
    }
    uint64_t refresh_ms = REFRESH_MS;
    if (metric->ttl_seconds > 0 && metric->ttl_seconds * 1000 / 3 < REFRESH_MS) {
        refresh_ms = (uint64_t)(metric->ttl_seconds * 1000 / 3);
    }
    return waap_metric_changed(metric) || now_ms - metric->sent_ms >= refresh_ms;
}

static void send_params(void) {
    for (struct waap_param *param = waap_params; param != NULL; param = param->next) {
        if (!param->declared) {
            waap_line_param(&session.link.out, param);
            session.stats.n_lines++;
        }
        unsigned version = atomic_load(&param->version);
        bool known = param->reported && param->reported_version == version;
        if (!known && atomic_load(&param->applied) == version) {
            waap_line_applied(&session.link.out, param);
            session.stats.n_lines++;
        }
    }
}

/* An acknowledgement is wanted that this connection has not been asked for. */
static bool ack_due(void) {
    return session.seen > session.answered && session.seen > session.sent;
}

static bool round_due(uint64_t now_ms) {
    return !session.in_round && (ack_due() || now_ms >= session.round_ms);
}

/* What is asked for later, or while a round is under way, is left to the next round: this one may
 * have passed what the application sets then. */
bool waap_session_prepare(uint64_t now_ms) {
    uint64_t before = session.seen;
    session.seen = session.asked;
    bool due = session.link.fd >= 0 ? round_due(now_ms) : now_ms >= session.retry_ms;
    session.seen = due ? session.asked : before;
    return due;
}

/* Adds lines until a chunk is full or the round is over. */
static void session_compose(const struct waap_settings *settings, uint64_t now_ms) {
    send_params();
    if (round_due(now_ms)) {
        session.in_round = true;
        session.next = waap_metrics;
        session.round_asked = ack_due() ? session.seen : 0;
        session.round_ms = now_ms + settings->interval_ms;
    }
    if (!session.in_round) {
        return;
    }
    while (session.next != NULL && session.link.out.len < CHUNK) {
        if (metric_due(session.next, now_ms, session.round_asked != 0)) {
            waap_line_metric(&session.link.out, session.next);
            session.next->sent_ms = now_ms;
            session.stats.n_lines++;
        }
        session.next = session.next->next;
    }
    if (session.next == NULL) {
        session.in_round = false;
        if (session.round_asked != 0) {
            waap_line_seq(&session.link.out, session.round_asked);
            session.sent = session.round_asked;
            session.stats.n_lines++;
        }
    }
}

static int session_open(const struct waap_settings *settings, uint64_t now_ms) {
    int r = link_open(&session.link, settings->socket);
    if (r < 0 && r != session.open_fault) {
        char subject[160];
        snprintf(subject, sizeof(subject), "connect %.120s: ", settings->socket);
        note_text(subject, strerror(-r));
    }
    session.open_fault = r;
    session.away_ms = r == 0 ? 0 : session.away_ms != 0 ? session.away_ms : now_ms;
    session.is_away = r < 0 && now_ms - session.away_ms >= AWAY_MS;
    session.absence_told = session.absence_told && r < 0;
    if (r < 0) {
        return r;
    }
    session.opened_ms = now_ms;
    session.round_ms = now_ms;
    session.stats.connected = true;
    session.stats.n_connects++;
    waap_line_hello(&session.link.out, settings, session.start);
    return 0;
}

/* Returns 0, or a negative errno where the connection cannot be had or is over. */
static int session_work(const struct waap_settings *settings, uint64_t now_ms) {
    if (session.link.fd < 0) {
        int r = session_open(settings, now_ms);
        if (r < 0) {
            return r;
        }
    }
    if (!link_check(&session.link)) {
        return -EBADF;
    }
    int r = link_receive(&session.link, take_line);
    do {
        r = r < 0 ? r : link_send(&session.link);
        if (r < 0 || link_full(&session.link)) {
            return r;
        }
        session_compose(settings, now_ms);
        r = session.link.out.failed ? -1 : 0;
    } while (r < 0 || link_full(&session.link) || session.in_round || round_due(now_ms));
    return 0;
}

int waap_session_turn(const struct waap_settings *settings, uint64_t now_ms) {
    turn_ms = now_ms;
    bool may_try = session.link.fd >= 0 || now_ms >= session.retry_ms;
    if (may_try && session_work(settings, now_ms) < 0) {
        session_lost(now_ms);
    }
    if (session.link.fd >= 0 && session.asked > session.seen) {
        return 0; /* the application is to be asked first */
    }
    uint64_t next_ms = session.link.fd < 0 ? session.retry_ms : session.round_ms;
    return next_ms > now_ms ? (int)(next_ms - now_ms) : 0;
}

int waap_session_fd(bool *ret_full) {
    *ret_full = link_full(&session.link);
    return session.link.fd;
}

int waap_session_take_absence(void) {
    bool is_due = session.is_away && !session.absence_told;
    session.absence_told |= is_due;
    return is_due ? -session.open_fault : 0;
}

uint64_t waap_session_ask(void) {
    if (session.link.fd < 0) {
        session.retry_ms = 0;
    }
    return ++session.asked;
}

bool waap_session_confirmed(uint64_t number) {
    return session.answered >= number;
}

uint64_t waap_session_n_lost(void) {
    return session.n_lost;
}

void waap_session_stats(struct waap_stats *stats) {
    *stats = session.stats;
}
