#include <stdio.h>
#include <string.h>

#include "collectors/jetson/part.h"
#include "collectors/source/entries.h"
#include "exporter/core/file.h"

enum { FAN_COUNTER, FAN_DRIVE, FAN_N_KINDS };

/* From L4T 34 on, the drive and the counter of turns are two devices of hwmon. They are numbered
 * each in their order, so the only fan is 0 in both. L4T up to 32 has one fan, without a device. */
static const struct {
    const char *device;
    const char *file;
    struct jetson_form form;
} files[] = {
    {"pwmfan", "pwm1", {JETSON_FAN_PWM, -255}},
    {"pwmfan", "fan1_input", {JETSON_FAN_RPM}},
    {"pwm_tach", "rpm", {JETSON_FAN_RPM}},
    {"pwm_tach", "fan1_input", {JETSON_FAN_RPM}},
    {"tegra_tach", "rpm", {JETSON_FAN_RPM}},
    {"tegra_tach", "fan1_input", {JETSON_FAN_RPM}},
    {"", "devices/pwm-fan/cur_pwm", {JETSON_FAN_PWM, -255}},
    {"", JETSON_DEBUGFS "tegra_fan/cur_pwm", {JETSON_FAN_PWM, -255}},
    {"", "devices/pwm-fan/rpm_measured", {JETSON_FAN_RPM}},
    {"", JETSON_DEBUGFS "tegra_fan/rpm_measured", {JETSON_FAN_RPM}},
};

/* Of the files of a device with the same meaning, the first that can be read counts. */
static void add_device(struct jetson_values *values, const char *dir, const char *device,
                       unsigned n_fans[static FAN_N_KINDS]) {
    unsigned limit[FAN_N_KINDS];
    for (size_t i = 0; i < FAN_N_KINDS; i++) {
        limit[i] = device[0] != '\0' ? n_fans[i] + 1 : 1;
    }
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        int kind = files[i].form.metric == JETSON_FAN_PWM ? FAN_DRIVE : FAN_COUNTER;
        if (strcmp(device, files[i].device) == 0 && n_fans[kind] < limit[kind] &&
            source_file_exists(dir, files[i].file)) {
            char number[16];
            snprintf(number, sizeof(number), "%u", n_fans[kind]++);
            jetson_values_add(values, dir, files[i].file, files[i].form, "fan", number);
        }
    }
}

static void fan_open(void *state, const struct collector_env *env,
                     const struct jetson_board *board) {
    (void)board;
    unsigned n_fans[FAN_N_KINDS] = {0};
    char *class CLEANUP_FREE = file_path_join(env->sysfs, "class/hwmon");
    struct entries entries CLEANUP_ENTRIES = {0};
    entries_init(&entries, class, "hwmon");
    for (size_t i = 0; i < entries.n_names; i++) {
        char *device CLEANUP_FREE = file_path_join(class, entries.names[i]);
        char *name CLEANUP_FREE = source_file_text(device, "name");
        if (name != NULL && name[0] != '\0') {
            add_device(state, device, name, n_fans);
        }
    }
    add_device(state, env->sysfs, "", n_fans);
}

const struct jetson_part jetson_fan_part = {
    .state_size = sizeof(struct jetson_values),
    .open = fan_open,
    .collect = jetson_values_collect,
    .close = jetson_values_close,
};
