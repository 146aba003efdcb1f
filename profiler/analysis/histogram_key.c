#include "profiler/analysis/histogram_key.h"

#include <errno.h>
#include <math.h>

#include "exporter/core/number.h"

/* Splits `le` off the labels. -EINVAL where it has none. */
static int add_bucket_key(const struct record_series *series, struct buf *out, double *ret_le) {
    static const char name[] = "le=\"";
    const char *le = series->labels;
    while (strncmp(le, name, strlen(name)) != 0) {
        le = strchr(le, ',');
        if (le == NULL) {
            return -EINVAL;
        }
        le++;
    }
    const char *value = le + strlen(name);
    const char *end = strchr(value, '"');
    if (end == NULL || number_parse(value, (size_t)(end - value), ret_le) < 0) {
        return -EINVAL;
    }
    const char *behind = end[1] == ',' ? end + 2 : end + 1;
    size_t before = (size_t)(le - series->labels);
    before -= before > 0 && *behind == '\0';
    buf_add_str(out, series->name);
    if (before > 0 || *behind != '\0') {
        buf_printf(out, "{%.*s%s}", (int)before, series->labels, behind);
    }
    return 0;
}

int histogram_key_of(const struct record_series *series, struct buf *out, double *ret_le) {
    static const char *const suffixes[] = {[RECORD_COUNT] = "_count", [RECORD_SUM] = "_sum"};
    if (series->type == RECORD_BUCKET) {
        return add_bucket_key(series, out, ret_le);
    }
    if (series->type != RECORD_COUNT && series->type != RECORD_SUM) {
        return -EINVAL;
    }
    size_t len = strlen(series->name), n = strlen(suffixes[series->type]);
    if (len <= n || strcmp(series->name + len - n, suffixes[series->type]) != 0) {
        return -EINVAL;
    }
    buf_printf(out, "%.*s%s", (int)(len - n), series->name, series->key + len);
    *ret_le = NAN;
    return 0;
}
