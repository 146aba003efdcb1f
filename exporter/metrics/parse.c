#include "exporter/metrics/parse.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "exporter/core/hash.h"
#include "exporter/core/memory.h"
#include "exporter/core/number.h"
#include "exporter/core/utf8.h"

/* A label in the text, not yet ended by NUL. */
struct span_label {
    char *name, *value;
    size_t name_len, value_len;
};

/* ---- document ---- */

enum { MIN_SLOTS = 64, MANY_SLOTS = 16384 };

void exposition_doc_finish(struct exposition_doc *doc) {
    free(doc->families);
    free(doc->samples);
    free(doc->labels);
    free(doc->family_table.slots);
    free(doc->sample_table.slots);
    *doc = (struct exposition_doc){0};
}

void exposition_doc_reset(struct exposition_doc *doc) {
    doc->n_families = 0;
    doc->n_samples = 0;
    doc->n_labels = 0;
    doc->family_table.n_slots = 0;
    doc->sample_table.n_slots = 0;
}

/* Of each family and sample at most, see table_grow. */
enum { INDEX_BYTES = 4 * sizeof(uint64_t) };

size_t exposition_doc_size(const struct exposition_doc *doc) {
    return doc->n_families * (sizeof(*doc->families) + INDEX_BYTES) +
           doc->n_samples * (sizeof(*doc->samples) + INDEX_BYTES) +
           doc->n_labels * sizeof(*doc->labels);
}

/* Makes room for all that the text can hold, up to `max_bytes`, so that nothing moves. Unused
 * memory is never touched. */
static void reserve(struct exposition_doc *doc, size_t text_len, size_t max_bytes) {
    enum { MIN_SAMPLE = sizeof("a 1\n") - 1, MIN_LABEL = sizeof("a=\"b\"") - 1 };
    size_t n_samples = text_len / MIN_SAMPLE, n_labels = text_len / MIN_LABEL;
    size_t max_samples = max_bytes / sizeof(*doc->samples);
    size_t max_labels = max_bytes / sizeof(*doc->labels);
    ARRAY_GROW(&doc->samples, &doc->cap_samples, n_samples < max_samples ? n_samples : max_samples);
    ARRAY_GROW(&doc->labels, &doc->cap_labels, n_labels < max_labels ? n_labels : max_labels);
}

/* The place of the next slot that is free or has that hash, from slot `i` on. */
static size_t table_seek(const struct exposition_table *table, uint64_t hash, size_t i) {
    for (;; i++) {
        i &= table->n_slots - 1;
        if (table->slots[i] == 0 || table->slots[i] >> 32 == hash >> 32) {
            return i;
        }
    }
}

static size_t slot_index(uint64_t slot) {
    return (size_t)(slot & UINT32_MAX) - 1;
}

/* Enters item number `index`, known to be absent. */
static void table_enter(struct exposition_table *table, uint64_t hash, size_t index) {
    size_t i = hash & (table->n_slots - 1);
    while (table->slots[i] != 0) {
        i = (i + 1) & (table->n_slots - 1);
    }
    table->slots[i] = (hash >> 32 << 32) | (uint64_t)(index + 1);
}

/* Makes room for one item more than `n_items`; true: the table is empty then. */
static bool table_grow(struct exposition_table *table, size_t n_items) {
    if (table->n_slots > 0 && 2 * (n_items + 1) <= table->n_slots) {
        return false;
    }
    size_t times = table->n_slots < MANY_SLOTS ? 4 : 2;
    table->n_slots = table->n_slots > 0 ? times * table->n_slots : MIN_SLOTS;
    if (table->n_slots > table->cap) {
        free(table->slots);
        table->slots = mem_alloc(table->n_slots * sizeof(*table->slots));
        table->cap = table->n_slots;
    }
    memset(table->slots, 0, table->n_slots * sizeof(*table->slots));
    return true;
}

struct exposition_family *exposition_doc_find(const struct exposition_doc *doc, const char *name,
                                              size_t len) {
    const struct exposition_table *table = &doc->family_table;
    if (table->n_slots == 0) {
        return NULL;
    }
    uint64_t hash = hash_seeded(doc->seed, name, len);
    size_t i = table_seek(table, hash, hash);
    for (; table->slots[i] != 0; i = table_seek(table, hash, i + 1)) {
        struct exposition_family *family = &doc->families[slot_index(table->slots[i])];
        if (family->name_len == len && memcmp(family->desc.name, name, len) == 0) {
            return family;
        }
    }
    return NULL;
}

/* Adds a family that is not there yet. Pointers to others become stale. */
static struct exposition_family *add_family(struct exposition_doc *doc, const char *name,
                                            size_t len) {
    struct exposition_table *table = &doc->family_table;
    doc->seed = doc->seed != 0 ? doc->seed : hash_seed();
    bool empty = table_grow(table, doc->n_families);
    for (size_t i = 0; empty && i < doc->n_families; i++) {
        table_enter(table, doc->families[i].hash, i);
    }
    ARRAY_GROW(&doc->families, &doc->cap_families, doc->n_families + 1);
    struct exposition_family *family = &doc->families[doc->n_families];
    uint64_t hash = hash_seeded(doc->seed, name, len);
    *family = (struct exposition_family){.desc.name = name, .name_len = len, .hash = hash};
    table_enter(table, hash, doc->n_families++);
    return family;
}

static uint64_t series_hash(const struct exposition_doc *doc,
                            const struct exposition_sample *sample, const struct span_label *labels,
                            size_t n_labels) {
    uint64_t hash = hash_seeded(doc->seed ^ sample->family, sample->suffix, strlen(sample->suffix));
    for (size_t i = 0; i < n_labels; i++) {
        if (labels[i].value_len > 0) {
            hash = hash_seeded(hash, labels[i].name, labels[i].name_len);
            hash = hash_seeded(hash, labels[i].value, labels[i].value_len);
        }
    }
    return hash;
}

const char *exposition_doc_label(const struct exposition_doc *doc,
                                 const struct exposition_sample *sample, const char *name) {
    const char *value = label_find(exposition_doc_labels(doc, sample), sample->n_labels, name);
    return value != NULL ? value : "";
}

static bool same_series(const struct exposition_doc *doc, const struct exposition_sample *a,
                        const struct exposition_sample *b) {
    if (a->hash != b->hash || a->family != b->family || a->n_labels != b->n_labels ||
        strcmp(a->suffix, b->suffix) != 0) {
        return false;
    }
    const struct label *left = exposition_doc_labels(doc, a);
    const struct label *right = exposition_doc_labels(doc, b);
    for (size_t i = 0; i < a->n_labels; i++) {
        if (strcmp(left[i].name, right[i].name) != 0 ||
            strcmp(left[i].value, right[i].value) != 0) {
            return false;
        }
    }
    return true;
}

static bool is_duplicate(const struct exposition_doc *doc, const struct exposition_sample *sample) {
    const struct exposition_table *table = &doc->sample_table;
    size_t i = table_seek(table, sample->hash, sample->hash);
    for (; table->slots[i] != 0; i = table_seek(table, sample->hash, i + 1)) {
        if (same_series(doc, &doc->samples[slot_index(table->slots[i])], sample)) {
            return true;
        }
    }
    return false;
}

/* An empty label means the same as none, so it is not kept. */
static uint32_t store_labels(struct exposition_doc *doc, const struct span_label *labels,
                             size_t n_labels) {
    uint32_t n = 0;
    struct label *to = doc->labels + doc->n_labels;
    for (size_t i = 0; i < n_labels; i++) {
        labels[i].name[labels[i].name_len] = '\0';
        labels[i].value[labels[i].value_len] = '\0';
        if (labels[i].value_len > 0) {
            to[n++] = (struct label){.name = labels[i].name, .value = labels[i].value};
        }
    }
    return n;
}

/* Adds a sample with labels sorted by name, and ends their strings; -EEXIST: a duplicate series. */
static int store_sample(struct exposition_doc *doc, const struct exposition_sample *sample,
                        const struct span_label *labels, size_t n_labels) {
    struct exposition_table *table = &doc->sample_table;
    bool empty = table_grow(table, doc->n_samples);
    for (size_t i = 0; empty && i < doc->n_samples; i++) {
        table_enter(table, doc->samples[i].hash, i);
    }
    ARRAY_GROW(&doc->samples, &doc->cap_samples, doc->n_samples + 1);
    /* One label more than needed, so that there is an array even if nothing has labels. */
    ARRAY_GROW(&doc->labels, &doc->cap_labels, doc->n_labels + n_labels + 1);
    /* The slot of a large table is in no cache: let it come while the sample is stored. */
    uint64_t hash = series_hash(doc, sample, labels, n_labels);
    __builtin_prefetch(&table->slots[hash & (table->n_slots - 1)], 1);
    struct exposition_sample *added = &doc->samples[doc->n_samples];
    *added = *sample;
    added->hash = hash;
    added->first_label = doc->n_labels;
    added->n_labels = store_labels(doc, labels, n_labels);
    if (is_duplicate(doc, added)) {
        return -EEXIST;
    }
    table_enter(table, added->hash, doc->n_samples++);
    doc->n_labels += added->n_labels;
    doc->families[sample->family].n_samples++;
    return 0;
}

/* ---- scanning a line ---- */

enum { QUOTED_MAX = 40 };

/* Every scan stops at a newline, and the text ends in one: no scan needs to look for the end. */
struct parser {
    char *at;
    const char *end; /* behind the last newline */
    const char *line_start;
    size_t line;
    struct error *err;
    struct exposition_doc *doc;
    const struct exposition_limits *limits;
    struct span_label *labels; /* of the current sample, sorted by name; room for the most */
    size_t n_labels;
    const char *last_name; /* of the previous sample: the next one mostly has the same */
    size_t last_name_len;
    uint32_t last_family;
    const char *last_suffix;
};

enum {
    SCAN_BLANK = 1,
    SCAN_TOKEN_STOP = 2,    /* a blank or a newline */
    SCAN_VALUE_STOP = 4,    /* a byte inside a label's value that is not plain */
    SCAN_LABEL_FIRST = 8,   /* may begin the name of a label */
    SCAN_LABEL = 16,        /* may follow */
    SCAN_METRIC_FIRST = 32, /* the same for metrics */
    SCAN_METRIC = 64,
};

#define DIGIT (SCAN_LABEL | SCAN_METRIC)
#define LETTER (DIGIT | SCAN_LABEL_FIRST | SCAN_METRIC_FIRST)

static const unsigned char scan_class[256] = {
    ['\0'] = SCAN_VALUE_STOP,
    ['\t'] = SCAN_BLANK | SCAN_TOKEN_STOP,
    ['\n'] = SCAN_VALUE_STOP | SCAN_TOKEN_STOP,
    [' '] = SCAN_BLANK | SCAN_TOKEN_STOP,
    ['"'] = SCAN_VALUE_STOP,
    ['0' ... '9'] = DIGIT,
    [':'] = SCAN_METRIC | SCAN_METRIC_FIRST,
    ['A' ... 'Z'] = LETTER,
    ['\\'] = SCAN_VALUE_STOP,
    ['_'] = LETTER,
    ['a' ... 'z'] = LETTER,
    [0x80 ... 0xff] = SCAN_VALUE_STOP,
};

static inline bool scan_is(char c, int class) {
    return (scan_class[(unsigned char)c] & class) != 0;
}

static inline void scan_skip_blanks(struct parser *p) {
    while (scan_is(*p->at, SCAN_BLANK)) {
        p->at++;
    }
}

/* Moves past a name by the classes of its first and later bytes; returns its length, or 0. */
static inline size_t scan_name(struct parser *p, int first, int later) {
    const char *start = p->at;
    if (scan_is(*start, first)) {
        do {
            p->at++;
        } while (scan_is(*p->at, later));
    }
    return (size_t)(p->at - start);
}

/* Length of the text before the next blank or newline. */
static inline size_t scan_token_len(const char *text) {
    size_t n = 0;
    while (!scan_is(text[n], SCAN_TOKEN_STOP)) {
        n++;
    }
    return n;
}

/* Words a failure at a place of the current line; returns `code`. */
__attribute__((format(printf, 4, 5))) static int
scan_fail(const struct parser *p, int code, const char *at, const char *format, ...) {
    char reason[512];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof(reason), format, args);
    va_end(args);
    return error_set(p->err, code, "line %zu: column %zu: %s", p->line,
                     (size_t)(at - p->line_start) + 1, reason);
}

#define fail(p, at, ...) scan_fail(p, -EINVAL, at, __VA_ARGS__)
#define fail_limit(p, at, ...) scan_fail(p, -E2BIG, at, __VA_ARGS__)

/* A piece of the text for an error message: cut short, and nothing in it that upsets a terminal. */
struct scan_quoted {
    char text[176];
};

static struct scan_quoted scan_quote(const char *text, size_t len) {
    struct scan_quoted quoted = {0};
    char *to = quoted.text;
    for (size_t i = 0; i < len && i < QUOTED_MAX; i++) {
        bool printable = text[i] >= ' ' && text[i] <= '~';
        to += sprintf(to, printable ? "%c" : "\\x%02x", (unsigned char)text[i]);
    }
    strcpy(to, len > QUOTED_MAX ? "..." : "");
    return quoted;
}

/* The same for the token at `text`, or "end of line". */
static struct scan_quoted scan_quote_token(const char *text) {
    struct scan_quoted token = {.text = "end of line"};
    if (*text != '\n') {
        snprintf(token.text, sizeof(token.text), "\"%.170s\"",
                 scan_quote(text, scan_token_len(text)).text);
    }
    return token;
}

/* Checks the escape sequence at `at`, which is a backslash: one more, n or a quote must follow. */
static int scan_check_escape(const struct parser *p, const char *at) {
    if (at[1] == '\\' || at[1] == '"' || at[1] == 'n') {
        return 0;
    }
    return fail(p, at, "unknown escape sequence \\%s",
                at[1] == '\n' ? "" : scan_quote(at + 1, 1).text);
}

/* Undoes the (checked) escapes of the text before `stop` in place; returns its length. */
static size_t scan_unescape(char *text, const char *stop) {
    char *to = text;
    for (const char *from = text; from < stop; from++) {
        if (*from == '\\') {
            from++;
            *to++ = *from == 'n' ? '\n' : *from;
        } else {
            *to++ = *from;
        }
    }
    return (size_t)(to - text);
}

/* ---- labels ---- */

static int check_name_len(const struct parser *p, const char *name, size_t len) {
    if (len <= p->limits->max_name_len) {
        return 0;
    }
    return fail_limit(p, name, "name \"%s\" is longer than %zu bytes", scan_quote(name, len).text,
                      p->limits->max_name_len);
}

static int fail_at_label(const struct parser *p, const char *at, const char *what,
                         const struct span_label *label) {
    return fail(p, at, "%s label \"%s\"", what, scan_quote(label->name, label->name_len).text);
}

static int parse_label_name(struct parser *p, struct span_label *label) {
    label->name = p->at;
    label->name_len = scan_name(p, SCAN_LABEL_FIRST, SCAN_LABEL);
    if (label->name_len == 0) {
        return fail(p, p->at, "expected a label name, got %s", scan_quote_token(p->at).text);
    }
    if (label->name_len == 8 && memcmp(label->name, "__name__", 8) == 0) {
        return fail(p, label->name, "label name \"__name__\" is reserved");
    }
    scan_skip_blanks(p);
    if (*p->at != '=') {
        return fail_at_label(p, p->at, "expected '=' after", label);
    }
    p->at++;
    return check_name_len(p, label->name, label->name_len);
}

/* Checks a byte inside a value that is not plain text, and moves past it. */
static int pass_special(struct parser *p, const struct span_label *label) {
    if (*p->at == '\\') {
        p->at += 2;
        return scan_check_escape(p, p->at - 2);
    }
    if (*p->at == '\n') {
        return fail_at_label(p, p->at, "end of line in the value of", label);
    }
    if (*p->at == '\0') {
        return fail_at_label(p, p->at, "NUL byte in the value of", label);
    }
    size_t n = utf8_sequence(p->at, (size_t)(p->end - p->at));
    if (n == 0) {
        return fail_at_label(p, p->at, "invalid UTF-8 in the value of", label);
    }
    p->at += n;
    return 0;
}

static int parse_label_value(struct parser *p, struct span_label *label) {
    scan_skip_blanks(p);
    if (*p->at != '"') {
        return fail_at_label(p, p->at, "expected '\"' before the value of", label);
    }
    label->value = ++p->at;
    bool escaped = false;
    for (;;) {
        while (!scan_is(*p->at, SCAN_VALUE_STOP)) {
            p->at++;
        }
        if (*p->at == '"') {
            break;
        }
        escaped = escaped || *p->at == '\\';
        int r = pass_special(p, label);
        if (r < 0) {
            return r;
        }
    }
    label->value_len =
        escaped ? scan_unescape(label->value, p->at) : (size_t)(p->at - label->value);
    if (label->value_len > p->limits->max_value_len) {
        return fail_limit(p, label->value, "value of label \"%s\" is longer than %zu bytes",
                          scan_quote(label->name, label->name_len).text, p->limits->max_value_len);
    }
    p->at++; /* the closing quote */
    return 0;
}

static int compare_names(const struct span_label *a, const struct span_label *b) {
    size_t n = a->name_len < b->name_len ? a->name_len : b->name_len;
    int order = memcmp(a->name, b->name, n);
    return order != 0 ? order : (a->name_len > b->name_len) - (a->name_len < b->name_len);
}

/* Puts a label in its place among those read so far; they mostly come sorted. */
static int insert_label(struct parser *p, const struct span_label *label) {
    if (p->n_labels >= p->limits->max_labels) {
        return fail_limit(p, label->name, "more than %zu labels", p->limits->max_labels);
    }
    struct span_label *at = p->labels + p->n_labels;
    int order = 1;
    while (at > p->labels && (order = compare_names(label, at - 1)) < 0) {
        at--;
    }
    if (order == 0) {
        return fail_at_label(p, label->name, "second", label);
    }
    memmove(at + 1, at, (size_t)(p->labels + p->n_labels - at) * sizeof(*label));
    *at = *label;
    p->n_labels++;
    return 0;
}

/* Parses from behind the opening brace to behind the closing one. */
static int parse_labels(struct parser *p) {
    for (;;) {
        scan_skip_blanks(p);
        if (*p->at == '}') {
            p->at++;
            return 0;
        }
        struct span_label label;
        int r = parse_label_name(p, &label);
        r = r < 0 ? r : parse_label_value(p, &label);
        r = r < 0 ? r : insert_label(p, &label);
        if (r < 0) {
            return r;
        }
        scan_skip_blanks(p);
        if (*p->at == ',') {
            p->at++;
        } else if (*p->at != '}') {
            return fail_at_label(p, p->at, "expected ',' or '}' after the value of", &label);
        }
    }
}

static const struct span_label *find_label(const struct parser *p, const char *name) {
    size_t len = strlen(name);
    for (size_t i = 0; i < p->n_labels; i++) {
        if (p->labels[i].name_len == len && memcmp(p->labels[i].name, name, len) == 0) {
            return &p->labels[i];
        }
    }
    return NULL;
}

/* ---- lines ---- */

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
    int r = check_name_len(p, name, len);
    if (r < 0) {
        return r;
    }
    if (p->doc->n_families >= p->limits->max_families) {
        return fail_limit(p, name, "more than %zu families", p->limits->max_families);
    }
    *ret_family = add_family(p->doc, name, len);
    return 0;
}

static int parse_help(struct parser *p, struct exposition_family *family) {
    char *text = p->at;
    if (family->desc.help != NULL) {
        return fail(p, text, "second HELP for \"%s\"",
                    scan_quote(family->desc.name, family->name_len).text);
    }
    p->at = rawmemchr(text, '\n');
    for (const char *c = text; c < p->at; c++) {
        if (*c == '\0') {
            return fail(p, c, "NUL byte in HELP");
        }
        if (*c == '\\') {
            int r = scan_check_escape(p, c++);
            if (r < 0) {
                return r;
            }
        }
    }
    /* Without escapes this overwrites the newline, which is not read again. */
    text[scan_unescape(text, p->at)] = '\0';
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
    const char *word = p->at;
    if (family->typed) {
        return fail(p, word, "TYPE of \"%s\" given twice or after its samples",
                    scan_quote(family->desc.name, family->name_len).text);
    }
    p->at = rawmemchr(word, '\n');
    size_t len = (size_t)(p->at - word);
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        if (strlen(types[i].name) == len && strncasecmp(word, types[i].name, len) == 0) {
            family->desc.type = types[i].type;
            family->typed = true;
            return 0;
        }
    }
    return fail(p, word, "unknown metric type \"%s\"", scan_quote(word, len).text);
}

/* The rest of a HELP or TYPE line. One that ends early is no error. */
static int parse_metadata(struct parser *p, const char *keyword,
                          int (*parse)(struct parser *p, struct exposition_family *family)) {
    scan_skip_blanks(p);
    char *name = p->at;
    size_t len = scan_name(p, SCAN_METRIC_FIRST, SCAN_METRIC);
    if (*p->at == '\n') {
        return 0;
    }
    if (!scan_is(*p->at, SCAN_BLANK)) {
        return fail(p, name, "expected a metric name after %s, got %s", keyword,
                    scan_quote_token(name).text);
    }
    struct exposition_family *family;
    const char *suffix;
    int r = enter_family(p, name, len, &family, &suffix);
    if (r < 0) {
        return r;
    }
    scan_skip_blanks(p);
    if (*p->at != '\n') {
        r = parse(p, family);
    }
    name[len] = '\0';
    return r;
}

static int parse_comment(struct parser *p) {
    p->at++; /* the # */
    scan_skip_blanks(p);
    const char *keyword = p->at;
    size_t len = scan_token_len(keyword);
    p->at += len;
    if (len == 4 && memcmp(keyword, "HELP", 4) == 0) {
        return parse_metadata(p, "HELP", parse_help);
    }
    if (len == 4 && memcmp(keyword, "TYPE", 4) == 0) {
        return parse_metadata(p, "TYPE", parse_type);
    }
    p->at = rawmemchr(p->at, '\n');
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
    const struct span_label *label = find_label(p, needed);
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
    scan_skip_blanks(p);
    const char *start = p->at;
    char *end = (char *)start;
    errno = 0;
    /* strtoll ends at a newline, but not at one before the number: that may be the end of the text.
     */
    long long value = isspace((unsigned char)*start) ? 0 : strtoll(start, &end, 10);
    if (end == start || errno != 0 || !scan_is(*end, SCAN_TOKEN_STOP)) {
        return fail(p, start, "expected a timestamp in milliseconds or the end of the line, got %s",
                    scan_quote_token(start).text);
    }
    p->at = end;
    if (*end != '\n') {
        return fail(p, end, "expected the end of the line after the timestamp");
    }
    if (p->limits->no_timestamps) {
        return fail(p, start, "timestamps are not allowed here");
    }
    *ret_timestamp = value;
    return 0;
}

static int parse_value(struct parser *p, struct exposition_sample *sample) {
    const char *start = p->at;
    size_t len = scan_token_len(start);
    if (number_parse(start, len, &sample->value) < 0) {
        return fail(p, start, "expected a number, got %s", scan_quote_token(start).text);
    }
    p->at += len;
    if (*p->at == '\n') {
        return 0;
    }
    sample->has_timestamp = true;
    return parse_timestamp(p, &sample->timestamp_ms);
}

/* Finds the family of a sample; it can no longer get a TYPE then. */
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
        return scan_fail(p, -EFBIG, name, "more than %zu bytes of memory are needed",
                         p->limits->max_bytes);
    }
    int r = store_sample(p->doc, sample, p->labels, p->n_labels);
    return r == 0 ? 0
                  : scan_fail(p, r, name, "second sample of the same series of \"%s\"",
                              scan_quote(p->last_name, p->last_name_len).text);
}

static int parse_sample(struct parser *p) {
    char *name = p->at;
    size_t len = scan_name(p, SCAN_METRIC_FIRST, SCAN_METRIC);
    if (len == 0) {
        return fail(p, name, "expected a metric name, got %s", scan_quote_token(name).text);
    }
    struct exposition_sample sample = {0};
    int r = enter_sample(p, name, len, &sample);
    if (r < 0) {
        return r;
    }
    p->n_labels = 0;
    scan_skip_blanks(p);
    if (*p->at == '{') {
        p->at++;
        r = parse_labels(p);
        scan_skip_blanks(p);
    }
    r = r < 0 ? r : check_shape(p, name, &p->doc->families[sample.family], sample.suffix);
    r = r < 0 ? r : parse_value(p, &sample);
    r = r < 0 ? r : add_sample(p, name, &sample);
    name[len] = '\0'; /* only here: in "a+1" the value begins right behind the name */
    return r;
}

static int parse_line(struct parser *p) {
    scan_skip_blanks(p);
    if (*p->at == '\n') {
        return 0;
    }
    return *p->at == '#' ? parse_comment(p) : parse_sample(p);
}

static int parse_lines(struct parser *p) {
    while (p->at < p->end) {
        p->line_start = p->at;
        p->line++;
        int r = parse_line(p);
        if (r < 0) {
            return r;
        }
        p->at++; /* the newline */
    }
    return 0;
}

/* Only blanks may follow the last newline. */
static int check_tail(struct parser *p, size_t len) {
    p->line_start = p->end;
    p->line++;
    for (size_t i = 0; i < len; i++) {
        if (!scan_is(p->end[i], SCAN_BLANK)) {
            return fail(p, p->end + len, "the last line does not end in a newline");
        }
    }
    return 0;
}

int exposition_parse(char *text, size_t len, const struct exposition_limits *limits,
                     struct exposition_doc *doc, struct error *err) {
    exposition_doc_reset(doc);
    const char *newline = len > 0 ? memrchr(text, '\n', len) : NULL;
    const char *end = newline != NULL ? newline + 1 : text;
    struct span_label *labels CLEANUP_FREE = mem_alloc((limits->max_labels + 1) * sizeof(*labels));
    if (limits->max_bytes > 0) {
        reserve(doc, len, limits->max_bytes);
    }
    struct parser parser = {
        .at = text,
        .end = end,
        .line_start = text,
        .err = err,
        .doc = doc,
        .limits = limits,
        .labels = labels,
    };
    int r = parse_lines(&parser);
    r = r < 0 ? r : check_tail(&parser, len - (size_t)(end - text));
    if (r < 0) {
        exposition_doc_reset(doc);
    }
    return r;
}
