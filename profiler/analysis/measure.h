#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "profiler/analysis/statistics.h"

struct profile;
struct profile_target;

enum better { BETTER_NEITHER, BETTER_HIGHER, BETTER_LOWER };

/* The words of a summary, "higher" and "lower"; NULL for neither. */
extern const char *const better_names[];

/* The statistics of a measure, in the order in which they are shown. */
enum measure_stat {
    STAT_MEAN,
    STAT_SD,
    STAT_MIN,
    STAT_P50,
    STAT_P90,
    STAT_P95,
    STAT_P99,
    STAT_MAX,
    N_MEASURE_STATS,
};
extern const char *const measure_stats[];

/* One measured quantity of a target. A statistic that does not apply is NaN. */
struct measure {
    char *name; /* "memory.peak_bytes", "fps", "temperature.celsius{zone=\"cpu\"}" */
    char *unit;
    enum better better;
    bool unstable; /* differs too much between runs */
    double n;      /* number of samples, observations or runs in the statistics */
    union {
        struct {
            double mean, sd, min, p50, p90, p95, p99, max;
        };
        double stats[N_MEASURE_STATS]; /* the same */
    };
    double *runs;          /* value (or mean) of each measured run that has one */
    unsigned *run_numbers; /* the numbers of these runs */
    size_t n_runs;
    struct weighted *spread; /* the distribution, ascending; NULL if only the runs are known */
    size_t n_spread;
    bool bucketed; /* its values are upper bounds of buckets */
};

/* A target's measures, sorted by name. A zeroed struct is empty. */
struct measures {
    struct measure *items;
    size_t n, cap;
};

/* Frees the measures and leaves an empty struct. */
void measures_finish(struct measures *measures);
#define CLEANUP_MEASURES CLEANUP(measures_finish)

/* Computes the measures of a target from its measured runs. */
void measures_make(const struct profile *profile, const struct profile_target *target,
                   struct measures *ret_measures);

/* The measure of exactly that name, or NULL. */
const struct measure *measures_find(const struct measures *measures, const char *name);

/* Splits "fps.p50": the length of the measure's name; the mean if no statistic is named. */
size_t measure_split(const char *text, enum measure_stat *ret_stat);

/* Whether the name in a gate, such as "fps.p50", "memory.peak" or "app.inference.p99", matches this
 * measure; unit, labels and "app." may be left out. Yields the statistic. */
bool measure_matches(const struct measure *measure, const char *text, enum measure_stat *ret_stat);

/* Appends a measure with all statistics NaN. The pointer is valid until the next call. */
struct measure *measures_add(struct measures *measures, const char *name, const char *unit,
                             enum better better);

/* Appends the value of one run, unless it is NaN or infinite. */
void measure_add_run(struct measure *measure, unsigned number, double value);

/* The value of a run; NaN if it has none. */
double measure_of_run(const struct measure *measure, unsigned number);

/* Computes mean, deviation and range from the values of the runs. */
void measure_sum_up_runs(struct measure *measure);
