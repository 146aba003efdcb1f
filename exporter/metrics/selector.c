#include "exporter/metrics/selector.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "exporter/core/buf.h"
#include "exporter/core/memory.h"
#include "exporter/core/regex.h"
#include "exporter/metrics/metric.h"

enum { MAX_MATCHERS = 32 };

static const char name_label[] = "__name__";

struct matcher {
    char *label;
    char *value;
    bool negated;
    struct regex *regex; /* of =~ and !~; else NULL */
};

struct selector {
    struct matcher matchers[MAX_MATCHERS];
    size_t n_matchers;
};

struct scan {
    const char *text, *at;
    struct selector *selector;
    struct error *err;
};

void selector_destroy(struct selector *selector) {
    for (size_t i = 0; selector != NULL && i < selector->n_matchers; i++) {
        struct matcher *matcher = &selector->matchers[i];
        free(matcher->label);
        free(matcher->value);
        regex_destroy(matcher->regex);
    }
    free(selector);
}

/* ---- parsing ---- */

static int fail(const struct scan *scan, const char *what) {
    return error_set(scan->err, -EINVAL, "selector \"%.200s\", column %zu: %s", scan->text,
                     (size_t)(scan->at - scan->text) + 1, what);
}

/* Moves on by `n` bytes and over the white space behind them. */
static void advance(struct scan *scan, size_t n) {
    scan->at += n;
    scan->at += strspn(scan->at, " \t\r\n");
}

static size_t word_len(const char *text) {
    size_t len = 0;
    while (isalnum((unsigned char)text[len]) || text[len] == '_' || text[len] == ':') {
        len++;
    }
    return len;
}

static int take_text(struct scan *scan, char **ret_text) {
    struct buf text CLEANUP_BUF = {0};
    char quote = *scan->at;
    if (quote != '"' && quote != '\'') {
        return fail(scan, "expected a value in quotes");
    }
    for (scan->at++; *scan->at != quote; scan->at++) {
        if (*scan->at == '\0') {
            return fail(scan, "the value has no closing quote");
        }
        char c = *scan->at;
        if (c == '\\') {
            c = *++scan->at;
            if (c == '\0' || strchr("\\n\"'", c) == NULL) {
                return fail(scan, "expected \\\\, \\n, \\\" or \\'");
            }
            c = c == 'n' ? '\n' : c;
        }
        buf_add_char(&text, c);
    }
    advance(scan, 1);
    *ret_text = buf_take(&text);
    return 0;
}

static int take_operator(struct scan *scan, struct matcher *matcher, bool *ret_regex) {
    static const struct {
        char text[3];
        bool negated, regex;
    } operators[] = {
        {"!=", true, false}, {"!~", true, true}, {"=~", false, true}, {"=", false, false}};
    for (size_t i = 0; i < ARRAY_LEN(operators); i++) {
        size_t len = strlen(operators[i].text);
        if (strncmp(scan->at, operators[i].text, len) == 0) {
            advance(scan, len);
            matcher->negated = operators[i].negated;
            *ret_regex = operators[i].regex;
            return 0;
        }
    }
    return fail(scan, "expected =, !=, =~ or !~");
}

static int take_matcher(struct scan *scan) {
    struct selector *selector = scan->selector;
    size_t len = word_len(scan->at);
    if (selector->n_matchers == MAX_MATCHERS) {
        return fail(scan, "too many matchers");
    }
    if (!metric_label_name_valid(scan->at, len)) {
        return fail(scan, "expected the name of a label");
    }
    struct matcher *matcher = &selector->matchers[selector->n_matchers++];
    matcher->label = mem_strndup(scan->at, len);
    advance(scan, len);
    bool is_regex = false;
    int r = take_operator(scan, matcher, &is_regex);
    r = r == 0 ? take_text(scan, &matcher->value) : r;
    struct error reason;
    if (r == 0 && is_regex && regex_create(matcher->value, &matcher->regex, &reason) < 0) {
        return fail(scan, reason.text);
    }
    return r;
}

static int take_matchers(struct scan *scan) {
    advance(scan, 1); /* '{' */
    while (*scan->at != '}') {
        int r = take_matcher(scan);
        if (r < 0) {
            return r;
        }
        if (*scan->at == ',') {
            advance(scan, 1);
        } else if (*scan->at != '}') {
            return fail(scan, "expected \",\" or \"}\"");
        }
    }
    advance(scan, 1);
    return 0;
}

static int parse(struct scan *scan) {
    struct selector *selector = scan->selector;
    advance(scan, 0);
    size_t len = word_len(scan->at);
    if (len > 0 && !metric_name_valid(scan->at, len)) {
        return fail(scan, "expected the name of a metric");
    }
    if (len > 0) {
        selector->matchers[selector->n_matchers++] =
            (struct matcher){.label = mem_strdup(name_label), .value = mem_strndup(scan->at, len)};
    }
    advance(scan, len);
    int r = *scan->at == '{' ? take_matchers(scan) : 0;
    return r == 0 && *scan->at != '\0' ? fail(scan, "expected the end of the selector") : r;
}

int selector_create(const char *text, struct selector **ret_selector, struct error *err) {
    struct selector *selector CLEANUP_SELECTOR = mem_zalloc(1, sizeof(*selector));
    struct scan scan = {.text = text, .at = text, .selector = selector, .err = err};
    int r = parse(&scan);
    if (r < 0) {
        return r;
    }
    if (selector_match(selector, "", NULL, 0, NULL, 0) != 0) {
        return error_set(
            err, -EINVAL,
            "selector \"%.200s\": at least one matcher must not match the empty string", text);
    }
    *ret_selector = TAKE(selector);
    return 0;
}

/* ---- matching ---- */

static int match_value(const struct matcher *matcher, const char *value) {
    int r = matcher->regex != NULL ? regex_match(matcher->regex, value)
                                   : strcmp(matcher->value, value) == 0;
    return r >= 0 && matcher->negated ? !r : r;
}

size_t selector_n_regexes(const struct selector *selector) {
    size_t n = 0;
    for (size_t i = 0; i < selector->n_matchers; i++) {
        n += selector->matchers[i].regex != NULL;
    }
    return n;
}

int selector_match(const struct selector *selector, const char *name, const struct label *labels,
                   size_t n_labels, const struct label *more, size_t n_more) {
    int r = 1;
    for (size_t i = 0; i < selector->n_matchers && r == 1; i++) {
        const struct matcher *matcher = &selector->matchers[i];
        const char *value = strcmp(matcher->label, name_label) == 0
                                ? name
                                : label_find(labels, n_labels, matcher->label);
        value = value != NULL ? value : label_find(more, n_more, matcher->label);
        r = match_value(matcher, value != NULL ? value : "");
    }
    return r;
}

size_t selector_find(const struct selector *selector, const struct exposition_doc *page,
                     double *ret_value) {
    struct buf name CLEANUP_BUF = {0};
    size_t n = 0;
    for (size_t i = 0; i < page->n_samples; i++) {
        const struct exposition_sample *sample = &page->samples[i];
        const struct exposition_family *family = &page->families[sample->family];
        buf_reset(&name);
        buf_add(&name, family->desc.name, family->name_len);
        buf_add_str(&name, sample->suffix);
        if (selector_match(selector, name.data, exposition_doc_labels(page, sample),
                           sample->n_labels, NULL, 0) == 1) {
            *ret_value = sample->value;
            n++;
        }
    }
    return n;
}
