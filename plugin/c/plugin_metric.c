#define _GNU_SOURCE 1
#include "plugin_metric.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "plugin_client.h"
#include "plugin_settings.h"
#include "plugin_text.h"

enum { MAX_LABELS = 32, MAX_BOUNDS = 200, MAX_TEXT = 4096 };

struct waap_metric *waap_metrics;
_Atomic uint64_t waap_n_dropped;

static struct waap_metric **last_next = &waap_metrics; /* guarded by waap_lock */

static const double usual_bounds[] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                      0.25,  0.5,    1,     2.5,  5,     10};

struct label {
    char *name;
    const char *value;
};

static int label_compare(const void *a, const void *b) {
    return strcmp(((const struct label *)a)->name, ((const struct label *)b)->name);
}

static bool labels_take(const char *const *labels, struct label *table, size_t *ret_n) {
    size_t n = 0;
    size_t len = 0;
    for (; labels[2 * n] != NULL; n++) {
        const char *name = labels[2 * n], *value = labels[2 * n + 1];
        bool good = n < MAX_LABELS && name[0] != '\0' && value != NULL;
        len += good ? strlen(name) + strlen(value) : 0;
        if (!good || len > MAX_TEXT) {
            errno = EINVAL;
            break;
        }
        table[n] = (struct label){waap_text_name(name, false), value};
        if (table[n].name == NULL) {
            break;
        }
    }
    *ret_n = n;
    return labels[2 * n] == NULL;
}

/* Also what is the same once it is a name that Prometheus allows: no exporter takes a label twice.
 */
static bool labels_differ(const struct label *sorted, size_t n) {
    for (size_t i = 1; i < n; i++) {
        if (strcmp(sorted[i - 1].name, sorted[i].name) == 0) {
            errno = EINVAL;
            return false;
        }
    }
    return true;
}

bool waap_labels_render(const char *const *labels, char **ret_labels) {
    *ret_labels = NULL;
    if (labels == NULL || labels[0] == NULL) {
        return true;
    }
    struct label table[MAX_LABELS];
    size_t n;
    bool good = labels_take(labels, table, &n);
    qsort(table, n, sizeof(table[0]), label_compare);
    good = good && labels_differ(table, n);
    struct waap_text text = {0};
    for (size_t i = 0; i < n; i++) {
        waap_text_puts(&text, i == 0 ? "{" : ",");
        waap_text_json(&text, table[i].name);
        waap_text_puts(&text, ":");
        waap_text_json(&text, table[i].value);
        free(table[i].name);
    }
    waap_text_puts(&text, "}");
    if (!good || text.failed) {
        waap_text_finish(&text);
        return false;
    }
    *ret_labels = text.data;
    return true;
}

static bool bounds_valid(const double *bounds, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(bounds[i]) || (i > 0 && bounds[i] <= bounds[i - 1])) {
            return false;
        }
    }
    return n > 0 && n <= MAX_BOUNDS;
}

static void metric_destroy(struct waap_metric *metric) {
    if (metric == NULL) {
        return;
    }
    free(metric->buckets);
    free(metric->base_buckets);
    free((double *)metric->bounds);
    free(metric->name);
    free(metric->help);
    free(metric->labels);
    free(metric);
}

static bool metric_add_buckets(struct waap_metric *metric, const struct waap_metric_spec *spec) {
    bool usual = spec->bounds == NULL;
    const double *from = usual ? usual_bounds : spec->bounds;
    size_t n = usual ? sizeof(usual_bounds) / sizeof(usual_bounds[0]) : spec->n_bounds;
    /* The last bucket has no bound, whether the caller says so or not. */
    n -= n > 0 && from[n - 1] == INFINITY;
    if (!bounds_valid(from, n)) {
        errno = EINVAL;
        return false;
    }
    double *bounds = malloc(n * sizeof(*bounds));
    metric->bounds = bounds;
    metric->n_bounds = n;
    metric->buckets = calloc(n + 1, sizeof(*metric->buckets));
    metric->base_buckets = calloc(n + 1, sizeof(*metric->base_buckets));
    if (bounds == NULL || metric->buckets == NULL || metric->base_buckets == NULL) {
        return false;
    }
    memcpy(bounds, from, n * sizeof(*bounds));
    return true;
}

static struct waap_metric *metric_create(const struct waap_metric_spec *spec) {
    if (spec->name == NULL || spec->name[0] == '\0' || strlen(spec->name) > MAX_TEXT ||
        (unsigned)spec->type > WAAP_BY_USE || !(spec->ttl_seconds >= 0)) {
        errno = EINVAL;
        return NULL;
    }
    void *memory; /* aligned_alloc() is unknown to C99 */
    int r = posix_memalign(&memory, WAAP_CACHE_LINE, sizeof(struct waap_metric));
    if (r != 0) {
        errno = r;
        return NULL;
    }
    struct waap_metric *metric = memory;
    memset(metric, 0, sizeof(*metric));
    atomic_store(&metric->type, spec->type);
    metric->ttl_seconds = spec->ttl_seconds;
    metric->name = waap_text_name(spec->name, true);
    atomic_store(&metric->by_use, spec->type == WAAP_BY_USE);
    metric->help = spec->help != NULL ? strndup(spec->help, MAX_TEXT) : NULL;
    bool good = metric->name != NULL && (spec->help == NULL || metric->help != NULL) &&
                waap_labels_render(spec->labels, &metric->labels) &&
                (spec->type != WAAP_HISTOGRAM || metric_add_buckets(metric, spec));
    if (!good) {
        metric_destroy(metric);
        return NULL;
    }
    return metric;
}

static bool labels_equal(const char *a, const char *b) {
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* Types and bounds that one name can have. */
static bool types_agree(const struct waap_metric *a, const struct waap_metric *b) {
    enum waap_type one = a->type, other = b->type;
    if (one == WAAP_BY_USE || other == WAAP_BY_USE) {
        return one != WAAP_HISTOGRAM && other != WAAP_HISTOGRAM;
    }
    return one == other && a->n_bounds == b->n_bounds &&
           (a->n_bounds == 0 || memcmp(a->bounds, b->bounds, a->n_bounds * sizeof(double)) == 0);
}

/* Decides the type of a metric that has none; `wanted` was its first use or a later declaration. */
static enum waap_type metric_decide(struct waap_metric *metric, enum waap_type wanted) {
    enum waap_type type = WAAP_BY_USE;
    return atomic_compare_exchange_strong(&metric->type, &type, wanted) ? wanted : type;
}

/* Finds the series that `wanted` is. False: another type or other bounds hold the name. */
static bool metrics_find(const struct waap_metric *wanted, struct waap_metric **ret_metric) {
    *ret_metric = NULL;
    for (struct waap_metric *m = waap_metrics; m != NULL; m = m->next) {
        if (strcmp(m->name, wanted->name) != 0) {
            continue;
        }
        bool agrees = types_agree(m, wanted);
        if (!agrees && atomic_load(&m->n_refs) > 0) {
            return false;
        }
        if (agrees && labels_equal(m->labels, wanted->labels)) {
            *ret_metric = m;
        }
    }
    if (*ret_metric == NULL || wanted->type == WAAP_BY_USE) {
        return true;
    }
    atomic_store(&(*ret_metric)->by_use, false);
    return metric_decide(*ret_metric, wanted->type) == wanted->type;
}

/* A destroyed one, which is created again. */
static void metric_restart(struct waap_metric *metric) {
    metric->base_whole += atomic_exchange(&metric->whole, 0);
    double rest = atomic_exchange(&metric->rest, 0);
    metric->base_rest += metric->type == WAAP_GAUGE ? 0 : rest;
    atomic_store(&metric->is_set, false);
    for (size_t i = 0; metric->buckets != NULL && i <= metric->n_bounds; i++) {
        metric->base_buckets[i] += atomic_exchange(&metric->buckets[i], 0);
    }
}

size_t waap_metrics_count(size_t *ret_destroyed) {
    size_t n = 0;
    *ret_destroyed = 0;
    for (struct waap_metric *m = waap_metrics; m != NULL; m = m->next) {
        size_t *count = atomic_load(&m->n_refs) > 0 ? &n : ret_destroyed;
        ++*count;
    }
    return n;
}

static bool has_room(void) {
    size_t n_destroyed, max = waap_client_max_series();
    return waap_metrics_count(&n_destroyed) < max && n_destroyed < 10 * max;
}

static struct waap_metric *metric_new(const struct waap_metric_spec *spec, bool own) {
    struct waap_metric *metric = metric_create(spec);
    if (metric == NULL) {
        return NULL;
    }
    waap_client_start();
    pthread_mutex_lock(&waap_lock);
    struct waap_metric *known;
    int error = metrics_find(metric, &known) ? 0 : EEXIST;
    if (error == 0 && known == NULL) {
        error = own || has_room() ? 0 : ENOSPC;
    }
    if (error == 0 && known == NULL) {
        *last_next = metric;
        last_next = &metric->next;
    }
    if (error == 0 && known != NULL && atomic_load(&known->n_refs) == 0) {
        metric_restart(known);
    }
    if (error == 0 && !own) {
        atomic_fetch_add(known != NULL ? &known->n_refs : &metric->n_refs, 1);
    }
    pthread_mutex_unlock(&waap_lock);
    if (error != 0 || known != NULL) {
        metric_destroy(metric);
        metric = known;
        errno = error;
    }
    return error == 0 ? metric : NULL;
}

struct waap_metric *waap_metric_new(const struct waap_metric_spec *spec) {
    struct waap_metric *metric = metric_new(spec, false);
    if (metric == NULL) {
        waap_settings_tell("metric", spec->name, "its name, labels, bounds or ttl are not valid");
    }
    return metric;
}

struct waap_metric *waap_metric_own(const struct waap_metric_spec *spec) {
    return metric_new(spec, true);
}

/* Adds with no lock; false where the sum would be no number. */
static bool add_double(_Atomic double *to, double n) {
    double before = atomic_load_explicit(to, memory_order_relaxed);
    double after;
    do {
        after = before + n;
        if (!isfinite(after)) {
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(to, &before, after, memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

static bool is_counted(enum waap_type type) {
    return type == WAAP_COUNTER || type == WAAP_RATE;
}

/* Stands for those that could not be made. */
static struct waap_metric no_metric = {.type = WAAP_BY_USE, .name = (char[]){"NULL"}};

/* Notes it for the thread: this may be a signal handler. */
static void drop(struct waap_metric *metric, enum waap_call call, double value) {
    struct waap_metric *wrong = metric != NULL ? metric : &no_metric;
    if (atomic_load_explicit(&wrong->wrong_call, memory_order_relaxed) == CALL_NONE) {
        atomic_store(&wrong->wrong_value, value);
        atomic_store(&wrong->wrong_call, call);
    }
    atomic_fetch_add(&waap_n_dropped, 1); /* last: the thread looks for mistakes when it changes */
}

static bool call_fits(struct waap_metric *metric, enum waap_call call) {
    enum waap_type type = metric->type;
    if (call == CALL_SET || call == CALL_OBSERVE) {
        return type == (call == CALL_SET ? WAAP_GAUGE : WAAP_HISTOGRAM);
    }
    return is_counted(type) || (type == WAAP_GAUGE && !atomic_load(&metric->by_use));
}

static char *mistake_text(struct waap_metric *metric, enum waap_call call) {
    static const char *const calls[] = {"", "waap_inc", "waap_add", "waap_set", "waap_observe"};
    static const struct {
        const char *name, *use;
    } types[] = {
        [WAAP_COUNTER] = {"counter", "waap_inc()"},
        [WAAP_GAUGE] = {"gauge", "waap_set()"},
        [WAAP_HISTOGRAM] = {"histogram", "waap_observe()"},
        [WAAP_RATE] = {"rate", "waap_inc()"},
        [WAAP_BY_USE] = {"metric without a type", "waap_inc() or waap_set()"},
    };
    enum waap_type type = metric->type;
    double value = atomic_load(&metric->wrong_value);
    char reason[96] = "is not a finite number";
    if (metric == &no_metric) {
        snprintf(reason, sizeof(reason), "there is no such metric");
    } else if (!call_fits(metric, call)) {
        snprintf(reason, sizeof(reason), "is a %s: use %s", types[type].name, types[type].use);
    } else if (is_counted(type) && isfinite(value) && value < 0) {
        snprintf(reason, sizeof(reason), "a %s cannot go down", types[type].name);
    }
    char *text;
    int n = asprintf(&text, "%.200s: %s(%.15g): %s", metric->name, calls[call], value, reason);
    return n < 0 ? NULL : text;
}

/* Whether a mistake of another series of that name was reported. */
static bool is_name_told(const struct waap_metric *metric) {
    const struct waap_metric *m = waap_metrics;
    while (m != NULL && (m == metric || !m->wrong_told || strcmp(m->name, metric->name) != 0)) {
        m = m->next;
    }
    return m != NULL;
}

char *waap_metric_mistake(void) {
    no_metric.next = waap_metrics;
    for (struct waap_metric *m = &no_metric; m != NULL; m = m->next) {
        enum waap_call call = atomic_load(&m->wrong_call);
        if (call == CALL_NONE || m->wrong_told) {
            continue;
        }
        m->wrong_told = true;
        if (!is_name_told(m)) {
            return mistake_text(m, call);
        }
    }
    return NULL;
}

static void gauge_mark(struct waap_metric *metric) {
    if (!atomic_load_explicit(&metric->is_set, memory_order_relaxed)) {
        atomic_store_explicit(&metric->is_set, true, memory_order_release);
    }
}

/* The type for a record, which makes a metric without one `first`. NULL takes no record. */
static enum waap_type type_of(struct waap_metric *metric, enum waap_type first) {
    if (metric == NULL) {
        return WAAP_BY_USE;
    }
    enum waap_type type = atomic_load_explicit(&metric->type, memory_order_relaxed);
    return type != WAAP_BY_USE ? type : metric_decide(metric, first);
}

static void add(struct waap_metric *metric, enum waap_call call, double n) {
    enum waap_type type = type_of(metric, WAAP_RATE);
    bool fits = type == WAAP_GAUGE ? !atomic_load(&metric->by_use) : is_counted(type) && n >= 0;
    if (!fits || !add_double(&metric->rest, n)) {
        drop(metric, call, n);
    } else if (type == WAAP_GAUGE) {
        gauge_mark(metric);
    }
}

void waap_inc(struct waap_metric *metric) {
    waap_client_ensure();
    if (is_counted(type_of(metric, WAAP_RATE))) {
        atomic_fetch_add_explicit(&metric->whole, 1, memory_order_relaxed);
    } else {
        add(metric, CALL_INC, 1);
    }
}

void waap_add(struct waap_metric *metric, double n) {
    waap_client_ensure();
    add(metric, CALL_ADD, n);
}

void waap_set(struct waap_metric *metric, double value) {
    waap_client_ensure();
    if (type_of(metric, WAAP_GAUGE) != WAAP_GAUGE) {
        drop(metric, CALL_SET, value);
        return;
    }
    atomic_store_explicit(&metric->rest, value, memory_order_relaxed);
    gauge_mark(metric);
}

void waap_observe(struct waap_metric *metric, double value) {
    waap_client_ensure();
    enum waap_type type = type_of(metric, WAAP_BY_USE);
    if (type != WAAP_HISTOGRAM || !add_double(&metric->rest, value)) {
        drop(metric, CALL_OBSERVE, value);
        return;
    }
    size_t low = 0;
    size_t high = metric->n_bounds;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (value <= metric->bounds[middle]) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    atomic_fetch_add_explicit(&metric->buckets[low], 1, memory_order_release);
}

double waap_read(struct waap_metric *metric) {
    if (metric == NULL || waap_metric_is_empty(metric)) {
        return NAN;
    }
    double whole = (double)atomic_load(&metric->whole); /* 0 but for counters */
    return whole + atomic_load(&metric->rest);
}

size_t waap_read_buckets(struct waap_metric *metric, uint64_t *counts, size_t n) {
    if (metric == NULL || metric->buckets == NULL) {
        return 0;
    }
    for (size_t i = 0; i <= metric->n_bounds && i < n; i++) {
        counts[i] = atomic_load(&metric->buckets[i]);
    }
    return metric->n_bounds + 1;
}

double waap_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

struct waap_reading waap_metric_read(struct waap_metric *metric) {
    struct waap_reading reading = {0};
    reading.whole = metric->base_whole + atomic_load(&metric->whole);
    if (metric->type == WAAP_HISTOGRAM) {
        for (size_t i = 0; i <= metric->n_bounds; i++) {
            reading.whole += metric->base_buckets[i] + atomic_load(&metric->buckets[i]);
        }
    }
    reading.rest = metric->base_rest + atomic_load(&metric->rest);
    return reading;
}

static uint64_t bits_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

bool waap_metric_changed(struct waap_metric *metric) {
    if (waap_metric_is_empty(metric)) {
        return false;
    }
    struct waap_reading now = waap_metric_read(metric);
    /* By their bits: NaN is not equal to itself. */
    return !metric->declared || now.whole != metric->sent_whole ||
           bits_of(now.rest) != bits_of(metric->sent_rest);
}

void waap_metrics_forget(bool zero) {
    for (struct waap_metric *m = waap_metrics; m != NULL; m = m->next) {
        m->declared = false;
        m->refused_ms = 0;
        if (!zero) {
            continue;
        }
        metric_restart(m);
        m->base_whole = 0;
        m->base_rest = 0;
        for (size_t i = 0; i <= m->n_bounds && m->buckets != NULL; i++) {
            m->base_buckets[i] = 0;
        }
    }
    if (zero) {
        atomic_store(&waap_n_dropped, 0);
    }
}
