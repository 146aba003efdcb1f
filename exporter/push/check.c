#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/container_of.h"
#include "exporter/core/memory.h"
#include "exporter/core/utf8.h"
#include "exporter/push/private.h"

/* ---- names of collectors ---- */

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void push_reserve_names(struct push_store *store, const struct collector *const *collectors) {
    size_t capacity = 0;
    for (; collectors != NULL && *collectors != NULL; collectors++) {
        const struct metric_desc *desc;
        for (size_t i = 0; (desc = collector_metric(*collectors, i)) != NULL; i++) {
            ARRAY_GROW(&store->reserved, &capacity, store->n_reserved + 1);
            store->reserved[store->n_reserved++] = desc->name;
        }
    }
    if (store->n_reserved > 0) {
        qsort(store->reserved, store->n_reserved, sizeof(*store->reserved), compare_names);
    }
}

bool push_is_reserved(const struct push_store *store, const char *name) {
    return strncmp(name, "waap_", strlen("waap_")) == 0 ||
           (store->n_reserved > 0 && bsearch(&name, store->reserved, store->n_reserved,
                                             sizeof(*store->reserved), compare_names) != NULL);
}

/* ---- types ---- */

const char *const push_type_words[] = {
    [PUSH_UNSAID] = "metric", [PUSH_UNTYPED] = "untyped metric", [PUSH_COUNTER] = "counter",
    [PUSH_GAUGE] = "gauge",   [PUSH_HISTOGRAM] = "histogram",    [PUSH_SUMMARY] = "summary",
    [PUSH_RATE] = "rate",
};

const char *push_type_name(enum push_type type) {
    return type == PUSH_UNTYPED ? "untyped" : push_type_words[type];
}

int push_update_fail_many(struct error *err) {
    return error_set(err, -EFBIG,
                     "more than %d metrics at once, of which large ones count several times",
                     PUSH_MAX_UPDATES);
}

/* ---- texts ---- */

static bool is_utf8(const char *text) {
    size_t left = strlen(text);
    for (uint64_t word; left >= sizeof(word); text += sizeof(word), left -= sizeof(word)) {
        memcpy(&word, text, sizeof(word));
        if ((word & UINT64_C(0x8080808080808080)) != 0) {
            break; /* not ASCII alone */
        }
    }
    while (left > 0) {
        size_t n = utf8_sequence(text, left);
        if (n == 0) {
            return false;
        }
        text += n;
        left -= n;
    }
    return true;
}

int push_check_help(const struct push_update *update, struct error *err) {
    if (update->help != NULL && strlen(update->help) > PUSH_MAX_HELP) {
        return error_set(err, -E2BIG, "%s: a help text of more than %d bytes", update->name,
                         PUSH_MAX_HELP);
    }
    if (update->help != NULL && !is_utf8(update->help)) {
        return error_set(err, -EINVAL, "%s: the help text is not valid UTF-8", update->name);
    }
    return 0;
}

int push_check_name(const struct push_update *update, struct error *err) {
    size_t len = strlen(update->name);
    if (len > PUSH_MAX_NAME) {
        return error_set(err, -E2BIG, "%.40s…: a name of more than %d bytes", update->name,
                         PUSH_MAX_NAME);
    }
    if (!metric_name_valid(update->name, len)) {
        return error_set(
            err, -EINVAL,
            "\"%s\": not the name of a metric, which has letters, digits, _ and : only, "
            "and begins with none of the digits",
            update->name);
    }
    return push_check_help(update, err);
}

/* `whose` begins the message. */
static int check_label(const char *whose, const struct label *label, struct error *err) {
    size_t len = strlen(label->name);
    size_t value_len = strlen(label->value);
    if (len > PUSH_MAX_NAME) {
        return error_set(err, -E2BIG, "%s: label %.40s…: a name of more than %d bytes", whose,
                         label->name, PUSH_MAX_NAME);
    }
    if (value_len > PUSH_MAX_VALUE) {
        return error_set(err, -E2BIG, "%s: label %s: a value of %zu bytes, at most %d are allowed",
                         whose, label->name, value_len, PUSH_MAX_VALUE);
    }
    if (!metric_label_name_valid(label->name, len)) {
        return error_set(err, -EINVAL,
                         "%s: \"%s\" is not the name of a label, which has letters, digits and _ "
                         "only, and begins with no digit",
                         whose, label->name);
    }
    if (strcmp(label->name, "node") == 0) {
        return error_set(err, -EINVAL,
                         "%s: label node: the name is reserved, scrape configurations set it",
                         whose);
    }
    if (strncmp(label->name, "__", 2) == 0) {
        return error_set(err, -EINVAL, "%s: label %s: the name is reserved", whose, label->name);
    }
    if (!is_utf8(label->value)) {
        return error_set(err, -EINVAL, "%s: label %s: not valid UTF-8", whose, label->name);
    }
    return 0;
}

bool push_label_is_identity(const char *name) {
    return strcmp(name, "container") == 0 || strcmp(name, "namespace") == 0 ||
           strcmp(name, "pod") == 0;
}

static int check_order(const char *whose, const struct label *labels, size_t n, struct error *err) {
    for (size_t i = 0; i < n; i++) {
        if (labels[i].value[0] == '\0') {
            return error_set(err, -EINVAL, "%s: label %s: empty", whose, labels[i].name);
        }
        if (i > 0 && strcmp(labels[i - 1].name, labels[i].name) >= 0) {
            return error_set(err, -EINVAL, "%s: label %s: given twice or out of order", whose,
                             labels[i].name);
        }
    }
    return 0;
}

/* The samples of buckets and quantiles have a label of their own, which must not be there twice. */
static int check_edge(const struct push_owner *owner, enum push_type type,
                      const struct push_update *update, struct error *err) {
    const char *edge = type == PUSH_HISTOGRAM ? "le" : type == PUSH_SUMMARY ? "quantile" : NULL;
    if (edge != NULL && label_find(update->labels, update->n_labels, edge) != NULL) {
        return error_set(err, -EINVAL, "%s: label %s: the name is reserved", update->name, edge);
    }
    if (edge != NULL && label_find(owner->labels, owner->n_labels, edge) != NULL) {
        return error_set(err, -EINVAL, "%s: a %s cannot be pushed by %s, whose label %s it needs",
                         update->name, push_type_name(type), owner->name, edge);
    }
    return 0;
}

int push_check_labels(const struct push_owner *owner, enum push_type type,
                      const struct push_update *update, struct error *err) {
    if (update->n_labels > PUSH_MAX_LABELS) {
        return error_set(err, -E2BIG, "%s: more than %d labels", update->name, PUSH_MAX_LABELS);
    }
    int r = check_order(update->name, update->labels, update->n_labels, err);
    for (size_t i = 0; r == 0 && i < update->n_labels; i++) {
        const struct label *label = &update->labels[i];
        r = check_label(update->name, label, err);
        if (r == 0 && !owner->group && push_label_is_identity(label->name)) {
            r = error_set(err, -EINVAL, "%s: label %s: says where a plugin runs, not for a metric",
                          update->name, label->name);
        }
        if (r == 0 && label_find(owner->labels, owner->n_labels, label->name) != NULL) {
            r = error_set(err, -EINVAL, "%s: label %s: %s has it already", update->name,
                          label->name, owner->name);
        }
    }
    return r < 0 ? r : check_edge(owner, type, update, err);
}

int push_check_identity(const struct push_identity *identity, const struct label *labels,
                        size_t n_labels, struct error *err) {
    const char *plugin = identity->plugin;
    if (!identity->group && (plugin == NULL || plugin[0] == '\0')) {
        return error_set(err, -EINVAL, "a plugin must say its name");
    }
    const char *whose = identity->group ? "group" : "plugin";
    int r = check_order(whose, labels, n_labels, err);
    for (size_t i = 0; r == 0 && i < n_labels; i++) {
        r = check_label(whose, &labels[i], err);
    }
    return r;
}

int push_check_bounds(const struct push_update *update, const double *bounds, size_t n,
                      struct error *err) {
    if (n > PUSH_MAX_BUCKETS) {
        return error_set(err, -E2BIG, "%s: more than %d buckets", update->name, PUSH_MAX_BUCKETS);
    }
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(bounds[i]) || (i > 0 && bounds[i - 1] >= bounds[i])) {
            return error_set(err, -EINVAL, "%s: bounds must be finite and ascend", update->name);
        }
    }
    return 0;
}

/* ---- values ---- */

static bool all_finite(const double *values, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(values[i])) {
            return false;
        }
    }
    return true;
}

/* Whether the counts are cumulative. */
static bool are_counts(const double *values, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (!(values[i] >= (i > 0 ? values[i - 1] : 0)) || isinf(values[i])) {
            return false;
        }
    }
    return true;
}

/* The figures end with count and sum. */
static int fail_figures(const struct push_update *update, const struct push_series *series,
                        struct error *err) {
    bool histogram = series->family->type == PUSH_HISTOGRAM;
    const char *what = histogram ? "counts" : "values";
    if (update->n_values < 2) {
        return error_set(err, -EINVAL, "%s: expected %s, count and sum, got one number",
                         update->name, what);
    }
    return error_set(err, -EINVAL, "%s: %s: expected %zu, one for each %s, got %u", update->name,
                     what, series->n_bounds, histogram ? "bound" : "quantile",
                     update->n_values - 2);
}

static int check_composite(const struct push_update *update, const struct push_series *series,
                           struct error *err) {
    size_t n = series->n_bounds + 2;
    if (update->n_values != n) {
        return fail_figures(update, series, err);
    }
    bool counts = series->family->type == PUSH_HISTOGRAM ? are_counts(update->values, n - 1)
                                                         : are_counts(update->values + n - 2, 1);
    if (!counts) {
        return error_set(err, -EINVAL, "%s: the counts of a %s must not fall or be negative",
                         update->name, push_type_name(series->family->type));
    }
    if (update->op != PUSH_SET && !isfinite(update->values[n - 1])) {
        return error_set(err, -EINVAL, "%s: the sum must be finite", update->name);
    }
    return 0;
}

static int check_one(const struct push_update *update, struct error *err) {
    if (update->n_values != 1) {
        return error_set(err, -EINVAL, "%s: expected one value, got %u", update->name,
                         update->n_values);
    }
    return 0;
}

static int check_increment(const struct push_update *update, enum push_type type,
                           struct error *err) {
    double value = update->values[0];
    if (!isfinite(value)) {
        return error_set(err, -EINVAL, "%s: cannot add %g", update->name, value);
    }
    if (value < 0 && type != PUSH_GAUGE && type != PUSH_UNTYPED) {
        return error_set(err, -EINVAL, "%s: a %s cannot go down, got %g", update->name,
                         push_type_name(type), value);
    }
    return 0;
}

/* Whether a type has an operation; only groups may set cumulative types. */
static bool fits(enum push_op op, enum push_type type, bool group) {
    switch (op) {
    case PUSH_SET:
        return group || type == PUSH_GAUGE || type == PUSH_UNTYPED || type == PUSH_SUMMARY;
    case PUSH_INC:
        return type != PUSH_SUMMARY;
    case PUSH_TOTAL:
        return type == PUSH_COUNTER || type == PUSH_RATE || type == PUSH_HISTOGRAM;
    case PUSH_OBSERVE:
        return type == PUSH_HISTOGRAM;
    }
    return false;
}

static const char *const op_words[] = {
    [PUSH_SET] = "set",
    [PUSH_INC] = "add to",
    [PUSH_TOTAL] = "give the total of",
    [PUSH_OBSERVE] = "observe",
};

static const char *const taken_words[] = {
    [PUSH_COUNTER] = "inc or total",
    [PUSH_GAUGE] = "set or inc",
    [PUSH_HISTOGRAM] = "observe or total",
    [PUSH_RATE] = "inc or total",
    [PUSH_SUMMARY] = "set",
    [PUSH_UNTYPED] = "set or inc",
};

int push_check_values(const struct push_batch *batch, const struct push_update *update,
                      const struct push_series *series, enum push_type type, struct error *err) {
    if (!fits(update->op, type, series->owner->group)) {
        return error_set(err, -EINVAL, "%s: one cannot %s a %s, it takes %s", update->name,
                         op_words[update->op], push_type_name(type), taken_words[type]);
    }
    if (update->op == PUSH_TOTAL && batch->start == 0) {
        return error_set(err, -EINVAL, "%s: a total needs a start, given with hello", update->name);
    }
    if (update->op == PUSH_OBSERVE) {
        return all_finite(update->values, update->n_values)
                   ? 0
                   : error_set(err, -EINVAL, "%s: observations must be finite", update->name);
    }
    if (push_type_is_composite(type)) {
        return check_composite(update, series, err);
    }
    int r = check_one(update, err);
    bool adds = update->op == PUSH_INC || update->op == PUSH_TOTAL;
    return r == 0 && adds ? check_increment(update, type, err) : r;
}
