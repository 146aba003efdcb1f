#include "exporter/daemon/metrics.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "exporter/core/number.h"
#include "exporter/daemon/daemon.h"
#include "exporter/daemon/page.h"

/* No scrape waits longer, whatever its header says. */
enum { SCRAPE_MAX_SECONDS = 120 };

/* ---- which collectors ---- */

static int find_collector(const struct engine *engine, const char *name, uint64_t *ret_bit,
                          struct error *err) {
    for (size_t i = 0; i < engine_n_collectors(engine); i++) {
        struct engine_status status = engine_status(engine, i);
        if (strcmp(status.collector->name, name) != 0) {
            continue;
        }
        if (!status.enabled) {
            return error_set(err, -EINVAL, "collector \"%s\" is switched off", name);
        }
        *ret_bit = UINT64_C(1) << i;
        return 0;
    }
    return error_set(err, -EINVAL, "there is no collector \"%s\"", name);
}

static int parse_filters(const struct http_request *request, uint64_t *ret_want,
                         struct error *err) {
    const struct engine *engine = daemon_of(request)->engine;
    uint64_t collect = 0;
    uint64_t exclude = 0;
    for (size_t i = 0; i < request->url.n_parameters; i++) {
        const struct http_parameter *parameter = &request->url.parameters[i];
        uint64_t *set = strcmp(parameter->name, "collect[]") == 0   ? &collect
                        : strcmp(parameter->name, "exclude[]") == 0 ? &exclude
                                                                    : NULL;
        uint64_t bit = 0;
        if (set == NULL) {
            continue;
        }
        int r = find_collector(engine, parameter->value, &bit, err);
        if (r < 0) {
            return r;
        }
        *set |= bit;
    }
    if (collect != 0 && exclude != 0) {
        return error_set(err, -EINVAL, "collect[] and exclude[] cannot be used together");
    }
    *ret_want = collect != 0 ? collect : engine_enabled(engine) & ~exclude;
    return 0;
}

/* ---- how long ---- */

/* Prometheus says how long it waits; the answer has to leave a little earlier. */
static int parse_deadline(const struct http_request *request, int64_t *ret_deadline_ns,
                          struct error *err) {
    const struct settings *settings = daemon_of(request)->config->settings;
    double seconds = (double)settings_duration_ms(settings, "scrape.timeout") / 1e3;
    const char *header = http_header(request, "X-Prometheus-Scrape-Timeout-Seconds");
    if (header != NULL) {
        double given;
        if (number_parse(header, strlen(header), &given) < 0 || !(given > 0)) {
            return error_set(err, -EINVAL,
                             "X-Prometheus-Scrape-Timeout-Seconds: expected seconds, got \"%s\"",
                             header);
        }
        double offset = (double)settings_duration_ms(settings, "scrape.timeout-offset") / 1e3;
        seconds = fmax(given - offset, given / 2);
    }
    seconds = fmin(seconds, SCRAPE_MAX_SECONDS);
    *ret_deadline_ns = clock_monotonic_ns() + (int64_t)(seconds * 1e9);
    return 0;
}

/* ---- the handler ---- */

static void scrape_finished(struct engine_scrape *scrape) {
    page_request_answer(CONTAINER_OF(scrape, struct page_request, scrape));
}

static void cancel_scrape(struct http_request *request) {
    struct page_request *reader = request->handler_state;
    if (reader->page != NULL) {
        page_request_cancel(reader);
    } else {
        engine_scrape_cancel(daemon_of(request)->engine, &reader->scrape);
    }
}

static void free_reader(void *state) {
    page_request_finish(state);
    free(state);
}

void http_metrics_handle(struct http_request *request) {
    struct engine_scrape scrape = {.finished = scrape_finished};
    struct error error;
    if (parse_filters(request, &scrape.want, &error) < 0 ||
        parse_deadline(request, &scrape.deadline_ns, &error) < 0) {
        http_reply_text(request, MHD_HTTP_BAD_REQUEST, "%s", error.text);
        return;
    }
    struct page_request *reader = calloc(1, sizeof(*reader));
    if (reader == NULL) {
        http_reply_text(request, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory");
        return;
    }
    *reader = (struct page_request){.request = request, .scrape = scrape};
    request->handler_state = reader;
    request->free_state = free_reader;
    if (http_hold_scrape(request, cancel_scrape) &&
        engine_scrape(daemon_of(request)->engine, &reader->scrape)) {
        page_request_answer(reader);
    }
}
