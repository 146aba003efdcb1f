#include "collectors/jetson_board.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/jetson_gpu_find.h"
#include "collectors/scan.h"
#include "collectors/source_file.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/clock.h"
#include "exporter/core/file.h"

static const struct jetson_soc socs[] = {
    {"tegra124", "GK20A", false},  {"tegra186", "NVIDIA Tegra X2", false},
    {"tegra194", "Xavier", false}, {"tegra210", "NVIDIA Tegra X1", false},
    {"tegra234", "Orin", true},    {"tegra264", "NVIDIA Thor", true},
};

static const char vendor[] = "nvidia,";

const struct jetson_soc *jetson_soc_parse(const char *text, size_t len) {
    for (const char *at = text; at < text + len; at += strnlen(at, (size_t)(text + len - at)) + 1) {
        size_t n = strnlen(at, (size_t)(text + len - at));
        for (size_t i = 0; i < ARRAY_LEN(socs); i++) {
            size_t prefix = strlen(vendor);
            if (n == prefix + strlen(socs[i].name) && memcmp(at, vendor, prefix) == 0 &&
                memcmp(at + prefix, socs[i].name, n - prefix) == 0) {
                return &socs[i];
            }
        }
    }
    return NULL;
}

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

/* /proc/device-tree is a link to the other place; containers often see only one of them. */
static int read_device_tree(const struct collector_env *env, const char *name, struct buf *out) {
    char *proc CLEANUP_FREE = file_path_join(env->procfs, "device-tree");
    char *sys CLEANUP_FREE = file_path_join(env->sysfs, "firmware/devicetree/base");
    char *first CLEANUP_FREE = proc != NULL ? file_path_join(proc, name) : NULL;
    char *second CLEANUP_FREE = sys != NULL ? file_path_join(sys, name) : NULL;
    if (first == NULL || second == NULL) {
        return -ENOMEM;
    }
    return file_read(first, out, NULL) == 0 ? 0 : file_read(second, out, NULL);
}

static int detect(struct jetson_board *board, const struct collector_env *env, struct error *err) {
    struct buf text CLEANUP_BUF = {0};
    if (read_device_tree(env, "compatible", &text) == 0) {
        board->soc = jetson_soc_parse(buf_str(&text), text.len);
    }
    if (board->soc != NULL) {
        return 0;
    }
    struct jetson_gpu_paths paths CLEANUP_JETSON_GPU_PATHS = {0};
    int r = jetson_gpu_find(env->sysfs, &paths, err);
    if (r == -ENODEV) {
        return error_set(err, r, "no Tegra in the device tree, no integrated GPU in %s",
                         env->sysfs);
    }
    return r;
}

static int render_info(struct jetson_board *board, const struct collector_env *env,
                       struct error *err) {
    struct buf model CLEANUP_BUF = {0};
    struct buf l4t CLEANUP_BUF = {0};
    char *release CLEANUP_FREE = source_file_text(env->rootfs, "etc/nv_tegra_release");
    read_device_tree(env, "model", &model);
    if (release != NULL) {
        jetson_l4t_parse(release, &l4t);
    }
    board->info = labels_render("l4t", buf_str(&l4t), "model", buf_str(&model), "soc",
                                board->soc != NULL ? board->soc->name : "");
    board->gpu = labels_render("gpu", "0");
    if (board->info == NULL || board->gpu == NULL) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    return 0;
}

/* Three samples may be lost before a gap is one, and a second is never one. */
static int64_t max_gap_ns(const struct settings *settings) {
    int64_t gap_ns = 3 * CLOCK_NS_PER_SEC / settings_int(settings, "sample.hz");
    return gap_ns > CLOCK_NS_PER_SEC ? gap_ns : CLOCK_NS_PER_SEC;
}

int jetson_board_init(struct jetson_board *board, const struct collector_env *env,
                      struct error *err) {
    *board = (struct jetson_board){
        .peak_window_ns =
            settings_duration_ms(env->settings, "sample.peak-window") * CLOCK_NS_PER_MS,
        .max_gap_ns = max_gap_ns(env->settings),
        .compat = settings_choice(env->settings, "collector.jetson.compat") == 1,
    };
    int found = detect(board, env, err);
    if (found < 0 && found != -ENODEV) {
        return found;
    }
    board->detected = found == 0;
    int r = render_info(board, env, err);
    return r < 0 ? r : found;
}

void jetson_board_finish(struct jetson_board *board) {
    labels_destroy(board->info);
    labels_destroy(board->gpu);
    *board = (struct jetson_board){0};
}
