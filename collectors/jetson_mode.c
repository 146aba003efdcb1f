#include "collectors/jetson_mode.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/jetson_part.h"
#include "collectors/scan.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/file.h"

struct mode {
    char *status; /* paths: nvpmodel replaces its file, so none is kept open */
    char *config;
    unsigned id;
    struct labels *labels; /* of `id`, or NULL */
};

/* "ID=2": the number behind a key, in a word of its own. */
static bool word_number(struct scan_word word, const char *key, unsigned *ret_number) {
    size_t len = strlen(key);
    if (word.len <= len || word.len > len + 9 || memcmp(word.text, key, len) != 0) {
        return false;
    }
    unsigned number = 0;
    for (size_t i = len; i < word.len; i++) {
        if (word.text[i] < '0' || word.text[i] > '9') {
            return false;
        }
        number = 10 * number + (unsigned)(word.text[i] - '0');
    }
    *ret_number = number;
    return true;
}

int jetson_mode_parse(const char *text, unsigned *ret_id) {
    struct scan_word word;
    bool found = scan_word(&text, &word) && word_number(word, "pmode:", ret_id);
    return found ? 0 : -EINVAL;
}

static bool line_names(const char *line, unsigned id, struct scan_word *ret_name) {
    static const char key[] = "NAME=";
    struct scan_word word;
    unsigned number;
    if (!scan_word(&line, &word) || !scan_word_equal(word, "<") || !scan_word(&line, &word) ||
        !scan_word_equal(word, "POWER_MODEL") || !scan_word(&line, &word) ||
        !word_number(word, "ID=", &number) || number != id || !scan_word(&line, &word) ||
        word.len <= strlen(key) || memcmp(word.text, key, strlen(key)) != 0) {
        return false;
    }
    *ret_name = (struct scan_word){.text = word.text + strlen(key), .len = word.len - strlen(key)};
    return true;
}

int jetson_mode_name(const char *text, unsigned id, struct buf *out) {
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        struct scan_word name;
        if (line_names(line, id, &name)) {
            buf_add(out, name.text, name.len);
            return 0;
        }
    }
    return -ENOENT;
}

/* The mode rarely changes; its name is looked up only then. */
static int update_labels(struct mode *mode, unsigned id, struct buf *scratch, struct error *err) {
    if (mode->labels != NULL && mode->id == id) {
        return 0;
    }
    char number[16];
    struct buf name CLEANUP_BUF = {0};
    snprintf(number, sizeof(number), "%u", id);
    if (file_read(mode->config, scratch, NULL) == 0) {
        jetson_mode_name(buf_str(scratch), id, &name);
    }
    labels_destroy(mode->labels);
    mode->labels = labels_render("id", number, "name", buf_str(&name));
    mode->id = id;
    return mode->labels != NULL ? 0 : error_set(err, -ENOMEM, "out of memory");
}

static int mode_collect(void *state, struct jetson_round *round, struct snapshot *out,
                        struct error *err) {
    struct mode *mode = state;
    unsigned id;
    if (file_read(mode->status, round->scratch, NULL) < 0) {
        return 0;
    }
    if (jetson_mode_parse(buf_str(round->scratch), &id) < 0) {
        return error_set(err, -EINVAL, "%s:1: not understood: \"%.20s\"", mode->status,
                         buf_str(round->scratch));
    }
    int r = update_labels(mode, id, round->scratch, err);
    if (r == 0) {
        snapshot_add(out, &jetson_descs[JETSON_POWER_MODE], mode->labels, 1);
    }
    return r;
}

static void mode_close(void *state) {
    struct mode *mode = state;
    if (mode != NULL) {
        free(mode->status);
        free(mode->config);
        labels_destroy(mode->labels);
    }
    free(mode);
}

static int mode_open(const struct collector_env *env, const struct jetson_board *board,
                     void **ret_state, struct error *err) {
    (void)board;
    struct mode *mode = calloc(1, sizeof(*mode));
    if (mode != NULL) {
        mode->status = file_path_join(env->rootfs, "var/lib/nvpmodel/status");
        mode->config = file_path_join(env->rootfs, "etc/nvpmodel.conf");
    }
    if (mode == NULL || mode->status == NULL || mode->config == NULL) {
        mode_close(mode);
        return error_set(err, -ENOMEM, "out of memory");
    }
    *ret_state = mode;
    return 0;
}

const struct jetson_part jetson_mode_part = {
    .name = "mode",
    .open = mode_open,
    .collect = mode_collect,
    .close = mode_close,
};
