#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unity.h>

#include "collectors/collectors.h"
#include "exporter/core/file.h"
#include "exporter/settings/config.h"
#include "exporter/settings/yaml.h"

/* deploy/waap.yaml holds every key of this build at its default. */

static char sample[4096];

static struct config *load(const char *file) {
    struct problems problems CLEANUP_PROBLEMS = {0};
    struct config *config = NULL;
    struct config_sources sources = {.file = file};
    config_load(collectors_all, &sources, &config, &problems);
    TEST_ASSERT_NOT_NULL_MESSAGE(config, problems.n_lines > 0 ? problems.lines[0] : "no problem");
    return config;
}

static void test_values_are_the_defaults(void) {
    struct config *defaults CLEANUP_CONFIG = load(NULL);
    struct config *config CLEANUP_CONFIG = load(sample);
    for (size_t i = 0; i < config->table.n_entries; i++) {
        const char *name = config->table.options[i]->name;
        TEST_ASSERT_TRUE_MESSAGE(settings_equal(defaults->settings, config->settings, name), name);
    }
}

static const struct yaml_node *find(const struct yaml_node *node, const char *key) {
    char *copy CLEANUP_FREE = strdup(key);
    char *next = copy;
    while (node != NULL && next != NULL) {
        node = yaml_node_get(node, strsep(&next, "."));
    }
    return node;
}

static void test_every_key_occurs(void) {
    struct problems problems CLEANUP_PROBLEMS = {0};
    struct buf text CLEANUP_BUF = {0};
    TEST_ASSERT_EQUAL_INT(0, file_read(sample, &text, NULL));
    struct yaml_doc *doc CLEANUP_YAML_DOC =
        yaml_doc_parse(sample, buf_str(&text), text.len, &problems);
    TEST_ASSERT_NOT_NULL(doc);
    struct config_table table CLEANUP_CONFIG_TABLE = {0};
    config_table_init(&table, collectors_all);
    for (size_t i = 0; i < table.n_entries; i++) {
        const struct config_entry *entry = &table.entries[i];
        if (!entry->option->not_in_file) {
            TEST_ASSERT_NOT_NULL_MESSAGE(find(yaml_doc_root(doc), entry->key), entry->key);
        }
    }
}

void suiteSetUp(void) {
    snprintf(sample, sizeof(sample), "%s/deploy/waap.yaml", getenv("WAAP_SOURCE_ROOT"));
}
