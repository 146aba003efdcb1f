#include <string.h>

#include "exporter/settings/config_read.h"
#include "exporter/settings/suggest.h"
#include "exporter/settings/yaml_doc.h"

/* The walk through the tree of a file. */
struct walk {
    const struct config_table *table;
    const char *file;
    struct settings *settings;
    struct problems *problems;
    struct buf path; /* dotted key of the node: "web.listen_address" */
};

static void add_problem(struct walk *walk, const struct yaml_node *node, const char *text) {
    problems_add(walk->problems, walk->file, node->line, node->column, "%s%s%s",
                 buf_str(&walk->path), walk->path.len > 0 ? ": " : "", text);
}

static void add_wrong_kind(struct walk *walk, const struct yaml_node *node,
                           const struct option *option) {
    struct buf text CLEANUP_BUF = {0};
    buf_add_str(&text, "expected ");
    option_describe(option, &text);
    buf_printf(&text, "%s, got %s", option->repeatable ? " or a list of such" : "",
               yaml_node_kind_name(node));
    add_problem(walk, node, buf_str(&text));
}

static void set_scalar(struct walk *walk, const struct yaml_node *node,
                       const struct option *option) {
    struct error err;
    if (node->kind != YAML_KIND_SCALAR || yaml_node_is_null(node)) {
        add_wrong_kind(walk, node, option);
    } else if (settings_set(walk->settings, option, SETTINGS_FILE, node->text, &err) < 0) {
        add_problem(walk, node, err.text);
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

/* What stands behind "<path>." in a key, or NULL where the key is not below that path. */
static const char *key_below(const char *key, const struct buf *path) {
    if (path->len == 0) {
        return key;
    }
    bool below = strncmp(key, buf_str(path), path->len) == 0 && key[path->len] == '.';
    return below ? key + path->len + 1 : NULL;
}

static bool has_keys_below(const struct walk *walk) {
    for (size_t i = 0; i < walk->table->n_entries; i++) {
        if (key_below(walk->table->entries[i].key, &walk->path) != NULL) {
            return true;
        }
    }
    return false;
}

/* The key that ends in `name`, written as in the file or as a flag; NULL where none does, or
 * several do. */
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

/* ", did you mean listen_address under web?" */
static void write_elsewhere(const char *key, struct buf *out) {
    const char *dot = strrchr(key, '.');
    if (dot != NULL) {
        buf_printf(out, ", did you mean %s under %.*s?", dot + 1, (int)(dot - key), key);
    }
}

/* Suggests among the keys that may stand where `node` does, else one that stands elsewhere;
 * `parent_len` is the length of the path above it. */
static void add_unknown_key(struct walk *walk, const struct yaml_node *node, size_t parent_len) {
    struct buf parent CLEANUP_BUF = {0};
    buf_add(&parent, buf_str(&walk->path), parent_len);
    const char *elsewhere = find_elsewhere(walk->table, node->key);
    struct suggest suggest;
    suggest_init(&suggest, node->key);
    for (size_t i = 0; i < walk->table->n_entries; i++) {
        const char *below = key_below(walk->table->entries[i].key, &parent);
        if (below != NULL) {
            suggest_offer(&suggest, below, strcspn(below, "."));
        }
    }
    struct buf text CLEANUP_BUF = {0};
    buf_printf(&text, "%s: unknown key", buf_str(&walk->path));
    if (suggest.best[0] == '\0' && elsewhere != NULL) {
        write_elsewhere(elsewhere, &text);
    }
    suggest_write(&suggest, "", &text);
    problems_add(walk->problems, walk->file, node->key_line, node->key_column, "%s",
                 buf_str(&text));
}

static void walk_mapping(struct walk *walk, const struct yaml_node *node);

static void walk_item(struct walk *walk, const struct yaml_node *node, size_t parent_len) {
    const struct option *option = find_key(walk->table, buf_str(&walk->path));
    if (option != NULL && option->not_in_file) {
        problems_add(walk->problems, walk->file, node->key_line, node->key_column,
                     "%s: cannot be set in the file, only by --%s", buf_str(&walk->path),
                     option->name);
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
    buf_printf(&key, "%s.enabled", buf_str(&walk->path));
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
        add_problem(walk, node, buf_str(&text));
        return;
    }
    size_t len = walk->path.len;
    for (size_t i = 0; i < node->n_items; i++) {
        const struct yaml_node *item = &node->items[i];
        buf_printf(&walk->path, "%s%s", len > 0 ? "." : "", item->key);
        walk_item(walk, item, len);
        buf_truncate(&walk->path, len);
    }
}

void config_read_yaml(const struct config_table *table, const char *file, const char *text,
                      size_t len, struct settings *settings, struct problems *problems) {
    struct yaml_doc *doc CLEANUP_YAML_DOC = yaml_doc_parse(file, text, len, problems);
    if (doc == NULL) {
        return;
    }
    struct walk walk = {.table = table, .file = file, .settings = settings, .problems = problems};
    walk_mapping(&walk, yaml_doc_root(doc));
    buf_finish(&walk.path);
}
