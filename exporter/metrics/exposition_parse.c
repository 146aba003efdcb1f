#include "exporter/metrics/exposition_parse.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "exporter/core/number.h"
#include "exporter/metrics/exposition_parse_labels.h"
#include "exporter/metrics/exposition_scan.h"

struct parser {
    struct exposition_scan scan;
    struct exposition_doc *doc;
    const struct exposition_limits *limits;
    struct exposition_labels labels; /* of the current sample */
    const char *last_name;           /* of the previous sample: the next one mostly has the same */
    size_t last_name_len;
    uint32_t last_family;
    const char *last_suffix;
};

#define fail(p, at, ...) scan_fail(&(p)->scan, -EINVAL, at, __VA_ARGS__)
#define fail_limit(p, at, ...) scan_fail(&(p)->scan, -E2BIG, at, __VA_ARGS__)

static bool owns_suffix(const struct exposition_family *family, const char *suffix) {
    return family->desc.type == METRIC_HISTOGRAM ||
           (family->desc.type == METRIC_SUMMARY && strcmp(suffix, "_bucket") != 0);
}

/* The histogram or summary that a name like x_count belongs to, or NULL. */
static struct exposition_family *find_parent(const struct parser *p, const char *name, size_t len,
                                             const char **ret_suffix) {
    static const char *const suffixes[] = {"_bucket", "_count", "_sum"};
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        size_t n = strlen(suffixes[i]);
        if (len <= n || memcmp(name + len - n, suffixes[i], n) != 0) {
            continue;
        }
        struct exposition_family *family = exposition_doc_find(p->doc, name, len - n);
        if (family != NULL && owns_suffix(family, suffixes[i])) {
            *ret_suffix = suffixes[i];
            return family;
        }
    }
    return NULL;
}

/* Finds the family of a name, or begins it. */
static int enter_family(struct parser *p, const char *name, size_t len,
                        struct exposition_family **ret_family, const char **ret_suffix) {
    *ret_suffix = "";
    *ret_family = exposition_doc_find(p->doc, name, len);
    if (*ret_family == NULL) {
        *ret_family = find_parent(p, name, len, ret_suffix);
    }
    if (*ret_family != NULL) {
        return 0;
    }
    int r = exposition_check_name_len(&p->scan, p->limits, name, len);
    if (r < 0) {
        return r;
    }
    if (p->doc->n_families >= p->limits->max_families) {
        return fail_limit(p, name, "more than %zu families", p->limits->max_families);
    }
    *ret_family = exposition_doc_add_family(p->doc, name, len);
    return *ret_family != NULL ? 0 : scan_fail(&p->scan, -ENOMEM, name, "out of memory");
}

static int parse_help(struct parser *p, struct exposition_family *family) {
    char *text = p->scan.at;
    if (family->desc.help != NULL) {
        return fail(p, text, "second HELP for \"%s\"",
                    scan_quote(family->desc.name, family->name_len).text);
    }
    p->scan.at = rawmemchr(text, '\n');
    for (const char *c = text; c < p->scan.at; c++) {
        if (*c == '\0') {
            return fail(p, c, "NUL byte in HELP");
        }
        if (*c == '\\') {
            int r = scan_check_escape(&p->scan, c++);
            if (r < 0) {
                return r;
            }
        }
    }
    /* Without escapes this falls on the newline, which nobody reads again. */
    text[scan_unescape(text, p->scan.at)] = '\0';
    family->desc.help = text;
    return 0;
}

static int parse_type(struct parser *p, struct exposition_family *family) {
    static const struct {
        const char *name;
        enum metric_type type;
    } types[] = {
        {"counter", METRIC_COUNTER}, {"gauge", METRIC_GAUGE},     {"histogram", METRIC_HISTOGRAM},
        {"summary", METRIC_SUMMARY}, {"unknown", METRIC_UNTYPED}, {"untyped", METRIC_UNTYPED},
    };
    const char *word = p->scan.at;
    if (family->typed) {
        return fail(p, word, "TYPE of \"%s\" given twice or after its samples",
                    scan_quote(family->desc.name, family->name_len).text);
    }
    p->scan.at = rawmemchr(word, '\n');
    size_t len = (size_t)(p->scan.at - word);
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        if (strlen(types[i].name) == len && strncasecmp(word, types[i].name, len) == 0) {
            family->desc.type = types[i].type;
            family->typed = true;
            return 0;
        }
    }
    return fail(p, word, "unknown metric type \"%s\"", scan_quote(word, len).text);
}

/* The rest of a HELP or TYPE line. One that ends early says nothing and is no error. */
static int parse_metadata(struct parser *p, const char *keyword,
                          int (*parse)(struct parser *p, struct exposition_family *family)) {
    struct exposition_scan *scan = &p->scan;
    scan_skip_blanks(scan);
    char *name = scan->at;
    size_t len = scan_name(scan, SCAN_METRIC_FIRST, SCAN_METRIC);
    if (*scan->at == '\n') {
        return 0;
    }
    if (!scan_is(*scan->at, SCAN_BLANK)) {
        return fail(p, name, "expected a metric name after %s, got %s", keyword,
                    scan_quote_token(name).text);
    }
    struct exposition_family *family;
    const char *suffix;
    int r = enter_family(p, name, len, &family, &suffix);
    if (r < 0) {
        return r;
    }
    scan_skip_blanks(scan);
    if (*scan->at != '\n') {
        r = parse(p, family);
    }
    name[len] = '\0';
    return r;
}

static int parse_comment(struct parser *p) {
    struct exposition_scan *scan = &p->scan;
    scan->at++; /* the # */
    scan_skip_blanks(scan);
    const char *keyword = scan->at;
    size_t len = scan_token_len(keyword);
    scan->at += len;
    if (len == 4 && memcmp(keyword, "HELP", 4) == 0) {
        return parse_metadata(p, "HELP", parse_help);
    }
    if (len == 4 && memcmp(keyword, "TYPE", 4) == 0) {
        return parse_metadata(p, "TYPE", parse_type);
    }
    scan->at = rawmemchr(scan->at, '\n');
    return 0;
}

/* Samples of histograms and summaries must be ones that such a metric has. */
static int check_shape(struct parser *p, const char *name, const struct exposition_family *family,
                       const char *suffix) {
    bool histogram = family->desc.type == METRIC_HISTOGRAM;
    if (!histogram && family->desc.type != METRIC_SUMMARY) {
        return 0;
    }
    if (histogram && suffix[0] == '\0') {
        return fail(p, name, "\"%s\" is a histogram: expected _bucket, _sum or _count behind it",
                    scan_quote(name, family->name_len).text);
    }
    const char *needed = histogram ? "le" : "quantile";
    const struct exposition_label *label = exposition_labels_find(&p->labels, needed);
    bool must = histogram ? strcmp(suffix, "_bucket") == 0 : suffix[0] == '\0';
    if (label == NULL) {
        return must ? fail(p, name, "expected label \"%s\" on this sample of a %s", needed,
                           metric_type_name(family->desc.type))
                    : 0;
    }
    double bound;
    if (number_parse(label->value, label->value_len, &bound) < 0 || isnan(bound)) {
        return fail(p, label->value, "expected a number as value of label \"%s\", got \"%s\"",
                    needed, scan_quote(label->value, label->value_len).text);
    }
    return 0;
}

static int parse_timestamp(struct parser *p, int64_t *ret_timestamp) {
    struct exposition_scan *scan = &p->scan;
    scan_skip_blanks(scan);
    const char *start = scan->at;
    size_t len = scan_token_len(start);
    const char *digits = *start == '-' || *start == '+' ? start + 1 : start;
    bool valid = digits < start + len;
    int64_t value = 0;
    for (const char *c = digits; valid && c < start + len; c++) {
        int digit = *start == '-' ? '0' - *c : *c - '0';
        valid = *c >= '0' && *c <= '9' && !__builtin_mul_overflow(value, 10, &value) &&
                !__builtin_add_overflow(value, digit, &value);
    }
    if (!valid) {
        return fail(p, start, "expected a timestamp in milliseconds or the end of the line, got %s",
                    scan_quote_token(start).text);
    }
    scan->at += len;
    if (*scan->at != '\n') {
        return fail(p, scan->at, "expected the end of the line after the timestamp");
    }
    if (p->limits->no_timestamps) {
        return fail(p, start, "timestamps are not allowed here");
    }
    *ret_timestamp = value;
    return 0;
}

static int parse_value(struct parser *p, struct exposition_sample *sample) {
    struct exposition_scan *scan = &p->scan;
    const char *start = scan->at;
    size_t len = scan_token_len(start);
    if (number_parse(start, len, &sample->value) < 0) {
        return fail(p, start, "expected a number, got %s", scan_quote_token(start).text);
    }
    scan->at += len;
    if (*scan->at == '\n') {
        return 0;
    }
    sample->has_timestamp = true;
    return parse_timestamp(p, &sample->timestamp_ms);
}

/* Finds the family a sample belongs to; it can no longer get a TYPE then. */
static int enter_sample(struct parser *p, const char *name, size_t len,
                        struct exposition_sample *sample) {
    if (len != p->last_name_len || memcmp(name, p->last_name, len) != 0) {
        struct exposition_family *family;
        int r = enter_family(p, name, len, &family, &p->last_suffix);
        if (r < 0) {
            return r;
        }
        family->typed = true;
        p->last_family = (uint32_t)(family - p->doc->families);
        p->last_name = name;
        p->last_name_len = len;
    }
    sample->family = p->last_family;
    sample->suffix = p->last_suffix;
    return 0;
}

static int add_sample(struct parser *p, const char *name, const struct exposition_sample *sample) {
    if (p->doc->n_samples >= p->limits->max_samples) {
        return fail_limit(p, name, "more than %zu samples", p->limits->max_samples);
    }
    if (p->limits->max_bytes > 0 && exposition_doc_size(p->doc) >= p->limits->max_bytes) {
        return scan_fail(&p->scan, -EFBIG, name, "more than %zu bytes of memory are needed",
                         p->limits->max_bytes);
    }
    int r = exposition_doc_add_sample(p->doc, sample, p->labels.items, p->labels.n);
    if (r == -EEXIST) {
        return scan_fail(&p->scan, r, name, "second sample of the same series of \"%s\"",
                         scan_quote(p->last_name, p->last_name_len).text);
    }
    return r < 0 ? scan_fail(&p->scan, r, name, "out of memory") : 0;
}

static int parse_sample(struct parser *p) {
    struct exposition_scan *scan = &p->scan;
    char *name = scan->at;
    size_t len = scan_name(scan, SCAN_METRIC_FIRST, SCAN_METRIC);
    if (len == 0) {
        return fail(p, name, "expected a metric name, got %s", scan_quote_token(name).text);
    }
    struct exposition_sample sample = {0};
    int r = enter_sample(p, name, len, &sample);
    if (r < 0) {
        return r;
    }
    p->labels.n = 0;
    scan_skip_blanks(scan);
    if (*scan->at == '{') {
        scan->at++;
        r = exposition_labels_parse(scan, p->limits, &p->labels);
        scan_skip_blanks(scan);
    }
    r = r < 0 ? r : check_shape(p, name, &p->doc->families[sample.family], sample.suffix);
    r = r < 0 ? r : parse_value(p, &sample);
    r = r < 0 ? r : add_sample(p, name, &sample);
    name[len] = '\0'; /* only here: in "a+1" the value begins right behind the name */
    return r;
}

static int parse_line(struct parser *p) {
    struct exposition_scan *scan = &p->scan;
    scan_skip_blanks(scan);
    if (*scan->at == '\n') {
        return 0;
    }
    return *scan->at == '#' ? parse_comment(p) : parse_sample(p);
}

static int parse_lines(struct parser *p) {
    struct exposition_scan *scan = &p->scan;
    while (scan->at < scan->end) {
        scan->line_start = scan->at;
        scan->line++;
        int r = parse_line(p);
        if (r < 0) {
            return r;
        }
        scan->at++; /* the newline */
    }
    return 0;
}

/* What stands behind the last newline may only be blanks. */
static int check_tail(struct parser *p, size_t len) {
    struct exposition_scan *scan = &p->scan;
    scan->line_start = scan->end;
    scan->line++;
    for (size_t i = 0; i < len; i++) {
        if (!scan_is(scan->end[i], SCAN_BLANK)) {
            return fail(p, scan->end + len, "the last line does not end in a newline");
        }
    }
    return 0;
}

int exposition_parse(char *text, size_t len, const struct exposition_limits *limits,
                     struct exposition_doc *doc, struct error *err) {
    exposition_doc_reset(doc);
    const char *newline = len > 0 ? memrchr(text, '\n', len) : NULL;
    const char *end = newline != NULL ? newline + 1 : text;
    struct exposition_label *labels CLEANUP_FREE =
        malloc((limits->max_labels + 1) * sizeof(*labels));
    if (labels == NULL ||
        (limits->max_bytes > 0 && !exposition_doc_reserve(doc, len, limits->max_bytes))) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    struct parser parser = {
        .scan = {.at = text, .end = end, .line_start = text, .err = err},
        .doc = doc,
        .limits = limits,
        .labels.items = labels,
    };
    int r = parse_lines(&parser);
    r = r < 0 ? r : check_tail(&parser, len - (size_t)(end - text));
    if (r < 0) {
        exposition_doc_reset(doc);
    }
    return r;
}
