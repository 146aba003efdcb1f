#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/jetson/part.h"
#include "collectors/source/entries.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/file.h"
#include "exporter/core/memory.h"

enum { THROTTLE_MAX_ALARMS = 3 };

struct alert {
    struct source_file state;
    struct labels *labels;
};

/* What slows the module down: alerts of its cooling devices, and over-current alarms. */
struct throttle {
    struct alert *alerts;
    size_t n_alerts;
    size_t cap_alerts;
    struct jetson_values alarms;
};

/* "cpu-throttle-alert" as "cpu", "devfreq-gpu-gpc-0" as "gpu-gpc-0"; false for fans and the like.
 */
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

static void find_alerts(struct throttle *throttle, const char *sysfs) {
    char *class CLEANUP_FREE = file_path_join(sysfs, "class/thermal");
    struct entries entries CLEANUP_ENTRIES = {0};
    entries_init(&entries, class, "cooling_device");
    for (size_t i = 0; i < entries.n_names; i++) {
        char *device CLEANUP_FREE = file_path_join(class, entries.names[i]);
        char *type CLEANUP_FREE = source_file_text(device, "type");
        if (type != NULL && alert_name(type)) {
            ARRAY_GROW(&throttle->alerts, &throttle->cap_alerts, throttle->n_alerts + 1);
            struct alert *alert = &throttle->alerts[throttle->n_alerts++];
            source_file_init(&alert->state, device, "cur_state", NULL);
            alert->labels = labels_render("type", type);
        }
    }
}

static void find_alarms(struct throttle *throttle, const char *sysfs) {
    char *class CLEANUP_FREE = file_path_join(sysfs, "class/hwmon");
    struct entries entries CLEANUP_ENTRIES = {0};
    entries_init(&entries, class, "hwmon");
    /* One monitor has them all. */
    for (size_t i = 0; i < entries.n_names && throttle->alarms.n_rows == 0; i++) {
        char *device CLEANUP_FREE = file_path_join(class, entries.names[i]);
        for (int oc = 1; oc <= THROTTLE_MAX_ALARMS; oc++) {
            char name[24], number[12];
            snprintf(name, sizeof(name), "oc%d_event_cnt", oc);
            snprintf(number, sizeof(number), "%d", oc);
            jetson_values_add(&throttle->alarms, device, name, 1, JETSON_OVERCURRENT_EVENTS, "oc",
                              number);
        }
    }
}

static int throttle_collect(void *state, struct jetson_round *round, struct snapshot *out,
                            struct error *err) {
    (void)round;
    struct throttle *throttle = state;
    int result = 0;
    for (size_t i = 0; i < throttle->n_alerts; i++) {
        struct alert *alert = &throttle->alerts[i];
        double value;
        int r = source_file_number(&alert->state, &value, result == 0 ? err : NULL);
        if (r > 0) {
            snapshot_add(out, &jetson_descs[JETSON_THROTTLE_ALERT], alert->labels, value > 0);
        }
        result = result == 0 && r < 0 ? r : result;
    }
    int r = jetson_values_collect(&throttle->alarms, out, result == 0 ? err : NULL);
    return result == 0 ? r : result;
}

static void throttle_close(void *state) {
    struct throttle *throttle = state;
    for (size_t i = 0; i < throttle->n_alerts; i++) {
        source_file_finish(&throttle->alerts[i].state);
        labels_destroy(throttle->alerts[i].labels);
    }
    free(throttle->alerts);
    jetson_values_finish(&throttle->alarms);
    free(throttle);
}

static void *throttle_open(const struct collector_env *env, const struct jetson_board *board) {
    (void)board;
    struct throttle *throttle = mem_zalloc(1, sizeof(*throttle));
    find_alerts(throttle, env->sysfs);
    find_alarms(throttle, env->sysfs);
    return throttle;
}

const struct jetson_part jetson_throttle_part = {
    .name = "throttle",
    .open = throttle_open,
    .collect = throttle_collect,
    .close = throttle_close,
};
