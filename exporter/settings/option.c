#include "exporter/settings/option.h"

#include <errno.h>
#include <string.h>

#include "exporter/core/regex.h"

struct unit {
    const char *name;
    int64_t factor;
};

/* Both tables run from large to small. */
static const struct unit size_units[] = {
    {"GiB", INT64_C(1) << 30},
    {"MiB", INT64_C(1) << 20},
    {"KiB", INT64_C(1) << 10},
    {"B", 1},
};
static const struct unit duration_units[] = {
    {"d", INT64_C(24) * 60 * 60 * 1000},
    {"h", INT64_C(60) * 60 * 1000},
    {"m", INT64_C(60) * 1000},
    {"s", 1000},
    {"ms", 1},
};

/* Reads digits at `*text` and moves it behind them. */
static bool take_number(const char **text, int64_t *ret_number) {
    const char *p = *text;
    int64_t number = 0;
    for (; *p >= '0' && *p <= '9'; p++) {
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, *p - '0', &number)) {
            return false;
        }
    }
    bool any = p > *text;
    *text = p;
    *ret_number = number;
    return any;
}

static bool parse_int(const char *text, int64_t *ret_number) {
    bool negative = *text == '-';
    text += negative ? 1 : 0;
    int64_t number;
    if (!take_number(&text, &number) || *text != '\0') {
        return false;
    }
    *ret_number = negative ? -number : number;
    return true;
}

static bool parse_bool(const char *text, int64_t *ret_number) {
    *ret_number = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
    return *ret_number == 1 || strcmp(text, "false") == 0 || strcmp(text, "0") == 0;
}

static bool parse_size(const char *text, int64_t *ret_number) {
    int64_t number;
    if (!take_number(&text, &number)) {
        return false;
    }
    int64_t factor = *text == '\0' ? 1 : 0;
    for (size_t i = 0; i < ARRAY_LEN(size_units); i++) {
        factor = strcmp(text, size_units[i].name) == 0 ? size_units[i].factor : factor;
    }
    return factor != 0 && !__builtin_mul_overflow(number, factor, ret_number);
}

/* The row of `duration_units` named by the letters at `*text`, which is moved behind them. */
static size_t take_duration_unit(const char **text) {
    size_t len = strspn(*text, "dhms");
    for (size_t i = 0; i < ARRAY_LEN(duration_units); i++) {
        const char *name = duration_units[i].name;
        if (strlen(name) == len && strncmp(*text, name, len) == 0) {
            *text += len;
            return i;
        }
    }
    return ARRAY_LEN(duration_units);
}

/* One or more numbers with units, large units first ("1m30s"); or a bare number of seconds. */
static bool parse_duration(const char *text, int64_t *ret_number) {
    int64_t total = 0;
    size_t next_unit = 0;
    do {
        int64_t number;
        if (!take_number(&text, &number)) {
            return false;
        }
        if (*text == '\0') {
            return next_unit == 0 && !__builtin_mul_overflow(number, 1000, ret_number);
        }
        size_t unit = take_duration_unit(&text);
        if (unit < next_unit || unit == ARRAY_LEN(duration_units) ||
            __builtin_mul_overflow(number, duration_units[unit].factor, &number) ||
            __builtin_add_overflow(total, number, &total)) {
            return false;
        }
        next_unit = unit + 1;
    } while (*text != '\0');
    *ret_number = total;
    return true;
}

static bool parse_choice(const struct option *option, const char *text, int64_t *ret_number) {
    int64_t on;
    if (option->bare_text != NULL && parse_bool(text, &on)) {
        text = on == 1 ? option->bare_text : option->default_text;
    }
    int64_t bits = 0;
    for (bool more = true; more;) {
        size_t len = option->repeatable ? strcspn(text, ",") : strlen(text);
        size_t i = 0;
        while (option->choices[i] != NULL &&
               (strncmp(option->choices[i], text, len) != 0 || option->choices[i][len] != '\0')) {
            i++;
        }
        if (option->choices[i] == NULL) {
            return false;
        }
        bits |= INT64_C(1) << i;
        *ret_number = option->repeatable ? bits : (int64_t)i;
        more = text[len] != '\0';
        text += len + more;
    }
    return true;
}

static bool parse_number(const struct option *option, const char *text, int64_t *ret_number) {
    switch (option->type) {
    case OPTION_BOOL:
        return parse_bool(text, ret_number);
    case OPTION_INT:
        return parse_int(text, ret_number);
    case OPTION_SIZE:
        return parse_size(text, ret_number);
    case OPTION_DURATION:
        return parse_duration(text, ret_number);
    case OPTION_CHOICE:
        return parse_choice(option, text, ret_number);
    default:
        *ret_number = 0;
        return true;
    }
}

static bool is_bounded(const struct option *option) {
    return option->min != 0 || option->max != 0;
}

static int check_regex(const char *text, struct error *err) {
    struct regex *regex CLEANUP_REGEX = NULL;
    struct error reason;
    if (regex_create(text, &regex, &reason) < 0) {
        return error_set(err, -EINVAL, "expected a regular expression, got \"%s\": %s", text,
                         reason.text);
    }
    return 0;
}

int option_parse(const struct option *option, const char *text, int64_t *ret_number,
                 struct error *err) {
    int64_t number;
    bool valid = parse_number(option, text, &number);
    if (!valid || (is_bounded(option) && (number < option->min || number > option->max))) {
        struct buf expected CLEANUP_BUF = {0};
        option_describe(option, &expected);
        return error_set(err, -EINVAL, "expected %s, got \"%s\"", buf_str(&expected), text);
    }
    if (option->type == OPTION_REGEX && check_regex(text, err) < 0) {
        return -EINVAL;
    }
    if (option->check != NULL && option->check(text, err) < 0) {
        return -EINVAL;
    }
    *ret_number = number;
    return 0;
}

static void describe_choices(const char *const *choices, struct buf *out) {
    buf_add_str(out, "one of ");
    for (size_t i = 0; choices[i] != NULL; i++) {
        buf_printf(out, "%s%s", i > 0 ? ", " : "", choices[i]);
    }
}

static const struct {
    const char *placeholder;
    const char *noun;
    const char *example; /* if no bounds show its form */
} forms[] = {
    [OPTION_BOOL] = {"", "true or false", ""},
    [OPTION_INT] = {"N", "a whole number", ""},
    [OPTION_SIZE] = {"SIZE", "a size", " such as 64KiB or 10MiB"},
    [OPTION_DURATION] = {"DURATION", "a duration", " such as 500ms, 10s or 5m"},
    [OPTION_STRING] = {"TEXT", "a text", ""},
    [OPTION_CHOICE] = {"WORD", "", ""},
    [OPTION_REGEX] = {"REGEX", "a regular expression", ""},
};

const char *option_placeholder(const struct option *option) {
    return forms[option->type].placeholder;
}

void option_describe(const struct option *option, struct buf *out) {
    if (option->type == OPTION_CHOICE) {
        describe_choices(option->choices, out);
        return;
    }
    buf_add_str(out, forms[option->type].noun);
    if (!is_bounded(option)) {
        buf_add_str(out, forms[option->type].example);
        return;
    }
    buf_add_str(out, " from ");
    option_format(option->type, option->min, out);
    buf_add_str(out, " to ");
    option_format(option->type, option->max, out);
}

/* A size in the largest unit that divides it. */
static void format_size(int64_t bytes, struct buf *out) {
    for (size_t i = 0; i + 1 < ARRAY_LEN(size_units); i++) {
        if (bytes != 0 && bytes % size_units[i].factor == 0) {
            buf_printf(out, "%lld%s", (long long)(bytes / size_units[i].factor),
                       size_units[i].name);
            return;
        }
    }
    buf_printf(out, "%lld", (long long)bytes);
}

static void format_duration(int64_t ms, struct buf *out) {
    if (ms == 0) {
        buf_add_str(out, "0s");
    }
    for (size_t i = 0; i < ARRAY_LEN(duration_units); i++) {
        int64_t n = ms / duration_units[i].factor;
        if (n > 0) {
            buf_printf(out, "%lld%s", (long long)n, duration_units[i].name);
            ms %= duration_units[i].factor;
        }
    }
}

void option_format(enum option_type type, int64_t number, struct buf *out) {
    if (type == OPTION_SIZE) {
        format_size(number, out);
    } else if (type == OPTION_DURATION) {
        format_duration(number, out);
    } else {
        buf_printf(out, "%lld", (long long)number);
    }
}
