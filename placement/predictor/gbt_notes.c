#include <errno.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "exporter/core/json.h"
#include "exporter/core/number.h"
#include "placement/predictor/gbt_private.h"

/* {"format": 1, "xgboost": "1.7.4", "simulated": false, "rows": 2400, "trained": "…",
 *  "features": [{"name": "conv_layers", "min": 5, "max": 488}, …],
 *  "checks": [{"row": [5, …], "expected": -1.5}, …]} */

enum { FORMAT = 1 };

static void add_number(struct buf *out, double value) {
    char text[NUMBER_MAX_LEN];
    buf_add(out, text, number_format(value, text));
}

static void add_check(struct buf *out, const struct gbt *gbt, const struct gbt_check *check) {
    buf_add_str(out, "{\"row\": [");
    for (size_t i = 0; i < gbt->n_features; i++) {
        buf_add_str(out, i > 0 ? ", " : "");
        add_number(out, (double)check->row[i]);
    }
    buf_add_str(out, "], \"expected\": ");
    add_number(out, (double)check->expected);
    buf_add_char(out, '}');
}

void gbt_notes_write(const struct gbt *gbt, struct buf *out) {
    buf_printf(out, "{\"format\": %d, \"xgboost\": ", FORMAT);
    json_add_string(out, gbt->about.version);
    buf_printf(out, ", \"simulated\": %s, \"rows\": %zu", gbt->about.simulated ? "true" : "false",
               gbt->about.n_rows);
    buf_add_str(out, ", \"trained\": ");
    json_add_string(out, gbt->about.trained);
    buf_add_str(out, ", \"features\": [");
    for (size_t i = 0; i < gbt->n_features; i++) {
        buf_add_str(out, i > 0 ? ", {\"name\": " : "{\"name\": ");
        json_add_string(out, gbt->features[i].name);
        buf_add_str(out, ", \"min\": ");
        add_number(out, (double)gbt->features[i].min);
        buf_add_str(out, ", \"max\": ");
        add_number(out, (double)gbt->features[i].max);
        buf_add_char(out, '}');
    }
    buf_add_str(out, "], \"checks\": [");
    for (size_t i = 0; i < gbt->n_checks; i++) {
        buf_add_str(out, i > 0 ? ", " : "");
        add_check(out, gbt, &gbt->checks[i]);
    }
    buf_add_str(out, "]}");
}

static int read_text(struct json *json, char *out, size_t size, struct error *err) {
    char *text;
    size_t len;
    int r = json_string(json, &text, &len, err);
    if (r < 0) {
        return r;
    }
    if (len >= size) {
        return json_fail(json, err, "a text of more than %zu bytes", size - 1);
    }
    memcpy(out, text, len + 1);
    return 0;
}

static int read_float(struct json *json, float *ret, struct error *err) {
    double number = 0;
    int r = json_number(json, &number, err);
    if (r == 0 && fabs(number) > FLT_MAX) {
        return json_fail(json, err, "%g is beyond a float", number);
    }
    *ret = (float)number;
    return r;
}

static int read_feature(struct json *json, struct gbt *gbt, struct error *err) {
    if (gbt->n_features == GBT_MAX_FEATURES || !json_take(json, '{')) {
        return json_fail(json, err, "expected at most %d features", GBT_MAX_FEATURES);
    }
    struct gbt_feature *feature = &gbt->features[gbt->n_features++];
    bool first = true;
    char *key;
    size_t len;
    int r;
    while ((r = json_next_key(json, &first, &key, &len, err)) > 0) {
        if (strcmp(key, "name") == 0) {
            r = read_text(json, feature->name, sizeof(feature->name), err);
        } else if (strcmp(key, "min") == 0) {
            r = read_float(json, &feature->min, err);
        } else if (strcmp(key, "max") == 0) {
            r = read_float(json, &feature->max, err);
        } else {
            r = json_skip(json, err);
        }
        if (r < 0) {
            break;
        }
    }
    return r;
}

static int read_row(struct json *json, struct gbt_check *check, struct error *err) {
    if (!json_take(json, '[')) {
        return json_fail(json, err, "expected a row of numbers");
    }
    bool first = true;
    size_t n = 0;
    int r;
    while ((r = json_next_element(json, &first, err)) > 0) {
        if (n == GBT_MAX_FEATURES) {
            return json_fail(json, err, "a row of more than %d numbers", GBT_MAX_FEATURES);
        }
        r = read_float(json, &check->row[n++], err);
        if (r < 0) {
            break;
        }
    }
    return r;
}

static int read_check(struct json *json, struct gbt *gbt, struct error *err) {
    if (gbt->n_checks == GBT_MAX_CHECKS || !json_take(json, '{')) {
        return json_fail(json, err, "expected at most %d checks", GBT_MAX_CHECKS);
    }
    struct gbt_check *check = &gbt->checks[gbt->n_checks++];
    bool first = true;
    char *key;
    size_t len;
    int r;
    while ((r = json_next_key(json, &first, &key, &len, err)) > 0) {
        if (strcmp(key, "row") == 0) {
            r = read_row(json, check, err);
        } else if (strcmp(key, "expected") == 0) {
            r = read_float(json, &check->expected, err);
        } else {
            r = json_skip(json, err);
        }
        if (r < 0) {
            break;
        }
    }
    return r;
}

static int read_list(struct json *json, struct gbt *gbt,
                     int (*read)(struct json *, struct gbt *, struct error *), struct error *err) {
    if (!json_take(json, '[')) {
        return json_fail(json, err, "expected a list");
    }
    bool first = true;
    int r;
    while ((r = json_next_element(json, &first, err)) > 0) {
        r = read(json, gbt, err);
        if (r < 0) {
            break;
        }
    }
    return r;
}

static int read_features(struct json *json, struct gbt *gbt, struct error *err) {
    return read_list(json, gbt, read_feature, err);
}

static int read_checks(struct json *json, struct gbt *gbt, struct error *err) {
    return read_list(json, gbt, read_check, err);
}

static int read_format(struct json *json, struct gbt *gbt, struct error *err) {
    (void)gbt;
    double format = 0;
    int r = json_number(json, &format, err);
    if (r == 0 && format > FORMAT) {
        return json_fail(json, err, "format %g is later than this program", format);
    }
    return r;
}

static int read_n_rows(struct json *json, struct gbt *gbt, struct error *err) {
    double n_rows = 0;
    int r = json_number(json, &n_rows, err);
    gbt->about.n_rows = n_rows >= 0 && n_rows < 1e15 ? (size_t)n_rows : 0;
    return r;
}

static int read_simulated(struct json *json, struct gbt *gbt, struct error *err) {
    return json_bool(json, &gbt->about.simulated, err);
}

static int read_trained(struct json *json, struct gbt *gbt, struct error *err) {
    return read_text(json, gbt->about.trained, sizeof(gbt->about.trained), err);
}

static int read_version(struct json *json, struct gbt *gbt, struct error *err) {
    return read_text(json, gbt->about.version, sizeof(gbt->about.version), err);
}

static const struct {
    const char *key;
    int (*read)(struct json *json, struct gbt *gbt, struct error *err);
} keys[] = {
    {"checks", read_checks},   {"features", read_features},   {"format", read_format},
    {"rows", read_n_rows},     {"simulated", read_simulated}, {"trained", read_trained},
    {"xgboost", read_version},
};

static int read_key(struct json *json, const char *key, struct gbt *gbt, struct error *err) {
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        if (strcmp(keys[i].key, key) == 0) {
            return keys[i].read(json, gbt, err);
        }
    }
    return json_skip(json, err);
}

int gbt_notes_read(char *text, size_t len, struct gbt *gbt, struct error *err) {
    struct json json = json_begin(text, len, 1);
    if (!json_take(&json, '{')) {
        return json_fail(&json, err, "expected an object");
    }
    bool first = true;
    char *key;
    size_t key_len;
    int r;
    while ((r = json_next_key(&json, &first, &key, &key_len, err)) > 0) {
        r = read_key(&json, key, gbt, err);
        if (r < 0) {
            break;
        }
    }
    return r;
}
