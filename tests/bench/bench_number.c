#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/number.h"
#include "tests/bench/stopwatch.h"

/* CPU time to write and to read a number, against the C library's %.17g and strtod. */

enum { N_VALUES = 4096, N_ROUNDS = 50 };

static double values[N_VALUES];
static char texts[N_VALUES][NUMBER_MAX_LEN];
static size_t lengths[N_VALUES];
static volatile size_t sink; /* keeps the loops from being optimised away */

static uint64_t random_u64(void) {
    static uint64_t state = 1;
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static double random_counter(void) {
    return (double)(random_u64() >> (24 + random_u64() % 38));
}

static double random_thousandths(void) {
    return (double)(random_u64() % 100000000) / 1000;
}

static double random_millionths(void) {
    return (double)(random_u64() % 100000000000) / 1e6;
}

static double random_ratio(void) {
    return (double)(random_u64() >> 11) * 0x1p-53;
}

static double random_bits(void) {
    uint64_t bits = random_u64();
    double value;
    memcpy(&value, &bits, sizeof(value));
    return isfinite(value) ? value : 1;
}

static size_t format_ours(size_t i) {
    char text[NUMBER_MAX_LEN];
    return number_format(values[i], text);
}

static size_t format_library(size_t i) {
    char text[NUMBER_MAX_LEN];
    return (size_t)snprintf(text, sizeof(text), "%.17g", values[i]);
}

static size_t parse_ours(size_t i) {
    double value = 0;
    number_parse(texts[i], lengths[i], &value);
    return value > 0;
}

static size_t parse_library(size_t i) {
    return strtod(texts[i], NULL) > 0;
}

static double measure(size_t (*call)(size_t i)) {
    const int n_rounds = stopwatch_count(N_ROUNDS);
    double begin = stopwatch_cpu_seconds();
    for (int round = 0; round < n_rounds; round++) {
        for (size_t i = 0; i < N_VALUES; i++) {
            sink += call(i);
        }
    }
    return (stopwatch_cpu_seconds() - begin) / n_rounds / N_VALUES;
}

int main(void) {
    static const struct {
        const char *name;
        double (*make)(void);
    } kinds[] = {
        {"counters", random_counter},      {"3 decimals", random_thousandths},
        {"6 decimals", random_millionths}, {"all digits", random_ratio},
        {"random bits", random_bits},
    };
    for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
        for (size_t i = 0; i < N_VALUES; i++) {
            values[i] = kinds[k].make();
            lengths[i] = number_format(values[i], texts[i]);
            texts[i][lengths[i]] = '\0';
        }
        printf("write a number, %s\t%.4g\t%.4g\tprintf\n", kinds[k].name, measure(format_ours),
               measure(format_library));
        printf("read a number, %s\t%.4g\t%.4g\tstrtod\n", kinds[k].name, measure(parse_ours),
               measure(parse_library));
    }
    return 0;
}
