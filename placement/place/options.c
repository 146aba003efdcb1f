#include "placement/place/options.h"

#include <errno.h>
#include <string.h>

#include "exporter/core/version.h"
#include "placement/predictor/predictor.h"

static const struct option option_load_window = {
    .name = "load-window",
    .type = OPTION_DURATION,
    .default_text = "1m",
    .min = 1000,
    .max = 3600000,
    .help = "The load of a node is the mean over this time; at least two scrapes",
};
static const struct option option_max_age = {
    .name = "max-age",
    .type = OPTION_DURATION,
    .default_text = "2m",
    .min = 1000,
    .max = 86400000,
    .help = "Nodes whose last samples are older are not chosen",
};
static const struct option option_measured_min_samples = {
    .name = "measured-min-samples",
    .type = OPTION_INT,
    .default_text = "10",
    .min = 1,
    .max = 1000000000,
    .help = "Measured times of fewer runs than these do not replace a prediction",
};
static const struct option option_measured_window = {
    .name = "measured-window",
    .type = OPTION_DURATION,
    .default_text = "10m",
    .min = 1000,
    .max = 86400000,
    .help = "Measured times are the mean over this time",
};
static const struct option option_predictor = {
    .name = "predictor",
    .type = OPTION_STRING,
    .help = "File of waap place train; default is the one that was made while building",
};
static const struct option option_bearer_token_file = {
    .name = "prometheus.bearer-token-file",
    .type = OPTION_STRING,
    .help = "File with a token, read again for every request",
};
static const struct option option_ca_file = {
    .name = "prometheus.ca-file",
    .type = OPTION_STRING,
    .help = "Certificates to trust instead of the system's",
};
static const struct option option_cert_file = {
    .name = "prometheus.cert-file",
    .type = OPTION_STRING,
    .help = "Certificate of our own",
};
static const struct option option_header = {
    .name = "prometheus.header",
    .type = OPTION_STRING,
    .repeatable = true,
    .help = "A further header, such as \"X-Scope-OrgID: edge\"; repeatable",
};
static const struct option option_insecure = {
    .name = "prometheus.insecure",
    .type = OPTION_BOOL,
    .help = "Take any certificate",
};
static const struct option option_key_file = {
    .name = "prometheus.key-file",
    .type = OPTION_STRING,
    .help = "Key of our certificate",
};
static const struct option option_password_file = {
    .name = "prometheus.password-file",
    .type = OPTION_STRING,
    .help = "File with the password of --prometheus.user",
};
static const struct option option_query_disk = {
    .name = "query.disk",
    .type = OPTION_STRING,
    .help = "Instead of our own: how full / is in percent, with the labels node or instance",
};
static const struct option option_query_load = {
    .name = "query.load",
    .type = OPTION_STRING,
    .help = "Instead of our own: how busy all CPUs are in percent, such as "
            "\"100 * node:cpu_utilization:ratio\"",
};
static const struct option option_query_measured = {
    .name = "query.measured",
    .type = OPTION_STRING,
    .help =
        "Instead of our own: how long \"$model\" runs, with the labels node or instance, model, "
        "and quantity: seconds, samples, age",
};
static const struct option option_timeout = {
    .name = "prometheus.timeout",
    .type = OPTION_DURATION,
    .default_text = "10s",
    .min = 100,
    .max = 600000,
    .help = "How long to wait for each answer",
};
static const struct option option_url = {
    .name = "prometheus.url",
    .type = OPTION_STRING,
    .help = "Where Prometheus is, with its path if any; default http://$PROMETHEUS_IP, else "
            "http://localhost:9090",
};
static const struct option option_user = {
    .name = "prometheus.user",
    .type = OPTION_STRING,
    .help = "User to ask as",
};

static const struct option option_upload_max_memory = {
    .name = "upload.max-memory",
    .type = OPTION_SIZE,
    .default_text = "20MiB",
    .min = 64 << 10,
    .max = 1 << 30,
    .help = "What the graph of an uploaded model may take beside its file; beyond it is answered "
            "413",
};

const struct option *const place_options[] = {
    &option_load_window,       &option_max_age,    &option_measured_min_samples,
    &option_measured_window,   &option_predictor,  &option_bearer_token_file,
    &option_ca_file,           &option_cert_file,  &option_header,
    &option_insecure,          &option_key_file,   &option_password_file,
    &option_timeout,           &option_url,        &option_user,
    &option_query_disk,        &option_query_load, &option_query_measured,
    &option_upload_max_memory,
};
const size_t place_n_options = ARRAY_LEN(place_options);

static void add_url(const struct settings *settings, struct buf *out) {
    const char *url = settings_string(settings, "prometheus.url");
    const char *address = getenv("PROMETHEUS_IP");
    if (url[0] != '\0') {
        buf_add_str(out, url);
    } else if (address != NULL && address[0] != '\0') {
        buf_printf(out, "http://%s", address);
    } else {
        buf_add_str(out, "http://localhost:9090");
    }
}

int place_options_check(const struct settings *settings, struct problems *problems) {
    struct buf url CLEANUP_BUF = {0};
    struct error err;
    add_url(settings, &url);
    if (web_url_check(buf_str(&url), &err) == 0) {
        return 0;
    }
    bool is_flag = settings_string(settings, "prometheus.url")[0] != '\0';
    problems_add(problems, is_flag ? "--prometheus.url" : "PROMETHEUS_IP", 0, 0, "%s", err.text);
    return -EINVAL;
}

void place_options_endpoint(const struct settings *settings, struct buf *url,
                            struct web_endpoint *ret_endpoint) {
    add_url(settings, url);
    *ret_endpoint = (struct web_endpoint){
        .url = buf_str(url),
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
}

void place_options_query(const struct settings *settings, enum place_query query, struct buf *out) {
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

int place_options_predictor(const struct settings *settings, struct gbt **ret_gbt,
                            struct error *err) {
    struct buf path CLEANUP_BUF = {0};
    buf_add_str(&path, settings_string(settings, "predictor"));
    if (path.len == 0) {
        find_predictor(&path);
        if (access(buf_str(&path), F_OK) < 0) {
            return error_set(err, -ENOENT,
                             "no predictor at %s: make one with waap place train, and name it by "
                             "--predictor",
                             buf_str(&path));
        }
    }
    return gbt_load(buf_str(&path), feature_names, N_FEATURES, ret_gbt, err);
}
