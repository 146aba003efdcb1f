#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/jetson/files.h"
#include "collectors/jetson/part.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/file.h"
#include "exporter/core/memory.h"

struct mode {
    char *status; /* paths: nvpmodel replaces its file, so none is kept open */
    char *config;
    unsigned id;
    struct labels *labels; /* of `id`, or NULL */
};

/* The mode rarely changes; its name is looked up only then. */
static void update_labels(struct mode *mode, unsigned id, struct buf *scratch) {
    if (mode->labels != NULL && mode->id == id) {
        return;
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
    update_labels(mode, id, round->scratch);
    snapshot_add(out, &jetson_descs[JETSON_POWER_MODE], mode->labels, 1);
    return 0;
}

static void mode_close(void *state) {
    struct mode *mode = state;
    free(mode->status);
    free(mode->config);
    labels_destroy(mode->labels);
}

static void mode_open(void *state, const struct collector_env *env,
                      const struct jetson_board *board) {
    (void)board;
    struct mode *mode = state;
    mode->status = file_path_join(env->rootfs, "var/lib/nvpmodel/status");
    mode->config = file_path_join(env->rootfs, "etc/nvpmodel.conf");
}

const struct jetson_part jetson_mode_part = {
    .state_size = sizeof(struct mode),
    .open = mode_open,
    .collect = mode_collect,
    .close = mode_close,
};
