#include "collectors/source/energy_model.h"

#include <math.h>
#include <stdlib.h>
#include <unity.h>

#include "exporter/core/clock.h"

static struct energy_model model;
static int64_t now_ns;

void setUp(void) {
    energy_model_init(&model);
    now_ns = 1000 * CLOCK_NS_PER_SEC;
}

/* `watts` for so long, with so many CPUs and so much of the GPU at work. */
static struct energy_split run(double seconds, double watts, double gpu_watts, double gpu_busy,
                               double cpus) {
    struct energy_step step = {
        .seconds = seconds,
        .joules = watts * seconds,
        .gpu_joules = gpu_watts * seconds,
        .gpu_busy = gpu_busy,
        .cpu_seconds = cpus * seconds,
    };
    now_ns += (int64_t)(seconds * 1e9);
    return energy_model_split(&model, now_ns, &step);
}

static void check(struct energy_split split, double idle, double cpu, double gpu) {
    TEST_ASSERT_DOUBLE_WITHIN(1e-9, idle, split.idle);
    TEST_ASSERT_DOUBLE_WITHIN(1e-9, cpu, split.cpu);
    TEST_ASSERT_DOUBLE_WITHIN(1e-9, gpu, split.gpu);
}

static void test_above_idle(void) {
    check(run(1, 5, NAN, 0, 0.1), 5, 0, 0); /* the least seen so far */
    check(run(1, 4, NAN, 0, 0.1), 4, 0, 0);
    check(run(2, 7, NAN, 0, 2), 8, 6, 0);
    check(run(1, 3, NAN, NAN, NAN), 3, 0, 0);
    check(run(1, 7, NAN, NAN, NAN), 3, 4, 0);
}

static void test_idle_is_the_mean_of_a_second(void) {
    run(1, 5, NAN, 0, 1);
    check(run(0.1, 1, NAN, 0, 1), 0.1, 0, 0); /* a dip */
    check(run(0.9, 5, NAN, 0, 1), 0.9 * 4.6, 0.9 * 0.4, 0);
}

static void test_idle_is_forgotten_after_a_day(void) {
    run(1, 3, NAN, 0, 1);
    now_ns += 23 * 3600 * CLOCK_NS_PER_SEC;
    check(run(1, 5, NAN, 0, 1), 3, 2, 0);
    now_ns += 3600 * CLOCK_NS_PER_SEC + 2400 * CLOCK_NS_PER_SEC;
    check(run(1, 6, NAN, 0, 1), 5, 1, 0);
}

static void test_a_rail_of_its_own(void) {
    run(1, 6, 1, 0, 0.1);
    check(run(1, 16, 8, 1, 2), 6, 3, 7);
    check(run(1, 16, 8, 0, 2), 6, 3, 7); /* what the rail says counts */
    check(run(1, 4, 5, 0, 0), 1, 0, 3);  /* more than the whole: sensors differ */
}

/* Rest: 3 W; a CPU takes 1 W, the GPU 6 W. */
static void test_a_shared_rail(void) {
    run(1, 3, NAN, 0, 0);
    check(run(1, 9, NAN, 0.5, 1), 3, 3, 3); /* nothing known: by the time it was busy */
    run(1, 5, NAN, 0, 2);
    run(2, 4, NAN, 0, 1);
    check(run(1, 10, NAN, 1, 1), 3, 1, 6);
    check(run(1, 7, NAN, 0.5, 1), 3, 1, 3);
    check(run(1, 5, NAN, 0.5, 4), 3, 2, 0); /* never more than there is */
    check(run(1, 7, NAN, 1, NAN), 3, 0, 4);
}

/* An idle machine has some CPU time, too, which is part of what it takes at rest. */
static void test_rest_teaches_nothing(void) {
    for (int i = 0; i < 100; i++) {
        run(1, 3 + 0.05 * (i % 3), NAN, 0, 0.2 + 0.02 * (i % 4));
    }
    check(run(1, 11, NAN, 0.5, 2.2), 3, 4, 4);
    for (int i = 0; i < 100; i++) {
        run(1, 5, NAN, 0, 2.2); /* a watt for each CPU more */
    }
    check(run(1, 11, NAN, 0.5, 2.2), 3, 2, 6);
    check(run(1, 11, NAN, 0.5, 0.2), 3, 0, 8);
}

static double draw(void) {
    return (double)rand() / RAND_MAX;
}

static void test_nothing_is_lost(void) {
    for (unsigned seed = 0; seed < 200; seed++) {
        srand(seed);
        setUp();
        double measured = 0, split = 0;
        for (int i = 0; i < 200; i++) {
            double seconds = 0.05 + 2 * draw();
            double watts = 30 * draw();
            double gpu = draw() < 0.3 ? NAN : 35 * draw() - 2;
            double busy = draw() < 0.2 ? NAN : 1.2 * draw();
            double cpus = draw() < 0.1 ? NAN : 6 * draw() * (draw() < 0.8);
            struct energy_split part = run(seconds, watts, gpu, busy, cpus);
            TEST_ASSERT_TRUE(part.idle >= 0 && part.cpu >= 0 && part.gpu >= -1e-9);
            measured += watts * seconds;
            split += part.idle + part.cpu + part.gpu;
            TEST_ASSERT_DOUBLE_WITHIN(1e-9 * measured, measured, split);
        }
    }
}
