#include <stdlib.h>
#include <string.h>

#include "exporter/settings/config_read.h"
#include "exporter/settings/suggest.h"

static const struct config_entry *find_variable(const struct config_table *table,
                                                const char *name) {
    for (size_t i = 0; i < table->n_entries; i++) {
        if (strcmp(table->entries[i].variable, name) == 0) {
            return &table->entries[i];
        }
    }
    return NULL;
}

/* Those of the plugin libraries and of what `waap run` starts, where a daemon is started too. */
static bool is_for_plugins(const char *name) {
    static const char *const names[] = {"WAAP_DATASET", "WAAP_DEBUG", "WAAP_JOB",
                                        "WAAP_PLUGIN_NAME", "WAAP_PROGRAM"};
    size_t i = 0;
    while (i < ARRAY_LEN(names) && strcmp(names[i], name) != 0) {
        i++;
    }
    return i < ARRAY_LEN(names);
}

static void add_unknown_variable(const struct config_table *table, const char *name,
                                 struct problems *warnings) {
    struct suggest suggest;
    suggest_init(&suggest, name);
    for (size_t i = 0; i < table->n_entries; i++) {
        const char *variable = table->entries[i].variable;
        suggest_offer(&suggest, variable, strlen(variable));
    }
    struct buf text CLEANUP_BUF = {0};
    buf_add_str(&text, "unknown variable");
    suggest_write(&suggest, "", &text);
    problems_add(warnings, name, 0, 0, "%s", buf_str(&text));
}

static void set_variable(const struct config_entry *entry, const char *value,
                         struct settings *settings, struct problems *problems) {
    struct error err;
    if (settings_set(settings, entry->option, SETTINGS_ENVIRONMENT, value, &err) < 0) {
        problems_add(problems, entry->variable, 0, 0, "%s", err.text);
    }
}

/* "a,b" sets two values; empty parts are passed over. */
static void set_list(const struct config_entry *entry, char *values, struct settings *settings,
                     struct problems *problems) {
    char *next = values;
    for (char *value = strsep(&next, ","); value != NULL; value = strsep(&next, ",")) {
        if (value[0] != '\0') {
            set_variable(entry, value, settings, problems);
        }
    }
}

void config_read_environment(const struct config_table *table, char *const *variables,
                             struct settings *settings, struct problems *problems,
                             struct problems *warnings) {
    for (; variables != NULL && *variables != NULL; variables++) {
        if (strncmp(*variables, "WAAP_", strlen("WAAP_")) != 0) {
            continue;
        }
        char *name CLEANUP_FREE = strdup(*variables);
        char *equals = name != NULL ? strchr(name, '=') : NULL;
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
