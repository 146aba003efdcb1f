#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/jetson/part.h"
#include "collectors/nvml/shares.h"
#include "collectors/source/tegra.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/clock.h"
#include "exporter/core/memory.h"
#include "exporter/settings/settings.h"

/* Load and processes of a GPU whose driver reports them through NVML only: Thor. On Orin the
 * library starts as well, but returns zeros: it is not used there. */

enum { MAX_PROCESSES = 1000 };

#define SHARES_NS CLOCK_NS_PER_SEC

struct source {
    bool wanted;
    char *path; /* "": where drivers usually put it */
    char *uuid; /* used if NVML has none */
    struct labels *label;
    struct nvml_library library;
    struct nvml_config config;
    struct nvml_device device;
    bool open;
    unsigned lost_code; /* why it is no longer open; 0: it never was */
    char lost_words[NVML_MAX_TEXT];
    int64_t interval_ns; /* between attempts to open it */
    int64_t next_try_ns;
    bool followed; /* the energy accounts need the shares between collections */
    struct nvml_shares shares;
    int64_t next_shares_ns;
};

static void disconnect(struct source *source) {
    if (source->open) {
        nvml_device_finish(&source->device);
    }
    nvml_library_close(&source->library);
    nvml_shares_finish(&source->shares);
    source->open = false;
}

/* A card in a slot may have a lower index. */
static bool find_device(struct source *source) {
    unsigned n = 0;
    if (source->library.count(&n) != NVML_CODE_SUCCESS) {
        return false;
    }
    for (unsigned i = 0; i < n; i++) {
        struct nvml_handle *handle;
        char name[NVML_MAX_TEXT] = "";
        if (source->library.handle(i, &handle) == NVML_CODE_SUCCESS &&
            source->library.name(handle, name, sizeof(name)) == NVML_CODE_SUCCESS &&
            tegra_gpu_is_integrated(name)) {
            return nvml_device_init(&source->device, &source->library, &source->config, i, NULL) ==
                   0;
        }
    }
    return false;
}

static void try_to_connect(struct source *source, int64_t now_ns) {
    source->next_try_ns = now_ns + source->interval_ns;
    source->open = nvml_library_open(&source->library, source->path, NULL) == 0;
    if (source->open && !find_device(source)) {
        source->open = false;
        nvml_library_close(&source->library);
    }
    if (source->open) {
        source->lost_code = NVML_CODE_SUCCESS;
    }
}

static void note_loss(struct source *source) {
    if (source->device.state != NVML_GOOD) {
        source->lost_code = source->device.code;
        snprintf(source->lost_words, sizeof(source->lost_words), "%s",
                 nvml_library_words(&source->library, source->lost_code));
    }
}

static void sample_shares(struct source *source, int64_t now_ns) {
    if (source->followed && source->device.state == NVML_GOOD && now_ns >= source->next_shares_ns) {
        source->next_shares_ns = now_ns + SHARES_NS;
        nvml_shares_read(&source->shares, &source->device);
    }
}

static void nvml_sample(void *state, struct jetson_round *round) {
    struct source *source = state;
    if (!source->wanted) {
        return;
    }
    if (!source->open && round->now_ns >= source->next_try_ns) {
        try_to_connect(source, round->now_ns);
    }
    if (source->open) {
        nvml_device_sample(&source->device, round->now_ns);
        sample_shares(source, round->now_ns);
        note_loss(source);
    }
    /* A reloaded driver has other handles. */
    if (source->open && source->device.state != NVML_GOOD) {
        disconnect(source);
        source->next_try_ns = round->now_ns + source->interval_ns;
    }
    if (source->open) {
        round->gpu_uuid = source->device.uuid;
        round->gpu_shares = source->shares.rows;
        round->n_gpu_shares = source->shares.n_rows;
    }
}

static int nvml_collect(void *state, struct jetson_round *round, struct snapshot *out,
                        struct error *err) {
    struct source *source = state;
    if (!source->wanted) {
        return 0;
    }
    if (source->open) {
        nvml_device_collect(&source->device, out); /* its labels stay until the next sample */
        note_loss(source);
    } else if (source->lost_code != NVML_CODE_SUCCESS) {
        snapshot_add(out, &nvml_descs[NVML_NVIDIA_NVML_RETURN_CODE], round->board->gpu,
                     source->lost_code);
    }
    snapshot_add(out, &jetson_descs[JETSON_SOURCE_UP], source->label, source->open);
    return source->lost_code == NVML_CODE_SUCCESS
               ? 0
               : error_set(err, -EIO, "gpu 0: %s (%u)", source->lost_words, source->lost_code);
}

static void nvml_close(void *state) {
    struct source *source = state;
    disconnect(source);
    labels_destroy(source->label);
    free(source->path);
    free(source->uuid);
}

static void nvml_open(void *state, const struct collector_env *env,
                      const struct jetson_board *board) {
    struct source *source = state;
    const struct settings *settings = env->settings;
    const char *where = settings_string(settings, "collector.jetson.nvml");
    source->path = mem_strdup(strcmp(where, "auto") == 0 ? "" : where);
    source->uuid = mem_strdup(board->gpu_uuid);
    source->label = labels_render("source", "nvml");
    source->interval_ns =
        settings_duration_ms(settings, "collector.reprobe-interval") * CLOCK_NS_PER_MS;
    source->config = (struct nvml_config){
        .procfs = env->procfs,
        .sysfs = env->sysfs,
        .peak_window_ns = board->peak_window_ns,
        .max_gap_ns = board->max_gap_ns,
        .max_processes = MAX_PROCESSES,
        .processes = settings_bool(settings, "collector.jetson.processes"),
        .integrated = true,
        .uuid = source->uuid,
    };
    source->followed = env->energy != NULL;
    source->wanted = board->nvml && strcmp(where, "off") != 0;
}

const struct jetson_part jetson_nvml_part = {
    .state_size = sizeof(struct source),
    .open = nvml_open,
    .sample = nvml_sample,
    .collect = nvml_collect,
    .close = nvml_close,
};
