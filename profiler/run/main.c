#include "profiler/run/main.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "exporter/core/clock.h"
#include "exporter/core/log.h"
#include "profiler/report/report.h"
#include "profiler/run/args.h"
#include "profiler/run/engine.h"
#include "profiler/run/environment.h"
#include "profiler/run/options.h"
#include "profiler/run/output.h"
#include "profiler/run/service.h"
#include "profiler/run/target.h"

enum {
    EXIT_USAGE = 2,
    EXIT_APPLICATION = 3,
    EXIT_ENVIRONMENT = 4,
    EXIT_INTERRUPTED = 130,
};

/* Everything of one call. */
struct call {
    struct arena arena;
    struct run_options options;
    struct run_spec spec;
    struct run_session session;
    const char *home; /* the folder of the file; NULL: here */
    struct run_tally tally;
};

static int complain(int code, const char *text) {
    fprintf(stderr, "waap run: %s\n", text);
    return code;
}

/* ---- what is to be run ---- */

static const char *copy_text(struct arena *arena, const struct buf *text) {
    return text->failed ? NULL : arena_copy(arena, buf_str(text), text->len + 1);
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

/* The application sees its socket and dataset under these names, wherever they are. */
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

/* Also finds out, before anything runs, whether there are engine and image at all. */
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
    const struct run_options *options = &call->options;
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
                         "behind --",
                         call->spec.file);
    }
    if (words.len == 0 && plan.image == NULL) {
        return error_set(err, -EINVAL,
                         "target %s: nothing to run: give --image, a command behind --, or command "
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
    if (plan.argv == NULL || plan.env == NULL) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    int r = plan.image != NULL ? find_digest(call, &plan, err) : 0;
    *ret_plan = plan;
    return r;
}

/* Those of the command line, or all. */
static int choose_targets(struct call *call, const struct run_target ***ret_targets, size_t *ret_n,
                          struct error *err) {
    const struct run_options *options = &call->options;
    const struct run_spec *spec = &call->spec;
    size_t n = options->n_targets > 0 ? options->n_targets : spec->n_targets;
    const struct run_target **targets = arena_take(&call->arena, n * sizeof(*targets));
    if (targets == NULL) {
        return error_set(err, -ENOMEM, "out of memory");
    }
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

/* ---- running it ---- */

/* "cpu.res=480,mode=fast". */
static const char *sweep_name(struct call *call, const char *target, const struct run_knob *knobs,
                              size_t n_knobs) {
    struct buf name CLEANUP_BUF = {0};
    buf_printf(&name, "%s.", target);
    for (size_t i = 0; i < n_knobs; i++) {
        buf_printf(&name, "%s%s=", i > 0 ? "," : "", knobs[i].name);
        const struct param_value *value = &knobs[i].value;
        if (value->form == PARAM_TEXT) {
            buf_add_str(&name, value->text);
        } else {
            param_value_format(value, &name);
        }
    }
    const char *copy = copy_text(&call->arena, &name);
    return copy != NULL ? copy : target;
}

/* Counts up over all combinations of values; false after the last. */
static bool next_combination(const struct run_options *options, size_t *at) {
    for (size_t i = options->n_sweeps; i > 0; i--) {
        if (++at[i - 1] < options->sweeps[i - 1].n_values) {
            return true;
        }
        at[i - 1] = 0;
    }
    return false;
}

static void profile(struct call *call, struct run_plan *plan) {
    const struct run_options *options = &call->options;
    size_t n = options->n_sweeps;
    size_t *at CLEANUP_FREE = calloc(n + 1, sizeof(*at));
    struct run_knob *knobs CLEANUP_FREE = calloc(n + 1, sizeof(*knobs));
    const char *name = plan->name;
    do {
        for (size_t i = 0; at != NULL && knobs != NULL && i < n; i++) {
            knobs[i] = (struct run_knob){options->sweeps[i].name, options->sweeps[i].values[at[i]]};
        }
        plan->knobs = knobs;
        plan->n_knobs = knobs != NULL ? n : 0;
        plan->name = n > 0 ? sweep_name(call, name, knobs, n) : name;
        run_target_profile(&call->session, plan, &call->tally);
    } while (at != NULL && next_combination(options, at) && !run_session_is_over(&call->session));
}

static void write_finished(struct run_session *session) {
    struct error err;
    session->record.target = NULL;
    run_record_begin(&session->record, "finished");
    run_record_number(&session->record, "t",
                      run_record_seconds(&session->record, clock_monotonic_ns()));
    run_record_number(&session->record, "at", clock_wall_seconds());
    run_record_bool(&session->record, "interrupted", session->n_interrupts > 0);
    if (session->record.left_out) {
        run_record_bool(&session->record, "left_out", true);
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

/* ---- the call ---- */

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

/* Then a -- may have been forgotten. */
static bool is_program(const char *file) {
    struct stat st;
    return stat(file, &st) == 0 && S_ISREG(st.st_mode) && access(file, X_OK) == 0;
}

static int load(struct call *call) {
    struct problems problems CLEANUP_PROBLEMS = {0};
    const char *file = call->options.file;
    if (file == NULL) {
        return run_spec_init(&call->spec);
    }
    if (run_spec_load(file, &call->spec, &problems) < 0) {
        problems_print(&problems, stderr);
        if (is_program(file)) {
            fprintf(stderr, "waap run: to run %s itself: waap run -- %s\n", file, file);
        }
        return -EINVAL;
    }
    char *folder CLEANUP_FREE = run_output_folder(file);
    call->home = folder != NULL ? arena_copy(&call->arena, folder, strlen(folder) + 1) : NULL;
    return 0;
}

/* Everything else is made from the record, which is complete by then. */
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
    for (size_t i = 0; plans != NULL && i < n; i++) {
        int r = make_plan(call, targets[i], &plans[i], err);
        if (r < 0) {
            return complain(r == -EINVAL ? EXIT_USAGE : EXIT_ENVIRONMENT, err->text);
        }
    }
    if (plans == NULL || run_plans(call, plans, n, err) < 0) {
        return complain(session->n_interrupts > 0 ? EXIT_INTERRUPTED : EXIT_ENVIRONMENT, err->text);
    }
    return report(call, err);
}

int run_main(const struct collector *const *collectors, int argc, char **argv) {
    struct call call = {.session = {.collectors = collectors, .signals = {.fd = -1}}};
    struct error err;
    int code = EXIT_USAGE;
    log_configure(LOG_LEVEL_WARN, LOG_FORMAT_LOGFMT);
    if (run_options_read(argc, argv, &call.arena, &call.options, &err) < 0) {
        fprintf(stderr, "waap run: %s\n\n%s", err.text, run_options_help);
    } else if (call.options.help) {
        fputs(run_options_help, stdout);
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
