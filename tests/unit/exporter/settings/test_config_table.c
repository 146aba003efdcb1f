#include "exporter/settings/config.h"

#include <string.h>
#include <unity.h>

#include "collectors/collectors.h"
#include "exporter/settings/option.h"

static struct config_table table;

void setUp(void) {
    config_table_init(&table, collectors_all);
}

void tearDown(void) {
    config_table_finish(&table);
}

static void test_names_in_all_three_places(void) {
    static const struct collector gpu = {.name = "gpu", .help = "x", .on_by_default = true};
    config_table_finish(&table);
    config_table_init(&table, (const struct collector *const[]){&gpu, NULL});
    static const struct {
        const char *name, *key, *variable;
    } rows[] = {
        {"web.listen-address", "web.listen_address", "WAAP_WEB_LISTEN_ADDRESS"},
        {"web.config.file", "web.config.file", "WAAP_WEB_CONFIG_FILE"},
        {"collector.gpu", "collector.gpu.enabled", "WAAP_COLLECTOR_GPU"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct config_entry *entry = table.entries;
        while (strcmp(entry->option->name, rows[i].name) != 0) {
            entry++;
        }
        TEST_ASSERT_EQUAL_STRING(rows[i].key, entry->key);
        TEST_ASSERT_EQUAL_STRING(rows[i].variable, entry->variable);
    }
}

static void test_entries_are_sorted(void) {
    for (size_t i = 0; i < table.n_entries; i++) {
        TEST_ASSERT_EQUAL_PTR(table.entries[i].option, table.options[i]);
        if (i > 0) {
            const char *name = table.options[i]->name;
            TEST_ASSERT_TRUE_MESSAGE(strcmp(table.options[i - 1]->name, name) < 0, name);
        }
    }
}

static void test_exporter_options_are_sorted(void) {
    for (const struct option *option = exporter_options; option[1].name != NULL; option++) {
        TEST_ASSERT_TRUE_MESSAGE(strcmp(option[0].name, option[1].name) < 0, option[1].name);
    }
}

/* A key cannot be a value and a section at once, and a variable cannot mean two settings. */
static void test_names_do_not_clash(void) {
    for (size_t i = 0; i < table.n_entries; i++) {
        for (size_t j = 0; j < table.n_entries; j++) {
            const struct config_entry *a = &table.entries[i], *b = &table.entries[j];
            size_t len = strlen(a->key);
            bool below = strncmp(a->key, b->key, len) == 0 && b->key[len] == '.';
            TEST_ASSERT_FALSE_MESSAGE(below, a->key);
            if (i != j) {
                TEST_ASSERT_NOT_EQUAL_INT(0, strcmp(a->key, b->key));
                TEST_ASSERT_NOT_EQUAL_INT(0, strcmp(a->variable, b->variable));
            }
        }
    }
}

static void test_every_option_is_complete(void) {
    for (size_t i = 0; i < table.n_entries; i++) {
        const struct option *option = table.options[i];
        TEST_ASSERT_NOT_NULL_MESSAGE(option->help, option->name);
        size_t len = strlen(option->help);
        TEST_ASSERT_TRUE_MESSAGE(len > 0 && option->help[len - 1] != '.', option->name);
        int64_t number;
        struct error err = {0};
        const char *text = option->default_text != NULL ? option->default_text : "";
        bool empty = text[0] == '\0' && (option->repeatable || option->type == OPTION_BOOL);
        int r = empty ? 0 : option_parse(option, text, &number, &err);
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, r, err.text);
    }
}
