#include <stdio.h>

#include "exporter/cli/cli.h"
#include "exporter/core/file.h"
#include "exporter/http/web_config.h"
#include "exporter/settings/config.h"
#include "exporter/settings/yaml.h"

enum { WEB_CONFIG_MAX = 1 << 20 };

/* A web configuration has sections that the daemon's own file cannot have. If the file cannot be
 * read or parsed, the reader of the daemon's file reports it. */
static bool is_web_config(const char *file) {
    static const char *const sections[] = {"basic_auth_users", "http_server_config", "rate_limit",
                                           "tls_server_config"};
    struct problems problems CLEANUP_PROBLEMS = {0};
    struct buf text CLEANUP_BUF = {0};
    if (file_read_stored(file, WEB_CONFIG_MAX, &text, NULL) < 0) {
        return false;
    }
    struct yaml_doc *doc CLEANUP_YAML_DOC =
        yaml_doc_parse(file, buf_str(&text), text.len, &problems);
    const struct yaml_node *root = doc != NULL ? yaml_doc_root(doc) : NULL;
    bool found = false;
    for (size_t i = 0; root != NULL && root->kind == YAML_KIND_MAPPING && i < ARRAY_LEN(sections);
         i++) {
        found = found || yaml_node_get(root, sections[i]) != NULL;
    }
    return found;
}

/* Ignores the environment, which may be different where the file is used. */
static int load(const struct collector *const *collectors, const char *file,
                struct problems *problems) {
    struct config *config CLEANUP_CONFIG = NULL;
    struct web_config *web_config CLEANUP_WEB_CONFIG = NULL;
    struct config_sources sources = {.file = file};
    if (is_web_config(file)) {
        return web_config_load(file, &web_config, problems);
    }
    int r = config_load(collectors, &sources, &config, problems);
    return r < 0 ? r : web_config_load_set(config->settings, &web_config, problems);
}

static bool check_file(const struct collector *const *collectors, const char *file) {
    struct problems problems CLEANUP_PROBLEMS = {0};
    if (load(collectors, file, &problems) < 0) {
        problems_print(&problems, stderr);
        return false;
    }
    printf("%s: ok\n", file);
    return true;
}

int check_config_main(const struct collector *const *collectors, int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: waap check-config FILE...\n");
        return 2;
    }
    int exit_code = 0;
    for (int i = 1; i < argc; i++) {
        if (!check_file(collectors, argv[i])) {
            exit_code = 2;
        }
    }
    return exit_code;
}
