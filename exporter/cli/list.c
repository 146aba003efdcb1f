#include <stdlib.h>
#include <string.h>

#include "exporter/cli/cli.h"
#include "exporter/core/arena.h"
#include "exporter/core/memory.h"

enum { LIST_MAX_COLUMNS = 6 };

struct row {
    const char *cells[LIST_MAX_COLUMNS];
};

struct list {
    struct row *rows;
    size_t n_rows;
    size_t cap_rows;
    size_t n_columns;
};

static void list_finish(struct list *list) {
    free(list->rows);
}

/* Two spaces between columns, so that a cell may hold single ones; the last is not padded. */
static void list_write(const struct list *list, struct buf *out) {
    int widths[LIST_MAX_COLUMNS] = {0};
    for (size_t i = 0; i < list->n_rows; i++) {
        for (size_t j = 0; j + 1 < list->n_columns; j++) {
            int len = (int)strlen(list->rows[i].cells[j]);
            widths[j] = len > widths[j] ? len : widths[j];
        }
    }
    for (size_t i = 0; i < list->n_rows; i++) {
        for (size_t j = 0; j + 1 < list->n_columns; j++) {
            buf_printf(out, "%-*s  ", widths[j], list->rows[i].cells[j]);
        }
        buf_printf(out, "%s\n", list->rows[i].cells[list->n_columns - 1]);
    }
}

static void add_metrics(struct list *list, const struct collector *collector) {
    const struct metric_desc *metric;
    for (size_t i = 0; (metric = collector_metric(collector, i)) != NULL; i++) {
        ARRAY_GROW(&list->rows, &list->cap_rows, list->n_rows + 1);
        list->rows[list->n_rows++] = (struct row){{
            metric->name,
            metric_type_name(metric->type),
            metric->labels != NULL && metric->labels[0] != '\0' ? metric->labels : "-",
            collector->name,
            metric->help,
        }};
    }
}

static int compare_rows(const void *a, const void *b) {
    const struct row *first = a, *second = b;
    int r = strcmp(first->cells[0], second->cells[0]);
    return r != 0 ? r : strcmp(first->cells[3], second->cells[3]);
}

void cli_write_metrics(const struct cli_build *build, struct buf *out) {
    struct list list CLEANUP(list_finish) = {.n_rows = 1, .n_columns = 5};
    ARRAY_GROW(&list.rows, &list.cap_rows, 1);
    list.rows[0] = (struct row){{"metric", "type", "labels", "collector", "help"}};
    for (size_t i = 0; build->collectors[i] != NULL; i++) {
        add_metrics(&list, build->collectors[i]);
    }
    for (size_t i = 0; build->own_metrics[i] != NULL; i++) {
        add_metrics(&list, &(struct collector){.name = "-", .metrics = build->own_metrics[i]});
    }
    qsort(list.rows + 1, list.n_rows - 1, sizeof(*list.rows), compare_rows);
    list_write(&list, out);
}

static const char *describe(const struct option *option, struct arena *texts) {
    struct buf text CLEANUP_BUF = {0};
    option_describe(option, &text);
    if (option->repeatable) {
        buf_add_str(&text, ", repeatable");
    }
    const char *copy = arena_copy(texts, buf_str(&text), text.len + 1);
    return copy != NULL ? copy : "-";
}

void cli_write_settings(const struct cli_build *build, struct buf *out) {
    struct config_table table CLEANUP_CONFIG_TABLE = {0};
    struct arena texts CLEANUP_ARENA = {0};
    config_table_init(&table, build->collectors);
    struct list list CLEANUP(list_finish) = {
        .rows = calloc(table.n_entries + 1, sizeof(struct row)), .n_rows = 1, .n_columns = 6};
    if (list.rows == NULL) {
        return;
    }
    list.rows[0] = (struct row){{"setting", "key", "variable", "takes", "default", "help"}};
    for (size_t i = 0; i < table.n_entries; i++) {
        const struct config_entry *entry = &table.entries[i];
        const struct option *option = entry->option;
        const char *default_text = option->default_text != NULL  ? option->default_text
                                   : option->type == OPTION_BOOL ? "false"
                                                                 : "";
        list.rows[list.n_rows++] = (struct row){{
            option->name,
            option->not_in_file ? "-" : entry->key,
            entry->variable,
            describe(option, &texts),
            default_text[0] != '\0' ? default_text : "-",
            option->help,
        }};
    }
    list_write(&list, out);
}

void cli_write_collectors(const struct cli_build *build, struct buf *out) {
    size_t n = 1;
    while (build->collectors[n - 1] != NULL) {
        n++;
    }
    struct list list CLEANUP(list_finish) = {
        .rows = calloc(n, sizeof(struct row)), .n_rows = 1, .n_columns = 3};
    if (list.rows == NULL) {
        return;
    }
    list.rows[0] = (struct row){{"collector", "default", "reads"}};
    for (size_t i = 0; build->collectors[i] != NULL; i++) {
        const struct collector *collector = build->collectors[i];
        list.rows[list.n_rows++] = (struct row){
            {collector->name, collector->on_by_default ? "on" : "off", collector->help}};
    }
    list_write(&list, out);
}
