#include "exporter/demo/model.h"

#include <stdbool.h>
#include <stddef.h>

#include "exporter/core/cleanup.h"

#define MIB (1024.0 * 1024)

enum { WARM_UP_STEPS = 3600 }; /* longer than all time constants */

static const double ambient_celsius = 24;
static const double card_ambient_celsius = 26;
static const double sink_seconds = 30; /* time constant of the heat sink */

/* Clocks in the power mode MODE_20W_6CORE. */
static const double cpu_clocks[] = {1190.4e6, 1267.2e6, 1344e6, 1420.8e6};
static const double gpu_clocks[] = {114.75e6, 204e6,    306e6,    408e6,    510e6,
                                    599.25e6, 701.25e6, 803.25e6, 905.25e6, 1109.25e6};

/* Phases of the work. */
static const struct phase {
    double demand;
    double min_seconds, max_seconds;
} phases[] = {
    {0, 3, 8},     /* no frames: the camera reconnects */
    {0.25, 6, 16}, /* an empty street */
    {0.55, 6, 14}, /* some traffic */
    {0.92, 5, 12}, /* a crowd */
};

/* Share of the work of each core; the kernel prefers the first ones. */
static const double cpu_shares[DEMO_N_CPUS] = {0.75, 0.55, 0.5, 0.35, 0.25, 0.2};

static const double mode_shares[DEMO_CPU_N_MODES] = {
    [DEMO_CPU_USER] = 0.74, [DEMO_CPU_SYSTEM] = 0.2, [DEMO_CPU_SOFTIRQ] = 0.06};

/* The lowest clock with a reserve of a fifth. */
static double pick_clock(const double *clocks, size_t n, double load) {
    size_t i = 0;
    while (i + 1 < n && clocks[i] < 1.25 * load * clocks[n - 1]) {
        i++;
    }
    return clocks[i];
}

/* ---- load ---- */

static void step_demand(struct demo_model *model, double seconds) {
    model->phase_seconds -= seconds;
    if (model->phase_seconds <= 0) {
        size_t n = ARRAY_LEN(phases);
        const struct phase *phase = &phases[(size_t)(demo_draw(&model->random) * (double)n)];
        model->demand_target = phase->demand;
        model->phase_seconds = phase->min_seconds + demo_draw(&model->random) *
                                                        (phase->max_seconds - phase->min_seconds);
    }
    model->demand = demo_approach(model->demand, model->demand_target, seconds, 0.8);
}

static void step_gpu(struct demo_model *model) {
    bool idle = model->demand < 0.02;
    double load = model->demand + demo_noise(&model->random, 0.06 + 0.1 * model->demand);
    model->gpu_load = idle ? 0 : demo_clamp(load, 0, 1);
    model->gpu_hertz = pick_clock(gpu_clocks, ARRAY_LEN(gpu_clocks), model->demand);
    model->emc_load =
        demo_clamp(0.06 + 0.45 * model->gpu_load + demo_noise(&model->random, 0.02), 0, 1);
    model->vic_load =
        demo_clamp(0.05 + 0.25 * model->demand + demo_noise(&model->random, 0.02), 0, 1);
}

static void step_cpus(struct demo_model *model, double seconds) {
    double sum = 0;
    for (size_t i = 0; i < DEMO_N_CPUS; i++) {
        double load = 0.04 + model->demand * cpu_shares[i] + demo_noise(&model->random, 0.04);
        load = demo_clamp(load, 0.005, 0.97);
        double waiting = 0.02 * model->demand * (1 - load);
        model->cpu_load[i] = load;
        model->cpu_hertz[i] = pick_clock(cpu_clocks, ARRAY_LEN(cpu_clocks), load);
        for (size_t mode = 0; mode < DEMO_CPU_N_MODES; mode++) {
            model->cpu_seconds[i][mode] += seconds * load * mode_shares[mode];
        }
        model->cpu_seconds[i][DEMO_CPU_IOWAIT] += seconds * waiting;
        model->cpu_seconds[i][DEMO_CPU_IDLE] += seconds * (1 - load - waiting);
        sum += load;
    }
    static const double constants[] = {60, 300, 900};
    for (size_t i = 0; i < ARRAY_LEN(constants); i++) {
        model->load_averages[i] =
            demo_approach(model->load_averages[i], sum, seconds, constants[i]);
    }
    model->cpu_waiting_seconds += seconds * 0.1 * model->cpu_load[0];
}

/* ---- power and heat ---- */

static void step_power(struct demo_model *model) {
    double cpu = 0.4;
    for (size_t i = 0; i < DEMO_N_CPUS; i++) {
        cpu += 0.75 * model->cpu_load[i] * model->cpu_hertz[i] / cpu_clocks[3];
    }
    double gpu = 0.25 + 6.2 * model->gpu_load * (0.4 + 0.6 * model->gpu_hertz / 1109.25e6);
    double cpu_gpu = cpu + gpu;
    double soc = 1.05 + 1.5 * model->emc_load + 0.2 * model->vic_load;
    double rest = 1.3 + 0.9 * model->fan_duty; /* memory, network, fan */
    model->rail_watts[DEMO_RAIL_CPU_GPU_CV] = cpu_gpu + demo_noise(&model->random, 0.03);
    model->rail_watts[DEMO_RAIL_SOC] = soc + demo_noise(&model->random, 0.02);
    model->rail_watts[DEMO_RAIL_IN] =
        (cpu_gpu + soc) / 0.93 + rest + demo_noise(&model->random, 0.04);
    for (size_t i = 0; i < DEMO_N_RAILS; i++) {
        model->rail_volts[i] = 5.08 - 0.012 * model->rail_watts[DEMO_RAIL_IN];
        model->rail_amperes[i] = model->rail_watts[i] / model->rail_volts[i];
    }
}

double demo_model_steady_celsius(double watts, double fan_duty) {
    double kelvin_per_watt = 3.6 - 1.9 * fan_duty;
    return ambient_celsius + kelvin_per_watt * watts;
}

double demo_model_heat(double celsius, double watts, double fan_duty, double seconds) {
    return demo_approach(celsius, demo_model_steady_celsius(watts, fan_duty), seconds,
                         sink_seconds);
}

static void step_heat(struct demo_model *model, double seconds) {
    static const double kelvin_per_watt[DEMO_N_ZONES] = {
        [DEMO_ZONE_CPU] = 0.9, [DEMO_ZONE_GPU] = 1.3, [DEMO_ZONE_AUX] = 0.4, [DEMO_ZONE_AO] = 0.5};
    double watts = model->rail_watts[DEMO_RAIL_IN];
    model->sink_celsius = demo_model_heat(model->sink_celsius, watts, model->fan_duty, seconds);
    double die_watts = model->rail_watts[DEMO_RAIL_CPU_GPU_CV];
    for (size_t i = 0; i < DEMO_N_ZONES; i++) {
        double target = model->sink_celsius + kelvin_per_watt[i] * die_watts;
        model->zone_celsius[i] = demo_approach(model->zone_celsius[i], target, seconds, 2.5);
    }
    double duty = demo_clamp((model->zone_celsius[DEMO_ZONE_GPU] - 35) / 30, 0.2, 1);
    model->fan_duty = demo_approach(model->fan_duty, duty, seconds, 6);
    model->fan_rpm = demo_approach(model->fan_rpm, 6200 * model->fan_duty, seconds, 1.5);
}

/* ---- memory and traffic ---- */

/* The detector accumulates results and drops them every 90 s. */
static void step_memory(struct demo_model *model, double seconds) {
    double kept = fmod(model->uptime_seconds, 90) / 90;
    double gpu = (380 + 420 * model->demand) * MIB;
    double target = (1750 + 260 * kept) * MIB + 1.4 * gpu;
    model->memory_gpu_bytes = demo_approach(model->memory_gpu_bytes, gpu, seconds, 3);
    model->memory_used_bytes = demo_approach(model->memory_used_bytes, target, seconds, 2);
    double cached = (1900 + 250 * model->demand) * MIB;
    model->memory_cached_bytes = demo_approach(model->memory_cached_bytes, cached, seconds, 40);
}

/* The detector works for every frame, the uploader for the results. */
static void step_containers(struct demo_model *model, double seconds) {
    static const double memory_shares[DEMO_N_CONTAINERS] = {0.38, 0.06};
    double cpu_shares_of[DEMO_N_CONTAINERS] = {
        [DEMO_DETECTOR] = 0.62 * model->demand / (model->demand + 0.05),
        [DEMO_UPLOADER] = 0.05 + 0.12 * model->demand / (model->demand + 0.3),
    };
    double busy = 0;
    for (size_t i = 0; i < DEMO_N_CPUS; i++) {
        busy += model->cpu_load[i];
    }
    for (size_t i = 0; i < DEMO_N_CONTAINERS; i++) {
        struct demo_container *container = &model->containers[i];
        container->cpu_seconds += seconds * busy * cpu_shares_of[i];
        container->memory_bytes =
            memory_shares[i] * (model->memory_used_bytes - model->memory_gpu_bytes);
        container->memory_peak_bytes = fmax(container->memory_peak_bytes, container->memory_bytes);
    }
}

static void carry(struct demo_traffic *traffic, double bytes, double size) {
    traffic->bytes += bytes;
    traffic->operations += bytes / size;
}

static void step_traffic(struct demo_model *model, double seconds) {
    double frames = model->demand < 0.02 ? 0.05 : 1; /* the stream of the camera */
    double stream = 520e3 * frames * (1 + demo_noise(&model->random, 0.1));
    carry(&model->received, seconds * (stream + 3e3), 1380);
    carry(&model->sent, seconds * (9e3 + 0.03 * stream + 60e3 * model->demand), 620);
    carry(&model->read, seconds * 30e3 * model->demand, 16384);
    carry(&model->written, seconds * (20e3 + 700e3 * model->demand), 49152);
    model->io_waiting_seconds += seconds * 0.03 * model->demand;
    model->forks += seconds * 2.5;
    model->switches += seconds * (1800 + 9000 * model->demand);
    model->interrupts += seconds * (1500 + 5000 * model->demand);
}

void demo_model_step(struct demo_model *model, double seconds) {
    model->uptime_seconds += seconds;
    step_demand(model, seconds);
    step_gpu(model);
    step_cpus(model, seconds);
    step_power(model);
    step_heat(model, seconds);
    step_memory(model, seconds);
    step_containers(model, seconds);
    step_traffic(model, seconds);
}

void demo_model_init(struct demo_model *model, uint64_t seed) {
    *model = (struct demo_model){
        .random = seed,
        .sink_celsius = ambient_celsius,
        .memory_total_bytes = 6987700 * 1024.0,
        .forks = 1900,
    };
    for (size_t i = 0; i < DEMO_N_ZONES; i++) {
        model->zone_celsius[i] = ambient_celsius;
    }
    for (int i = 0; i < WARM_UP_STEPS; i++) {
        demo_model_step(model, 0.25);
    }
}

/* ---- cards ---- */

/* The driver uses the lowest clocks when idle, otherwise the highest that the power limit allows.
 */
static void card_step_clocks(struct demo_card *card) {
    bool idle = card->load < 0.01;
    double held_back = card->watts > 0.97 * DEMO_CARD_WATTS ? 0.94 : 1;
    card->hertz = idle ? 210e6 : DEMO_CARD_HERTZ * held_back;
    card->memory_hertz = idle ? 405e6 : DEMO_CARD_MEMORY_HERTZ;
}

static void card_step_power(struct demo_card *card, double seconds) {
    double clock = card->hertz / DEMO_CARD_HERTZ;
    double target = 14 + (card->load > 0 ? 18 : 0) + 122 * card->load * clock;
    target = demo_clamp(target + demo_noise(&card->random, 1.2), 9, DEMO_CARD_WATTS);
    double before = card->watts;
    card->watts = demo_approach(card->watts, target, seconds, 0.25);
    card->joules += seconds * (before + card->watts) / 2;
}

static void card_step_heat(struct demo_card *card, double seconds) {
    double kelvin_per_watt = 0.52 - 0.22 * card->fan_duty;
    double target = card_ambient_celsius + kelvin_per_watt * card->watts;
    card->celsius = demo_approach(card->celsius, target, seconds, 14);
    double duty = demo_clamp((card->celsius - 35) / 40, 0.3, 1);
    card->fan_duty = demo_approach(card->fan_duty, duty, seconds, 5);
}

void demo_card_step(struct demo_card *card, double demand, double seconds) {
    card->demand = demand;
    double load = demand + demo_noise(&card->random, 0.04 + 0.08 * demand);
    card->load = demand < 0.02 ? 0 : demo_clamp(load, 0, 1);
    card->memory_load = demo_clamp(0.55 * card->load, 0, 1);
    card->decoder_load = demo_clamp(0.3 * demand, 0, 1);
    double used = (620 + 5400 * (demand < 0.02 ? 0.6 : 0.7 + 0.3 * demand)) * MIB;
    card->memory_bytes = demo_approach(card->memory_bytes, used, seconds, 2);
    card_step_clocks(card);
    card_step_power(card, seconds);
    card_step_heat(card, seconds);
}

void demo_card_init(struct demo_card *card, uint64_t seed) {
    *card = (struct demo_card){
        .random = seed,
        .memory_bytes = 620 * MIB,
        .watts = 14,
        .celsius = card_ambient_celsius,
        .fan_duty = 0.3,
    };
}
