#include "exporter/settings/flags.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/memory.h"
#include "exporter/settings/suggest.h"

/* One argument taken apart: "--no-collector.host", "--log.level=warn". */
struct flag {
    char *written;     /* up to '=' */
    const char *name;  /* of the option: the part of it behind the dashes and "no-" */
    const char *value; /* behind '=', or NULL */
    bool negated;      /* --no-… */
};

static bool is_flag(const char *arg) {
    return strncmp(arg, "--", 2) == 0;
}

/* A switch may be negated, any other option begins with "no-" only if that is its name. */
static const struct option *find(const struct settings *settings, const char *arg,
                                 struct flag *ret_flag) {
    size_t len = strcspn(arg, "=");
    char *written = mem_strndup(arg, len);
    *ret_flag = (struct flag){
        .written = written,
        .name = written + strlen("--"),
        .value = arg[len] == '=' ? arg + len + 1 : NULL,
    };
    const struct option *option = settings_option(settings, ret_flag->name);
    if (option != NULL || strncmp(written, "--no-", 5) != 0 || written[5] == '\0') {
        return option;
    }
    ret_flag->name = written + strlen("--no-");
    ret_flag->negated = true;
    option = settings_option(settings, ret_flag->name);
    return option != NULL && option->type == OPTION_BOOL ? option : NULL;
}

static void add_unknown(const struct settings *settings, const struct flag *flag,
                        struct problems *problems) {
    if (flag->negated && settings_option(settings, flag->name) != NULL) {
        problems_add(problems, flag->written, 0, 0,
                     "only switches can be negated, --%s takes a value", flag->name);
        return;
    }
    struct suggest suggest;
    size_t n_options;
    const struct option *const *options = settings_options(settings, &n_options);
    suggest_init(&suggest, flag->name);
    for (size_t i = 0; i < n_options; i++) {
        if (!flag->negated || options[i]->type == OPTION_BOOL) {
            suggest_offer(&suggest, options[i]->name, strlen(options[i]->name));
        }
    }
    struct buf hint CLEANUP_BUF = {0};
    suggest_write(&suggest, flag->negated ? "--no-" : "--", &hint);
    problems_add(problems, flag->written, 0, 0, "unknown flag%s", buf_str(&hint));
}

static void set(struct settings *settings, const struct option *option, const struct flag *flag,
                const char *value, struct problems *problems) {
    struct buf expected CLEANUP_BUF = {0};
    struct error err;
    if (value == NULL) {
        option_describe(option, &expected);
        problems_add(problems, flag->written, 0, 0, "expected %s, got nothing", buf_str(&expected));
    } else if (flag->negated && flag->value != NULL) {
        problems_add(problems, flag->written, 0, 0, "takes no value, got \"%s\"", flag->value);
    } else if (settings_set(settings, option, SETTINGS_FLAG, value, &err) < 0) {
        problems_add(problems, flag->written, 0, 0, "%s", err.text);
    }
}

/* Takes the flag `arg`, and `next` if that is its value; returns how many arguments that were. */
static int take_flag(struct settings *settings, const char *arg, const char *next,
                     struct problems *problems) {
    struct flag flag;
    const struct option *option = find(settings, arg, &flag);
    const char *value = flag.value;
    bool takes_next = false;
    if (option == NULL) {
        add_unknown(settings, &flag, problems);
    } else {
        if (value == NULL && option->type == OPTION_BOOL) {
            value = flag.negated ? "false" : "true";
        } else if (value == NULL) {
            value = option->bare_text;
            takes_next = value == NULL && next != NULL && !is_flag(next);
        }
        set(settings, option, &flag, takes_next ? next : value, problems);
    }
    free(flag.written);
    return takes_next ? 2 : 1;
}

static void take_word(struct flags *words, const char *word, struct problems *problems) {
    if (words == NULL) {
        problems_add(problems, word, 0, 0, "unexpected argument, flags begin with --");
    } else if (words->n_words == FLAGS_MAX_WORDS) {
        problems_add(problems, word, 0, 0, "more than %d arguments", FLAGS_MAX_WORDS);
    } else {
        words->words[words->n_words++] = word;
    }
}

void flags_set(struct settings *settings, int argc, char *const *argv, struct flags *words,
               struct problems *problems) {
    bool only_words = false;
    for (int i = 1; i < argc;) {
        if (words != NULL && !only_words && strcmp(argv[i], "--") == 0) {
            only_words = true;
            i++;
        } else if (!only_words && is_flag(argv[i])) {
            i += take_flag(settings, argv[i], i + 1 < argc ? argv[i + 1] : NULL, problems);
        } else {
            take_word(words, argv[i++], problems);
        }
    }
}

int flags_read(struct flags *flags, const struct option *options, const struct option *more,
               int argc, char *const *argv, struct problems *problems) {
    const struct option *const tables[] = {options, more};
    size_t n_before = problems->n_lines, n = 0, capacity = 0;
    *flags = (struct flags){.n_words = 0};
    for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
        for (const struct option *row = tables[i]; row != NULL && row->name != NULL; row++) {
            ARRAY_GROW(&flags->options, &capacity, n + 1);
            flags->options[n++] = row;
        }
    }
    flags->settings = settings_create(flags->options, n);
    flags_set(flags->settings, argc, argv, flags, problems);
    return problems->n_lines > n_before ? -EINVAL : 0;
}

int flags_begin(struct flags *flags, const char *usage, const struct option *options, int argc,
                char *const *argv) {
    enum { EXIT_USAGE = 2 };
    *flags = (struct flags){.n_words = 0};
    if (flags_ask_for_help(argc, argv)) {
        fputs(usage, stdout);
        flags_print_help(options, stdout);
        return EXIT_SUCCESS;
    }
    struct problems problems CLEANUP_PROBLEMS = {0};
    int r = flags_read(flags, options, NULL, argc, argv, &problems);
    problems_print(&problems, stderr);
    return r < 0 ? EXIT_USAGE : -1;
}

void flags_finish(struct flags *flags) {
    settings_destroy(TAKE(flags->settings));
    free(TAKE(flags->options));
}

bool flags_ask_for_help(int argc, char *const *argv) {
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            return true;
        }
    }
    return false;
}

void flags_print_help(const struct option *options, FILE *to) {
    for (const struct option *option = options; option->name != NULL; option++) {
        struct buf name CLEANUP_BUF = {0};
        bool has_value = option->type != OPTION_BOOL;
        buf_printf(&name, "%s%s%s", option->name, has_value ? "=" : "", option_placeholder(option));
        fprintf(to, "  --%-28s  %s", buf_str(&name), option->help);
        if (option->default_text != NULL && option->default_text[0] != '\0') {
            fprintf(to, " (%s)", option->default_text);
        }
        fputc('\n', to);
    }
}
