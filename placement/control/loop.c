#include "placement/control/loop.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include "exporter/core/clock.h"
#include "exporter/core/json.h"
#include "exporter/core/log.h"
#include "exporter/metrics/parse.h"
#include "placement/client/promql.h"

enum {
    ACK_PAUSE_MS = 20,
    ACK_MAX_PAUSE_MS = 500,
    MAX_RETRY_DOUBLINGS = 6,
    RETRY_MS = 1000,
};

/* Limits the log lines of a measure at the edge of the band. */
enum { SHORT_MIN_MS = 60000 };

/* ---- knobs ---- */

void control_knob_finish(struct control_knob *knob) {
    buf_finish(&knob->text);
    *knob = (struct control_knob){0};
}

static int read_type(struct json *json, enum knob_type *ret_type, struct error *err) {
    char *text;
    size_t len;
    int r = json_read_string(json, &text, &len, err);
    if (r == 0 && !knob_type_find(text, ret_type)) {
        r = json_fail(json, err, "unknown type %s", text);
    }
    return r;
}

static int read_knob_key(struct json *json, const char *key, void *context, struct error *err) {
    struct control_knob *knob = context;
    static const struct {
        const char *key;
        size_t offset;
        bool is_value;
    } keys[] = {
        {"applied", offsetof(struct control_knob, applied), true},
        {"applied_at", offsetof(struct control_knob, applied_seconds), false},
        {"default", offsetof(struct control_knob, initial), true},
        {"max", offsetof(struct control_knob, max), false},
        {"min", offsetof(struct control_knob, min), false},
        {"requested", offsetof(struct control_knob, requested), true},
        {"requested_at", offsetof(struct control_knob, requested_seconds), false},
        {"step", offsetof(struct control_knob, step), false},
    };
    if (strcmp(key, "type") == 0) {
        return read_type(json, &knob->type, err);
    }
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        void *to = (char *)knob + keys[i].offset;
        if (strcmp(keys[i].key, key) == 0) {
            return keys[i].is_value ? knob_value_read(json, to, err)
                                    : json_read_number(json, to, err);
        }
    }
    return json_skip(json, err);
}

struct reading {
    struct control_knob *knob;
    bool has_data;
    char *error;
};

static int read_key(struct json *json, const char *key, void *context, struct error *err) {
    struct reading *in = context;
    size_t len;
    if (strcmp(key, "data") == 0) {
        in->has_data = true;
        return json_each(json, '{', "a knob", read_knob_key, in->knob, err);
    }
    return strcmp(key, "error") == 0 ? json_read_string(json, &in->error, &len, err)
                                     : json_skip(json, err);
}

/* Reads {"status": "success", "data": {"param": …}}. -EINVAL if it is not a knob, -EREMOTEIO with
 * the exporter's words if it is an error. A request without the right to write is rejected in plain
 * text. */
static int parse_knob(void *context, struct buf *body, struct error *err) {
    struct control_knob *knob = context;
    struct reading in = {.knob = knob};
    buf_add_char(body, '\n'); /* so that an empty body has data */
    *knob = (struct control_knob){.text = *body, .min = -INFINITY, .max = INFINITY};
    *body = (struct buf){0};
    struct json json = json_begin(knob->text.data, knob->text.len, 1);
    int r = json_each(&json, '{', "an object", read_key, &in, err);
    if (r < 0) {
        return r;
    }
    if (in.error != NULL) {
        return error_set(err, -EREMOTEIO, "%.800s", in.error);
    }
    return in.has_data ? 0 : error_set(err, -EINVAL, "no knob in it");
}

static void add_path(struct buf *out, const struct control_knob_name *name) {
    const struct {
        const char *key;
        const char *value;
    } selectors[] = {
        {"container", name->container},
        {"job", name->job},
        {"namespace", name->namespace},
        {"pod", name->pod},
    };
    char before = '?';
    buf_add_str(out, "/api/v1/plugins/");
    web_add_escaped(out, name->plugin);
    buf_add_str(out, "/params/");
    web_add_escaped(out, name->param);
    for (size_t i = 0; i < ARRAY_LEN(selectors); i++) {
        if (selectors[i].value != NULL) {
            buf_printf(out, "%c%s=", before, selectors[i].key);
            web_add_escaped(out, selectors[i].value);
            before = '&';
        }
    }
}

static int call(struct web_client *exporter, const struct control_knob_name *name,
                const char *method, const char *body, struct control_knob *knob,
                struct error *err) {
    struct buf path CLEANUP_BUF = {0};
    add_path(&path, name);
    const struct web_request request = {
        .method = method,
        .path = buf_str(&path),
        .body = body,
        .content_type = "application/json",
        .accept = "application/json",
    };
    control_knob_finish(knob);
    return web_client_ask(exporter, &request, parse_knob, knob, err);
}

int control_knob_read(struct web_client *exporter, const struct control_knob_name *name,
                      struct control_knob *knob, struct error *err) {
    return call(exporter, name, "GET", NULL, knob, err);
}

int control_knob_write(struct web_client *exporter, const struct control_knob_name *name,
                       const struct knob_value *value, struct control_knob *knob,
                       struct error *err) {
    struct buf body CLEANUP_BUF = {0};
    buf_add_str(&body, "{\"value\":");
    knob_value_format(value, &body);
    buf_add_char(&body, '}');
    return call(exporter, name, "PUT", buf_str(&body), knob, err);
}

bool control_knob_is_pending(const struct control_knob *knob) {
    if (knob->requested.form == KNOB_ABSENT) {
        return false;
    }
    /* A plugin may apply another value than the one asked for; it has answered then, too. */
    return knob->applied.form == KNOB_ABSENT ||
           (!knob_value_equal(&knob->requested, &knob->applied) &&
            knob->applied_seconds < knob->requested_seconds);
}

const struct knob_value *control_knob_value(const struct control_knob *knob) {
    return knob->applied.form != KNOB_ABSENT     ? &knob->applied
           : knob->requested.form != KNOB_ABSENT ? &knob->requested
                                                 : &knob->initial;
}

/* ---- measuring ---- */

/* The calls below return 0, or the reason why there is no measure with a minus sign, which `err`
 * words. */

static const struct exposition_limits page_limits = {.max_families = 1000000,
                                                     .max_samples = 1000000,
                                                     .max_labels = 100,
                                                     .max_name_len = 1024,
                                                     .max_value_len = 1 << 16};

/* Anything but one number is a mistake in the query. */
static int check_result(size_t n, double value, double *ret_value, struct error *err) {
    if (n == 0) {
        return error_set(err, -CONTROL_EMPTY, "the query returned nothing");
    }
    if (n > 1) {
        return error_set(err, -CONTROL_SEVERAL, "the query returned %zu series instead of one", n);
    }
    if (!isfinite(value)) {
        return error_set(err, -CONTROL_NAN, "the query returned %s",
                         isnan(value) ? "NaN" : "an infinite number");
    }
    *ret_value = value;
    return 0;
}

/* `ret_remark` gets a warning of Prometheus, if there is one. */
static int query(struct web_client *prometheus, const char *expression, double *ret_value,
                 struct error *ret_remark, struct error *err) {
    struct promql_answer answer CLEANUP_PROMQL_ANSWER = {0};
    if (promql_query(prometheus, expression, &answer, err) < 0) {
        return -CONTROL_FAILED;
    }
    if (answer.remark != NULL) {
        error_set(ret_remark, 0, "%s", answer.remark);
    }
    if (answer.kind == PROMQL_MATRIX || answer.kind == PROMQL_STRING) {
        return error_set(err, -CONTROL_FAILED, "the query returned a %s instead of a number",
                         promql_kind_name(answer.kind));
    }
    size_t n = answer.n_series + answer.n_histograms;
    return check_result(n == 1 ? answer.n_series : n,
                        answer.n_series > 0 ? answer.series[0].value : NAN, ret_value, err);
}

/* Prometheus returns samples that are up to five minutes old. */
static int check_age(const struct control_loop *loop, struct error *err) {
    double age;
    struct error why;
    int r = query(loop->prometheus, loop->loop->age_query, &age, NULL, &why);
    if (r < 0) {
        return error_set(err, r == -CONTROL_FAILED ? r : -CONTROL_STALE, "age: %s", why.text);
    }
    return age * 1000 > (double)loop->loop->stale_ms
               ? error_set(err, -CONTROL_STALE, "the measure is %.1f s old", age)
               : 0;
}

static int parse_page(void *context, struct buf *body, struct error *err) {
    buf_add_char(body, '\n'); /* so that an empty page has data */
    struct control_page *page = context;
    page->text = *body;
    *body = (struct buf){0};
    return exposition_parse(page->text.data, page->text.len, &page_limits, &page->doc, err);
}

int control_page_read(const struct control_config *config, struct web_client *exporter,
                      struct control_page *page, struct error *err) {
    const struct web_request request = {.path = config->metrics_path,
                                        .accept = "text/plain;version=0.0.4"};
    return web_client_ask(exporter, &request, parse_page, page, err);
}

void control_page_finish(struct control_page *page) {
    exposition_doc_finish(&page->doc);
    buf_finish(&page->text);
}

static int take_measure(const struct control_loop *loop, double *ret_value,
                        struct error *ret_remark, struct error *err) {
    if (!loop->loop->from_exporter) {
        int r = query(loop->prometheus, loop->loop->query, ret_value, ret_remark, err);
        return r < 0 || loop->loop->age_query == NULL ? r : check_age(loop, err);
    }
    struct control_page page CLEANUP_CONTROL_PAGE = {0};
    if (control_page_read(loop->config, loop->exporter, &page, err) < 0) {
        return -CONTROL_FAILED;
    }
    double value = NAN;
    size_t n = selector_find(loop->loop->selector, &page.doc, &value);
    return check_result(n, value, ret_value, err);
}

/* ---- life ---- */

int control_loop_init(struct control_loop *loop, const struct control_config *config, size_t index,
                      const struct control_memory *memory, bool is_dry, struct error *err) {
    *loop = (struct control_loop){
        .config = config,
        .loop = &config->loops[index],
        .rule = config->loops[index].rule,
        .state = {.position = NAN},
        .memory = memory,
        .is_dry = is_dry,
    };
    int r = web_client_create(&config->exporter, &loop->exporter, err);
    if (r == 0 && !loop->loop->from_exporter) {
        r = web_client_create(&config->prometheus, &loop->prometheus, err);
    }
    return r;
}

void control_loop_finish(struct control_loop *loop) {
    web_client_destroy(loop->prometheus);
    web_client_destroy(loop->exporter);
    control_knob_finish(&loop->knob);
}

void control_loop_stop(struct control_loop *loop) {
    atomic_store(&loop->is_stopping, true);
    web_client_abort(loop->exporter);
    if (loop->prometheus != NULL) {
        web_client_abort(loop->prometheus);
    }
}

/* ---- positions and values ---- */

static struct knob_value value_at(const struct control_loop *loop, double position) {
    if (loop->loop->n_levels > 0) {
        return loop->loop->levels[(size_t)lround(position)];
    }
    return (struct knob_value){.form = KNOB_NUMBER, .number = position};
}

/* Applies what the plugin has declared: the narrower bounds, and its steps if the loop has none. */
static int fit_rule(struct control_loop *loop, struct error *err) {
    const struct control_knob *knob = &loop->knob;
    struct control_rule *rule = &loop->rule;
    *rule = loop->loop->rule;
    if (loop->loop->n_levels > 0) {
        return 0;
    }
    if (knob->type != KNOB_INT && knob->type != KNOB_FLOAT) {
        return error_set(err, -EINVAL, "%s is of type %s: the loop needs levels",
                         loop->loop->knob.param, knob_type_name(knob->type));
    }
    if (rule->step == 0) {
        rule->step = knob->step > 0 ? knob->step : knob->type == KNOB_INT ? 1 : 0;
        rule->up.max_step = fmax(rule->up.max_step, rule->step);
        rule->down.max_step = fmax(rule->down.max_step, rule->step);
    }
    if (knob->min > rule->min) {
        double steps = rule->step > 0 ? ceil((knob->min - rule->min) / rule->step - 1e-9) : 0;
        rule->min = rule->step > 0 ? rule->min + steps * rule->step : knob->min;
    }
    rule->max = fmin(rule->max, knob->max);
    if (rule->min >= rule->max) {
        return error_set(err, -EINVAL, "%s goes from %g to %g, the loop from %g to %g",
                         loop->loop->knob.param, knob->min, knob->max, loop->loop->rule.min,
                         loop->loop->rule.max);
    }
    rule->safe = fmin(fmax(rule->safe, rule->min), rule->max);
    return 0;
}

/* ---- logging ---- */

static void format_position(const struct control_loop *loop, double position, struct buf *out) {
    struct knob_value value = value_at(loop, position);
    knob_value_format(&value, out);
}

static void add_target(const struct control_loop *loop, struct buf *out) {
    const struct control_rule *rule = &loop->rule;
    if (rule->low == rule->high) {
        buf_printf(out, "%g", rule->low);
    } else {
        buf_printf(out, "%g to %g", rule->low, rule->high);
    }
}

/* Logs a turn with its reason. */
static void record(const struct control_loop *loop, const struct control_decision *decision,
                   const char *verb) {
    struct buf before CLEANUP_BUF = {0}, after CLEANUP_BUF = {0}, why CLEANUP_BUF = {0};
    format_position(loop, loop->state.position, &before);
    format_position(loop, decision->position, &after);
    if (!isnan(loop->status.measure)) {
        buf_printf(&why, "measure %g, wanted ", loop->status.measure);
        add_target(loop, &why);
    } else {
        buf_printf(&why, "no measure for %u rounds, %s", loop->state.failures,
                   loop->status.words.text);
    }
    log_info("control: %s: %s %s of %s from %s to %s: %s: %s, query %s", loop->loop->name, verb,
             loop->loop->knob.param, loop->loop->knob.plugin, buf_str(&before), buf_str(&after),
             control_reason_name(decision->reason), buf_str(&why), loop->loop->query);
}

/* The knob is at its best position, and the measure is still off target. A PI law that stays for
 * one round may move in the next. */
static bool is_short(const struct control_loop *loop, enum control_reason reason) {
    return reason == CONTROL_SATURATED ||
           (reason == CONTROL_SETTLED && loop->rule.kind == CONTROL_TABLE);
}

static void log_shortfall(struct control_loop *loop, const struct control_decision *decision) {
    int64_t now_ns = clock_monotonic_ns();
    if (is_short(loop, decision->reason) && !loop->falls_short) {
        struct buf at CLEANUP_BUF = {0}, wanted CLEANUP_BUF = {0};
        format_position(loop, decision->position, &at);
        add_target(loop, &wanted);
        log_warn("control: %s: %s, %s of %s stays at %s: measure %g, wanted %s, off by %g",
                 loop->loop->name,
                 decision->reason == CONTROL_SATURATED ? "the knob is at its bound"
                                                       : "no entry of the table is better",
                 loop->loop->knob.param, loop->loop->knob.plugin, buf_str(&at),
                 loop->status.measure, buf_str(&wanted), decision->error);
        loop->falls_short = true;
        loop->short_ns = now_ns;
    } else if (loop->falls_short && decision->reason == CONTROL_IN_BAND &&
               now_ns - loop->short_ns >= SHORT_MIN_MS * CLOCK_NS_PER_MS) {
        log_info("control: %s: back within the target range", loop->loop->name);
        loop->falls_short = false;
    }
}

/* Holds that need attention; the others are normal. */
static bool is_trouble(enum control_reason reason) {
    return reason >= CONTROL_EMPTY;
}

static void conclude(struct control_loop *loop, const struct control_decision *decision) {
    struct control_status *status = &loop->status;
    enum control_reason before = status->last.reason, after = decision->reason;
    bool was_trouble = status->has_run && is_trouble(before);
    if (is_trouble(after) && (!was_trouble || before != after)) {
        log_warn("control: %s: holds: %s%s%s", loop->loop->name, control_reason_name(after),
                 status->words.text[0] != '\0' ? ": " : "", status->words.text);
    } else if (was_trouble && !is_trouble(after) && !control_reason_is_action(after)) {
        log_info("control: %s: goes on: %s", loop->loop->name, control_reason_name(after));
    }
    log_shortfall(loop, decision);
    status->actions[after]++;
    status->last = *decision;
    status->has_run = true;
    if (control_law_oscillates(&loop->state) && !control_law_oscillates(&status->state)) {
        log_warn("control: %s: oscillates: its dead band is widened to %g", loop->loop->name,
                 loop->rule.deadband + loop->state.widening);
    }
    status->state = loop->state;
}

/* ---- turning the knob ---- */

/* Whether somebody else has requested a value since. */
static bool is_overruled(const struct control_loop *loop) {
    struct knob_value ours = value_at(loop, loop->pending.position);
    return !knob_value_equal(&loop->knob.requested, &ours);
}

/* The plugin has answered; somebody else may have requested the value. */
static void confirm(struct control_loop *loop, double position) {
    loop->has_pending = false;
    loop->n_retries = 0;
    if (is_overruled(loop)) {
        return;
    }
    if (position != loop->pending.position) {
        log_warn("control: %s: %s applied another value than requested", loop->loop->name,
                 loop->loop->knob.plugin);
    }
    control_law_turned(&loop->rule, &loop->state, &loop->pending, position, clock_monotonic_ns());
}

/* False if the value is not one of the loop's. */
static bool find_position(struct control_loop *loop, double *ret_position) {
    *ret_position = control_config_position(loop->loop, control_knob_value(&loop->knob));
    if (isnan(*ret_position)) {
        error_set(&loop->status.words, -EINVAL, "the value of %s is not one of the levels",
                  loop->loop->knob.param);
    }
    return !isnan(*ret_position);
}

static int64_t back_off_ns(struct control_loop *loop) {
    unsigned doublings =
        loop->n_retries < MAX_RETRY_DOUBLINGS ? loop->n_retries : MAX_RETRY_DOUBLINGS;
    loop->n_retries++;
    return (int64_t)RETRY_MS * CLOCK_NS_PER_MS << doublings;
}

/* The requested value is not applied yet: requests it again, less and less often. */
static void ask_again(struct control_loop *loop) {
    struct control_knob *knob = &loop->knob;
    int64_t now_ns = clock_monotonic_ns();
    error_set(&loop->status.words, -EAGAIN, "%s has not applied the requested value",
              loop->loop->knob.plugin);
    if (!loop->has_pending || is_overruled(loop) || now_ns < loop->retry_ns) {
        return;
    }
    loop->retry_ns = now_ns + back_off_ns(loop);
    struct knob_value value = value_at(loop, loop->pending.position);
    struct error err;
    if (control_knob_write(loop->exporter, &loop->loop->knob, &value, knob, &err) < 0) {
        loop->status.words = err;
    }
}

/* Waits until the plugin has answered, up to ack_timeout. */
static bool wait_applied(struct control_loop *loop) {
    int64_t until_ns = clock_monotonic_ns() + loop->loop->ack_ms * CLOCK_NS_PER_MS;
    int64_t pause_ms = ACK_PAUSE_MS;
    while (control_knob_is_pending(&loop->knob)) {
        if (clock_monotonic_ns() >= until_ns || atomic_load(&loop->is_stopping)) {
            error_set(&loop->status.words, -ETIMEDOUT, "%s did not apply the value within %g s",
                      loop->loop->knob.plugin, (double)loop->loop->ack_ms / 1e3);
            return false;
        }
        nanosleep(&(struct timespec){.tv_nsec = pause_ms * CLOCK_NS_PER_MS}, NULL);
        pause_ms = pause_ms * 2 < ACK_MAX_PAUSE_MS ? pause_ms * 2 : ACK_MAX_PAUSE_MS;
        if (control_knob_read(loop->exporter, &loop->loop->knob, &loop->knob, &loop->status.words) <
            0) {
            return false;
        }
    }
    return true;
}

static void act(struct control_loop *loop, struct control_decision *decision) {
    struct knob_value value = value_at(loop, decision->position);
    record(loop, decision, loop->is_dry ? "would turn" : "turns");
    if (loop->is_dry || control_knob_write(loop->exporter, &loop->loop->knob, &value, &loop->knob,
                                           &loop->status.words) < 0) {
        /* Counts as turned in place: the next attempt is after the dwell. */
        control_law_turned(&loop->rule, &loop->state, decision, loop->state.position,
                           clock_monotonic_ns());
        decision->reason = loop->is_dry ? decision->reason : CONTROL_REFUSED;
        return;
    }
    loop->pending = *decision;
    loop->has_pending = true;
    loop->retry_ns = clock_monotonic_ns() + back_off_ns(loop);
    if (!wait_applied(loop)) {
        loop->status.unconfirmed++;
        log_warn("control: %s: %s", loop->loop->name, loop->status.words.text);
        return;
    }
    /* An unexpected answer is handled in the next round. */
    double position;
    if (find_position(loop, &position)) {
        confirm(loop, position);
    }
}

/* Reads the knob. False with the reason if the loop cannot continue. */
static bool look_at_knob(struct control_loop *loop, enum control_reason *ret_reason) {
    struct error *words = &loop->status.words;
    *ret_reason = CONTROL_NO_KNOB;
    if (control_knob_read(loop->exporter, &loop->loop->knob, &loop->knob, words) < 0 ||
        fit_rule(loop, words) < 0) {
        return false;
    }
    if (control_knob_is_pending(&loop->knob)) {
        *ret_reason = CONTROL_UNCONFIRMED;
        ask_again(loop);
        return false;
    }
    double position;
    if (!find_position(loop, &position)) {
        return false;
    }
    if (loop->has_pending) {
        confirm(loop, position);
    }
    if (isnan(loop->state.position)) {
        control_law_start(&loop->state, position);
        control_memory_recall(loop->memory, &loop->state);
    } else if (position != loop->state.position) {
        error_set(words, 0, "somebody else has turned %s", loop->loop->knob.param);
        control_law_moved(&loop->state, position, clock_monotonic_ns());
        *ret_reason = CONTROL_MANUAL;
        return false;
    }
    return true;
}

/* ---- one round ---- */

static struct control_input measure(struct control_loop *loop) {
    struct error remark = {.text = ""}, words = {.text = ""};
    struct control_input input = {.measure = NAN};
    int r = take_measure(loop, &input.measure, &remark, &words);
    if (r < 0) {
        input.measure = NAN;
        input.trouble = (enum control_reason)(-r);
    }
    loop->status.measure = input.measure;
    loop->status.words = words;
    if (strcmp(remark.text, loop->remark.text) != 0) {
        loop->remark = remark;
        if (remark.text[0] != '\0') {
            log_warn("control: %s: prometheus: %s", loop->loop->name, remark.text);
        }
    }
    return input;
}

static struct control_decision decide(struct control_loop *loop, bool is_paused) {
    enum control_reason reason;
    struct control_input input = measure(loop);
    struct error words = loop->status.words;
    if (!look_at_knob(loop, &reason)) {
        return control_law_hold(&loop->state, reason);
    }
    loop->status.words = words;
    if (is_paused) {
        return control_law_hold(&loop->state, CONTROL_PAUSED);
    }
    input.now_ns = clock_monotonic_ns();
    struct control_decision decision = control_law_decide(&loop->rule, &loop->state, &input);
    if (control_reason_is_action(decision.reason)) {
        act(loop, &decision);
    }
    return decision;
}

void control_loop_run(struct control_loop *loop, bool is_paused) {
    int64_t begin_ns = clock_monotonic_ns();
    struct control_decision decision = decide(loop, is_paused);
    if (atomic_load(&loop->is_stopping)) {
        return; /* its calls were aborted */
    }
    conclude(loop, &decision);
    loop->status.run_at = clock_wall_seconds();
    loop->status.run_seconds = (double)(clock_monotonic_ns() - begin_ns) / 1e9;
}
