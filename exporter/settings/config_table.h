#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "collectors/collector.h"
#include "exporter/core/cleanup.h"
#include "exporter/settings/option.h"

/* Everything that can be configured in this build, and the names it has in the three places. */

struct config_entry {
    const struct option *option;
    char *key;      /* in the file: "web.listen_address", "collector.host.enabled" */
    char *variable; /* "WAAP_WEB_LISTEN_ADDRESS" */
};

struct config_table {
    struct config_entry *entries;  /* sorted by the name of the option */
    const struct option **options; /* the same rows, as settings_create wants them */
    size_t n_entries;
    struct option *switches; /* --collector.<name>, made from the collectors */
    size_t n_switches;
};

/* The exporter's own options, one switch for each of the NULL-terminated `collectors` and their
 * options. -ENOMEM. The collectors must outlive the table. */
int config_table_init(struct config_table *table, const struct collector *const *collectors);
void config_table_finish(struct config_table *table);
#define CLEANUP_CONFIG_TABLE CLEANUP(config_table_finish)

/* The entry of the option of that name, or NULL. `name` need not end in NUL. */
const struct config_entry *config_table_find(const struct config_table *table, const char *name,
                                             size_t len);
