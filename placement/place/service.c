#include "placement/place/service.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "exporter/core/json.h"
#include "exporter/core/log.h"
#include "exporter/settings/flags.h"
#include "placement/client/promql.h"
#include "placement/place/choice.h"
#include "placement/place/measured.h"
#include "placement/place/metrics.h"
#include "placement/place/options.h"
#include "placement/place/upload.h"
#include "placement/service/service.h"

enum { EXIT_USAGE = 2, STOP_MS = 3000 };

#define DEFAULT_ADDRESS ":7001"

struct place {
    struct service service;
    struct flags flags;
    struct buf url;
    struct web_client *client; /* the worker's, as is the predictor */
    struct gbt *gbt;
    struct worker *worker;
    struct place_labels labels;
    struct place_counts counts;
    struct place_errors errors;
    struct place_measured_limits limits;
    size_t max_upload_memory;
    struct buf queries[N_PLACE_QUERIES];
    bool is_failing;      /* the last request that was in order had no answer */
    struct buf ambiguous; /* nodes that share a name, as logged last */
};

/* One request, from its handler to the worker and back. */
struct ask {
    struct place *place;
    struct http_request *request;
    struct worker_job job;
    bool is_upload;
    bool explain;
    const char *model; /* whose measured times are asked for; NULL: none */
    struct place_errors errors;
    unsigned status;
    struct error why; /* there is no answer */
    struct buf answer;
    double query_seconds, compute_seconds;
    size_t n_nodes, n_excluded;
    struct buf ambiguous;
};

/* ---- on the worker ---- */

static unsigned status_of(int code) {
    static const struct {
        int code;
        unsigned status;
    } statuses[] = {
        {-EFBIG, MHD_HTTP_CONTENT_TOO_LARGE},
        {-EINVAL, MHD_HTTP_BAD_REQUEST},
        {-ERANGE, MHD_HTTP_UNPROCESSABLE_CONTENT},
    };
    for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
        if (statuses[i].code == code) {
            return statuses[i].status;
        }
    }
    return MHD_HTTP_SERVICE_UNAVAILABLE;
}

static void answer_error(struct ask *ask, unsigned status, const char *text) {
    ask->status = status;
    error_set(&ask->why, 0, "%s", text);
    buf_reset(&ask->answer);
    buf_add_str(&ask->answer, "{\"error\":");
    json_add_string(&ask->answer, text);
    buf_add_str(&ask->answer, ",\"status\":\"error\"}\n");
}

static int query_one(struct ask *ask, enum place_query query, struct promql_answer *answer,
                     struct error *err) {
    struct buf expression CLEANUP_BUF = {0};
    const char *given = buf_str(&ask->place->queries[query]);
    if (query == PLACE_MEASURED) {
        place_measured_query_write(given, ask->model, &expression);
        given = buf_str(&expression);
    }
    if (expression.failed) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    int r = promql_query(ask->place->client, given, answer, err);
    if (r == 0 && answer->kind != PROMQL_VECTOR) {
        r = error_set(err, -EBADMSG, "Prometheus answers with a %s, not a vector",
                      promql_kind_name(answer->kind));
    }
    return r;
}

static int query(struct ask *ask, struct place_samples *samples, struct error *err) {
    int64_t start_ns = clock_monotonic_ns();
    int r = 0;
    for (int i = 0; r == 0 && i < N_PLACE_QUERIES; i++) {
        enum place_query which = (enum place_query)i;
        if (which != PLACE_MEASURED || ask->model != NULL) {
            r = query_one(ask, which, place_samples_answer(samples, which), err);
        }
    }
    ask->query_seconds = (double)(clock_monotonic_ns() - start_ns) / 1e9;
    return r;
}

static void count_nodes(struct ask *ask, const struct place_nodes *nodes) {
    enum { MAX_AMBIGUOUS_LEN = 500 };
    ask->n_nodes = nodes->n_nodes;
    for (size_t i = 0; i < nodes->n_nodes; i++) {
        ask->n_excluded += nodes->nodes[i].excluded != NULL;
        if (nodes->nodes[i].is_ambiguous && ask->ambiguous.len < MAX_AMBIGUOUS_LEN) {
            buf_add_str(&ask->ambiguous, ask->ambiguous.len > 0 ? ", " : "");
            place_node_write_name(&nodes->nodes[i], &ask->ambiguous);
        }
    }
}

static void choose(struct ask *ask, const struct place_request *asked,
                   const struct place_samples *samples) {
    struct place_nodes nodes CLEANUP_PLACE_NODES = {0};
    struct place_choice choice;
    struct error err = {0};
    const struct place_measured_limits *limits = &ask->place->limits;
    int r = place_nodes_join(samples, limits->max_age_seconds, &nodes, &err);
    if (r == 0 && ask->model != NULL) {
        r = place_measured_join(samples, ask->model, limits, &nodes, &err);
    }
    r = r < 0 ? r : place_choose(ask->place->gbt, asked, &nodes, &choice, &err);
    if (r < 0) {
        answer_error(ask, MHD_HTTP_SERVICE_UNAVAILABLE, err.text);
        return;
    }
    count_nodes(ask, &nodes);
    if (choice.best == NULL) {
        struct buf reasons CLEANUP_BUF = {0};
        place_reasons_write(&nodes, &reasons);
        answer_error(ask, MHD_HTTP_SERVICE_UNAVAILABLE, buf_str(&reasons));
        return;
    }
    if (ask->model != NULL && !place_errors_collect(&ask->errors, ask->model, &nodes)) {
        answer_error(ask, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory");
        return;
    }
    ask->status = ask->is_upload ? MHD_HTTP_CREATED : MHD_HTTP_OK;
    place_answer_write(ask->place->gbt, asked, &choice, ask->explain ? &nodes : NULL, &ask->answer);
}

static int read_request(struct ask *ask, struct place_request *ret, struct error *err) {
    struct http_request *request = ask->request;
    struct buf json CLEANUP_BUF = {0};
    if (!ask->is_upload) {
        return place_request_read(ret, request->body.data, request->body.len, err);
    }
    const char *type = http_header(request, MHD_HTTP_HEADER_CONTENT_TYPE);
    int r = place_upload_read(type, buf_str(&request->body), request->body.len,
                              ask->place->max_upload_memory, &json, err);
    buf_finish(&request->body); /* it is large, and Prometheus may take its time */
    return r < 0 ? r : place_request_read(ret, json.data, json.len, err);
}

static void ask_run(struct worker_job *job) {
    struct ask *ask = CONTAINER_OF(job, struct ask, job);
    struct place_request asked CLEANUP_PLACE_REQUEST = {0};
    struct place_samples samples CLEANUP_PLACE_SAMPLES = {0};
    struct error err = {0};
    int64_t start_ns = clock_monotonic_ns();
    int r = read_request(ask, &asked, &err);
    if (r < 0) {
        answer_error(ask, status_of(r), err.text);
    } else if (query(ask, &samples, &err) < 0) {
        answer_error(ask, MHD_HTTP_SERVICE_UNAVAILABLE, err.text);
    } else {
        choose(ask, &asked, &samples);
    }
    ask->compute_seconds = (double)(clock_monotonic_ns() - start_ns) / 1e9 - ask->query_seconds;
}

/* ---- on the loop ---- */

/* What goes wrong again and again is said when it begins and when it ends. */
static void log_state(const struct ask *ask) {
    bool failed = ask->status >= MHD_HTTP_INTERNAL_SERVER_ERROR;
    if (failed && !ask->place->is_failing) {
        log_warn("place: no answer: %s", ask->why.text);
    } else if (ask->place->is_failing && ask->status < MHD_HTTP_BAD_REQUEST) {
        log_info("place: answering again");
    }
    ask->place->is_failing =
        failed || (ask->place->is_failing && ask->status >= MHD_HTTP_BAD_REQUEST);
}

/* Those who ask without explain=1 do not see why a node is never chosen. */
static void log_ambiguous(struct ask *ask) {
    struct buf *logged = &ask->place->ambiguous;
    if (ask->n_nodes == 0 || strcmp(buf_str(&ask->ambiguous), buf_str(logged)) == 0) {
        return;
    }
    if (ask->ambiguous.len > 0) {
        log_warn("place: several nodes go by one name, none of them is chosen: %s",
                 buf_str(&ask->ambiguous));
    } else {
        log_info("place: every node has a name of its own again");
    }
    buf_finish(logged);
    *logged = ask->ambiguous;
    ask->ambiguous = (struct buf){0};
}

static void ask_done(struct worker_job *job) {
    struct ask *ask = CONTAINER_OF(job, struct ask, job);
    struct place_counts *counts = &ask->place->counts;
    counts->query_seconds += ask->query_seconds;
    counts->compute_seconds += ask->compute_seconds;
    if (ask->status < MHD_HTTP_BAD_REQUEST || ask->n_nodes > 0) {
        counts->n_nodes = ask->n_nodes;
        counts->n_excluded = ask->n_excluded;
    }
    counts->results[ask->status < MHD_HTTP_BAD_REQUEST             ? PLACE_OK
                    : ask->status < MHD_HTTP_INTERNAL_SERVER_ERROR ? PLACE_BAD_REQUEST
                                                                   : PLACE_UNAVAILABLE]++;
    if (ask->model != NULL && ask->status < MHD_HTTP_BAD_REQUEST) {
        place_errors_replace(&ask->place->errors, ask->model, &ask->errors);
    }
    log_state(ask);
    log_ambiguous(ask);
    http_reply_buf(ask->request, ask->status, "application/json", &ask->answer);
    buf_finish(&ask->answer);
    buf_finish(&ask->ambiguous);
    place_errors_finish(&ask->errors);
    free(ask);
}

static struct place *place_of(const struct http_request *request) {
    struct service *service = request->context;
    return CONTAINER_OF(service, struct place, service);
}

static bool is_on(const char *value) {
    return value != NULL && strcmp(value, "0") != 0 && strcmp(value, "false") != 0;
}

static void handle_ask(struct http_request *request, bool is_upload) {
    struct ask *ask = calloc(1, sizeof(*ask));
    if (ask == NULL) {
        http_reply_text(request, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory");
        return;
    }
    if (!http_hold(request)) {
        free(ask);
        return;
    }
    const char *model = http_url_parameter(&request->url, "model");
    *ask = (struct ask){
        .place = place_of(request),
        .request = request,
        .job = {.run = ask_run, .done = ask_done},
        .is_upload = is_upload,
        .explain = is_on(http_url_parameter(&request->url, "explain")),
        .model = model != NULL && model[0] != '\0' ? model : NULL,
    };
    worker_submit(ask->place->worker, &ask->job);
}

static void handle_profiling(struct http_request *request) {
    handle_ask(request, false);
}

static void handle_upload(struct http_request *request) {
    handle_ask(request, true);
}

static void handle_metrics(struct http_request *request) {
    const struct place *place = place_of(request);
    struct snapshot snapshot CLEANUP_SNAPSHOT = {0};
    place_metrics_add(&snapshot, &place->labels, &place->counts, &place->errors);
    service_reply_metrics(request, &snapshot);
}

static const struct http_route routes[] = {
    {NULL, "/metrics", HTTP_GET | HTTP_HEAD, .handle = handle_metrics},
    {"/-/healthy", "/-/healthy", HTTP_GET | HTTP_HEAD, .health = true, .handle = http_health_alive},
    {"/-/ready", "/-/ready", HTTP_GET | HTTP_HEAD, .health = true, .handle = http_health_ready},
    {"/api/profiling", "/api/profiling", HTTP_POST, .takes_body = true, .handle = handle_profiling},
    {"/upload", "/upload", HTTP_POST, .takes_body = true, .handle = handle_upload},
};

/* ---- the command ---- */

static int start(struct place *place, struct error *err) {
    const struct settings *settings = place->flags.settings;
    place->limits = (struct place_measured_limits){
        .min_samples = (double)settings_int(settings, "measured-min-samples"),
        .max_age_seconds = (double)settings_duration_ms(settings, "max-age") / 1e3,
    };
    place->max_upload_memory = (size_t)settings_int(settings, "upload.max-memory");
    for (int i = 0; i < N_PLACE_QUERIES; i++) {
        place_options_query(settings, (enum place_query)i, &place->queries[i]);
    }
    struct web_endpoint endpoint;
    place_options_endpoint(settings, &place->url, &endpoint);
    /* First, as it blocks the signals that we wait for: libraries start threads of their own. */
    int r = service_open(&place->service, err);
    r = r < 0 ? r : web_client_create(&endpoint, &place->client, err);
    r = r < 0 ? r : place_options_predictor(settings, &place->gbt, err);
    if (r == 0 && !place_labels_init(&place->labels, place->gbt)) {
        r = error_set(err, -ENOMEM, "out of memory");
    }
    r = r < 0 ? r : worker_create(place->service.loop, "place", &place->worker, err);
    return r < 0 ? r : service_listen(&place->service, routes, ARRAY_LEN(routes), err);
}

/* False where a thread or a request had to be left behind. */
static bool stop(struct place *place) {
    service_stop(&place->service);
    if (place->client != NULL) {
        web_client_abort(place->client);
    }
    bool clean = worker_destroy(TAKE(place->worker), STOP_MS);
    return service_close(&place->service) && clean;
}

static int run(struct place *place) {
    struct error err = {0};
    int code = EXIT_SUCCESS;
    if (start(place, &err) < 0) {
        log_error("place: %s", err.text);
        code = EXIT_FAILURE;
    } else {
        const struct gbt_notes *notes = gbt_notes(place->gbt);
        log_info("place: predicting by %s%s, asking %s", notes->trained,
                 notes->simulated ? ": good for trying things out only" : "", buf_str(&place->url));
        service_run(&place->service);
    }
    if (!stop(place)) {
        log_warn("place: left behind what did not end in time");
        _exit(code);
    }
    return code;
}

static int read_flags(struct place *place, int argc, char **argv, struct problems *problems) {
    char **service_flags CLEANUP_FREE = calloc((size_t)argc + 1, sizeof(*service_flags));
    if (service_flags == NULL) {
        problems_add(problems, "place", 0, 0, "out of memory");
        return -ENOMEM;
    }
    service_split_flags(&argc, argv, service_flags);
    int r = flags_read(&place->flags, place_options, place_n_options, argc, argv, problems);
    if (r == 0 && place->flags.n_words > 0) {
        problems_add(problems, "place", 0, 0,
                     "%s: neither a flag nor a command (see waap place --help)",
                     place->flags.words[0]);
        r = -EINVAL;
    }
    r = r < 0 ? r : place_options_check(place->flags.settings, problems);
    int s = service_init(&place->service, "place", DEFAULT_ADDRESS, service_flags, problems);
    return r < 0 ? r : s;
}

int place_service_main(int argc, char **argv) {
    struct place place = {0};
    struct problems problems CLEANUP_PROBLEMS = {0};
    int code = EXIT_USAGE;
    if (read_flags(&place, argc, argv, &problems) < 0) {
        problems_print(&problems, stderr);
    } else {
        code = run(&place);
    }
    service_finish(&place.service);
    place_labels_finish(&place.labels);
    place_errors_finish(&place.errors);
    gbt_destroy(place.gbt);
    web_client_destroy(place.client);
    flags_finish(&place.flags);
    buf_finish(&place.url);
    buf_finish(&place.ambiguous);
    for (size_t i = 0; i < N_PLACE_QUERIES; i++) {
        buf_finish(&place.queries[i]);
    }
    return code;
}
