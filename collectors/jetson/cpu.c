#include <string.h>

#include "collectors/jetson/part.h"
#include "collectors/source/entries.h"
#include "exporter/core/file.h"

static const struct {
    const char *name;
    struct jetson_form form;
} files[] = {
    {"online", {JETSON_CPU_ONLINE, .kind = JETSON_SWITCH_ON}}, /* CPU 0 often has none */
    /* Kilohertz; measured for root only, else what was requested. */
    {"cpufreq/cpuinfo_cur_freq", {JETSON_CPU_FREQUENCY, 1000, .when = JETSON_IF_ON}},
    {"cpufreq/scaling_cur_freq", {JETSON_CPU_FREQUENCY, 1000, .when = JETSON_INSTEAD}},
    {"cpufreq/scaling_max_freq", {JETSON_CPU_FREQUENCY_MAX, 1000, .when = JETSON_IF_ON}},
    {"cpufreq/scaling_min_freq", {JETSON_CPU_FREQUENCY_MIN, 1000, .when = JETSON_IF_ON}},
};

/* All that the module has: those that are switched off stay listed. */
static void cpu_open(void *state, const struct collector_env *env,
                     const struct jetson_board *board) {
    (void)board;
    char *base CLEANUP_FREE = file_path_join(env->sysfs, "devices/system/cpu");
    struct entries entries CLEANUP_ENTRIES = {0};
    entries_init(&entries, base, "cpu");
    for (size_t i = 0; i < entries.n_names; i++) {
        const char *number = entries.names[i] + strlen("cpu");
        if (number[0] == '\0' || number[strspn(number, "0123456789")] != '\0') {
            continue; /* cpufreq, cpuidle */
        }
        char *dir CLEANUP_FREE = file_path_join(base, entries.names[i]);
        for (size_t file = 0; file < ARRAY_LEN(files); file++) {
            jetson_values_add(state, dir, files[file].name, files[file].form, "cpu", number);
        }
    }
}

const struct jetson_part jetson_cpu_part = {
    .state_size = sizeof(struct jetson_values),
    .open = cpu_open,
    .collect = jetson_values_collect,
    .close = jetson_values_close,
};
