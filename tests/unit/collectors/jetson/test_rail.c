#include "collectors/jetson/rail.h"

#include <stdio.h>
#include <string.h>
#include <unity.h>

#include "exporter/core/cleanup.h"

enum { MAX_RAILS = 8 };

static void test_sums(void) {
    static const struct {
        const char *rails[MAX_RAILS];
        const char *members; /* indexes */
    } cases[] = {
        {{"vdd_in", "vdd_cpu", "vdd_gpu"}, "0"},
        {{"vdd_sys_gpu", "vdd_sys_soc", "vdd_4v0_wifi", "vdd_in", "vdd_sys_cpu"}, "3"},
        {{"pom_5v_cpu", "pom_5v_in", "pom_5v_gpu"}, "1"},
        {{"cpu", "gpu", "soc", "cv", "vddrq", "sys5v"}, "102345"},
        {{"cpu", "gpu", "soc", "cv", "vddrq"}, ""},
        {{"vdd_gpu_soc", "vdd_cpu_cv", "vin_sys_5v0", "vddq_vdd2_1v8ao"}, "012"},
        {{"vin", "vdd_gpu", "vdd_cpu_soc_mss", "vin_sys_5v0"}, "0"},
        {{"vdd_gpu", "vdd_cpu_soc_mss", "vin_sys_5v0"}, "012"},
        {{"custom_5v"}, ""},
        {{NULL}, ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        size_t n = 0;
        while (cases[i].rails[n] != NULL) {
            n++;
        }
        size_t members[JETSON_RAIL_MAX_MEMBERS];
        char text[JETSON_RAIL_MAX_MEMBERS + 1] = "";
        size_t n_members = jetson_rail_rule(cases[i].rails, n, members);
        for (size_t j = 0; j < n_members; j++) {
            text[j] = (char)('0' + members[j]);
        }
        TEST_ASSERT_EQUAL_STRING_MESSAGE(cases[i].members, text, cases[i].rails[0]);
    }
}

static void test_whose_rail_it_is(void) {
    static const struct {
        const char *name;
        bool own, feeds;
    } cases[] = {
        {"gpu", true, true},        {"vdd_gpu", true, true},      {"vdd_sys_gpu", true, true},
        {"pom_5v_gpu", true, true}, {"vdd_gpu_soc", false, true}, {"vdd_cpu_gpu_cv", false, true},
        {"vdd_in", false, false},   {"cpu", false, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        TEST_ASSERT_EQUAL_MESSAGE(cases[i].own, jetson_rail_is_gpu(cases[i].name), cases[i].name);
        TEST_ASSERT_EQUAL_MESSAGE(cases[i].feeds, jetson_rail_feeds_gpu(cases[i].name),
                                  cases[i].name);
    }
}
