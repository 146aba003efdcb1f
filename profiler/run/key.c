#include "profiler/run/key.h"

#include <string.h>

#include "profiler/run/args.h"

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

void run_key_words(struct yaml_reader *reader, const struct yaml_key *key,
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

void run_key_env(struct yaml_reader *reader, const struct yaml_key *key,
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
