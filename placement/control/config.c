#include "placement/control/config.h"

#include <errno.h>
#include <string.h>

#include "exporter/core/file.h"
#include "placement/client/endpoint_keys.h"
#include "placement/control/draft.h"

enum { MAX_CONFIG_BYTES = 1 << 20, MAX_LOOPS = 100 };

static void read_loop(struct yaml_reader *reader, const struct yaml_node *node, size_t index,
                      void *to) {
    (void)index;
    struct control_config *config = to;
    struct control_draft draft;
    control_draft_read(reader, node, &draft);
    if (node->kind == YAML_KIND_MAPPING) {
        control_draft_finish(reader, node, &draft);
    }
    config->loops[config->n_loops++] = draft.loop;
}

/* ---- between loops ---- */

static bool may_be_same(const char *a, const char *b) {
    return a == NULL || b == NULL || strcmp(a, b) == 0;
}

/* Two that turn one knob would fight. What is not given may be anything. */
static bool share_a_knob(const struct control_knob_name *a, const struct control_knob_name *b) {
    return a->plugin != NULL && b->plugin != NULL && strcmp(a->plugin, b->plugin) == 0 &&
           a->param != NULL && b->param != NULL && strcmp(a->param, b->param) == 0 &&
           may_be_same(a->container, b->container) && may_be_same(a->job, b->job) &&
           may_be_same(a->namespace, b->namespace) && may_be_same(a->pod, b->pod);
}

static void check_pair(struct yaml_reader *reader, const struct yaml_node *node,
                       const struct control_loop_config *loop,
                       const struct control_loop_config *earlier) {
    if (loop->name != NULL && earlier->name != NULL && strcmp(loop->name, earlier->name) == 0) {
        yaml_key_complain(reader, node, "another loop is called %s", loop->name);
    }
    if (share_a_knob(&loop->knob, &earlier->knob)) {
        yaml_key_complain(reader, node, "the loop %s turns the same knob, %s of %s", earlier->name,
                          loop->knob.param, loop->knob.plugin);
    }
}

static void read_loops(struct yaml_reader *reader, const struct yaml_key *key,
                       const struct yaml_node *node, void *to) {
    (void)key;
    struct control_config *config = to;
    if (node->kind == YAML_KIND_SEQUENCE && node->n_items > MAX_LOOPS) {
        yaml_key_complain(reader, node, "more than %d loops", MAX_LOOPS);
        return;
    }
    config->loops = arena_take(&config->arena, (node->n_items + 1) * sizeof(*config->loops));
    if (config->loops == NULL) {
        return;
    }
    yaml_key_each(reader, node, read_loop, config);
    for (size_t i = 1; i < config->n_loops; i++) {
        for (size_t k = 0; k < i; k++) {
            check_pair(reader, &node->items[i], &config->loops[i], &config->loops[k]);
        }
    }
}

/* ---- the file ---- */

/* An empty text is one: all namespaces. */
static void read_namespace(struct yaml_reader *reader, const struct yaml_key *key,
                           const struct yaml_node *node, void *to) {
    (void)key;
    if (node->kind != YAML_KIND_SCALAR) {
        yaml_key_complain(reader, node, "expected a text, got %s", yaml_node_kind_name(node));
        return;
    }
    const char *copy = arena_copy(reader->arena, node->text, strlen(node->text) + 1);
    *(const char **)to = copy != NULL ? copy : "";
}

static const struct yaml_key waggle_keys[] = {
    {"directory", yaml_key_text, offsetof(struct control_config, waggle.directory), {0}},
    {"interval",
     yaml_key_number,
     offsetof(struct control_config, waggle.interval_ms),
     {.type = OPTION_DURATION, .min = 100, .max = 24 * 3600 * 1000}},
    {"namespace", read_namespace, offsetof(struct control_config, waggle.namespace), {0}},
    {0},
};

static void read_waggle(struct yaml_reader *reader, const struct yaml_key *key,
                        const struct yaml_node *node, void *to) {
    (void)key;
    struct control_config *config = to;
    config->waggle.directory = "/run/metrics";
    yaml_key_read_all(reader, waggle_keys, node, config);
}

static const struct yaml_key keys[] = {
    {"exporter", endpoint_keys_read, offsetof(struct control_config, exporter), {0}},
    {"loops", read_loops, 0, {0}},
    {"metrics_path", yaml_key_text, offsetof(struct control_config, metrics_path), {0}},
    {"prometheus", endpoint_keys_read, offsetof(struct control_config, prometheus), {0}},
    {"waggle", read_waggle, 0, {0}},
    {0},
};

/* What is asked must have an address. */
static void check_endpoints(const char *file, struct control_config *config,
                            struct problems *problems) {
    bool asks_prometheus = false;
    for (size_t i = 0; i < config->n_loops; i++) {
        asks_prometheus = asks_prometheus || !config->loops[i].from_exporter;
    }
    if (config->n_loops == 0 && config->waggle.directory == NULL) {
        problems_add(problems, file, 0, 0, "expected at least one loop under loops");
    }
    if (config->exporter.url == NULL) {
        problems_add(problems, file, 0, 0, "expected exporter: {url: …}, where the knobs are");
    }
    if (asks_prometheus && config->prometheus.url == NULL) {
        problems_add(problems, file, 0, 0, "expected prometheus: {url: …} for the queries");
    }
    if (config->metrics_path[0] != '/') {
        problems_add(problems, file, 0, 0, "metrics_path: expected a path that begins with /");
    }
}

int control_config_parse(const char *file, const char *text, size_t len,
                         struct control_config *config, struct problems *problems) {
    size_t n_before = problems->n_lines;
    *config = (struct control_config){.metrics_path = "/metrics",
                                      .waggle = {.namespace = "ses", .interval_ms = 30 * 1000}};
    struct yaml_doc *doc CLEANUP_YAML_DOC = yaml_doc_parse(file, text, len, problems);
    if (doc == NULL) {
        return -EINVAL;
    }
    struct yaml_reader reader = {.file = file, .problems = problems, .arena = &config->arena};
    yaml_key_read_all(&reader, keys, yaml_doc_root(doc), config);
    buf_finish(&reader.path);
    if (problems->n_lines == n_before) {
        check_endpoints(file, config, problems);
    }
    return problems->n_lines > n_before ? -EINVAL : 0;
}

int control_config_load(const char *path, struct control_config *config,
                        struct problems *problems) {
    struct buf text CLEANUP_BUF = {0};
    struct error err;
    *config = (struct control_config){0};
    if (file_read_stored(path, MAX_CONFIG_BYTES, &text, &err) < 0) {
        problems_add(problems, "control", 0, 0, "%s", err.text);
        return -EINVAL;
    }
    return control_config_parse(path, buf_str(&text), text.len, config, problems);
}

void control_config_finish(struct control_config *config) {
    for (size_t i = 0; i < config->n_loops; i++) {
        selector_destroy(config->loops[i].selector);
    }
    arena_finish(&config->arena);
    *config = (struct control_config){0};
}

int control_config_level(const struct control_loop_config *loop, const struct knob_value *value) {
    for (size_t i = 0; i < loop->n_levels; i++) {
        if (knob_value_equal(&loop->levels[i], value)) {
            return (int)i;
        }
    }
    return -1;
}
