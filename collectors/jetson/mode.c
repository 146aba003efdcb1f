#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/jetson/files.h"
#include "collectors/jetson/part.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/file.h"

struct mode {
    char *status; /* paths: nvpmodel replaces its file, so none is kept open */
    char *config;
    unsigned id;
    struct labels *labels; /* of `id`, or NULL */
};

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
