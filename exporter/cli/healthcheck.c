#include <ctype.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>

#include "collectors/source/entries.h"
#include "exporter/cli/cli.h"
#include "exporter/core/file.h"
#include "exporter/http/web_config.h"
#include "exporter/net/address.h"
#include "exporter/settings/config.h"

enum { TIMEOUT_S = 5, MAX_ARGUMENTS = 256 };

static const char request[] = "GET /-/healthy HTTP/1.1\r\nHost: localhost\r\n"
                              "Connection: close\r\n\r\n";

/* A status below 500: a missing password or certificate is not the fault of the daemon. */
static bool is_good(const char *reply) {
    unsigned status = 0;
    return sscanf(reply, "HTTP/1.%*1u %3u", &status) == 1 && status >= 200 && status < 500;
}

/* ---- connecting ---- */

static int connect_to(const struct sockaddr *address, socklen_t len) {
    const struct timeval timeout = {.tv_sec = TIMEOUT_S};
    int fd CLEANUP_CLOSE = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -errno;
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
    if (connect(fd, address, len) < 0) {
        return -errno;
    }
    return TAKE_FD(fd);
}

static int connect_unix(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    return connect_to((const struct sockaddr *)&address, sizeof(address));
}

/* A daemon that listens on all addresses is reached on the loopback. */
static int connect_tcp(const struct http_address *where) {
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    if (getaddrinfo(http_address_is_any(where) ? NULL : where->host, where->port, &hints, &list) !=
        0) {
        return -EADDRNOTAVAIL;
    }
    int fd = -EADDRNOTAVAIL;
    for (const struct addrinfo *info = list; info != NULL && fd < 0; info = info->ai_next) {
        fd = connect_to(info->ai_addr, info->ai_addrlen);
    }
    freeaddrinfo(list);
    return fd;
}

/* ---- request and reply ---- */

static int request_plain(int fd, char *reply, size_t size) {
    if (send(fd, request, strlen(request), MSG_NOSIGNAL) < 0) {
        return -errno;
    }
    ssize_t n = recv(fd, reply, size - 1, 0);
    reply[n > 0 ? n : 0] = '\0';
    return n < 0 ? -errno : 0;
}

/* Does not verify the certificate: nothing secret is sent. A daemon that requests a certificate
 * from us is alive. */
static int request_tls(int fd, char *reply, size_t size) {
    gnutls_certificate_credentials_t credentials;
    gnutls_session_t session;
    gnutls_certificate_allocate_credentials(&credentials);
    gnutls_init(&session,
                GNUTLS_CLIENT |
                    GNUTLS_NO_SIGNAL); /* the daemon may close the connection at any time */
    gnutls_set_default_priority(session);
    gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, credentials);
    gnutls_transport_set_int(session, fd);
    gnutls_handshake_set_timeout(session, TIMEOUT_S * 1000);
    int r;
    do {
        r = gnutls_handshake(session);
    } while (r < 0 && gnutls_error_is_fatal(r) == 0);
    ssize_t n = -1;
    if (r >= 0 && gnutls_record_send(session, request, strlen(request)) > 0) {
        n = gnutls_record_recv(session, reply, size - 1);
    }
    reply[n > 0 ? n : 0] = '\0';
    bool wants_certificate = gnutls_certificate_client_get_request_status(session) != 0;
    gnutls_deinit(session);
    gnutls_certificate_free_credentials(credentials);
    if (n <= 0 && wants_certificate) {
        snprintf(reply, size, "HTTP/1.1 401");
        return 0;
    }
    return n > 0 ? 0 : -EPROTO;
}

static int check(const char *where, bool tls) {
    struct http_address address;
    struct error error;
    char reply[256];
    if (http_address_parse(where, &address, &error) < 0) {
        fprintf(stderr, "waap: %s: %s\n", where, error.text);
        return 2;
    }
    int fd CLEANUP_CLOSE = address.is_unix ? connect_unix(address.path) : connect_tcp(&address);
    int r = fd < 0 ? fd
            : tls  ? request_tls(fd, reply, sizeof(reply))
                   : request_plain(fd, reply, sizeof(reply));
    if (r < 0) {
        fprintf(stderr, "waap: %s: %s\n", where, strerror(-r));
        return 1;
    }
    if (!is_good(reply)) {
        fprintf(stderr, "waap: %s: replies \"%.*s\"\n", where, (int)strcspn(reply, "\r\n"), reply);
        return 1;
    }
    return 0;
}

/* ---- the address ---- */

/* The words of a process if it is `waap serve`; they point into `text`. 0: it is another program.
 */
static int read_arguments(const char *pid, struct buf *text, char **argv) {
    char path[64];
    int argc = 0;
    snprintf(path, sizeof(path), "/proc/%s/cmdline", pid);
    if (file_read(path, text, NULL) < 0) {
        return 0;
    }
    for (char *word = text->data; word < text->data + text->len && argc < MAX_ARGUMENTS;
         word += strlen(word) + 1) {
        argv[argc++] = word;
    }
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    const char *program = argc > 0 ? (slash != NULL ? slash + 1 : argv[0]) : "";
    bool is_serve = argc > 1 && strcmp(program, "waap") == 0 && strcmp(argv[1], "serve") == 0;
    return is_serve ? argc : 0;
}

/* Whether a process has our network: only then its addresses are ours. */
static bool shares_network(const char *pid) {
    char path[64];
    struct stat own, other;
    snprintf(path, sizeof(path), "/proc/%s/ns/net", pid);
    return stat("/proc/self/ns/net", &own) == 0 && stat(path, &other) == 0 &&
           own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

/* The words of the daemon that runs here: in a container it is process 1, unless the container
 * shares the host's processes; then an address in the environment wins. 0: there is none. */
static int find_daemon(struct buf *text, char **argv) {
    struct entries processes CLEANUP_ENTRIES = {0};
    int argc = read_arguments("1", text, argv);
    if (argc > 0 || getenv("WAAP_WEB_LISTEN_ADDRESS") != NULL) {
        return argc;
    }
    entries_init(&processes, "/proc", "");
    for (size_t i = 0; i < processes.n_names && argc == 0; i++) {
        const char *pid = processes.names[i];
        if (isdigit((unsigned char)pid[0]) && shares_network(pid)) {
            argc = read_arguments(pid, text, argv);
        }
    }
    return argc;
}

int healthcheck_main(const struct collector *const *collectors, int argc, char **argv) {
    struct buf text CLEANUP_BUF = {0};
    char *words[MAX_ARGUMENTS + 1] = {NULL};
    int n_words = argc == 1 ? find_daemon(&text, words) : 0;
    struct problems problems CLEANUP_PROBLEMS = {0};
    struct config *config CLEANUP_CONFIG = NULL;
    int r = n_words > 1
                ? config_from_command_line(collectors, n_words - 1, words + 1, &config, &problems)
                : config_from_command_line(collectors, argc, argv, &config, &problems);
    struct web_config *web_config CLEANUP_WEB_CONFIG = NULL;
    r = r < 0 ? r : web_config_load_set(config->settings, &web_config, &problems);
    if (r < 0) {
        problems_print(&problems, stderr);
        return 2;
    }
    const char *const *addresses = settings_list(config->settings, "web.listen-address");
    if (addresses[0] == NULL) {
        fprintf(stderr, "waap: no address to check\n");
        return 2;
    }
    return check(addresses[0], web_config != NULL && web_config->tls != NULL);
}
