#include "profiler/run/options.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "exporter/core/number.h"
#include "exporter/settings/suggest.h"

const char run_options_help[] =
    "usage: waap run [FILE] [options] [-- COMMAND...]\n\n"
    "Profiles an application: runs it as the profiling section of FILE (a sage.yaml) says, and\n"
    "records what it uses.\n\n"
    "  --target=NAME       Only this target, by its name or number (repeatable)\n"
    "  --image=IMAGE       Run this container image, through Docker or podman\n"
    "  --out=DIR           Where the record goes; default output.dir of FILE, or a folder named\n"
    "                      after the application and the time\n"
    "  --force             Replace the record that is there\n"
    "  --knob=NAME=A,B,..  Run with each of these values of a knob of the plugin (repeatable:\n"
    "                      all combinations)\n"
    "  -- COMMAND...       Run this command; the target's args follow it\n\n"
    "Exit status: 0 good, 1 a gate failed, 2 usage or FILE, 3 the application failed, 4 the\n"
    "machine does not allow it, 130 interrupted; what was recorded until then is kept.\n";

enum { MAX_VALUES = 100 };

/* ---- knobs ---- */

static struct param_value read_value(const char *text) {
    double number;
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        return (struct param_value){.form = PARAM_TRUTH, .number = text[0] == 't'};
    }
    if (number_parse(text, strlen(text), &number) == 0 && isfinite(number)) {
        return (struct param_value){.form = PARAM_NUMBER, .number = number};
    }
    return (struct param_value){.form = PARAM_TEXT, .text = text};
}

/* "res=240,480". */
static int read_sweep(const char *text, struct arena *arena, struct run_sweep *ret_sweep,
                      struct error *err) {
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text || equals[1] == '\0') {
        return error_set(err, -EINVAL, "--knob: expected NAME=VALUE,VALUE,…, got \"%s\"", text);
    }
    char *name = arena_copy(arena, text, strlen(text) + 1);
    struct param_value *values = arena_take(arena, MAX_VALUES * sizeof(*values));
    if (name == NULL || values == NULL) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    name[equals - text] = '\0';
    *ret_sweep = (struct run_sweep){.name = name, .values = values};
    char *rest = name + (equals - text) + 1;
    for (char *word; (word = strsep(&rest, ",")) != NULL;) {
        if (word[0] == '\0' || ret_sweep->n_values == MAX_VALUES) {
            return error_set(err, -EINVAL, "--knob: expected 1 to %d values, got \"%s\"",
                             MAX_VALUES, equals + 1);
        }
        values[ret_sweep->n_values++] = read_value(word);
    }
    return 0;
}

/* ---- options ---- */

enum which { OPT_FORCE, OPT_IMAGE, OPT_KNOB, OPT_OUT, OPT_TARGET, N_OPTS };

static const char *const names[N_OPTS] = {
    [OPT_FORCE] = "--force", [OPT_IMAGE] = "--image",   [OPT_KNOB] = "--knob",
    [OPT_OUT] = "--out",     [OPT_TARGET] = "--target",
};

static int set(struct run_options *options, enum which which, const char *value,
               struct arena *arena, struct error *err) {
    if (value[0] == '\0') {
        return error_set(err, -EINVAL, "%s: expected a value, got \"\"", names[which]);
    }
    switch (which) {
    case OPT_IMAGE:
        options->image = value;
        return 0;
    case OPT_KNOB:
        return read_sweep(value, arena, &options->sweeps[options->n_sweeps++], err);
    case OPT_OUT:
        options->out_dir = value;
        return 0;
    default:
        options->targets[options->n_targets++] = value;
        return 0;
    }
}

static int fail_unknown(const char *arg, struct error *err) {
    struct suggest suggest;
    struct buf text CLEANUP_BUF = {0};
    suggest_init(&suggest, arg);
    for (size_t i = 0; i < N_OPTS; i++) {
        suggest_offer(&suggest, names[i], strlen(names[i]));
    }
    buf_printf(&text, "unknown option %.*s", (int)strcspn(arg, "="), arg);
    suggest_write(&suggest, "", &text);
    return error_set(err, -EINVAL, "%s", buf_str(&text));
}

/* One option at argv[*at], which moves over its value: "--out=x" or "--out x". */
static int take_option(struct run_options *options, int argc, char **argv, int *at,
                       struct arena *arena, struct error *err) {
    const char *arg = argv[*at];
    size_t len = strcspn(arg, "=");
    for (size_t i = 0; i < N_OPTS; i++) {
        if (strlen(names[i]) != len || strncmp(names[i], arg, len) != 0) {
            continue;
        }
        if (i == OPT_FORCE && arg[len] != '\0') {
            return error_set(err, -EINVAL, "%s takes no value", names[i]);
        }
        if (i == OPT_FORCE) {
            options->force = true;
            return 0;
        }
        if (arg[len] == '=') {
            return set(options, (enum which)i, arg + len + 1, arena, err);
        }
        if (*at + 1 >= argc) {
            return error_set(err, -EINVAL, "%s: expected a value behind it", names[i]);
        }
        return set(options, (enum which)i, argv[++*at], arena, err);
    }
    return fail_unknown(arg, err);
}

static int take_argument(struct run_options *options, int argc, char **argv, int *at,
                         struct arena *arena, struct error *err) {
    const char *arg = argv[*at];
    if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0) {
        options->help = true;
        return 0;
    }
    if (arg[0] == '-') {
        return take_option(options, argc, argv, at, arena, err);
    }
    if (options->file != NULL) {
        return error_set(err, -EINVAL,
                         "one file at a time, got %s and %s (a command stands behind --)",
                         options->file, arg);
    }
    options->file = arg;
    return 0;
}

static int check(const struct run_options *options, struct error *err) {
    if (options->command != NULL && options->image != NULL) {
        return error_set(err, -EINVAL, "--image and a command behind -- exclude each other");
    }
    if (options->command != NULL && options->command[0] == NULL) {
        return error_set(err, -EINVAL, "expected a command behind --");
    }
    if (options->file == NULL && options->command == NULL && options->image == NULL) {
        return error_set(err, -EINVAL, "expected a sage.yaml, --image or a command behind --");
    }
    return 0;
}

int run_options_read(int argc, char **argv, struct arena *arena, struct run_options *ret_options,
                     struct error *err) {
    struct run_options options = {
        .targets = arena_take(arena, (size_t)argc * sizeof(*options.targets)),
        .sweeps = arena_take(arena, (size_t)argc * sizeof(*options.sweeps)),
    };
    if (options.targets == NULL || options.sweeps == NULL) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    for (int i = 1; i < argc && options.command == NULL && !options.help; i++) {
        if (strcmp(argv[i], "--") == 0) {
            options.command = (const char *const *)argv + i + 1;
            break;
        }
        int r = take_argument(&options, argc, argv, &i, arena, err);
        if (r < 0) {
            return r;
        }
    }
    int r = options.help ? 0 : check(&options, err);
    if (r == 0) {
        *ret_options = options;
    }
    return r;
}
