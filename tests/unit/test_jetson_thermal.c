#include "collectors/jetson_thermal.h"

#include <stddef.h>
#include <unity.h>

#include "exporter/core/cleanup.h"

void setUp(void) {
}

void tearDown(void) {
}

static void test_zones_keep_their_names_from_release_to_release(void) {
    static const struct {
        const char *type;
        const char *zone;
    } cases[] = {
        {"CPU-therm", "cpu"},         {"cpu-thermal", "cpu"},   {"thermal-fan-est", "thermal"},
        {"Tboard_tegra", "tboard"},   {"iwlwifi_1", "iwlwifi"}, {"tj-therm", "tj"},
        {"soc012-thermal", "soc012"}, {"max170xx", "max170xx"}, {"", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf zone CLEANUP_BUF = {0};
        jetson_zone_name(&zone, cases[i].type);
        TEST_ASSERT_EQUAL_STRING_MESSAGE(cases[i].zone, buf_str(&zone), cases[i].type);
    }
}

int main(void) {
    UNITY_BEGIN();
    RUN_TEST(test_zones_keep_their_names_from_release_to_release);
    return UNITY_END();
}
