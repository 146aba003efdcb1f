#define _GNU_SOURCE 1
#include "plugin_client.h"

#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "plugin_metric.h"
#include "plugin_param.h"
#include "plugin_session.h"
#include "plugin_wake.h"

enum { MAX_COLLECTS = 8, STACK_SIZE = 256 * 1024, EXIT_MS = 1000 };

pthread_mutex_t waap_lock = PTHREAD_MUTEX_INITIALIZER;
atomic_bool waap_running;

/* Guarded by waap_lock. */
static struct {
    struct waap_settings settings;
    pthread_cond_t turned; /* a turn of the thread is over */
    pthread_t thread;
    bool has_thread;
    bool is_set_up;
    struct {
        void (*collect)(void *data);
        void *data;
    } collects[MAX_COLLECTS];
    size_t n_collects;
} client;

static uint64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

size_t waap_client_max_series(void) {
    return client.settings.max_series;
}

static void call_collects(void) {
    pthread_mutex_lock(&waap_lock);
    size_t n = waap_session_due(now_ms()) ? client.n_collects : 0;
    pthread_mutex_unlock(&waap_lock);
    for (size_t i = 0; i < n; i++) {
        client.collects[i].collect(client.collects[i].data);
    }
}

/* Dropped records are a series of their own, from the first one on. */
static void report_dropped(void) {
    static struct waap_metric *dropped;
    uint64_t n = atomic_load(&waap_n_dropped);
    if (n != 0 && dropped == NULL) {
        dropped = waap_metric_new(&(struct waap_metric_spec){
            .type = WAAP_COUNTER,
            .name = "plugin_records_dropped_total",
            .help = "What the plugin recorded that is no number or not of the metric's kind.",
        });
    }
    if (dropped != NULL) {
        atomic_store(&dropped->whole, n);
    }
}

static void report_errors(void) {
    static char *last; /* what repeats is written once */
    for (;;) {
        pthread_mutex_lock(&waap_lock);
        char *text = waap_session_take_error();
        pthread_mutex_unlock(&waap_lock);
        if (text == NULL) {
            return;
        }
        if (client.settings.on_error != NULL) {
            client.settings.on_error(text, client.settings.data);
        }
        if (client.settings.debug && (last == NULL || strcmp(last, text) != 0)) {
            fprintf(stderr, "waap: %s\n", text);
        }
        free(last);
        last = text;
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

static void *client_run(void *unused) {
    (void)unused;
    /* Numbers on the wire have a point, whatever the application's locale. */
    locale_t plain = newlocale(LC_ALL_MASK, "C", NULL);
    if (plain != NULL) {
        uselocale(plain);
    }
    prctl(PR_SET_NAME, "waap-plugin");
    struct pollfd fds[2] = {{.events = POLLIN}};
    for (;;) {
        call_collects();
        report_dropped();
        int wait_ms = client_turn(fds);
        report_errors();
        waap_params_call();
        fds[0].fd = waap_wake_open();
        poll(fds, 2, wait_ms);
        waap_wake_take();
    }
    return NULL;
}

static bool flush(unsigned timeout_ms, bool give_up) {
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += timeout_ms / 1000;
    end.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
    if (end.tv_nsec >= 1000000000) {
        end.tv_sec++;
        end.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&waap_lock);
    bool confirmed = waap_metrics == NULL && waap_params == NULL;
    /* The thread cannot wait for itself. */
    if (!confirmed && client.has_thread && !pthread_equal(client.thread, pthread_self())) {
        uint64_t number = waap_session_ask();
        uint64_t n_lost = waap_session_n_lost();
        waap_wake_up();
        int r = 0;
        while (!(confirmed = waap_session_confirmed(number)) && r == 0 &&
               !(give_up && waap_session_n_lost() != n_lost)) {
            r = pthread_cond_timedwait(&client.turned, &waap_lock, &end);
        }
    }
    pthread_mutex_unlock(&waap_lock);
    return confirmed;
}

/* An exporter that is away does not keep the program from ending. */
static void client_exit(void) {
    if (atomic_load(&waap_running)) {
        flush(EXIT_MS, true);
    }
}

static void fork_prepare(void) {
    pthread_mutex_lock(&waap_lock);
}

static void fork_parent(void) {
    pthread_mutex_unlock(&waap_lock);
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
    waap_wake_close();
    client.has_thread = false;
    init_turned();
    atomic_store(&waap_running, false);
    pthread_mutex_unlock(&waap_lock);
}

/* The thread takes no signal that is meant for the application's. */
static int start_thread(void) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_SIZE);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int r = pthread_create(&client.thread, &attributes, client_run, NULL);
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r;
}

static void set_up_once(void) {
    if (client.is_set_up) {
        return;
    }
    waap_settings_complete(&client.settings);
    init_turned();
    pthread_atfork(fork_prepare, fork_parent, fork_child);
    atexit(client_exit);
    client.is_set_up = true;
}

void waap_client_start(void) {
    int error = errno;
    pthread_mutex_lock(&waap_lock);
    set_up_once();
    if (!client.has_thread && client.settings.socket != NULL && client.settings.plugin != NULL) {
        waap_session_init();
        client.has_thread = waap_wake_open() >= 0 && start_thread() == 0;
    }
    /* Also where it failed: the next metric, not each record, tries again. */
    atomic_store(&waap_running, true);
    pthread_mutex_unlock(&waap_lock);
    errno = error;
}

int waap_configure(const struct waap_options *options) {
    pthread_mutex_lock(&waap_lock);
    int r = client.is_set_up ? -EBUSY : waap_settings_set(&client.settings, options);
    pthread_mutex_unlock(&waap_lock);
    return r;
}

int waap_before_send(void (*collect)(void *data), void *data) {
    pthread_mutex_lock(&waap_lock);
    bool room = client.n_collects < MAX_COLLECTS;
    if (room) {
        client.collects[client.n_collects].collect = collect;
        client.collects[client.n_collects].data = data;
        client.n_collects++;
    }
    pthread_mutex_unlock(&waap_lock);
    return room ? 0 : -ENOSPC;
}

bool waap_flush(unsigned timeout_ms) {
    waap_client_ensure();
    return flush(timeout_ms, false);
}

struct waap_stats waap_get_stats(void) {
    struct waap_stats stats;
    pthread_mutex_lock(&waap_lock);
    waap_session_stats(&stats);
    stats.n_series = waap_n_metrics;
    pthread_mutex_unlock(&waap_lock);
    stats.n_dropped = atomic_load(&waap_n_dropped);
    return stats;
}
