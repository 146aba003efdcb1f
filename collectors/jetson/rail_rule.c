#include "collectors/jetson/rail_rule.h"

#include <string.h>

#include "exporter/core/cleanup.h"

/* The first whose rails are all there counts. Rails that are fed from others are not in it:
 * vddq_vdd2_1v8ao of AGX Orin, vdd_soc of the small modules. */
static const char *const rules[][JETSON_RAIL_MAX_MEMBERS] = {
    {"vin"},                                       /* Thor, developer kit */
    {"vdd_in"},                                    /* TX1, TX2, Xavier NX, Orin NX and Nano */
    {"pom_5v_in"},                                 /* Nano */
    {"gpu", "cpu", "soc", "cv", "vddrq", "sys5v"}, /* AGX Xavier */
    {"vdd_gpu_soc", "vdd_cpu_cv", "vin_sys_5v0"},  /* AGX Orin */
    {"vdd_gpu", "vdd_cpu_soc_mss", "vin_sys_5v0"}, /* Thor */
};

static size_t find(const char *const *names, size_t n, const char *name) {
    size_t i = 0;
    while (i < n && strcmp(names[i], name) != 0) {
        i++;
    }
    return i;
}

size_t jetson_rail_rule(const char *const *names, size_t n,
                        size_t ret_members[static JETSON_RAIL_MAX_MEMBERS]) {
    for (size_t rule = 0; rule < ARRAY_LEN(rules); rule++) {
        size_t n_members = 0;
        bool complete = true;
        while (complete && n_members < JETSON_RAIL_MAX_MEMBERS && rules[rule][n_members] != NULL) {
            ret_members[n_members] = find(names, n, rules[rule][n_members]);
            complete = ret_members[n_members] < n;
            n_members++;
        }
        if (complete) {
            return n_members;
        }
    }
    return 0;
}

bool jetson_rail_is_gpu(const char *name) {
    static const char *const own[] = {"gpu", "pom_5v_gpu", "vdd_gpu", "vdd_sys_gpu"};
    return find(own, ARRAY_LEN(own), name) < ARRAY_LEN(own);
}

bool jetson_rail_feeds_gpu(const char *name) {
    return strstr(name, "gpu") != NULL;
}
