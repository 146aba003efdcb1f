#include "exporter/net/listen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <unity.h>

#include "exporter/core/cleanup.h"

static void set(const char *variable, const char *value) {
    if (value == NULL) {
        unsetenv(variable);
    } else {
        setenv(variable, value, 1);
    }
}

/* "3 5" of descriptors 3 and 5. */
static const char *found(const char *who) {
    static char text[256];
    int fds[LISTEN_PASSED_MAX];
    size_t n = listen_passed_find(who, fds);
    text[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        sprintf(text + strlen(text), i == 0 ? "%d" : " %d", fds[i]);
    }
    return text;
}

static void test_sockets_go_to_whom_they_are_named_for(void) {
    static const struct {
        const char *fds;
        const char *names;
        const char *http;
        const char *push;
    } rows[] = {
        {NULL, NULL, "", ""},
        {"0", "", "", ""},
        {"-1", "push", "", ""},
        {"many", "push", "", ""},
        {"65", "push", "", ""},
        {"4294967297", "push", "", ""},
        {"1", NULL, "3", ""},
        {"1", "", "3", ""},
        {"1", "waap.socket", "3", ""},
        {"1", "push", "", "3"},
        {"2", "push", "4", "3"},
        {"2", "push:", "4", "3"},
        {"2", ":push", "3", "4"},
        {"4", "waap.socket:push:waap.socket:push", "3 5", "4 6"},
        {"4", "pus:pushy:push:unknown", "3 4 6", "5"},
        {"1", "waap.socket:push", "3", ""},
    };
    char own_pid[16];
    snprintf(own_pid, sizeof(own_pid), "%d", getpid());
    set("LISTEN_PID", own_pid);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        set("LISTEN_FDS", rows[i].fds);
        set("LISTEN_FDNAMES", rows[i].names);
        TEST_ASSERT_EQUAL_STRING(rows[i].http, found("http"));
        TEST_ASSERT_EQUAL_STRING(rows[i].push, found("push"));
    }
}

static void test_sockets_of_another_process_are_not_ours(void) {
    static const char *const pids[] = {NULL, "", "1", "x"};
    set("LISTEN_FDS", "1");
    set("LISTEN_FDNAMES", NULL);
    for (size_t i = 0; i < ARRAY_LEN(pids); i++) {
        set("LISTEN_PID", pids[i]);
        TEST_ASSERT_EQUAL_STRING("", found("http"));
    }
}
