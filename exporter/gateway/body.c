#include "exporter/gateway/body.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/memory.h"
#include "exporter/core/number.h"

/* ---- types ---- */

int gateway_type_parse(const char *content_type, bool *ret_protobuf, struct error *err) {
    static const char protobuf[] = "application/vnd.google.protobuf";
    const char *type = content_type != NULL ? content_type : "";
    type += strspn(type, " \t");
    size_t len = strcspn(type, "; \t");
    *ret_protobuf = len == strlen(protobuf) && strncasecmp(type, protobuf, len) == 0;
    if (*ret_protobuf && (strcasestr(type, "io.prometheus.client.MetricFamily") == NULL ||
                          strcasestr(type, "delimited") == NULL)) {
        return error_set(err, -EINVAL,
                         "protobuf must be proto=io.prometheus.client.MetricFamily; "
                         "encoding=delimited, got \"%s\"",
                         content_type);
    }
    return 0;
}

/* ---- updates ---- */

void gateway_body_finish(struct gateway_body *body) {
    free(body->updates);
    arena_finish(&body->arena);
    exposition_doc_finish(&body->doc);
    *body = (struct gateway_body){0};
}

struct push_update *gateway_body_add(struct gateway_body *body) {
    if (body->n_updates == PUSH_MAX_UPDATES) {
        return NULL;
    }
    ARRAY_GROW(&body->updates, &body->cap_updates, body->n_updates + 1);
    struct push_update *update = &body->updates[body->n_updates++];
    *update = (struct push_update){
        .op = PUSH_SET, .ttl_ms = PUSH_TTL_DEFAULT, .index = (uint32_t)body->n_updates};
    return update;
}

int gateway_body_fail_full(const struct gateway_body *body, struct error *err) {
    return body->n_updates == PUSH_MAX_UPDATES ? push_update_fail_many(err)
                                               : arena_fail(&body->arena, err);
}

void gateway_body_drop_labels(struct gateway_body *body, const struct label *labels, size_t n) {
    for (size_t i = 0; i < body->n_updates; i++) {
        struct push_update *update = &body->updates[i];
        struct label *kept = (struct label *)update->labels; /* in memory of the body's own */
        uint32_t n_kept = 0;
        for (size_t j = 0; j < update->n_labels; j++) {
            if (label_find(labels, n, kept[j].name) == NULL) {
                kept[n_kept++] = kept[j];
            }
        }
        update->n_labels = n_kept;
    }
}

/* ---- the text format ---- */

/* One sample of a histogram or summary, with the value of its label `le` or `quantile`. */
struct piece {
    const struct exposition_sample *sample; /* has lost the label of its bound */
    const struct label *labels;
    double bound; /* NaN: none */
};

static const enum push_type types[] = {
    [METRIC_UNTYPED] = PUSH_UNTYPED, [METRIC_COUNTER] = PUSH_COUNTER,
    [METRIC_GAUGE] = PUSH_GAUGE,     [METRIC_HISTOGRAM] = PUSH_HISTOGRAM,
    [METRIC_SUMMARY] = PUSH_SUMMARY, /* the text format has no others */
};

static bool is_composed(const struct exposition_family *family) {
    return family->desc.type == METRIC_HISTOGRAM || family->desc.type == METRIC_SUMMARY;
}

static struct push_update *add(struct gateway_body *body, const struct exposition_family *family) {
    struct push_update *update = gateway_body_add(body);
    if (update != NULL) {
        update->name = family->desc.name;
        update->help = family->desc.help != NULL ? family->desc.help : "";
        update->type = types[family->desc.type];
    }
    return update;
}

static bool add_simple(struct gateway_body *body, const struct exposition_sample *sample) {
    struct push_update *update = add(body, &body->doc.families[sample->family]);
    if (update == NULL) {
        return false;
    }
    update->labels = exposition_doc_labels(&body->doc, sample);
    update->n_labels = sample->n_labels;
    update->values = &sample->value;
    update->n_values = 1;
    return true;
}

/* ---- histograms and summaries: many samples, one series ---- */

/* Takes the bound out of a sample's labels. */
static struct piece make_piece(struct exposition_doc *doc, struct exposition_sample *sample) {
    bool histogram = doc->families[sample->family].desc.type == METRIC_HISTOGRAM;
    const char *bound_name = histogram ? "le" : "quantile";
    struct label *labels = doc->labels + sample->first_label;
    struct piece piece = {.sample = sample, .labels = labels, .bound = NAN};
    bool bounded = strcmp(sample->suffix, histogram ? "_bucket" : "") == 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < sample->n_labels; i++) {
        if (bounded && strcmp(labels[i].name, bound_name) == 0) {
            number_parse(labels[i].value, strlen(labels[i].value), &piece.bound);
        } else {
            labels[n++] = labels[i];
        }
    }
    sample->n_labels = n;
    return piece;
}

static int compare_series(const struct piece *a, const struct piece *b) {
    const struct exposition_sample *left = a->sample, *right = b->sample;
    int order = (left->family > right->family) - (left->family < right->family);
    if (order == 0) {
        order = (left->n_labels > right->n_labels) - (left->n_labels < right->n_labels);
    }
    for (size_t i = 0; order == 0 && i < left->n_labels; i++) {
        order = strcmp(a->labels[i].name, b->labels[i].name);
        order = order != 0 ? order : strcmp(a->labels[i].value, b->labels[i].value);
    }
    return order;
}

/* By series, then by bound; what has none comes last. */
static int compare_pieces(const void *first, const void *second) {
    const struct piece *a = first, *b = second;
    int order = compare_series(a, b);
    if (order != 0) {
        return order;
    }
    if (isnan(a->bound) != isnan(b->bound)) {
        return isnan(a->bound) ? 1 : -1;
    }
    return (a->bound > b->bound) - (a->bound < b->bound);
}

/* The figures of one series: per bound, then count and sum, which are 0 if absent, as in the
 * Pushgateway; but a histogram's count is also that of its last bucket. */
static bool add_composed(struct gateway_body *body, const struct piece *pieces, size_t n) {
    struct push_update *update = add(body, &body->doc.families[pieces[0].sample->family]);
    double *figures = arena_take(&body->arena, 2 * (n + 2) * sizeof(*figures));
    if (update == NULL || figures == NULL) {
        return false;
    }
    double *bounds = figures + n + 2;
    double count = 0, sum = 0;
    size_t n_bounds = 0;
    for (size_t i = 0; i < n; i++) {
        const struct exposition_sample *sample = pieces[i].sample;
        bool last_bucket = update->type == PUSH_HISTOGRAM && isinf(pieces[i].bound) == 1;
        if (last_bucket || strcmp(sample->suffix, "_count") == 0) {
            count = sample->value;
        } else if (strcmp(sample->suffix, "_sum") == 0) {
            sum = sample->value;
        } else {
            bounds[n_bounds] = pieces[i].bound;
            figures[n_bounds++] = sample->value;
        }
    }
    figures[n_bounds] = count;
    figures[n_bounds + 1] = sum;
    update->labels = pieces[0].labels;
    update->n_labels = pieces[0].sample->n_labels;
    update->values = figures;
    update->n_values = (uint32_t)n_bounds + 2;
    update->bounds = bounds;
    update->n_bounds = (uint32_t)n_bounds;
    return true;
}

static bool add_all_composed(struct gateway_body *body, size_t n_pieces) {
    struct exposition_doc *doc = &body->doc;
    struct piece *pieces = arena_take(&body->arena, n_pieces * sizeof(*pieces));
    if (pieces == NULL || !arena_charge(&body->arena, n_pieces * sizeof(*pieces))) {
        return false; /* sorting takes as much again */
    }
    size_t n = 0;
    for (size_t i = 0; i < doc->n_samples; i++) {
        if (is_composed(&doc->families[doc->samples[i].family])) {
            pieces[n++] = make_piece(doc, &doc->samples[i]);
        }
    }
    qsort(pieces, n, sizeof(*pieces), compare_pieces);
    for (size_t first = 0, end; first < n; first = end) {
        for (end = first + 1; end < n && compare_series(&pieces[first], &pieces[end]) == 0; end++) {
        }
        if (!add_composed(body, pieces + first, end - first)) {
            return false;
        }
    }
    return true;
}

static bool add_all(struct gateway_body *body) {
    size_t n_composed = 0;
    for (size_t i = 0; i < body->doc.n_samples; i++) {
        const struct exposition_sample *sample = &body->doc.samples[i];
        body->has_timestamps |= sample->has_timestamp;
        if (is_composed(&body->doc.families[sample->family])) {
            n_composed++;
        } else if (!add_simple(body, sample)) {
            return false;
        }
    }
    return n_composed == 0 || add_all_composed(body, n_composed);
}

int gateway_text_read(char *data, size_t len, const struct exposition_limits *limits,
                      struct gateway_body *body, struct error *err) {
    gateway_body_finish(body);
    if (len > 0 && (data[0] == '{' || data[0] == '[')) {
        return error_set(err, -EINVAL, "this looks like JSON, which goes to /api/v1/push");
    }
    body->arena.max = limits->max_bytes;
    int r = exposition_parse(data, len, limits, &body->doc, err);
    if (r < 0) {
        return r;
    }
    if (!arena_charge(&body->arena, exposition_doc_size(&body->doc)) || !add_all(body)) {
        r = gateway_body_fail_full(body, err);
        gateway_body_finish(body);
    }
    return r;
}
