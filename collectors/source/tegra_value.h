#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "collectors/source/tegra_token.h"

/* What tegrastats prints behind a name, in base units. All return false for another form. */

enum { TEGRA_VALUE_MAX_CLOCKS = 16 };

bool tegra_value_percent(struct tegra_token token, double *ret_ratio);   /* "12%" */
bool tegra_value_megahertz(struct tegra_token token, double *ret_hertz); /* "1190" */

/* A number with one of the 1024-based units "B", "kB", "KB", "MB", "GB"; the unit also goes for
 * numbers that stand before it ("277/3854MB"). */
bool tegra_value_size(struct tegra_token token, double *ret_number, double *ret_unit_bytes);

/* "458x4MB", or one block without a count: "252kB", with NAN for the number. */
bool tegra_value_blocks(struct tegra_token token, double *ret_block_bytes, double *ret_blocks);

/* "47.312C", or with the peak behind, which is left out: "34.3C/34.8C". */
bool tegra_value_celsius(struct tegra_token token, double *ret_celsius);

/* "466/466", "-392mW/-392mW", "4925mW/4925mW/4925mW": current, average and peak, which is left out.
 * Milliwatts, unless "W" or "uW" stands there. One number alone needs its unit to be power, and has
 * NAN for the average. */
bool tegra_value_power(struct tegra_token token, double *ret_watts, double *ret_average_watts);

/* What is known of an engine: "off", "716", "4%", "@1600", "4%@1600", "4%@[305,305]",
 * "[0%,0%]@1215". */
struct tegra_reading {
    bool off;
    double load_ratio; /* NAN: unknown. Of several cores of an engine it is the mean */
    size_t n_clocks;
    double clock_hertz[TEGRA_VALUE_MAX_CLOCKS]; /* NAN: not understood */
    size_t n_unknown;                           /* clocks not understood, or too many */
};

bool tegra_value_reading(struct tegra_token token, struct tegra_reading *ret_reading);
