#include "exporter/demo/model.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <unity.h>

#include "exporter/core/cleanup.h"

enum { STEPS = 6000 }; /* ten minutes */
static const double tick = 0.1;

static void test_equal_seeds_give_equal_boards(void) {
    struct demo_model a, b, c;
    demo_model_init(&a, 7);
    demo_model_init(&b, 7);
    demo_model_init(&c, 8);
    for (int i = 0; i < 100; i++) {
        demo_model_step(&a, tick);
        demo_model_step(&b, tick);
        demo_model_step(&c, tick);
    }
    TEST_ASSERT_EQUAL_MEMORY(&a, &b, sizeof(a));
    TEST_ASSERT_TRUE(a.rail_watts[DEMO_RAIL_IN] != c.rail_watts[DEMO_RAIL_IN]);
}

static void assert_between(double low, double value, double high, const char *what) {
    TEST_ASSERT_TRUE_MESSAGE(value >= low && value <= high, what);
}

static void assert_sane(const struct demo_model *model) {
    const double *watts = model->rail_watts;
    assert_between(0, model->gpu_load, 1, "gpu load");
    assert_between(114.75e6, model->gpu_hertz, 1109.25e6, "gpu clock");
    assert_between(0, model->emc_load, 1, "emc load");
    assert_between(0, model->vic_load, 1, "vic load");
    assert_between(3, watts[DEMO_RAIL_IN], 20, "VDD_IN");
    assert_between(0.5, watts[DEMO_RAIL_CPU_GPU_CV], 14, "VDD_CPU_GPU_CV");
    assert_between(0.9, watts[DEMO_RAIL_SOC], 3.5, "VDD_SOC");
    TEST_ASSERT_TRUE(watts[DEMO_RAIL_IN] > watts[DEMO_RAIL_CPU_GPU_CV] + watts[DEMO_RAIL_SOC]);
    for (size_t i = 0; i < DEMO_N_RAILS; i++) {
        assert_between(4.75, model->rail_volts[i], 5.25, "volts");
        double product = model->rail_volts[i] * model->rail_amperes[i];
        TEST_ASSERT_DOUBLE_WITHIN(1e-9, watts[i], product);
    }
    for (size_t i = 0; i < DEMO_N_ZONES; i++) {
        assert_between(26, model->zone_celsius[i], 75, "temperature");
    }
    for (size_t i = 0; i < DEMO_N_CPUS; i++) {
        assert_between(0, model->cpu_load[i], 1, "cpu load");
        assert_between(1190.4e6, model->cpu_hertz[i], 1420.8e6, "cpu clock");
    }
    assert_between(0, model->load_averages[0], DEMO_N_CPUS, "load average");
    assert_between(0, model->fan_duty, 1, "fan");
    assert_between(0, model->fan_rpm, 6200, "rpm");
    assert_between(0, model->memory_gpu_bytes, model->memory_used_bytes, "gpu memory");
    assert_between(0, model->memory_used_bytes + model->memory_cached_bytes,
                   0.95 * model->memory_total_bytes, "memory");
}

static void test_values_stay_in_range(void) {
    struct demo_model model;
    for (uint64_t seed = 0; seed < 5; seed++) {
        demo_model_init(&model, seed);
        for (int i = 0; i < STEPS; i++) {
            demo_model_step(&model, i % 100 == 0 ? 2 : tick);
            assert_sane(&model);
        }
    }
}

/* They use part of what the board uses, the detector the more the more there is to see. */
static void test_containers_are_part_of_the_board(void) {
    struct demo_model model;
    demo_model_init(&model, 5);
    for (int i = 0; i < STEPS; i++) {
        struct demo_model before = model;
        demo_model_step(&model, tick);
        double busy = 0, used = 0, memory = 0;
        for (size_t cpu = 0; cpu < DEMO_N_CPUS; cpu++) {
            busy += model.cpu_load[cpu] * tick;
        }
        for (size_t c = 0; c < DEMO_N_CONTAINERS; c++) {
            double seconds = model.containers[c].cpu_seconds - before.containers[c].cpu_seconds;
            TEST_ASSERT_TRUE(seconds > 0 || model.demand < 0.001);
            used += seconds;
            memory += model.containers[c].memory_bytes;
            TEST_ASSERT_TRUE(model.containers[c].memory_peak_bytes >=
                             model.containers[c].memory_bytes);
        }
        TEST_ASSERT_TRUE(used < 0.85 * busy);
        TEST_ASSERT_TRUE(memory < model.memory_used_bytes - model.memory_gpu_bytes);
    }
    TEST_ASSERT_TRUE(model.containers[DEMO_DETECTOR].cpu_seconds >
                     2 * model.containers[DEMO_UPLOADER].cpu_seconds);
}

static void test_every_cpu_second_is_counted_once(void) {
    struct demo_model model;
    demo_model_init(&model, 3);
    for (int i = 0; i < STEPS; i++) {
        demo_model_step(&model, tick);
    }
    for (size_t cpu = 0; cpu < DEMO_N_CPUS; cpu++) {
        double sum = 0;
        for (size_t mode = 0; mode < DEMO_CPU_N_MODES; mode++) {
            sum += model.cpu_seconds[cpu][mode];
        }
        TEST_ASSERT_DOUBLE_WITHIN(1e-6, model.uptime_seconds, sum);
    }
}

/* Counters in one struct before and after must not fall. */
static void test_counters_only_rise(void) {
    struct demo_model model;
    demo_model_init(&model, 4);
    for (int i = 0; i < STEPS; i++) {
        struct demo_model before = model;
        demo_model_step(&model, tick);
        TEST_ASSERT_TRUE(
            model.forks >= before.forks && model.switches > before.switches &&
            model.interrupts > before.interrupts && model.received.bytes > before.received.bytes &&
            model.sent.bytes > before.sent.bytes && model.read.bytes >= before.read.bytes &&
            model.written.bytes > before.written.bytes &&
            model.cpu_waiting_seconds >= before.cpu_waiting_seconds &&
            model.io_waiting_seconds >= before.io_waiting_seconds);
    }
}

/* Over a long time, as much heat leaves the sink as power came in. */
static void test_heat_leaves_as_energy_comes(void) {
    struct demo_model model;
    demo_model_init(&model, 5);
    double energy = 0, heat = 0;
    for (int i = 0; i < 6 * STEPS; i++) {
        double watts_per_kelvin = 1 / (demo_model_steady_celsius(1, model.fan_duty) -
                                       demo_model_steady_celsius(0, model.fan_duty));
        demo_model_step(&model, tick);
        energy += model.rail_watts[DEMO_RAIL_IN] * tick;
        heat += (model.sink_celsius - demo_model_steady_celsius(0, 0)) * watts_per_kelvin * tick;
    }
    TEST_ASSERT_DOUBLE_WITHIN(0.02 * energy, energy, heat);
}

static void test_temperature_approaches_its_steady_state(void) {
    double steady = demo_model_steady_celsius(10, 0.5);
    TEST_ASSERT_TRUE(steady > 40 && steady < 60);
    TEST_ASSERT_TRUE(steady > demo_model_steady_celsius(5, 0.5));
    TEST_ASSERT_TRUE(steady > demo_model_steady_celsius(10, 1));
    static const double begins[] = {24, 90};
    for (size_t i = 0; i < ARRAY_LEN(begins); i++) {
        double celsius = begins[i];
        for (int step = 0; step < STEPS; step++) {
            double next = demo_model_heat(celsius, 10, 0.5, tick);
            TEST_ASSERT_TRUE(fabs(next - steady) < fabs(celsius - steady) || next == celsius);
            celsius = next;
        }
        TEST_ASSERT_DOUBLE_WITHIN(0.01, steady, celsius);
    }
}

static void test_steps_of_any_length_end_alike(void) {
    double at_once = demo_model_heat(30, 12, 0.3, 10);
    double in_steps = 30;
    for (int i = 0; i < 100; i++) {
        in_steps = demo_model_heat(in_steps, 12, 0.3, 0.1);
    }
    TEST_ASSERT_DOUBLE_WITHIN(1e-9, at_once, in_steps);
}

/* Pearson's. */
static double correlation(const double *a, const double *b, int n) {
    double mean_a = 0, mean_b = 0, ab = 0, aa = 0, bb = 0;
    for (int i = 0; i < n; i++) {
        mean_a += a[i] / n;
        mean_b += b[i] / n;
    }
    for (int i = 0; i < n; i++) {
        ab += (a[i] - mean_a) * (b[i] - mean_b);
        aa += (a[i] - mean_a) * (a[i] - mean_a);
        bb += (b[i] - mean_b) * (b[i] - mean_b);
    }
    return ab / sqrt(aa * bb);
}

static void test_power_follows_load_and_the_fan_the_heat(void) {
    static double load[STEPS], watts[STEPS], celsius[STEPS], fan[STEPS];
    struct demo_model model;
    demo_model_init(&model, 6);
    bool idle = false, crowded = false;
    for (int i = 0; i < STEPS; i++) {
        demo_model_step(&model, tick);
        load[i] = model.gpu_load;
        watts[i] = model.rail_watts[DEMO_RAIL_CPU_GPU_CV];
        celsius[i] = model.zone_celsius[DEMO_ZONE_GPU];
        fan[i] = model.fan_duty;
        idle |= load[i] == 0;
        crowded |= load[i] > 0.85;
    }
    TEST_ASSERT_TRUE(idle && crowded);
    TEST_ASSERT_TRUE(correlation(load, watts, STEPS) > 0.9);
    TEST_ASSERT_TRUE(correlation(celsius, fan, STEPS) > 0.6);
}

/* ---- cards ---- */

static struct demo_card card;

void setUp(void) {
    demo_card_init(&card, 7);
}

static void run_card(double demand, double seconds) {
    for (int i = 0; i < (int)(seconds * 10); i++) {
        demo_card_step(&card, demand, 0.1);
    }
}

static void test_an_idle_card(void) {
    run_card(0, 120);
    TEST_ASSERT_EQUAL_DOUBLE(0, card.load);
    TEST_ASSERT_EQUAL_DOUBLE(210e6, card.hertz);
    TEST_ASSERT_DOUBLE_WITHIN(2, 14, card.watts);
    TEST_ASSERT_TRUE(card.celsius > 26 && card.celsius < 38);
}

static void test_power_follows_load_and_heat_follows_power(void) {
    run_card(0, 60);
    double idle_celsius = card.celsius, idle_watts = card.watts, idle_bytes = card.memory_bytes;
    run_card(0.7, 2);
    TEST_ASSERT_TRUE(card.watts > idle_watts + 50);
    TEST_ASSERT_TRUE_MESSAGE(card.celsius < idle_celsius + 12, "heat takes its time");
    run_card(0.7, 60);
    TEST_ASSERT_TRUE(card.celsius > idle_celsius + 20 && card.celsius < 85);
    TEST_ASSERT_TRUE(card.memory_bytes > idle_bytes && card.memory_bytes < DEMO_CARD_MIB * 0x1p20);
}

static void test_the_power_limit_holds_and_lowers_the_clock(void) {
    run_card(1, 60);
    TEST_ASSERT_TRUE(card.watts <= DEMO_CARD_WATTS);
    TEST_ASSERT_TRUE(card.hertz < DEMO_CARD_HERTZ);
    TEST_ASSERT_TRUE(card.load <= 1);
}

/* The counter is the integral of what the other call tells. */
static void test_energy_is_the_integral_of_power(void) {
    double expected = 0, before = card.joules;
    for (int i = 0; i < 600; i++) {
        double last_watts = card.watts;
        demo_card_step(&card, i % 200 < 100 ? 0.8 : 0, 0.1);
        expected += 0.1 * (last_watts + card.watts) / 2;
    }
    TEST_ASSERT_DOUBLE_WITHIN(1e-6, expected, card.joules - before);
}

static void test_equal_seeds_give_equal_cards(void) {
    struct demo_card other;
    demo_card_init(&other, 7);
    for (int i = 0; i < 50; i++) {
        demo_card_step(&card, 0.5, 0.1);
        demo_card_step(&other, 0.5, 0.1);
        TEST_ASSERT_EQUAL_DOUBLE(card.watts, other.watts);
    }
}
