#include "profiler/run/session.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "exporter/core/clock.h"
#include "profiler/analysis/report_text.h"
#include "profiler/run/output.h"

enum {
    KILL_MS = 5000,
    CLEAR_MS = 2000,
    CLEAR_STEP_MS = 5,
    APPLY_MS = 10000,
    DECLARE_MS = 1000,
    LAST_TURNS = 20
};

#define COOL_DEGREES 1.0

/* How one run ended. */
struct outcome {
    bool timed_out;
    const char *stopped_by;
    bool misused;       /* --knob names an unknown knob or an invalid value */
    struct error error; /* why it could not be started; "": it was */
};

static int64_t after_ms(int64_t ms) {
    return clock_monotonic_ns() + ms * CLOCK_NS_PER_MS;
}

static bool app_ended(struct run_session *session) {
    return session->app->ended;
}

/* Whether it ended, or the user has interrupted again since stopping began. */
static bool ended_or_interrupted_again(struct run_session *session) {
    return session->app->ended || session->n_interrupts > session->n_handled;
}

static bool app_ended_or_interrupted(struct run_session *session) {
    return session->app->ended || run_session_interrupted(session);
}

/* ---- lines of the record ---- */

static void write_target(struct run_session *session, const struct run_plan *plan) {
    struct run_record *record = &session->record;
    const struct run_target *target = plan->target;
    run_record_begin(record, "target");
    run_record_text(record, "target", plan->name);
    text_put_list(&record->line, "args", target->args);
    text_put_list(&record->line, "command", plan->argv);
    run_record_text(record, "image", plan->image);
    run_record_text(record, "image_digest", plan->digest);
    run_record_number(record, "timeout", (double)target->timeout_ms / 1e3);
    run_record_number(record, "repeats", (double)target->repeats);
    run_record_number(record, "warmup", (double)target->warmup);
    if (plan->n_knobs > 0) {
        run_record_text(record, "of", target->name);
        json_open(&record->line, "knobs", '{');
        for (size_t i = 0; i < plan->n_knobs; i++) {
            struct buf value CLEANUP_BUF = {0};
            knob_value_format(&plan->knobs[i].value, &value);
            json_put(&record->line, plan->knobs[i].name, "%s", buf_str(&value));
        }
        json_close(&record->line, '}');
    }
    run_record_end(record);
}

static void write_end(struct run_session *session, const struct outcome *outcome,
                      double overhead_seconds, const char *output) {
    struct run_record *record = &session->record;
    const struct run_app *app = session->app;
    bool started = outcome->error.text[0] == '\0';
    struct run_usage usage;
    run_record_begin(record, "end");
    run_record_moment(record, started ? app->ended_ns : clock_monotonic_ns());
    if (started) {
        session->app->kind->usage(session->app, &usage);
        run_record_number(record, "wall_seconds", (double)(app->ended_ns - app->started_ns) / 1e9);
        run_record_number(record, "exit", app->exit_code);
        run_record_number(record, "signal", app->exit_signal);
        json_put_bool(&record->line, "timed_out", outcome->timed_out);
        run_record_text(record, "stopped_by", outcome->stopped_by);
        run_record_number(record, "user_seconds", usage.user_seconds);
        run_record_number(record, "system_seconds", usage.system_seconds);
        run_record_number(record, "peak_memory_bytes", usage.memory_peak_bytes);
        run_record_text(record, "peak_memory_source", app->peak_source);
        run_record_number(record, "frames", run_plugin_frames(session->plugin));
    } else {
        run_record_text(record, "error", outcome->error.text);
    }
    run_record_number(record, "overhead_seconds", overhead_seconds);
    run_record_text(record, "output", output);
    run_record_end(record);
}

/* ---- stopping ---- */

/* SIGINT, SIGTERM, SIGKILL, with the grace period between. A second interrupt skips the waiting. */
static void stop_app(struct run_session *session, struct outcome *outcome) {
    static const struct {
        int signal;
        const char *name;
    } steps[] = {{SIGINT, "SIGINT"}, {SIGTERM, "SIGTERM"}};
    struct run_app *app = session->app;
    bool by_user = session->n_interrupts > 0;
    session->n_handled = session->n_interrupts;
    run_session_phase(session, "stop");
    for (size_t i = 0; i < ARRAY_LEN(steps) && !ended_or_interrupted_again(session); i++) {
        app->kind->signal(app, steps[i].signal);
        outcome->stopped_by = by_user ? "user" : steps[i].name;
        run_session_wait(session, after_ms(session->spec->grace_ms), ended_or_interrupted_again);
    }
    if (!app->ended) {
        outcome->stopped_by = by_user ? "user" : "SIGKILL";
        app->kind->kill(app);
        run_session_wait(session, after_ms(KILL_MS), app_ended);
    }
    if (!app->ended) { /* hangs in a driver; the kernel will kill it when that returns */
        app->ended = true;
        app->ended_ns = clock_monotonic_ns();
        app->exit_signal = SIGKILL;
    }
}

/* Kills the processes that have outlived the application; returns how many there were. */
static size_t clear_app(struct run_session *session) {
    int64_t until_ns = after_ms(CLEAR_MS);
    session->sampling = false;
    size_t n_left = session->app->kind->kill(session->app), n = n_left;
    while (n > 0 && clock_monotonic_ns() < until_ns) {
        run_session_wait(session, after_ms(CLEAR_STEP_MS), NULL);
        n = session->app->kind->kill(session->app);
    }
    return n_left;
}

/* Warns once about a program that went into the background: its run ends with its first process. */
static void warn_about_leftovers(struct run_session *session, const struct run_plan *plan,
                                 const struct outcome *outcome, size_t n_left) {
    bool by_itself = strcmp(outcome->stopped_by, "itself") == 0;
    if (n_left == 0 || !by_itself || session->record.run != 1) {
        return;
    }
    run_progress_clear(&session->progress);
    fprintf(stderr, "waap run: %s: killed %zu process%s that outlived its first one\n", plan->name,
            n_left, n_left > 1 ? "es" : "");
}

/* Reads the last messages of the plugin, which may still be in the socket. */
static void drain_plugin(struct run_session *session) {
    session->sampling = false;
    for (int i = 0; i < LAST_TURNS; i++) {
        loop_turn(session->loop, 0);
    }
}

/* ---- one run ---- */

static bool exited_badly(const struct run_app *app) {
    return app->exit_code != 0 || app->exit_signal != 0;
}

/* If the plugin has no knobs or not these, the next run would fail too. */
static void fail_knobs(struct run_session *session, const struct run_plan *plan,
                       struct outcome *outcome) {
    const struct run_app *app = session->app;
    bool ended = app->ended, crashed = ended && exited_badly(app);
    struct buf why CLEANUP_BUF = {0};
    enum run_knobs state = run_plugin_knobs(session->plugin, plan->knobs, plan->n_knobs, &why);
    outcome->misused = state == RUN_KNOBS_OTHERS;
    session->given_up = outcome->misused || (state == RUN_KNOBS_NONE && !crashed);
    if (outcome->misused) {
        error_set(&outcome->error, -EINVAL, "--knob: %s", buf_str(&why));
    } else {
        error_set(&outcome->error, ended ? -ECHILD : -ENOENT, "knobs were not applied %s: %s",
                  ended ? "before it ended" : "in time", buf_str(&why));
    }
}

/* Turns the knobs as soon as they are declared; once applied, the measured phase begins. */
static void apply_knobs(struct run_session *session, const struct run_plan *plan,
                        struct outcome *outcome) {
    int64_t limit_ns = after_ms(APPLY_MS);
    bool others = false;
    for (;;) {
        struct buf why CLEANUP_BUF = {0};
        struct error err;
        int n = run_plugin_turn(session->plugin, plan->knobs, plan->n_knobs, &err);
        if (n < 0) {
            error_set(&outcome->error, n, "--knob: %s", err.text);
            outcome->misused = session->given_up = true;
            return;
        }
        if ((size_t)n == plan->n_knobs || run_session_interrupted(session)) {
            return;
        }
        if (session->app->ended || clock_monotonic_ns() > limit_ns) {
            fail_knobs(session, plan, outcome);
            return;
        }
        /* A plugin that has declared some knobs will declare all of them soon. */
        if (!others && run_plugin_knobs(session->plugin, plan->knobs, plan->n_knobs, &why) ==
                           RUN_KNOBS_OTHERS) {
            others = true;
            limit_ns = after_ms(DECLARE_MS);
        }
        run_session_wait(session, after_ms(2), app_ended);
    }
}

static void await_end(struct run_session *session, const struct run_plan *plan,
                      struct outcome *outcome) {
    const struct run_spec *spec = session->spec;
    int64_t limit_ms = plan->target->timeout_ms;
    bool limited = limit_ms > 0 && limit_ms < spec->max_runtime_ms;
    limit_ms = limited ? limit_ms : spec->max_runtime_ms;
    run_session_wait(session, session->app->started_ns + limit_ms * CLOCK_NS_PER_MS,
                     app_ended_or_interrupted);
    outcome->stopped_by = "itself";
    if (!session->app->ended) {
        outcome->timed_out = session->n_interrupts == 0;
        run_session_sample(session); /* the last sample of the measured phase */
        stop_app(session, outcome);
    }
}

static void follow(struct run_session *session, const struct run_plan *plan, bool warmup,
                   struct outcome *outcome) {
    session->live_ns = clock_monotonic_ns();
    session->live.cpu_seconds = 0;
    run_session_phase(session, warmup || plan->n_knobs > 0 ? "warmup" : "run");
    run_session_sample(session);
    if (plan->n_knobs > 0) {
        apply_knobs(session, plan, outcome);
        if (!warmup && outcome->error.text[0] == '\0') {
            run_session_phase(session, "run");
            run_session_sample(session);
        }
    }
    if (outcome->error.text[0] != '\0') {
        stop_app(session, outcome);
    } else {
        await_end(session, plan, outcome);
    }
    drain_plugin(session);
    run_session_sample(session);
    warn_about_leftovers(session, plan, outcome, clear_app(session));
}

static double own_seconds(void) {
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

static int launch(struct run_session *session, const struct run_plan *plan, int output_fd,
                  struct error *err) {
    int r = run_plugin_create(session->loop, session->config, session->collectors, &session->plugin,
                              err);
    if (r < 0) {
        return r;
    }
    run_session_probe(session, session->spec->interval_ms);
    session->app = run_app_create(session, plan, output_fd);
    return session->app->kind->start(session->app, err);
}

static void run_once(struct run_session *session, const struct run_plan *plan, bool warmup,
                     struct run_tally *tally) {
    struct outcome outcome = {.stopped_by = "itself"};
    struct buf name CLEANUP_BUF = {0};
    struct buf output CLEANUP_BUF = {0};
    run_output_add_name(&name, plan->name);
    buf_printf(&name, "-%u", session->record.run);
    buf_printf(&output, "output/%s.log", buf_str(&name));
    double overhead = own_seconds();
    int output_fd CLEANUP_CLOSE = run_output_open(session->out_dir, buf_str(&name), &outcome.error);
    if (output_fd >= 0 && launch(session, plan, output_fd, &outcome.error) == 0) {
        outcome.error.text[0] = '\0';
        follow(session, plan, warmup, &outcome);
    }
    bool good = outcome.error.text[0] == '\0';
    if (session->app != NULL && session->plugin != NULL) {
        write_end(session, &outcome, own_seconds() - overhead, buf_str(&output));
        good = good && (strcmp(outcome.stopped_by, "itself") != 0 || !exited_badly(session->app));
    }
    if (outcome.error.text[0] != '\0') {
        run_progress_clear(&session->progress);
        fprintf(stderr, "waap run: %s: %s\n", plan->name, outcome.error.text);
    }
    tally->n_runs++;
    tally->n_failed += good ? 0 : 1;
    tally->misused = tally->misused || outcome.misused;
    if (session->app != NULL) {
        session->app->kind->destroy(session->app);
        session->app = NULL;
    }
    run_plugin_destroy(TAKE(session->plugin));
    session->live = RUN_LIVE_NONE;
}

static void run_phase(struct run_session *session, const char *phase, int64_t ms) {
    if (ms > 0 && !run_session_is_over(session)) {
        run_session_phase(session, phase);
        run_session_sample(session);
        run_session_wait(session, after_ms(ms - session->spec->interval_ms),
                         run_session_interrupted);
        run_session_sample(session);
    }
}

static bool is_cool(struct run_session *session) {
    return session->n_interrupts > 0 ||
           !(session->live.celsius > session->start_celsius + COOL_DEGREES);
}

/* Waits until it is as cool as before the first run, so that heat does not slow the run down. */
static void await_cool(struct run_session *session) {
    if (!is_cool(session)) {
        run_session_phase(session, "cooldown");
        session->sampling = true;
        session->next_ns = clock_monotonic_ns();
        run_session_wait(session, after_ms(session->spec->cooldown_max_ms), is_cool);
        run_session_sample(session); /* so that no sample is pending when another line is written */
    }
}

void run_target_profile(struct run_session *session, const struct run_plan *plan,
                        struct run_tally *tally) {
    const struct run_target *target = plan->target;
    session->record.target = plan->name;
    session->record.run = 1;
    session->progress.target = plan->name;
    session->progress.n_runs = (unsigned)(target->warmup + target->repeats);
    session->progress.run = 1;
    write_target(session, plan);
    await_cool(session);
    run_phase(session, "baseline", session->spec->baseline_ms);
    if (tally->n_runs == 0) {
        session->start_celsius = session->live.celsius;
    }
    for (unsigned i = 0; i < session->progress.n_runs; i++) {
        await_cool(session);
        if (run_session_is_over(session)) {
            break;
        }
        session->record.run = i + 1;
        session->progress.run = i + 1;
        run_once(session, plan, i < target->warmup, tally);
        run_phase(session, "cooldown", session->spec->cooldown_ms);
    }
    session->sampling = false;
}
