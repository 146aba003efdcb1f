#include "exporter/settings/yaml_doc.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "exporter/core/buf.h"

enum { YAML_DOC_MAX_DEPTH = 32, YAML_DOC_MAX_NODES = 20000 };

struct yaml_doc {
    struct yaml_node root;
};

/* The state of one reading. Functions return 0, or -1 when there is no going on; the reason stands
 * in `problems` then. */
struct reader {
    yaml_parser_t parser;
    const char *file;
    const char *text;
    size_t len;
    struct problems *problems;
    struct buf path; /* dotted key of what is being read: "web.listen_address[1]" */
    size_t n_nodes;
    int depth;
};

static int parse_value(struct reader *reader, const yaml_event_t *event, struct yaml_node *node,
                       bool *ret_keep);

static void event_cleanup(yaml_event_t *event) {
    yaml_event_delete(event);
}
#define CLEANUP_EVENT CLEANUP(event_cleanup)

static void finish_node(struct yaml_node *node) {
    for (size_t i = 0; i < node->n_items; i++) {
        finish_node(&node->items[i]);
    }
    free(node->items);
    free((char *)node->text);
    free((char *)node->key);
    *node = (struct yaml_node){0};
}

/* The parser of libyaml counts lines and columns from 0. */
static void add_problem(struct reader *reader, yaml_mark_t mark, const char *text) {
    const char *path = buf_str(&reader->path);
    problems_add(reader->problems, reader->file, mark.line + 1, mark.column + 1, "%s%s%s", path,
                 path[0] != '\0' ? ": " : "", text);
}

static int out_of_memory(struct reader *reader) {
    problems_add(reader->problems, reader->file, 0, 0, "out of memory");
    return -1;
}

/* Bytes that are no text at all have an offset instead of a mark. */
static void add_byte_problem(struct reader *reader) {
    size_t end = reader->parser.problem_offset;
    size_t line = 1, column = 1;
    for (size_t i = 0; i < end && i < reader->len; i++) {
        bool line_ends = reader->text[i] == '\n';
        line += line_ends ? 1 : 0;
        column = line_ends ? 1 : column + 1;
    }
    problems_add(reader->problems, reader->file, line, column, "not valid YAML: %s",
                 reader->parser.problem);
}

/* Whether the scanner stopped at a tab; it counts characters, not bytes. */
static bool is_at_tab(const struct reader *reader) {
    const yaml_mark_t mark = reader->parser.problem_mark;
    size_t line = 0, column = 0;
    for (size_t i = 0; i < reader->len; i++) {
        char c = reader->text[i];
        if (line == mark.line && column == mark.column) {
            return c == '\t';
        }
        bool line_ends = c == '\n';
        line += line_ends ? 1 : 0;
        column = line_ends ? 0 : column + ((c & 0xc0) != 0x80 ? 1 : 0);
    }
    return false;
}

static void add_syntax_problem(struct reader *reader) {
    const yaml_parser_t *parser = &reader->parser;
    if (parser->error == YAML_MEMORY_ERROR || parser->problem == NULL) {
        out_of_memory(reader);
    } else if (parser->error == YAML_READER_ERROR) {
        add_byte_problem(reader);
    } else if (parser->error == YAML_SCANNER_ERROR && is_at_tab(reader)) {
        problems_add(reader->problems, reader->file, parser->problem_mark.line + 1,
                     parser->problem_mark.column + 1,
                     "not valid YAML: a tab, only spaces may indent a line");
    } else if (parser->context != NULL) {
        problems_add(reader->problems, reader->file, parser->problem_mark.line + 1,
                     parser->problem_mark.column + 1,
                     "not valid YAML: %s %s that began in line %zu", parser->problem,
                     parser->context, parser->context_mark.line + 1);
    } else {
        problems_add(reader->problems, reader->file, parser->problem_mark.line + 1,
                     parser->problem_mark.column + 1, "not valid YAML: %s", parser->problem);
    }
}

static int next_event(struct reader *reader, yaml_event_t *event) {
    if (yaml_parser_parse(&reader->parser, event)) {
        return 0;
    }
    *event = (yaml_event_t){0};
    add_syntax_problem(reader);
    return -1;
}

/* Adds a part to the path and returns the length to cut it back to. */
static size_t enter_key(struct reader *reader, const char *key) {
    size_t len = reader->path.len;
    buf_printf(&reader->path, "%s%s", len > 0 ? "." : "", key);
    return len;
}

static size_t enter_index(struct reader *reader, size_t index) {
    size_t len = reader->path.len;
    buf_printf(&reader->path, "[%zu]", index);
    return len;
}

/* Moves `item` to the end of the items of `node`; their array doubles at powers of two. */
static int append_item(struct reader *reader, struct yaml_node *node, struct yaml_node *item) {
    size_t n = node->n_items;
    if ((n & (n - 1)) == 0) {
        size_t cap = n == 0 ? 1 : 2 * n;
        struct yaml_node *items = realloc(node->items, cap * sizeof(*items));
        if (items == NULL) {
            return out_of_memory(reader);
        }
        node->items = items;
    }
    node->items[node->n_items++] = *item;
    *item = (struct yaml_node){0};
    return 0;
}

static int parse_scalar(struct reader *reader, const yaml_event_t *event, struct yaml_node *node,
                        bool *ret_keep) {
    const char *value = (const char *)event->data.scalar.value;
    size_t len = event->data.scalar.length;
    if (strlen(value) != len) {
        add_problem(reader, event->start_mark, "a text must not contain NUL");
        *ret_keep = false;
        return 0;
    }
    node->kind = YAML_KIND_SCALAR;
    node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    node->text = strdup(value);
    return node->text == NULL ? out_of_memory(reader) : 0;
}

static int parse_sequence(struct reader *reader, struct yaml_node *node) {
    node->kind = YAML_KIND_SEQUENCE;
    for (size_t index = 0;; index++) {
        yaml_event_t event CLEANUP_EVENT = {0};
        if (next_event(reader, &event) < 0) {
            return -1;
        }
        if (event.type == YAML_SEQUENCE_END_EVENT) {
            return 0;
        }
        struct yaml_node item CLEANUP(finish_node) = {0};
        bool keep = true;
        size_t outside = enter_index(reader, index);
        int r = parse_value(reader, &event, &item, &keep);
        buf_truncate(&reader->path, outside);
        if (r < 0 || (keep && append_item(reader, node, &item) < 0)) {
            return -1;
        }
    }
}

/* Gives `item` the key in `event`; one that cannot be used is reported and the item not kept. */
static int parse_key(struct reader *reader, const yaml_event_t *event,
                     const struct yaml_node *mapping, struct yaml_node *item, bool *ret_keep) {
    struct yaml_node key CLEANUP(finish_node) = {0};
    if (parse_value(reader, event, &key, ret_keep) < 0) {
        return -1;
    }
    if (*ret_keep && key.kind != YAML_KIND_SCALAR) {
        add_problem(reader, event->start_mark, "a key must be a plain text");
        *ret_keep = false;
    }
    if (!*ret_keep) {
        return 0;
    }
    const struct yaml_node *first = yaml_node_get(mapping, key.text);
    if (first != NULL) {
        size_t outside = enter_key(reader, key.text);
        struct buf text CLEANUP_BUF = {0};
        buf_printf(&text, "duplicate key, first given in line %zu", first->key_line);
        add_problem(reader, event->start_mark, buf_str(&text));
        buf_truncate(&reader->path, outside);
        *ret_keep = false;
    }
    item->key = TAKE(key.text);
    item->key_line = event->start_mark.line + 1;
    item->key_column = event->start_mark.column + 1;
    return 0;
}

static int parse_mapping(struct reader *reader, struct yaml_node *node) {
    node->kind = YAML_KIND_MAPPING;
    for (;;) {
        yaml_event_t key CLEANUP_EVENT = {0};
        if (next_event(reader, &key) < 0) {
            return -1;
        }
        if (key.type == YAML_MAPPING_END_EVENT) {
            return 0;
        }
        struct yaml_node item CLEANUP(finish_node) = {0};
        bool keep_key = true, keep = true;
        yaml_event_t value CLEANUP_EVENT = {0};
        if (parse_key(reader, &key, node, &item, &keep_key) < 0 || next_event(reader, &value) < 0) {
            return -1;
        }
        size_t outside = enter_key(reader, item.key != NULL ? item.key : "?");
        int r = parse_value(reader, &value, &item, &keep);
        buf_truncate(&reader->path, outside);
        if (r < 0 || (keep_key && keep && append_item(reader, node, &item) < 0)) {
            return -1;
        }
    }
}

static int parse_collection(struct reader *reader, const yaml_event_t *event,
                            struct yaml_node *node) {
    if (reader->depth == YAML_DOC_MAX_DEPTH) {
        add_problem(reader, event->start_mark, "nested too deep, at most 32 levels are read");
        return -1;
    }
    reader->depth++;
    int r = event->type == YAML_MAPPING_START_EVENT ? parse_mapping(reader, node)
                                                    : parse_sequence(reader, node);
    reader->depth--;
    return r;
}

static bool has_tag(const yaml_event_t *event) {
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return event->data.scalar.tag != NULL;
    case YAML_SEQUENCE_START_EVENT:
        return event->data.sequence_start.tag != NULL;
    case YAML_MAPPING_START_EVENT:
        return event->data.mapping_start.tag != NULL;
    default:
        return false;
    }
}

/* Reads the value that begins with `event` into `node`, which may have its key already. */
static int parse_value(struct reader *reader, const yaml_event_t *event, struct yaml_node *node,
                       bool *ret_keep) {
    if (++reader->n_nodes > YAML_DOC_MAX_NODES) {
        add_problem(reader, event->start_mark, "too long, at most 20000 values are read");
        return -1;
    }
    node->line = event->start_mark.line + 1;
    node->column = event->start_mark.column + 1;
    if (has_tag(event)) {
        add_problem(reader, event->start_mark, "tags (!…) are not supported");
    }
    switch (event->type) {
    case YAML_ALIAS_EVENT:
        add_problem(reader, event->start_mark, "aliases (*…) are not supported");
        *ret_keep = false;
        return 0;
    case YAML_SCALAR_EVENT:
        return parse_scalar(reader, event, node, ret_keep);
    default:
        return parse_collection(reader, event, node);
    }
}

/* The document's value, between the events around it. */
static int parse_document(struct reader *reader, struct yaml_node *root) {
    yaml_event_t value CLEANUP_EVENT = {0}, end CLEANUP_EVENT = {0}, after CLEANUP_EVENT = {0};
    bool keep = true;
    if (next_event(reader, &value) < 0 || parse_value(reader, &value, root, &keep) < 0 ||
        next_event(reader, &end) < 0 || next_event(reader, &after) < 0) {
        return -1;
    }
    if (after.type != YAML_STREAM_END_EVENT) {
        add_problem(reader, after.start_mark, "a second document, only one is read");
    }
    return 0;
}

static int parse_stream(struct reader *reader, struct yaml_node *root) {
    yaml_event_t start CLEANUP_EVENT = {0}, document CLEANUP_EVENT = {0};
    if (next_event(reader, &start) < 0 || next_event(reader, &document) < 0) {
        return -1;
    }
    if (document.type != YAML_STREAM_END_EVENT && parse_document(reader, root) < 0) {
        return -1;
    }
    if (yaml_node_is_null(root)) {
        finish_node(root);
        *root = (struct yaml_node){.kind = YAML_KIND_MAPPING, .line = 1, .column = 1};
    }
    return 0;
}

struct yaml_doc *yaml_doc_parse(const char *file, const char *text, size_t len,
                                struct problems *problems) {
    struct reader reader = {.file = file, .text = text, .len = len, .problems = problems};
    struct yaml_doc *doc CLEANUP_YAML_DOC = calloc(1, sizeof(*doc));
    if (doc == NULL || !yaml_parser_initialize(&reader.parser)) {
        out_of_memory(&reader);
        return NULL;
    }
    yaml_parser_set_encoding(&reader.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&reader.parser, (const unsigned char *)text, len);
    int r = parse_stream(&reader, &doc->root);
    yaml_parser_delete(&reader.parser);
    buf_finish(&reader.path);
    return r < 0 ? NULL : TAKE(doc);
}

void yaml_doc_destroy(struct yaml_doc *doc) {
    if (doc != NULL) {
        finish_node(&doc->root);
        free(doc);
    }
}

const struct yaml_node *yaml_doc_root(const struct yaml_doc *doc) {
    return &doc->root;
}

const struct yaml_node *yaml_node_get(const struct yaml_node *mapping, const char *key) {
    for (size_t i = 0; i < mapping->n_items; i++) {
        const char *has = mapping->items[i].key;
        if (has != NULL && strcmp(has, key) == 0) {
            return &mapping->items[i];
        }
    }
    return NULL;
}

bool yaml_node_is_null(const struct yaml_node *node) {
    if (node->kind != YAML_KIND_SCALAR) {
        return false;
    }
    if (node->text == NULL) {
        return true;
    }
    return node->plain && (node->text[0] == '\0' || strcmp(node->text, "~") == 0 ||
                           strcasecmp(node->text, "null") == 0);
}

const char *yaml_node_kind_name(const struct yaml_node *node) {
    if (yaml_node_is_null(node)) {
        return "nothing";
    }
    switch (node->kind) {
    case YAML_KIND_SEQUENCE:
        return "a list";
    case YAML_KIND_MAPPING:
        return "a mapping";
    default:
        return "a value";
    }
}
