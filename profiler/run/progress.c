#include "profiler/run/progress.h"

#include <math.h>
#include <stdio.h>

#include "exporter/core/clock.h"

#define SHOW_INTERVAL_NS (250 * CLOCK_NS_PER_MS)
#define WIPE "\r\x1b[K"

static void add(struct buf *out, const char *name, double value, int digits, const char *unit) {
    if (!isnan(value)) {
        buf_printf(out, "  %s%.*f%s", name, digits, value, unit);
    }
}

void run_progress_format(const struct run_progress *progress, const struct run_live *live,
                         int64_t now_ns, struct buf *out) {
    buf_printf(out, "%s %u/%u  %s  %.1f s", progress->target, progress->run, progress->n_runs,
               progress->phase, (double)(now_ns - progress->phase_ns) / 1e9);
    add(out, "", live->fps, 1, " fps");
    add(out, "CPU ", live->cpu_ratio * 100, 0, " %");
    add(out, "", live->memory_bytes / (1 << 20), 0, " MiB");
    add(out, "GPU ", live->gpu_ratio * 100, 0, " %");
    add(out, "", live->watts, 1, " W");
    add(out, "", live->celsius, 0, " °C");
}

void run_progress_show(struct run_progress *progress, const struct run_live *live, int64_t now_ns) {
    if (!progress->on || now_ns - progress->shown_ns < SHOW_INTERVAL_NS) {
        return;
    }
    progress->shown_ns = now_ns;
    struct buf text CLEANUP_BUF = {0};
    buf_add_str(&text, WIPE);
    run_progress_format(progress, live, now_ns, &text);
    fputs(buf_str(&text), stderr);
}

void run_progress_clear(struct run_progress *progress) {
    if (progress->on && progress->shown_ns != 0) {
        fputs(WIPE, stderr);
        progress->shown_ns = 0;
    }
}
