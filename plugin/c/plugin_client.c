#define _GNU_SOURCE 1
#include "plugin_client.h"

#include <errno.h>
#include <link.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "plugin_metric.h"
#include "plugin_param.h"
#include "plugin_session.h"

enum { MAX_COLLECTS = 8, EXIT_MS = 1000, BLIND_MS = 50, LEAST_STACK = 256 * 1024 };

pthread_mutex_t waap_lock = PTHREAD_MUTEX_INITIALIZER;
atomic_bool waap_running;

/* Guarded by waap_lock. */
static struct {
    struct waap_settings settings;
    pthread_cond_t turned; /* a turn of the thread is over, or a call of it */
    pthread_t thread;
    bool has_thread;
    bool has_ended; /* the thread has, and can be joined */
    bool is_set_up;
    char *last_error; /* what repeats is written once */
    uint64_t n_told;  /* connections that were written */
    bool calls;       /* the thread is in a function of the application */
    bool alone;       /* exit() has begun to take the application apart: no such call any more */
    bool gave_up;     /* what there was at exit() could not be sent */
    bool ending;      /* the library itself is taken apart */
    sigset_t forking; /* the signals of the thread that forks */
    struct {
        void (*collect)(void *data);
        void *data;
    } collects[MAX_COLLECTS];
    size_t n_collects;
} client;

/* The pair of sockets by which others wake the thread out of poll(): writing to a pipe whose other
 * end is closed raises SIGPIPE. A program that turns into a daemon may close all descriptors it
 * finds and open others under their numbers: those are left alone. */
struct end {
    atomic_int fd; /* -1: none */
    _Atomic ino_t inode;
};

static struct end read_end = {.fd = -1}, write_end = {.fd = -1};

/* The descriptor of an end, -1 where it is not ours any more. */
static int end_fd(struct end *end) {
    struct stat st;
    int fd = atomic_load(&end->fd);
    bool ours = fd >= 0 && fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) &&
                st.st_ino == atomic_load(&end->inode);
    return ours ? fd : -1;
}

static void end_close(struct end *end) {
    int fd = end_fd(end);
    atomic_store(&end->fd, -1);
    if (fd >= 0) {
        close(fd);
    }
}

static void end_set(struct end *end, int fd) {
    struct stat st;
    atomic_store(&end->inode, fstat(fd, &st) == 0 ? st.st_ino : 0);
    atomic_store(&end->fd, fd);
}

static void wake_close(void) {
    end_close(&read_end);
    end_close(&write_end);
}

/* Where to wait for POLLIN; opens the pair where it is not open, or no longer. -1: it cannot be
 * had. Only for the thread, and before it runs. */
static int wake_open(void) {
    int fds[2];
    int known = end_fd(&read_end);
    if (known >= 0 && end_fd(&write_end) >= 0) {
        return known;
    }
    wake_close();
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0) {
        return -1;
    }
    end_set(&read_end, fds[0]);
    end_set(&write_end, fds[1]);
    return fds[0];
}

void waap_client_wake(void) {
    int error = errno;
    int fd = end_fd(&write_end);
    if (fd >= 0) {
        /* Where it is full, the thread wakes anyway. */
        ssize_t n = send(fd, "", 1, MSG_NOSIGNAL);
        (void)n;
    }
    errno = error;
}

static void wake_take(void) {
    char bytes[64];
    int fd = end_fd(&read_end);
    while (fd >= 0 && recv(fd, bytes, sizeof(bytes), 0) == sizeof(bytes)) {
    }
}

/* The first call that records in a process starts the thread and needs the lock. A signal handler
 * that makes it must not have interrupted its own thread while that holds it. Once the process
 * has begun, recording needs no lock, and signals may come. */
static void lock_early(sigset_t *ret_before) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, ret_before);
    pthread_mutex_lock(&waap_lock);
}

static void unlock_early(const sigset_t *before) {
    pthread_mutex_unlock(&waap_lock);
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

static uint64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

size_t waap_client_max_series(void) {
    return client.settings.max_series;
}

/* Whether the thread may call the application; what it called ends with leave_application. */
static bool enter_application(void) {
    pthread_mutex_lock(&waap_lock);
    client.calls = !client.alone;
    bool may_call = client.calls;
    pthread_mutex_unlock(&waap_lock);
    return may_call;
}

static void leave_application(void) {
    pthread_mutex_lock(&waap_lock);
    client.calls = false;
    pthread_cond_broadcast(&client.turned);
    pthread_mutex_unlock(&waap_lock);
}

static void call_collects(bool may_call) {
    pthread_mutex_lock(&waap_lock);
    size_t n = waap_session_prepare(now_ms()) && may_call ? client.n_collects : 0;
    pthread_mutex_unlock(&waap_lock);
    for (size_t i = 0; i < n; i++) {
        client.collects[i].collect(client.collects[i].data);
    }
}

static void report(const char *text, bool may_call, bool is_shown) {
    if (may_call && client.settings.on_error != NULL) {
        client.settings.on_error(text, client.settings.data);
    }
    if (is_shown) {
        fprintf(stderr, "waap: %s\n", text);
    }
}

/* Mistakes are reported before a flush can return. */
static void report_mistakes(bool may_call) {
    static uint64_t n_seen;
    uint64_t n = atomic_load(&waap_n_dropped);
    char *text = NULL;
    do {
        free(text);
        pthread_mutex_lock(&waap_lock);
        text = n != n_seen ? waap_metric_mistake() : NULL;
        pthread_mutex_unlock(&waap_lock);
        if (text != NULL) {
            report(text, may_call, true);
        }
    } while (text != NULL);
    n_seen = n;
}

/* Dropped records are a series of their own, from the first one on. */
static void report_dropped(void) {
    static struct waap_metric *dropped;
    uint64_t n = atomic_load(&waap_n_dropped);
    if (n != 0 && dropped == NULL) {
        dropped = waap_metric_own(&(struct waap_metric_spec){
            .type = WAAP_COUNTER,
            .name = "plugin_records_dropped_total",
            .help = "What the plugin recorded that is no number or not of the metric's kind.",
        });
    }
    if (dropped != NULL) {
        atomic_store(&dropped->whole, n);
    }
}

/* With WAAP_DEBUG a success is reported as well. */
static void report_connects(void) {
    struct waap_stats stats;
    pthread_mutex_lock(&waap_lock);
    waap_session_stats(&stats);
    bool is_new = stats.n_connects > client.n_told;
    client.n_told = stats.n_connects;
    pthread_mutex_unlock(&waap_lock);
    if (is_new) {
        fprintf(stderr, "waap: connected to %s as plugin %s\n", client.settings.socket,
                client.settings.plugin);
    }
}

static void report_errors(bool may_call) {
    for (;;) {
        /* Under the lock, so that no forked child finds a text that is freed. */
        pthread_mutex_lock(&waap_lock);
        char *text = waap_session_take_error();
        char *before = client.last_error;
        client.last_error = text != NULL ? text : before;
        pthread_mutex_unlock(&waap_lock);
        if (text == NULL) {
            return;
        }
        bool is_new = before == NULL || strcmp(before, text) != 0;
        report(text, may_call, client.settings.debug && is_new);
        free(before);
    }
}

static void report_absence(bool may_call) {
    char text[512];
    pthread_mutex_lock(&waap_lock);
    int reason = waap_session_take_absence();
    pthread_mutex_unlock(&waap_lock);
    if (reason != 0) {
        const char *path = client.settings.socket;
        const char *end = strrchr(path, '/');
        snprintf(text, sizeof(text),
                 "nobody listens on %s (%s): is waap running, is %.*s mounted into this container, "
                 "and is WAAP_PUSH_SOCKET right?",
                 path, strerror(reason), end != NULL ? (int)(end - path) : 1,
                 end != NULL ? path : ".");
        report(text, may_call, true);
    }
}

static int client_turn(struct pollfd *fds) {
    bool full;
    pthread_mutex_lock(&waap_lock);
    int wait_ms = waap_session_turn(&client.settings, now_ms());
    fds[1].fd = waap_session_fd(&full);
    fds[1].events = full ? POLLIN | POLLOUT : POLLIN;
    pthread_cond_broadcast(&client.turned);
    pthread_mutex_unlock(&waap_lock);
    return full ? -1 : wait_ms;
}

static void call_application(void) {
    bool may_call = enter_application();
    if (client.settings.debug) {
        report_connects();
    }
    report_errors(may_call);
    report_absence(may_call);
    if (may_call) {
        waap_params_call();
    }
    leave_application();
}

/* Whether this turn was the last. */
static bool client_ends(void) {
    pthread_mutex_lock(&waap_lock);
    client.has_ended = client.ending;
    bool ends = client.has_ended;
    pthread_cond_broadcast(&client.turned);
    pthread_mutex_unlock(&waap_lock);
    return ends;
}

static int add_thread_local(struct dl_phdr_info *object, size_t size, void *total) {
    (void)size;
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        if (object->dlpi_phdr[i].p_type == PT_TLS) {
            *(size_t *)total += object->dlpi_phdr[i].p_memsz + object->dlpi_phdr[i].p_align;
        }
    }
    return 0;
}

/* The program's thread-local variables lie on every stack, and may be larger. */
static int start_with(size_t size, pthread_t *ret_thread, void *(*run)(void *)) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    dl_iterate_phdr(add_thread_local, &size);
    pthread_attr_setstacksize(&attributes, size);
    int r = pthread_create(ret_thread, &attributes, run, NULL);
    pthread_attr_destroy(&attributes);
    return r;
}

static size_t usual_size(void) {
    pthread_attr_t attributes;
    size_t size;
    pthread_attr_init(&attributes);
    pthread_attr_getstacksize(&attributes, &size);
    pthread_attr_destroy(&attributes);
    return size < LEAST_STACK ? LEAST_STACK : size;
}

/* The application's functions are called on it and find what other threads have: memory is taken as
 * it is used. But where memory is bounded (ulimit -v), a small stack is better than no thread. */
static int start_thread(pthread_t *ret_thread, void *(*run)(void *)) {
    int r = start_with(usual_size(), ret_thread, run);
    return r == EAGAIN || r == ENOMEM ? start_with(LEAST_STACK, ret_thread, run) : r;
}

/* Its locale and its name. */
static void dress_thread(void) {
    /* Numbers on the wire have a point, whatever the application's locale. */
    locale_t plain = newlocale(LC_ALL_MASK, "C", NULL);
    if (plain != NULL) {
        uselocale(plain);
    }
    prctl(PR_SET_NAME, "waap-plugin");
}

static void *client_run(void *unused) {
    (void)unused;
    dress_thread();
    struct pollfd fds[2] = {{.events = POLLIN}};
    while (!client_ends()) {
        bool may_call = enter_application();
        call_collects(may_call);
        report_mistakes(may_call);
        leave_application();
        report_dropped();
        int wait_ms = client_turn(fds);
        call_application();
        fds[0].fd = wake_open();
        /* Out of descriptors, nobody can wake it. */
        bool blind = fds[0].fd < 0 && (wait_ms < 0 || wait_ms > BLIND_MS);
        poll(fds, 2, blind ? BLIND_MS : wait_ms);
        wake_take();
    }
    return NULL;
}

static void unlock(void *unused) {
    (void)unused;
    pthread_mutex_unlock(&waap_lock);
}

static struct timespec in_ms(unsigned ms) {
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += ms / 1000;
    end.tv_nsec += (long)(ms % 1000) * 1000000;
    if (end.tv_nsec >= 1000000000) {
        end.tv_sec++;
        end.tv_nsec -= 1000000000;
    }
    return end;
}

static bool flush(const struct timespec *end, bool give_up) {
    pthread_mutex_lock(&waap_lock);
    bool confirmed = waap_metrics == NULL && waap_params == NULL;
    pthread_cleanup_push(unlock, NULL); /* whose thread is cancelled while it waits */
    /* The thread cannot wait for itself. */
    if (!confirmed && client.has_thread && !pthread_equal(client.thread, pthread_self())) {
        uint64_t number = waap_session_ask();
        uint64_t n_lost = waap_session_n_lost();
        waap_client_wake();
        int r = 0;
        while (!(confirmed = waap_session_confirmed(number)) && r == 0 &&
               !(give_up && waap_session_n_lost() != n_lost)) {
            r = pthread_cond_timedwait(&client.turned, &waap_lock, end);
        }
    }
    pthread_cleanup_pop(true);
    return confirmed;
}

/* Waits until the thread has given `flag` that value; waap_lock is held. */
static void wait_for(const bool *flag, bool value, const struct timespec *end) {
    while (client.has_thread && *flag != value && !pthread_equal(client.thread, pthread_self()) &&
           pthread_cond_timedwait(&client.turned, &waap_lock, end) == 0) {
    }
}

/* It could not be had when the last metric was made: not too late for what was recorded. */
static bool lacks_thread(void) {
    pthread_mutex_lock(&waap_lock);
    bool used = atomic_load(&waap_running) && (waap_metrics != NULL || waap_params != NULL);
    bool lacks = used && !client.has_thread;
    pthread_mutex_unlock(&waap_lock);
    return lacks;
}

/* An exporter that is away does not keep the program from ending. What the application gave to be
 * called may refer to what exit() is about to take apart. */
static void client_exit(void) {
    if (lacks_thread()) {
        waap_client_start();
    }
    struct timespec end = in_ms(EXIT_MS);
    bool sent = !atomic_load(&waap_running) || flush(&end, true);
    pthread_mutex_lock(&waap_lock);
    client.alone = true;
    client.gave_up = !sent;
    wait_for(&client.calls, false, &end);
    pthread_mutex_unlock(&waap_lock);
}

/* Something was recorded since the last round. */
static bool is_changed(void) {
    struct waap_metric *m = waap_metrics;
    while (m != NULL && !waap_metric_changed(m)) {
        m = m->next;
    }
    return m != NULL;
}

static void end_thread(const struct timespec *end) {
    pthread_mutex_lock(&waap_lock);
    client.ending = true;
    waap_client_wake();
    wait_for(&client.has_ended, true, end);
    if (client.has_thread && client.has_ended) {
        pthread_t thread = client.thread;
        /* Destructors of what is local to the thread may make a metric. */
        pthread_mutex_unlock(&waap_lock);
        pthread_join(thread, NULL);
        pthread_mutex_lock(&waap_lock);
        client.has_thread = false;
        waap_session_end();
    }
    if (!client.has_thread) {
        wake_close();
    }
    pthread_mutex_unlock(&waap_lock);
}

/* The very last: after all that atexit() was given, which may have recorded; or, where these files
 * are part of a library that dlclose() unloads, before the thread's code is gone. Unlike exit(),
 * dlclose() calls what was given to atexit() after this. What was recorded is not freed: that may
 * record, and so may the threads of a program that ends, which nobody can tell from a dlclose(). */
__attribute__((destructor)) static void client_end(void) {
    pthread_mutex_lock(&waap_lock);
    bool is_first = client.is_set_up && !client.alone;
    pthread_mutex_unlock(&waap_lock);
    if (is_first) {
        client_exit();
    }
    struct timespec end = in_ms(EXIT_MS);
    pthread_mutex_lock(&waap_lock);
    bool has_thread = client.has_thread;
    bool more = has_thread && !client.gave_up && is_changed();
    pthread_mutex_unlock(&waap_lock);
    if (more) {
        flush(&end, true);
    }
    end_thread(&end);
}

static void fork_prepare(void) {
    sigset_t signals;
    lock_early(&signals);
    client.forking = signals;
}

static void fork_parent(void) {
    sigset_t signals = client.forking;
    unlock_early(&signals);
}

static void init_turned(void) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&client.turned, &attributes);
    pthread_condattr_destroy(&attributes);
}

static void fork_child(void) {
    waap_session_leave();
    /* A callback that forks and returns continues as the thread of the child. */
    waap_session_init();
    wake_close();
    client.has_thread = false;
    client.calls = false;
    client.n_told = 0;
    init_turned();
    atomic_store(&waap_running, false);
    fork_parent();
}

/* Before anybody can hold the lock: a thread may fork while another makes the first metric. */
__attribute__((constructor)) static void client_load(void) {
    pthread_atfork(fork_prepare, fork_parent, fork_child);
}

static void set_up_once(void) {
    if (client.is_set_up) {
        return;
    }
    waap_settings_complete(&client.settings);
    waap_session_init();
    init_turned();
    atexit(client_exit);
    client.is_set_up = true;
}

void waap_client_start(void) {
    int error = errno;
    int cancels; /* getrandom() may be where a thread ends, but not with the lock */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancels);
    sigset_t signals;
    lock_early(&signals);
    set_up_once();
    if (!client.has_thread && !client.ending && client.settings.socket != NULL &&
        client.settings.plugin != NULL) {
        wake_open();
        client.has_thread = start_thread(&client.thread, client_run) == 0;
    }
    /* Also where it failed: the next metric or flush, not each record, tries again. */
    atomic_store(&waap_running, true);
    unlock_early(&signals);
    pthread_setcancelstate(cancels, NULL);
    errno = error;
}

int waap_configure(const struct waap_options *options) {
    sigset_t signals;
    lock_early(&signals);
    int r = client.is_set_up ? -EBUSY : waap_settings_set(&client.settings, options);
    unlock_early(&signals);
    return r;
}

int waap_before_send(void (*collect)(void *data), void *data) {
    sigset_t signals;
    lock_early(&signals);
    bool room = client.n_collects < MAX_COLLECTS;
    if (room) {
        client.collects[client.n_collects].collect = collect;
        client.collects[client.n_collects].data = data;
        client.n_collects++;
    }
    unlock_early(&signals);
    return room ? 0 : -ENOSPC;
}

bool waap_flush(unsigned timeout_ms) {
    waap_client_start();
    struct timespec end = in_ms(timeout_ms);
    return flush(&end, false);
}

struct waap_stats waap_get_stats(void) {
    struct waap_stats stats;
    sigset_t signals;
    lock_early(&signals);
    waap_session_stats(&stats);
    size_t n_destroyed;
    stats.n_series = waap_metrics_count(&n_destroyed);
    unlock_early(&signals);
    stats.n_dropped = atomic_load(&waap_n_dropped);
    return stats;
}
