#include "exporter/metrics/exposition_parse_labels.h"

#include <string.h>

#include "exporter/core/utf8.h"

int exposition_check_name_len(const struct exposition_scan *scan,
                              const struct exposition_limits *limits, const char *name,
                              size_t len) {
    if (len <= limits->max_name_len) {
        return 0;
    }
    return scan_fail(scan, -E2BIG, name, "name \"%s\" is longer than %zu bytes",
                     scan_quote(name, len).text, limits->max_name_len);
}

static int fail_at_label(const struct exposition_scan *scan, const char *at, const char *what,
                         const struct exposition_label *label) {
    return scan_fail(scan, -EINVAL, at, "%s label \"%s\"", what,
                     scan_quote(label->name, label->name_len).text);
}

static int parse_name(struct exposition_scan *scan, const struct exposition_limits *limits,
                      struct exposition_label *label) {
    label->name = scan->at;
    label->name_len = scan_name(scan, SCAN_LABEL_FIRST, SCAN_LABEL);
    if (label->name_len == 0) {
        return scan_fail(scan, -EINVAL, scan->at, "expected a label name, got %s",
                         scan_quote_token(scan->at).text);
    }
    if (label->name_len == 8 && memcmp(label->name, "__name__", 8) == 0) {
        return scan_fail(scan, -EINVAL, label->name, "label name \"__name__\" is reserved");
    }
    scan_skip_blanks(scan);
    if (*scan->at != '=') {
        return fail_at_label(scan, scan->at, "expected '=' after", label);
    }
    scan->at++;
    return exposition_check_name_len(scan, limits, label->name, label->name_len);
}

/* Looks at a byte inside a value that is not plain text, and moves past it. */
static int pass_special(struct exposition_scan *scan, const struct exposition_label *label) {
    if (*scan->at == '\\') {
        scan->at += 2;
        return scan_check_escape(scan, scan->at - 2);
    }
    if (*scan->at == '\n') {
        return fail_at_label(scan, scan->at, "end of line in the value of", label);
    }
    if (*scan->at == '\0') {
        return fail_at_label(scan, scan->at, "NUL byte in the value of", label);
    }
    size_t n = utf8_sequence(scan->at, (size_t)(scan->end - scan->at));
    if (n == 0) {
        return fail_at_label(scan, scan->at, "invalid UTF-8 in the value of", label);
    }
    scan->at += n;
    return 0;
}

static int parse_value(struct exposition_scan *scan, const struct exposition_limits *limits,
                       struct exposition_label *label) {
    scan_skip_blanks(scan);
    if (*scan->at != '"') {
        return fail_at_label(scan, scan->at, "expected '\"' before the value of", label);
    }
    label->value = ++scan->at;
    bool escaped = false;
    for (;;) {
        while (!scan_is(*scan->at, SCAN_VALUE_STOP)) {
            scan->at++;
        }
        if (*scan->at == '"') {
            break;
        }
        escaped = escaped || *scan->at == '\\';
        int r = pass_special(scan, label);
        if (r < 0) {
            return r;
        }
    }
    label->value_len =
        escaped ? scan_unescape(label->value, scan->at) : (size_t)(scan->at - label->value);
    if (label->value_len > limits->max_value_len) {
        return scan_fail(scan, -E2BIG, label->value,
                         "value of label \"%s\" is longer than %zu bytes",
                         scan_quote(label->name, label->name_len).text, limits->max_value_len);
    }
    scan->at++; /* the closing quote */
    return 0;
}

static int compare_names(const struct exposition_label *a, const struct exposition_label *b) {
    size_t n = a->name_len < b->name_len ? a->name_len : b->name_len;
    int order = memcmp(a->name, b->name, n);
    return order != 0 ? order : (a->name_len > b->name_len) - (a->name_len < b->name_len);
}

/* Puts a label in its place among those read so far; they mostly come sorted. */
static int insert(const struct exposition_scan *scan, const struct exposition_limits *limits,
                  struct exposition_labels *labels, const struct exposition_label *label) {
    if (labels->n >= limits->max_labels) {
        return scan_fail(scan, -E2BIG, label->name, "more than %zu labels", limits->max_labels);
    }
    size_t i = labels->n;
    int order = 1;
    while (i > 0 && (order = compare_names(label, &labels->items[i - 1])) < 0) {
        i--;
    }
    if (order == 0) {
        return fail_at_label(scan, label->name, "second", label);
    }
    memmove(&labels->items[i + 1], &labels->items[i], (labels->n - i) * sizeof(*label));
    labels->items[i] = *label;
    labels->n++;
    return 0;
}

int exposition_labels_parse(struct exposition_scan *scan, const struct exposition_limits *limits,
                            struct exposition_labels *labels) {
    for (;;) {
        scan_skip_blanks(scan);
        if (*scan->at == '}') {
            scan->at++;
            return 0;
        }
        struct exposition_label label;
        int r = parse_name(scan, limits, &label);
        r = r < 0 ? r : parse_value(scan, limits, &label);
        r = r < 0 ? r : insert(scan, limits, labels, &label);
        if (r < 0) {
            return r;
        }
        scan_skip_blanks(scan);
        if (*scan->at == ',') {
            scan->at++;
        } else if (*scan->at != '}') {
            return fail_at_label(scan, scan->at, "expected ',' or '}' after the value of", &label);
        }
    }
}

const struct exposition_label *exposition_labels_find(const struct exposition_labels *labels,
                                                      const char *name) {
    size_t len = strlen(name);
    for (size_t i = 0; i < labels->n; i++) {
        const struct exposition_label *label = &labels->items[i];
        if (label->name_len == len && memcmp(label->name, name, len) == 0) {
            return label;
        }
    }
    return NULL;
}
