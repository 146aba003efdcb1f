/* A tegrastats that does what a file says. Started as PATH it plays PATH.play and appends a line
 * "PID ARGUMENT…" to PATH.log. Each line of the play is printed after one interval (--interval MS,
 * 1000), over and over; a line that begins with "!" is an order:
 *   !close            closes the output and hangs
 *   !cut              prints the beginning of a record, without a newline
 *   !die              dies of SIGTERM, as by somebody's `tegrastats --stop`
 *   !exit STATUS      ends
 *   !flood N          prints the next line N times, without a pause
 *   !garbage N        prints N bytes of anything and a newline
 *   !ignore-term      ignores SIGTERM from here on
 *   !long N           prints a line of N bytes
 *   !refuse-options   ends with status 1 if it was given any, as L4T 28.1 does
 *   !split N          from here on writes N bytes at a time
 *   !stall            prints nothing more
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LIFETIME_SECONDS = 120, MAX_PATH = 4096, MAX_TEXT = 1 << 16 };

static int n_arguments;
static long interval_ms = 1000;
static size_t piece = MAX_TEXT; /* bytes per write */
static long n_times = 1;        /* to print the next line */

static void hang(void) {
    for (;;) {
        pause();
    }
}

static void write_bytes(const char *bytes, size_t len) {
    while (len > 0) {
        ssize_t n = write(STDOUT_FILENO, bytes, len < piece ? len : piece);
        if (n < 0 && errno != EINTR) {
            hang(); /* the worst that a program can do about a broken pipe */
        }
        if (n > 0) {
            bytes += n;
            len -= (size_t)n;
        }
    }
}

static void order_close(long n) {
    (void)n;
    close(STDOUT_FILENO);
    hang();
}

static void order_cut(long n) {
    (void)n;
    write_bytes("RAM 9/9MB CPU [1%@2", 19);
}

static void order_die(long n) {
    (void)n;
    raise(SIGTERM);
}

static void order_exit(long n) {
    _exit((int)n);
}

static void order_flood(long n) {
    n_times = n;
}

static void order_garbage(long n) {
    unsigned value = 1;
    for (long i = 0; i < n; i++) {
        value = value * 1103515245 + 12345;
        char byte = (char)(value >> 16);
        write_bytes(&byte, 1);
    }
    write_bytes("\n", 1);
}

static void order_ignore_term(long n) {
    (void)n;
    signal(SIGTERM, SIG_IGN);
}

static void order_long(long n) {
    for (; n > 0; n--) {
        write_bytes("x", 1);
    }
    write_bytes("\n", 1);
}

static void order_refuse_options(long n) {
    (void)n;
    if (n_arguments > 0) {
        write_bytes("Unknown command\n", 16);
        _exit(1);
    }
}

static void order_split(long n) {
    piece = (size_t)n;
}

static void order_stall(long n) {
    (void)n;
    hang();
}

static const struct {
    const char *name;
    void (*run)(long n);
} orders[] = {
    {"!close", order_close},
    {"!cut", order_cut},
    {"!die", order_die},
    {"!exit", order_exit},
    {"!flood", order_flood},
    {"!garbage", order_garbage},
    {"!ignore-term", order_ignore_term},
    {"!long", order_long},
    {"!refuse-options", order_refuse_options},
    {"!split", order_split},
    {"!stall", order_stall},
};

static void obey(const char *line) {
    char name[32] = "";
    long n = 0;
    sscanf(line, "%31s %ld", name, &n);
    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        if (strcmp(orders[i].name, name) == 0) {
            orders[i].run(n);
            return;
        }
    }
    _exit(2);
}

static void print(const char *line, size_t len) {
    if (n_times == 1) {
        usleep((useconds_t)interval_ms * 1000);
    }
    for (; n_times > 0; n_times--) {
        write_bytes(line, len);
    }
    n_times = 1;
}

static void append_log(const char *path, int argc, char **argv) {
    FILE *log = fopen(path, "a");
    if (log == NULL) {
        _exit(2);
    }
    fprintf(log, "%d", (int)getpid());
    for (int i = 1; i < argc; i++) {
        fprintf(log, " %s", argv[i]);
    }
    fprintf(log, "\n");
    fclose(log);
}

/* A program should begin with signals and descriptors as usual, plus the one that it is held by
 * and its own file. */
static void check_inheritance(void) {
    enum { MAX_FD = 4, TRIED_FDS = 256, STATUS_INHERITED = 4 };
    sigset_t blocked;
    sigprocmask(SIG_SETMASK, NULL, &blocked);
    bool odd = signal(SIGPIPE, SIG_DFL) != SIG_DFL;
    for (int number = 1; number < SIGRTMIN; number++) {
        odd = odd || sigismember(&blocked, number) == 1;
    }
    for (int fd = MAX_FD + 1; fd < TRIED_FDS; fd++) {
        odd = odd || fcntl(fd, F_GETFD) >= 0;
    }
    if (odd || getpgrp() != getpid()) {
        _exit(STATUS_INHERITED);
    }
}

int main(int argc, char **argv) {
    char path[MAX_PATH];
    static char line[MAX_TEXT];
    alarm(LIFETIME_SECONDS); /* whatever a test forgets */
    check_inheritance();
    snprintf(path, sizeof(path), "%s.log", argv[0]);
    append_log(path, argc, argv);
    n_arguments = argc - 1;
    if (argc == 3 && strcmp(argv[1], "--interval") == 0) {
        interval_ms = atol(argv[2]);
    }
    snprintf(path, sizeof(path), "%s.play", argv[0]);
    FILE *play = fopen(path, "r");
    if (play == NULL) {
        _exit(2);
    }
    for (;; rewind(play)) {
        while (fgets(line, sizeof(line), play) != NULL) {
            if (line[0] == '!') {
                obey(line);
            } else {
                print(line, strlen(line));
            }
        }
    }
}
