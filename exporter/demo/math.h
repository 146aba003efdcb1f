#pragma once

#include <math.h>
#include <stdint.h>

/* Small tools of the simulated hardware. */

/* From 0 up to 1, and the generator's next state; splitmix64. */
static inline double demo_draw(uint64_t *random) {
    uint64_t z = *random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

/* Evenly between -width and +width. */
static inline double demo_noise(uint64_t *random, double width) {
    return (2 * demo_draw(random) - 1) * width;
}

static inline double demo_clamp(double value, double low, double high) {
    return fmin(fmax(value, low), high);
}

/* Exact for any step, so that the curve does not depend on how often one looks. */
static inline double demo_approach(double value, double target, double seconds, double constant) {
    return target + (value - target) * exp(-seconds / constant);
}
