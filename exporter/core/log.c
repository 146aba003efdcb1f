#include "exporter/core/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "exporter/core/buf.h"
#include "exporter/core/json_write.h"

static atomic_int current_level = LOG_LEVEL_INFO;
static atomic_int current_format = LOG_FORMAT_LOGFMT;

static const char *const level_names[] = {"debug", "info", "warn", "error"};

void log_configure(enum log_level level, enum log_format format) {
    atomic_store(&current_level, level);
    atomic_store(&current_format, format);
}

bool log_enabled(enum log_level level) {
    return (int)level >= atomic_load_explicit(&current_level, memory_order_relaxed);
}

static void add_timestamp(struct buf *out) {
    struct timespec now;
    struct tm utc;
    char text[32];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc);
    buf_printf(out, "%s.%03ldZ", text, now.tv_nsec / 1000000);
}

void log_write(enum log_level level, const char *format, ...) {
    if (!log_enabled(level)) {
        return;
    }
    int saved_errno = errno;
    struct buf message CLEANUP_BUF = {0};
    struct buf line CLEANUP_BUF = {0};
    bool json = atomic_load(&current_format) == LOG_FORMAT_JSON;

    va_list args;
    va_start(args, format);
    buf_vprintf(&message, format, args);
    va_end(args);

    buf_add_str(&line, json ? "{\"ts\":\"" : "ts=");
    add_timestamp(&line);
    buf_printf(&line, json ? "\",\"level\":\"%s\",\"msg\":" : " level=%s msg=", level_names[level]);
    json_add_string(&line, buf_str(&message)); /* logfmt quotes alike */
    buf_add_str(&line, json ? "}\n" : "\n");

    /* One write, so that lines of several threads do not mix; nothing can be done if it fails. */
    ssize_t ignored = write(STDERR_FILENO, buf_str(&line), line.len);
    (void)ignored;
    errno = saved_errno;
}
