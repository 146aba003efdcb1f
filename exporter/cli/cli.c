#include "exporter/cli/cli.h"

#include <string.h>

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
    static const char *const placeholders[] = {
        [OPTION_BOOL] = "",       [OPTION_INT] = "N",
        [OPTION_SIZE] = "SIZE",   [OPTION_DURATION] = "DURATION",
        [OPTION_STRING] = "TEXT", [OPTION_CHOICE] = "WORD",
        [OPTION_REGEX] = "REGEX",
    };
    if (option->type == OPTION_BOOL) {
        buf_printf(out, "  --[no-]%s\n", option->name);
        return;
    }
    bool bare = option->bare_text != NULL;
    buf_printf(out, "  --%s%s=%s%s%s\n", option->name, bare ? "[" : "", placeholders[option->type],
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
