#include "profiler/run/spec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/file.h"
#include "profiler/run/spec_parts.h"

enum {
    MAX_BYTES = 1 << 20,
    MAX_ITEMS = 100, /* targets, services or gates */
    MAX_NAME = 64,
    MAX_REPEATS = 1000,
    MIN_INTERVAL_MS = 10,
    MAX_INTERVAL_MS = 10 * 1000,
};

/* The section as it is read: what it says of every target, and the rest. */
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
    RUN_KEY_WORDS("args", in, prefix args), RUN_KEY_WORDS("command", in, prefix command),          \
        YAML_KEY_TEXT("dataset", in, prefix dataset),                                              \
        {"env", run_key_env, offsetof(in, prefix env), {0}},                                       \
        {"gpu",                                                                                    \
         yaml_key_number,                                                                          \
         offsetof(in, prefix gpu),                                                                 \
         {.type = OPTION_CHOICE, .choices = gpu_choices}},                                         \
        YAML_KEY_TEXT("image", in, prefix image),                                                  \
        {"repeats",                                                                                \
         yaml_key_number,                                                                          \
         offsetof(in, prefix repeats),                                                             \
         {.type = OPTION_INT, .min = 1, .max = MAX_REPEATS}},                                      \
        {"timeout", yaml_key_number, offsetof(in, prefix timeout_ms),                              \
         YAML_KEY_DURATION(0, RUN_SPEC_DAY_MS)},                                                   \
    {                                                                                              \
        "warmup", yaml_key_number, offsetof(in, prefix warmup), {                                  \
            .type = OPTION_INT, .max = MAX_REPEATS                                                 \
        }                                                                                          \
    }

static const struct yaml_key target_keys[] = {
    TARGET_KEYS(struct run_target, ),
    YAML_KEY_TEXT("name", struct run_target, name),
    {0},
};

static bool name_good(const char *name) {
    size_t len = strlen(name);
    return len > 0 && len <= MAX_NAME && name[0] != '.' && name[0] != '-' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == len;
}

/* Names become those of files and of series, so they have to be plain and different. */
static void check_name(struct yaml_reader *reader, const struct yaml_node *node,
                       const struct run_target *targets, size_t index) {
    const char *name = targets[index].name;
    if (!name_good(name)) {
        yaml_key_complain(reader, node,
                          "name: expected at most 64 letters, digits, '.', '_' and '-', got \"%s\"",
                          name);
    }
    for (size_t i = 0; i < index; i++) {
        if (strcmp(targets[i].name, name) == 0) {
            yaml_key_complain(reader, node, "name: \"%s\" is that of targets[%zu] too", name, i);
        }
    }
}

static const char *number_name(struct arena *arena, size_t number) {
    char text[24];
    int len = snprintf(text, sizeof(text), "%zu", number);
    const char *copy = arena_copy(arena, text, (size_t)len + 1);
    return copy != NULL ? copy : "";
}

static void read_target(struct yaml_reader *reader, const struct yaml_node *node, size_t index,
                        void *to) {
    struct section *section = to;
    struct run_target *target = &section->spec.targets[index];
    *target = section->common;
    target->name = NULL;
    if (node->kind != YAML_KIND_MAPPING) {
        yaml_key_complain(reader, node,
                          "expected a mapping such as {args: …, timeout: 120}, got %s",
                          yaml_node_kind_name(node));
    } else {
        yaml_key_read_all(reader, target_keys, node, target);
    }
    if (target->name == NULL) {
        target->name = number_name(reader->arena, index + 1);
    }
    check_name(reader, node, section->spec.targets, index);
}

/* ---- lists of structs ---- */

/* Room for the items of a list, or NULL with a problem where there is no list or too long a one. */
static void *take_items(struct yaml_reader *reader, const struct yaml_node *node, size_t size,
                        size_t *ret_n) {
    *ret_n = 0;
    if (yaml_node_is_null(node)) {
        return NULL;
    }
    if (node->kind != YAML_KIND_SEQUENCE) {
        yaml_key_complain(reader, node, "expected a list, got %s", yaml_node_kind_name(node));
        return NULL;
    }
    if (node->n_items > MAX_ITEMS) {
        yaml_key_complain(reader, node, "expected at most %d, got %zu", MAX_ITEMS, node->n_items);
        return NULL;
    }
    void *items = arena_take(reader->arena, node->n_items * size);
    *ret_n = items != NULL ? node->n_items : 0;
    return items;
}

static void read_services(struct yaml_reader *reader, const struct yaml_key *key,
                          const struct yaml_node *node, void *to) {
    (void)key;
    struct run_spec *spec = &((struct section *)to)->spec;
    spec->services = take_items(reader, node, sizeof(*spec->services), &spec->n_services);
    if (spec->services != NULL) {
        yaml_key_each(reader, node, run_spec_read_service, spec->services);
    }
}

static void read_gates(struct yaml_reader *reader, const struct yaml_key *key,
                       const struct yaml_node *node, void *to) {
    (void)key;
    struct run_spec *spec = &((struct section *)to)->spec;
    spec->gates = take_items(reader, node, sizeof(*spec->gates), &spec->n_gates);
    if (spec->gates != NULL) {
        yaml_key_each(reader, node, run_spec_read_gate, spec->gates);
    }
}

/* Read last, when all is known that targets share. */
static void note_targets(struct yaml_reader *reader, const struct yaml_key *key,
                         const struct yaml_node *node, void *to) {
    (void)reader;
    (void)key;
    ((struct section *)to)->targets = node;
}

static void read_targets(struct yaml_reader *reader, struct section *section) {
    struct run_spec *spec = &section->spec;
    const struct yaml_node *node = section->targets;
    size_t len = reader->path.len;
    buf_add_str(&reader->path, ".targets");
    if (node != NULL) {
        spec->targets = take_items(reader, node, sizeof(*spec->targets), &spec->n_targets);
    }
    if (spec->targets != NULL) {
        yaml_key_each(reader, node, read_target, section);
    }
    buf_truncate(&reader->path, len);
    if (spec->n_targets == 0) {
        section->common.name = "1";
        spec->targets = arena_copy(reader->arena, &section->common, sizeof(section->common));
        spec->n_targets = spec->targets != NULL ? 1 : 0;
    }
}

/* ---- the section and the file ---- */

static const struct yaml_key sampling_keys[] = {
    {"baseline", yaml_key_number, offsetof(struct run_spec, baseline_ms),
     YAML_KEY_DURATION(0, RUN_SPEC_DAY_MS)},
    {"cooldown", yaml_key_number, offsetof(struct run_spec, cooldown_ms),
     YAML_KEY_DURATION(0, RUN_SPEC_DAY_MS)},
    {"cooldown_max", yaml_key_number, offsetof(struct run_spec, cooldown_max_ms),
     YAML_KEY_DURATION(0, RUN_SPEC_DAY_MS)},
    {"interval", yaml_key_number, offsetof(struct run_spec, interval_ms),
     YAML_KEY_DURATION(MIN_INTERVAL_MS, MAX_INTERVAL_MS)},
    {0},
};

static const struct yaml_key output_keys[] = {
    YAML_KEY_TEXT("dir", struct run_spec, out_dir),
    {"formats", run_spec_read_formats, offsetof(struct run_spec, formats), {0}},
    {0},
};

static void read_sampling(struct yaml_reader *reader, const struct yaml_key *key,
                          const struct yaml_node *node, void *to) {
    (void)key;
    yaml_key_read_all(reader, sampling_keys, node, &((struct section *)to)->spec);
}

static void read_output(struct yaml_reader *reader, const struct yaml_key *key,
                        const struct yaml_node *node, void *to) {
    (void)key;
    yaml_key_read_all(reader, output_keys, node, &((struct section *)to)->spec);
}

static const struct yaml_key section_keys[] = {
    TARGET_KEYS(struct section, common.),
    {"gates", read_gates, 0, {0}},
    {"grace", yaml_key_number, offsetof(struct section, spec.grace_ms),
     YAML_KEY_DURATION(0, RUN_SPEC_DAY_MS)},
    {"max_runtime", yaml_key_number, offsetof(struct section, spec.max_runtime_ms),
     YAML_KEY_DURATION(1, RUN_SPEC_DAY_MS)},
    {"metrics", run_spec_read_metrics, offsetof(struct section, spec.metrics), {0}},
    {"output", read_output, 0, {0}},
    {"sampling", read_sampling, 0, {0}},
    {"services", read_services, 0, {0}},
    {"targets", note_targets, 0, {0}},
    {0},
};

static const struct run_target plain_target = {
    .name = "1",
    .args = no_words,
    .env = no_words,
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

int run_spec_init(struct run_spec *spec) {
    set_defaults(spec);
    spec->targets = arena_copy(&spec->arena, &plain_target, sizeof(plain_target));
    spec->n_targets = spec->targets != NULL ? 1 : 0;
    return spec->targets != NULL ? 0 : -ENOMEM;
}

/* Of the rest of the file only these two matter, and whatever they look like they are texts. */
static const char *read_plain(struct run_spec *spec, const struct yaml_node *root,
                              const char *key) {
    const struct yaml_node *node = yaml_node_get(root, key);
    bool said = node != NULL && node->kind == YAML_KIND_SCALAR && !yaml_node_is_null(node);
    return said ? arena_copy(&spec->arena, node->text, strlen(node->text) + 1) : NULL;
}

/* `profiling:` stands at the top, or under `source:` as one of the sketches had it. */
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
    bool good = end != name && *end == '\0' && number >= 1 && number <= spec->n_targets;
    return good ? &spec->targets[number - 1] : NULL;
}
