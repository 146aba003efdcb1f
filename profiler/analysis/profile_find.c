#include <jansson.h>
#include <math.h>
#include <string.h>

#include "exporter/core/buf.h"
#include "profiler/analysis/profile.h"

/* What others ask of a profile that was read. */

size_t profile_n_columns(const struct profile *profile) {
    return N_DERIVED + record_n_series(profile->record);
}

const struct record_series *profile_series(const struct profile *profile, size_t index) {
    return index < N_DERIVED ? NULL : record_series_at(profile->record, index - N_DERIVED);
}

const struct profile_column *profile_column(const struct profile_run *run, size_t index) {
    return run->measured && index < run->n_columns && run->columns[index].n > 0
               ? &run->columns[index]
               : NULL;
}

int profile_find(const struct profile *profile, const char *key) {
    for (size_t i = N_DERIVED; i < profile_n_columns(profile); i++) {
        if (strcmp(profile_series(profile, i)->key, key) == 0) {
            return (int)i;
        }
    }
    return -1;
}

/* The column of `series` with that many bytes less and `suffix` at the end of its name. */
static int find_sibling(const struct profile *profile, const struct record_series *series,
                        size_t less, const char *suffix) {
    struct buf key CLEANUP_BUF = {0};
    size_t len = strlen(series->name);
    buf_printf(&key, "%.*s%s%s", (int)(len - less), series->name, suffix, series->key + len);
    return profile_find(profile, buf_str(&key));
}

int profile_find_gauge(const struct profile *profile, const struct record_series *counter) {
    static const char total[] = "_total";
    size_t len = strlen(counter->name);
    if (len <= strlen(total) || strcmp(counter->name + len - strlen(total), total) != 0) {
        return -1;
    }
    return find_sibling(profile, counter, strlen(total), "");
}

int profile_find_counter(const struct profile *profile, const struct record_series *gauge) {
    return find_sibling(profile, gauge, 0, "_total");
}

double profile_rate(const struct profile_column *column) {
    double time = column->t - column->first_t;
    return column->n >= 2 && time > 0 ? (column->grown - column->initial) / time : NAN;
}

bool profile_run_failed(const struct profile_run *run) {
    if (run->end == NULL) {
        return false;
    }
    if (json_is_string(json_object_get(run->end, "error"))) {
        return true;
    }
    const char *by = json_string_value(json_object_get(run->end, "stopped_by"));
    bool by_itself = by == NULL || strcmp(by, "itself") == 0;
    return by_itself && !json_is_true(json_object_get(run->end, "timed_out")) &&
           (json_integer_value(json_object_get(run->end, "exit")) != 0 ||
            json_integer_value(json_object_get(run->end, "signal")) != 0);
}
