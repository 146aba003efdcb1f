#pragma once

#include "exporter/settings/option.h"
#include "exporter/settings/problems.h"
#include "exporter/settings/settings.h"
#include "placement/client/web_client.h"
#include "placement/place/nodes.h"
#include "placement/predictor/gbt.h"

/* The flags of `waap place` beside those of every service. */
extern const struct option *const place_options[];
extern const size_t place_n_options;

/* Adds what is wrong with them beyond their form. */
int place_options_check(const struct settings *settings, struct problems *problems);

/* Where Prometheus is: --prometheus.url, or the original's PROMETHEUS_IP. The address goes into
 * `url`; everything lives as long as that and the settings. */
void place_options_endpoint(const struct settings *settings, struct buf *url,
                            struct web_endpoint *ret_endpoint);

/* Appends the expression of a query: the flag's, or our own; "$model" in that of what was measured
 * stands for its name. */
void place_options_query(const struct settings *settings, enum place_query query, struct buf *out);

/* Loads the predictor: that of --predictor, else the installed one. */
int place_options_predictor(const struct settings *settings, struct gbt **ret_gbt,
                            struct error *err);
