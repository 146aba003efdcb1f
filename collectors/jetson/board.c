#include "collectors/jetson/board.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/source/follow.h"
#include "collectors/source/source_file.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/clock.h"
#include "exporter/core/file.h"
#include "exporter/core/memory.h"
#include "exporter/core/scan.h"
#include "exporter/settings/settings.h"

int jetson_l4t_parse(const char *text, struct buf *out) {
    static const char key[] = "REVISION:";
    struct scan_word word;
    const char *cursor = text;
    if (!scan_word(&cursor, &word) || !scan_word_equal(word, "#") || !scan_word(&cursor, &word) ||
        word.len < 2 || word.text[0] != 'R') {
        return -EINVAL;
    }
    struct scan_word major = {.text = word.text + 1, .len = word.len - 1};
    while (scan_word(&cursor, &word) && !scan_word_equal(word, key)) {
    }
    if (!scan_word_equal(word, key) || !scan_word(&cursor, &word)) {
        return -EINVAL;
    }
    size_t len = word.len - (word.text[word.len - 1] == ',');
    buf_printf(out, "%.*s.%.*s", (int)major.len, major.text, (int)len, word.text);
    return 0;
}

static void render_info(struct jetson_board *board, const struct collector_env *env) {
    struct buf model CLEANUP_BUF = {0};
    struct buf l4t CLEANUP_BUF = {0};
    char *release CLEANUP_FREE = source_file_text(env->rootfs, "etc/nv_tegra_release");
    tegra_read_device_tree(env, "model", &model);
    if (release != NULL) {
        jetson_l4t_parse(release, &l4t);
    }
    board->info = labels_render("l4t", buf_str(&l4t), "model", buf_str(&model), "soc",
                                board->soc != NULL ? board->soc->name : "");
}

void jetson_board_name_gpu(struct jetson_board *board, const char *uuid) {
    char *copy = mem_strdup(uuid);
    labels_destroy(board->gpu);
    labels_destroy(board->gpu_info);
    free(board->gpu_uuid);
    board->gpu = labels_render("gpu", "0", "uuid", copy);
    board->gpu_info =
        labels_render("gpu", "0", "uuid", copy, "name", board->soc != NULL ? board->soc->gpu : "");
    board->gpu_uuid = copy;
}

static void name_gpu(struct jetson_board *board, const struct collector_env *env) {
    struct buf serial CLEANUP_BUF = {0};
    struct buf uuid CLEANUP_BUF = {0};
    if (board->detected && tegra_read_device_tree(env, "serial-number", &serial) == 0) {
        tegra_gpu_uuid(buf_str(&serial), &uuid);
    }
    jetson_board_name_gpu(board, buf_str(&uuid));
}

int jetson_board_init(struct jetson_board *board, const struct collector_env *env,
                      struct error *err) {
    *board = (struct jetson_board){
        .peak_window_ns =
            settings_duration_ms(env->settings, "sample.peak-window") * CLOCK_NS_PER_MS,
        .max_gap_ns = follow_max_gap_ns(env->settings),
        .compat = settings_choices(env->settings, "collector.jetson.compat"),
    };
    int found = tegra_detect(env, &board->soc, err);
    if (found < 0 && found != -ENODEV) {
        return found;
    }
    board->detected = found == 0;
    board->nvml = board->soc != NULL && board->soc->nvml;
    render_info(board, env);
    name_gpu(board, env);
    return found;
}

void jetson_board_finish(struct jetson_board *board) {
    labels_destroy(board->info);
    labels_destroy(board->gpu);
    labels_destroy(board->gpu_info);
    free(board->gpu_uuid);
    *board = (struct jetson_board){0};
}
