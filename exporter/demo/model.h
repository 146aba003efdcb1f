#pragma once

#include <stdint.h>

/* A Jetson Xavier NX that does not exist: a camera's pictures run through a detector, now and then
 * more of them. State and a step of time give the next state, by arithmetic and a seeded generator
 * alone: equal seeds and steps give equal values. */

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

/* What an interface or a disk has carried one way. */
struct demo_traffic {
    double bytes;
    double operations; /* packets, requests */
};

struct demo_container {
    double cpu_seconds; /* part of the CPUs' */
    double memory_bytes;
    double memory_peak_bytes;
};

/* What the processor sits on. */
enum demo_board { DEMO_BOARD_XAVIER_NX, DEMO_BOARD_SERVER };

struct demo_model {
    enum demo_board board;
    uint64_t random;
    double uptime_seconds;

    /* What there is to do, from 0 to 1. */
    double demand;
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

    double sink_celsius; /* of the heat sink; the zones lie above it */
    double zone_celsius[DEMO_N_ZONES];
    double fan_duty;
    double fan_rpm;

    double memory_total_bytes;
    double memory_used_bytes; /* by programs and the GPU */
    double memory_cached_bytes;
    double memory_gpu_bytes; /* part of what is used */

    struct demo_container containers[DEMO_N_CONTAINERS];

    double forks;
    double switches;
    double interrupts;
    double cpu_waiting_seconds;
    double io_waiting_seconds;
    struct demo_traffic received, sent;
    struct demo_traffic read, written;
};

/* A board that has been up for a quarter of an hour and is warm. */
void demo_model_init(struct demo_model *model, uint64_t seed);

/* What `seconds` more bring. */
void demo_model_step(struct demo_model *model, double seconds);

/* The heat sink's temperature after `seconds` of `watts`, cooled by a fan at `fan_duty`. */
double demo_model_heat(double celsius, double watts, double fan_duty, double seconds);

/* Where that ends if nothing changes. */
double demo_model_steady_celsius(double watts, double fan_duty);
