#include "placement/control/control.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "exporter/core/log.h"
#include "exporter/core/memory.h"
#include "exporter/http/access.h"
#include "exporter/metrics/labels.h"
#include "exporter/metrics/metric.h"
#include "exporter/metrics/snapshot.h"
#include "exporter/settings/flags.h"
#include "placement/control/loop.h"
#include "placement/control/waggle.h"
#include "placement/service/service.h"

enum { EXIT_USAGE = 2 };

#define DEFAULT_ADDRESS "127.0.0.1:7003"

static const struct option options[] = {
    {"check", OPTION_BOOL, .help = "Only say what is wrong with the configuration"},
    {"dry-run", OPTION_BOOL, .help = "Say what would be turned, and turn nothing"},
    {"once", OPTION_BOOL,
     .help = "One round of every loop, then end: 0 if all had a measure and a knob, else 1"},
    {"pause-file", OPTION_STRING, .help = "While this file exists, all knobs are left alone"},
    {"state-file", OPTION_STRING, .help = "What loops remember over a restart"},
    {0},
};

/* One loop and its thread. The shown status is copied after each round. */
struct runner {
    struct control *control;
    struct control_loop loop;
    struct labels *labels; /* of its samples, which borrow them */
    struct labels *reasons[N_CONTROL_REASONS];
    struct service_task task;
    struct control_status shown;
};

struct control {
    struct service service;
    struct control_config config;
    struct runner *runners;
    struct control_memory *memories; /* of the runners */
    size_t n_runners;
    struct waggle *waggle; /* NULL: no messages */
    atomic_bool is_paused; /* by a request */
    bool save_failed;
};

/* ---- pausing ---- */

static bool is_paused(const struct control *control) {
    const char *file = settings_string(control->service.config->settings, "pause-file");
    return control->is_paused || (file[0] != '\0' && access(file, F_OK) == 0);
}

static struct control *control_of(const struct http_request *request) {
    struct service *service = request->context;
    return CONTAINER_OF(service, struct control, service);
}

static void set_paused(struct http_request *request, bool paused) {
    struct control *control = control_of(request);
    control->is_paused = paused;
    log_info("control: %s by request", paused ? "paused" : "resumed");
    http_reply_text(request, MHD_HTTP_OK, "%s",
                    paused               ? "paused"
                    : is_paused(control) ? "still paused by --pause-file"
                                         : "resumed");
}

static void handle_pause(struct http_request *request) {
    set_paused(request, true);
}

static void handle_resume(struct http_request *request) {
    set_paused(request, false);
}

/* ---- metrics ---- */

static const struct metric_desc desc_actions = {
    "waap_control_actions_total", "Times the loop turned its knob, by reason: above, below, safe.",
    METRIC_COUNTER, .labels = "loop, reason"};
static const struct metric_desc desc_holds = {
    "waap_control_holds_total", "Rounds in which the loop left its knob alone, by reason.",
    METRIC_COUNTER, .labels = "loop, reason"};
static const struct metric_desc desc_paused = {
    "waap_control_paused", "1 while all loops are told to leave their knobs alone.", METRIC_GAUGE};

static void show(struct snapshot *out, const struct metric_desc *desc, const struct labels *labels,
                 double value) {
    if (!isnan(value)) {
        snapshot_add(out, desc, labels, value);
    }
}

/* One metric of a loop, absent if it is NAN. */
#define SHOW(name, type, value, help, ...)                                                         \
    ({                                                                                             \
        static const struct metric_desc desc_ = {"waap_control_" name, help, METRIC_##type,        \
                                                 .labels = "loop", ##__VA_ARGS__};                 \
        show(out, &desc_, runner->labels, value);                                                  \
    })

static void show_status(struct snapshot *out, const struct runner *runner) {
    const struct control_status *status = &runner->shown;
    const struct control_decision *last = &status->last;
    bool holds = !control_reason_is_action(last->reason) && last->reason != CONTROL_IN_BAND;
    SHOW("error", GAUGE, last->error,
         "How far the measure is from its target, signed; 0 inside the band, absent without a "
         "measure.");
    SHOW("failures", GAUGE, status->state.failures, "Rounds in a row without a measure.");
    SHOW("hold", GAUGE, holds,
         "1 while the loop does nothing although its measure is missing or off target.");
    SHOW("knob", GAUGE, status->state.position,
         "Where the knob is: its value, or from 0 the place of its value among the levels.");
    SHOW("last_run_timestamp_seconds", GAUGE, status->run_at,
         "When the loop last ran, in seconds since 1970.", .unit = "seconds");
    SHOW("measure", GAUGE, status->measure,
         "What the loop's query answered; absent without an answer.");
    SHOW("oscillating", GAUGE, control_law_oscillates(&status->state),
         "1 while the dead band is widened because the loop went back and forth.");
    SHOW("run_duration_seconds", GAUGE, status->run_seconds, "How long the last round took.",
         .unit = "seconds");
    SHOW("safe", GAUGE, status->state.is_safe,
         "1 while the loop stays at its safe value because there is no measurement.");
    SHOW("saturated", GAUGE, last->is_saturated,
         "1 while the knob is at a bound and the measure wants it further.");
}

static void add_metrics(struct snapshot *out, const struct runner *runner) {
    const struct control_status *status = &runner->shown;
    const struct control_rule *rule = &runner->loop.loop->rule;
    for (size_t i = 0; i < N_CONTROL_REASONS; i++) {
        bool is_action = control_reason_is_action((enum control_reason)i);
        snapshot_add(out, is_action ? &desc_actions : &desc_holds, runner->reasons[i],
                     (double)status->actions[i]);
    }
    SHOW("target_high", GAUGE, rule->high, "Upper end of where the measure is to be.");
    SHOW("target_low", GAUGE, rule->low, "Lower end of where the measure is to be.");
    SHOW("unconfirmed_total", COUNTER, (double)status->unconfirmed,
         "Values that the plugin did not confirm in time.");
    if (status->has_run) {
        show_status(out, runner);
    }
}

static void handle_metrics(struct http_request *request) {
    struct control *control = control_of(request);
    struct snapshot snapshot CLEANUP_SNAPSHOT = {0};
    snapshot_add(&snapshot, &desc_paused, NULL, is_paused(control));
    for (size_t i = 0; i < control->n_runners; i++) {
        add_metrics(&snapshot, &control->runners[i]);
    }
    service_reply_metrics(request, &snapshot);
}

static const struct http_route routes[] = {
    {NULL, "/metrics", HTTP_GET | HTTP_HEAD, .handle = handle_metrics},
    {"/-/healthy", "/-/healthy", HTTP_GET | HTTP_HEAD, .health = true, .handle = http_health_alive},
    {"/-/pause", "/-/pause", HTTP_POST | HTTP_PUT, .may_write = http_access_may_write,
     .handle = handle_pause},
    {"/-/ready", "/-/ready", HTTP_GET | HTTP_HEAD, .health = true, .handle = http_health_ready},
    {"/-/resume", "/-/resume", HTTP_POST | HTTP_PUT, .may_write = http_access_may_write,
     .handle = handle_resume},
};

/* ---- remembering ---- */

static void load_memories(struct control *control) {
    const char *path = settings_string(control->service.config->settings, "state-file");
    struct error err;
    if (path[0] == '\0') {
        return;
    }
    if (control_memory_load(path, control->memories, control->n_runners, &err) < 0) {
        log_warn("control: saved state is not used: %s", err.text);
    }
}

/* Written only after a change: flash wears out. */
static void save_memory(struct control *control, const struct runner *runner) {
    const char *path = settings_string(control->service.config->settings, "state-file");
    struct control_memory *known = &control->memories[runner - control->runners];
    if (path[0] == '\0' || isnan(runner->loop.state.position) || runner->loop.is_dry) {
        return;
    }
    struct control_memory memory = control_memory_of(known->name, &runner->loop.state);
    double moved = memory.changed_at - known->changed_at;
    bool is_same = known->is_set && moved > -1 && moved < 1 && known->position == memory.position &&
                   known->widening == memory.widening;
    struct error err;
    if (is_same && !control->save_failed) {
        return;
    }
    *known = memory;
    bool failed = control_memory_save(path, control->memories, control->n_runners, &err) < 0;
    if (failed && !control->save_failed) {
        log_warn("control: %s", err.text);
    }
    control->save_failed = failed;
}

/* ---- running ---- */

static void round_run(struct service_task *task) {
    struct runner *runner = CONTAINER_OF(task, struct runner, task);
    control_loop_run(&runner->loop, is_paused(runner->control));
}

static void round_done(struct service_task *task) {
    struct runner *runner = CONTAINER_OF(task, struct runner, task);
    runner->shown = runner->loop.status;
    save_memory(runner->control, runner);
}

static int start_tasks(struct control *control, struct error *err) {
    struct loop *loop = control->service.loop;
    int r = 0;
    for (size_t i = 0; r == 0 && i < control->n_runners; i++) {
        struct runner *runner = &control->runners[i];
        runner->task = (struct service_task){
            .run = round_run, .done = round_done, .interval_ms = runner->loop.loop->interval_ms};
        r = service_task_start(&runner->task, loop, runner->loop.loop->name, err);
    }
    if (r == 0 && control_config_has_waggle(&control->config)) {
        control->waggle = waggle_create();
        r = waggle_start(control->waggle, loop, &control->config, err);
    }
    return r;
}

static bool stop_tasks(struct control *control) {
    bool clean = control->waggle == NULL || waggle_stop(control->waggle);
    for (size_t i = 0; i < control->n_runners; i++) {
        control_loop_stop(&control->runners[i].loop);
    }
    for (size_t i = 0; i < control->n_runners; i++) {
        clean = service_task_stop(&control->runners[i].task) && clean;
    }
    return clean;
}

static int create_runners(struct control *control, struct error *err) {
    bool is_dry = settings_bool(control->service.config->settings, "dry-run");
    size_t n = control->config.n_loops;
    control->runners = mem_zalloc(n, sizeof(*control->runners));
    control->memories = mem_zalloc(n, sizeof(*control->memories));
    for (control->n_runners = 0; control->n_runners < n;) {
        size_t i = control->n_runners++;
        struct runner *runner = &control->runners[i];
        runner->control = control;
        control->memories[i].name = control->config.loops[i].name;
        runner->labels = labels_render("loop", control->config.loops[i].name);
        for (size_t k = 0; k < N_CONTROL_REASONS; k++) {
            runner->reasons[k] = labels_render("loop", control->config.loops[i].name, "reason",
                                               control_reason_name((enum control_reason)k));
        }
        int r = control_loop_init(&runner->loop, &control->config, i, &control->memories[i], is_dry,
                                  err);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static void destroy_runners(struct control *control) {
    waggle_destroy(control->waggle);
    for (size_t i = 0; i < control->n_runners; i++) {
        control_loop_finish(&control->runners[i].loop);
        labels_destroy(control->runners[i].labels);
        for (size_t k = 0; k < N_CONTROL_REASONS; k++) {
            labels_destroy(control->runners[i].reasons[k]);
        }
    }
    free(control->runners);
    free(control->memories);
}

static int run_once(struct control *control) {
    int code = EXIT_SUCCESS;
    load_memories(control);
    for (size_t i = 0; i < control->n_runners; i++) {
        struct runner *runner = &control->runners[i];
        control_loop_run(&runner->loop, is_paused(control));
        const struct control_status *status = &runner->loop.status;
        struct buf line CLEANUP_BUF = {0};
        buf_printf(&line, "%s: %s", runner->loop.loop->name,
                   control_reason_name(status->last.reason));
        if (!isnan(status->measure)) {
            buf_printf(&line, ", measure %g", status->measure);
        }
        if (!isnan(status->state.position)) {
            buf_printf(&line, ", knob at %g", status->state.position);
        }
        printf("%s%s%s\n", buf_str(&line), status->words.text[0] != '\0' ? ": " : "",
               status->words.text);
        save_memory(control, runner);
        code = isnan(status->measure) || isnan(status->state.position) ? EXIT_FAILURE : code;
    }
    return code;
}

static int run_service(struct control *control) {
    struct service *service = &control->service;
    struct error err;
    int code = EXIT_SUCCESS;
    int r = service_open(service, &err);
    r = r < 0 ? r : service_listen(service, routes, ARRAY_LEN(routes), &err);
    load_memories(control);
    r = r < 0 ? r : start_tasks(control, &err);
    if (r == 0) {
        service_run(service);
    } else {
        log_error("control: %s", err.text);
        code = EXIT_FAILURE;
    }
    service_close(service, stop_tasks(control), code);
    return code;
}

static int run(struct control *control) {
    struct error err;
    int code = EXIT_FAILURE;
    if (create_runners(control, &err) < 0) {
        log_error("control: %s", err.text);
    } else {
        bool once = settings_bool(control->service.config->settings, "once");
        code = once ? run_once(control) : run_service(control);
    }
    destroy_runners(control);
    return code;
}

/* ---- the command ---- */

static int print_help(void) {
    printf("usage: waap control CONFIG [flags]\n\n"
           "Turns the knobs of plugins by what Prometheus or the exporter measures.\n\n");
    flags_print_help(options, stdout);
    printf(
        "  --web.listen-address      Where to show metrics and take /-/pause and /-/resume (%s)\n"
        "  --web.…, --log.…, --push.allow, --push.user  As of waap serve\n",
        DEFAULT_ADDRESS);
    return 0;
}

static int read_everything(struct control *control, int argc, char **argv,
                           struct problems *problems) {
    int r =
        service_init(&control->service, "control", DEFAULT_ADDRESS, options, argc, argv, problems);
    if (r == 0 && control->service.flags.n_words != 1) {
        problems_add(problems, "control", 0, 0,
                     "expected one configuration file, got %zu (see waap control --help)",
                     control->service.flags.n_words);
        r = -EINVAL;
    }
    if (r == 0) {
        r = control_config_load(control->service.flags.words[0], &control->config, problems);
    }
    return r;
}

int control_main(int argc, char **argv) {
    if (flags_ask_for_help(argc, argv)) {
        return print_help();
    }
    struct control control = {0};
    struct problems problems CLEANUP_PROBLEMS = {0};
    int code = EXIT_USAGE;
    if (read_everything(&control, argc, argv, &problems) < 0) {
        problems_print(&problems, stderr);
    } else if (settings_bool(control.service.config->settings, "check")) {
        printf("%s: nothing wrong; loops: %zu\n", control.service.flags.words[0],
               control.config.n_loops);
        code = EXIT_SUCCESS;
    } else {
        code = run(&control);
    }
    service_finish(&control.service);
    control_config_finish(&control.config);
    return code;
}
