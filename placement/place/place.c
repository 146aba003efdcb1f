#include "placement/place/place.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "exporter/core/json.h"
#include "exporter/core/log.h"
#include "exporter/core/memory.h"
#include "exporter/core/version.h"
#include "exporter/settings/flags.h"
#include "placement/client/promql.h"
#include "placement/place/choice.h"
#include "placement/place/metrics.h"
#include "placement/predictor/collect.h"
#include "placement/predictor/import.h"
#include "placement/predictor/predictor.h"
#include "placement/predictor/simulate.h"
#include "placement/predictor/train.h"
#include "placement/service/service.h"

enum { EXIT_USAGE = 2, STOP_MS = 3000 };

#define DEFAULT_ADDRESS ":7001"

struct place {
    struct service service;
    struct buf url;
    struct web_endpoint prometheus; /* borrows the url and the settings */
    struct web_client *client;      /* the worker's, as is the predictor */
    struct gbt *gbt;
    struct worker *worker;
    struct place_metrics metrics;
    struct place_measured_limits limits;
    size_t max_upload_memory;
    struct buf queries[N_PLACE_QUERIES];
    bool is_failing;      /* the last valid request had no answer */
    struct buf ambiguous; /* nodes that share a name, as logged last */
};

/* One request, on its way to the worker and back. */
struct ask {
    struct place *place;
    struct http_request *request;
    struct worker_job job;
    bool is_upload;
    bool explain;
    const char *model; /* its measured times are used; NULL: none */
    struct place_errors errors;
    unsigned status;
    struct error why; /* of a failure */
    struct buf answer;
    double query_seconds, compute_seconds;
    size_t n_nodes, n_excluded;
    struct buf ambiguous;
};

/* ---- options ---- */

static const struct option options[] = {
    {"load-window", OPTION_DURATION, .default_text = "1m", .min = 1000, .max = 3600000,
     .help = "The load of a node is the mean over this time; at least two scrapes"},
    {"max-age", OPTION_DURATION, .default_text = "2m", .min = 1000, .max = 86400000,
     .help = "Nodes whose last samples are older are not chosen"},
    {"measured-min-samples", OPTION_INT, .default_text = "10", .min = 1, .max = 1000000000,
     .help = "Measured times of fewer runs than these do not replace a prediction"},
    {"measured-window", OPTION_DURATION, .default_text = "10m", .min = 1000, .max = 86400000,
     .help = "Measured times are the mean over this time"},
    {"predictor", OPTION_STRING,
     .help = "File of waap place train or import; default is the one that was made while building"},
    {"prometheus.bearer-token-file", OPTION_STRING,
     .help = "File with a token, read again for every request"},
    {"prometheus.ca-file", OPTION_STRING, .help = "Certificates to trust instead of the system's"},
    {"prometheus.cert-file", OPTION_STRING, .help = "Certificate of our own"},
    {"prometheus.header", OPTION_STRING, .repeatable = true,
     .help = "A further header, such as \"X-Scope-OrgID: edge\"; repeatable"},
    {"prometheus.insecure", OPTION_BOOL, .help = "Take any certificate"},
    {"prometheus.key-file", OPTION_STRING, .help = "Key of our certificate"},
    {"prometheus.password-file", OPTION_STRING,
     .help = "File with the password of --prometheus.user"},
    {"prometheus.timeout", OPTION_DURATION, .default_text = "10s", .min = 100, .max = 600000,
     .help = "How long to wait for each answer"},
    {"prometheus.url", OPTION_STRING,
     .help = "Where Prometheus is, with its path if any; default http://$PROMETHEUS_IP, else "
             "http://localhost:9091"},
    {"prometheus.user", OPTION_STRING, .help = "User to ask as"},
    {"query.disk", OPTION_STRING,
     .help = "Instead of our own: how full / is in percent, with the labels node or instance"},
    {"query.load", OPTION_STRING,
     .help = "Instead of our own: how busy all CPUs are in percent, such as \"100 * "
             "node:cpu_utilization:ratio\""},
    {"query.measured", OPTION_STRING,
     .help = "Instead of our own: how long \"$model\" runs, with the labels node or instance, "
             "model, and quantity: seconds, samples, age"},
    {"upload.max-memory", OPTION_SIZE, .default_text = "20MiB", .min = 64 << 10, .max = 1 << 30,
     .help =
         "What the graph of an uploaded model may take beside its file; beyond it is answered 413"},
    {0},
};

static int read_endpoint(struct place *place, struct problems *problems) {
    const struct settings *settings = place->service.config->settings;
    const char *url = settings_string(settings, "prometheus.url");
    const char *address = getenv("PROMETHEUS_IP");
    if (url[0] != '\0') {
        buf_add_str(&place->url, url);
    } else {
        address = address != NULL && address[0] != '\0' ? address : "localhost:9091";
        buf_printf(&place->url, "%s%s", strstr(address, "://") != NULL ? "" : "http://", address);
    }
    place->prometheus = (struct web_endpoint){
        .url = buf_str(&place->url),
        .bearer_token_file = settings_string(settings, "prometheus.bearer-token-file"),
        .user = settings_string(settings, "prometheus.user"),
        .password_file = settings_string(settings, "prometheus.password-file"),
        .ca_file = settings_string(settings, "prometheus.ca-file"),
        .cert_file = settings_string(settings, "prometheus.cert-file"),
        .key_file = settings_string(settings, "prometheus.key-file"),
        .insecure = settings_bool(settings, "prometheus.insecure"),
        .headers = settings_list(settings, "prometheus.header"),
        .timeout_ms = settings_duration_ms(settings, "prometheus.timeout"),
    };
    struct error err;
    if (web_url_check(place->prometheus.url, &err) < 0) {
        problems_add(problems, url[0] != '\0' ? "--prometheus.url" : "PROMETHEUS_IP", 0, 0, "%s",
                     err.text);
        return -EINVAL;
    }
    return 0;
}

static void add_query(const struct settings *settings, enum place_query query, struct buf *out) {
    static const char *const flags[N_PLACE_QUERIES] = {
        [PLACE_LOAD] = "query.load",
        [PLACE_DISK] = "query.disk",
        [PLACE_MEASURED] = "query.measured",
    };
    const char *given = flags[query] != NULL ? settings_string(settings, flags[query]) : "";
    const char *over = query == PLACE_MEASURED ? "measured-window" : "load-window";
    struct buf window CLEANUP_BUF = {0};
    option_format(OPTION_DURATION, settings_duration_ms(settings, over), &window);
    if (given[0] != '\0') {
        buf_add_str(out, given);
    } else {
        place_query_write(query, buf_str(&window), out);
    }
}

/* Beside the program, where meson builds both, else where it is installed. */
static void find_predictor(struct buf *out) {
    char program[4096];
    ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 1);
    if (len > 0) {
        program[len] = '\0';
        char *slash = strrchr(program, '/');
        buf_printf(out, "%.*s/predictor.ubj", (int)(slash - program), program);
    }
    if (len <= 0 || access(buf_str(out), F_OK) < 0) {
        buf_reset(out);
        buf_add_str(out, VERSION_DATADIR "/predictor.ubj");
    }
}

static int load_predictor(const struct settings *settings, struct gbt **ret_gbt,
                          struct error *err) {
    struct buf path CLEANUP_BUF = {0};
    buf_add_str(&path, settings_string(settings, "predictor"));
    if (path.len == 0) {
        find_predictor(&path);
        if (access(buf_str(&path), F_OK) < 0) {
            return error_set(
                err, -ENOENT,
                "no predictor at %s: make one with waap place train and set --predictor",
                buf_str(&path));
        }
    }
    return gbt_load(buf_str(&path), feature_names, N_FEATURES, ret_gbt, err);
}

/* ---- on the worker ---- */

static unsigned status_of(int code) {
    return code == -EFBIG    ? MHD_HTTP_CONTENT_TOO_LARGE
           : code == -EINVAL ? MHD_HTTP_BAD_REQUEST
           : code == -ERANGE ? MHD_HTTP_UNPROCESSABLE_CONTENT
                             : MHD_HTTP_SERVICE_UNAVAILABLE;
}

static void answer_error(struct ask *ask, unsigned status, const char *text) {
    ask->status = status;
    error_set(&ask->why, 0, "%s", text);
    buf_reset(&ask->answer);
    json_open(&ask->answer, NULL, '{');
    json_put_string(&ask->answer, "error", text);
    json_put_string(&ask->answer, "status", "error");
    json_close(&ask->answer, '}');
    buf_add_char(&ask->answer, '\n');
}

static int query(struct ask *ask, struct place_samples *samples, struct error *err) {
    int64_t start_ns = clock_monotonic_ns();
    int r = 0;
    for (int i = 0; r == 0 && i < N_PLACE_QUERIES; i++) {
        struct promql_answer *answer = &samples->answers[i];
        struct buf expression CLEANUP_BUF = {0};
        if (i == PLACE_MEASURED && ask->model == NULL) {
            continue;
        }
        if (i == PLACE_MEASURED) {
            place_measured_query_write(buf_str(&ask->place->queries[i]), ask->model, &expression);
        } else {
            buf_add_str(&expression, buf_str(&ask->place->queries[i]));
        }
        r = promql_query(ask->place->client, buf_str(&expression), answer, err);
        if (r == 0 && answer->kind != PROMQL_VECTOR) {
            r = error_set(err, -EBADMSG, "Prometheus answers with a %s, not a vector",
                          promql_kind_name(answer->kind));
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
    place_nodes_join(samples, limits->max_age_seconds, &nodes);
    if (ask->model != NULL) {
        place_measured_join(samples, ask->model, limits, &nodes);
    }
    if (place_choose(ask->place->gbt, asked, &nodes, &choice, &err) < 0) {
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
    if (ask->model != NULL) {
        place_errors_collect(&ask->errors, ask->model, &nodes);
    }
    ask->status = ask->is_upload ? MHD_HTTP_CREATED : MHD_HTTP_OK;
    place_answer_write(ask->place->gbt, asked, &choice, ask->explain ? &nodes : NULL, &ask->answer);
}

static int read_request(struct ask *ask, struct place_request *ret, struct error *err) {
    struct http_request *request = ask->request;
    if (!ask->is_upload) {
        return place_request_read(ret, buf_str(&request->body), request->body.len, err);
    }
    int r = place_request_read_upload(ret, http_header(request, MHD_HTTP_HEADER_CONTENT_TYPE),
                                      buf_str(&request->body), request->body.len,
                                      ask->place->max_upload_memory, err);
    buf_finish(&request->body); /* it is large, and Prometheus may take its time */
    return r;
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

/* A repeating failure is logged when it begins and when it ends. */
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

/* Clients that do not ask for explain=1 cannot see why a node is never chosen. */
static void log_ambiguous(struct ask *ask) {
    struct buf *logged = &ask->place->ambiguous;
    if (ask->n_nodes == 0 || strcmp(buf_str(&ask->ambiguous), buf_str(logged)) == 0) {
        return;
    }
    if (ask->ambiguous.len > 0) {
        log_warn("place: several nodes share a name, none of them is chosen: %s",
                 buf_str(&ask->ambiguous));
    } else {
        log_info("place: node names are unique again");
    }
    buf_finish(logged);
    *logged = ask->ambiguous;
    ask->ambiguous = (struct buf){0};
}

static void ask_done(struct worker_job *job) {
    struct ask *ask = CONTAINER_OF(job, struct ask, job);
    struct place_metrics *metrics = &ask->place->metrics;
    bool is_good = ask->status < MHD_HTTP_BAD_REQUEST;
    metrics->query_seconds += ask->query_seconds;
    metrics->compute_seconds += ask->compute_seconds;
    if (is_good || ask->n_nodes > 0) {
        metrics->n_nodes = ask->n_nodes;
        metrics->n_excluded = ask->n_excluded;
    }
    metrics->results[is_good                                        ? PLACE_OK
                     : ask->status < MHD_HTTP_INTERNAL_SERVER_ERROR ? PLACE_BAD_REQUEST
                                                                    : PLACE_UNAVAILABLE]++;
    if (ask->model != NULL && is_good) {
        place_errors_replace(&metrics->errors, ask->model, &ask->errors);
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

static void handle_ask(struct http_request *request) {
    if (!http_hold(request)) {
        return;
    }
    struct ask *ask = mem_zalloc(1, sizeof(*ask));
    const char *model = http_url_parameter(&request->url, "model");
    *ask = (struct ask){
        .place = place_of(request),
        .request = request,
        .job = {.run = ask_run, .done = ask_done},
        .is_upload = strcmp(request->route->path, "/upload") == 0,
        .explain = is_on(http_url_parameter(&request->url, "explain")),
        .model = model != NULL && model[0] != '\0' ? model : NULL,
    };
    worker_submit(ask->place->worker, &ask->job);
}

static void handle_metrics(struct http_request *request) {
    struct snapshot snapshot CLEANUP_SNAPSHOT = {0};
    place_metrics_add(&snapshot, &place_of(request)->metrics);
    service_reply_metrics(request, &snapshot);
}

static const struct http_route routes[] = {
    {NULL, "/metrics", HTTP_GET | HTTP_HEAD, .handle = handle_metrics},
    {"/-/healthy", "/-/healthy", HTTP_GET | HTTP_HEAD, .health = true, .handle = http_health_alive},
    {"/-/ready", "/-/ready", HTTP_GET | HTTP_HEAD, .health = true, .handle = http_health_ready},
    {"/api/profiling", "/api/profiling", HTTP_POST, .takes_body = true, .handle = handle_ask},
    {"/upload", "/upload", HTTP_POST, .takes_body = true, .handle = handle_ask},
};

/* ---- the command ---- */

static int start(struct place *place, struct error *err) {
    const struct settings *settings = place->service.config->settings;
    place->limits = (struct place_measured_limits){
        .min_samples = (double)settings_int(settings, "measured-min-samples"),
        .max_age_seconds = (double)settings_duration_ms(settings, "max-age") / 1e3,
    };
    place->max_upload_memory = (size_t)settings_int(settings, "upload.max-memory");
    for (int i = 0; i < N_PLACE_QUERIES; i++) {
        add_query(settings, (enum place_query)i, &place->queries[i]);
    }
    /* First, as it blocks the signals that we wait for: libraries start threads. */
    int r = service_open(&place->service, err);
    r = r < 0 ? r : web_client_create(&place->prometheus, &place->client, err);
    r = r < 0 ? r : load_predictor(settings, &place->gbt, err);
    if (r == 0) {
        place_metrics_init(&place->metrics, place->gbt);
    }
    r = r < 0 ? r : worker_create(place->service.loop, "place", &place->worker, err);
    return r < 0 ? r : service_listen(&place->service, routes, ARRAY_LEN(routes), err);
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
    if (place->client != NULL) {
        web_client_abort(place->client);
    }
    service_close(&place->service, worker_destroy(TAKE(place->worker), STOP_MS), code);
    return code;
}

static int read_flags(struct place *place, int argc, char **argv, struct problems *problems) {
    int r = service_init(&place->service, "place", DEFAULT_ADDRESS, options, argc, argv, problems);
    if (r == 0 && place->service.flags.n_words > 0) {
        problems_add(problems, "place", 0, 0,
                     "%s: neither a flag nor a command (see waap place --help)",
                     place->service.flags.words[0]);
        r = -EINVAL;
    }
    return r < 0 ? r : read_endpoint(place, problems);
}

static int service_main(int argc, char **argv) {
    struct place place = {0};
    struct problems problems CLEANUP_PROBLEMS = {0};
    int code = EXIT_USAGE;
    if (read_flags(&place, argc, argv, &problems) < 0) {
        problems_print(&problems, stderr);
    } else {
        code = run(&place);
    }
    service_finish(&place.service);
    place_metrics_finish(&place.metrics);
    gbt_destroy(place.gbt);
    web_client_destroy(place.client);
    buf_finish(&place.url);
    buf_finish(&place.ambiguous);
    for (size_t i = 0; i < N_PLACE_QUERIES; i++) {
        buf_finish(&place.queries[i]);
    }
    return code;
}

static const struct {
    const char *name;
    const char *summary;
    int (*run)(int argc, char **argv); /* argv[0] is the name; also answers --help */
} commands[] = {
    {"collect", "Measure how long a model's application runs here", collect_main},
    {"import", "Make a predictor of a model in XGBoost's JSON", import_main},
    {"simulate", "Print made-up runs to train with", simulate_main},
    {"train", "Train the predictor with measured runs", train_main},
};

static int help(void) {
    printf("usage: waap place [flags]\n"
           "       waap place COMMAND [arguments]\n\n"
           "Answers POST /api/profiling and POST /upload: on which of the nodes that Prometheus\n"
           "knows a model would run fastest.\n\n");
    flags_print_help(options, stdout);
    printf("  --web.…, --log.…                As of waap serve; the address is :7001\n\n");
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        printf("  waap place %-9s  %s\n", commands[i].name, commands[i].summary);
    }
    return 0;
}

int place_main(int argc, char **argv) {
    for (size_t i = 0; argc > 1 && i < ARRAY_LEN(commands); i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            return commands[i].run(argc - 1, argv + 1);
        }
    }
    return flags_ask_for_help(argc, argv) ? help() : service_main(argc, argv);
}
