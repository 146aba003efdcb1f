#include "profiler/run/main.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "exporter/core/clock.h"
#include "exporter/core/log.h"
#include "exporter/core/memory.h"
#include "exporter/core/number.h"
#include "exporter/settings/suggest.h"
#include "profiler/report/report.h"
#include "profiler/run/engine.h"
#include "profiler/run/output.h"
#include "profiler/run/session.h"

/* ---- the command line ---- */

/* A knob to be swept over values. */
struct sweep {
    const char *name;
    struct knob_value *values;
    size_t n_values;
};

struct options {
    const char *file;           /* NULL: none */
    const char *out_dir;        /* NULL: not given */
    const char *image;          /* NULL: not given */
    const char *const *command; /* after "--"; NULL: not given */
    const char **targets;       /* names or numbers; n_targets 0: all */
    size_t n_targets;
    struct sweep *sweeps;
    size_t n_sweeps;
    bool force; /* replace an existing record */
    bool help;
};

static const char help[] =
    "usage: waap run [FILE] [options] [-- COMMAND...]\n\n"
    "Profiles an application: runs it as the profiling section of FILE (a sage.yaml) specifies,\n"
    "and records what it uses.\n\n"
    "  --target=NAME       Only this target, by its name or number (repeatable)\n"
    "  --image=IMAGE       Run this container image, through Docker or podman\n"
    "  --out=DIR           Where the record goes; default output.dir of FILE, or a folder named\n"
    "                      after the application and the time\n"
    "  --force             Replace an existing record\n"
    "  --knob=NAME=A,B,..  Run with each of these values of a knob of the plugin (repeatable:\n"
    "                      all combinations)\n"
    "  -- COMMAND...       Run this command; the target's args follow it\n\n"
    "Exit status: 0 good, 1 a gate failed, 2 usage or FILE, 3 the application failed, 4 the\n"
    "machine does not allow it, 130 interrupted; what was recorded until then is kept.\n";

enum { MAX_VALUES = 100 };

static struct knob_value read_value(const char *text) {
    double number;
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        return (struct knob_value){.form = KNOB_TRUTH, .number = text[0] == 't'};
    }
    if (number_parse(text, strlen(text), &number) == 0 && isfinite(number)) {
        return (struct knob_value){.form = KNOB_NUMBER, .number = number};
    }
    return (struct knob_value){.form = KNOB_TEXT, .text = text};
}

/* "res=240,480". */
static int read_sweep(const char *text, struct arena *arena, struct sweep *ret_sweep,
                      struct error *err) {
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text || equals[1] == '\0') {
        return error_set(err, -EINVAL, "--knob: expected NAME=VALUE,VALUE,…, got \"%s\"", text);
    }
    char *name = arena_copy(arena, text, strlen(text) + 1);
    struct knob_value *values = arena_take(arena, MAX_VALUES * sizeof(*values));
    name[equals - text] = '\0';
    *ret_sweep = (struct sweep){.name = name, .values = values};
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

static const char *const names[] = {"--force", "--image", "--knob", "--out", "--target"};

static int set(struct options *options, const char *name, const char *value, struct arena *arena,
               struct error *err) {
    if (value[0] == '\0') {
        return error_set(err, -EINVAL, "%s: expected a value, got \"\"", name);
    }
    if (strcmp(name, "--knob") == 0) {
        return read_sweep(value, arena, &options->sweeps[options->n_sweeps++], err);
    }
    const char **place = strcmp(name, "--image") == 0 ? &options->image
                         : strcmp(name, "--out") == 0 ? &options->out_dir
                                                      : &options->targets[options->n_targets++];
    *place = value;
    return 0;
}

static int fail_unknown(const char *arg, struct error *err) {
    struct suggest suggest;
    struct buf text CLEANUP_BUF = {0};
    suggest_init(&suggest, arg);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        suggest_offer(&suggest, names[i], strlen(names[i]));
    }
    buf_printf(&text, "unknown option %.*s", (int)strcspn(arg, "="), arg);
    suggest_write(&suggest, "", &text);
    return error_set(err, -EINVAL, "%s", buf_str(&text));
}

/* Takes the option at argv[*at] with its value, "--out=x" or "--out x", and moves `*at` to its last
 * word. */
static int take_option(struct options *options, int argc, char **argv, int *at, struct arena *arena,
                       struct error *err) {
    const char *arg = argv[*at];
    size_t len = strcspn(arg, "=");
    const char *name = NULL;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        name = strlen(names[i]) == len && strncmp(names[i], arg, len) == 0 ? names[i] : name;
    }
    if (name == NULL) {
        return fail_unknown(arg, err);
    }
    bool has_value = arg[len] == '=';
    if (strcmp(name, "--force") == 0) {
        options->force = true;
        return has_value ? error_set(err, -EINVAL, "%s takes no value", name) : 0;
    }
    if (!has_value && *at + 1 >= argc) {
        return error_set(err, -EINVAL, "%s: expected a value after it", name);
    }
    return set(options, name, has_value ? arg + len + 1 : argv[++*at], arena, err);
}

static int take_argument(struct options *options, int argc, char **argv, int *at,
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
        return error_set(err, -EINVAL, "one file at a time, got %s and %s (a command follows --)",
                         options->file, arg);
    }
    options->file = arg;
    return 0;
}

static int check(const struct options *options, struct error *err) {
    if (options->command != NULL && options->image != NULL) {
        return error_set(err, -EINVAL, "--image and a command after -- exclude each other");
    }
    if (options->command != NULL && options->command[0] == NULL) {
        return error_set(err, -EINVAL, "expected a command after --");
    }
    if (options->file == NULL && options->command == NULL && options->image == NULL) {
        return error_set(err, -EINVAL, "expected a sage.yaml, --image or a command after --");
    }
    return 0;
}

/* Reads the command line behind argv[0] into the arena. -EINVAL with the reason. */
static int read_options(int argc, char **argv, struct arena *arena, struct options *ret_options,
                        struct error *err) {
    struct options options = {
        .targets = arena_take(arena, (size_t)argc * sizeof(*options.targets)),
        .sweeps = arena_take(arena, (size_t)argc * sizeof(*options.sweeps)),
    };
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

enum {
    EXIT_USAGE = 2,
    EXIT_APPLICATION = 3,
    EXIT_ENVIRONMENT = 4,
    EXIT_INTERRUPTED = 130,
};

/* One call of `waap run`. */
struct call {
    struct arena arena;
    struct options options;
    struct run_spec spec;
    struct run_session session;
    const char *home; /* the folder of the file; NULL: the working directory */
    struct run_tally tally;
};

static int complain(int code, const char *text) {
    fprintf(stderr, "waap run: %s\n", text);
    return code;
}

/* ---- what to run ---- */

static const char *copy_text(struct arena *arena, const struct buf *text) {
    return arena_copy(arena, buf_str(text), text->len + 1);
}

static void add_words(struct buf *words, const char *const *list) {
    for (; list != NULL && *list != NULL; list++) {
        buf_add(words, list, sizeof(*list));
    }
}

static void add_variable(struct arena *arena, struct buf *words, const char *name,
                         const char *value) {
    struct buf pair CLEANUP_BUF = {0};
    buf_printf(&pair, "%s=%s", name, value);
    const char *copy = copy_text(arena, &pair);
    buf_add(words, &copy, sizeof(copy));
}

/* The variables by which the application finds its socket and dataset. */
static const char *const *make_env(struct call *call, const struct run_plan *plan) {
    struct buf words CLEANUP_BUF = {0};
    struct buf socket CLEANUP_BUF = {0};
    bool container = plan->image != NULL;
    buf_printf(&socket, "%s/push.sock", container ? "/run/waap" : call->session.socket_dir);
    add_words(&words, plan->target->env);
    add_variable(&call->arena, &words, "WAAP_PUSH_SOCKET", buf_str(&socket));
    if (plan->dataset != NULL) {
        add_variable(&call->arena, &words, "WAAP_DATASET", container ? "/dataset" : plan->dataset);
    }
    return run_args_list(&words, &call->arena);
}

/* Fails before anything runs if the engine or the image is missing. */
static int find_digest(struct call *call, struct run_plan *plan, struct error *err) {
    struct run_engine engine = {0};
    char *digest CLEANUP_FREE = NULL;
    int r = run_engine_open(&engine, call->session.config->settings, err);
    if (r == 0) {
        r = run_engine_image(&engine, plan->image, &digest, err);
    }
    if (r == 0 && digest != NULL) {
        plan->digest = arena_copy(&call->arena, digest, strlen(digest) + 1);
    }
    run_engine_close(&engine);
    return r;
}

static int make_plan(struct call *call, const struct run_target *target, struct run_plan *ret_plan,
                     struct error *err) {
    const struct options *options = &call->options;
    bool given = options->command != NULL;
    struct buf words CLEANUP_BUF = {0};
    struct run_plan plan = {
        .target = target,
        .name = target->name,
        .image = options->image != NULL ? options->image
                 : given                ? NULL
                                        : target->image,
        .dir = given ? NULL : call->home,
    };
    add_words(&words, given ? options->command : target->command);
    if (words.len == 0 && plan.image == NULL && !call->spec.has_section) {
        return error_set(err, -EINVAL,
                         "nothing to run: %s has no section profiling; give --image or a command "
                         "after --",
                         call->spec.file);
    }
    if (words.len == 0 && plan.image == NULL) {
        return error_set(err, -EINVAL,
                         "target %s: nothing to run: give --image, a command after --, or command "
                         "or image in the file",
                         target->name);
    }
    add_words(&words, target->args);
    plan.argv = run_args_list(&words, &call->arena);
    if (target->dataset != NULL) {
        char *path CLEANUP_FREE = run_output_resolve(call->home, target->dataset, err);
        if (path == NULL) {
            return -ENOENT;
        }
        plan.dataset = arena_copy(&call->arena, path, strlen(path) + 1);
    }
    plan.env = make_env(call, &plan);
    int r = plan.image != NULL ? find_digest(call, &plan, err) : 0;
    *ret_plan = plan;
    return r;
}

/* Selects the targets of the command line, or all. */
static int choose_targets(struct call *call, const struct run_target ***ret_targets, size_t *ret_n,
                          struct error *err) {
    const struct options *options = &call->options;
    const struct run_spec *spec = &call->spec;
    size_t n = options->n_targets > 0 ? options->n_targets : spec->n_targets;
    const struct run_target **targets = arena_take(&call->arena, n * sizeof(*targets));
    for (size_t i = 0; i < n; i++) {
        targets[i] =
            options->n_targets > 0 ? run_spec_target(spec, options->targets[i]) : &spec->targets[i];
        if (targets[i] == NULL) {
            return error_set(err, -EINVAL, "--target: there is no target \"%s\" in %s",
                             options->targets[i], spec->file != NULL ? spec->file : "this run");
        }
    }
    *ret_targets = targets;
    *ret_n = n;
    return 0;
}

/* ---- running ---- */

/* "cpu.res=480,mode=fast". */
static const char *sweep_name(struct call *call, const char *target, const struct run_knob *knobs,
                              size_t n_knobs) {
    struct buf name CLEANUP_BUF = {0};
    buf_printf(&name, "%s.", target);
    for (size_t i = 0; i < n_knobs; i++) {
        buf_printf(&name, "%s%s=", i > 0 ? "," : "", knobs[i].name);
        const struct knob_value *value = &knobs[i].value;
        if (value->form == KNOB_TEXT) {
            buf_add_str(&name, value->text);
        } else {
            knob_value_format(value, &name);
        }
    }
    return copy_text(&call->arena, &name);
}

/* Advances to the next combination of values; false after the last. */
static bool next_combination(const struct options *options, size_t *at) {
    for (size_t i = options->n_sweeps; i > 0; i--) {
        if (++at[i - 1] < options->sweeps[i - 1].n_values) {
            return true;
        }
        at[i - 1] = 0;
    }
    return false;
}

static void profile(struct call *call, struct run_plan *plan) {
    const struct options *options = &call->options;
    size_t n = options->n_sweeps;
    size_t *at CLEANUP_FREE = mem_zalloc(n, sizeof(*at));
    struct run_knob *knobs CLEANUP_FREE = mem_zalloc(n, sizeof(*knobs));
    const char *name = plan->name;
    do {
        for (size_t i = 0; i < n; i++) {
            knobs[i] = (struct run_knob){options->sweeps[i].name, options->sweeps[i].values[at[i]]};
        }
        plan->knobs = knobs;
        plan->n_knobs = n;
        plan->name = n > 0 ? sweep_name(call, name, knobs, n) : name;
        run_target_profile(&call->session, plan, &call->tally);
    } while (next_combination(options, at) && !run_session_is_over(&call->session));
}

static void write_finished(struct run_session *session) {
    struct error err;
    session->record.target = NULL;
    run_record_begin(&session->record, "finished");
    run_record_number(&session->record, "t",
                      run_record_seconds(&session->record, clock_monotonic_ns()));
    run_record_number(&session->record, "at", clock_wall_seconds());
    json_put_bool(&session->record.line, "interrupted", session->n_interrupts > 0);
    if (session->record.left_out) {
        json_put_bool(&session->record.line, "left_out", true);
        complain(0, "the application has more series than a record holds: some were left out");
    }
    run_session_check(session, run_record_end(&session->record, &err), &err);
}

static int open_record(struct call *call, const struct run_plan *first, struct error *err) {
    struct buf path CLEANUP_BUF = {0};
    buf_printf(&path, "%s/samples.jsonl", call->session.out_dir);
    int r = run_output_make(call->session.out_dir, err);
    if (r == 0) {
        r = run_record_open(&call->session.record, buf_str(&path), err);
    }
    if (r == 0) {
        run_report_remove(call->session.out_dir);
        run_environment_write(&call->session, first->image, first->digest);
    }
    return r;
}

static int run_plans(struct call *call, struct run_plan *plans, size_t n_plans, struct error *err) {
    struct run_session *session = &call->session;
    int r = open_record(call, &plans[0], err);
    if (r == 0) {
        r = run_services_start(session, call->home, err);
    }
    for (size_t i = 0; r == 0 && i < n_plans; i++) {
        if (!run_session_is_over(session)) {
            profile(call, &plans[i]);
        }
    }
    run_services_stop(session);
    run_progress_clear(&session->progress);
    if (session->record.began_ns != 0) {
        write_finished(session);
    }
    if (r == 0 && session->error.text[0] != '\0') {
        r = error_set(err, -EIO, "%s", session->error.text);
    }
    return r;
}

/* ---- the command ---- */

/* "objcounter-20261116-143000". */
static const char *default_out_dir(struct call *call) {
    struct buf name CLEANUP_BUF = {0};
    char when[32];
    time_t now = time(NULL);
    struct tm local;
    localtime_r(&now, &local);
    strftime(when, sizeof(when), "%Y%m%d-%H%M%S", &local);
    const char *application = call->spec.name;
    bool usable = application != NULL && strchr(application, '/') == NULL && application[0] != '.';
    buf_printf(&name, "%s-%s", usable ? application : "waap-run", when);
    return copy_text(&call->arena, &name);
}

/* If the file is a program, the user may have forgotten the --. */
static bool is_program(const char *file) {
    struct stat st;
    return stat(file, &st) == 0 && S_ISREG(st.st_mode) && access(file, X_OK) == 0;
}

static int load(struct call *call) {
    struct problems problems CLEANUP_PROBLEMS = {0};
    const char *file = call->options.file;
    if (file == NULL) {
        run_spec_init(&call->spec);
        return 0;
    }
    if (run_spec_load(file, &call->spec, &problems) < 0) {
        problems_print(&problems, stderr);
        if (is_program(file)) {
            fprintf(stderr, "waap run: to run %s itself: waap run -- %s\n", file, file);
        }
        return -EINVAL;
    }
    char *folder CLEANUP_FREE = run_output_folder(file);
    call->home = arena_copy(&call->arena, folder, strlen(folder) + 1);
    return 0;
}

/* Writes the reports, which are all made from the record. */
static int report(struct call *call, struct error *err) {
    struct run_verdict verdict CLEANUP_VERDICT = {0};
    if (run_report_write(call->session.out_dir, &verdict, err) < 0) {
        return complain(EXIT_ENVIRONMENT, err->text);
    }
    problems_print(&verdict.missing, stderr);
    printf("%u run%s, %u failed", call->tally.n_runs, call->tally.n_runs == 1 ? "" : "s",
           call->tally.n_failed);
    if (verdict.n_gates > 0) {
        printf("; %zu of %zu gates failed", verdict.n_failed_gates, verdict.n_gates);
    }
    printf(": see %s/report.html\n", call->session.out_dir);
    if (call->session.n_interrupts > 0) {
        return EXIT_INTERRUPTED;
    }
    if (call->tally.misused) {
        return EXIT_USAGE;
    }
    return call->tally.n_failed > 0 ? EXIT_APPLICATION : verdict.exit_code;
}

static int run_call(struct call *call, struct error *err) {
    const struct run_target **targets = NULL;
    size_t n = 0;
    if (choose_targets(call, &targets, &n, err) < 0) {
        return complain(EXIT_USAGE, err->text);
    }
    struct run_session *session = &call->session;
    session->spec = &call->spec;
    session->out_dir = call->options.out_dir != NULL ? call->options.out_dir
                       : call->spec.out_dir != NULL  ? call->spec.out_dir
                                                     : default_out_dir(call);
    if (!call->options.force && run_output_check(session->out_dir, err) < 0) {
        return complain(EXIT_USAGE, err->text);
    }
    if (run_session_init(session, err) < 0) {
        return complain(EXIT_ENVIRONMENT, err->text);
    }
    struct run_plan *plans = arena_take(&call->arena, n * sizeof(*plans));
    for (size_t i = 0; i < n; i++) {
        int r = make_plan(call, targets[i], &plans[i], err);
        if (r < 0) {
            return complain(r == -EINVAL ? EXIT_USAGE : EXIT_ENVIRONMENT, err->text);
        }
    }
    if (run_plans(call, plans, n, err) < 0) {
        return complain(session->n_interrupts > 0 ? EXIT_INTERRUPTED : EXIT_ENVIRONMENT, err->text);
    }
    return report(call, err);
}

int run_main(const struct collector *const *collectors, int argc, char **argv) {
    struct call call = {.session = {.collectors = collectors, .signals = {.fd = -1}}};
    struct error err;
    int code = EXIT_USAGE;
    log_configure(LOG_LEVEL_WARN, LOG_FORMAT_LOGFMT);
    if (read_options(argc, argv, &call.arena, &call.options, &err) < 0) {
        fprintf(stderr, "waap run: %s\n\n%s", err.text, help);
    } else if (call.options.help) {
        fputs(help, stdout);
        code = EXIT_SUCCESS;
    } else if (load(&call) == 0) {
        code = run_call(&call, &err);
    }
    if (!run_session_finish(&call.session)) {
        fflush(stdout);
        _exit(code);
    }
    run_spec_finish(&call.spec);
    arena_finish(&call.arena);
    return code;
}
