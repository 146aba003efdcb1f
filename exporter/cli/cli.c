#include "exporter/cli/cli.h"

#include <stdlib.h>
#include <string.h>

#include "exporter/core/arena.h"
#include "exporter/core/memory.h"
#include "exporter/core/version.h"

struct question {
    const char *flag;
    const char *help;
    void (*write)(const struct cli_build *build, struct buf *out);
};

static const struct question questions[] = {
    {"--help", "Show this text; also -h", cli_write_help},
    {"--list-collectors", "List what can be collected", cli_write_collectors},
    {"--list-metrics", "List the metrics that can appear", cli_write_metrics},
    {"--list-settings", "List what can be configured", cli_write_settings},
    {"--version", "Show the version", cli_write_version},
};

bool cli_answer(const struct cli_build *build, int argc, char *const *argv, struct buf *out) {
    for (int i = 1; i < argc; i++) {
        const char *flag = strcmp(argv[i], "-h") == 0 ? "--help" : argv[i];
        for (size_t j = 0; j < ARRAY_LEN(questions); j++) {
            if (strcmp(questions[j].flag, flag) == 0) {
                questions[j].write(build, out);
                return true;
            }
        }
    }
    return false;
}

void cli_write_version(const struct cli_build *build, struct buf *out) {
    (void)build;
    buf_printf(out, "waap %s (%s)\n", VERSION_TEXT, version_revision);
}

static void write_flag(const struct option *option, struct buf *out) {
    if (option->type == OPTION_BOOL) {
        buf_printf(out, "  --[no-]%s\n", option->name);
        return;
    }
    bool bare = option->bare_text != NULL;
    buf_printf(out, "  --%s%s=%s%s%s\n", option->name, bare ? "[" : "", option_placeholder(option),
               bare ? "]" : "", option->repeatable ? " (repeatable)" : "");
}

static void write_details(const struct config_entry *entry, struct buf *out) {
    const struct option *option = entry->option;
    const char *default_text = option->default_text;
    if (option->type == OPTION_BOOL) {
        bool on = default_text != NULL && strcmp(default_text, "true") == 0;
        buf_printf(out, "      Default %s", on ? "on" : "off");
    } else if (default_text != NULL && default_text[0] != '\0') {
        buf_printf(out, "      Default %s", default_text);
    } else {
        buf_add_str(out, "      Default empty");
    }
    if (option->type == OPTION_CHOICE || option->max != 0) {
        buf_add_str(out, "; ");
        option_describe(option, out);
    }
    buf_printf(out, "; %s\n", entry->variable);
}

/* "web" of "web.listen-address". */
static size_t group_len(const char *name) {
    return strcspn(name, ".");
}

static void write_option(const struct config_entry *entry, struct buf *out) {
    write_flag(entry->option, out);
    buf_printf(out, "      %s\n", entry->option->help);
    write_details(entry, out);
}

static void write_common_options(const struct config_table *table, struct buf *out) {
    buf_add_str(out, "common settings\n");
    for (size_t i = 0; i < table->n_entries; i++) {
        if (table->options[i]->common) {
            write_option(&table->entries[i], out);
        }
    }
}

static void write_other_options(const struct config_table *table, struct buf *out) {
    const char *group = "";
    for (size_t i = 0; i < table->n_entries; i++) {
        const char *name = table->options[i]->name;
        if (table->options[i]->common) {
            continue;
        }
        if (strncmp(group, name, group_len(name) + 1) != 0) {
            buf_printf(out, "\n%.*s\n", (int)group_len(name), name);
            group = name;
        }
        write_option(&table->entries[i], out);
    }
}

void cli_write_help(const struct cli_build *build, struct buf *out) {
    struct config_table table CLEANUP_CONFIG_TABLE = {0};
    config_table_init(&table, build->collectors);
    buf_add_str(out,
                "usage: waap serve [flags]\n\n"
                "Serves the metrics of this machine until it is told to stop.\n\n"
                "Write --name=value or --name value, and --name or --no-name for switches.\n"
                "Every setting is also an environment variable and a key of the YAML file:\n"
                "--web.max-requests is max_requests under web, --collector.NAME is enabled\n"
                "under collector: NAME. Flags win over variables, variables over the file.\n"
                "Sizes are written 512, 64KiB, 10MiB; durations 500ms, 10s, 1m30s, 1h.\n"
                "Repeatable settings are lists in the file and split at commas in variables.\n\n");
    write_common_options(&table, out);
    buf_add_str(out, "\nquestions\n");
    for (size_t i = 0; i < ARRAY_LEN(questions); i++) {
        buf_printf(out, "  %s\n      %s\n", questions[i].flag, questions[i].help);
    }
    write_other_options(&table, out);
}

/* ---- lists ---- */

enum { LIST_MAX_COLUMNS = 6 };

struct row {
    const char *cells[LIST_MAX_COLUMNS];
};

struct list {
    struct row *rows;
    size_t n_rows, cap_rows;
    size_t n_columns;
};

static void list_add(struct list *list, struct row row) {
    ARRAY_GROW(&list->rows, &list->cap_rows, list->n_rows + 1);
    list->rows[list->n_rows++] = row;
}

static void list_finish(struct list *list) {
    free(list->rows);
}

/* Two spaces between columns, because a cell may contain single ones; the last is not padded. */
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
        list_add(list,
                 (struct row){{
                     metric->name,
                     metric_type_name(metric->type),
                     metric->labels != NULL && metric->labels[0] != '\0' ? metric->labels : "-",
                     collector->name,
                     metric->help,
                 }});
    }
}

static int compare_rows(const void *a, const void *b) {
    const struct row *first = a, *second = b;
    int r = strcmp(first->cells[0], second->cells[0]);
    return r != 0 ? r : strcmp(first->cells[3], second->cells[3]);
}

void cli_write_metrics(const struct cli_build *build, struct buf *out) {
    struct list list CLEANUP(list_finish) = {.n_columns = 5};
    list_add(&list, (struct row){{"metric", "type", "labels", "collector", "help"}});
    for (size_t i = 0; build->collectors[i] != NULL; i++) {
        add_metrics(&list, build->collectors[i]);
    }
    add_metrics(&list, &build->own);
    qsort(list.rows + 1, list.n_rows - 1, sizeof(*list.rows), compare_rows);
    list_write(&list, out);
}

static const char *describe(const struct option *option, struct arena *texts) {
    struct buf text CLEANUP_BUF = {0};
    option_describe(option, &text);
    if (option->repeatable) {
        buf_add_str(&text, ", repeatable");
    }
    return arena_copy(texts, buf_str(&text), text.len + 1);
}

void cli_write_settings(const struct cli_build *build, struct buf *out) {
    struct config_table table CLEANUP_CONFIG_TABLE = {0};
    struct arena texts CLEANUP_ARENA = {0};
    config_table_init(&table, build->collectors);
    struct list list CLEANUP(list_finish) = {.n_columns = 6};
    list_add(&list, (struct row){{"setting", "key", "variable", "takes", "default", "help"}});
    for (size_t i = 0; i < table.n_entries; i++) {
        const struct config_entry *entry = &table.entries[i];
        const struct option *option = entry->option;
        const char *default_text = option->default_text != NULL  ? option->default_text
                                   : option->type == OPTION_BOOL ? "false"
                                                                 : "";
        list_add(&list, (struct row){{
                            option->name,
                            option->not_in_file ? "-" : entry->key,
                            entry->variable,
                            describe(option, &texts),
                            default_text[0] != '\0' ? default_text : "-",
                            option->help,
                        }});
    }
    list_write(&list, out);
}

void cli_write_collectors(const struct cli_build *build, struct buf *out) {
    struct list list CLEANUP(list_finish) = {.n_columns = 3};
    list_add(&list, (struct row){{"collector", "default", "reads"}});
    for (size_t i = 0; build->collectors[i] != NULL; i++) {
        const struct collector *collector = build->collectors[i];
        list_add(&list, (struct row){{collector->name, collector->on_by_default ? "on" : "off",
                                      collector->help}});
    }
    list_write(&list, out);
}
