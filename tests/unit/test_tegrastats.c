#include "collectors/tegrastats.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unity.h>

#include "exporter/core/buf.h"
#include "exporter/core/clock.h"
#include "exporter/core/file.h"

enum { INTERVAL_MS = 5, PATIENCE_MS = 20000 };

#define RECORD "RAM 1024/4096MB (lfb 3x4MB) CPU [5%@1190,off] cpu@47.5C VDD_IN 1000mW/1000mW\n"
#define OTHER "RAM 2048/4096MB (lfb 3x4MB) CPU [7%@1190,off] cpu@48.5C VDD_IN 1000mW/1000mW FOO\n"
#define RAM_OF(line) ((line)->ram.used_bytes / 1048576)

static char directory[] = "/tmp/waap-tegrastats-XXXXXX";
static char program[64], play_file[80], log_file[80];
static struct tegrastats *tegrastats;
static struct error error;
static int64_t ahead_ns; /* what the clock under test is ahead of the real one */

static void write_file(const char *path, const char *text) {
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

static int64_t now(void) {
    return clock_monotonic_ns() + ahead_ns;
}

static void advance(double seconds) {
    ahead_ns += (int64_t)(seconds * 1e9);
}

static void open_playing(const char *play) {
    write_file(play_file, play);
    TEST_ASSERT_EQUAL_INT(0, tegrastats_open(program, INTERVAL_MS, &tegrastats, &error));
}

static int poll_once(void) {
    return tegrastats_poll(tegrastats, now(), &error);
}

static const struct tegrastats_line *latest(void) {
    return tegrastats_latest(tegrastats, now());
}

static uint64_t n_parse_errors(void) {
    return tegrastats_stats(tegrastats).n_parse_errors;
}

/* Polls until `condition` holds or the program fails, whose error it returns. */
#define POLL_UNTIL(condition)                                                                      \
    ({                                                                                             \
        int r_ = 0;                                                                                \
        int waited_ms_ = 0;                                                                        \
        for (; (r_ = poll_once()) == 0 && !(condition) && waited_ms_ < PATIENCE_MS;                \
             waited_ms_++) {                                                                       \
            usleep(1000);                                                                          \
        }                                                                                          \
        TEST_ASSERT_LESS_THAN_MESSAGE(PATIENCE_MS, waited_ms_, #condition);                        \
        r_;                                                                                        \
    })

/* What the log says about the last start: the process, and all its arguments. */
static pid_t started(char arguments[static 64]) {
    struct buf log CLEANUP_BUF = {0};
    pid_t pid = 0;
    TEST_ASSERT_EQUAL_INT(0, file_read(log_file, &log, &error));
    for (const char *at = buf_str(&log); at != NULL && *at != '\0'; at = strchr(at, '\n') + 1) {
        arguments[0] = '\0';
        sscanf(at, "%d%63[^\n]", &pid, arguments);
    }
    return pid;
}

static pid_t started_pid(void) {
    char arguments[64];
    return started(arguments);
}

/* Gone, or a corpse that whoever inherited it has not collected. */
static bool is_gone(pid_t pid) {
    char path[64], state = 'X';
    struct buf text CLEANUP_BUF = {0};
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (file_read(path, &text, NULL) == 0) {
        sscanf(buf_str(&text), "%*d (%*[^)]) %c", &state);
    }
    return state == 'X' || state == 'Z';
}

static void wait_gone(pid_t pid) {
    int waited_ms = 0;
    for (; !is_gone(pid) && waited_ms < PATIENCE_MS; waited_ms++) {
        usleep(1000);
    }
    TEST_ASSERT_LESS_THAN(PATIENCE_MS, waited_ms);
}

static void test_records_arrive(void) {
    char arguments[64];
    open_playing(RECORD OTHER);
    TEST_ASSERT_NULL(latest());
    TEST_ASSERT_TRUE(isnan(tegrastats_age_seconds(tegrastats, now())));
    TEST_ASSERT_EQUAL_INT(0, POLL_UNTIL(latest() != NULL && RAM_OF(latest()) == 2048));
    TEST_ASSERT_EQUAL_DOUBLE(0.07, latest()->cpus[0].load_ratio);
    TEST_ASSERT_EQUAL_DOUBLE(48.5, latest()->zones[0].celsius);
    TEST_ASSERT_TRUE(tegrastats_age_seconds(tegrastats, now()) < 10);
    TEST_ASSERT_TRUE(started(arguments) > 0);
    TEST_ASSERT_EQUAL_STRING(" --interval 5", arguments);
    struct tegrastats_stats stats = tegrastats_stats(tegrastats);
    TEST_ASSERT_EQUAL_UINT64(0, stats.n_restarts);
    TEST_ASSERT_EQUAL_UINT64(0, stats.n_parse_errors);
    TEST_ASSERT_GREATER_OR_EQUAL_UINT64(1, stats.n_unknown_tokens);
}

static void test_first_record_has_no_cpu_load(void) {
    open_playing(RECORD "!stall\n");
    TEST_ASSERT_EQUAL_INT(0, POLL_UNTIL(latest() != NULL));
    TEST_ASSERT_TRUE(isnan(latest()->cpus[0].load_ratio));
    TEST_ASSERT_EQUAL_DOUBLE(1190e6, latest()->cpus[0].frequency_hertz);
    TEST_ASSERT_EQUAL_DOUBLE(0, latest()->cpus[1].online);
}

static void test_lines_in_pieces(void) {
    static const char *const plays[] = {
        "!split 1\n" RECORD OTHER,
        "!split 7\n" RECORD OTHER,
        "!split 83\n" RECORD OTHER,
    };
    for (size_t i = 0; i < ARRAY_LEN(plays); i++) {
        open_playing(plays[i]);
        for (int n = 0; n < 3; n++) {
            TEST_ASSERT_EQUAL_INT(0, POLL_UNTIL(latest() != NULL && RAM_OF(latest()) == 1024));
            TEST_ASSERT_EQUAL_INT(0, POLL_UNTIL(RAM_OF(latest()) == 2048));
        }
        TEST_ASSERT_EQUAL_UINT64(0, n_parse_errors());
        tearDown();
    }
}

static void test_noise_is_counted(void) {
    open_playing("WARNING: not invoking as root\n\n\r\n!garbage 300\n" RECORD
                 "!long 4096\n!long 4097\n!long 20000\n" OTHER "!stall\n");
    TEST_ASSERT_EQUAL_INT(0, POLL_UNTIL(latest() != NULL && RAM_OF(latest()) == 2048));
    /* Garbage may have newlines of its own. */
    TEST_ASSERT_GREATER_OR_EQUAL_UINT64(5, n_parse_errors());
    TEST_ASSERT_LESS_THAN_UINT64(15, n_parse_errors());
}

/* A record may fill the buffer to the last byte, but not more. */
static void test_longest_line(void) {
    static const struct {
        int padding;
        bool fits;
    } cases[] = {{4096, true}, {4097, false}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf play CLEANUP_BUF = {0};
        buf_printf(&play, "%-*s\n%s!stall\n", cases[i].padding, "RAM 1/2MB", OTHER);
        open_playing(buf_str(&play));
        TEST_ASSERT_EQUAL_INT(0, POLL_UNTIL(latest() != NULL && RAM_OF(latest()) == 2048));
        TEST_ASSERT_EQUAL_UINT64(cases[i].fits ? 0 : 1, n_parse_errors());
        tearDown();
    }
}

static void test_old_data_is_no_data(void) {
    open_playing(RECORD "!stall\n");
    TEST_ASSERT_EQUAL_INT(0, POLL_UNTIL(latest() != NULL));
    int64_t at = now();
    TEST_ASSERT_NOT_NULL(tegrastats_latest(tegrastats, at + 2 * CLOCK_NS_PER_SEC));
    TEST_ASSERT_NULL(tegrastats_latest(tegrastats, at + 4 * CLOCK_NS_PER_SEC));
    TEST_ASSERT_TRUE(tegrastats_age_seconds(tegrastats, at + 4 * CLOCK_NS_PER_SEC) >= 4);
}

/* Whether it hangs, babbles or has closed its output: without records it is replaced. */
static void test_silence(void) {
    static const char *const plays[] = {
        "!stall\n",   RECORD "!stall\n", RECORD "!close\n", RECORD "!ignore-term\n!stall\n",
        "nonsense\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(plays); i++) {
        setUp();
        open_playing(plays[i]);
        TEST_ASSERT_EQUAL_INT(0, POLL_UNTIL(started_pid() > 0));
        pid_t pid = started_pid();
        if (strstr(plays[i], RECORD) != NULL) {
            TEST_ASSERT_EQUAL_INT(0, POLL_UNTIL(latest() != NULL));
        }
        advance(5);
        TEST_ASSERT_EQUAL_INT(0, poll_once());
        advance(5.1);
        TEST_ASSERT_EQUAL_INT(-ETIMEDOUT, poll_once());
        TEST_ASSERT_NOT_NULL(strstr(error.text, "no record for 1"));
        TEST_ASSERT_EQUAL_INT(0, POLL_UNTIL(is_gone(pid)));
        TEST_ASSERT_EQUAL_INT(0, poll_once());
        advance(1.1);
        TEST_ASSERT_EQUAL_INT(0, POLL_UNTIL(tegrastats_stats(tegrastats).n_restarts == 1));
        TEST_ASSERT_EQUAL_INT(0, POLL_UNTIL(started_pid() != pid));
        tearDown();
    }
}

/* After each failure the pause is twice as long, up to a minute. Here the clock stands still but
 * where it is told to go on. */
static void test_pauses_grow(void) {
    static const int64_t pauses[] = {1, 2, 4, 8, 16, 32, 60, 60};
    int64_t at = 0;
    open_playing("!exit 3\n");
    for (size_t i = 0; i < ARRAY_LEN(pauses); i++) {
        int r = 0;
        for (int n = 0; n < PATIENCE_MS && r == 0; n++) {
            r = tegrastats_poll(tegrastats, at, &error);
            usleep(1000);
        }
        TEST_ASSERT_EQUAL_INT(-ECHILD, r);
        TEST_ASSERT_NOT_NULL(strstr(error.text, "ended with status 3"));
        at += pauses[i] * CLOCK_NS_PER_SEC;
        TEST_ASSERT_EQUAL_INT(0, tegrastats_poll(tegrastats, at - 1, &error));
        TEST_ASSERT_EQUAL_UINT64(i, tegrastats_stats(tegrastats).n_restarts);
        TEST_ASSERT_EQUAL_INT(0, tegrastats_poll(tegrastats, at, &error));
        TEST_ASSERT_EQUAL_UINT64(i + 1, tegrastats_stats(tegrastats).n_restarts);
    }
}

static void test_a_healthy_run_shortens_the_pause(void) {
    open_playing("!exit 3\n");
    for (int i = 0; i < 4; i++) {
        TEST_ASSERT_EQUAL_INT(-ECHILD, POLL_UNTIL(false));
        advance(60);
    }
    write_file(play_file, RECORD);
    TEST_ASSERT_EQUAL_INT(0, POLL_UNTIL(latest() != NULL));
    uint64_t n_restarts = tegrastats_stats(tegrastats).n_restarts;
    for (int i = 0; i < 13; i++) { /* over a minute, in which records keep coming */
        usleep(2 * INTERVAL_MS * 1000);
        TEST_ASSERT_EQUAL_INT(0, POLL_UNTIL(tegrastats_age_seconds(tegrastats, now()) < 1));
        advance(5);
    }
    TEST_ASSERT_EQUAL_INT(0, POLL_UNTIL(tegrastats_age_seconds(tegrastats, now()) < 1));
    TEST_ASSERT_EQUAL_INT(0, kill(started_pid(), SIGTERM)); /* somebody runs `tegrastats --stop` */
    TEST_ASSERT_EQUAL_INT(-ECHILD, POLL_UNTIL(false));
    TEST_ASSERT_NOT_NULL(strstr(error.text, "killed by signal 15"));
    advance(1.1);
    TEST_ASSERT_EQUAL_INT(0, poll_once());
    TEST_ASSERT_EQUAL_UINT64(n_restarts + 1, tegrastats_stats(tegrastats).n_restarts);
}

static void test_death_after_records(void) {
    open_playing(RECORD OTHER "!die\n");
    TEST_ASSERT_EQUAL_INT(-ECHILD, POLL_UNTIL(false));
    /* What it said last still counts, and its first record is a first record again. */
    TEST_ASSERT_NOT_NULL(latest());
    TEST_ASSERT_EQUAL_DOUBLE(2048, RAM_OF(latest()));
    advance(1.1);
    TEST_ASSERT_EQUAL_INT(0, POLL_UNTIL(latest() != NULL && RAM_OF(latest()) == 1024));
    TEST_ASSERT_TRUE(isnan(latest()->cpus[0].load_ratio));
}

static void test_a_cut_line_is_not_joined_to_the_next_run(void) {
    open_playing(RECORD "!cut\n!exit 0\n");
    TEST_ASSERT_EQUAL_INT(-ECHILD, POLL_UNTIL(false));
    TEST_ASSERT_NOT_NULL(latest());
    TEST_ASSERT_EQUAL_DOUBLE(1024, RAM_OF(latest()));
    write_file(play_file, OTHER);
    advance(1.1);
    TEST_ASSERT_EQUAL_INT(0, POLL_UNTIL(latest() != NULL && RAM_OF(latest()) != 1024));
    TEST_ASSERT_EQUAL_DOUBLE(2048, RAM_OF(latest()));
    TEST_ASSERT_EQUAL_UINT64(0, n_parse_errors());
}

static void test_releases_that_know_no_interval(void) {
    char arguments[64];
    open_playing("!refuse-options\n" RECORD);
    TEST_ASSERT_EQUAL_INT(-ECHILD, POLL_UNTIL(false));
    started(arguments);
    TEST_ASSERT_EQUAL_STRING(" --interval 5", arguments);
    advance(1.1);
    TEST_ASSERT_EQUAL_INT(0, POLL_UNTIL(latest() != NULL));
    started(arguments);
    TEST_ASSERT_EQUAL_STRING("", arguments);
}

/* What a full pipe holds is of any age, and so is the record that did not fit (a pipe has room for
 * 768 of these); the next one is not. */
static void test_backlog_is_thrown_away(void) {
    open_playing("!flood 769\n" RECORD);
    TEST_ASSERT_EQUAL_INT(0, poll_once());
    usleep(300000);
    write_file(play_file, OTHER);
    kill(started_pid(), SIGSTOP); /* too slow to fill the pipe again while it is read */
    TEST_ASSERT_EQUAL_INT(0, poll_once());
    TEST_ASSERT_NULL(latest());
    kill(started_pid(), SIGCONT);
    TEST_ASSERT_EQUAL_INT(0, POLL_UNTIL(latest() != NULL));
    TEST_ASSERT_EQUAL_DOUBLE(2048, RAM_OF(latest()));
    TEST_ASSERT_EQUAL_UINT64(0, n_parse_errors());
}

/* However much it prints, a poll ends. */
static void test_flood(void) {
    open_playing("!flood 100000000\n" RECORD);
    for (int i = 0; i < 20; i++) {
        int64_t begin = clock_monotonic_ns();
        TEST_ASSERT_EQUAL_INT(0, poll_once());
        TEST_ASSERT_LESS_THAN(1000, (clock_monotonic_ns() - begin) / CLOCK_NS_PER_MS);
        usleep(5000);
    }
}

static void test_close_is_quick(void) {
    static const char *const plays[] = {
        RECORD,
        "!stall\n",
        "!ignore-term\n" RECORD,
        "!ignore-term\n!flood 100000000\n" RECORD,
    };
    for (size_t i = 0; i < ARRAY_LEN(plays); i++) {
        setUp();
        open_playing(plays[i]);
        TEST_ASSERT_EQUAL_INT(0, POLL_UNTIL(started_pid() > 0));
        usleep(20000);
        pid_t pid = started_pid();
        int64_t begin = clock_monotonic_ns();
        tearDown();
        TEST_ASSERT_LESS_THAN(1000, (clock_monotonic_ns() - begin) / CLOCK_NS_PER_MS);
        wait_gone(pid);
    }
}

/* Killed, we clean up nothing; it neither prints nor takes SIGTERM. */
static void test_it_dies_with_us(void) {
    int ready[2];
    TEST_ASSERT_EQUAL_INT(0, pipe2(ready, O_CLOEXEC));
    pid_t daemon = fork();
    TEST_ASSERT_TRUE(daemon >= 0);
    if (daemon == 0) {
        open_playing("!ignore-term\n!stall\n");
        while (started_pid() == 0) {
            poll_once();
            usleep(1000);
        }
        usleep(50000);
        if (write(ready[1], "", 1) == 1) {
            pause();
        }
        _exit(1);
    }
    char byte;
    TEST_ASSERT_EQUAL_INT(1, read(ready[0], &byte, 1));
    close(ready[0]);
    close(ready[1]);
    pid_t pid = started_pid();
    TEST_ASSERT_FALSE(is_gone(pid));
    kill(daemon, SIGKILL);
    TEST_ASSERT_EQUAL_INT(daemon, waitpid(daemon, NULL, 0));
    wait_gone(pid);
}

static void test_what_cannot_be_run(void) {
    const char *emulator = getenv("WAAP_EMULATOR");
    if (emulator != NULL && emulator[0] != '\0') {
        TEST_IGNORE_MESSAGE("qemu-user's vfork does not tell the parent that exec failed");
    }
    char missing[96];
    snprintf(missing, sizeof(missing), "%s/missing", directory);
    TEST_ASSERT_EQUAL_INT(-ENOENT, tegrastats_open(missing, 1000, &tegrastats, &error));
    TEST_ASSERT_NOT_NULL(strstr(error.text, "missing: No such file"));
    TEST_ASSERT_EQUAL_INT(0, tegrastats_open(directory, 1000, &tegrastats, &error));
    TEST_ASSERT_EQUAL_INT(-EACCES, poll_once());
    TEST_ASSERT_NOT_NULL(strstr(error.text, "start /tmp/"));
    TEST_ASSERT_EQUAL_INT(0, poll_once());
    advance(1.1);
    TEST_ASSERT_EQUAL_INT(-EACCES, poll_once());
    TEST_ASSERT_NULL(latest());
}

static void test_find(void) {
    char variable[256], copy[96];
    if (access("/usr/bin/tegrastats", F_OK) == 0 || access("/usr/sbin/tegrastats", F_OK) == 0) {
        TEST_IGNORE_MESSAGE("SKIP: this machine has a tegrastats");
    }
    const char *before = getenv("PATH");
    char *saved CLEANUP_FREE = strdup(before != NULL ? before : "");
    snprintf(copy, sizeof(copy), "%s/found", directory);
    mkdir(copy, 0755);
    snprintf(variable, sizeof(variable), "relative::/nowhere:%s:%s", copy, directory);
    setenv("PATH", variable, 1);
    char *found CLEANUP_FREE = tegrastats_find();
    TEST_ASSERT_EQUAL_STRING(program, found);

    /* One that everybody can write to is passed over. */
    snprintf(copy, sizeof(copy), "%s/found/tegrastats", directory);
    write_file(copy, "#!/bin/sh\n");
    static const struct {
        mode_t mode;
        bool trusted;
    } cases[] = {{0755, true}, {0700, true}, {0775, false}, {0757, false}, {0644, false}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        chmod(copy, cases[i].mode);
        char *other CLEANUP_FREE = tegrastats_find();
        TEST_ASSERT_EQUAL_STRING(cases[i].trusted ? copy : program, other);
    }
    unlink(copy);
    setenv("PATH", "", 1);
    char *none CLEANUP_FREE = tegrastats_find();
    TEST_ASSERT_NULL(none);
    setenv("PATH", saved, 1);
    snprintf(copy, sizeof(copy), "%s/found", directory);
    rmdir(copy);
}

static void prepare(void) {
    const char *fake = getenv("WAAP_FAKE_TEGRASTATS");
    if (fake == NULL || mkdtemp(directory) == NULL) {
        fputs("WAAP_FAKE_TEGRASTATS must name the fake program\n", stderr);
        exit(1);
    }
    snprintf(program, sizeof(program), "%s/tegrastats", directory);
    snprintf(play_file, sizeof(play_file), "%s.play", program);
    snprintf(log_file, sizeof(log_file), "%s.log", program);
    if (symlink(fake, program) < 0) {
        perror(program);
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
static bool can_start(void) {
    open_playing("!stall\n");
    int r = poll_once();
    tearDown();
    return r != -ENOEXEC;
}

static void clean_up(void) {
    unlink(program);
    unlink(play_file);
    unlink(log_file);
    rmdir(directory);
}

int main(void) {
    enum { MESON_SKIP = 77 };
    prepare();
    if (!can_start()) {
        clean_up();
        puts("SKIP: cannot start programs of this architecture");
        return MESON_SKIP;
    }
    UNITY_BEGIN();
    RUN_TEST(test_records_arrive);
    RUN_TEST(test_first_record_has_no_cpu_load);
    RUN_TEST(test_lines_in_pieces);
    RUN_TEST(test_noise_is_counted);
    RUN_TEST(test_longest_line);
    RUN_TEST(test_old_data_is_no_data);
    RUN_TEST(test_silence);
    RUN_TEST(test_pauses_grow);
    RUN_TEST(test_a_healthy_run_shortens_the_pause);
    RUN_TEST(test_death_after_records);
    RUN_TEST(test_a_cut_line_is_not_joined_to_the_next_run);
    RUN_TEST(test_releases_that_know_no_interval);
    RUN_TEST(test_backlog_is_thrown_away);
    RUN_TEST(test_flood);
    RUN_TEST(test_close_is_quick);
    RUN_TEST(test_it_dies_with_us);
    RUN_TEST(test_what_cannot_be_run);
    RUN_TEST(test_find);
    clean_up();
    return UNITY_END();
}
