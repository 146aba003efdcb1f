#include "exporter/settings/flags.h"

#include <errno.h>
#include <string.h>

#include "exporter/settings/suggest.h"

struct reading {
    struct flags *flags;
    const struct option *const *options;
    size_t n_options;
    struct problems *problems;
};

static const struct option *find(const struct reading *in, const char *name, size_t len) {
    for (size_t i = 0; i < in->n_options; i++) {
        const char *known = in->options[i]->name;
        if (strlen(known) == len && strncmp(known, name, len) == 0) {
            return in->options[i];
        }
    }
    return NULL;
}

static void complain_unknown(const struct reading *in, const char *name, size_t len) {
    struct buf text CLEANUP_BUF = {0}, place CLEANUP_BUF = {0}, wanted CLEANUP_BUF = {0};
    struct suggest suggest;
    buf_add(&wanted, name, len);
    suggest_init(&suggest, buf_str(&wanted));
    for (size_t i = 0; i < in->n_options; i++) {
        suggest_offer(&suggest, in->options[i]->name, strlen(in->options[i]->name));
    }
    buf_add_str(&text, "unknown flag");
    suggest_write(&suggest, "--", &text);
    buf_printf(&place, "--%s", buf_str(&wanted));
    problems_add(in->problems, buf_str(&place), 0, 0, "%s", buf_str(&text));
}

static void set(const struct reading *in, const struct option *option, const char *value) {
    struct buf place CLEANUP_BUF = {0};
    struct error err;
    buf_printf(&place, "--%s", option->name);
    if (value == NULL) {
        struct buf expected CLEANUP_BUF = {0};
        option_describe(option, &expected);
        problems_add(in->problems, buf_str(&place), 0, 0, "expected %s, got nothing",
                     buf_str(&expected));
    } else if (settings_set(in->flags->settings, option, SETTINGS_FLAG, value, &err) < 0) {
        problems_add(in->problems, buf_str(&place), 0, 0, "%s", err.text);
    }
}

/* Takes the flag at `argv[i]`, and its value; returns how many arguments that were. */
static int take_flag(const struct reading *in, int argc, char *const *argv, int i) {
    const char *name = argv[i] + strlen("--");
    size_t len = strcspn(name, "=");
    const char *value = name[len] == '=' ? name + len + 1 : NULL;
    const struct option *option = find(in, name, len);
    if (option == NULL && value == NULL && len > 3 && strncmp(name, "no-", 3) == 0) {
        option = find(in, name + 3, len - 3);
        option = option != NULL && option->type == OPTION_BOOL ? option : NULL;
        value = "false";
    }
    if (option == NULL) {
        complain_unknown(in, name, len);
        return 1;
    }
    if (value == NULL && option->type == OPTION_BOOL) {
        value = "true";
    }
    bool is_next = value == NULL && i + 1 < argc && strncmp(argv[i + 1], "--", 2) != 0;
    set(in, option, is_next ? argv[i + 1] : value);
    return is_next ? 2 : 1;
}

static void take_word(const struct reading *in, const char *word) {
    struct flags *flags = in->flags;
    if (flags->n_words == FLAGS_MAX_WORDS) {
        problems_add(in->problems, word, 0, 0, "more than %d arguments", FLAGS_MAX_WORDS);
        return;
    }
    flags->words[flags->n_words++] = word;
}

int flags_read(struct flags *flags, const struct option *const *options, size_t n_options, int argc,
               char *const *argv, struct problems *problems) {
    size_t n_before = problems->n_lines;
    *flags = (struct flags){.settings = settings_create(options, n_options)};
    if (flags->settings == NULL) {
        problems_add(problems, "flags", 0, 0, "out of memory");
        return -ENOMEM;
    }
    struct reading in = {flags, options, n_options, problems};
    bool only_words = false;
    for (int i = 1; i < argc;) {
        if (!only_words && strcmp(argv[i], "--") == 0) {
            only_words = true;
            i++;
        } else if (!only_words && strncmp(argv[i], "--", 2) == 0) {
            i += take_flag(&in, argc, argv, i);
        } else {
            take_word(&in, argv[i++]);
        }
    }
    return problems->n_lines > n_before ? -EINVAL : 0;
}

void flags_finish(struct flags *flags) {
    settings_destroy(TAKE(flags->settings));
}

bool flags_ask_for_help(int argc, char *const *argv) {
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            return true;
        }
    }
    return false;
}

void flags_print_help(const struct option *const *options, size_t n_options, FILE *to) {
    for (size_t i = 0; i < n_options; i++) {
        const struct option *option = options[i];
        fprintf(to, "  --%-24s  %s", option->name, option->help);
        if (option->default_text != NULL && option->default_text[0] != '\0') {
            fprintf(to, " (%s)", option->default_text);
        }
        fputc('\n', to);
    }
}
