#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/jetson/part.h"
#include "collectors/source/entries.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/file.h"
#include "exporter/core/memory.h"

enum { PWM_SCALE = -255 };

/* Fans as L4T from 34 on shows them: the drive and the counter of turns are two devices. They are
 * numbered each in their order, so the only fan is 0 in both. */
static const struct {
    const char *device;
    const char *file;
    int scale;
    enum jetson_metric metric;
} fan_files[] = {
    {"pwmfan", "pwm1", PWM_SCALE, JETSON_FAN_PWM}, {"pwmfan", "fan1_input", 1, JETSON_FAN_RPM},
    {"pwm_tach", "rpm", 1, JETSON_FAN_RPM},        {"pwm_tach", "fan1_input", 1, JETSON_FAN_RPM},
    {"tegra_tach", "rpm", 1, JETSON_FAN_RPM},      {"tegra_tach", "fan1_input", 1, JETSON_FAN_RPM},
};

/* The one fan of L4T up to 32. */
static const struct {
    const char *file;
    int scale;
    enum jetson_metric metric;
} old_fan_files[] = {
    {"devices/pwm-fan/cur_pwm", PWM_SCALE, JETSON_FAN_PWM},
    {JETSON_DEBUGFS "tegra_fan/cur_pwm", PWM_SCALE, JETSON_FAN_PWM},
    {"devices/pwm-fan/rpm_measured", 1, JETSON_FAN_RPM},
    {JETSON_DEBUGFS "tegra_fan/rpm_measured", 1, JETSON_FAN_RPM},
};

struct fans {
    struct jetson_values values;
    unsigned n_drives;
    unsigned n_counters;
};

/* Adds a file as that of the next fan that has none of its kind; further files of the same device
 * with the same meaning are passed over. */
static void add_file(struct fans *fans, const char *base, const char *file, int scale,
                     enum jetson_metric metric, unsigned *n) {
    char number[16];
    snprintf(number, sizeof(number), "%u", *n);
    *n += jetson_values_add(&fans->values, base, file, scale, metric, "fan", number);
}

static void add_device(struct fans *fans, const char *device, const char *name) {
    unsigned n_drives = fans->n_drives;
    unsigned n_counters = fans->n_counters;
    for (size_t i = 0; i < ARRAY_LEN(fan_files); i++) {
        bool drive = fan_files[i].metric == JETSON_FAN_PWM;
        bool done = drive ? fans->n_drives > n_drives : fans->n_counters > n_counters;
        if (!done && strcmp(name, fan_files[i].device) == 0) {
            add_file(fans, device, fan_files[i].file, fan_files[i].scale, fan_files[i].metric,
                     drive ? &fans->n_drives : &fans->n_counters);
        }
    }
}

static void find_fans(struct fans *fans, const char *sysfs) {
    char *class CLEANUP_FREE = file_path_join(sysfs, "class/hwmon");
    struct entries entries CLEANUP_ENTRIES = {0};
    entries_init(&entries, class, "hwmon");
    for (size_t i = 0; i < entries.n_names; i++) {
        char *device CLEANUP_FREE = file_path_join(class, entries.names[i]);
        char *name CLEANUP_FREE = source_file_text(device, "name");
        if (name != NULL) {
            add_device(fans, device, name);
        }
    }
}

static void find_old_fan(struct fans *fans, const char *sysfs) {
    for (size_t i = 0; i < ARRAY_LEN(old_fan_files); i++) {
        bool drive = old_fan_files[i].metric == JETSON_FAN_PWM;
        unsigned *n = drive ? &fans->n_drives : &fans->n_counters;
        if (*n == 0) {
            add_file(fans, sysfs, old_fan_files[i].file, old_fan_files[i].scale,
                     old_fan_files[i].metric, n);
        }
    }
}

static int fan_collect(void *state, struct jetson_round *round, struct snapshot *out,
                       struct error *err) {
    (void)round;
    struct fans *fans = state;
    return jetson_values_collect(&fans->values, out, err);
}

static void fan_close(void *state) {
    struct fans *fans = state;
    jetson_values_finish(&fans->values);
    free(fans);
}

static void *fan_open(const struct collector_env *env, const struct jetson_board *board) {
    (void)board;
    struct fans *fans = mem_zalloc(1, sizeof(*fans));
    find_fans(fans, env->sysfs);
    find_old_fan(fans, env->sysfs);
    return fans;
}

const struct jetson_part jetson_fan_part = {
    .name = "fan",
    .open = fan_open,
    .collect = fan_collect,
    .close = fan_close,
};
