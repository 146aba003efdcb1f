#pragma once

#include <math.h>

#include "collectors/source/tegrastats_line.h"
#include "exporter/core/buf.h"

/* A record as text to compare: sizes in MiB, clocks in MHz, "?" for what is unknown in the middle.
 */

static inline void text_number(struct buf *out, const char *before, double value,
                               const char *after) {
    if (isnan(value)) {
        buf_printf(out, "%s?%s", before, after);
    } else {
        buf_printf(out, "%s%.15g%s", before, value, after);
    }
}

static inline void text_memory(struct buf *out, const char *name,
                               const struct tegrastats_memory *memory) {
    if (!isnan(memory->total_bytes)) {
        buf_printf(out, " %s", name);
        text_number(out, " ", memory->used_bytes / 1048576, "/");
        text_number(out, "", memory->total_bytes / 1048576, "");
    }
    if (!isnan(memory->free_block_bytes)) {
        text_number(out, " lfb ", memory->free_blocks, "x");
        text_number(out, "", memory->free_block_bytes / 1048576, "");
    }
    if (!isnan(memory->cached_bytes)) {
        text_number(out, " cached ", memory->cached_bytes / 1048576, "");
    }
}

static inline void text_reading(struct buf *out, double load_ratio, double hertz) {
    if (!isnan(load_ratio)) {
        buf_printf(out, "%.15g%%", load_ratio * 100);
    }
    if (!isnan(hertz)) {
        buf_printf(out, "@%.15g", hertz / 1e6);
    }
}

static inline void text_named_reading(struct buf *out, const char *name, double load_ratio,
                                      double hertz) {
    if (!isnan(load_ratio) || !isnan(hertz)) {
        buf_add_str(out, name);
        text_reading(out, load_ratio, hertz);
    }
}

static inline void text_cpus(struct buf *out, const struct tegrastats_line *line) {
    for (size_t i = 0; i < line->n_cpus; i++) {
        const struct tegrastats_cpu *cpu = &line->cpus[i];
        buf_add_str(out, i == 0 ? " cpu " : ",");
        buf_add_str(out, isnan(cpu->online) ? "?" : cpu->online == 0 ? "off" : "");
        text_reading(out, cpu->load_ratio, cpu->frequency_hertz);
    }
}

static inline void text_lists(struct buf *out, const struct tegrastats_line *line) {
    for (size_t i = 0; i < line->n_engines; i++) {
        const struct tegrastats_engine *engine = &line->engines[i];
        buf_printf(out, " %s %s", engine->name,
                   isnan(engine->active) ? "?"
                   : engine->active == 0 ? "gated"
                                         : "on");
        text_named_reading(out, " ", engine->load_ratio, engine->frequency_hertz);
    }
    for (size_t i = 0; i < line->n_zones; i++) {
        buf_printf(out, " %s %.15gC", line->zones[i].name, line->zones[i].celsius);
    }
    for (size_t i = 0; i < line->n_rails; i++) {
        buf_printf(out, " %s", line->rails[i].name);
        text_number(out, " ", line->rails[i].watts, "/");
        text_number(out, "", line->rails[i].average_watts, "W");
    }
}

static inline void tegrastats_text(const struct tegrastats_line *line, struct buf *out) {
    text_memory(out, "ram", &line->ram);
    text_memory(out, "swap", &line->swap);
    text_memory(out, "iram", &line->iram);
    text_memory(out, "carveout", &line->carveout);
    text_cpus(out, line);
    text_named_reading(out, " emc ", line->emc_load_ratio, line->emc_frequency_hertz);
    text_named_reading(out, " gpu ", line->gpu_load_ratio, line->gpu_frequency_hertz);
    for (size_t i = 0; i < line->n_gpcs; i++) {
        text_number(out, i == 0 ? " gpc " : ",", line->gpc_frequency_hertz[i] / 1e6, "");
    }
    if (!isnan(line->mts_foreground_ratio) || !isnan(line->mts_background_ratio)) {
        text_number(out, " mts ", line->mts_foreground_ratio * 100,
                    isnan(line->mts_foreground_ratio) ? "" : "%");
        text_number(out, " ", line->mts_background_ratio * 100,
                    isnan(line->mts_background_ratio) ? "" : "%");
    }
    if (!isnan(line->edp_limit_hertz)) {
        text_number(out, " edp ", line->edp_limit_hertz / 1e6, "");
    }
    if (!isnan(line->throttle_events)) {
        text_number(out, " throttle ", line->throttle_events, "");
    }
    text_lists(out, line);
    if (line->n_unknown > 0) {
        buf_printf(out, " unknown %zu", line->n_unknown);
    }
    if (out->len > 0) { /* every part begins with a blank */
        memmove(out->data, out->data + 1, out->len);
        out->len--;
    }
}
