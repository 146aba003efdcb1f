#pragma once

#include <math.h>
#include <stdint.h>

/* A simulated Jetson Xavier NX: a detector examines the frames of a camera, sometimes more of them.
 * State and a time step determine the next state, with a seeded generator: equal seeds and steps
 * give equal values. */

enum { DEMO_N_CPUS = 6 };
enum demo_rail { DEMO_RAIL_IN, DEMO_RAIL_CPU_GPU_CV, DEMO_RAIL_SOC, DEMO_N_RAILS };
enum demo_zone { DEMO_ZONE_CPU, DEMO_ZONE_GPU, DEMO_ZONE_AUX, DEMO_ZONE_AO, DEMO_N_ZONES };
enum demo_container_index { DEMO_DETECTOR, DEMO_UPLOADER, DEMO_N_CONTAINERS };
enum demo_mode {
    DEMO_CPU_USER,
    DEMO_CPU_SYSTEM,
    DEMO_CPU_IDLE,
    DEMO_CPU_IOWAIT,
    DEMO_CPU_SOFTIRQ,
    DEMO_CPU_N_MODES,
};

/* Traffic of an interface or a disk in one direction. */
struct demo_traffic {
    double bytes;
    double operations; /* packets, requests */
};

struct demo_container {
    double cpu_seconds; /* part of the CPUs' */
    double memory_bytes;
    double memory_peak_bytes;
};

enum demo_board { DEMO_BOARD_XAVIER_NX, DEMO_BOARD_SERVER };

struct demo_model {
    enum demo_board board;
    uint64_t random;
    double boot_seconds; /* since 1970 */
    double uptime_seconds;

    double demand; /* work to do, from 0 to 1 */
    double demand_target;
    double phase_seconds; /* left until the target changes */

    /* Loads are ratios. */
    double gpu_load;
    double gpu_hertz;
    double cpu_load[DEMO_N_CPUS];
    double cpu_hertz[DEMO_N_CPUS];
    double cpu_seconds[DEMO_N_CPUS][DEMO_CPU_N_MODES];
    double emc_load;
    double vic_load;
    double load_averages[3];

    double rail_watts[DEMO_N_RAILS];
    double rail_volts[DEMO_N_RAILS];
    double rail_amperes[DEMO_N_RAILS];

    double sink_celsius; /* of the heat sink; the zones are warmer */
    double zone_celsius[DEMO_N_ZONES];
    double fan_duty;
    double fan_rpm;

    double memory_total_bytes;
    double memory_used_bytes; /* by programs and the GPU */
    double memory_cached_bytes;
    double memory_gpu_bytes; /* part of memory_used_bytes */

    struct demo_container containers[DEMO_N_CONTAINERS];

    double forks;
    double switches;
    double interrupts;
    double cpu_waiting_seconds;
    double io_waiting_seconds;
    struct demo_traffic received, sent;
    struct demo_traffic read, written;
};

/* A warm board that has been up for a quarter of an hour. */
void demo_model_init(struct demo_model *model, uint64_t seed);

/* Advances the model. */
void demo_model_step(struct demo_model *model, double seconds);

/* The heat sink's temperature after `seconds` of `watts`, cooled by a fan at `fan_duty`. */
double demo_model_heat(double celsius, double watts, double fan_duty, double seconds);

/* Its limit if nothing changes. */
double demo_model_steady_celsius(double watts, double fan_duty);

/* ---- cards ---- */

/* A simulated graphics card. */

#define DEMO_CARD_MIB 16376
#define DEMO_CARD_WATTS 140.0  /* its power limit */
#define DEMO_CARD_HERTZ 1560e6 /* its highest clocks */
#define DEMO_CARD_MEMORY_HERTZ 7001e6

struct demo_card {
    uint64_t random;
    double demand; /* work to do, from 0 to 1 */

    /* Loads are ratios. */
    double load;
    double memory_load;
    double decoder_load;
    double hertz;
    double memory_hertz;
    double memory_bytes;
    double watts;
    double joules; /* since demo_card_init */
    double celsius;
    double fan_duty;
};

/* An idle card at room temperature. */
void demo_card_init(struct demo_card *card, uint64_t seed);

/* Advances the card at this demand. */
void demo_card_step(struct demo_card *card, double demand, double seconds);

/* ---- arithmetic of the simulation ---- */

/* A random number from 0 to 1; splitmix64. */
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

/* Approaches `target` exponentially; the same for one long step as for many short ones. */
static inline double demo_approach(double value, double target, double seconds, double constant) {
    return target + (value - target) * exp(-seconds / constant);
}
