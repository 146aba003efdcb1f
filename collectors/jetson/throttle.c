#include <stdio.h>
#include <string.h>

#include "collectors/jetson/part.h"
#include "collectors/source/entries.h"
#include "exporter/core/file.h"

/* What slows the module down: alerts of its cooling devices, and over-current alarms. */

enum { THROTTLE_MAX_ALARMS = 3 };

/* "cpu-throttle-alert" as "cpu", "devfreq-gpu-gpc-0" as "gpu-gpc-0";
 * false for fans and the like. */
static bool alert_name(char *type) {
    static const char suffix[] = "-throttle-alert";
    static const char prefix[] = "devfreq-";
    jetson_lower(type);
    size_t len = strlen(type);
    if (len > strlen(suffix) && strcmp(type + len - strlen(suffix), suffix) == 0) {
        type[len - strlen(suffix)] = '\0';
        return true;
    }
    if (strncmp(type, "devfreq-gpu", 11) != 0) {
        return false;
    }
    memmove(type, type + strlen(prefix), len - strlen(prefix) + 1);
    return true;
}

static void find_alerts(struct jetson_values *values, const char *sysfs) {
    char *class CLEANUP_FREE = file_path_join(sysfs, "class/thermal");
    struct entries entries CLEANUP_ENTRIES = {0};
    entries_init(&entries, class, "cooling_device");
    for (size_t i = 0; i < entries.n_names; i++) {
        char *device CLEANUP_FREE = file_path_join(class, entries.names[i]);
        char *type CLEANUP_FREE = source_file_text(device, "type");
        if (type != NULL && alert_name(type)) {
            const struct jetson_form form = {JETSON_THROTTLE_ALERT, .kind = JETSON_SWITCH};
            jetson_values_add(values, device, "cur_state", form, "type", type);
        }
    }
}

static void find_alarms(struct jetson_values *values, const char *sysfs) {
    char *class CLEANUP_FREE = file_path_join(sysfs, "class/hwmon");
    struct entries entries CLEANUP_ENTRIES = {0};
    entries_init(&entries, class, "hwmon");
    /* One monitor has them all. */
    bool found = false;
    for (size_t i = 0; i < entries.n_names && !found; i++) {
        char *device CLEANUP_FREE = file_path_join(class, entries.names[i]);
        for (int oc = 1; oc <= THROTTLE_MAX_ALARMS; oc++) {
            char name[24], number[12];
            snprintf(name, sizeof(name), "oc%d_event_cnt", oc);
            snprintf(number, sizeof(number), "%d", oc);
            if (source_file_exists(device, name)) {
                const struct jetson_form form = {JETSON_OVERCURRENT_EVENTS};
                jetson_values_add(values, device, name, form, "oc", number);
                found = true;
            }
        }
    }
}

static void throttle_open(void *state, const struct collector_env *env,
                          const struct jetson_board *board) {
    (void)board;
    find_alerts(state, env->sysfs);
    find_alarms(state, env->sysfs);
}

const struct jetson_part jetson_throttle_part = {
    .state_size = sizeof(struct jetson_values),
    .open = throttle_open,
    .collect = jetson_values_collect,
    .close = jetson_values_close,
};
