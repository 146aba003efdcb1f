#pragma once

#include <stddef.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/error.h"
#include "exporter/metrics/labels.h"

/* The group that the path of a push names, as the Pushgateway spells it:
 * /metrics/job/<job>{/<label>/<value>}. A name with "@base64" behind it has its value in URL-safe
 * base64, for values with slashes; "=" is the empty one. */
struct gateway_path {
    struct label *labels; /* sorted by name; `job` is among them */
    size_t n_labels;
    char *memory; /* what they point into */
};

enum { GATEWAY_PATH_MAX_LABELS = 64 };

/* Reads the path after "/metrics/", percent-decoded: "job/nightly/instance/a". A label given twice
 * has its last value, and nothing overrides the job. Only the last value may be empty without
 * base64. -EINVAL names the fault. Free it with gateway_path_finish. */
int gateway_path_parse(const char *text, struct gateway_path *ret_path, struct error *err);
void gateway_path_finish(struct gateway_path *path); /* accepts a zeroed one */
#define CLEANUP_GATEWAY_PATH CLEANUP(gateway_path_finish)
