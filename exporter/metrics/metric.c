#include "exporter/metrics/metric.h"

#include <errno.h>
#include <string.h>

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_valid(const char *name, size_t len, bool colons) {
    for (size_t i = 0; i < len; i++) {
        bool begins = is_letter(name[i]) || (colons && name[i] == ':');
        if (!begins && !(i > 0 && is_digit(name[i]))) {
            return false;
        }
    }
    return len > 0;
}

bool metric_name_valid(const char *name, size_t len) {
    return is_valid(name, len, true);
}

bool metric_label_name_valid(const char *name, size_t len) {
    return is_valid(name, len, false);
}

bool metric_name_ends_with(const char *name, size_t len, const char *ending) {
    size_t n = strlen(ending);
    return len > n && memcmp(name + len - n, ending, n) == 0;
}

bool metric_name_has_unit(const char *name, size_t len, const char *unit) {
    return metric_name_ends_with(name, len, unit) && name[len - strlen(unit) - 1] == '_';
}

int metric_desc_check(const struct metric_desc *desc, struct error *err) {
    const char *name = desc->name;
    size_t len = strlen(name);
    if (!metric_name_valid(name, len)) {
        return error_set(err, -EINVAL, "metric \"%s\": not a valid name", name);
    }
    if (desc->help == NULL || desc->help[0] == '\0') {
        return error_set(err, -EINVAL, "metric %s: no help text", name);
    }
    bool total = metric_name_ends_with(name, len, "_total");
    if ((desc->type == METRIC_COUNTER) != total) {
        return error_set(err, -EINVAL, "metric %s: counters and only they end in _total", name);
    }
    if (desc->type == METRIC_INFO && !metric_name_ends_with(name, len, "_info")) {
        return error_set(err, -EINVAL, "metric %s: an info must end in _info", name);
    }
    size_t base = total ? len - strlen("_total") : len;
    if (desc->unit != NULL && !metric_name_has_unit(name, base, desc->unit)) {
        return error_set(err, -EINVAL, "metric %s: does not end in its unit %s", name, desc->unit);
    }
    return 0;
}

const char *metric_type_name(enum metric_type type) {
    static const char *const names[] = {
        [METRIC_UNTYPED] = "untyped",     [METRIC_COUNTER] = "counter", [METRIC_GAUGE] = "gauge",
        [METRIC_HISTOGRAM] = "histogram", [METRIC_SUMMARY] = "summary", [METRIC_INFO] = "info",
    };
    return names[type];
}
