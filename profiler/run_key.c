#include "profiler/run_key.h"

#include <stdarg.h>
#include <string.h>

#include "exporter/suggest.h"
#include "profiler/run_args.h"

void run_key_complain(struct run_reader *reader, const struct yaml_node *node, const char *format,
                      ...) {
    struct buf text CLEANUP_BUF = {0};
    va_list args;
    va_start(args, format);
    buf_vprintf(&text, format, args);
    va_end(args);
    problems_add(reader->problems, reader->file, node->line, node->column, "%s: %s",
                 buf_str(&reader->path), buf_str(&text));
}

static const struct run_key *find_key(const struct run_key *keys, const char *name) {
    for (; keys->name != NULL; keys++) {
        if (strcmp(keys->name, name) == 0) {
            return keys;
        }
    }
    return NULL;
}

static void complain_unknown(struct run_reader *reader, const struct run_key *keys,
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

void run_key_read_all(struct run_reader *reader, const struct run_key *keys,
                      const struct yaml_node *node, void *to) {
    if (yaml_node_is_null(node)) {
        return;
    }
    if (node->kind != YAML_KIND_MAPPING) {
        run_key_complain(reader, node, "expected a mapping, got %s", yaml_node_kind_name(node));
        return;
    }
    size_t len = reader->path.len;
    for (size_t i = 0; i < node->n_items; i++) {
        const struct yaml_node *item = &node->items[i];
        const struct run_key *key = find_key(keys, item->key);
        buf_printf(&reader->path, "%s%s", len > 0 ? "." : "", item->key);
        if (key == NULL) {
            complain_unknown(reader, keys, item);
        } else {
            key->read(reader, key, item, (char *)to + key->offset);
        }
        buf_truncate(&reader->path, len);
    }
}

void run_key_each(struct run_reader *reader, const struct yaml_node *node,
                  void (*read)(struct run_reader *reader, const struct yaml_node *item,
                               size_t index, void *to),
                  void *to) {
    if (yaml_node_is_null(node)) {
        return;
    }
    if (node->kind != YAML_KIND_SEQUENCE) {
        run_key_complain(reader, node, "expected a list, got %s", yaml_node_kind_name(node));
        return;
    }
    size_t len = reader->path.len;
    for (size_t i = 0; i < node->n_items; i++) {
        buf_printf(&reader->path, "[%zu]", i);
        read(reader, &node->items[i], i, to);
        buf_truncate(&reader->path, len);
    }
}

const char *run_key_scalar(struct run_reader *reader, const struct yaml_node *node) {
    if (node->kind == YAML_KIND_SCALAR && !yaml_node_is_null(node)) {
        return node->text;
    }
    run_key_complain(reader, node, "expected a value, got %s", yaml_node_kind_name(node));
    return NULL;
}

void run_key_text(struct run_reader *reader, const struct run_key *key,
                  const struct yaml_node *node, void *to) {
    (void)key;
    const char *text = run_key_scalar(reader, node);
    if (text != NULL && text[0] == '\0') {
        run_key_complain(reader, node, "expected a text, got \"\"");
    } else if (text != NULL) {
        *(const char **)to = arena_copy(reader->arena, text, strlen(text) + 1);
    }
}

void run_key_number(struct run_reader *reader, const struct run_key *key,
                    const struct yaml_node *node, void *to) {
    struct error err;
    int64_t number;
    if (node->kind != YAML_KIND_SCALAR || yaml_node_is_null(node)) {
        struct buf wanted CLEANUP_BUF = {0};
        option_describe(&key->option, &wanted);
        run_key_complain(reader, node, "expected %s, got %s", buf_str(&wanted),
                         yaml_node_kind_name(node));
    } else if (option_parse(&key->option, node->text, &number, &err) < 0) {
        run_key_complain(reader, node, "%s", err.text);
    } else {
        *(int64_t *)to = number;
    }
}

static void add_word(struct run_reader *reader, struct buf *words, const char *text) {
    const char *copy = arena_copy(reader->arena, text, strlen(text) + 1);
    buf_add(words, &copy, sizeof(copy));
}

static void read_word(struct run_reader *reader, const struct yaml_node *node, size_t index,
                      void *to) {
    (void)index;
    const char *text = run_key_scalar(reader, node);
    if (text != NULL) {
        add_word(reader, to, text);
    }
}

void run_key_words(struct run_reader *reader, const struct run_key *key,
                   const struct yaml_node *node, void *to) {
    (void)key;
    const char *const **list = to;
    struct error err;
    if (node->kind == YAML_KIND_SCALAR) {
        const char *text = yaml_node_is_null(node) ? "" : node->text;
        if (run_args_split(text, reader->arena, list, &err) < 0) {
            run_key_complain(reader, node, "%s", err.text);
        }
        return;
    }
    if (node->kind != YAML_KIND_SEQUENCE) {
        run_key_complain(reader, node, "expected a list or one text, got a mapping");
        return;
    }
    struct buf words CLEANUP_BUF = {0};
    run_key_each(reader, node, read_word, &words);
    *list = run_args_list(&words, reader->arena);
}

void run_key_env(struct run_reader *reader, const struct run_key *key, const struct yaml_node *node,
                 void *to) {
    (void)key;
    if (node->kind != YAML_KIND_MAPPING && !yaml_node_is_null(node)) {
        run_key_complain(reader, node, "expected names and values, got %s",
                         yaml_node_kind_name(node));
        return;
    }
    struct buf words CLEANUP_BUF = {0};
    size_t len = reader->path.len;
    for (size_t i = 0; i < node->n_items; i++) {
        const struct yaml_node *item = &node->items[i];
        buf_printf(&reader->path, ".%s", item->key);
        if (item->key[0] == '\0' || strchr(item->key, '=') != NULL) {
            run_key_complain(reader, item, "expected the name of a variable");
        } else if (item->kind != YAML_KIND_SCALAR) {
            run_key_complain(reader, item, "expected a value, got %s", yaml_node_kind_name(item));
        } else {
            struct buf pair CLEANUP_BUF = {0};
            buf_printf(&pair, "%s=%s", item->key, yaml_node_is_null(item) ? "" : item->text);
            add_word(reader, &words, buf_str(&pair));
        }
        buf_truncate(&reader->path, len);
    }
    *(const char *const **)to = run_args_list(&words, reader->arena);
}
