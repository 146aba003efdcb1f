#include "profiler/analysis/report_text.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>

#include "exporter/core/file.h"
#include "exporter/core/json_write.h"
#include "exporter/core/memory.h"
#include "exporter/core/utf8.h"

void text_put_number(struct buf *out, const char *key, double value) {
    if (isfinite(value)) {
        json_put_number(out, key, value);
    } else {
        json_put(out, key, "null");
    }
}

void text_put_list(struct buf *out, const char *key, const char *const *texts) {
    json_open(out, key, '[');
    for (size_t i = 0; texts != NULL && texts[i] != NULL; i++) {
        json_put_string(out, NULL, texts[i]);
    }
    json_close(out, ']');
}

char *text_of_json(const json_t *value) {
    if (json_is_string(value)) {
        return mem_strdup(json_string_value(value));
    }
    char *text = value != NULL ? json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9)) : NULL;
    return text != NULL ? text : mem_strdup("unknown");
}

static const char *entity(char c) {
    static const char *const entities[UCHAR_MAX + 1] = {
        ['"'] = "&quot;", ['&'] = "&amp;", ['\''] = "&#39;", ['<'] = "&lt;", ['>'] = "&gt;",
    };
    bool control = (unsigned char)c < ' ' && c != '\n' && c != '\t';
    return control ? UTF8_REPLACEMENT : entities[(unsigned char)c];
}

static void add_escaped(struct buf *out, const char *text) {
    for (size_t left = strlen(text); left > 0;) {
        size_t n = utf8_sequence(text, left);
        const char *instead = n == 0 ? UTF8_REPLACEMENT : n == 1 ? entity(*text) : NULL;
        /* XML excludes U+FFFE and U+FFFF. */
        if (n == 3 && memcmp(text, "\xef\xbf", 2) == 0 && (unsigned char)text[2] >= 0xbe) {
            instead = UTF8_REPLACEMENT;
        }
        if (instead != NULL) {
            buf_add_str(out, instead);
        } else {
            buf_add(out, text, n);
        }
        n = n > 0 ? n : 1;
        text += n;
        left -= n;
    }
}

void text_markup(struct buf *out, const char *format, ...) {
    va_list args;
    va_start(args, format);
    for (size_t n; *format != '\0'; format += n) {
        n = strcspn(format, "%");
        if (n > 0) {
            buf_add(out, format, n);
            continue;
        }
        char conversion[16];
        n = strcspn(format + 1, "%dfgsu") + 2;
        snprintf(conversion, sizeof(conversion), "%.*s", (int)n, format);
        switch (format[n - 1]) {
        case '%':
            buf_add_char(out, '%');
            break;
        case 's':
            add_escaped(out, va_arg(args, const char *));
            break;
        case 'f':
        case 'g':
            buf_printf(out, conversion, va_arg(args, double));
            break;
        default:
            if (format[n - 2] == 'z') { /* NOLINT(bugprone-branch-clone): the types differ */
                buf_printf(out, conversion, va_arg(args, size_t));
            } else {
                buf_printf(out, conversion, va_arg(args, int));
            }
            break;
        }
    }
    va_end(args);
}

struct prefix {
    double from;
    double factor;
    const char *text;
};

static const struct prefix decimal[] = {
    {1e9, 1e-9, "G"}, {1e6, 1e-6, "M"}, {1e4, 1e-3, "k"},
    {0.1, 1, ""},     {1e-4, 1e3, "m"}, {0, 1e6, "µ"},
};
static const struct prefix binary[] = {
    {0x1p40, 0x1p-40, "Ti"},
    {0x1p30, 0x1p-30, "Gi"},
    {0x1p20, 0x1p-20, "Mi"},
    {0x1p10, 0x1p-10, "Ki"},
    {0, 1, ""},
};
static const struct prefix plain[] = {
    {1e9, 1e-9, "G"},
    {1e6, 1e-6, "M"},
    {1e5, 1e-3, "k"},
    {0, 1, ""},
};

static const struct prefix *prefix_of(const struct prefix *table, double value) {
    const struct prefix *prefix = table;
    while (prefix->from > 0 && fabs(value) < prefix->from) {
        prefix++;
    }
    return prefix;
}

struct text_human text_human(double value, const char *unit) {
    struct text_human human = {"–"};
    if (!isfinite(value)) {
        return human;
    }
    bool is_ratio = strcmp(unit, "ratio") == 0;
    bool scales = strcmp(unit, "s") == 0 || strcmp(unit, "J") == 0 || strcmp(unit, "W") == 0;
    const struct prefix *table = strcmp(unit, "B") == 0 ? binary : scales ? decimal : plain;
    const char *shown = is_ratio ? "%" : strcmp(unit, "celsius") == 0 ? "°C" : unit;
    shown = strlen(shown) <= sizeof(human.text) / 2 ? shown : "";
    value *= is_ratio ? 100 : 1;
    const struct prefix *prefix =
        value == 0 ? &(const struct prefix){0, 1, ""} : prefix_of(table, value);
    value *= prefix->factor;
    /* Four significant digits, and all digits before the point of a number that has a few. */
    double size = fabs(value);
    int n = snprintf(human.text, sizeof(human.text), size >= 1000 && size < 1e16 ? "%.0f" : "%.4g",
                     value);
    if (prefix->text[0] != '\0' || shown[0] != '\0') {
        snprintf(human.text + n, sizeof(human.text) - (size_t)n, " %s%s", prefix->text, shown);
    }
    return human;
}

int text_file_replace(const char *dir, const char *name, text_write *write, const void *context,
                      struct error *err) {
    char *path CLEANUP_FREE = file_path_join(dir, name);
    struct buf partial CLEANUP_BUF = {0};
    buf_printf(&partial, "%s/.%s.part", dir, name);
    FILE *file = fopen(buf_str(&partial), "we");
    if (file == NULL) {
        return error_set(err, -errno, "open %s: %m", buf_str(&partial));
    }
    int r = write(file, context, err);
    bool failed = ferror(file) != 0;
    failed = fclose(file) != 0 || failed;
    if (r == 0 && failed) {
        r = error_set(err, errno != 0 ? -errno : -EIO, "write %s: %m", path);
    }
    if (r == 0 && rename(buf_str(&partial), path) < 0) {
        r = error_set(err, -errno, "rename %s: %m", path);
    }
    if (r < 0) {
        unlink(buf_str(&partial));
    }
    return r;
}
