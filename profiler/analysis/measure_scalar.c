#include <jansson.h>
#include <math.h>
#include <string.h>

#include "profiler/analysis/measure.h"

/* Measures of which a run has one value. */

struct scope {
    const struct profile *profile;
    const struct profile_run *run;
    double idle_watts;
};

static double end_number(const struct scope *scope, const char *key) {
    const json_t *value = json_object_get(scope->run->end, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* By how much a counter grew while the run was measured. */
static double grown(const struct scope *scope, const char *key) {
    int index = profile_find(scope->profile, key);
    const struct profile_column *column =
        index >= 0 ? profile_column(scope->run, (size_t)index) : NULL;
    return column != NULL ? column->grown : NAN;
}

static double or_else(double value, double other) {
    return isnan(value) ? other : value;
}

static double wall(const struct scope *scope) {
    return or_else(end_number(scope, "wall_seconds"), scope->run->measured_s);
}

static double user(const struct scope *scope) {
    return or_else(end_number(scope, "user_seconds"), grown(scope, "cpu.user_seconds"));
}

static double sys(const struct scope *scope) {
    return or_else(end_number(scope, "system_seconds"), grown(scope, "cpu.system_seconds"));
}

static double overhead(const struct scope *scope) {
    return 100 * end_number(scope, "overhead_seconds") / wall(scope);
}

static double peak_memory(const struct scope *scope) {
    int index = profile_find(scope->profile, "memory.peak_bytes");
    const struct profile_column *column =
        index >= 0 ? profile_column(scope->run, (size_t)index) : NULL;
    return or_else(end_number(scope, "peak_memory_bytes"),
                   column != NULL ? column->moments.max : NAN);
}

/* Mean watts of all samples times the length of the phase: the first sample comes a little after
 * the phase has begun, and the last one before it ends. */
static double joules(const struct scope *scope) {
    const struct profile_column *energy = profile_column(scope->run, DERIVED_ENERGY);
    return energy != NULL ? profile_rate(energy) * scope->run->measured_s : NAN;
}

static double net_joules(const struct scope *scope) {
    return joules(scope) - scope->idle_watts * scope->run->measured_s;
}

static bool has_warmup(const struct profile_run *run) {
    bool has = false;
    for (size_t i = 0; i < run->n_phases; i++) {
        has = has || run->phases[i].phase == PHASE_WARMUP;
    }
    return has;
}

/* The application's last word where all of the run is measured. */
static double frames(const struct scope *scope) {
    int index = profile_frame_counter(scope->profile);
    const struct profile_column *column =
        index >= 0 ? profile_column(scope->run, (size_t)index) : NULL;
    double counted = end_number(scope, "frames");
    if (!isnan(counted) && (column == NULL || !has_warmup(scope->run))) {
        return counted;
    }
    return column != NULL ? column->grown : NAN;
}

/* What the application adds to an idle machine, where its idle watts are known. */
static double joules_per_frame(const struct scope *scope) {
    double n = frames(scope);
    return n > 0 ? or_else(net_joules(scope), joules(scope)) / n : NAN;
}

static double idle(const struct scope *scope) {
    return scope->idle_watts;
}

static const struct scalar {
    const char *name;
    const char *unit;
    enum better better;
    double (*of)(const struct scope *scope);
} scalars[] = {
    {"cpu.system_seconds", "s", BETTER_LOWER, sys},
    {"cpu.user_seconds", "s", BETTER_LOWER, user},
    {"energy.joules", "J", BETTER_LOWER, joules},
    {"energy.net_joules", "J", BETTER_LOWER, net_joules},
    {"energy_per_frame.joules", "J", BETTER_LOWER, joules_per_frame},
    {"frames", "", BETTER_HIGHER, frames},
    {"memory.peak_bytes", "B", BETTER_LOWER, peak_memory},
    {"overhead.percent", "%", BETTER_NEITHER, overhead},
    {"power.idle_watts", "W", BETTER_NEITHER, idle},
    {"wall.seconds", "s", BETTER_LOWER, wall},
};

int profile_frame_counter(const struct profile *profile) {
    int fps = profile_find(profile, "app.fps_total");
    return fps >= 0 ? fps : profile_find(profile, "app.frames_total");
}

static void add_idle_of(const struct profile_target *target, double *joules_sum, double *time) {
    for (size_t i = 0; i < target->n_runs; i++) {
        *joules_sum += target->runs[i].idle_joules;
        *time += target->runs[i].idle_s;
    }
}

double profile_idle_watts(const struct profile *profile, const struct profile_target *target) {
    double energy = 0, time = 0;
    add_idle_of(target, &energy, &time);
    for (size_t i = 0; time == 0 && i < profile->n_targets; i++) {
        add_idle_of(&profile->targets[i], &energy, &time);
    }
    return time > 0 ? energy / time : NAN;
}

static void add_scalar(struct measures *measures, const struct profile *profile,
                       const struct profile_target *target, const struct scalar *scalar) {
    struct measure *measure = measures_add(measures, scalar->name, scalar->unit);
    if (measure == NULL) {
        return;
    }
    measure->better = scalar->better;
    double watts = profile_idle_watts(profile, target);
    for (size_t i = 0; i < target->n_runs; i++) {
        struct scope scope = {profile, &target->runs[i], watts};
        double value = target->runs[i].measured ? scalar->of(&scope) : NAN;
        if (isfinite(value)) {
            measure_add_run(measures, measure, target->runs[i].number, value);
        }
    }
    measure_sum_up_runs(measure);
}

void measures_add_scalars(struct measures *measures, const struct profile *profile,
                          const struct profile_target *target) {
    for (size_t i = 0; i < ARRAY_LEN(scalars); i++) {
        add_scalar(measures, profile, target, &scalars[i]);
    }
}
