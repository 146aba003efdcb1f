#include <string.h>
#include <strings.h>

#include "exporter/metrics/exposition.h"

/* A piece of a header: not ended by a NUL. */
struct span {
    const char *text;
    size_t len;
};

static struct span trim(const char *from, const char *to) {
    while (from < to && (*from == ' ' || *from == '\t')) {
        from++;
    }
    while (to > from && (to[-1] == ' ' || to[-1] == '\t')) {
        to--;
    }
    return (struct span){from, (size_t)(to - from)};
}

static bool span_is(struct span span, const char *text) {
    return span.len == strlen(text) && strncasecmp(span.text, text, span.len) == 0;
}

/* Takes the text up to the next unquoted ';', or to the ',' that ends the member. */
static struct span next_piece(const char **rest) {
    const char *from = *rest;
    const char *to = from;
    bool quoted = false;
    while (*to != '\0' && (quoted || (*to != ';' && *to != ','))) {
        quoted ^= *to == '"';
        to += *to == '\\' && quoted && to[1] != '\0' ? 2 : 1;
    }
    *rest = *to == ';' ? to + 1 : to;
    return trim(from, to);
}

/* Splits `name=value` at the first '='; quotes around the value are taken off. */
static void split_parameter(struct span piece, struct span *ret_name, struct span *ret_value) {
    const char *end = piece.text + piece.len;
    const char *equals = memchr(piece.text, '=', piece.len);
    if (equals == NULL) {
        *ret_name = piece;
        *ret_value = (struct span){end, 0};
        return;
    }
    *ret_name = trim(piece.text, equals);
    *ret_value = trim(equals + 1, end);
    if (ret_value->len >= 2 && ret_value->text[0] == '"' && end[-1] == '"') {
        *ret_value = (struct span){ret_value->text + 1, ret_value->len - 2};
    }
}

enum { Q_ONE = 1000 };

/* "0.75" in thousandths, the precision RFC 9110 gives it. Anything else counts as 1. */
static int parse_q(struct span value) {
    size_t i = 0;
    int q = 0;
    if (value.len > 0 && (value.text[0] == '0' || value.text[0] == '1')) {
        q = (value.text[i++] - '0') * Q_ONE;
    }
    if (i == value.len) {
        return i > 0 ? q : Q_ONE;
    }
    if (value.text[i++] != '.') {
        return Q_ONE;
    }
    for (int weight = Q_ONE / 10; i < value.len; i++, weight /= 10) {
        if (value.text[i] < '0' || value.text[i] > '9') {
            return Q_ONE;
        }
        q += (value.text[i] - '0') * weight;
    }
    return q > Q_ONE ? Q_ONE : q;
}

static enum exposition_escaping parse_escaping(struct span value) {
    static const struct {
        const char *name;
        enum exposition_escaping escaping;
    } schemes[] = {
        {"allow-utf-8", EXPOSITION_ESCAPING_ALLOW_UTF8},
        {"dots", EXPOSITION_ESCAPING_DOTS},
        {"underscores", EXPOSITION_ESCAPING_UNDERSCORES},
        {"values", EXPOSITION_ESCAPING_VALUES},
    };
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
        if (span_is(value, schemes[i].name)) {
            return schemes[i].escaping;
        }
    }
    return EXPOSITION_ESCAPING_NONE;
}

/* One member of a header: a format and its weight. */
struct member {
    struct span value;
    struct span version;
    enum exposition_escaping escaping;
    int q;
};

/* Takes one member off a header such as "a;version=1;q=0.5, b"; false at its end. */
static bool next_member(const char **rest, struct member *ret_member) {
    while (**rest == ',' || **rest == ' ' || **rest == '\t') {
        (*rest)++;
    }
    if (**rest == '\0') {
        return false;
    }
    *ret_member = (struct member){.value = next_piece(rest), .version = {"", 0}, .q = Q_ONE};
    while (**rest != ',' && **rest != '\0') {
        struct span name, value;
        split_parameter(next_piece(rest), &name, &value);
        if (span_is(name, "q")) {
            ret_member->q = parse_q(value);
        } else if (span_is(name, "version")) {
            ret_member->version = value;
        } else if (span_is(name, "escaping")) {
            ret_member->escaping = parse_escaping(value);
        }
    }
    return true;
}

/* OpenMetrics without a version is 0.0.1, as in Prometheus' library. Readers of text 1.0.0 read
 * 0.0.4. */
static const struct {
    const char *media_type;
    const char *version;
    enum exposition_format format;
} writable[] = {
    {"*/*", "", EXPOSITION_TEXT},
    {"application/openmetrics-text", "", EXPOSITION_OPENMETRICS_0_0_1},
    {"application/openmetrics-text", "0.0.1", EXPOSITION_OPENMETRICS_0_0_1},
    {"application/openmetrics-text", "1.0.0", EXPOSITION_OPENMETRICS},
    {"text/*", "", EXPOSITION_TEXT},
    {"text/plain", "", EXPOSITION_TEXT},
    {"text/plain", "0.0.4", EXPOSITION_TEXT},
    {"text/plain", "1.0.0", EXPOSITION_TEXT},
};

struct exposition_choice exposition_negotiate(const char *accept) {
    struct exposition_choice best = {.format = EXPOSITION_TEXT};
    int best_q = 0;
    struct member member;
    const char *rest = accept != NULL ? accept : "";
    while (next_member(&rest, &member)) {
        for (size_t i = 0; i < ARRAY_LEN(writable) && member.q > best_q; i++) {
            if (span_is(member.value, writable[i].media_type) &&
                span_is(member.version, writable[i].version)) {
                best = (struct exposition_choice){writable[i].format, member.escaping};
                best_q = member.q;
            }
        }
    }
    return best;
}

bool exposition_accepts_gzip(const char *accept_encoding) {
    int any_q = 0;
    struct member member;
    const char *rest = accept_encoding != NULL ? accept_encoding : "";
    while (next_member(&rest, &member)) {
        if (span_is(member.value, "gzip") || span_is(member.value, "x-gzip")) {
            return member.q > 0;
        }
        if (span_is(member.value, "*")) {
            any_q = member.q;
        }
    }
    return any_q > 0;
}

const char *exposition_content_type(struct exposition_choice choice) {
#define TYPES(base)                                                                                \
    {                                                                                              \
        [EXPOSITION_ESCAPING_NONE] = base,                                                         \
        [EXPOSITION_ESCAPING_ALLOW_UTF8] = base "; escaping=allow-utf-8",                          \
        [EXPOSITION_ESCAPING_UNDERSCORES] = base "; escaping=underscores",                         \
        [EXPOSITION_ESCAPING_DOTS] = base "; escaping=dots",                                       \
        [EXPOSITION_ESCAPING_VALUES] = base "; escaping=values",                                   \
    }
    static const char *const types[][EXPOSITION_ESCAPING_VALUES + 1] = {
        [EXPOSITION_TEXT] = TYPES("text/plain; version=0.0.4; charset=utf-8"),
        [EXPOSITION_OPENMETRICS] =
            TYPES("application/openmetrics-text; version=1.0.0; charset=utf-8"),
        [EXPOSITION_OPENMETRICS_0_0_1] =
            TYPES("application/openmetrics-text; version=0.0.1; charset=utf-8"),
    };
#undef TYPES
    return types[choice.format][choice.escaping];
}
