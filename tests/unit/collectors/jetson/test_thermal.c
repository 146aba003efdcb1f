#include "collectors/jetson/thermal.h"

#include <math.h>
#include <stddef.h>
#include <unity.h>

#include "exporter/core/cleanup.h"

/* In the order of the types' names. */
enum { ACTIVE, CRITICAL, HOT, PASSIVE };

static void test_which_points_count(void) {
    static const struct {
        const char *type, *temp;
        int index; /* -1: none */
        double celsius;
    } cases[] = {
        {"passive", "99000", PASSIVE, 99},
        {"critical", "104500", CRITICAL, 104.5},
        {"hot", "100000", HOT, 100},
        {"active", "51000", ACTIVE, 51},
        {"active", "0", -1, 0},
        {"active", "-25000", -1, 0},
        {"passive", "-274000", -1, 0},
        {"passive", "2147483647", -1, 0},
        {"passive", "", -1, 0},
        {"passive", "warm", -1, 0},
        {"PASSIVE", "99000", -1, 0},
        {"", "99000", -1, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct jetson_trips trips = {.celsius = {NAN, NAN, NAN, NAN}};
        jetson_trips_take(&trips, cases[i].type, cases[i].temp);
        for (int j = 0; j < JETSON_N_TRIP_TYPES; j++) {
            if (j == cases[i].index) {
                TEST_ASSERT_EQUAL_DOUBLE_MESSAGE(cases[i].celsius, trips.celsius[j], cases[i].temp);
            } else {
                TEST_ASSERT_DOUBLE_IS_NAN_MESSAGE(trips.celsius[j], cases[i].temp);
            }
        }
    }
}

static void test_the_lowest_of_a_type_counts(void) {
    struct jetson_trips trips = {.celsius = {NAN, NAN, NAN, NAN}};
    jetson_trips_take(&trips, "passive", "97000");
    jetson_trips_take(&trips, "passive", "95000");
    jetson_trips_take(&trips, "passive", "96000");
    TEST_ASSERT_EQUAL_DOUBLE(95, trips.celsius[PASSIVE]);
}
