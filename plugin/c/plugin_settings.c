#define _GNU_SOURCE 1
#include "plugin_settings.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin_metric.h"

enum { INTERVAL_MS = 250, MAX_SERIES = 1000 };

static bool copy(const char *from, char **to) {
    if (from == NULL || from[0] == '\0') {
        return true;
    }
    free(*to);
    *to = strdup(from);
    return *to != NULL;
}

int waap_settings_set(struct waap_settings *settings, const struct waap_options *options) {
    char *labels;
    if (!waap_labels_render(options->labels, &labels)) {
        return -errno;
    }
    free(settings->labels);
    settings->labels = labels;
    settings->interval_ms = options->interval_ms;
    settings->max_series = options->max_series;
    settings->on_error = options->on_error;
    settings->data = options->data;
    bool good = copy(options->socket, &settings->socket) &&
                copy(options->plugin, &settings->plugin) && copy(options->job, &settings->job);
    return good ? 0 : -ENOMEM;
}

/* The first of the caller's word, the environment's and `fallback` that says something. */
static bool complete(char **text, const char *variable, const char *fallback) {
    if (*text != NULL) {
        return true;
    }
    const char *value = getenv(variable);
    return copy(value != NULL && value[0] != '\0' ? value : fallback, text);
}

static bool wants_debug(void) {
    const char *value = getenv("WAAP_DEBUG");
    return value != NULL && value[0] != '\0' && strcmp(value, "0") != 0;
}

int waap_settings_complete(struct waap_settings *settings) {
    settings->interval_ms = settings->interval_ms != 0 ? settings->interval_ms : INTERVAL_MS;
    settings->max_series = settings->max_series != 0 ? settings->max_series : MAX_SERIES;
    settings->debug = wants_debug();
    bool good = complete(&settings->socket, "WAAP_PUSH_SOCKET", "/run/waap/push.sock") &&
                complete(&settings->plugin, "WAAP_PLUGIN_NAME", program_invocation_short_name) &&
                complete(&settings->job, "WAAP_JOB", NULL);
    return good ? 0 : -ENOMEM;
}

/* By its hash: what a loop makes again and again is told once. */
static bool is_first(const char *name) {
    static _Atomic uint64_t told[16];
    unsigned hash = 5381;
    for (const char *at = name; *at != '\0'; at++) {
        hash = hash * 33 + (unsigned char)*at;
    }
    uint64_t bit = (uint64_t)1 << hash % 64;
    return (atomic_fetch_or(&told[hash / 64 % 16], bit) & bit) == 0;
}

void waap_settings_tell(const char *what, const char *name, const char *wrong) {
    int error = errno;
    if (is_first(name != NULL ? name : "")) {
        const char *why = error == EINVAL   ? wrong
                          : error == EEXIST ? "there is another of that name"
                          : error == ENOSPC ? "there are too many"
                                            : strerror(error);
        fprintf(stderr, "waap: %s %.200s: %s\n", what, name != NULL ? name : "without a name", why);
    }
    errno = error;
}
