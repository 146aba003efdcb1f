#include "exporter/gateway/pattern.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/cleanup.h"

/* Thompson's automaton: steps that lead to steps. All that can be reached are followed at once, so
 * nothing is ever tried twice. */

/* A dot takes most: any first byte of a character, and a loop over the others. */
enum { MAX_DEPTH = 64, STEPS_PER_CHAR = 4, STEPS_MORE = 4 };

enum step_type {
    STEP_TAKE, /* one byte out of a set, then next */
    STEP_PASS, /* on to next */
    STEP_FORK, /* on to both */
    STEP_BEGIN,
    STEP_END,
    STEP_DONE,
};

struct set {
    uint64_t bits[4];
};

struct step {
    enum step_type type;
    uint16_t next, other;
    struct set set;
};

struct push_pattern {
    struct step *steps;
    size_t n_steps;
    uint16_t first;

    /* While matching: the bytes' steps that wait, before and after a byte, and those to look at. */
    uint16_t *now, *later, *stack;
    uint64_t *seen; /* by step: the turn in which it was reached */
    uint64_t turn;
    uint64_t work;
};

/* A part of the automaton: where it begins, and the step whose `next` is still open. */
struct part {
    uint16_t first, last;
};

struct scan {
    const char *at;
    struct push_pattern *pattern;
    unsigned depth;
    const char *fault; /* the first one; what follows does not matter */
};

/* ---- sets of bytes ---- */

static void set_add(struct set *set, unsigned char first, unsigned char last) {
    for (unsigned c = first; c <= last; c++) {
        set->bits[c / 64] |= UINT64_C(1) << (c % 64);
    }
}

static bool set_has(const struct set *set, unsigned char c) {
    return (set->bits[c / 64] >> (c % 64) & 1) != 0;
}

static void set_merge(struct set *set, const struct set *more, bool negated) {
    for (size_t i = 0; i < ARRAY_LEN(set->bits); i++) {
        set->bits[i] |= negated ? ~more->bits[i] : more->bits[i];
    }
}

static void set_add_if(struct set *set, int (*is_in)(int)) {
    for (int c = 0; c < 128; c++) {
        if (is_in(c)) {
            set_add(set, (unsigned char)c, (unsigned char)c);
        }
    }
}

/* ---- building ---- */

static void fail(struct scan *scan, const char *fault) {
    scan->fault = scan->fault != NULL ? scan->fault : fault;
}

static uint16_t add_step(struct scan *scan, enum step_type type, uint16_t next, uint16_t other) {
    struct push_pattern *pattern = scan->pattern;
    pattern->steps[pattern->n_steps] = (struct step){.type = type, .next = next, .other = other};
    return (uint16_t)pattern->n_steps++;
}

static struct part one(uint16_t step) {
    return (struct part){step, step};
}

static struct part join(struct scan *scan, struct part a, struct part b) {
    scan->pattern->steps[a.last].next = b.first;
    return (struct part){a.first, b.last};
}

static struct part take(struct scan *scan, const struct set *set) {
    uint16_t step = add_step(scan, STEP_TAKE, 0, 0);
    scan->pattern->steps[step].set = *set;
    return one(step);
}

static struct part repeat(struct scan *scan, struct part part, char how) {
    uint16_t out = add_step(scan, STEP_PASS, 0, 0);
    uint16_t fork = add_step(scan, STEP_FORK, part.first, out);
    scan->pattern->steps[part.last].next = how == '?' ? out : fork;
    return (struct part){how == '+' ? part.first : fork, out};
}

/* What is outside of ASCII is taken as a whole character, of one first byte and more. */
static struct part take_char(struct scan *scan, struct set set) {
    bool beyond = set_has(&set, 0xff);
    struct set more = {{0, 0, UINT64_MAX, 0}}; /* 0x80 to 0xbf */
    set.bits[2] = 0;
    struct part part = take(scan, &set);
    return beyond ? join(scan, part, repeat(scan, take(scan, &more), '*')) : part;
}

/* ---- reading ---- */

/* What comes after a backslash. */
static struct set read_escape(struct scan *scan) {
    static const struct {
        char letter;
        int (*is_in)(int);
    } classes[] = {{'d', isdigit}, {'s', isspace}, {'w', isalnum}};
    static const char letters[] = "fnrtv", controls[] = "\f\n\r\t\v";
    struct set set = {0};
    unsigned char c = (unsigned char)*scan->at;
    const char *control = c != '\0' ? strchr(letters, c) : NULL;
    scan->at += c != '\0';
    for (size_t i = 0; i < ARRAY_LEN(classes); i++) {
        if (tolower(c) == classes[i].letter) {
            struct set class = {0};
            set_add_if(&class, classes[i].is_in);
            if (classes[i].letter == 'w') {
                set_add(&class, '_', '_');
            }
            set_merge(&set, &class, isupper(c));
            return set;
        }
    }
    if (control != NULL) {
        c = (unsigned char)controls[control - letters];
    } else if (!ispunct(c)) {
        fail(scan, "a backslash stands before something that it has no meaning for");
    }
    set_add(&set, c, c);
    return set;
}

/* "[:alpha:]" within brackets; false where it is none. */
static bool read_named(struct scan *scan, struct set *set) {
    static const struct {
        const char *name;
        int (*is_in)(int);
    } names[] = {
        {"[:alnum:]", isalnum}, {"[:alpha:]", isalpha}, {"[:blank:]", isblank},
        {"[:cntrl:]", iscntrl}, {"[:digit:]", isdigit}, {"[:graph:]", isgraph},
        {"[:lower:]", islower}, {"[:print:]", isprint}, {"[:punct:]", ispunct},
        {"[:space:]", isspace}, {"[:upper:]", isupper}, {"[:xdigit:]", isxdigit},
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        size_t len = strlen(names[i].name);
        if (strncmp(scan->at, names[i].name, len) == 0) {
            scan->at += len;
            set_add_if(set, names[i].is_in);
            return true;
        }
    }
    return false;
}

static void read_range(struct scan *scan, struct set *set) {
    unsigned char first = (unsigned char)*scan->at++;
    unsigned char last = first;
    if (scan->at[0] == '-' && scan->at[1] != ']' && scan->at[1] != '\0') {
        last = (unsigned char)scan->at[1];
        scan->at += 2;
    }
    if (first >= 0x80 || last >= 0x80 || last < first || (last == '\\' && last != first)) {
        fail(scan, "a range in brackets is not one of ASCII characters");
    }
    set_add(set, first, last);
}

static struct part read_brackets(struct scan *scan) {
    struct set set = {0}, whole = {0};
    bool negated = *scan->at == '^';
    scan->at += negated;
    const char *begin = scan->at;
    while (*scan->at != '\0' && (*scan->at != ']' || scan->at == begin)) {
        if (*scan->at == '\\') {
            scan->at++;
            struct set escape = read_escape(scan);
            set_merge(&set, &escape, false);
            if (scan->at[0] == '-' && scan->at[1] != ']') {
                fail(scan, "a range in brackets is not one of ASCII characters");
            }
        } else if (!read_named(scan, &set)) {
            read_range(scan, &set);
        }
    }
    if (*scan->at != ']') {
        fail(scan, "a [ has no ]");
    }
    scan->at += *scan->at == ']';
    set_merge(&whole, &set, negated);
    return take_char(scan, whole);
}

static struct part read_alternatives(struct scan *scan);

static struct part read_group(struct scan *scan) {
    scan->at += strncmp(scan->at, "?:", 2) == 0 ? 2 : 0;
    if (*scan->at == '?') {
        fail(scan, "of groups that begin with (? only (?: is known");
    }
    if (scan->depth == MAX_DEPTH) {
        fail(scan, "too many groups within each other");
        return one(add_step(scan, STEP_PASS, 0, 0));
    }
    scan->depth++;
    struct part part = read_alternatives(scan);
    scan->depth--;
    if (*scan->at != ')') {
        fail(scan, "a ( has no )");
    }
    scan->at += *scan->at == ')';
    return part;
}

static struct part read_literal(struct scan *scan) {
    struct set set = {0};
    unsigned char c = (unsigned char)*scan->at++;
    set_add(&set, c, c);
    struct part part = take(scan, &set);
    while (c >= 0x80 && ((unsigned char)*scan->at & 0xc0) == 0x80) {
        c = (unsigned char)*scan->at++;
        set = (struct set){0};
        set_add(&set, c, c);
        part = join(scan, part, take(scan, &set));
    }
    return part;
}

static struct part read_atom(struct scan *scan) {
    static const struct set any = {{UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}};
    char c = *scan->at;
    if (strchr(".[(\\^$*+?{", c) == NULL) {
        return read_literal(scan);
    }
    scan->at++;
    switch (c) {
    case '.':
        return take_char(scan, any);
    case '[':
        return read_brackets(scan);
    case '(':
        return read_group(scan);
    case '\\':
        return take_char(scan, read_escape(scan));
    case '^':
        return one(add_step(scan, STEP_BEGIN, 0, 0));
    case '$':
        return one(add_step(scan, STEP_END, 0, 0));
    default:
        fail(scan, c == '{' ? "a regular expression here has no {n,m}" : "nothing to repeat");
        return one(add_step(scan, STEP_PASS, 0, 0));
    }
}

static bool is_repetition(char c) {
    return c == '*' || c == '+' || c == '?';
}

static struct part read_sequence(struct scan *scan) {
    struct part whole = one(add_step(scan, STEP_PASS, 0, 0));
    while (scan->fault == NULL && *scan->at != '\0' && *scan->at != '|' && *scan->at != ')') {
        struct part part = read_atom(scan);
        if (is_repetition(*scan->at)) {
            part = repeat(scan, part, *scan->at++);
            scan->at += *scan->at == '?'; /* the shortest match is a match */
            if (is_repetition(*scan->at)) {
                fail(scan, "a repetition is repeated");
            }
        }
        whole = join(scan, whole, part);
    }
    return whole;
}

static struct part read_alternatives(struct scan *scan) {
    struct part whole = read_sequence(scan);
    while (scan->fault == NULL && *scan->at == '|') {
        scan->at++;
        struct part part = read_sequence(scan);
        uint16_t out = add_step(scan, STEP_PASS, 0, 0);
        scan->pattern->steps[whole.last].next = out;
        scan->pattern->steps[part.last].next = out;
        whole = (struct part){add_step(scan, STEP_FORK, whole.first, part.first), out};
    }
    return whole;
}

static const char *read_all(struct push_pattern *pattern, const char *text) {
    struct scan scan = {.at = text, .pattern = pattern};
    struct part whole = read_alternatives(&scan);
    if (*scan.at != '\0') {
        fail(&scan, "a ) has no (");
    }
    join(&scan, whole, one(add_step(&scan, STEP_DONE, 0, 0)));
    pattern->first = whole.first;
    return scan.fault;
}

/* ---- life ---- */

void push_pattern_destroy(struct push_pattern *pattern) {
    if (pattern != NULL) {
        free(pattern->steps);
        free(pattern->now);
        free(pattern->later);
        free(pattern->stack);
        free(pattern->seen);
        free(pattern);
    }
}

int push_pattern_create(const char *text, struct push_pattern **ret_pattern, struct error *err) {
    size_t len = strlen(text);
    if (len > PUSH_PATTERN_MAX_LEN) {
        return error_set(err, -EINVAL, "the regular expression is longer than %d characters",
                         PUSH_PATTERN_MAX_LEN);
    }
    struct push_pattern *pattern = calloc(1, sizeof(*pattern));
    if (pattern == NULL) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    size_t max = STEPS_PER_CHAR * len + STEPS_MORE;
    pattern->steps = calloc(max, sizeof(*pattern->steps));
    pattern->now = calloc(max, sizeof(*pattern->now));
    pattern->later = calloc(max, sizeof(*pattern->later));
    pattern->stack = calloc(max, sizeof(*pattern->stack));
    pattern->seen = calloc(max, sizeof(*pattern->seen));
    if (pattern->steps == NULL || pattern->now == NULL || pattern->later == NULL ||
        pattern->stack == NULL || pattern->seen == NULL) {
        push_pattern_destroy(pattern);
        return error_set(err, -ENOMEM, "out of memory");
    }
    const char *fault = read_all(pattern, text);
    if (fault != NULL) {
        push_pattern_destroy(pattern);
        return error_set(err, -EINVAL, "%s", fault);
    }
    *ret_pattern = pattern;
    return 0;
}

/* ---- matching ---- */

static size_t reach(struct push_pattern *pattern, uint16_t step, uint16_t *stack, size_t n) {
    if (pattern->seen[step] != pattern->turn) {
        pattern->seen[step] = pattern->turn;
        stack[n++] = step;
    }
    return n;
}

/* Adds to `later` what can be reached from a step without taking a byte; whether it is the end. */
static bool follow(struct push_pattern *pattern, uint16_t from, bool at_begin, bool at_end,
                   size_t *n_later) {
    bool done = false;
    size_t n = reach(pattern, from, pattern->stack, 0);
    while (n > 0) {
        uint16_t at = pattern->stack[--n];
        const struct step *step = &pattern->steps[at];
        if (step->type == STEP_TAKE) {
            pattern->later[(*n_later)++] = at;
        } else if (step->type == STEP_DONE) {
            done = true;
        } else if ((step->type != STEP_BEGIN || at_begin) && (step->type != STEP_END || at_end)) {
            n = reach(pattern, step->next, pattern->stack, n);
        }
        if (step->type == STEP_FORK) {
            n = reach(pattern, step->other, pattern->stack, n);
        }
    }
    return done;
}

uint64_t push_pattern_work(const struct push_pattern *pattern) {
    return pattern->work;
}

bool push_pattern_test(struct push_pattern *pattern, const char *value) {
    size_t n_later = 0;
    pattern->turn++;
    bool empty = value[0] == '\0';
    bool done = follow(pattern, pattern->first, true, empty, &n_later) && empty;
    for (const char *c = value; *c != '\0' && n_later > 0; c++) {
        uint16_t *now = pattern->later;
        size_t n_now = n_later;
        pattern->later = pattern->now;
        pattern->now = now;
        n_later = 0;
        done = false;
        pattern->turn++;
        pattern->work += n_now;
        for (size_t i = 0; i < n_now; i++) {
            const struct step *step = &pattern->steps[now[i]];
            if (set_has(&step->set, (unsigned char)*c)) {
                done |= follow(pattern, step->next, false, c[1] == '\0', &n_later);
            }
        }
        done = done && c[1] == '\0';
    }
    return done;
}
