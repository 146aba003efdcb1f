#include "collectors/source/energy_model.h"

#include <math.h>

#include "exporter/core/clock.h"

#define IDLE_WINDOW_NS (24 * 3600 * CLOCK_NS_PER_SEC)

/* Means of shorter intervals follow every dip of a noisy sensor. */
static const double mean_seconds = 1;

/* The cost of CPU time is learnt from intervals in which more than `least_cpus` were busy beyond
 * idle (less is noise). It is used from `least_learnt_seconds` of CPU time on; beyond
 * `most_learnt_seconds`, older samples count half. */
static const double most_learnt_seconds = 60;
static const double least_learnt_seconds = 2;
static const double least_cpus = 0.2;

/* Less is a rounding error of the driver. */
static const double busy_least = 0.01;

void energy_model_init(struct energy_model *model) {
    *model = (struct energy_model){0};
    peak_init(&model->rest_watts, IDLE_WINDOW_NS);
    peak_init(&model->gpu_watts, IDLE_WINDOW_NS);
    peak_init(&model->cpus, IDLE_WINDOW_NS);
}

static void learn_idle(struct energy_model *model, int64_t now_ns, const struct energy_step *step,
                       double rest_joules, double gpu_joules) {
    model->seconds += step->seconds;
    model->rest_joules += rest_joules;
    model->gpu_joules += gpu_joules;
    model->cpu_seconds += step->cpu_seconds;
    if (model->seconds < mean_seconds) {
        return;
    }
    peak_add(&model->rest_watts, now_ns, -model->rest_joules / model->seconds);
    peak_add(&model->gpu_watts, now_ns, -model->gpu_joules / model->seconds);
    if (!isnan(model->cpu_seconds)) {
        peak_add(&model->cpus, now_ns, -model->cpu_seconds / model->seconds);
    }
    model->seconds = 0;
    model->rest_joules = 0;
    model->gpu_joules = 0;
    model->cpu_seconds = 0;
}

/* As long as the idle power is not known, all energy counts as idle. */
static double idle_part(struct peak *watts, int64_t now_ns, double seconds, double joules) {
    double negative;
    return peak_get(watts, now_ns, &negative) ? fmin(joules, -negative * seconds) : joules;
}

/* CPU time beyond that of an idle machine; NAN: not known. */
static double extra_cpu_seconds(struct energy_model *model, int64_t now_ns,
                                const struct energy_step *step) {
    double negative;
    if (isnan(step->cpu_seconds) || !peak_get(&model->cpus, now_ns, &negative)) {
        return NAN;
    }
    return fmax(step->cpu_seconds + negative * step->seconds, 0);
}

static void learn_cpu(struct energy_model *model, double joules, double cpu_seconds) {
    model->learnt_joules += joules;
    model->learnt_seconds += cpu_seconds;
    if (model->learnt_seconds > most_learnt_seconds) {
        model->learnt_joules /= 2;
        model->learnt_seconds /= 2;
    }
}

/* The CPUs' part of the energy above idle on a rail that they share with the GPU. */
static double cpu_part(struct energy_model *model, int64_t now_ns, const struct energy_step *step,
                       double joules) {
    double extra = extra_cpu_seconds(model, now_ns, step);
    bool busy = step->gpu_busy >= busy_least;
    if (!busy) {
        if (extra >= least_cpus * step->seconds) {
            learn_cpu(model, joules, extra);
        }
        return joules;
    }
    if (model->learnt_seconds >= least_learnt_seconds && !isnan(extra)) {
        return fmin(joules, model->learnt_joules / model->learnt_seconds * extra);
    }
    return joules * fmax(1 - step->gpu_busy, 0);
}

struct energy_split energy_model_split(struct energy_model *model, int64_t now_ns,
                                       const struct energy_step *step) {
    bool own_rail = !isnan(step->gpu_joules);
    double gpu = own_rail ? fmin(fmax(step->gpu_joules, 0), step->joules) : 0;
    double rest = step->joules - gpu;
    learn_idle(model, now_ns, step, rest, gpu);
    double idle_rest = idle_part(&model->rest_watts, now_ns, step->seconds, rest);
    double idle_gpu = idle_part(&model->gpu_watts, now_ns, step->seconds, gpu);
    double above = rest - idle_rest;
    double cpu = own_rail ? above : cpu_part(model, now_ns, step, above);
    return (struct energy_split){
        .idle = idle_rest + idle_gpu,
        .cpu = cpu,
        .gpu = gpu - idle_gpu + above - cpu,
    };
}
