#pragma once

/* What a plugin says about itself, live, through the waap exporter of its node.
 *
 *     struct waap_metric *fps = waap_rate("fps", "Pictures looked at.", NULL);
 *     struct waap_param *res = waap_param_int("res", 720, 240, 1080, "Lines of a picture.");
 *     for (;;) {
 *         detect(grab(waap_get_int(res)));
 *         waap_inc(fps);
 *     }
 *
 * Nothing has to be started or stopped: the first metric or parameter starts one thread, which
 * sends what has changed a few times a second, reconnects when the exporter was away, and sends the
 * rest at exit(), also what functions given to atexit() have recorded. Recording never waits, never
 * fails and raises no signal. Counts are kept as totals, so an exporter that was away misses
 * nothing. A forked child counts from 0 on a connection of its own; one that leaves by _exit()
 * should call waap_flush() before.
 *
 * What is called on the library's thread (on_error, on_change, waap_before_send) finds all signals
 * blocked and a stack of the usual size (ulimit -s; 256 KiB where memory is too short for that),
 * and is not called any more once exit() has begun.
 *
 * All calls may be made from any thread; waap_inc, waap_add, waap_set and waap_observe also in a
 * signal handler, in a forked child once it has recorded outside of one. NULL is a metric that
 * records nothing and a parameter that is 0, so results need no check; errno says why there is
 * none. Mistakes, and an exporter that is away for five seconds, are written to standard error,
 * once for each metric. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WAAP_API __attribute__((visibility("default")))

struct waap_metric;
struct waap_param;

enum waap_type {
    WAAP_COUNTER,
    WAAP_GAUGE,
    WAAP_HISTOGRAM,
    WAAP_RATE,
    WAAP_BY_USE, /* a rate after waap_inc or waap_add, a gauge after waap_set */
};

/* Settings; whatever is 0 or NULL is as the comment says. */
struct waap_options {
    const char *socket;        /* $WAAP_PUSH_SOCKET, else /run/waap/push.sock */
    const char *plugin;        /* $WAAP_PLUGIN_NAME, else the program's name */
    const char *job;           /* $WAAP_JOB, else none */
    const char *const *labels; /* names and values in turn, then NULL; else none */
    unsigned interval_ms;      /* how often changes are sent: 250 */
    unsigned max_series;       /* how many series there can be: 1000 */
    /* Called on the library's thread with what the exporter refuses, and when it cannot be
     * reached. With $WAAP_DEBUG set, that is also written to standard error. */
    void (*on_error)(const char *text, void *data);
    void *data;
};

/* Sets what is not to be taken from the environment; texts are copied. Returns 0, -EBUSY once there
 * is a metric or a parameter or anything was recorded, read or flushed, -EINVAL (labels) or
 * -ENOMEM. */
WAAP_API int waap_configure(const struct waap_options *options);

/* For a series that stays when its plugin has gone, until somebody deletes it. */
#define WAAP_TTL_NEVER __builtin_inf()

/* Everything that can be said about a metric. Characters that Prometheus does not allow in names
 * become '_'. */
struct waap_metric_spec {
    enum waap_type type;
    const char *name;
    const char *help;
    const char *const *labels; /* names and values in turn, then NULL; or NULL */
    const double *bounds;      /* histogram: ascending; NULL: 1 ms to 10 s */
    size_t n_bounds;
    double ttl_seconds; /* how long the series outlives its plugin; 0: as the exporter is set */
};

/* Returns the series of that name and labels, made at the first call. NULL: EINVAL (no name, a
 * label twice, bounds out of order), EEXIST (the name has another type or other bounds), ENOSPC
 * (max_series), ENOMEM.
 */
WAAP_API struct waap_metric *waap_metric_new(const struct waap_metric_spec *spec);

/* The same in one line; label names and values follow in turn, then NULL. A counter is exported
 * with
 * "_total" at its end. A rate, say fps, is exported as the counter fps_total and the gauge fps, its
 * mean over 10 s. */
WAAP_API struct waap_metric *waap_counter(const char *name, const char *help, ...)
    __attribute__((sentinel));
WAAP_API struct waap_metric *waap_gauge(const char *name, const char *help, ...)
    __attribute__((sentinel));
WAAP_API struct waap_metric *waap_rate(const char *name, const char *help, ...)
    __attribute__((sentinel));
/* With the usual bounds, 1 ms to 10 s. */
WAAP_API struct waap_metric *waap_histogram(const char *name, const char *help, ...)
    __attribute__((sentinel));

/* A metric whose type its first record decides, see WAAP_BY_USE; a record of the other kind is
 * dropped. A macro, as C++ has one name for a struct and a function. */
#define waap_metric(name) waap_metric_by_use(name)
WAAP_API struct waap_metric *waap_metric_by_use(const char *name);

/* Adds one to a counter, rate or gauge. */
WAAP_API void waap_inc(struct waap_metric *metric);
/* Adds to a counter, rate or gauge; less than 0 to a gauge only. */
WAAP_API void waap_add(struct waap_metric *metric, double n);
/* Sets a gauge; to NaN and infinities, too. */
WAAP_API void waap_set(struct waap_metric *metric, double value);
/* Adds one observation to a histogram. */
WAAP_API void waap_observe(struct waap_metric *metric, double value);

/* What has been recorded: the total of a counter or rate, a gauge's value, a histogram's sum; NaN
 * where there is nothing. */
WAAP_API double waap_read(struct waap_metric *metric);
/* Copies how many observations each bucket of a histogram alone has, of at most `n` buckets;
 * returns how many buckets there are, of which the last has no bound. */
WAAP_API size_t waap_read_buckets(struct waap_metric *metric, uint64_t *counts, size_t n);

/* Seconds of a clock that is never set, to measure with. */
WAAP_API double waap_now(void);

struct waap_span {
    struct waap_metric *metric;
    double began;
};

/* Ends what WAAP_TIMEIT began. */
static inline void waap_span_end(struct waap_span *span) {
    waap_observe(span->metric, waap_now() - span->began);
}

/* Observes in a histogram how long the rest of the enclosing block takes. */
#define WAAP_TIMEIT(histogram)                                                                     \
    __attribute__((cleanup(waap_span_end), unused)) struct waap_span WAAP_NAME(                    \
        waap_span_, __LINE__) = {(histogram), waap_now()}
#define WAAP_NAME(stem, line) WAAP_NAME_OF(stem, line)
#define WAAP_NAME_OF(stem, line) stem##line

enum waap_param_type {
    WAAP_INT,
    WAAP_FLOAT,
    WAAP_BOOL,
    WAAP_STRING,
    WAAP_ENUM,
};

/* Everything that can be said about a parameter, a knob that others turn while the plugin runs. */
struct waap_param_spec {
    enum waap_param_type type;
    const char *name;
    const char *help;
    const char *unit;
    double number;             /* the default of an int (whole), float or bool (0 or 1) */
    double min, max, step;     /* of an int or float; min = max: any; infinite: none; step 0: any */
    const char *text;          /* the default of a string or enum */
    const char *const *values; /* of an enum, NULL at the end */
    /* Called on the library's thread after the value was turned; may be NULL. */
    void (*on_change)(struct waap_param *param, void *data);
    void *data;
};

/* Declares a parameter. NULL: EINVAL, EEXIST (declared before), ENOSPC, ENOMEM. */
WAAP_API struct waap_param *waap_param_new(const struct waap_param_spec *spec);
WAAP_API struct waap_param *waap_param_int(const char *name, int64_t value, int64_t min,
                                           int64_t max, const char *help);
WAAP_API struct waap_param *waap_param_float(const char *name, double value, double min, double max,
                                             const char *help);
WAAP_API struct waap_param *waap_param_bool(const char *name, bool value, const char *help);
WAAP_API struct waap_param *waap_param_string(const char *name, const char *value,
                                              const char *help);
WAAP_API struct waap_param *waap_param_enum(const char *name, const char *value,
                                            const char *const *values, const char *help);

/* The value as it is. Reading it (or the return of on_change, where there is one) tells the
 * exporter that it is applied. Ints are exact up to 2^53. */
WAAP_API int64_t waap_get_int(struct waap_param *param);
WAAP_API double waap_get_float(struct waap_param *param);
WAAP_API bool waap_get_bool(struct waap_param *param);
/* One of the values that were declared. */
WAAP_API const char *waap_get_enum(struct waap_param *param);
/* Copies a string's or an enum's value, cut to fit; returns its whole length, as snprintf does. */
WAAP_API size_t waap_get_string(struct waap_param *param, char *text, size_t size);

/* Calls `collect` on the library's thread before each sending, to set what is better asked for than
 * kept. Returns 0, or -ENOSPC after a few of them. */
WAAP_API int waap_before_send(void (*collect)(void *data), void *data);

/* Waits until the exporter has confirmed all that was recorded before the call. False: it has not
 * within that time; everything is kept and sent later. */
WAAP_API bool waap_flush(unsigned timeout_ms);

struct waap_stats {
    bool connected;
    uint64_t n_connects;
    uint64_t n_lines;   /* sent */
    uint64_t n_errors;  /* refusals by the exporter, and what it said that makes no sense */
    uint64_t n_dropped; /* records that are no number, below 0 for a counter, of another kind, or to
                           NULL */
    uint64_t n_series;  /* of those max_series */
};

WAAP_API struct waap_stats waap_get_stats(void);

#ifdef __cplusplus
}
#endif
