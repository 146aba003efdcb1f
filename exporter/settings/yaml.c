#include "exporter/settings/yaml.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

#include "exporter/core/memory.h"
#include "exporter/settings/suggest.h"

enum { YAML_DOC_MAX_DEPTH = 32, YAML_DOC_MAX_NODES = 20000 };

struct yaml_doc {
    struct yaml_node root;
};

/* The state of one parse. Functions return 0, or -1 if it cannot go on; `problems` has the reason
 * then. */
struct parse {
    yaml_parser_t parser;
    const char *file;
    const char *text;
    size_t len;
    struct problems *problems;
    struct buf path; /* dotted key of what is being read: "web.listen_address[1]" */
    size_t n_nodes;
    int depth;
};

static int parse_value(struct parse *parse, const yaml_event_t *event, struct yaml_node *node,
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
static void complain_at(struct parse *parse, yaml_mark_t mark, const char *text) {
    const char *path = buf_str(&parse->path);
    problems_add(parse->problems, parse->file, mark.line + 1, mark.column + 1, "%s%s%s", path,
                 path[0] != '\0' ? ": " : "", text);
}

/* Bytes that are no text at all have an offset instead of a mark. */
static void add_byte_problem(struct parse *parse) {
    size_t end = parse->parser.problem_offset;
    size_t line = 1, column = 1;
    for (size_t i = 0; i < end && i < parse->len; i++) {
        bool line_ends = parse->text[i] == '\n';
        line += line_ends ? 1 : 0;
        column = line_ends ? 1 : column + 1;
    }
    problems_add(parse->problems, parse->file, line, column, "not valid YAML: %s",
                 parse->parser.problem);
}

/* Whether the scanner stopped at a tab; it counts characters, not bytes. */
static bool is_at_tab(const struct parse *parse) {
    size_t left = parse->parser.problem_mark.index;
    for (size_t i = 0; i < parse->len; i++) {
        bool begins = (parse->text[i] & 0xc0) != 0x80;
        if (begins && left-- == 0) {
            return parse->text[i] == '\t';
        }
    }
    return false;
}

static void add_syntax_problem(struct parse *parse) {
    const yaml_parser_t *parser = &parse->parser;
    struct buf text CLEANUP_BUF = {0};
    if (parser->error == YAML_MEMORY_ERROR || parser->problem == NULL) {
        mem_out();
    } else if (parser->error == YAML_READER_ERROR) {
        add_byte_problem(parse);
        return;
    } else if (parser->error == YAML_SCANNER_ERROR && is_at_tab(parse)) {
        buf_add_str(&text, "a tab, only spaces may indent a line");
    } else {
        buf_add_str(&text, parser->problem);
        if (parser->context != NULL) {
            buf_printf(&text, " %s that began in line %zu", parser->context,
                       parser->context_mark.line + 1);
        }
    }
    problems_add(parse->problems, parse->file, parser->problem_mark.line + 1,
                 parser->problem_mark.column + 1, "not valid YAML: %s", buf_str(&text));
}

static int next_event(struct parse *parse, yaml_event_t *event) {
    if (yaml_parser_parse(&parse->parser, event)) {
        return 0;
    }
    *event = (yaml_event_t){0};
    add_syntax_problem(parse);
    return -1;
}

/* Adds a key to the path and returns the length to cut it back to. */
static size_t enter_key(struct parse *parse, const char *key) {
    size_t len = parse->path.len;
    buf_printf(&parse->path, "%s%s", len > 0 ? "." : "", key);
    return len;
}

/* Moves `item` to the end of the items of `node`. */
static void append_item(struct yaml_node *node, struct yaml_node *item) {
    ARRAY_GROW(&node->items, &node->cap_items, node->n_items + 1);
    node->items[node->n_items++] = *item;
    *item = (struct yaml_node){0};
}

static void parse_scalar(struct parse *parse, const yaml_event_t *event, struct yaml_node *node,
                         bool *ret_keep) {
    const char *value = (const char *)event->data.scalar.value;
    size_t len = event->data.scalar.length;
    if (strlen(value) != len) {
        complain_at(parse, event->start_mark, "a text must not contain NUL");
        *ret_keep = false;
        return;
    }
    node->kind = YAML_KIND_SCALAR;
    node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    node->text = mem_strdup(value);
}

/* Gives `item` the key in `event`; one that cannot be used is reported and the item not kept. */
static int parse_key(struct parse *parse, const yaml_event_t *event,
                     const struct yaml_node *mapping, struct yaml_node *item, bool *ret_keep) {
    struct yaml_node key CLEANUP(finish_node) = {0};
    if (parse_value(parse, event, &key, ret_keep) < 0) {
        return -1;
    }
    if (*ret_keep && key.kind != YAML_KIND_SCALAR) {
        complain_at(parse, event->start_mark, "a key must be a plain text");
        *ret_keep = false;
    }
    if (!*ret_keep) {
        return 0;
    }
    const struct yaml_node *first = yaml_node_get(mapping, key.text);
    if (first != NULL) {
        size_t outside = enter_key(parse, key.text);
        struct buf text CLEANUP_BUF = {0};
        buf_printf(&text, "duplicate key, first given in line %zu", first->key_line);
        complain_at(parse, event->start_mark, buf_str(&text));
        buf_truncate(&parse->path, outside);
        *ret_keep = false;
    }
    item->key = TAKE(key.text);
    item->key_line = event->start_mark.line + 1;
    item->key_column = event->start_mark.column + 1;
    return 0;
}

/* Reads one item; 0 at the end of the collection. */
static int parse_item(struct parse *parse, struct yaml_node *node, size_t index) {
    bool mapping = node->kind == YAML_KIND_MAPPING;
    yaml_event_t first CLEANUP_EVENT = {0}, second CLEANUP_EVENT = {0};
    struct yaml_node item CLEANUP(finish_node) = {0};
    bool keep_key = true, keep = true;
    if (next_event(parse, &first) < 0) {
        return -1;
    }
    if (first.type == YAML_MAPPING_END_EVENT || first.type == YAML_SEQUENCE_END_EVENT) {
        return 0;
    }
    size_t outside = parse->path.len;
    if (!mapping) {
        buf_printf(&parse->path, "[%zu]", index);
    } else if (parse_key(parse, &first, node, &item, &keep_key) < 0 ||
               next_event(parse, &second) < 0) {
        return -1;
    } else {
        enter_key(parse, item.key != NULL ? item.key : "?");
    }
    int r = parse_value(parse, mapping ? &second : &first, &item, &keep);
    buf_truncate(&parse->path, outside);
    if (r == 0 && keep_key && keep) {
        append_item(node, &item);
    }
    return r < 0 ? -1 : 1;
}

static int parse_collection(struct parse *parse, const yaml_event_t *event,
                            struct yaml_node *node) {
    if (parse->depth == YAML_DOC_MAX_DEPTH) {
        complain_at(parse, event->start_mark, "nested too deep, at most 32 levels are read");
        return -1;
    }
    parse->depth++;
    node->kind = event->type == YAML_MAPPING_START_EVENT ? YAML_KIND_MAPPING : YAML_KIND_SEQUENCE;
    int r = 1;
    for (size_t index = 0; r > 0; index++) {
        r = parse_item(parse, node, index);
    }
    parse->depth--;
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
static int parse_value(struct parse *parse, const yaml_event_t *event, struct yaml_node *node,
                       bool *ret_keep) {
    if (++parse->n_nodes > YAML_DOC_MAX_NODES) {
        complain_at(parse, event->start_mark, "too long, at most 20000 values are read");
        return -1;
    }
    node->line = event->start_mark.line + 1;
    node->column = event->start_mark.column + 1;
    if (has_tag(event)) {
        complain_at(parse, event->start_mark, "tags (!…) are not supported");
    }
    switch (event->type) {
    case YAML_ALIAS_EVENT:
        complain_at(parse, event->start_mark, "aliases (*…) are not supported");
        *ret_keep = false;
        return 0;
    case YAML_SCALAR_EVENT:
        parse_scalar(parse, event, node, ret_keep);
        return 0;
    default:
        return parse_collection(parse, event, node);
    }
}

/* The document's value, between the events around it. */
static int parse_document(struct parse *parse, struct yaml_node *root) {
    yaml_event_t value CLEANUP_EVENT = {0}, end CLEANUP_EVENT = {0}, after CLEANUP_EVENT = {0};
    bool keep = true;
    if (next_event(parse, &value) < 0 || parse_value(parse, &value, root, &keep) < 0 ||
        next_event(parse, &end) < 0 || next_event(parse, &after) < 0) {
        return -1;
    }
    if (after.type != YAML_STREAM_END_EVENT) {
        complain_at(parse, after.start_mark, "a second document, only one is read");
    }
    return 0;
}

static int parse_stream(struct parse *parse, struct yaml_node *root) {
    yaml_event_t start CLEANUP_EVENT = {0}, document CLEANUP_EVENT = {0};
    if (next_event(parse, &start) < 0 || next_event(parse, &document) < 0) {
        return -1;
    }
    if (document.type != YAML_STREAM_END_EVENT && parse_document(parse, root) < 0) {
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
    struct parse parse = {.file = file, .text = text, .len = len, .problems = problems};
    struct yaml_doc *doc CLEANUP_YAML_DOC = mem_zalloc(1, sizeof(*doc));
    if (!yaml_parser_initialize(&parse.parser)) {
        mem_out();
    }
    yaml_parser_set_encoding(&parse.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parse.parser, (const unsigned char *)text, len);
    int r = parse_stream(&parse, &doc->root);
    yaml_parser_delete(&parse.parser);
    buf_finish(&parse.path);
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

/* ---- keys ---- */

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
    struct buf hint CLEANUP_BUF = {0};
    suggest_write(&suggest, "", &hint);
    problems_add(reader->problems, reader->file, node->key_line, node->key_column,
                 "%s: unknown key%s", buf_str(&reader->path), buf_str(&hint));
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
