#include "profiler/run/main.h"

#include <errno.h>
#include <libgen.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "exporter/core/clock.h"
#include "exporter/core/file.h"
#include "exporter/core/log.h"
#include "exporter/core/memory.h"
#include "exporter/core/number.h"
#include "exporter/settings/flags.h"
#include "profiler/report/report.h"
#include "profiler/run/engine.h"
#include "profiler/run/output.h"
#include "profiler/run/session.h"

/* ---- the command line ---- */

static const struct option flag_options[] = {
    {"force", OPTION_BOOL, .help = "Replace an existing record"},
    {"image", OPTION_STRING, .help = "Run this container image, through Docker or podman"},
    {"knob", OPTION_STRING, .repeatable = true,
     .help = "Run with each value of a knob of the plugin, NAME=A,B,…; of several knobs, with all "
             "combinations"},
    {"out", OPTION_STRING,
     .help = "Folder of the record; default output.dir of FILE, or a folder named after the "
             "application and the time"},
    {"run.mounts-allow", OPTION_STRING, .repeatable = true,
     .help = "Folder below which mounts may have their sources, beside that of FILE (repeatable; "
             "also WAAP_RUN_MOUNTS_ALLOW=A,B)"},
    {"target", OPTION_STRING, .repeatable = true,
     .help = "Run only this target, by its name or number (repeatable)"},
    {0},
};

static void print_help(void) {
    printf("usage: waap run [FILE] [flags] [-- COMMAND...]\n\n"
           "Profiles an application: runs it as the profiling section of FILE (a sage.yaml)\n"
           "specifies, and records what it uses. COMMAND is run instead of the file's; the\n"
           "target's args follow it.\n\n");
    flags_print_help(flag_options, stdout);
    printf(
        "\nExit status: 0 good, 1 a gate failed, 2 usage or FILE, 3 the application failed, 4 the\n"
        "machine does not allow it, 130 interrupted; what was recorded until then is kept.\n");
}

/* A knob to be swept over values. */
struct sweep {
    const char *name;
    struct knob_value *values;
    size_t n_values;
};

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
        return error_set(err, -EINVAL, "expected NAME=VALUE,VALUE,…, got \"%s\"", text);
    }
    char *name = arena_copy(arena, text, strlen(text) + 1);
    struct knob_value *values = arena_take(arena, MAX_VALUES * sizeof(*values));
    name[equals - text] = '\0';
    *ret_sweep = (struct sweep){.name = name, .values = values};
    char *rest = name + (equals - text) + 1;
    for (char *word; (word = strsep(&rest, ",")) != NULL;) {
        if (word[0] == '\0' || ret_sweep->n_values == MAX_VALUES) {
            return error_set(err, -EINVAL, "expected 1 to %d values, got \"%s\"", MAX_VALUES,
                             equals + 1);
        }
        values[ret_sweep->n_values++] = read_value(word);
    }
    return 0;
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
    struct flags flags;
    const char *file;           /* NULL: none */
    const char *image;          /* of the command line; "": none */
    const char *const *command; /* after "--"; NULL: not given */
    struct sweep *sweeps;
    size_t n_sweeps;
    struct run_spec spec;
    struct run_plan *plans; /* one per target to run */
    size_t n_plans;
    struct run_session session;
    const char *home; /* the folder of the file; NULL: the working directory */
    const char *const *mounts_allow;
    struct run_tally tally;
};

static int complain(int code, const char *text) {
    fprintf(stderr, "waap run: %s\n", text);
    return code;
}

/* Reads the command line; false with the reasons on standard error. */
static bool read_call(struct call *call, int argc, char **argv) {
    struct problems problems CLEANUP_PROBLEMS = {0};
    struct error err;
    int n = 1;
    while (n < argc && strcmp(argv[n], "--") != 0) {
        n++;
    }
    flags_read(&call->flags, flag_options, NULL, n, argv, &problems);
    call->command = n < argc ? (const char *const *)argv + n + 1 : NULL;
    call->file = call->flags.n_words > 0 ? call->flags.words[0] : NULL;
    call->image = settings_string(call->flags.settings, "image");
    const char *const *knobs = settings_list(call->flags.settings, "knob");
    call->sweeps = arena_take(&call->arena, (size_t)argc * sizeof(*call->sweeps));
    for (; knobs[call->n_sweeps] != NULL; call->n_sweeps++) {
        if (read_sweep(knobs[call->n_sweeps], &call->arena, &call->sweeps[call->n_sweeps], &err) <
            0) {
            problems_add(&problems, "--knob", 0, 0, "%s", err.text);
        }
    }
    bool has_image = call->image[0] != '\0';
    const struct {
        bool applies;
        const char *text;
    } mistakes[] = {
        {call->flags.n_words > 1, "one file at a time (a command follows --)"},
        {call->command != NULL && has_image, "--image and a command after -- exclude each other"},
        {call->command != NULL && call->command[0] == NULL, "expected a command after --"},
        {call->file == NULL && call->command == NULL && !has_image,
         "expected a sage.yaml, --image or a command after --"},
    };
    for (size_t i = 0; i < ARRAY_LEN(mistakes); i++) {
        if (mistakes[i].applies) {
            problems_add(&problems, "waap run", 0, 0, "%s", mistakes[i].text);
        }
    }
    problems_print(&problems, stderr);
    return problems.n_lines == 0;
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

/* Whether a path is `folder` or below it; both are resolved. */
static bool is_below(const char *path, const char *folder) {
    size_t len = strcmp(folder, "/") == 0 ? 0 : strlen(folder);
    return strncmp(path, folder, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

/* Reads --run.mounts-allow, else its variable. */
static void read_mounts_allow(struct call *call) {
    struct buf words CLEANUP_BUF = {0};
    const char *const *flags = settings_list(call->flags.settings, "run.mounts-allow");
    const char *variable = getenv("WAAP_RUN_MOUNTS_ALLOW");
    add_words(&words, flags);
    if (flags[0] == NULL && variable != NULL) {
        char *rest = arena_copy(&call->arena, variable, strlen(variable) + 1);
        for (char *word; (word = strsep(&rest, ",")) != NULL;) {
            buf_add(&words, &word, word[0] != '\0' ? sizeof(word) : 0);
        }
    }
    call->mounts_allow = run_args_list(&words, &call->arena);
}

static bool is_allowed(struct call *call, const char *source) {
    char *home CLEANUP_FREE = realpath(call->home, NULL);
    bool allowed = home != NULL && is_below(source, home);
    for (size_t i = 0; !allowed && call->mounts_allow[i] != NULL; i++) {
        char *folder CLEANUP_FREE = realpath(call->mounts_allow[i], NULL);
        allowed = folder != NULL && is_below(source, folder);
    }
    return allowed;
}

static const char *resolve(struct call *call, const char *path, struct error *err) {
    char *resolved CLEANUP_FREE = run_output_resolve(call->home, path, err);
    return resolved != NULL ? arena_copy(&call->arena, resolved, strlen(resolved) + 1) : NULL;
}

/* Makes the sources absolute, without symbolic links, and checks where they are. The mounts are
 * those of a "target" or "service" of that name. */
static int resolve_mounts(struct call *call, const char *kind, const char *name,
                          const struct run_mounts *mounts, struct error *err) {
    for (size_t i = 0; i < mounts->n; i++) {
        const char *source = resolve(call, mounts->items[i].source, err);
        if (source == NULL) {
            return error_set(err, -ENOENT, "%s %s: mounts: %s", kind, name, err->text);
        }
        if (!is_allowed(call, source)) {
            return error_set(err, -EINVAL,
                             "%s %s: mounts: %s is not below %s, the folder of the file; "
                             "--run.mounts-allow allows other folders",
                             kind, name, source, call->home);
        }
        mounts->items[i].source = source;
    }
    return 0;
}

static const struct run_mounts *mounts_at(const struct call *call, size_t i) {
    return i < call->n_plans ? &call->plans[i].target->mounts
                             : &call->spec.services[i - call->n_plans].mounts;
}

/* What may write to a folder may replace what is in it by a symbolic link, which leads anything
 * that uses a path below the folder afterwards to where no mount may. */
static int check_reach(const struct call *call, const char *path, struct error *err) {
    for (size_t i = 0; path != NULL && i < call->n_plans + call->spec.n_services; i++) {
        const struct run_mounts *mounts = mounts_at(call, i);
        for (size_t k = 0; k < mounts->n; k++) {
            const char *source = mounts->items[k].source;
            if (mounts->items[k].writable != 0 && is_below(path, source) &&
                strcmp(path, source) != 0) {
                return error_set(err, -EINVAL,
                                 "mounts: %s is writable, and %s is below it, where a container "
                                 "could put a symbolic link: mount or use another folder",
                                 source, path);
            }
        }
    }
    return 0;
}

/* The sources of all mounts, the datasets, and the record. */
static int check_reaches(const struct call *call, struct error *err) {
    char *out CLEANUP_FREE = run_output_resolve(NULL, call->session.out_dir, err);
    char *record CLEANUP_FREE = out != NULL ? file_path_join(out, "samples.jsonl") : NULL;
    int r = out != NULL ? check_reach(call, record, err) : -ENOENT;
    for (size_t i = 0; r == 0 && i < call->n_plans; i++) {
        r = check_reach(call, call->plans[i].dataset, err);
    }
    for (size_t i = 0; i < call->n_plans + call->spec.n_services; i++) {
        const struct run_mounts *mounts = mounts_at(call, i);
        for (size_t k = 0; r == 0 && k < mounts->n; k++) {
            r = check_reach(call, mounts->items[k].source, err);
        }
    }
    return r;
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

/* Fails before anything runs if the engine or the image is missing. Removes what killed runs have
 * left there. */
static int find_digest(struct call *call, struct run_plan *plan, struct error *err) {
    struct run_engine engine = {0};
    char *digest CLEANUP_FREE = NULL;
    int r = run_engine_open(&engine, call->session.config->settings, err);
    r = r < 0 ? r : run_engine_image(&engine, plan->image, &digest, err);
    if (r == 0) {
        run_engine_clear(&engine);
    }
    if (r == 0 && digest != NULL) {
        plan->digest = arena_copy(&call->arena, digest, strlen(digest) + 1);
    }
    run_engine_close(&engine);
    return r;
}

/* A command cannot have what only containers have. */
static int check_command(const struct call *call, const struct run_target *target,
                         struct error *err) {
    bool has_image = false;
    for (size_t i = 0; i < call->spec.n_services; i++) {
        has_image = has_image || call->spec.services[i].image != NULL;
    }
    return target->mounts.n == 0 && !has_image
               ? 0
               : error_set(err, -EINVAL, "target %s: %s need an image for the application, too",
                           target->name, has_image ? "services with an image" : "mounts");
}

/* Finds the image and the command of a target. The application of the file's name and version is
 * run if nothing else is given. */
static int find_program(struct call *call, struct run_plan *plan, struct error *err) {
    const struct run_target *target = plan->target;
    bool given = call->command != NULL;
    struct buf words CLEANUP_BUF = {0};
    plan->image = call->image[0] != '\0' ? call->image : given ? NULL : target->image;
    plan->dir = given ? NULL : call->home;
    add_words(&words, given ? call->command : target->command);
    if (words.len == 0 && plan->image == NULL) {
        plan->image = call->spec.image;
    }
    if (words.len == 0 && plan->image == NULL) {
        return call->spec.has_section
                   ? error_set(err, -EINVAL,
                               "target %s: nothing to run: give --image, a command after --, or "
                               "command, image, or name and version in the file",
                               target->name)
                   : error_set(err, -EINVAL,
                               "nothing to run: %s has no section profiling; give --image or a "
                               "command after --",
                               call->spec.file);
    }
    add_words(&words, target->args);
    plan->argv = run_args_list(&words, &call->arena);
    return plan->image != NULL ? 0 : check_command(call, target, err);
}

/* Fills the plan of a target. */
static int make_plan(struct call *call, struct run_plan *plan, struct error *err) {
    const struct run_target *target = plan->target;
    plan->name = target->name;
    int r = find_program(call, plan, err);
    r = r < 0 ? r : resolve_mounts(call, "target", target->name, &target->mounts, err);
    if (r < 0) {
        return r;
    }
    if (target->dataset != NULL) {
        plan->dataset = resolve(call, target->dataset, err);
        if (plan->dataset == NULL) {
            return -ENOENT;
        }
    }
    plan->env = make_env(call, plan);
    if (plan->image == NULL) {
        return 0;
    }
    r = find_digest(call, plan, err);
    return r < 0 && plan->image == call->spec.image
               ? error_set(err, r, "%s (the image is that of name and version in %s)", err->text,
                           call->spec.file)
               : r;
}

/* Selects the targets of the command line, or all. */
static int choose_targets(struct call *call, struct error *err) {
    const struct run_spec *spec = &call->spec;
    const char *const *names = settings_list(call->flags.settings, "target");
    size_t n = 0;
    while (names[n] != NULL) {
        n++;
    }
    call->n_plans = n > 0 ? n : spec->n_targets;
    call->plans = arena_take(&call->arena, call->n_plans * sizeof(*call->plans));
    for (size_t i = 0; i < call->n_plans; i++) {
        const struct run_target *target =
            n > 0 ? run_spec_target(spec, names[i]) : &spec->targets[i];
        if (target == NULL) {
            return error_set(err, -EINVAL, "--target: there is no target \"%s\" in %s", names[i],
                             spec->file != NULL ? spec->file : "this run");
        }
        call->plans[i] = (struct run_plan){.target = target};
    }
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
static bool next_combination(const struct call *call, size_t *at) {
    for (size_t i = call->n_sweeps; i > 0; i--) {
        if (++at[i - 1] < call->sweeps[i - 1].n_values) {
            return true;
        }
        at[i - 1] = 0;
    }
    return false;
}

static void profile(struct call *call, struct run_plan *plan) {
    size_t n = call->n_sweeps;
    size_t *at CLEANUP_FREE = mem_zalloc(n, sizeof(*at));
    struct run_knob *knobs CLEANUP_FREE = mem_zalloc(n, sizeof(*knobs));
    const char *name = plan->name;
    do {
        for (size_t i = 0; i < n; i++) {
            knobs[i] = (struct run_knob){call->sweeps[i].name, call->sweeps[i].values[at[i]]};
        }
        plan->knobs = knobs;
        plan->n_knobs = n;
        plan->name = n > 0 ? sweep_name(call, name, knobs, n) : name;
        run_target_profile(&call->session, plan, &call->tally);
    } while (next_combination(call, at) && !run_session_is_over(&call->session));
}

static void write_finished(struct run_session *session) {
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
    run_record_end(&session->record);
}

static int run_plans(struct call *call, struct error *err) {
    struct run_session *session = &call->session;
    char *path CLEANUP_FREE = file_path_join(session->out_dir, "samples.jsonl");
    int r = run_record_open(&session->record, path, err);
    if (r == 0) {
        run_report_remove(session->out_dir);
        run_environment_write(session, call->plans[0].image, call->plans[0].digest);
        r = run_services_start(session, call->home, err);
    }
    for (size_t i = 0; r == 0 && i < call->n_plans && !run_session_is_over(session); i++) {
        profile(call, &call->plans[i]);
    }
    run_services_stop(session);
    run_progress_clear(&session->progress);
    if (session->record.began_ns != 0) {
        write_finished(session);
    }
    return r == 0 && session->record.error.text[0] != '\0'
               ? error_set(err, -EIO, "%s", session->record.error.text)
               : r;
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
    const char *file = call->file;
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
    call->home = dirname(arena_copy(&call->arena, file, strlen(file) + 1));
    return 0;
}

/* Writes the reports, which are all made from the record. */
static int report(struct call *call, struct error *err) {
    struct profile *profile CLEANUP_PROFILE = NULL;
    if (run_report_write(call->session.out_dir, &profile, err) != 0) {
        return complain(EXIT_ENVIRONMENT, err->text);
    }
    run_report_explain(profile, stderr);
    printf("%u run%s, %u failed", call->tally.n_runs, call->tally.n_runs == 1 ? "" : "s",
           call->tally.n_failed);
    if (profile->n_gates > 0) {
        printf("; %zu of %zu gates failed", profile->n_failed_gates, profile->n_gates);
    }
    printf(": see %s/report.html\n", call->session.out_dir);
    return call->session.n_interrupts > 0 ? EXIT_INTERRUPTED
           : call->tally.misused          ? EXIT_USAGE
           : call->tally.n_failed > 0     ? EXIT_APPLICATION
                                          : run_report_exit_code(profile);
}

static int run_call(struct call *call, struct error *err) {
    if (choose_targets(call, err) < 0) {
        return complain(EXIT_USAGE, err->text);
    }
    struct run_session *session = &call->session;
    session->spec = &call->spec;
    const char *out_dir = settings_string(call->flags.settings, "out");
    session->out_dir = out_dir[0] != '\0'           ? out_dir
                       : call->spec.out_dir != NULL ? call->spec.out_dir
                                                    : default_out_dir(call);
    bool force = settings_bool(call->flags.settings, "force");
    if (!force && run_output_check(session->out_dir, err) < 0) {
        return complain(EXIT_USAGE, err->text);
    }
    if (run_session_init(session, err) < 0) {
        return complain(EXIT_ENVIRONMENT, err->text);
    }
    int r = 0;
    read_mounts_allow(call);
    for (size_t i = 0; r == 0 && i < call->n_plans; i++) {
        r = make_plan(call, &call->plans[i], err);
    }
    for (size_t i = 0; r == 0 && i < call->spec.n_services; i++) {
        const struct run_service *service = &call->spec.services[i];
        r = resolve_mounts(call, "service", service->name, &service->mounts, err);
    }
    r = r < 0 ? r : run_output_make(session->out_dir, err);
    r = r < 0 ? r : check_reaches(call, err);
    if (r < 0) {
        return complain(r == -EINVAL ? EXIT_USAGE : EXIT_ENVIRONMENT, err->text);
    }
    if (run_plans(call, err) < 0) {
        return complain(session->n_interrupts > 0 ? EXIT_INTERRUPTED : EXIT_ENVIRONMENT, err->text);
    }
    return report(call, err);
}

int run_main(const struct collector *const *collectors, int argc, char **argv) {
    struct call call = {.session = {.collectors = collectors, .signals = {.fd = -1}}};
    struct error err;
    int code = EXIT_USAGE;
    if (flags_ask_for_help(argc, argv)) {
        print_help();
        return EXIT_SUCCESS;
    }
    log_configure(LOG_LEVEL_WARN, LOG_FORMAT_LOGFMT);
    if (read_call(&call, argc, argv) && load(&call) == 0) {
        code = run_call(&call, &err);
    }
    if (!run_session_finish(&call.session)) {
        fflush(stdout);
        _exit(code);
    }
    run_spec_finish(&call.spec);
    flags_finish(&call.flags);
    arena_finish(&call.arena);
    return code;
}
