#include "exporter/loop/notify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <unity.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/clock.h"
#include "exporter/core/log.h"
#include "tests/unit/waiting.h"

static char directory[] = "/tmp/test_notify.XXXXXX";
static struct loop *loop;
static struct notify *notify;
static int manager = -1;

/* Listens as a service manager does; "@name" is an abstract socket. */
static void listen_at(const char *where) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, where);
    if (where[0] == '@') {
        address.sun_path[0] = '\0';
    }
    size_t len = offsetof(struct sockaddr_un, sun_path) + strlen(where);
    manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    TEST_ASSERT_EQUAL_INT(0, bind(manager, (struct sockaddr *)&address, (socklen_t)len));
    setenv("NOTIFY_SOCKET", where, 1);
}

static void listen_at_a_path(void) {
    char where[64];
    snprintf(where, sizeof(where), "%s/notify", directory);
    listen_at(where);
}

/* What was said next; "" for nothing. */
static const char *heard(void) {
    static char text[256];
    ssize_t n = recv(manager, text, sizeof(text) - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

static void create(void) {
    notify = notify_create(loop);
    TEST_ASSERT_NOT_NULL(notify);
}

void setUp(void) {
    struct error err;
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_PID");
    unsetenv("WATCHDOG_USEC");
    TEST_ASSERT_EQUAL_INT(0, loop_create(&loop, &err));
}

void tearDown(void) {
    notify_destroy(notify);
    notify = NULL;
    loop_destroy(loop);
    cleanup_close(&manager);
    manager = -1;
    unlink("notify");
}

static void test_states_are_told_in_their_order(void) {
    listen_at_a_path();
    create();
    TEST_ASSERT_EQUAL_STRING("", heard());
    notify_ready(notify, "serving");
    TEST_ASSERT_EQUAL_STRING("READY=1\nSTATUS=serving", heard());
    int64_t before_us = clock_monotonic_ns() / 1000;
    notify_reloading(notify);
    int64_t told_us = 0;
    TEST_ASSERT_EQUAL_INT(1, sscanf(heard(), "RELOADING=1\nMONOTONIC_USEC=%" SCNd64, &told_us));
    TEST_ASSERT_TRUE(told_us >= before_us && told_us <= clock_monotonic_ns() / 1000);
    notify_ready(notify, "configuration refused");
    TEST_ASSERT_EQUAL_STRING("READY=1\nSTATUS=configuration refused", heard());
    notify_stopping(notify);
    TEST_ASSERT_EQUAL_STRING("STOPPING=1", heard());
    TEST_ASSERT_EQUAL_STRING("", heard());
}

static void test_an_abstract_socket_is_reached(void) {
    char name[64];
    snprintf(name, sizeof(name), "@test_notify.%d", getpid());
    listen_at(name);
    create();
    notify_stopping(notify);
    TEST_ASSERT_EQUAL_STRING("STOPPING=1", heard());
}

static void tell_all(void) {
    notify_ready(notify, "serving");
    notify_reloading(notify);
    notify_stopping(notify);
}

static void test_without_a_usable_address_nothing_is_said(void) {
    char long_path[200] = "/";
    memset(long_path + 1, 'x', sizeof(long_path) - 2);
    const char *const rows[] = {NULL, "", "/", "@", "relative", "vsock:2:1234", long_path};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        unsetenv("NOTIFY_SOCKET");
        if (rows[i] != NULL) {
            setenv("NOTIFY_SOCKET", rows[i], 1);
        }
        setenv("WATCHDOG_USEC", "1", 1);
        create();
        tell_all();
        loop_turn(loop, 0);
        notify_destroy(notify);
    }
    notify = NULL;
    tell_all();
}

static void test_a_manager_that_is_gone_does_no_harm(void) {
    listen_at_a_path();
    create();
    cleanup_close(&manager);
    tell_all();
    unlink("notify");
    tell_all();
}

static void test_a_manager_that_does_not_read_holds_nobody_up_for_long(void) {
    listen_at_a_path();
    setenv("WATCHDOG_USEC", "2", 1);
    create();
    notify_ready(notify, "serving");
    for (int i = 0; i < 2000; i++) { /* more than any queue of datagrams holds */
        loop_turn(loop, 10);
    }
    notify_stopping(notify);
    TEST_ASSERT_EQUAL_STRING("READY=1\nSTATUS=serving", heard());
    TEST_ASSERT_EQUAL_STRING("WATCHDOG=1", heard());
}

static void test_signs_of_life_come_from_turns_of_the_loop(void) {
    listen_at_a_path();
    char pid[16];
    snprintf(pid, sizeof(pid), "%d", getpid());
    setenv("WATCHDOG_PID", pid, 1);
    setenv("WATCHDOG_USEC", "20000", 1);
    create();
    loop_turn(loop, 0);
    TEST_ASSERT_EQUAL_STRING("", heard()); /* not before it is ready */
    notify_ready(notify, "serving");
    heard();
    int64_t begin_ns = clock_monotonic_ns();
    for (int i = 0; i < 4; i++) {
        loop_turn(loop, -1); /* only the timer can wake it */
        TEST_ASSERT_EQUAL_STRING("WATCHDOG=1", heard());
    }
    TEST_ASSERT_GREATER_OR_EQUAL_INT64(30 * CLOCK_NS_PER_MS, clock_monotonic_ns() - begin_ns);
    pace_ms(50); /* a loop that hangs */
    TEST_ASSERT_EQUAL_STRING("", heard());
}

static void test_nobody_asked_for_signs_of_life(void) {
    static const struct {
        const char *pid;
        const char *usec;
    } rows[] = {
        {NULL, NULL},   {"1", "2"},   {"", "2"},
        {NULL, "0"},    {NULL, ""},   {NULL, "-2"},
        {NULL, "soon"}, {NULL, "2s"}, {NULL, "99999999999999999999"},
    };
    listen_at_a_path();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        unsetenv("WATCHDOG_PID");
        unsetenv("WATCHDOG_USEC");
        if (rows[i].pid != NULL) {
            setenv("WATCHDOG_PID", rows[i].pid, 1);
        }
        if (rows[i].usec != NULL) {
            setenv("WATCHDOG_USEC", rows[i].usec, 1);
        }
        create();
        notify_ready(notify, "serving");
        heard();
        loop_turn(loop, 1);
        TEST_ASSERT_EQUAL_STRING("", heard());
        notify_destroy(notify);
        notify = NULL;
    }
}

void suiteSetUp(void) {
    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    if (mkdtemp(directory) == NULL || chdir(directory) < 0) {
        exit(1);
    }
}

int suiteTearDown(int failures) {
    rmdir(directory);
    return failures;
}
