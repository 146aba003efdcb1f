#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "profiler/analysis/profile.h"

enum better { BETTER_NEITHER, BETTER_HIGHER, BETTER_LOWER };

/* What a target costs or achieves in one respect. A statistic that does not apply is NaN. */
struct measure {
    char *name; /* "memory.peak_bytes", "fps", "temperature.celsius{zone=\"cpu\"}" */
    char *unit;
    enum better better;
    bool unsettled; /* differs between runs by more than chance should make it */
    double n;       /* values behind the statistics: samples, observations, or runs */
    double mean, sd, min, p50, p90, p95, p99, max;
    double *runs;          /* the value (or mean) of each measured run that has one ... */
    unsigned *run_numbers; /* ... and which runs these are */
    size_t n_runs;
    struct weighted *spread; /* the distribution, ascending; NULL where only the runs are known */
    size_t n_spread;
    bool bucketed; /* its values are upper bounds of buckets */
};

/* A target's measures, sorted by name. A zeroed struct is empty. */
struct measures {
    struct measure *items;
    size_t n, cap;
};

/* Frees the measures and leaves none. */
void measures_finish(struct measures *measures);
#define CLEANUP_MEASURES CLEANUP(measures_finish)

/* Condenses what a target's measured runs have in the profile. */
void measures_make(const struct profile *profile, const struct profile_target *target,
                   struct measures *ret_measures);

/* The measure of exactly that name, or NULL. */
const struct measure *measures_find(const struct measures *measures, const char *name);

/* The statistics of a measure, in the order in which they are shown. */
struct measure_stat {
    const char *name;
    size_t offset; /* of the double in struct measure */
};
extern const struct measure_stat measure_stats[];
enum { N_MEASURE_STATS = 8 };

double measure_stat(const struct measure *measure, const struct measure_stat *stat);

/* Whether a gate's "fps.p50", "memory.peak" or "app.inference.p99" means this measure: units,
 * labels and "app." may be left out. Yields the statistic, which is the mean where none is named.
 */
bool measure_matches(const struct measure *measure, const char *text,
                     const struct measure_stat **ret_stat);

/* How measures are made. */

/* Appends a measure with all statistics NaN; it stays there until the next one. */
struct measure *measures_add(struct measures *measures, const char *name, const char *unit);

/* Appends the value of one run. */
void measure_add_run(struct measure *measure, unsigned number, double value);

/* Takes mean, deviation and range from the runs themselves. */
void measure_sum_up_runs(struct measure *measure);
