/* Work of a known size: load DIRECTORY. It obeys the lines written to the pipe DIRECTORY/ask, one
 * at a time, and after each writes the CPU seconds it has used so far to the pipe DIRECTORY/answer:
 *   burn SECONDS       uses that much CPU time
 *   exit               ends at once, without an answer
 *   hold BYTES         takes memory and writes to all of it
 *   processes N        forks that many that sleep
 *   read PATH BYTES    reads past the page cache
 *   release            gives back what it holds
 *   threads N          starts that many that sleep
 *   write PATH BYTES   writes past the page cache
 * Orders may also follow the directory as arguments: then it obeys these, prints the CPU seconds
 * and ends. */

#include <err.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { PIECE = 1 << 20, MAX_LINE = 4096 + 64 };

static _Alignas(4096) char piece[PIECE];
static char *held = MAP_FAILED;
static size_t n_held;

static double cpu_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void burn(const char *path, double seconds) {
    (void)path;
    double end = cpu_seconds() + seconds;
    while (cpu_seconds() < end) {
        for (volatile unsigned n = 0; n < 100000;) {
            n = n + 1;
        }
    }
}

static void leave(const char *path, double value) {
    (void)path;
    (void)value;
    _exit(0);
}

static void hold(const char *path, double bytes) {
    (void)path;
    n_held = (size_t)bytes;
    held = mmap(NULL, n_held, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (held == MAP_FAILED) {
        err(1, "mmap");
    }
    memset(held, 1, n_held);
}

static void release(const char *path, double value) {
    (void)path;
    (void)value;
    munmap(held, n_held);
}

static void *sleep_forever(void *unused) {
    for (;;) {
        pause();
    }
    return unused;
}

static void start_processes(const char *path, double n) {
    (void)path;
    for (int i = 0; i < (int)n; i++) {
        pid_t child = fork();
        if (child < 0) {
            err(1, "fork");
        }
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            sleep_forever(NULL);
        }
    }
}

static void start_threads(const char *path, double n) {
    (void)path;
    for (int i = 0; i < (int)n; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, sleep_forever, NULL) != 0) {
            errx(1, "a thread could not be started");
        }
    }
}

static void transfer(const char *path, double bytes, int flags,
                     ssize_t (*move)(int fd, size_t size)) {
    int fd = open(path, flags | O_DIRECT | O_CLOEXEC);
    if (fd < 0) {
        err(1, "open %s", path);
    }
    for (size_t left = (size_t)bytes; left > 0;) {
        ssize_t n = move(fd, left < PIECE ? left : PIECE);
        if (n <= 0) {
            err(1, "%s", path);
        }
        left -= (size_t)n;
    }
    close(fd);
}

static ssize_t read_piece(int fd, size_t size) {
    return read(fd, piece, size);
}

static ssize_t write_piece(int fd, size_t size) {
    return write(fd, piece, size);
}

static void read_bytes(const char *path, double bytes) {
    transfer(path, bytes, O_RDONLY, read_piece);
}

static void write_bytes(const char *path, double bytes) {
    transfer(path, bytes, O_WRONLY, write_piece);
}

static const struct {
    const char *name;
    void (*obey)(const char *path, double value);
    bool has_path;
} orders[] = {
    {"burn", burn, false},
    {"exit", leave, false},
    {"hold", hold, false},
    {"processes", start_processes, false},
    {"read", read_bytes, true},
    {"release", release, false},
    {"threads", start_threads, false},
    {"write", write_bytes, true},
};

static void obey(const char *line) {
    char name[16] = "", path[PATH_MAX] = "";
    double value = 0;
    sscanf(line, "%15s", name);
    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        if (strcmp(name, orders[i].name) == 0) {
            if (orders[i].has_path) {
                sscanf(line, "%*s %4095s %lf", path, &value);
            } else {
                sscanf(line, "%*s %lf", &value);
            }
            orders[i].obey(path, value);
            return;
        }
    }
    errx(1, "no such order: %s", line);
}

static void answer(void) {
    FILE *out = fopen("answer", "we");
    if (out == NULL) {
        err(1, "answer");
    }
    fprintf(out, "%.9f\n", cpu_seconds());
    fclose(out);
}

int main(int argc, char **argv) {
    if (argc < 2 || chdir(argv[1]) < 0) {
        errx(2, "usage: load DIRECTORY [ORDER...]");
    }
    /* Whatever memory these need for themselves is taken before anybody measures. */
    memset(piece, 'x', sizeof(piece));
    obey("hold 1048576");
    obey("release");
    if (argc > 2) {
        for (int i = 2; i < argc; i++) {
            obey(argv[i]);
        }
        printf("%.9f\n", cpu_seconds());
        return 0;
    }
    /* Open for writing too: never at an end. */
    FILE *in = fopen("ask", "r+e");
    if (in == NULL) {
        err(1, "%s/ask", argv[1]);
    }
    char line[MAX_LINE];
    while (fgets(line, sizeof(line), in) != NULL) {
        obey(line);
        answer();
    }
    return 1;
}
