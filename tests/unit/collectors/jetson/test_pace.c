#include "collectors/jetson/pace.h"

#include <math.h>
#include <stddef.h>
#include <unity.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/clock.h"

static struct jetson_pace pace;

void setUp(void) {
    jetson_pace_init(&pace, 500);
}

/* Looks every 100 ms from one time up to another at a GPU with that load, power state and rail;
 * returns how often the load was read. */
static int look(int64_t from_ms, int64_t to_ms, double load, enum jetson_power power,
                double watts) {
    int n = 0;
    for (int64_t at_ms = from_ms; at_ms < to_ms; at_ms += 100) {
        int64_t now_ns = at_ms * CLOCK_NS_PER_MS;
        if (jetson_pace_due(&pace, now_ns, power, watts)) {
            jetson_pace_note(&pace, now_ns, load, watts);
            n++;
        }
    }
    return n;
}

static void test_a_busy_gpu_is_read_always(void) {
    TEST_ASSERT_EQUAL_INT(100, look(0, 10000, 0.5, JETSON_POWER_ACTIVE, 2));
}

static void test_an_idle_gpu_is_read_more_slowly_than_it_needs_to_sleep(void) {
    TEST_ASSERT_EQUAL_INT(10, look(0, 1000, 0, JETSON_POWER_UNKNOWN, NAN));
    TEST_ASSERT_EQUAL_INT(9, look(1000, 10000, 0, JETSON_POWER_UNKNOWN, NAN));
    jetson_pace_init(&pace, 3000);
    look(0, 1000, 0, JETSON_POWER_UNKNOWN, NAN);
    TEST_ASSERT_EQUAL_INT(2, look(1000, 13000, 0, JETSON_POWER_UNKNOWN, NAN));
}

static void test_zeros_for_less_than_a_second_are_no_idleness(void) {
    for (int64_t at_ms = 0; at_ms < 10000; at_ms += 1000) {
        TEST_ASSERT_EQUAL_INT(2, look(at_ms, at_ms + 200, 1, JETSON_POWER_ACTIVE, 2));
        TEST_ASSERT_EQUAL_INT(8, look(at_ms + 200, at_ms + 1000, 0, JETSON_POWER_ACTIVE, 1));
    }
}

static void test_load_ends_the_idleness(void) {
    look(0, 5000, 0, JETSON_POWER_UNKNOWN, NAN);
    TEST_ASSERT_EQUAL_INT(1, look(6000, 6100, 0.3, JETSON_POWER_UNKNOWN, NAN));
    TEST_ASSERT_EQUAL_INT(9, look(6100, 7000, 0.3, JETSON_POWER_UNKNOWN, NAN));
}

static void test_a_gpu_that_sleeps_is_left_alone(void) {
    look(0, 1000, 0, JETSON_POWER_ACTIVE, 1);
    TEST_ASSERT_EQUAL_INT(0, look(1000, 60000, 0, JETSON_POWER_SUSPENDED, 9));
    TEST_ASSERT_EQUAL_INT(1, look(60000, 60100, 0.3, JETSON_POWER_ACTIVE, 9));
}

static void test_the_rail_gives_it_away(void) {
    look(0, 3000, 0, JETSON_POWER_UNKNOWN, 1);
    int64_t last_ms = pace.read_ns / CLOCK_NS_PER_MS;
    TEST_ASSERT_EQUAL_INT(0, look(last_ms + 100, last_ms + 300, 0, JETSON_POWER_UNKNOWN, 1.4));
    TEST_ASSERT_EQUAL_INT(1, look(last_ms + 300, last_ms + 400, 0.9, JETSON_POWER_UNKNOWN, 1.6));
    TEST_ASSERT_EQUAL_INT(5, look(last_ms + 400, last_ms + 900, 0.9, JETSON_POWER_UNKNOWN, 1.6));
}

/* A rail that feeds others, too, must not keep the GPU awake. */
static void test_a_rail_of_others_leaves_time_to_sleep(void) {
    look(0, 3000, 0, JETSON_POWER_UNKNOWN, 1);
    int n_reads = 0, n_rests = 0;
    for (int64_t at_ms = 3000; at_ms < 13000; at_ms += 100) {
        int64_t previous_ns = pace.read_ns;
        n_reads += look(at_ms, at_ms + 100, 0, JETSON_POWER_UNKNOWN, at_ms / 100 % 2 == 0 ? 1 : 8);
        n_rests += pace.read_ns - previous_ns > 500 * CLOCK_NS_PER_MS;
    }
    TEST_ASSERT_TRUE(n_reads <= 20);
    TEST_ASSERT_TRUE(n_rests >= 8);
}

static void test_a_gpu_that_never_sleeps_is_read_always(void) {
    jetson_pace_init(&pace, -1);
    TEST_ASSERT_EQUAL_INT(100, look(0, 10000, 0, JETSON_POWER_ACTIVE, 1));
}

static void test_power_states(void) {
    static const struct {
        const char *text;
        enum jetson_power power;
    } cases[] = {
        {"active\n", JETSON_POWER_ACTIVE},       {"suspended\n", JETSON_POWER_SUSPENDED},
        {"resuming", JETSON_POWER_ACTIVE},       {"suspending\n", JETSON_POWER_UNKNOWN},
        {"unsupported\n", JETSON_POWER_UNKNOWN}, {"", JETSON_POWER_UNKNOWN},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        TEST_ASSERT_EQUAL_INT_MESSAGE(cases[i].power, jetson_power_parse(cases[i].text),
                                      cases[i].text);
    }
}
