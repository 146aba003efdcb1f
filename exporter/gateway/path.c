#include "exporter/gateway/path.h"

#include <errno.h>
#include <nettle/base64.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/memory.h"
#include "exporter/metrics/metric.h"

static const char base64_suffix[] = "@base64";

/* Decodes in place; padding is optional. A label's value cannot hold a NUL. */
static bool base64_decode(char *text) {
    struct base64_decode_ctx decoder;
    size_t len = strlen(text), n = 0, n_end = 0;
    while (len > 0 && text[len - 1] == '=') {
        len--;
    }
    base64url_decode_init(&decoder);
    bool good =
        len % 4 != 1 && base64_decode_update(&decoder, &n, (uint8_t *)text, len, text) != 0 &&
        base64_decode_update(&decoder, &n_end, (uint8_t *)text + n, (4 - len % 4) % 4, "==") != 0;
    text[n] = '\0';
    return good && strlen(text) == n;
}

/* Cuts "@base64" off the name; whether it was there. */
static bool cut_base64_suffix(char *name) {
    size_t len = strlen(name), n = strlen(base64_suffix);
    if (len < n || strcmp(name + len - n, base64_suffix) != 0) {
        return false;
    }
    name[len - n] = '\0';
    return true;
}

/* Adds a label; one of the same name that is there gets the value instead. */
static int put(struct gateway_path *path, struct label label, struct error *err) {
    for (size_t i = 0; i < path->n_labels; i++) {
        if (strcmp(path->labels[i].name, label.name) == 0) {
            path->labels[i].value = label.value;
            return 0;
        }
    }
    if (path->n_labels == GATEWAY_PATH_MAX_LABELS) {
        return error_set(err, -EINVAL, "more than %d labels in the path", GATEWAY_PATH_MAX_LABELS);
    }
    label_insert(path->labels, &path->n_labels, label);
    return 0;
}

/* Takes the next name and value off `*rest`. */
static int take_pair(char **rest, struct label *ret_label, struct error *err) {
    char *name = strsep(rest, "/");
    char *value = strsep(rest, "/");
    if (name == NULL || value == NULL) {
        return error_set(err, -EINVAL, "label \"%s\" has no value in the path",
                         name != NULL ? name : "");
    }
    if (value[0] == '\0' && *rest != NULL) {
        return error_set(
            err, -EINVAL,
            "two slashes after label \"%s\": use LABEL@base64/= for an empty value, and "
            "LABEL@base64/… for one that begins with a slash",
            name);
    }
    bool encoded = cut_base64_suffix(name);
    if (!metric_label_name_valid(name, strlen(name)) || strncmp(name, "__", 2) == 0) {
        return error_set(err, -EINVAL, "improper label name \"%s\"", name);
    }
    if (encoded && !base64_decode(value)) {
        return error_set(err, -EINVAL, "value of label %s is not URL-safe base64", name);
    }
    *ret_label = (struct label){.name = name, .value = value};
    return 0;
}

static int read_parts(struct gateway_path *path, char *rest, struct error *err) {
    struct label job = {0}, label = {0};
    int r = take_pair(&rest, &job, err);
    if (r < 0) {
        return r;
    }
    if (strcmp(job.name, "job") != 0 || job.value[0] == '\0') {
        return error_set(err, -EINVAL, "the path must begin with /metrics/job/<job>");
    }
    if (rest != NULL && rest[0] == '\0') { /* "/metrics/job/a/" is the same without its end */
        rest = NULL;
    }
    while (rest != NULL) {
        r = take_pair(&rest, &label, err);
        r = r == 0 ? put(path, label, err) : r;
        if (r < 0) {
            return r;
        }
    }
    return put(path, job, err);
}

int gateway_path_parse(const char *text, struct gateway_path *ret_path, struct error *err) {
    struct gateway_path path CLEANUP_GATEWAY_PATH = {
        .memory = mem_strdup(text),
        .labels = mem_zalloc(GATEWAY_PATH_MAX_LABELS, sizeof(struct label)),
    };
    int r = read_parts(&path, path.memory, err);
    if (r == 0) {
        *ret_path = path;
        path = (struct gateway_path){0};
    }
    return r;
}

void gateway_path_finish(struct gateway_path *path) {
    free(path->labels);
    free(path->memory);
    *path = (struct gateway_path){0};
}
