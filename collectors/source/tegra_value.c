#include "collectors/source/tegra_value.h"

#include <math.h>

#include "exporter/core/cleanup.h"

bool tegra_value_percent(struct tegra_token token, double *ret_ratio) {
    double percent;
    if (!tegra_token_chop(&token, "%") || !tegra_token_integer(token, &percent)) {
        return false;
    }
    *ret_ratio = percent / 100;
    return true;
}

bool tegra_value_megahertz(struct tegra_token token, double *ret_hertz) {
    double megahertz;
    if (!tegra_token_integer(token, &megahertz)) {
        return false;
    }
    *ret_hertz = megahertz * 1e6;
    return true;
}

struct unit {
    const char *text;
    double factor;
};

bool tegra_value_size(struct tegra_token token, double *ret_number, double *ret_unit_bytes) {
    static const struct unit units[] = {
        {"kB", 0x1p10}, {"KB", 0x1p10}, {"MB", 0x1p20}, {"GB", 0x1p30}, {"B", 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        if (tegra_token_chop(&token, units[i].text)) {
            *ret_unit_bytes = units[i].factor;
            return tegra_token_integer(token, ret_number);
        }
    }
    return false;
}

bool tegra_value_blocks(struct tegra_token token, double *ret_block_bytes, double *ret_blocks) {
    struct tegra_token size = token;
    struct tegra_token count;
    double blocks = NAN;
    double number, unit_bytes;
    tegra_token_part(&size, 'x', &count);
    if (size.text == NULL) {
        size = token;
    } else if (!tegra_token_integer(count, &blocks)) {
        return false;
    }
    if (!tegra_value_size(size, &number, &unit_bytes)) {
        return false;
    }
    *ret_block_bytes = number * unit_bytes;
    *ret_blocks = blocks;
    return true;
}

bool tegra_value_celsius(struct tegra_token token, double *ret_celsius) {
    struct tegra_token current, peak;
    double celsius, peak_celsius;
    tegra_token_part(&token, '/', &current);
    if (!tegra_token_chop(&current, "C") || !tegra_token_decimal(current, &celsius)) {
        return false;
    }
    if (tegra_token_part(&token, '/', &peak) &&
        (token.text != NULL || !tegra_token_chop(&peak, "C") ||
         !tegra_token_decimal(peak, &peak_celsius))) {
        return false;
    }
    *ret_celsius = celsius;
    return true;
}

static bool parse_watts(struct tegra_token token, double *ret_watts, bool *ret_has_unit) {
    /* Divisors keep the nearest number: 4.925, not 4.925000000000001. */
    static const struct unit divisors[] = {{"mW", 1e3}, {"uW", 1e6}, {"W", 1}};
    double number;
    double divisor = 1e3;
    *ret_has_unit = false;
    for (size_t i = 0; i < ARRAY_LEN(divisors) && !*ret_has_unit; i++) {
        if (tegra_token_chop(&token, divisors[i].text)) {
            divisor = divisors[i].factor;
            *ret_has_unit = true;
        }
    }
    if (!tegra_token_decimal(token, &number)) {
        return false;
    }
    *ret_watts = number / divisor;
    return true;
}

bool tegra_value_power(struct tegra_token token, double *ret_watts, double *ret_average_watts) {
    double watts[3] = {NAN, NAN, NAN}; /* current, average, peak */
    bool has_unit = false;
    struct tegra_token part;
    size_t n = 0;
    for (; tegra_token_part(&token, '/', &part); n++) {
        if (n == ARRAY_LEN(watts) || !parse_watts(part, &watts[n], &has_unit)) {
            return false;
        }
    }
    if (n == 1 && !has_unit) {
        return false;
    }
    *ret_watts = watts[0];
    *ret_average_watts = watts[1];
    return true;
}

static bool parse_load(struct tegra_token text, double *ret_ratio) {
    if (!tegra_token_unwrap(&text, "[", "]")) {
        return tegra_value_percent(text, ret_ratio);
    }
    struct tegra_token element;
    double sum = 0;
    size_t n = 0;
    for (double ratio; tegra_token_part(&text, ',', &element); n++) {
        if (!tegra_value_percent(element, &ratio)) {
            return false;
        }
        sum += ratio;
    }
    *ret_ratio = sum / (double)n;
    return true;
}

static bool parse_clocks(struct tegra_token text, struct tegra_reading *reading) {
    if (!tegra_token_unwrap(&text, "[", "]")) {
        reading->n_clocks = 1;
        return tegra_value_megahertz(text, &reading->clock_hertz[0]);
    }
    struct tegra_token element;
    while (text.len > 0 && tegra_token_part(&text, ',', &element)) {
        if (reading->n_clocks == TEGRA_VALUE_MAX_CLOCKS) {
            reading->n_unknown++;
            continue;
        }
        double *hertz = &reading->clock_hertz[reading->n_clocks++];
        *hertz = NAN;
        reading->n_unknown += !tegra_value_megahertz(element, hertz);
    }
    return true;
}

bool tegra_value_reading(struct tegra_token token, struct tegra_reading *ret_reading) {
    *ret_reading = (struct tegra_reading){.load_ratio = NAN};
    if (tegra_token_equal(token, "off")) {
        ret_reading->off = true;
        return true;
    }
    if (tegra_value_megahertz(token, &ret_reading->clock_hertz[0])) {
        ret_reading->n_clocks = 1;
        return true;
    }
    struct tegra_token load;
    tegra_token_part(&token, '@', &load);
    if (token.text == NULL) {
        return parse_load(load, &ret_reading->load_ratio);
    }
    return (load.len == 0 || parse_load(load, &ret_reading->load_ratio)) &&
           parse_clocks(token, ret_reading);
}
