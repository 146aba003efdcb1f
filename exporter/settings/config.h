#pragma once

#include <stdatomic.h>
#include <stddef.h>

#include "collectors/collector.h"
#include "exporter/core/cleanup.h"
#include "exporter/net/listen_names.h"
#include "exporter/settings/config_table.h"
#include "exporter/settings/problems.h"
#include "exporter/settings/settings.h"

/* The settings of one start or reload: flags win over environment over file over defaults. Counted:
 * whoever uses the settings keeps a reference of the whole. */
struct config {
    atomic_uint refs;
    struct config_table table;
    struct settings *settings;
    struct listen_names *names; /* looked up for listening; NULL where nothing listens */
    char *file;                 /* the YAML file that was read, or NULL */
    struct problems warnings;   /* what is odd but no reason to refuse */
};

struct config_sources {
    const char *file;       /* NULL: the one named by --config.file or WAAP_CONFIG_FILE, if any */
    char *const *variables; /* "NAME=value", NULL-terminated, like environ; NULL: none */
    char *const *argv;      /* argv[0] is passed over */
    int argc;
};

/* Reads the sources. -EINVAL where something is wrong; every mistake is then in `problems`, with
 * the place where it stands: "waap.yaml:3:5", "--web.max-requests", "WAAP_WEB_MAX_REQUESTS". The
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
