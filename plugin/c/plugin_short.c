#include "include/waap/plugin.h"

#include <errno.h>
#include <stdarg.h>

/* The calls that say in one line what a waap_metric_spec or waap_param_spec says at length. */

enum { MAX_WORDS = 66 }; /* 32 labels, and one more to be found too many */

static struct waap_metric *metric_of(enum waap_type type, const char *name, const char *help,
                                     va_list words) {
    const char *labels[MAX_WORDS + 1] = {0};
    for (size_t i = 0; i < MAX_WORDS; i++) {
        labels[i] = va_arg(words, const char *);
        if (labels[i] == NULL) {
            break;
        }
    }
    return waap_metric_new(
        &(struct waap_metric_spec){.type = type, .name = name, .help = help, .labels = labels});
}

#define SHORT(call, type)                                                                          \
    struct waap_metric *call(const char *name, const char *help, ...) {                            \
        va_list words;                                                                             \
        va_start(words, help);                                                                     \
        struct waap_metric *metric = metric_of(type, name, help, words);                           \
        va_end(words);                                                                             \
        return metric;                                                                             \
    }

SHORT(waap_counter, WAAP_COUNTER)
SHORT(waap_gauge, WAAP_GAUGE)
SHORT(waap_rate, WAAP_RATE)
SHORT(waap_histogram, WAAP_HISTOGRAM)

struct waap_metric *waap_metric_by_use(const char *name) {
    return waap_metric_new(&(struct waap_metric_spec){.type = WAAP_BY_USE, .name = name});
}

struct waap_param *waap_param_int(const char *name, int64_t value, int64_t min, int64_t max,
                                  const char *help) {
    return waap_param_new(&(struct waap_param_spec){.type = WAAP_INT,
                                                    .name = name,
                                                    .help = help,
                                                    .number = (double)value,
                                                    .min = (double)min,
                                                    .max = (double)max});
}

struct waap_param *waap_param_float(const char *name, double value, double min, double max,
                                    const char *help) {
    return waap_param_new(&(struct waap_param_spec){
        .type = WAAP_FLOAT, .name = name, .help = help, .number = value, .min = min, .max = max});
}

struct waap_param *waap_param_bool(const char *name, bool value, const char *help) {
    return waap_param_new(
        &(struct waap_param_spec){.type = WAAP_BOOL, .name = name, .help = help, .number = value});
}

struct waap_param *waap_param_string(const char *name, const char *value, const char *help) {
    return waap_param_new(
        &(struct waap_param_spec){.type = WAAP_STRING, .name = name, .help = help, .text = value});
}

struct waap_param *waap_param_enum(const char *name, const char *value, const char *const *values,
                                   const char *help) {
    return waap_param_new(&(struct waap_param_spec){
        .type = WAAP_ENUM, .name = name, .help = help, .text = value, .values = values});
}
