#include "exporter/gateway/path.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/memory.h"
#include "exporter/metrics/metric.h"

static const char base64_suffix[] = "@base64";

/* The six bits of a character of the URL-safe alphabet, or -1. */
static int base64_bits(char c) {
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    return c == '-' ? 62 : c == '_' ? 63 : -1;
}

/* Decodes in place, as the result is shorter; padding may be there or not. A NUL could not go on as
 * a label's value. */
static int base64_decode(char *text) {
    size_t len = strlen(text);
    while (len > 0 && text[len - 1] == '=') {
        len--;
    }
    if (len % 4 == 1) {
        return -EINVAL;
    }
    char *out = text;
    unsigned pending = 0, n_bits = 0;
    for (size_t i = 0; i < len; i++) {
        int bits = base64_bits(text[i]);
        if (bits < 0) {
            return -EINVAL;
        }
        pending = pending << 6 | (unsigned)bits;
        n_bits += 6;
        if (n_bits >= 8) {
            n_bits -= 8;
            *out = (char)(pending >> n_bits);
            if (*out++ == '\0') {
                return -EINVAL;
            }
        }
    }
    *out = '\0';
    return 0;
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

static int read_pair(char *name, char *value, struct label *ret_label, struct error *err) {
    bool encoded = cut_base64_suffix(name);
    if (!metric_label_name_valid(name, strlen(name)) || strncmp(name, "__", 2) == 0) {
        return error_set(err, -EINVAL, "improper label name \"%s\"", name);
    }
    if (encoded && base64_decode(value) < 0) {
        return error_set(err, -EINVAL, "value of label %s is not URL-safe base64", name);
    }
    *ret_label = (struct label){.name = name, .value = value};
    return 0;
}

/* Takes the part up to the next slash off `*rest`; NULL when nothing is left. */
static char *next_part(char **rest) {
    char *part = *rest;
    if (part != NULL) {
        char *slash = strchr(part, '/');
        *rest = slash != NULL ? slash + 1 : NULL;
        if (slash != NULL) {
            *slash = '\0';
        }
    }
    return part;
}

/* Adds a label; one of the same name that is there gets the value instead. */
static int put(struct gateway_path *path, const struct label *label, struct error *err) {
    for (size_t i = 0; i < path->n_labels; i++) {
        if (strcmp(path->labels[i].name, label->name) == 0) {
            path->labels[i].value = label->value;
            return 0;
        }
    }
    if (path->n_labels == GATEWAY_PATH_MAX_LABELS) {
        return error_set(err, -EINVAL, "more than %d labels in the path", GATEWAY_PATH_MAX_LABELS);
    }
    path->labels[path->n_labels++] = *label;
    return 0;
}

/* Takes the next name and value off `*rest`. */
static int take_pair(char **rest, struct label *ret_label, struct error *err) {
    char *name = next_part(rest);
    char *value = next_part(rest);
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
    return read_pair(name, value, ret_label, err);
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
        if (r == 0) {
            r = put(path, &label, err);
        }
        if (r < 0) {
            return r;
        }
    }
    return put(path, &job, err);
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct label *)a)->name, ((const struct label *)b)->name);
}

int gateway_path_parse(const char *text, struct gateway_path *ret_path, struct error *err) {
    struct gateway_path path CLEANUP_GATEWAY_PATH = {
        .memory = mem_strdup(text),
        .labels = mem_zalloc(GATEWAY_PATH_MAX_LABELS, sizeof(struct label)),
    };
    int r = read_parts(&path, path.memory, err);
    if (r < 0) {
        return r;
    }
    qsort(path.labels, path.n_labels, sizeof(path.labels[0]), by_name);
    *ret_path = path;
    path = (struct gateway_path){0};
    return 0;
}

void gateway_path_finish(struct gateway_path *path) {
    free(path->labels);
    free(path->memory);
    *path = (struct gateway_path){0};
}
