#include "collectors/source/tegrastats.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include "collectors/source/child.h"
#include "exporter/core/buf.h"
#include "exporter/core/clock.h"
#include "exporter/core/file.h"
#include "exporter/core/memory.h"

enum {
    LINE_SIZE = 4096,         /* the longest line seen has 590 bytes */
    BACKLOG_BYTES = 48 << 10, /* of the 64 KiB of a pipe: not read for minutes */
    MAX_READS = 32,           /* per poll, of LINE_SIZE each */
};

#define SECONDS(n) ((n)*CLOCK_NS_PER_SEC)
#define GRACE_NS (100 * CLOCK_NS_PER_MS) /* between SIGTERM and SIGKILL */
#define MIN_AGE_NS SECONDS(3)
#define MIN_SILENCE_NS SECONDS(10)
#define MIN_PAUSE_NS SECONDS(1)
#define MAX_PAUSE_NS SECONDS(60)
#define HEALTHY_NS SECONDS(60) /* after running for that long it is restarted quickly */

enum state {
    STATE_WAITING, /* until due_ns, to be started */
    STATE_RUNNING,
    STATE_ENDING, /* got SIGTERM; killed at due_ns */
};

struct tegrastats {
    char *path;
    char interval_text[24];
    int64_t interval_ns;
    struct tegrastats_stats stats;

    enum state state;
    struct child child;
    int64_t due_ns;
    int64_t pause_ns; /* after the next failure */
    int64_t start_ns;
    int64_t heard_ns; /* of a record, or the start */
    bool started_before;
    bool bare; /* without --interval, which L4T 28.1 and older refuse */

    char text[LINE_SIZE]; /* the line that is being read */
    size_t text_len;
    bool text_too_long;
    size_t n_records; /* since the start */
    bool backlog;     /* the buffered records were printed at an unknown time */
    bool skip_record; /* and so was the next one */

    struct tegrastats_line lines[2];
    struct tegrastats_line *latest; /* one of `lines`, or NULL */
    int64_t latest_ns;
};

/* ---- looking for the program ---- */

/* L4T 28.1 and older have it in a home directory, where users other than root can change it. */
const char *const tegrastats_directories[] = {"/usr/bin", "/usr/sbin", "/usr/local/bin", NULL};

char *tegrastats_find(const char *const *directories) {
    for (; *directories != NULL; directories++) {
        char *path CLEANUP_FREE = file_path_join(*directories, "tegrastats");
        int fd CLEANUP_CLOSE = program_open(path, NULL);
        if (fd >= 0) {
            return TAKE(path);
        }
    }
    return NULL;
}

/* ---- what it prints ---- */

static bool is_empty(const char *text, size_t len) {
    return len == 0 || (len == 1 && text[0] == '\r');
}

static void take_line(struct tegrastats *tegrastats, int64_t now_ns) {
    struct tegrastats_line *line =
        &tegrastats->lines[tegrastats->latest == &tegrastats->lines[0] ? 1 : 0];
    if (!tegrastats->text_too_long && is_empty(tegrastats->text, tegrastats->text_len)) {
        return;
    }
    if (tegrastats->text_too_long ||
        tegrastats_line_parse(tegrastats->text, tegrastats->text_len, line) < 0) {
        tegrastats->stats.n_parse_errors++;
        return;
    }
    tegrastats->stats.n_unknown_tokens += line->n_unknown;
    tegrastats->heard_ns = now_ns;
    /* The CPU loads of the first record cover no time. */
    for (size_t i = 0; tegrastats->n_records == 0 && i < line->n_cpus; i++) {
        line->cpus[i].load_ratio = NAN;
    }
    tegrastats->n_records++;
    if (!tegrastats->backlog && !tegrastats->skip_record) {
        tegrastats->latest = line;
        tegrastats->latest_ns = now_ns;
    }
    tegrastats->skip_record = false;
}

static void take_bytes(struct tegrastats *tegrastats, const char *bytes, size_t len,
                       int64_t now_ns) {
    while (len > 0) {
        const char *end = memchr(bytes, '\n', len);
        size_t n = end != NULL ? (size_t)(end - bytes) : len;
        if (n > sizeof(tegrastats->text) - tegrastats->text_len) {
            tegrastats->text_too_long = true;
        } else {
            memcpy(tegrastats->text + tegrastats->text_len, bytes, n);
            tegrastats->text_len += n;
        }
        if (end == NULL) {
            return;
        }
        take_line(tegrastats, now_ns);
        tegrastats->text_len = 0;
        tegrastats->text_too_long = false;
        bytes += n + 1;
        len -= n + 1;
    }
}

/* A full pipe blocks the program: the records in it, and the one about to be printed, are of
 * unknown age. */
static bool has_backlog(const struct tegrastats *tegrastats) {
    int n_bytes = 0;
    return ioctl(tegrastats->child.output_fd, FIONREAD, &n_bytes) == 0 && n_bytes >= BACKLOG_BYTES;
}

static void read_output(struct tegrastats *tegrastats, int64_t now_ns) {
    char bytes[LINE_SIZE];
    ssize_t n = 1;
    tegrastats->backlog = has_backlog(tegrastats);
    for (int i = 0; i < MAX_READS && n > 0; i++) {
        n = read(tegrastats->child.output_fd, bytes, sizeof(bytes));
        if (n > 0) {
            take_bytes(tegrastats, bytes, (size_t)n, now_ns);
        }
    }
    tegrastats->skip_record = tegrastats->skip_record || tegrastats->backlog;
    tegrastats->backlog = false;
}

/* ---- its life ---- */

static void schedule_start(struct tegrastats *tegrastats, int64_t now_ns) {
    if (tegrastats->n_records > 0 && now_ns - tegrastats->start_ns >= HEALTHY_NS) {
        tegrastats->pause_ns = MIN_PAUSE_NS;
    }
    tegrastats->state = STATE_WAITING;
    tegrastats->due_ns = now_ns + tegrastats->pause_ns;
    tegrastats->pause_ns *= 2;
    if (tegrastats->pause_ns > MAX_PAUSE_NS) {
        tegrastats->pause_ns = MAX_PAUSE_NS;
    }
}

static int start(struct tegrastats *tegrastats, int64_t now_ns, struct error *err) {
    const char *with_interval[] = {tegrastats->path, "--interval", tegrastats->interval_text, NULL};
    const char *bare[] = {tegrastats->path, NULL};
    tegrastats->stats.n_restarts += tegrastats->started_before;
    tegrastats->started_before = true;
    tegrastats->start_ns = now_ns;
    tegrastats->heard_ns = now_ns;
    tegrastats->n_records = 0;
    tegrastats->text_len = 0;
    tegrastats->text_too_long = false;
    tegrastats->skip_record = false;
    int program_fd CLEANUP_CLOSE = program_open(tegrastats->path, err);
    int r = program_fd < 0 ? program_fd
                           : child_start(&tegrastats->child, program_fd,
                                         tegrastats->bare ? bare : with_interval, err);
    if (r < 0) {
        schedule_start(tegrastats, now_ns);
        return r;
    }
    tegrastats->state = STATE_RUNNING;
    return 0;
}

static void terminate(struct tegrastats *tegrastats, int64_t now_ns) {
    child_signal(&tegrastats->child, SIGTERM);
    tegrastats->state = STATE_ENDING;
    tegrastats->due_ns = now_ns + GRACE_NS;
}

static int report_end(const struct tegrastats *tegrastats, int status, struct error *err) {
    if (WIFSIGNALED(status)) {
        return error_set(err, -ECHILD, "%s: killed by signal %d", tegrastats->path,
                         WTERMSIG(status));
    }
    return error_set(err, -ECHILD, "%s: ended with status %d", tegrastats->path,
                     WEXITSTATUS(status));
}

/* The program has ended, by itself or by our signal. */
static int handle_end(struct tegrastats *tegrastats, int status, int64_t now_ns,
                      struct error *err) {
    bool by_itself = tegrastats->state == STATE_RUNNING;
    if (by_itself && tegrastats->n_records == 0 && WIFEXITED(status)) {
        tegrastats->bare = !tegrastats->bare;
    }
    child_finish(&tegrastats->child);
    schedule_start(tegrastats, now_ns);
    return by_itself ? report_end(tegrastats, status, err) : 0;
}

static int64_t longer(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static int watch(struct tegrastats *tegrastats, int64_t now_ns, struct error *err) {
    int status;
    bool ended = child_ended(&tegrastats->child, &status); /* before the last of it is read */
    read_output(tegrastats, now_ns);
    if (ended) {
        return handle_end(tegrastats, status, now_ns, err);
    }
    int64_t silence_ns = now_ns - tegrastats->heard_ns;
    if (silence_ns >= longer(10 * tegrastats->interval_ns, MIN_SILENCE_NS)) {
        terminate(tegrastats, now_ns);
        return error_set(err, -ETIMEDOUT, "%s: no record for %" PRId64 " s", tegrastats->path,
                         silence_ns / CLOCK_NS_PER_SEC);
    }
    return 0;
}

static int await_end(struct tegrastats *tegrastats, int64_t now_ns, struct error *err) {
    int status;
    if (child_ended(&tegrastats->child, &status)) {
        return handle_end(tegrastats, status, now_ns, err);
    }
    if (now_ns >= tegrastats->due_ns) {
        child_signal(&tegrastats->child, SIGKILL);
    }
    return 0;
}

int tegrastats_poll(struct tegrastats *tegrastats, int64_t now_ns, struct error *err) {
    switch (tegrastats->state) {
    case STATE_WAITING:
        return now_ns >= tegrastats->due_ns ? start(tegrastats, now_ns, err) : 0;
    case STATE_RUNNING:
        return watch(tegrastats, now_ns, err);
    case STATE_ENDING:
        return await_end(tegrastats, now_ns, err);
    }
    return 0;
}

const struct tegrastats_line *tegrastats_latest(const struct tegrastats *tegrastats,
                                                int64_t now_ns) {
    int64_t max_age_ns = longer(3 * tegrastats->interval_ns, MIN_AGE_NS);
    return now_ns - tegrastats->latest_ns <= max_age_ns ? tegrastats->latest : NULL;
}

double tegrastats_age_seconds(const struct tegrastats *tegrastats, int64_t now_ns) {
    return tegrastats->latest != NULL ? (double)(now_ns - tegrastats->latest_ns) / 1e9 : NAN;
}

struct tegrastats_stats tegrastats_stats(const struct tegrastats *tegrastats) {
    return tegrastats->stats;
}

int tegrastats_open(const char *path, int64_t interval_ms, struct tegrastats **ret_tegrastats,
                    struct error *err) {
    int program_fd CLEANUP_CLOSE = program_open(path, err); /* and again at each start */
    if (program_fd < 0) {
        return program_fd;
    }
    struct tegrastats *tegrastats = mem_zalloc(1, sizeof(*tegrastats));
    tegrastats->path = mem_strdup(path);
    tegrastats->interval_ns = interval_ms * CLOCK_NS_PER_MS;
    tegrastats->pause_ns = MIN_PAUSE_NS;
    tegrastats->due_ns = INT64_MIN;
    tegrastats->child = CHILD_NONE;
    snprintf(tegrastats->interval_text, sizeof(tegrastats->interval_text), "%" PRId64, interval_ms);
    *ret_tegrastats = tegrastats;
    return 0;
}

void tegrastats_close(struct tegrastats *tegrastats) {
    if (tegrastats != NULL) {
        child_finish(&tegrastats->child);
        free(tegrastats->path);
    }
    free(tegrastats);
}
