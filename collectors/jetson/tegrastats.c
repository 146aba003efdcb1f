#include "collectors/jetson/tegrastats.h"
#include "collectors/source/gpu_metrics.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectors/jetson/fill.h"
#include "collectors/jetson/metrics.h"
#include "collectors/source/gpu_metrics.h"
#include "collectors/source/tegrastats.h"
#include "exporter/core/cleanup.h"
#include "exporter/settings/settings.h"

enum { TEGRASTATS_INTERVAL_MS = 1000 };

struct jetson_tegrastats {
    char *path;                 /* NULL: off, or to be found */
    bool named;                 /* the user gave the path */
    bool decided;               /* whether it is worth running is known */
    struct tegrastats *program; /* NULL: not in use */
    int code;                   /* the latest failure */
    struct error error;
    struct labels *label; /* source="tegrastats" */
    struct label_pool pool;
};

static int open_program(struct jetson_tegrastats *source) {
    source->decided = true;
    int r = tegrastats_open(source->path, TEGRASTATS_INTERVAL_MS, &source->program, &source->error);
    source->code = r;
    return r;
}

int jetson_tegrastats_create(const struct collector_env *env, struct jetson_tegrastats **ret_source,
                             struct error *err) {
    const char *text = settings_string(env->settings, "collector.jetson.tegrastats");
    struct jetson_tegrastats *source = calloc(1, sizeof(*source));
    if (source == NULL) {
        return error_set(err, -ENOMEM, "out of memory");
    }
    source->decided = strcmp(text, "off") == 0;
    source->named = !source->decided && strcmp(text, "auto") != 0;
    source->path = source->named ? strdup(text) : NULL;
    source->label = labels_render("source", "tegrastats");
    if (source->label == NULL || (source->named && source->path == NULL)) {
        jetson_tegrastats_destroy(source);
        return error_set(err, -ENOMEM, "out of memory");
    }
    *ret_source = source;
    return 0;
}

void jetson_tegrastats_destroy(struct jetson_tegrastats *source) {
    if (source != NULL) {
        tegrastats_close(source->program);
        label_pool_finish(&source->pool);
        labels_destroy(source->label);
        free(source->path);
    }
    free(source);
}

bool jetson_tegrastats_named(const struct jetson_tegrastats *source) {
    return source->named;
}

void jetson_tegrastats_sample(struct jetson_tegrastats *source, int64_t now_ns) {
    if (source->program == NULL) {
        return;
    }
    struct error error;
    int r = tegrastats_poll(source->program, now_ns, &error);
    if (r < 0) {
        source->code = r;
        source->error = error;
    } else if (tegrastats_latest(source->program, now_ns) != NULL) {
        source->code = 0;
    }
}

static bool has(const struct snapshot *out, const struct metric_desc *desc) {
    return jetson_snapshot_has(out, desc, NULL);
}

/* It runs with our rights and reads the same files: without root it has no more than we have. */
static bool can_add(const struct jetson_board *board, const struct snapshot *out) {
    if (!has(out, &gpu_descs[GPU_UTILIZATION]) || !has(out, &jetson_descs[JETSON_RAIL_POWER])) {
        return true;
    }
    bool knows_engines = board->soc != NULL && board->soc->engine_loads;
    return geteuid() == 0 && (knows_engines || !has(out, &jetson_descs[JETSON_EMC_UTILIZATION]));
}

/* What was found once stays; a program that the user named may come later. */
static void decide(struct jetson_tegrastats *source, const struct jetson_board *board,
                   const struct snapshot *out) {
    if (source->named) {
        open_program(source);
        return;
    }
    source->decided = true;
    source->path = can_add(board, out) ? tegrastats_find(tegrastats_directories) : NULL;
    if (source->path != NULL) {
        open_program(source);
    }
}

static void add_state(const struct jetson_tegrastats *source, int64_t now_ns, bool up,
                      struct snapshot *out) {
    struct tegrastats_stats stats = tegrastats_stats(source->program);
    double age = tegrastats_age_seconds(source->program, now_ns);
    snapshot_add(out, &jetson_descs[JETSON_SOURCE_UP], source->label, up);
    if (!isnan(age)) {
        snapshot_add(out, &jetson_descs[JETSON_SOURCE_AGE], source->label, age);
    }
    snapshot_add(out, &jetson_descs[JETSON_TEGRASTATS_RESTARTS], NULL, (double)stats.n_restarts);
    snapshot_add(out, &jetson_descs[JETSON_TEGRASTATS_PARSE_ERRORS], NULL,
                 (double)stats.n_parse_errors);
    snapshot_add(out, &jetson_descs[JETSON_TEGRASTATS_UNKNOWN_TOKENS], NULL,
                 (double)stats.n_unknown_tokens);
}

int jetson_tegrastats_add(struct jetson_tegrastats *source, const struct jetson_board *board,
                          int64_t now_ns, struct snapshot *out, struct error *err) {
    label_pool_clear(&source->pool);
    if (source->program == NULL && (!source->decided || source->named)) {
        decide(source, board, out);
        jetson_tegrastats_sample(source, now_ns);
    }
    const struct tegrastats_line *line =
        source->program != NULL ? tegrastats_latest(source->program, now_ns) : NULL;
    if (source->program != NULL) {
        add_state(source, now_ns, line != NULL, out);
    }
    if (line != NULL) {
        jetson_fill(line, board, &source->pool, out);
    } else if (source->named && source->code < 0) {
        return error_set(err, source->code, "%s", source->error.text);
    }
    return 0;
}
