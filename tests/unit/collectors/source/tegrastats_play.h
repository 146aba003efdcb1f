#pragma once

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unity.h>

#include "collectors/source/tegrastats.h"
#include "exporter/core/buf.h"
#include "exporter/core/clock.h"
#include "exporter/core/file.h"
#include "tests/unit/waiting.h"

/* The fake tegrastats at work: it plays what a file says and logs how it was started. */

enum { INTERVAL_MS = 5, PATIENCE_MS = 20000 };

#define RECORD "RAM 1024/4096MB (lfb 3x4MB) CPU [5%@1190,off] cpu@47.5C VDD_IN 1000mW/1000mW\n"
#define OTHER "RAM 2048/4096MB (lfb 3x4MB) CPU [7%@1190,off] cpu@48.5C VDD_IN 1000mW/1000mW FOO\n"
#define RAM_OF(line) ((line)->ram.used_bytes / 1048576)

static char directory[] = "/tmp/waap-tegrastats-XXXXXX";
static char program[64], play_file[80], log_file[80];
static struct tegrastats *tegrastats;
static struct error error;
static int64_t ahead_ns; /* what the clock under test is ahead of the real one */

static inline void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    TEST_ASSERT_NOT_NULL(file);
    fputs(text, file);
    fclose(file);
}

void setUp(void) {
    ahead_ns = 0;
    error.text[0] = '\0';
    write_file(log_file, "");
}

void tearDown(void) {
    tegrastats_close(tegrastats);
    tegrastats = NULL;
}

static inline int64_t now(void) {
    return clock_monotonic_ns() + ahead_ns;
}

static inline void advance(double seconds) {
    ahead_ns += (int64_t)(seconds * 1e9);
}

static inline void open_playing(const char *play) {
    write_file(play_file, play);
    TEST_ASSERT_EQUAL_INT(0, tegrastats_open(program, INTERVAL_MS, &tegrastats, &error));
}

static inline int poll_once(void) {
    return tegrastats_poll(tegrastats, now(), &error);
}

static inline const struct tegrastats_line *latest(void) {
    return tegrastats_latest(tegrastats, now());
}

static inline uint64_t n_parse_errors(void) {
    return tegrastats_stats(tegrastats).n_parse_errors;
}

/* Polls until `condition` holds or the program fails, whose error it returns. */
#define POLL_UNTIL(condition)                                                                      \
    ({                                                                                             \
        int r_ = 0;                                                                                \
        int waited_ms_ = 0;                                                                        \
        for (; (r_ = poll_once()) == 0 && !(condition) && waited_ms_ < PATIENCE_MS;                \
             waited_ms_++) {                                                                       \
            pace_ms(1);                                                                            \
        }                                                                                          \
        TEST_ASSERT_LESS_THAN_MESSAGE(PATIENCE_MS, waited_ms_, #condition);                        \
        r_;                                                                                        \
    })

/* What the log says about the last start: the process, and all its arguments. */
static inline pid_t started(char arguments[static 64]) {
    struct buf log CLEANUP_BUF = {0};
    pid_t pid = 0;
    TEST_ASSERT_EQUAL_INT(0, file_read(log_file, &log, &error));
    for (const char *at = buf_str(&log); at != NULL && *at != '\0'; at = strchr(at, '\n') + 1) {
        arguments[0] = '\0';
        sscanf(at, "%d%63[^\n]", &pid, arguments);
    }
    return pid;
}

static inline pid_t started_pid(void) {
    char arguments[64];
    return started(arguments);
}

/* The kernel's letter for what the process does. */
static inline char state_of(pid_t pid) {
    char path[64], state = 'X';
    struct buf text CLEANUP_BUF = {0};
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (file_read(path, &text, NULL) == 0) {
        sscanf(buf_str(&text), "%*d (%*[^)]) %c", &state);
    }
    return state;
}

/* Gone, or a corpse that whoever inherited it has not collected. */
static inline bool is_gone(pid_t pid) {
    char state = state_of(pid);
    return state == 'X' || state == 'Z';
}

/* Until the program has begun and sleeps whenever it is looked at, as one does on a full pipe. */
static inline void wait_blocked(void) {
    for (int n_asleep = 0, waited_ms = 0; n_asleep < 10; waited_ms += 20) {
        pace_ms(20);
        pid_t pid = started_pid();
        n_asleep = pid > 0 && state_of(pid) == 'S' ? n_asleep + 1 : 0;
        TEST_ASSERT_LESS_THAN(PATIENCE_MS, waited_ms);
    }
}

static inline void wait_gone(pid_t pid) {
    TEST_ASSERT_TRUE(BECOMES_TRUE(is_gone(pid)));
}

static inline void prepare(void) {
    const char *fake = getenv("WAAP_FAKE_TEGRASTATS");
    if (fake == NULL || mkdtemp(directory) == NULL) {
        fputs("WAAP_FAKE_TEGRASTATS must name the fake program\n", stderr);
        exit(1);
    }
    snprintf(program, sizeof(program), "%s/tegrastats", directory);
    snprintf(play_file, sizeof(play_file), "%s.play", program);
    snprintf(log_file, sizeof(log_file), "%s.log", program);
    char command[512];
    snprintf(command, sizeof(command), "install -m 755 '%s' '%s'", fake, program);
    if (system(command) != 0) {
        exit(1);
    }
    sigset_t blocked; /* as in the daemon */
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGHUP);
    sigaddset(&blocked, SIGUSR1);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    signal(SIGPIPE, SIG_IGN);
    for (int fd = STDERR_FILENO + 1; fd < 256; fd++) { /* what whoever runs tests left open */
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    }
}

/* Under an emulator a program can start no other of its kind unless the kernel helps. */
static inline bool can_start(void) {
    open_playing("!stall\n");
    int r = poll_once();
    tearDown();
    return r != -ENOEXEC;
}

static inline void clean_up(void) {
    unlink(program);
    unlink(play_file);
    unlink(log_file);
    rmdir(directory);
}
