#include "placement/client/selector.h"

#include <errno.h>
#include <string.h>

#include "exporter/metrics/metric.h"

/* ---- reading ---- */

static void skip_blanks(char **at) {
    *at += strspn(*at, " \t\r\n");
}

static size_t name_len(const char *text) {
    return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:");
}

/* A quoted text, decoded in place; NULL where there is none. */
static char *take_quoted(char **at) {
    char quote = **at;
    if (quote != '"' && quote != '\'') {
        return NULL;
    }
    char *text = *at + 1, *to = text, *from = text;
    for (; *from != quote; from++) {
        char c = *from;
        if (c == '\\') {
            c = *++from;
            if (c != '\\' && c != 'n' && c != '"' && c != '\'') {
                return NULL;
            }
            c = c == 'n' ? '\n' : c;
        }
        if (*from == '\0') {
            return NULL;
        }
        *to++ = c;
    }
    *at = from + 1;
    *to = '\0';
    return text;
}

static int fail(struct error *err, const char *text) {
    return error_set(err, -EINVAL,
                     "expected a selector such as fps{plugin=\"a\"}, got \"%.200s\" (only series "
                     "by = and != here)",
                     text);
}

/* One of a="b"; ends the name with a NUL once what follows it has been looked at. */
static bool take_matcher(char **at, struct selector_matcher *ret_matcher) {
    char *label = *at;
    size_t len = name_len(label);
    *at += len;
    char *label_end = *at;
    skip_blanks(at);
    bool differs = (*at)[0] == '!' && (*at)[1] == '=';
    if (len == 0 || !metric_label_name_valid(label, len) ||
        (!differs && ((*at)[0] != '=' || (*at)[1] == '~' || (*at)[1] == '='))) {
        return false;
    }
    *at += differs ? 2 : 1;
    skip_blanks(at);
    char *value = take_quoted(at);
    *label_end = '\0';
    *ret_matcher = (struct selector_matcher){.label = label, .value = value, .differs = differs};
    skip_blanks(at);
    return value != NULL;
}

static bool take_matchers(char **at, struct selector *selector) {
    ++*at;
    skip_blanks(at);
    while (**at != '}') {
        if (selector->n_matchers == SELECTOR_MAX_MATCHERS ||
            !take_matcher(at, &selector->matchers[selector->n_matchers])) {
            return false;
        }
        selector->n_matchers++;
        if (**at == ',') {
            ++*at;
            skip_blanks(at);
        } else if (**at != '}') {
            return false;
        }
    }
    ++*at;
    skip_blanks(at);
    return true;
}

int selector_parse(const char *text, struct selector *ret_selector, struct error *err) {
    struct selector selector CLEANUP_SELECTOR = {.text = strdup(text)};
    if (selector.text == NULL) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    char *at = selector.text;
    skip_blanks(&at);
    char *name = at;
    size_t len = name_len(name);
    at += len;
    char *end = at;
    skip_blanks(&at);
    if (!metric_name_valid(name, len) || (*at == '{' && !take_matchers(&at, &selector)) ||
        *at != '\0') {
        return fail(err, text);
    }
    *end = '\0';
    selector.name = name;
    *ret_selector = selector;
    selector.text = NULL;
    return 0;
}

void selector_finish(struct selector *selector) {
    free(TAKE(selector->text));
}

/* ---- matching ---- */

static bool has_name(const struct exposition_doc *page, const struct exposition_sample *sample,
                     const char *name) {
    const struct exposition_family *family = &page->families[sample->family];
    size_t len = family->name_len;
    return strncmp(name, family->desc.name, len) == 0 && strcmp(name + len, sample->suffix) == 0;
}

size_t selector_find(const struct selector *selector, const struct exposition_doc *page,
                     double *ret_value) {
    size_t n = 0;
    for (size_t i = 0; i < page->n_samples; i++) {
        const struct exposition_sample *sample = &page->samples[i];
        bool meant = has_name(page, sample, selector->name);
        for (size_t k = 0; meant && k < selector->n_matchers; k++) {
            const struct selector_matcher *matcher = &selector->matchers[k];
            meant = (strcmp(exposition_doc_label(page, sample, matcher->label), matcher->value) ==
                     0) != matcher->differs;
        }
        if (meant) {
            *ret_value = sample->value;
            n++;
        }
    }
    return n;
}
