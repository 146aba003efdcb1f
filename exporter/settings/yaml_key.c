#include "exporter/settings/yaml_key.h"

#include <stdarg.h>
#include <string.h>

#include "exporter/settings/suggest.h"

void yaml_key_complain(struct yaml_reader *reader, const struct yaml_node *node, const char *format,
                       ...) {
    struct buf text CLEANUP_BUF = {0};
    va_list args;
    va_start(args, format);
    buf_vprintf(&text, format, args);
    va_end(args);
    problems_add(reader->problems, reader->file, node->line, node->column, "%s%s%s",
                 buf_str(&reader->path), reader->path.len > 0 ? ": " : "", buf_str(&text));
}

static const struct yaml_key *find_key(const struct yaml_key *keys, const char *name) {
    for (; keys->name != NULL; keys++) {
        if (strcmp(keys->name, name) == 0) {
            return keys;
        }
    }
    return NULL;
}

static void complain_unknown(struct yaml_reader *reader, const struct yaml_key *keys,
                             const struct yaml_node *node) {
    struct suggest suggest;
    suggest_init(&suggest, node->key);
    for (; keys->name != NULL; keys++) {
        suggest_offer(&suggest, keys->name, strlen(keys->name));
    }
    struct buf text CLEANUP_BUF = {0};
    buf_printf(&text, "%s: unknown key", buf_str(&reader->path));
    suggest_write(&suggest, "", &text);
    problems_add(reader->problems, reader->file, node->key_line, node->key_column, "%s",
                 buf_str(&text));
}

void yaml_key_read_all(struct yaml_reader *reader, const struct yaml_key *keys,
                       const struct yaml_node *node, void *to) {
    if (yaml_node_is_null(node)) {
        return;
    }
    if (node->kind != YAML_KIND_MAPPING) {
        yaml_key_complain(reader, node, "expected a mapping, got %s", yaml_node_kind_name(node));
        return;
    }
    size_t len = reader->path.len;
    for (size_t i = 0; i < node->n_items; i++) {
        const struct yaml_node *item = &node->items[i];
        const struct yaml_key *key = find_key(keys, item->key);
        buf_printf(&reader->path, "%s%s", len > 0 ? "." : "", item->key);
        if (key == NULL) {
            complain_unknown(reader, keys, item);
        } else {
            key->read(reader, key, item, (char *)to + key->offset);
        }
        buf_truncate(&reader->path, len);
    }
}

void yaml_key_each(struct yaml_reader *reader, const struct yaml_node *node,
                   void (*read)(struct yaml_reader *reader, const struct yaml_node *item,
                                size_t index, void *to),
                   void *to) {
    if (yaml_node_is_null(node)) {
        return;
    }
    if (node->kind != YAML_KIND_SEQUENCE) {
        yaml_key_complain(reader, node, "expected a list, got %s", yaml_node_kind_name(node));
        return;
    }
    size_t len = reader->path.len;
    for (size_t i = 0; i < node->n_items; i++) {
        buf_printf(&reader->path, "[%zu]", i);
        read(reader, &node->items[i], i, to);
        buf_truncate(&reader->path, len);
    }
}

const char *yaml_key_scalar(struct yaml_reader *reader, const struct yaml_node *node) {
    if (node->kind == YAML_KIND_SCALAR && !yaml_node_is_null(node)) {
        return node->text;
    }
    yaml_key_complain(reader, node, "expected a value, got %s", yaml_node_kind_name(node));
    return NULL;
}

void yaml_key_text(struct yaml_reader *reader, const struct yaml_key *key,
                   const struct yaml_node *node, void *to) {
    (void)key;
    const char *text = yaml_key_scalar(reader, node);
    if (text != NULL && text[0] == '\0') {
        yaml_key_complain(reader, node, "expected a text, got \"\"");
    } else if (text != NULL) {
        *(const char **)to = arena_copy(reader->arena, text, strlen(text) + 1);
    }
}

void yaml_key_number(struct yaml_reader *reader, const struct yaml_key *key,
                     const struct yaml_node *node, void *to) {
    struct error err;
    int64_t number;
    if (node->kind != YAML_KIND_SCALAR || yaml_node_is_null(node)) {
        struct buf wanted CLEANUP_BUF = {0};
        option_describe(&key->option, &wanted);
        yaml_key_complain(reader, node, "expected %s, got %s", buf_str(&wanted),
                          yaml_node_kind_name(node));
    } else if (option_parse(&key->option, node->text, &number, &err) < 0) {
        yaml_key_complain(reader, node, "%s", err.text);
    } else {
        *(int64_t *)to = number;
    }
}
