#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "collectors/collector.h"
#include "exporter/core/cleanup.h"
#include "exporter/net/listen_names.h"
#include "exporter/settings/option.h"
#include "exporter/settings/problems.h"
#include "exporter/settings/settings.h"

/* The settings of the daemon itself, sorted by name, ended by a nameless row. Those of the
 * collectors are beside each collector. */
extern const struct option exporter_options[];

/* ---- names ---- */

/* Everything that can be configured in this build, and its names in the three places. */

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
 * options. The collectors must outlive the table. */
void config_table_init(struct config_table *table, const struct collector *const *collectors);
void config_table_finish(struct config_table *table);
#define CLEANUP_CONFIG_TABLE CLEANUP(config_table_finish)

/* ---- values ---- */

/* The settings of one start or reload: flags win over environment over file over defaults. Counted:
 * every user of the settings keeps a reference of the whole. */
struct config {
    atomic_uint refs;
    struct config_table table;
    struct settings *settings;
    struct listen_names *names; /* looked up for listening; NULL if nothing listens */
    struct problems warnings;   /* odd, but no reason to reject it */
};

struct config_sources {
    const char *file;       /* NULL: the one named by --config.file or WAAP_CONFIG_FILE, if any */
    char *const *variables; /* "NAME=value", NULL-terminated, like environ; NULL: none */
    char *const *argv;      /* argv[0] is skipped */
    int argc;
};

/* Reads the sources. -EINVAL if something is wrong; every mistake is then in `problems`, with its
 * place: "waap.yaml:3:5", "--web.max-requests", "WAAP_WEB_MAX_REQUESTS". The
 * switches of collectors (settings_bool "collector.host") are final: collector.disable-defaults is
 * worked in. The caller drops it with config_unref. */
int config_load(const struct collector *const *collectors, const struct config_sources *sources,
                struct config **ret_config, struct problems *problems);

/* The same from the command line and the environment of the process. */
int config_from_command_line(const struct collector *const *collectors, int argc, char **argv,
                             struct config **ret_config, struct problems *problems);

struct config *config_ref(struct config *config);
void config_unref(struct config *config); /* accepts NULL */

static inline void config_cleanup(struct config **config) {
    config_unref(*config);
}
#define CLEANUP_CONFIG CLEANUP(config_cleanup)

/* Sets options from a YAML file's text. It goes on after a mistake, so that all are reported. */
void config_read_yaml(const struct config_table *table, const char *file, const char *text,
                      size_t len, struct settings *settings, struct problems *problems);
