#include "exporter/http/server.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <unity.h>

#include "exporter/core/clock.h"
#include "exporter/core/log.h"

static const struct option listen_address = {
    .name = "web.listen-address", .type = OPTION_STRING, .repeatable = true};
static const struct option listen_group = {.name = "web.listen-group", .type = OPTION_STRING};
static const struct option listen_mode = {
    .name = "web.listen-mode", .type = OPTION_STRING, .default_text = "0660"};
static const struct option systemd_socket = {.name = "web.systemd-socket", .type = OPTION_BOOL};
static const struct option *const options[] = {&listen_address, &listen_group, &listen_mode,
                                               &systemd_socket};

static char directory[] = "/tmp/test_http_listen.XXXXXX";
static struct loop *loop;
static struct http_listeners *listeners;
static int n_accepted;
static struct error err;

static void accepted(int fd, void *context) {
    TEST_ASSERT_EQUAL_PTR(&n_accepted, context);
    n_accepted++;
    close(fd);
}

void setUp(void) {
    n_accepted = 0;
    err.text[0] = '\0';
    TEST_ASSERT_EQUAL_INT(0, loop_create(&loop, &err));
    listeners = http_listeners_create(loop, accepted, &n_accepted);
}

void tearDown(void) {
    http_listeners_destroy(listeners);
    loop_destroy(loop);
}

/* ---- helpers ---- */

static struct settings *settings_of(const char *const *addresses, const char *mode,
                                    const char *group) {
    struct settings *settings = settings_create(options, ARRAY_LEN(options));
    for (size_t i = 0; addresses[i] != NULL; i++) {
        settings_set(settings, &listen_address, SETTINGS_FLAG, addresses[i], &err);
    }
    if (mode != NULL) {
        settings_set(settings, &listen_mode, SETTINGS_FLAG, mode, &err);
    }
    if (group != NULL) {
        settings_set(settings, &listen_group, SETTINGS_FLAG, group, &err);
    }
    return settings;
}

static int apply(const struct settings *settings) {
    struct listen_names *names CLEANUP_LISTEN_NAMES = listen_names_create();
    http_server_look_up(settings, names);
    return http_server_listen(listeners, settings, names, &err);
}

static int configure(const char *first, const char *second) {
    const char *const addresses[] = {first, second, NULL};
    struct settings *settings CLEANUP_SETTINGS = settings_of(addresses, NULL, NULL);
    return apply(settings);
}

static int connect_unix(const char *path) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    snprintf(name.sun_path, sizeof(name.sun_path), "%s", path);
    int fd CLEANUP_CLOSE = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return connect(fd, (struct sockaddr *)&name, sizeof(name)) == 0 ? 0 : -errno;
}

/* A port that is taken for as long as the descriptor is open. */
static int take_port(in_port_t *ret_port) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(name);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    TEST_ASSERT_EQUAL_INT(0, bind(fd, (struct sockaddr *)&name, sizeof(name)));
    TEST_ASSERT_EQUAL_INT(0, listen(fd, 5));
    TEST_ASSERT_EQUAL_INT(0, getsockname(fd, (struct sockaddr *)&name, &len));
    *ret_port = ntohs(name.sin_port);
    return fd;
}

static int connect_tcp(in_port_t port) {
    struct sockaddr_in name = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd CLEANUP_CLOSE = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return connect(fd, (struct sockaddr *)&name, sizeof(name)) == 0 ? 0 : -errno;
}

static void turn(void) {
    for (int i = 0; i < 3; i++) {
        loop_turn(loop, 0);
    }
}

/* ---- Unix sockets ---- */

static void test_unix_socket_has_mode_and_goes_at_the_end(void) {
    const char *const addresses[] = {"unix:/proc/self/cwd/a.sock", NULL};
    struct settings *settings CLEANUP_SETTINGS = settings_of(addresses, "0602", NULL);
    TEST_ASSERT_EQUAL_INT(0, apply(settings));
    struct stat st;
    TEST_ASSERT_EQUAL_INT(0, stat("a.sock", &st));
    TEST_ASSERT_EQUAL_HEX(S_IFSOCK | 0602, st.st_mode);
    TEST_ASSERT_EQUAL_INT(0, connect_unix("a.sock"));
    turn();
    TEST_ASSERT_EQUAL_INT(1, n_accepted);
    http_listeners_destroy(TAKE(listeners));
    TEST_ASSERT_EQUAL_INT(-1, stat("a.sock", &st));
}

static void test_unknown_group_leaves_nothing_behind(void) {
    const char *const addresses[] = {"unix:/proc/self/cwd/a.sock", NULL};
    struct settings *settings CLEANUP_SETTINGS = settings_of(addresses, NULL, "no such group");
    TEST_ASSERT_EQUAL_INT(-EINVAL, apply(settings));
    TEST_ASSERT_NOT_NULL(strstr(err.text, "no such group"));
    TEST_ASSERT_EQUAL_INT(-1, access("a.sock", F_OK));
}

static void test_stale_socket_is_replaced_and_a_live_one_is_not(void) {
    struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "b.sock"};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    TEST_ASSERT_EQUAL_INT(0, bind(fd, (struct sockaddr *)&name, sizeof(name)));
    TEST_ASSERT_EQUAL_INT(0, listen(fd, 1));
    TEST_ASSERT_EQUAL_INT(-EADDRINUSE, configure("unix:/proc/self/cwd/b.sock", NULL));
    TEST_ASSERT_NOT_NULL(strstr(err.text, "another process listens there"));
    close(fd);
    TEST_ASSERT_EQUAL_INT(-ECONNREFUSED, connect_unix("b.sock"));
    TEST_ASSERT_EQUAL_INT(0, configure("unix:/proc/self/cwd/b.sock", NULL));
    TEST_ASSERT_EQUAL_INT(0, connect_unix("b.sock"));
}

static void test_what_is_no_socket_of_ours_is_named_and_left_alone(void) {
    static const struct {
        mode_t kind;
        const char *words;
    } table[] = {
        {S_IFREG, ": a regular file is there and is left alone: remove it, or choose another"},
        {S_IFDIR, ": a directory is there"},
        {S_IFLNK, ": a symbolic link is there"},
        {S_IFIFO, ": a device or pipe is there"},
        {S_IFSOCK, ": a socket of another kind, or of another user is there"},
    };
    struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "c.sock"};
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        int fd CLEANUP_CLOSE = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        int r = table[i].kind == S_IFDIR    ? mkdir("c.sock", 0700)
                : table[i].kind == S_IFLNK  ? symlink("nowhere", "c.sock")
                : table[i].kind == S_IFSOCK ? bind(fd, (struct sockaddr *)&name, sizeof(name))
                                            : mknod("c.sock", table[i].kind | 0600, 0);
        struct stat before, after;
        TEST_ASSERT_EQUAL_INT(0, r);
        TEST_ASSERT_EQUAL_INT(0, lstat("c.sock", &before));
        TEST_ASSERT_EQUAL_INT(-EADDRINUSE, configure("unix:/proc/self/cwd/c.sock", NULL));
        TEST_ASSERT_NOT_NULL_MESSAGE(strstr(err.text, table[i].words), err.text);
        TEST_ASSERT_EQUAL_INT(0, lstat("c.sock", &after));
        TEST_ASSERT_EQUAL_UINT64(before.st_ino, after.st_ino);
        TEST_ASSERT_EQUAL_HEX(before.st_mode, after.st_mode);
        TEST_ASSERT_EQUAL_INT(0, remove("c.sock"));
    }
}

static void test_what_took_our_place_stays(void) {
    struct stat st;
    TEST_ASSERT_EQUAL_INT(0, configure("unix:/proc/self/cwd/h.sock", NULL));
    TEST_ASSERT_EQUAL_INT(0, rename("h.sock", "ours"));
    close(open("h.sock", O_CREAT | O_WRONLY | O_CLOEXEC, 0640));
    TEST_ASSERT_FALSE(http_listeners_are_there(listeners));
    TEST_ASSERT_EQUAL_INT(-EADDRINUSE, configure("unix:/proc/self/cwd/h.sock", NULL));
    TEST_ASSERT_EQUAL_INT(0, stat("h.sock", &st));
    TEST_ASSERT_EQUAL_HEX(S_IFREG | 0640, st.st_mode);
    http_listeners_destroy(TAKE(listeners));
    TEST_ASSERT_EQUAL_INT(0, unlink("h.sock"));
    TEST_ASSERT_EQUAL_INT(0, unlink("ours"));
}

static void test_what_was_removed_is_made_anew(void) {
    TEST_ASSERT_EQUAL_INT(0, configure("unix:/proc/self/cwd/h.sock", NULL));
    TEST_ASSERT_TRUE(http_listeners_are_there(listeners));
    TEST_ASSERT_EQUAL_INT(0, unlink("h.sock"));
    TEST_ASSERT_FALSE(http_listeners_are_there(listeners));
    TEST_ASSERT_EQUAL_INT(0, configure("unix:/proc/self/cwd/h.sock", NULL));
    TEST_ASSERT_TRUE(http_listeners_are_there(listeners));
    http_listeners_destroy(TAKE(listeners));
    TEST_ASSERT_EQUAL_INT(-1, access("h.sock", F_OK));
}

/* ---- changes ---- */

static void test_a_failure_changes_nothing(void) {
    in_port_t taken;
    int fd = take_port(&taken);
    char bad[32];
    snprintf(bad, sizeof(bad), "127.0.0.1:%d", taken);
    TEST_ASSERT_EQUAL_INT(0, configure("unix:/proc/self/cwd/d.sock", NULL));
    TEST_ASSERT_EQUAL_INT(-EADDRINUSE, configure("unix:/proc/self/cwd/e.sock", bad));
    TEST_ASSERT_NOT_NULL(strstr(err.text, bad));
    TEST_ASSERT_EQUAL_INT(0, connect_unix("d.sock"));
    TEST_ASSERT_EQUAL_INT(-ENOENT, connect_unix("e.sock"));
    close(fd);
}

static void test_addresses_come_go_and_stay(void) {
    TEST_ASSERT_EQUAL_INT(0, configure("unix:/proc/self/cwd/d.sock", "unix:/proc/self/cwd/e.sock"));
    struct stat before, after;
    TEST_ASSERT_EQUAL_INT(0, stat("d.sock", &before));
    TEST_ASSERT_EQUAL_INT(0, configure("unix:/proc/self/cwd/f.sock", "unix:/proc/self/cwd/d.sock"));
    TEST_ASSERT_EQUAL_INT(0, stat("d.sock", &after));
    TEST_ASSERT_EQUAL_UINT64(before.st_ino, after.st_ino);
    TEST_ASSERT_EQUAL_INT(0, connect_unix("d.sock"));
    TEST_ASSERT_EQUAL_INT(0, connect_unix("f.sock"));
    TEST_ASSERT_EQUAL_INT(-ENOENT, connect_unix("e.sock"));
    turn();
    TEST_ASSERT_EQUAL_INT(2, n_accepted);
}

static void test_all_addresses_means_both_families(void) {
    in_port_t port;
    close(take_port(&port));
    char text[16];
    snprintf(text, sizeof(text), ":%d", port);
    TEST_ASSERT_EQUAL_INT(0, configure(text, NULL));
    TEST_ASSERT_EQUAL_INT(0, connect_tcp(port));
    turn();
    TEST_ASSERT_EQUAL_INT(1, n_accepted);
}

/* ---- trouble ---- */

static void test_out_of_descriptors_rests_and_goes_on(void) {
    TEST_ASSERT_EQUAL_INT(0, configure("unix:/proc/self/cwd/g.sock", NULL));
    TEST_ASSERT_EQUAL_INT(0, connect_unix("g.sock"));
    struct rlimit before;
    getrlimit(RLIMIT_NOFILE, &before);
    int next_fd = dup(0);
    close(next_fd);
    struct rlimit none = {.rlim_cur = (rlim_t)next_fd, .rlim_max = before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    int64_t begin_ns = clock_monotonic_ns();
    loop_turn(loop, 0);
    TEST_ASSERT_EQUAL_INT(0, n_accepted);
    loop_turn(loop, 50); /* nothing spins meanwhile */
    TEST_ASSERT_GREATER_OR_EQUAL_INT64(50 * CLOCK_NS_PER_MS, clock_monotonic_ns() - begin_ns);
    setrlimit(RLIMIT_NOFILE, &before);
    while (n_accepted == 0 && clock_monotonic_ns() - begin_ns < 60 * CLOCK_NS_PER_SEC) {
        loop_turn(loop, 100);
    }
    TEST_ASSERT_EQUAL_INT(1, n_accepted);
}

static void test_systemd_must_have_handed_sockets_over(void) {
    const char *const none[] = {NULL};
    struct settings *settings CLEANUP_SETTINGS = settings_of(none, NULL, NULL);
    settings_set(settings, &systemd_socket, SETTINGS_FLAG, "true", &err);
    static const struct {
        const char *pid; /* NULL: ours */
        const char *fds;
    } rows[] = {{"1", "1"}, {NULL, "0"}, {NULL, "-1"}, {NULL, "x"}, {NULL, "4294967297"}};
    char own_pid[16];
    snprintf(own_pid, sizeof(own_pid), "%d", getpid());
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        setenv("LISTEN_PID", rows[i].pid != NULL ? rows[i].pid : own_pid, 1);
        setenv("LISTEN_FDS", rows[i].fds, 1);
        TEST_ASSERT_EQUAL_INT(-EINVAL, apply(settings));
        TEST_ASSERT_NOT_NULL(strstr(err.text, "LISTEN_FDS"));
    }
    unsetenv("LISTEN_PID");
    TEST_ASSERT_EQUAL_INT(-EINVAL, apply(settings));
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
