#include "exporter/core/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "exporter/core/buf.h"
#include "exporter/core/utf8.h"

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

/* Of a valid sequence; those of four bytes, which hold no controls, count as one. */
static unsigned code_point(const char *text, size_t n) {
    const unsigned char *b = (const unsigned char *)text;
    switch (n) {
    case 1:
        return b[0];
    case 2:
        return (b[0] & 0x1fU) << 6 | (b[1] & 0x3fU);
    case 3:
        return (b[0] & 0x0fU) << 12 | (b[1] & 0x3fU) << 6 | (b[2] & 0x3fU);
    default:
        return 0xffff;
    }
}

/* C0 and C1, ends of lines, and what changes the direction of a text. */
static bool is_control(unsigned c) {
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x061c || c == 0x200e || c == 0x200f ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

/* Both formats quote alike: a JSON string is also a valid logfmt value. Controls are escaped so
 * that no text can act on a terminal. */
static void add_quoted(struct buf *out, const char *text) {
    size_t left = strlen(text);
    buf_add_char(out, '"');
    while (left > 0) {
        size_t n = utf8_sequence(text, left);
        if (n == 0) {
            buf_add_str(out, UTF8_REPLACEMENT);
            n = 1;
        } else if (*text == '"' || *text == '\\') {
            buf_add_char(out, '\\');
            buf_add_char(out, *text);
        } else if (is_control(code_point(text, n))) {
            buf_printf(out, "\\u%04x", code_point(text, n));
        } else {
            buf_add(out, text, n);
        }
        text += n;
        left -= n;
    }
    buf_add_char(out, '"');
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
    add_quoted(&line, buf_str(&message));
    buf_add_str(&line, json ? "}\n" : "\n");

    /* One write, so that lines of several threads do not mix; nothing can be done if it fails. */
    ssize_t ignored = write(STDERR_FILENO, buf_str(&line), line.len);
    (void)ignored;
    errno = saved_errno;
}
