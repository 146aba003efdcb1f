#include "exporter/demo/card.h"

#include <math.h>
#include <unity.h>

static struct demo_card card;

void setUp(void) {
    demo_card_init(&card, 7);
}

static void run(double demand, double seconds) {
    for (int i = 0; i < (int)(seconds * 10); i++) {
        demo_card_step(&card, demand, 0.1);
    }
}

static void test_idle(void) {
    run(0, 120);
    TEST_ASSERT_EQUAL_DOUBLE(0, card.load);
    TEST_ASSERT_EQUAL_DOUBLE(210e6, card.hertz);
    TEST_ASSERT_DOUBLE_WITHIN(2, 14, card.watts);
    TEST_ASSERT_TRUE(card.celsius > 26 && card.celsius < 38);
}

static void test_power_follows_load_and_heat_follows_power(void) {
    run(0, 60);
    double idle_celsius = card.celsius, idle_watts = card.watts, idle_bytes = card.memory_bytes;
    run(0.7, 2);
    TEST_ASSERT_TRUE(card.watts > idle_watts + 50);
    TEST_ASSERT_TRUE_MESSAGE(card.celsius < idle_celsius + 12, "heat takes its time");
    run(0.7, 60);
    TEST_ASSERT_TRUE(card.celsius > idle_celsius + 20 && card.celsius < 85);
    TEST_ASSERT_TRUE(card.memory_bytes > idle_bytes && card.memory_bytes < DEMO_CARD_MIB * 0x1p20);
}

static void test_the_power_limit_holds_and_lowers_the_clock(void) {
    run(1, 60);
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
