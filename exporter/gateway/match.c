#include "exporter/gateway/match.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/buf.h"
#include "exporter/gateway/pattern.h"
#include "exporter/metrics/metric.h"

enum { MAX_CONDITIONS = 32 };

static const char name_label[] = "__name__";

struct condition {
    char *label;
    char *value;
    bool negated;
    struct push_pattern *pattern;  /* that the value is; NULL: the value itself */
    size_t label_work, value_work; /* of comparing them once */
};

struct push_match {
    struct condition conditions[MAX_CONDITIONS];
    size_t n_conditions;
    uint64_t work;
};

struct scan {
    const char *text, *at;
    struct error *err;
};

static int fail(const struct scan *scan, const char *what) {
    error_set(scan->err, -EINVAL, "selector \"%s\", column %zu: %s", scan->text,
              (size_t)(scan->at - scan->text) + 1, what);
    return -EINVAL;
}

/* ---- life ---- */

static void condition_finish(struct condition *condition) {
    free(condition->label);
    free(condition->value);
    push_pattern_destroy(condition->pattern);
}

void push_match_destroy(struct push_match *match) {
    if (match == NULL) {
        return;
    }
    for (size_t i = 0; i < match->n_conditions; i++) {
        condition_finish(&match->conditions[i]);
    }
    free(match);
}

/* ---- reading ---- */

static void skip_space(struct scan *scan) {
    while (isspace((unsigned char)*scan->at)) {
        scan->at++;
    }
}

static char *take_word(struct scan *scan) {
    const char *begin = scan->at;
    while (isalnum((unsigned char)*scan->at) || *scan->at == '_' || *scan->at == ':') {
        scan->at++;
    }
    return strndup(begin, (size_t)(scan->at - begin));
}

/* A text in quotes; a backslash takes the next character as it is, n as a newline. */
static int take_text(struct scan *scan, char **ret_text) {
    struct buf text CLEANUP_BUF = {0};
    if (*scan->at != '"') {
        return fail(scan, "expected a value in double quotes");
    }
    buf_add_str(&text, "");
    for (scan->at++; *scan->at != '"'; scan->at++) {
        if (*scan->at == '\\' && scan->at[1] != '\0') {
            scan->at++;
            buf_add_char(&text, *scan->at == 'n' ? '\n' : *scan->at);
        } else if (*scan->at == '\0') {
            return fail(scan, "the value has no end");
        } else {
            buf_add_char(&text, *scan->at);
        }
    }
    scan->at++;
    *ret_text = text.len > 0 ? buf_take(&text) : strdup("");
    if (*ret_text == NULL) {
        error_set(scan->err, -ENOMEM, "out of memory");
        return -ENOMEM;
    }
    return 0;
}

static int take_operator(struct scan *scan, struct condition *condition, bool *ret_regex) {
    static const struct {
        const char *text;
        bool negated, regex;
    } operators[] = {
        {"!=", true, false}, {"!~", true, true}, {"=~", false, true}, {"=", false, false}};
    for (size_t i = 0; i < ARRAY_LEN(operators); i++) {
        size_t len = strlen(operators[i].text);
        if (strncmp(scan->at, operators[i].text, len) == 0) {
            scan->at += len;
            condition->negated = operators[i].negated;
            *ret_regex = operators[i].regex;
            return 0;
        }
    }
    return fail(scan, "expected =, !=, =~ or !~");
}

static int compile(struct scan *scan, struct condition *condition) {
    struct error fault;
    int r = push_pattern_create(condition->value, &condition->pattern, &fault);
    if (r == -EINVAL) {
        return fail(scan, fault.text);
    }
    return r < 0 ? error_set(scan->err, r, "%s", fault.text) : 0;
}

static struct condition *add(struct push_match *match) {
    return match->n_conditions < MAX_CONDITIONS ? &match->conditions[match->n_conditions++] : NULL;
}

static int take_condition(struct scan *scan, struct push_match *match) {
    struct condition *condition = add(match);
    bool regex = false;
    if (condition == NULL) {
        return fail(scan, "too many conditions");
    }
    condition->label = take_word(scan);
    if (condition->label == NULL) {
        return error_set(scan->err, -ENOMEM, "out of memory");
    }
    if (!metric_label_name_valid(condition->label, strlen(condition->label))) {
        return fail(scan, "expected the name of a label");
    }
    skip_space(scan);
    int r = take_operator(scan, condition, &regex);
    if (r == 0) {
        skip_space(scan);
        r = take_text(scan, &condition->value);
    }
    return r == 0 && regex ? compile(scan, condition) : r;
}

static int take_conditions(struct scan *scan, struct push_match *match) {
    scan->at++; /* '{' */
    skip_space(scan);
    while (*scan->at != '}') {
        int r = take_condition(scan, match);
        if (r < 0) {
            return r;
        }
        skip_space(scan);
        if (*scan->at == ',') {
            scan->at++;
            skip_space(scan);
        } else if (*scan->at != '}') {
            return fail(scan, "expected \",\" or \"}\"");
        }
    }
    scan->at++;
    return 0;
}

static int take_name(struct scan *scan, struct push_match *match) {
    char *name = take_word(scan);
    if (name == NULL) {
        return error_set(scan->err, -ENOMEM, "out of memory");
    }
    if (name[0] == '\0') {
        free(name);
        return 0;
    }
    struct condition *condition = add(match);
    condition->value = name;
    condition->label = strdup(name_label);
    return condition->label != NULL ? 0 : error_set(scan->err, -ENOMEM, "out of memory");
}

static int read_selector(struct scan *scan, struct push_match *match) {
    skip_space(scan);
    int r = take_name(scan, match);
    skip_space(scan);
    if (r == 0 && *scan->at == '{') {
        r = take_conditions(scan, match);
        skip_space(scan);
    }
    return r == 0 && *scan->at != '\0' ? fail(scan, "expected the end") : r;
}

/* ---- testing ---- */

/* A comparison ends with our text at the latest, and takes some bytes at a time. */
static size_t work_of(const char *text) {
    return 1 + strlen(text) / 16;
}

static void weigh(struct push_match *match) {
    for (size_t i = 0; i < match->n_conditions; i++) {
        struct condition *condition = &match->conditions[i];
        condition->label_work = work_of(condition->label);
        condition->value_work = work_of(condition->value);
    }
}

static bool holds(struct push_match *match, const struct condition *condition, const char *value) {
    bool same;
    if (condition->pattern != NULL) {
        match->work -= push_pattern_work(condition->pattern);
        same = push_pattern_test(condition->pattern, value);
        match->work += push_pattern_work(condition->pattern);
    } else {
        match->work += condition->value_work;
        same = strcmp(condition->value, value) == 0;
    }
    return same != condition->negated;
}

uint64_t push_match_work(const struct push_match *match) {
    return match->work;
}

bool push_match_test(struct push_match *match, const char *name, const struct label *labels,
                     size_t n_labels, const struct label *more, size_t n_more) {
    for (size_t i = 0; i < match->n_conditions; i++) {
        const struct condition *condition = &match->conditions[i];
        match->work += (1 + n_labels + n_more) * condition->label_work;
        const char *value = strcmp(condition->label, name_label) == 0
                                ? name
                                : label_find(labels, n_labels, condition->label);
        value = value != NULL ? value : label_find(more, n_more, condition->label);
        if (!holds(match, condition, value != NULL ? value : "")) {
            return false;
        }
    }
    return true;
}

int push_match_create(const char *text, struct push_match **ret_match, struct error *err) {
    struct push_match *match CLEANUP_PUSH_MATCH = calloc(1, sizeof(*match));
    struct scan scan = {.text = text, .at = text, .err = err};
    if (match == NULL) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    int r = read_selector(&scan, match);
    if (r < 0) {
        return r;
    }
    weigh(match);
    if (push_match_test(match, "", NULL, 0, NULL, 0)) {
        return error_set(err, -EINVAL,
                         "selector \"%s\": one condition at least must not match empty labels",
                         text);
    }
    *ret_match = TAKE(match);
    return 0;
}
