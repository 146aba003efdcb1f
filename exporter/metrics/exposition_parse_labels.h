#pragma once

#include "exporter/metrics/exposition_parse.h"
#include "exporter/metrics/exposition_scan.h"

/* The labels of one sample line, sorted by name; `items` has room for as many as the limits say. */
struct exposition_labels {
    struct exposition_label *items;
    size_t n;
};

/* Reads from behind the opening brace to behind the closing one. */
int exposition_labels_parse(struct exposition_scan *scan, const struct exposition_limits *limits,
                            struct exposition_labels *labels);

/* The label of that name, or NULL. */
const struct exposition_label *exposition_labels_find(const struct exposition_labels *labels,
                                                      const char *name);

/* Refuses a name that is too long. */
int exposition_check_name_len(const struct exposition_scan *scan,
                              const struct exposition_limits *limits, const char *name, size_t len);
