#include <errno.h>
#include <string.h>
#include <sys/un.h>

#include "exporter/net/address.h"
#include "exporter/net/network.h"
#include "exporter/settings/config.h"

#define KIB INT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define SECONDS INT64_C(1000)
#define MINUTES (60 * SECONDS)
#define HOURS (60 * MINUTES)

static const char *const demos[] = {"off", "jetson", "dgpu", NULL}; /* enum demo_kind */
static const char *const log_formats[] = {"logfmt", "json", NULL};  /* enum log_format */
static const char *const log_levels[] = {"debug", "info", "warn", "error", NULL}; /* log_level */

static int check_url_path(const char *text, struct error *err) {
    if (text[0] == '/' && strpbrk(text, "?# ") == NULL) {
        return 0;
    }
    return error_set(err, -EINVAL, "expected a path that begins with /, got \"%s\"", text);
}

static int check_socket_path(const char *text, struct error *err) {
    struct sockaddr_un name;
    if (text[0] == '/' && strlen(text) < sizeof(name.sun_path)) {
        return 0;
    }
    return error_set(err, -EINVAL, "expected an absolute path of less than %zu bytes, got \"%s\"",
                     sizeof(name.sun_path), text);
}

static int check_file_mode(const char *text, struct error *err) {
    size_t len = strlen(text);
    if ((len == 3 || len == 4) && strspn(text, "01234567") == len) {
        return 0;
    }
    return error_set(err, -EINVAL, "expected permissions in octal such as 0660, got \"%s\"", text);
}

const struct option exporter_options[] = {
    {"collector.disable-defaults", OPTION_BOOL,
     .help = "Leave out all collectors but those switched on explicitly"},
    {"collector.reprobe-interval", OPTION_DURATION, .default_text = "60s", .min = 1 * SECONDS,
     .max = 24 * HOURS, .help = "How often to look again for a source that this machine lacked"},
    {"config.file", OPTION_STRING, .common = true, .not_in_file = true,
     .help = "YAML file to read settings from"},
    {"demo", OPTION_CHOICE, .common = true, .default_text = "off", .bare_text = "jetson",
     .choices = demos,
     .help = "Show simulated hardware instead of this machine: a Jetson, or a server with cards"},
    {"log.format", OPTION_CHOICE, .default_text = "logfmt", .choices = log_formats,
     .help = "Form of the log lines on standard error"},
    {"log.level", OPTION_CHOICE, .common = true, .default_text = "info", .choices = log_levels,
     .help = "Least severity that is logged"},
    {"path.cgroupfs", OPTION_STRING, .default_text = "/sys/fs/cgroup",
     .help = "Where the host's cgroup hierarchy is mounted"},
    {"path.procfs", OPTION_STRING, .default_text = "/proc",
     .help = "Where the host's proc file system is mounted"},
    {"path.rootfs", OPTION_STRING, .common = true, .default_text = "/",
     .help = "Where the host's root file system is mounted"},
    {"path.sysfs", OPTION_STRING, .default_text = "/sys",
     .help = "Where the host's sys file system is mounted"},
    {"push.allow", OPTION_STRING, .common = true, .repeatable = true, .check = network_check,
     .help = "Networks that may push, turn knobs, reload and quit over TCP, besides localhost; "
             "gateways and proxies, which forward for others, only by their own address"},
    {"push.allow-local", OPTION_BOOL, .default_text = "true",
     .help = "Let localhost push, turn knobs, reload and quit over TCP; turn it off if a proxy "
             "here adds no Forwarded, Via, X-Forwarded-For or X-Real-IP"},
    {"push.max-connections", OPTION_INT, .default_text = "256", .min = 1, .max = 65536,
     .help = "Most connections of plugins open at once"},
    {"push.max-connections-per-peer", OPTION_INT, .default_text = "64", .min = 1, .max = 65536,
     .help = "Most connections open at once from one container, or one user outside of any"},
    {"push.max-line-rate", OPTION_INT, .default_text = "0", .max = 10000000,
     .help = "Most lines in a second of one plugin, on all its connections, where more wait, or "
             "metrics of one plugin or group over HTTP, where more are refused; 0: no limit"},
    {"push.max-line-size", OPTION_SIZE, .default_text = "64KiB", .min = 256, .max = 16 * MIB,
     .help = "Longest line of a plugin"},
    {"push.max-series-per-plugin", OPTION_INT, .default_text = "10000", .min = 1, .max = 10000000,
     .help = "Most series that are kept of one plugin or group"},
    {"push.max-size-per-peer", OPTION_SIZE, .default_text = "16MiB", .min = 4 * KIB, .max = 1 * GIB,
     .help = "Most bytes that one container, user outside of any, or address may keep: series "
             "in memory, in push.table and on a page"},
    {"push.pywaggle-log", OPTION_STRING, .repeatable = true,
     .help = "Directories of pywaggle's run logs: what plugins publish there becomes metrics"},
    {"push.socket", OPTION_STRING, .common = true, .repeatable = true,
     .default_text = "/run/waap/push.sock", .check = check_socket_path,
     .help = "Unix socket on which plugins push metrics and receive knob values; empty: none"},
    {"push.socket-group", OPTION_STRING,
     .help = "Group that owns push.socket; empty: that of the process"},
    {"push.socket-mode", OPTION_STRING, .default_text = "0666", .check = check_file_mode,
     .help = "Permissions of push.socket"},
    {"push.state-file", OPTION_STRING, .common = true,
     .help = "File on disk to which pushed series are saved, so that they survive a reboot"},
    {"push.state-interval", OPTION_DURATION, .default_text = "60s", .min = 1 * SECONDS,
     .max = 24 * HOURS,
     .help = "How often the state file is written, if there is something to write"},
    {"push.table", OPTION_STRING, .default_text = "/run/waap-store/push.table",
     .help = "File on tmpfs that keeps what was pushed over a restart, in a directory for waap "
             "alone; empty: in memory only"},
    {"push.table-size", OPTION_SIZE, .default_text = "64MiB", .min = 64 * KIB, .max = 1 * GIB,
     .help = "Most bytes that all pushes together may keep, and largest size of push.table"},
    {"push.ttl", OPTION_DURATION, .default_text = "5m", .max = 365 * 24 * HOURS,
     .help = "How long series outlive the last sign of life of their plugin; 0: for ever"},
    {"push.user", OPTION_STRING, .repeatable = true,
     .help = "Users of web.config.file who may push, turn knobs, reload and quit from everywhere"},
    {"sample.hz", OPTION_INT, .default_text = "10", .min = 1, .max = 100,
     .help = "Samples per second between scrapes, for integrals and peaks"},
    {"sample.peak-window", OPTION_DURATION, .default_text = "60s", .min = 1 * SECONDS,
     .max = 1 * HOURS, .help = "How far back the peak metrics look"},
    {"scrape.timeout", OPTION_DURATION, .default_text = "10s", .min = SECONDS / 10,
     .max = 10 * MINUTES,
     .help = "Limit of a scrape that sends no X-Prometheus-Scrape-Timeout-Seconds"},
    {"scrape.timeout-offset", OPTION_DURATION, .default_text = "500ms", .max = 10 * SECONDS,
     .help = "How long before the scraper's own limit the answer is sent"},
    {"web.auth-exempt-health", OPTION_BOOL,
     .help = "Serve /-/healthy and /-/ready without password"},
    {"web.config.file", OPTION_STRING, .common = true,
     .help = "YAML file with TLS and user settings, in the form of the exporter toolkit"},
    {"web.disable-exporter-metrics", OPTION_BOOL,
     .help = "Leave out the metrics about the exporter itself"},
    {"web.enable-admin-api", OPTION_BOOL,
     .help = "Allow PUT /api/v1/admin/wipe, which drops everything that was pushed"},
    {"web.enable-lifecycle", OPTION_BOOL, .help = "Allow /-/reload and /-/quit"},
    {"web.header-timeout", OPTION_DURATION, .default_text = "10s", .min = 1 * SECONDS,
     .max = 10 * MINUTES,
     .help = "How long a client may take to send a request's header, and fall behind 4 KiB/s in "
             "its body"},
    {"web.hostname", OPTION_STRING, .repeatable = true,
     .help = "Names under which browsers may push, turn knobs, reload and quit without a "
             "password, besides addresses, localhost and the host name"},
    {"web.idle-timeout", OPTION_DURATION, .default_text = "120s", .min = 1 * SECONDS,
     .max = 24 * HOURS, .help = "How long a connection may stay open without a request"},
    {"web.listen-address", OPTION_STRING, .common = true, .repeatable = true,
     .default_text = ":9090", .check = http_address_check,
     .help = "Where to listen: host:port, [IPv6]:port, :port or unix:/path"},
    {"web.listen-group", OPTION_STRING,
     .help = "Group that owns Unix sockets; empty: that of the process"},
    {"web.listen-mode", OPTION_STRING, .default_text = "0660", .check = check_file_mode,
     .help = "Permissions of Unix sockets"},
    {"web.max-bodies-size", OPTION_SIZE, .default_text = "64MiB", .min = 1 * KIB, .max = 64 * GIB,
     .help = "Most memory for all bodies above 64 KiB together, one of web.max-body-size at least; "
             "others are answered with 503"},
    {"web.max-body-size", OPTION_SIZE, .default_text = "10MiB", .min = 1 * KIB, .max = 1 * GIB,
     .help = "Largest body of a request, unpacked; larger ones are answered with 413, and so are "
             "pushes whose content takes more than about 1.5 times as much memory"},
    {"web.max-connections", OPTION_INT, .default_text = "128", .min = 8, .max = 65536,
     .help = "Most connections open at once; one more takes the place of the least valuable"},
    {"web.max-connections-per-address", OPTION_INT, .default_text = "0", .max = 65536,
     .help = "Most connections open at once from one address; 0: no limit"},
    {"web.max-header-size", OPTION_SIZE, .default_text = "16KiB", .min = 4 * KIB, .max = 1 * MIB,
     .help = "Largest header of a request; larger ones are answered with 431"},
    {"web.max-requests", OPTION_INT, .default_text = "0", .max = 10000,
     .help = "Most scrapes in progress at once; beyond it the address that has most of them is "
             "answered with 503; 0: half of web.max-connections, which is the most it can be"},
    {"web.max-sending-size", OPTION_SIZE, .default_text = "32MiB", .min = 1 * MIB, .max = 64 * GIB,
     .help = "Most memory for all answers above 64 KiB that clients have not read completely; the "
             "readers of the oldest are disconnected beyond it"},
    {"web.systemd-socket", OPTION_BOOL,
     .help = "Do not start without sockets from systemd, which replace web.listen-address"},
    {"web.telemetry-path", OPTION_STRING, .default_text = "/metrics", .check = check_url_path,
     .help = "Path under which metrics are served"},
    {0},
};
