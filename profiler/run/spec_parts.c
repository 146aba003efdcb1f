#include "profiler/run/spec_parts.h"

#include <math.h>
#include <string.h>

#include "exporter/core/number.h"
#include "profiler/run/args.h"

const char *const run_limit_names[RUN_N_LIMITS] = {
    [RUN_MIN] = "min",
    [RUN_MAX] = "max",
    [RUN_MAX_INCREASE] = "max_increase",
    [RUN_MAX_DECREASE] = "max_decrease",
};

/* ---- services ---- */

static const struct yaml_key ready_keys[] = {
    {"delay", yaml_key_number, offsetof(struct run_service, ready_delay_ms),
     YAML_KEY_DURATION(0, RUN_SPEC_DAY_MS)},
    YAML_KEY_TEXT("file", struct run_service, ready_file),
    YAML_KEY_TEXT("tcp", struct run_service, ready_tcp),
    {"timeout", yaml_key_number, offsetof(struct run_service, ready_timeout_ms),
     YAML_KEY_DURATION(1, RUN_SPEC_DAY_MS)},
    {0},
};

static void read_ready(struct yaml_reader *reader, const struct yaml_key *key,
                       const struct yaml_node *node, void *to) {
    (void)key;
    yaml_key_read_all(reader, ready_keys, node, to);
    const struct run_service *service = to;
    const char *colon = service->ready_tcp != NULL ? strrchr(service->ready_tcp, ':') : NULL;
    const char *port = colon != NULL ? colon + 1 : service->ready_tcp;
    static const struct option port_option = {.type = OPTION_INT, .min = 1, .max = 65535};
    int64_t number;
    if (port != NULL && option_parse(&port_option, port, &number, NULL) < 0) {
        yaml_key_complain(reader, node, "tcp: expected a port or host:port, got \"%s\"",
                          service->ready_tcp);
    }
}

static const struct yaml_key service_keys[] = {
    RUN_KEY_WORDS("command", struct run_service, command),
    {"env", run_key_env, offsetof(struct run_service, env), {0}},
    YAML_KEY_TEXT("name", struct run_service, name),
    {"ready", read_ready, 0, {0}},
    {0},
};

void run_spec_read_service(struct yaml_reader *reader, const struct yaml_node *node, size_t index,
                           void *to) {
    struct run_service *service = &((struct run_service *)to)[index];
    *service = (struct run_service){.name = "service", .ready_timeout_ms = 30 * 1000};
    yaml_key_read_all(reader, service_keys, node, service);
    if (service->command == NULL || service->command[0] == NULL) {
        yaml_key_complain(reader, node, "expected a command");
    }
}

/* ---- gates ---- */

/* A number, or one with % behind it. */
static void read_limit(struct yaml_reader *reader, const struct yaml_key *key,
                       const struct yaml_node *node, void *to) {
    const char *text = yaml_key_scalar(reader, node);
    if (text == NULL) {
        return;
    }
    size_t len = strlen(text);
    bool change = strncmp(key->name, "max_", 4) == 0;
    bool percent = change && len > 0 && text[len - 1] == '%';
    double value;
    if (number_parse(text, len - percent, &value) < 0 || !isfinite(value) ||
        (change && value < 0)) {
        yaml_key_complain(reader, node, "expected a number%s, got \"%s\"",
                          change ? " such as 0.05 or 5%" : "", text);
        return;
    }
    *(double *)to = percent ? value / 100 : value;
}

#define LIMIT(key, limit)                                                                          \
    {                                                                                              \
        key, read_limit, offsetof(struct run_gate, limits[limit]), {                               \
            0                                                                                      \
        }                                                                                          \
    }

static const struct yaml_key gate_keys[] = {
    LIMIT("max", RUN_MAX),
    LIMIT("max_decrease", RUN_MAX_DECREASE),
    LIMIT("max_increase", RUN_MAX_INCREASE),
    YAML_KEY_TEXT("metric", struct run_gate, metric),
    LIMIT("min", RUN_MIN),
    YAML_KEY_TEXT("target", struct run_gate, target),
    {0},
};

void run_spec_read_gate(struct yaml_reader *reader, const struct yaml_node *node, size_t index,
                        void *to) {
    struct run_gate *gate = &((struct run_gate *)to)[index];
    *gate = (struct run_gate){.limits = {NAN, NAN, NAN, NAN}};
    size_t n_before = reader->problems->n_lines;
    yaml_key_read_all(reader, gate_keys, node, gate);
    bool limited = false;
    for (size_t i = 0; i < RUN_N_LIMITS; i++) {
        limited = limited || !isnan(gate->limits[i]);
    }
    if (reader->problems->n_lines > n_before) {
        return;
    }
    if (gate->metric == NULL) {
        yaml_key_complain(reader, node, "expected a metric, such as fps.p50");
    } else if (!limited) {
        yaml_key_complain(reader, node, "expected min, max, max_increase or max_decrease");
    }
}

/* ---- lists of words out of a set ---- */

struct choice {
    const char *name;
    int64_t bits;
};

static const struct choice metric_groups[] = {
    {"app", RUN_METRICS_APP},
    {"gpu", RUN_METRICS_GPU},
    {"gpu-summary", RUN_METRICS_GPU},
    {"power", RUN_METRICS_POWER},
    {"process", RUN_METRICS_PROCESS},
    {"system", RUN_METRICS_SYSTEM},
    {NULL, 0},
};
static const struct choice format_choices[] = {
    {"csv", 0},         {"html", 0},         {"jsonl", 0}, {"junit", 0},
    {"openmetrics", 0}, {"summary.json", 0}, {NULL, 0},
};

/* The bits of a word; -1 with a problem that lists the known ones. */
static int64_t choose(struct yaml_reader *reader, const struct yaml_node *node,
                      const struct choice *choices) {
    const char *text = yaml_key_scalar(reader, node);
    if (text == NULL) {
        return -1;
    }
    struct buf known CLEANUP_BUF = {0};
    for (size_t i = 0; choices[i].name != NULL; i++) {
        if (strcmp(choices[i].name, text) == 0) {
            return choices[i].bits;
        }
        buf_printf(&known, "%s%s", i > 0 ? ", " : "", choices[i].name);
    }
    yaml_key_complain(reader, node, "expected one of %s, got \"%s\"", buf_str(&known), text);
    return -1;
}

static void read_metric_group(struct yaml_reader *reader, const struct yaml_node *node,
                              size_t index, void *to) {
    (void)index;
    int64_t bits = choose(reader, node, metric_groups);
    *(int64_t *)to |= bits > 0 ? bits : 0;
}

/* The application's own figures and its cgroup's are always there: without them there is no
 * profile. */
void run_spec_read_metrics(struct yaml_reader *reader, const struct yaml_key *key,
                           const struct yaml_node *node, void *to) {
    (void)key;
    *(int64_t *)to = RUN_METRICS_APP | RUN_METRICS_PROCESS;
    yaml_key_each(reader, node, read_metric_group, to);
}

static void read_format(struct yaml_reader *reader, const struct yaml_node *node, size_t index,
                        void *to) {
    (void)index;
    if (choose(reader, node, format_choices) == 0) {
        const char *copy = arena_copy(reader->arena, node->text, strlen(node->text) + 1);
        buf_add(to, &copy, sizeof(copy));
    }
}

void run_spec_read_formats(struct yaml_reader *reader, const struct yaml_key *key,
                           const struct yaml_node *node, void *to) {
    (void)key;
    struct buf words CLEANUP_BUF = {0};
    yaml_key_each(reader, node, read_format, &words);
    *(const char *const **)to = run_args_list(&words, reader->arena);
}
