#include "exporter/settings/config.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/core/file.h"
#include "exporter/core/memory.h"
#include "exporter/settings/flags.h"
#include "exporter/settings/suggest.h"
#include "exporter/settings/yaml.h"

enum { CONFIG_MAX_FILE = 1 << 20 };

/* ---- names ---- */

static size_t count_options(const struct option *options) {
    size_t n = 0;
    while (options != NULL && options[n].name != NULL) {
        n++;
    }
    return n;
}

static bool is_switch(const struct config_table *table, const struct option *option) {
    return option >= table->switches && option < table->switches + table->n_switches;
}

static char *make_key(const struct config_table *table, const struct option *option) {
    struct buf key = {0};
    for (const char *p = option->name; *p != '\0'; p++) {
        buf_add_char(&key, *p == '-' ? '_' : *p);
    }
    if (is_switch(table, option)) {
        buf_add_str(&key, ".enabled");
    }
    return buf_take(&key);
}

static char *make_variable(const struct option *option) {
    struct buf variable = {0};
    buf_add_str(&variable, "WAAP_");
    for (const char *p = option->name; *p != '\0'; p++) {
        buf_add_char(&variable,
                     isalnum((unsigned char)*p) ? (char)toupper((unsigned char)*p) : '_');
    }
    return buf_take(&variable);
}

static void add_entry(struct config_table *table, const struct option *option) {
    table->entries[table->n_entries++] = (struct config_entry){
        .option = option,
        .key = make_key(table, option),
        .variable = make_variable(option),
    };
}

static void add_entries(struct config_table *table, const struct option *options) {
    for (; options != NULL && options->name != NULL; options++) {
        add_entry(table, options);
    }
}

static void add_switch(struct config_table *table, const struct collector *collector) {
    struct buf name = {0};
    buf_printf(&name, "collector.%s", collector->name);
    struct option *option = &table->switches[table->n_switches++];
    *option = (struct option){
        .name = buf_take(&name),
        .type = OPTION_BOOL,
        .default_text = collector->on_by_default ? "true" : "false",
        .help = collector->help,
    };
    add_entry(table, option);
}

static int compare_entries(const void *a, const void *b) {
    const struct config_entry *first = a, *second = b;
    return strcmp(first->option->name, second->option->name);
}

void config_table_init(struct config_table *table, const struct collector *const *collectors) {
    size_t n_switches = 0, n = count_options(exporter_options);
    for (; collectors[n_switches] != NULL; n_switches++) {
        n += 1 + count_options(collectors[n_switches]->options);
    }
    *table = (struct config_table){
        .entries = mem_zalloc(n, sizeof(*table->entries)),
        .options = mem_zalloc(n, sizeof(*table->options)),
        .switches = mem_zalloc(n_switches, sizeof(*table->switches)),
    };
    add_entries(table, exporter_options);
    for (size_t i = 0; i < n_switches; i++) {
        add_switch(table, collectors[i]);
        add_entries(table, collectors[i]->options);
    }
    qsort(table->entries, table->n_entries, sizeof(*table->entries), compare_entries);
    for (size_t i = 0; i < table->n_entries; i++) {
        table->options[i] = table->entries[i].option;
    }
}

void config_table_finish(struct config_table *table) {
    for (size_t i = 0; i < table->n_entries; i++) {
        free(table->entries[i].key);
        free(table->entries[i].variable);
    }
    for (size_t i = 0; i < table->n_switches; i++) {
        free((char *)table->switches[i].name);
    }
    free(table->entries);
    free(table->options);
    free(table->switches);
    *table = (struct config_table){0};
}

/* ---- environment ---- */

static const struct config_entry *find_variable(const struct config_table *table,
                                                const char *name) {
    for (size_t i = 0; i < table->n_entries; i++) {
        if (strcmp(table->entries[i].variable, name) == 0) {
            return &table->entries[i];
        }
    }
    return NULL;
}

/* Variables of the plugin libraries, of `waap run` and of programs that it starts. */
static bool is_for_plugins(const char *name) {
    static const char *const names[] = {"WAAP_DATASET", "WAAP_DEBUG",
                                        "WAAP_JOB",     "WAAP_PLUGIN_NAME",
                                        "WAAP_PROGRAM", "WAAP_RUN_MOUNTS_ALLOW"};
    bool found = false;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        found |= strcmp(names[i], name) == 0;
    }
    return found;
}

static void add_unknown_variable(const struct config_table *table, const char *name,
                                 struct problems *warnings) {
    struct suggest suggest;
    suggest_init(&suggest, name);
    for (size_t i = 0; i < table->n_entries; i++) {
        const char *variable = table->entries[i].variable;
        suggest_offer(&suggest, variable, strlen(variable));
    }
    struct buf hint CLEANUP_BUF = {0};
    suggest_write(&suggest, "", &hint);
    problems_add(warnings, name, 0, 0, "unknown variable%s", buf_str(&hint));
}

static void set_variable(const struct config_entry *entry, const char *value,
                         struct settings *settings, struct problems *problems) {
    struct error err;
    if (settings_set(settings, entry->option, SETTINGS_ENVIRONMENT, value, &err) < 0) {
        problems_add(problems, entry->variable, 0, 0, "%s", err.text);
    }
}

/* "a,b" sets two values; empty parts are skipped. */
static void set_list(const struct config_entry *entry, char *values, struct settings *settings,
                     struct problems *problems) {
    char *next = values;
    for (char *value = strsep(&next, ","); value != NULL; value = strsep(&next, ",")) {
        if (value[0] != '\0') {
            set_variable(entry, value, settings, problems);
        }
    }
}

/* WAAP_…; an empty one counts as not set, an unknown one is a warning. */
static void read_environment(const struct config_table *table, char *const *variables,
                             struct settings *settings, struct problems *problems,
                             struct problems *warnings) {
    for (; variables != NULL && *variables != NULL; variables++) {
        if (strncmp(*variables, "WAAP_", strlen("WAAP_")) != 0) {
            continue;
        }
        char *name CLEANUP_FREE = mem_strdup(*variables);
        char *equals = strchr(name, '=');
        if (equals == NULL || equals[1] == '\0') {
            continue;
        }
        *equals = '\0';
        const struct config_entry *entry = find_variable(table, name);
        if (entry == NULL) {
            if (!is_for_plugins(name)) {
                add_unknown_variable(table, name, warnings);
            }
        } else if (entry->option->repeatable) {
            set_list(entry, equals + 1, settings, problems);
        } else {
            set_variable(entry, equals + 1, settings, problems);
        }
    }
}

/* ---- file ---- */

/* The walk through the tree of a file. */
struct walk {
    struct yaml_reader reader; /* its path is the dotted key of the node: "web.listen_address" */
    const struct config_table *table;
    struct settings *settings;
};

static void set_scalar(struct walk *walk, const struct yaml_node *node,
                       const struct option *option) {
    struct buf expected CLEANUP_BUF = {0};
    struct error err;
    if (node->kind != YAML_KIND_SCALAR || yaml_node_is_null(node)) {
        option_describe(option, &expected);
        yaml_key_complain(&walk->reader, node, "expected %s%s, got %s", buf_str(&expected),
                          option->repeatable ? " or a list of such" : "",
                          yaml_node_kind_name(node));
    } else if (settings_set(walk->settings, option, SETTINGS_FILE, node->text, &err) < 0) {
        yaml_key_complain(&walk->reader, node, "%s", err.text);
    }
}

static void set_value(struct walk *walk, const struct yaml_node *node,
                      const struct option *option) {
    if (!option->repeatable || node->kind != YAML_KIND_SEQUENCE) {
        set_scalar(walk, node, option);
        return;
    }
    settings_set(walk->settings, option, SETTINGS_FILE, "", NULL);
    for (size_t i = 0; i < node->n_items; i++) {
        set_scalar(walk, &node->items[i], option);
    }
}

static const struct option *find_key(const struct config_table *table, const char *path) {
    for (size_t i = 0; i < table->n_entries; i++) {
        if (strcmp(table->entries[i].key, path) == 0) {
            return table->entries[i].option;
        }
    }
    return NULL;
}

/* The rest of a key behind "<path>.", or NULL if the key is not below that path. */
static const char *key_below(const char *key, const struct buf *path) {
    if (path->len == 0) {
        return key;
    }
    bool below = strncmp(key, buf_str(path), path->len) == 0 && key[path->len] == '.';
    return below ? key + path->len + 1 : NULL;
}

static bool has_keys_below(const struct walk *walk) {
    for (size_t i = 0; i < walk->table->n_entries; i++) {
        if (key_below(walk->table->entries[i].key, &walk->reader.path) != NULL) {
            return true;
        }
    }
    return false;
}

/* The key that ends in `name`, written as in the file or as a flag; NULL if none or several
 * do. */
static const char *find_elsewhere(const struct config_table *table, const char *name) {
    struct buf written CLEANUP_BUF = {0};
    for (const char *c = name; *c != '\0'; c++) {
        buf_add_char(&written, *c == '-' ? '_' : *c);
    }
    const char *found = NULL;
    for (size_t i = 0; i < table->n_entries; i++) {
        const char *key = table->entries[i].key;
        size_t len = strlen(key);
        const char *end = key + len - (len < written.len ? len : written.len);
        bool whole = end == key || end[-1] == '.';
        if (table->entries[i].option->not_in_file || !whole ||
            strcmp(end, buf_str(&written)) != 0) {
            continue;
        }
        if (found != NULL) {
            return NULL;
        }
        found = key;
    }
    return found;
}

static void complain_of_key(struct walk *walk, const struct yaml_node *node, const char *text,
                            const char *more) {
    problems_add(walk->reader.problems, walk->reader.file, node->key_line, node->key_column,
                 "%s: %s%s", buf_str(&walk->reader.path), text, more);
}

/* Suggests one of the keys that are valid there, else one that is valid elsewhere; `parent_len` is
 * the length of the path above it. */
static void add_unknown_key(struct walk *walk, const struct yaml_node *node, size_t parent_len) {
    struct buf parent CLEANUP_BUF = {0};
    buf_add(&parent, buf_str(&walk->reader.path), parent_len);
    const char *elsewhere = find_elsewhere(walk->table, node->key);
    struct suggest suggest;
    suggest_init(&suggest, node->key);
    for (size_t i = 0; i < walk->table->n_entries; i++) {
        const char *below = key_below(walk->table->entries[i].key, &parent);
        if (below != NULL) {
            suggest_offer(&suggest, below, strcspn(below, "."));
        }
    }
    struct buf hint CLEANUP_BUF = {0};
    const char *dot = elsewhere != NULL ? strrchr(elsewhere, '.') : NULL;
    if (suggest.best[0] == '\0' && dot != NULL) {
        buf_printf(&hint, ", did you mean %s under %.*s?", dot + 1, (int)(dot - elsewhere),
                   elsewhere);
    }
    suggest_write(&suggest, "", &hint);
    complain_of_key(walk, node, "unknown key", buf_str(&hint));
}

static void walk_mapping(struct walk *walk, const struct yaml_node *node);

static void walk_item(struct walk *walk, const struct yaml_node *node, size_t parent_len) {
    const struct option *option = find_key(walk->table, buf_str(&walk->reader.path));
    if (option != NULL && option->not_in_file) {
        complain_of_key(walk, node, "cannot be set in the file, only by --", option->name);
    } else if (option != NULL) {
        set_value(walk, node, option);
    } else if (has_keys_below(walk)) {
        walk_mapping(walk, node);
    } else {
        add_unknown_key(walk, node, parent_len);
    }
}

/* " such as {enabled: false}" for a collector that was given a value instead. */
static void write_switch(const struct walk *walk, const struct yaml_node *node, struct buf *out) {
    struct buf key CLEANUP_BUF = {0};
    buf_printf(&key, "%s.enabled", buf_str(&walk->reader.path));
    const struct option *option = find_key(walk->table, buf_str(&key));
    int64_t on;
    if (option == NULL || node->kind != YAML_KIND_SCALAR) {
        return;
    }
    bool valid = option_parse(option, node->text, &on, NULL) == 0;
    buf_printf(out, " such as {enabled: %s}", valid && on == 0 ? "false" : "true");
}

/* A section with nothing in it, all its keys commented out, is fine. */
static void walk_mapping(struct walk *walk, const struct yaml_node *node) {
    if (node->kind != YAML_KIND_MAPPING && !yaml_node_is_null(node)) {
        struct buf text CLEANUP_BUF = {0};
        buf_add_str(&text, "expected a mapping");
        write_switch(walk, node, &text);
        buf_printf(&text, ", got %s", yaml_node_kind_name(node));
        yaml_key_complain(&walk->reader, node, "%s", buf_str(&text));
        return;
    }
    size_t len = walk->reader.path.len;
    for (size_t i = 0; i < node->n_items; i++) {
        const struct yaml_node *item = &node->items[i];
        buf_printf(&walk->reader.path, "%s%s", len > 0 ? "." : "", item->key);
        walk_item(walk, item, len);
        buf_truncate(&walk->reader.path, len);
    }
}

void config_read_yaml(const struct config_table *table, const char *file, const char *text,
                      size_t len, struct settings *settings, struct problems *problems) {
    struct yaml_doc *doc CLEANUP_YAML_DOC = yaml_doc_parse(file, text, len, problems);
    if (doc == NULL) {
        return;
    }
    struct walk walk = {
        .reader = {.file = file, .problems = problems},
        .table = table,
        .settings = settings,
    };
    walk_mapping(&walk, yaml_doc_root(doc));
    buf_finish(&walk.reader.path);
}

static int read_file(struct config *config, const struct config_sources *sources,
                     struct problems *problems) {
    const char *file = sources->file;
    file = file != NULL ? file : settings_string(config->settings, "config.file");
    if (file[0] == '\0') {
        return 0;
    }
    struct buf text CLEANUP_BUF = {0};
    struct error err;
    if (file_read_stored(file, CONFIG_MAX_FILE, &text, &err) < 0) {
        /* The mistake is in the setting that names the file. */
        bool flag = settings_origin(config->settings, "config.file") == SETTINGS_FLAG;
        const char *place = sources->file != NULL ? sources->file
                            : flag                ? "--config.file"
                                                  : "WAAP_CONFIG_FILE";
        problems_add(problems, place, 0, 0, "%s", err.text);
        return -EINVAL;
    }
    config_read_yaml(&config->table, file, buf_str(&text), text.len, config->settings, problems);
    return 0;
}

/* With collector.disable-defaults a collector runs only if a source enables it. */
static void resolve_switches(struct config *config) {
    bool disabled = settings_bool(config->settings, "collector.disable-defaults");
    for (size_t i = 0; disabled && i < config->table.n_switches; i++) {
        const struct option *option = &config->table.switches[i];
        if (settings_origin(config->settings, option->name) == SETTINGS_DEFAULT) {
            settings_set(config->settings, option, SETTINGS_DEFAULT, "false", NULL);
        }
    }
}

/* ---- all sources ---- */

int config_load(const struct collector *const *collectors, const struct config_sources *sources,
                struct config **ret_config, struct problems *problems) {
    struct config *config CLEANUP_CONFIG = mem_zalloc(1, sizeof(*config));
    atomic_init(&config->refs, 1);
    config_table_init(&config->table, collectors);
    config->settings = settings_create(config->table.options, config->table.n_entries);
    size_t n_before = problems->n_lines;
    flags_set(config->settings, sources->argc, sources->argv, NULL, problems);
    read_environment(&config->table, sources->variables, config->settings, problems,
                     &config->warnings);
    int r = read_file(config, sources, problems);
    if (r < 0 || problems->n_lines > n_before) {
        return r < 0 ? r : -EINVAL;
    }
    resolve_switches(config);
    *ret_config = TAKE(config);
    return 0;
}

int config_from_command_line(const struct collector *const *collectors, int argc, char **argv,
                             struct config **ret_config, struct problems *problems) {
    struct config_sources sources = {.variables = environ, .argc = argc, .argv = argv};
    return config_load(collectors, &sources, ret_config, problems);
}

struct config *config_ref(struct config *config) {
    atomic_fetch_add(&config->refs, 1);
    return config;
}

void config_unref(struct config *config) {
    if (config == NULL || atomic_fetch_sub(&config->refs, 1) > 1) {
        return;
    }
    listen_names_destroy(config->names);
    settings_destroy(config->settings);
    config_table_finish(&config->table);
    problems_finish(&config->warnings);
    free(config);
}
