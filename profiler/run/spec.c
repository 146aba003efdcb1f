#include "profiler/run/spec.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/buf.h"
#include "exporter/core/file.h"
#include "exporter/core/number.h"
#include "exporter/settings/yaml.h"

enum {
    MAX_BYTES = 1 << 20,
    MAX_ITEMS = 100, /* targets, services or gates */
    MAX_NAME = 64,
    MAX_REPEATS = 1000,
    MIN_INTERVAL_MS = 10,
    MAX_INTERVAL_MS = 10 * 1000,
    DAY_MS = 24 * 60 * 60 * 1000,
};

/* ---- words ---- */

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Takes one word and moves `*at` behind it. */
static int take_word(const char **at, struct buf *word, struct error *err) {
    char quote = '\0';
    for (; **at != '\0' && (quote != '\0' || !is_blank(**at)); ++*at) {
        char c = **at;
        if (c == quote) {
            quote = '\0';
        } else if (quote == '\0' && (c == '\'' || c == '"')) {
            quote = c;
        } else if (c == '\\' && quote != '\'') {
            c = *++*at;
            if (c == '\0') {
                return error_set(err, -EINVAL, "expected a character after the last \\");
            }
            buf_add_char(word, c);
        } else {
            buf_add_char(word, c);
        }
    }
    return quote == '\0' ? 0 : error_set(err, -EINVAL, "expected a closing %c", quote);
}

const char *const *run_args_list(struct buf *words, struct arena *arena) {
    const char *end = NULL;
    buf_add(words, &end, sizeof(end));
    return arena_copy(arena, words->data, words->len);
}

int run_args_split(const char *text, struct arena *arena, const char *const **ret_words,
                   struct error *err) {
    struct buf words CLEANUP_BUF = {0};
    for (;;) {
        while (is_blank(*text)) {
            text++;
        }
        if (*text == '\0') {
            *ret_words = run_args_list(&words, arena);
            return 0;
        }
        struct buf word CLEANUP_BUF = {0};
        int r = take_word(&text, &word, err);
        if (r < 0) {
            return r;
        }
        const char *copy = arena_copy(arena, buf_str(&word), word.len + 1);
        buf_add(&words, &copy, sizeof(copy));
    }
}

static void add_word(struct yaml_reader *reader, struct buf *words, const char *text) {
    const char *copy = arena_copy(reader->arena, text, strlen(text) + 1);
    buf_add(words, &copy, sizeof(copy));
}

static void read_word(struct yaml_reader *reader, const struct yaml_node *node, size_t index,
                      void *to) {
    (void)index;
    const char *text = yaml_key_scalar(reader, node);
    if (text != NULL) {
        add_word(reader, to, text);
    }
}

static void read_words(struct yaml_reader *reader, const struct yaml_key *key,
                       const struct yaml_node *node, void *to) {
    (void)key;
    const char *const **list = to;
    struct error err;
    if (node->kind == YAML_KIND_SCALAR) {
        const char *text = yaml_node_is_null(node) ? "" : node->text;
        if (run_args_split(text, reader->arena, list, &err) < 0) {
            yaml_key_complain(reader, node, "%s", err.text);
        }
        return;
    }
    if (node->kind != YAML_KIND_SEQUENCE) {
        yaml_key_complain(reader, node, "expected a list or one text, got a mapping");
        return;
    }
    struct buf words CLEANUP_BUF = {0};
    yaml_key_each(reader, node, read_word, &words);
    *list = run_args_list(&words, reader->arena);
}

static void read_env(struct yaml_reader *reader, const struct yaml_key *key,
                     const struct yaml_node *node, void *to) {
    (void)key;
    if (node->kind != YAML_KIND_MAPPING && !yaml_node_is_null(node)) {
        yaml_key_complain(reader, node, "expected names and values, got %s",
                          yaml_node_kind_name(node));
        return;
    }
    struct buf words CLEANUP_BUF = {0};
    size_t len = reader->path.len;
    for (size_t i = 0; i < node->n_items; i++) {
        const struct yaml_node *item = &node->items[i];
        buf_printf(&reader->path, ".%s", item->key);
        if (item->key[0] == '\0' || strchr(item->key, '=') != NULL) {
            yaml_key_complain(reader, item, "expected the name of a variable");
        } else if (item->kind != YAML_KIND_SCALAR) {
            yaml_key_complain(reader, item, "expected a value, got %s", yaml_node_kind_name(item));
        } else {
            struct buf pair CLEANUP_BUF = {0};
            buf_printf(&pair, "%s=%s", item->key, yaml_node_is_null(item) ? "" : item->text);
            add_word(reader, &words, buf_str(&pair));
        }
        buf_truncate(&reader->path, len);
    }
    *(const char *const **)to = run_args_list(&words, reader->arena);
}

#define KEY(key, reader, type, field)                                                              \
    { .name = (key), .read = (reader), .offset = offsetof(type, field) }
#define KEY_INT(key, in, field, ...)                                                               \
    {                                                                                              \
        .name = (key), .read = yaml_key_number, .offset = offsetof(in, field), .option = {         \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define KEY_MS(key, in, field, low, high)                                                          \
    KEY_INT(key, in, field, .type = OPTION_DURATION, .min = (low), .max = (high))

typedef void yaml_read_item(struct yaml_reader *reader, const struct yaml_node *item, size_t index,
                            void *to);

/* ---- lists of structs ---- */

/* Reads a list of structs, which begin as a copy of `defaults`; returns them, or NULL. */
static void *read_items(struct yaml_reader *reader, const struct yaml_node *node,
                        const void *defaults, size_t size, yaml_read_item *read, size_t *ret_n) {
    size_t n = node->n_items;
    if (n > MAX_ITEMS) {
        yaml_key_complain(reader, node, "expected at most %d, got %zu", MAX_ITEMS, n);
        return NULL;
    }
    char *items = arena_take(reader->arena, n * size);
    for (size_t i = 0; i < n; i++) {
        memcpy(items + i * size, defaults, size);
    }
    *ret_n = node->kind == YAML_KIND_SEQUENCE ? n : 0;
    yaml_key_each(reader, node, read, items);
    return items;
}

/* ---- mounts ---- */

static const struct yaml_key mount_keys[] = {
    YAML_KEY_TEXT("source", struct run_mount, source),
    YAML_KEY_TEXT("target", struct run_mount, target),
    KEY_INT("writable", struct run_mount, writable, .type = OPTION_BOOL),
    {0},
};

static void read_mount(struct yaml_reader *reader, const struct yaml_node *node, size_t index,
                       void *to) {
    struct run_mount *mount = &((struct run_mount *)to)[index];
    size_t n_before = reader->problems->n_lines;
    yaml_key_read_all(reader, mount_keys, node, mount);
    if (reader->problems->n_lines == n_before &&
        (mount->source == NULL || mount->target == NULL || mount->target[0] != '/')) {
        yaml_key_complain(reader, node,
                          "expected a source and, as target, an absolute path in the container");
    }
}

static void read_mounts(struct yaml_reader *reader, const struct yaml_key *key,
                        const struct yaml_node *node, void *to) {
    (void)key;
    static const struct run_mount plain;
    struct run_mounts *mounts = to;
    mounts->items = read_items(reader, node, &plain, sizeof(plain), read_mount, &mounts->n);
}

/* ---- services ---- */

static const struct yaml_key ready_keys[] = {
    KEY_MS("delay", struct run_service, ready_delay_ms, 0, DAY_MS),
    YAML_KEY_TEXT("file", struct run_service, ready_file),
    YAML_KEY_TEXT("tcp", struct run_service, ready_tcp),
    KEY_MS("timeout", struct run_service, ready_timeout_ms, 1, DAY_MS),
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

#define NAME_EXPECTED "expected at most 64 letters, digits, '.', '_' and '-'"

static bool name_good(const char *name) {
    size_t len = strlen(name);
    return len > 0 && len <= MAX_NAME && name[0] != '.' && name[0] != '-' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == len;
}

/* The service "playback" of local/playback:1.2. */
static const char *name_of_image(struct yaml_reader *reader, const char *image) {
    const char *slash = strrchr(image, '/');
    const char *base = slash != NULL ? slash + 1 : image;
    size_t len = strcspn(base, ":@");
    char *name = arena_copy(reader->arena, base, len + 1);
    name[len] = '\0';
    return name;
}

static const struct yaml_key service_keys[] = {
    KEY("command", read_words, struct run_service, command),
    KEY("env", read_env, struct run_service, env),
    YAML_KEY_TEXT("image", struct run_service, image),
    KEY("mounts", read_mounts, struct run_service, mounts),
    YAML_KEY_TEXT("name", struct run_service, name),
    {"ready", read_ready, 0, {0}},
    {0},
};

static void read_service(struct yaml_reader *reader, const struct yaml_node *node, size_t index,
                         void *to) {
    struct run_service *service = &((struct run_service *)to)[index];
    yaml_key_read_all(reader, service_keys, node, service);
    if (service->image == NULL && (service->command == NULL || service->command[0] == NULL)) {
        yaml_key_complain(reader, node, "expected a command or an image");
    }
    if (service->image == NULL && service->mounts.n > 0) {
        yaml_key_complain(reader, node, "mounts: expected an image with them");
    }
    if (service->name == NULL) {
        service->name = service->image != NULL ? name_of_image(reader, service->image) : "service";
    }
    if (service->image != NULL && !name_good(service->name)) {
        yaml_key_complain(reader, node, "name: " NAME_EXPECTED ", got \"%s\"", service->name);
    }
}

/* ---- gates ---- */

/* A number; a change may be a percentage. */
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

static const struct yaml_key gate_keys[] = {
    KEY("max", read_limit, struct run_gate, limits[GATE_MAX]),
    KEY("max_decrease", read_limit, struct run_gate, limits[GATE_MAX_DECREASE]),
    KEY("max_increase", read_limit, struct run_gate, limits[GATE_MAX_INCREASE]),
    YAML_KEY_TEXT("metric", struct run_gate, metric),
    KEY("min", read_limit, struct run_gate, limits[GATE_MIN]),
    YAML_KEY_TEXT("target", struct run_gate, target),
    {0},
};

static void read_gate(struct yaml_reader *reader, const struct yaml_node *node, size_t index,
                      void *to) {
    struct run_gate *gate = &((struct run_gate *)to)[index];
    size_t n_before = reader->problems->n_lines;
    yaml_key_read_all(reader, gate_keys, node, gate);
    bool limited = false;
    for (size_t i = 0; i < N_GATE_KINDS; i++) {
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

/* ---- lists of known words ---- */

static const char *const metric_groups[] = {"app",     "gpu",    "gpu-summary", "power",
                                            "process", "system", NULL};
static const int64_t group_bits[] = {RUN_METRICS_APP,   RUN_METRICS_GPU,     RUN_METRICS_GPU,
                                     RUN_METRICS_POWER, RUN_METRICS_PROCESS, RUN_METRICS_SYSTEM};
static const char *const format_choices[] = {"csv",         "html",         "jsonl", "junit",
                                             "openmetrics", "summary.json", NULL};

/* The index of a word; -1 with a problem that lists the known words. */
static int64_t read_choice(struct yaml_reader *reader, const struct yaml_node *node,
                           const char *const *choices) {
    const struct yaml_key key = {.option = {.type = OPTION_CHOICE, .choices = choices}};
    int64_t index = -1;
    yaml_key_number(reader, &key, node, &index);
    return index;
}

static void read_metric_group(struct yaml_reader *reader, const struct yaml_node *node,
                              size_t index, void *to) {
    (void)index;
    int64_t group = read_choice(reader, node, metric_groups);
    *(int64_t *)to |= group >= 0 ? group_bits[group] : 0;
}

/* The metrics of the application and its processes are always recorded. */
static void read_metrics(struct yaml_reader *reader, const struct yaml_key *key,
                         const struct yaml_node *node, void *to) {
    (void)key;
    *(int64_t *)to = RUN_METRICS_APP | RUN_METRICS_PROCESS;
    yaml_key_each(reader, node, read_metric_group, to);
}

static void read_format(struct yaml_reader *reader, const struct yaml_node *node, size_t index,
                        void *to) {
    (void)index;
    if (read_choice(reader, node, format_choices) >= 0) {
        add_word(reader, to, node->text);
    }
}

static void read_formats(struct yaml_reader *reader, const struct yaml_key *key,
                         const struct yaml_node *node, void *to) {
    (void)key;
    struct buf words CLEANUP_BUF = {0};
    yaml_key_each(reader, node, read_format, &words);
    *(const char *const **)to = run_args_list(&words, reader->arena);
}

/* The section while it is read, with the defaults that it has for its targets. */
struct section {
    struct run_spec spec;
    struct run_target common;
    const struct yaml_node *targets;
};

static const char *const gpu_choices[] = {
    [RUN_GPU_AUTO] = "auto",
    [RUN_GPU_ALL] = "all",
    [RUN_GPU_NONE] = "none",
    NULL,
};

static const char *const no_words[] = {NULL};

/* ---- targets ---- */

#define TARGET_KEYS(in, prefix)                                                                    \
    KEY("args", read_words, in, prefix args), KEY("command", read_words, in, prefix command),      \
        YAML_KEY_TEXT("dataset", in, prefix dataset), KEY("env", read_env, in, prefix env),        \
        KEY_INT("gpu", in, prefix gpu, .type = OPTION_CHOICE, .choices = gpu_choices),             \
        YAML_KEY_TEXT("image", in, prefix image),                                                  \
        KEY_INT("init", in, prefix init, .type = OPTION_BOOL),                                     \
        KEY("mounts", read_mounts, in, prefix mounts),                                             \
        KEY_INT("repeats", in, prefix repeats, .type = OPTION_INT, .min = 1, .max = MAX_REPEATS),  \
        KEY_MS("timeout", in, prefix timeout_ms, 0, DAY_MS),                                       \
        KEY_INT("warmup", in, prefix warmup, .type = OPTION_INT, .max = MAX_REPEATS)

static const struct yaml_key target_keys[] = {
    TARGET_KEYS(struct run_target, ),
    YAML_KEY_TEXT("name", struct run_target, name),
    {0},
};

/* Names become parts of file names and series, so they must be plain and unique. */
static void check_name(struct yaml_reader *reader, const struct yaml_node *node,
                       const struct run_target *targets, size_t index) {
    const char *name = targets[index].name;
    if (!name_good(name)) {
        yaml_key_complain(reader, node, "name: " NAME_EXPECTED ", got \"%s\"", name);
    }
    for (size_t i = 0; i < index; i++) {
        if (strcmp(targets[i].name, name) == 0) {
            yaml_key_complain(reader, node, "name: \"%s\" is also the name of targets[%zu]", name,
                              i);
        }
    }
}

static void read_target(struct yaml_reader *reader, const struct yaml_node *node, size_t index,
                        void *to) {
    struct run_target *targets = to, *target = &targets[index];
    if (node->kind != YAML_KIND_MAPPING) {
        yaml_key_complain(reader, node,
                          "expected a mapping such as {args: …, timeout: 120}, got %s",
                          yaml_node_kind_name(node));
    } else {
        yaml_key_read_all(reader, target_keys, node, target);
    }
    if (target->name == NULL) {
        char number[24];
        int len = snprintf(number, sizeof(number), "%zu", index + 1);
        target->name = arena_copy(reader->arena, number, (size_t)len + 1);
    }
    check_name(reader, node, targets, index);
}

/* ---- the lists of the section ---- */

static void read_services(struct yaml_reader *reader, const struct yaml_key *key,
                          const struct yaml_node *node, void *to) {
    (void)key;
    static const struct run_service plain = {.ready_timeout_ms = 30 * 1000};
    struct run_spec *spec = to;
    spec->services =
        read_items(reader, node, &plain, sizeof(plain), read_service, &spec->n_services);
}

static void read_gates(struct yaml_reader *reader, const struct yaml_key *key,
                       const struct yaml_node *node, void *to) {
    (void)key;
    static const struct run_gate plain = {.limits = {NAN, NAN, NAN, NAN}};
    struct run_spec *spec = to;
    spec->gates = read_items(reader, node, &plain, sizeof(plain), read_gate, &spec->n_gates);
}

/* Targets are read last, when their defaults are known. */
static void note_targets(struct yaml_reader *reader, const struct yaml_key *key,
                         const struct yaml_node *node, void *to) {
    (void)reader;
    (void)key;
    *(const struct yaml_node **)to = node;
}

static void read_targets(struct yaml_reader *reader, struct section *section) {
    struct run_spec *spec = &section->spec;
    struct run_target plain = section->common;
    size_t len = reader->path.len;
    plain.name = NULL;
    buf_add_str(&reader->path, ".targets");
    if (section->targets != NULL) {
        spec->targets = read_items(reader, section->targets, &plain, sizeof(plain), read_target,
                                   &spec->n_targets);
    }
    buf_truncate(&reader->path, len);
    if (spec->n_targets == 0) {
        plain.name = "1";
        spec->targets = arena_copy(reader->arena, &plain, sizeof(plain));
        spec->n_targets = 1;
    }
}

/* ---- the section and the file ---- */

static const struct yaml_key sampling_keys[] = {
    KEY_MS("baseline", struct run_spec, baseline_ms, 0, DAY_MS),
    KEY_MS("cooldown", struct run_spec, cooldown_ms, 0, DAY_MS),
    KEY_MS("cooldown_max", struct run_spec, cooldown_max_ms, 0, DAY_MS),
    KEY_MS("interval", struct run_spec, interval_ms, MIN_INTERVAL_MS, MAX_INTERVAL_MS),
    {0},
};

static const struct yaml_key output_keys[] = {
    YAML_KEY_TEXT("dir", struct run_spec, out_dir),
    KEY("formats", read_formats, struct run_spec, formats),
    {0},
};

static void read_part(struct yaml_reader *reader, const struct yaml_key *key,
                      const struct yaml_node *node, void *to) {
    bool is_output = strcmp(key->name, "output") == 0;
    yaml_key_read_all(reader, is_output ? output_keys : sampling_keys, node, to);
}

static const struct yaml_key section_keys[] = {
    TARGET_KEYS(struct section, common.),
    KEY("gates", read_gates, struct section, spec),
    KEY_MS("grace", struct section, spec.grace_ms, 0, DAY_MS),
    KEY_MS("max_runtime", struct section, spec.max_runtime_ms, 1, DAY_MS),
    KEY("metrics", read_metrics, struct section, spec.metrics),
    KEY("output", read_part, struct section, spec),
    KEY("sampling", read_part, struct section, spec),
    KEY("services", read_services, struct section, spec),
    KEY("targets", note_targets, struct section, targets),
    {0},
};

static const struct run_target plain_target = {
    .name = "1",
    .args = no_words,
    .env = no_words,
    .init = true,
    .repeats = 1,
};

static void set_defaults(struct run_spec *spec) {
    *spec = (struct run_spec){
        .metrics = RUN_METRICS_APP | RUN_METRICS_GPU | RUN_METRICS_POWER | RUN_METRICS_PROCESS |
                   RUN_METRICS_SYSTEM,
        .interval_ms = 100,
        .baseline_ms = 2000,
        .cooldown_ms = 1000,
        .cooldown_max_ms = 30 * 1000,
        .grace_ms = 5000,
        .max_runtime_ms = 60 * 60 * 1000,
    };
}

void run_spec_init(struct run_spec *spec) {
    set_defaults(spec);
    spec->targets = arena_copy(&spec->arena, &plain_target, sizeof(plain_target));
    spec->n_targets = 1;
}

/* Reads a key of the rest of the file as text, whatever it looks like. */
static const char *read_plain(struct run_spec *spec, const struct yaml_node *root,
                              const char *key) {
    const struct yaml_node *node = yaml_node_get(root, key);
    bool said = node != NULL && node->kind == YAML_KIND_SCALAR && !yaml_node_is_null(node);
    return said ? arena_copy(&spec->arena, node->text, strlen(node->text) + 1) : NULL;
}

/* Waggle's registry has an application as "namespace/name:version". */
static void name_image(struct run_spec *spec, const char *namespace) {
    struct buf image CLEANUP_BUF = {0};
    if (spec->name != NULL && spec->version != NULL) {
        buf_printf(&image, "%s%s%s:%s", namespace != NULL ? namespace : "",
                   namespace != NULL ? "/" : "", spec->name, spec->version);
        spec->image = arena_copy(&spec->arena, buf_str(&image), image.len + 1);
    }
}

/* `profiling:` is at the top level or below `source:`. */
static const struct yaml_node *find_section(struct yaml_reader *reader,
                                            const struct yaml_node *root) {
    buf_add_str(&reader->path, "profiling");
    const struct yaml_node *node = yaml_node_get(root, "profiling");
    const struct yaml_node *source = yaml_node_get(root, "source");
    if (node == NULL && source != NULL && source->kind == YAML_KIND_MAPPING) {
        node = yaml_node_get(source, "profiling");
    }
    return node;
}

static void read_root(struct yaml_reader *reader, const struct yaml_node *root,
                      struct section *section) {
    if (root->kind != YAML_KIND_MAPPING) {
        problems_add(reader->problems, reader->file, root->line, root->column,
                     "expected a mapping, got %s", yaml_node_kind_name(root));
        return;
    }
    section->spec.name = read_plain(&section->spec, root, "name");
    section->spec.version = read_plain(&section->spec, root, "version");
    name_image(&section->spec, read_plain(&section->spec, root, "namespace"));
    const struct yaml_node *node = find_section(reader, root);
    if (node != NULL) {
        section->spec.has_section = true;
        yaml_key_read_all(reader, section_keys, node, section);
    }
    read_targets(reader, section);
}

int run_spec_parse(const char *file, const char *text, size_t len, struct run_spec *spec,
                   struct problems *problems) {
    set_defaults(spec);
    struct yaml_doc *doc CLEANUP_YAML_DOC = yaml_doc_parse(file, text, len, problems);
    if (doc == NULL) {
        return -EINVAL;
    }
    struct section section = {.spec = *spec, .common = plain_target};
    struct yaml_reader reader = {.file = file, .problems = problems, .arena = &section.spec.arena};
    read_root(&reader, yaml_doc_root(doc), &section);
    buf_finish(&reader.path);
    *spec = section.spec;
    spec->file = arena_copy(&spec->arena, file, strlen(file) + 1);
    return problems->n_lines == 0 ? 0 : -EINVAL;
}

int run_spec_load(const char *file, struct run_spec *spec, struct problems *problems) {
    struct buf text CLEANUP_BUF = {0};
    struct error err;
    set_defaults(spec);
    int r = file_read_stored(file, MAX_BYTES, &text, &err);
    if (r < 0) {
        problems_add(problems, "waap run", 0, 0, "%s", err.text);
        return r;
    }
    return run_spec_parse(file, buf_str(&text), text.len, spec, problems);
}

void run_spec_finish(struct run_spec *spec) {
    arena_finish(&spec->arena);
    *spec = (struct run_spec){0};
}

const struct run_target *run_spec_target(const struct run_spec *spec, const char *name) {
    for (size_t i = 0; i < spec->n_targets; i++) {
        if (strcmp(spec->targets[i].name, name) == 0) {
            return &spec->targets[i];
        }
    }
    char *end;
    unsigned long number = strtoul(name, &end, 10);
    return *end == '\0' && number >= 1 && number <= spec->n_targets ? &spec->targets[number - 1]
                                                                    : NULL;
}
