#include "exporter/settings/config_table.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/buf.h"
#include "exporter/settings/options.h"

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

static int add_entry(struct config_table *table, const struct option *option) {
    struct config_entry *entry = &table->entries[table->n_entries++];
    *entry = (struct config_entry){
        .option = option,
        .key = make_key(table, option),
        .variable = make_variable(option),
    };
    return entry->key == NULL || entry->variable == NULL ? -ENOMEM : 0;
}

static int add_entries(struct config_table *table, const struct option *options) {
    for (; options != NULL && options->name != NULL; options++) {
        if (add_entry(table, options) < 0) {
            return -ENOMEM;
        }
    }
    return 0;
}

static int add_switch(struct config_table *table, const struct collector *collector) {
    struct buf name = {0};
    buf_printf(&name, "collector.%s", collector->name);
    struct option *option = &table->switches[table->n_switches++];
    *option = (struct option){
        .name = buf_take(&name),
        .type = OPTION_BOOL,
        .default_text = collector->on_by_default ? "true" : "false",
        .help = collector->help,
    };
    return option->name == NULL ? -ENOMEM : add_entry(table, option);
}

static int compare_entries(const void *a, const void *b) {
    const struct config_entry *first = a, *second = b;
    return strcmp(first->option->name, second->option->name);
}

static int fill(struct config_table *table, const struct collector *const *collectors) {
    size_t n_switches = 0, n = count_options(exporter_options);
    for (; collectors[n_switches] != NULL; n_switches++) {
        n += 1 + count_options(collectors[n_switches]->options);
    }
    table->entries = calloc(n, sizeof(*table->entries));
    table->options = calloc(n, sizeof(*table->options));
    table->switches = calloc(n_switches + 1, sizeof(*table->switches));
    if (table->entries == NULL || table->options == NULL || table->switches == NULL) {
        return -ENOMEM;
    }
    int r = add_entries(table, exporter_options);
    for (size_t i = 0; r == 0 && collectors[i] != NULL; i++) {
        r = add_switch(table, collectors[i]);
        r = r == 0 ? add_entries(table, collectors[i]->options) : r;
    }
    return r;
}

int config_table_init(struct config_table *table, const struct collector *const *collectors) {
    *table = (struct config_table){0};
    int r = fill(table, collectors);
    if (r < 0) {
        config_table_finish(table);
        return r;
    }
    qsort(table->entries, table->n_entries, sizeof(*table->entries), compare_entries);
    for (size_t i = 0; i < table->n_entries; i++) {
        table->options[i] = table->entries[i].option;
    }
    return 0;
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

const struct config_entry *config_table_find(const struct config_table *table, const char *name,
                                             size_t len) {
    for (size_t i = 0; i < table->n_entries; i++) {
        const char *has = table->options[i]->name;
        if (strncmp(has, name, len) == 0 && has[len] == '\0') {
            return &table->entries[i];
        }
    }
    return NULL;
}
