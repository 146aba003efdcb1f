#include <string.h>

#include "exporter/push/private.h"

/* New values by an update. Those of a histogram are kept per bucket and without a count, so
 * that its buckets and its count can never disagree. */

struct figures {
    double values[PUSH_MAX_WORDS];
};

/* From cumulative counts, count, sum to counts per bucket, sum. */
static void decumulate(const double *figures, size_t n_bounds, double *ret_values) {
    double before = 0;
    for (size_t i = 0; i <= n_bounds; i++) {
        ret_values[i] = figures[i] - before;
        before = figures[i];
    }
    ret_values[n_bounds + 1] = figures[n_bounds + 1];
}

static double sum_of(const double *values, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += values[i];
    }
    return sum;
}

static size_t find_bucket(const struct push_series *series, double value) {
    size_t low = 0;
    size_t high = series->n_bounds;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (value <= series->bounds[middle]) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

static void observe(const struct push_series *series, const struct push_update *update,
                    struct figures *next) {
    for (size_t i = 0; i < update->n_values; i++) {
        next->values[find_bucket(series, update->values[i])]++;
        next->values[series->n_bounds + 1] += update->values[i];
    }
}

/* Adds the difference to the last figures. Figures that are not larger are from a line that was
 * sent again or overtaken. */
static void add_total(const struct push_series *series, const struct push_total *total,
                      const struct figures *given, struct figures *next, struct figures *last) {
    size_t n_counts = series->n_bounds + 1;
    if (sum_of(given->values, n_counts) <= sum_of(total->last, n_counts)) {
        return;
    }
    for (size_t i = 0; i < series->n_values; i++) {
        double more = given->values[i] - total->last[i];
        next->values[i] += i < n_counts && more < 0 ? 0 : more;
        last->values[i] = given->values[i];
    }
}

static void set(const struct push_series *series, const struct push_update *update,
                struct figures *next) {
    if (series->family->type == PUSH_HISTOGRAM) {
        decumulate(update->values, series->n_bounds, next->values);
    } else {
        memcpy(next->values, update->values, series->n_values * sizeof(double));
    }
}

static void add(const struct push_series *series, const struct figures *given,
                struct figures *next) {
    for (size_t i = 0; i < series->n_values; i++) {
        next->values[i] += given->values[i];
    }
}

/* NaN equals NaN here, and 0 differs from -0. */
static bool same_bits(double a, double b) {
    uint64_t left, right;
    memcpy(&left, &a, sizeof(left));
    memcpy(&right, &b, sizeof(right));
    return left == right;
}

static size_t note_changes(double *to, const struct figures *from, size_t n,
                           struct push_change *changes) {
    size_t n_changes = 0;
    for (size_t i = 0; i < n; i++) {
        if (!same_bits(to[i], from->values[i])) {
            changes[n_changes++] = (struct push_change){&to[i], from->values[i]};
        }
    }
    return n_changes;
}

/* For series with one value, as most have. */
static size_t change_one(const struct push_series *series, const struct push_total *total,
                         const struct push_update *update, struct push_change *changes) {
    double *value = series->values;
    double given = update->values[0];
    switch (update->op) {
    case PUSH_SET:
        changes[0] = (struct push_change){value, given};
        return 1;
    case PUSH_INC:
        changes[0] = (struct push_change){value, *value + given};
        return 1;
    case PUSH_TOTAL:
        if (given <= *total->last) { /* sent again, or overtaken */
            return 0;
        }
        changes[0] = (struct push_change){value, *value + (given - *total->last)};
        changes[1] = (struct push_change){total->last, given};
        return 2;
    case PUSH_OBSERVE:
        break;
    }
    return 0;
}

static size_t change_many(const struct push_series *series, const struct push_total *total,
                          const struct push_update *update, struct push_change *changes) {
    size_t size = series->n_values * sizeof(double);
    struct figures next, last, given;
    size_t n_changes = 0;
    memcpy(next.values, series->values, size);
    memset(given.values, 0, size);
    switch (update->op) {
    case PUSH_SET:
        set(series, update, &next);
        break;
    case PUSH_INC:
        set(series, update, &given);
        add(series, &given, &next);
        break;
    case PUSH_OBSERVE:
        observe(series, update, &next);
        break;
    case PUSH_TOTAL:
        memcpy(last.values, total->last, size);
        set(series, update, &given);
        add_total(series, total, &given, &next, &last);
        n_changes = note_changes(total->last, &last, series->n_values, changes);
        break;
    }
    return n_changes + note_changes(series->values, &next, series->n_values, changes + n_changes);
}

void push_value_apply(struct push_store *store, struct push_series *series,
                      const struct push_total *total, const struct push_update *update,
                      int64_t now_ms) {
    struct push_change changes[2 * PUSH_MAX_WORDS];
    size_t n_changes = series->n_values == 1 ? change_one(series, total, update, changes)
                                             : change_many(series, total, update, changes);
    push_table_write(store->table, changes, n_changes);
    if (series->rate != NULL) {
        push_rate_note(series->rate, now_ms, series->values[0]);
    }
}
