#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/jetson/part.h"
#include "collectors/jetson/values.h"
#include "collectors/source/entries.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/file.h"

enum { THROTTLE_MAX_ALARMS = 3 };

/* What slows the module down: alerts of its cooling devices, and over-current alarms. */
struct throttle {
    struct source_file *states;
    struct labels **labels;
    size_t n_states;
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

static int add_state(struct throttle *throttle, const char *device, const char *type) {
    size_t n = throttle->n_states + 1;
    struct source_file *states = realloc(throttle->states, n * sizeof(*states));
    throttle->states = states != NULL ? states : throttle->states;
    struct labels **labels = realloc(throttle->labels, n * sizeof(*labels));
    throttle->labels = labels != NULL ? labels : throttle->labels;
    if (states == NULL || labels == NULL ||
        source_file_init(&states[n - 1], device, "cur_state", NULL, NULL) < 0) {
        return -ENOMEM;
    }
    labels[n - 1] = labels_render("type", type);
    throttle->n_states = n;
    return labels[n - 1] != NULL ? 0 : -ENOMEM;
}

static int find_alerts(struct throttle *throttle, const char *sysfs) {
    char *class CLEANUP_FREE = file_path_join(sysfs, "class/thermal");
    struct entries entries CLEANUP_ENTRIES = {0};
    int r = class != NULL ? entries_init(&entries, class, "cooling_device") : -ENOMEM;
    for (size_t i = 0; i < entries.n_names && r == 0; i++) {
        char *device CLEANUP_FREE = file_path_join(class, entries.names[i]);
        char *type CLEANUP_FREE = device != NULL ? source_file_text(device, "type") : NULL;
        if (type != NULL && alert_name(type)) {
            r = add_state(throttle, device, type);
        }
    }
    return r;
}

static int find_alarms(struct throttle *throttle, const char *sysfs) {
    char *class CLEANUP_FREE = file_path_join(sysfs, "class/hwmon");
    struct entries entries CLEANUP_ENTRIES = {0};
    int r = class != NULL ? entries_init(&entries, class, "hwmon") : -ENOMEM;
    for (size_t i = 0; i < entries.n_names && r >= 0; i++) {
        char *device CLEANUP_FREE = file_path_join(class, entries.names[i]);
        r = device != NULL ? 0 : -ENOMEM;
        for (int oc = 1; oc <= THROTTLE_MAX_ALARMS && r >= 0; oc++) {
            char name[24], number[12];
            snprintf(name, sizeof(name), "oc%d_event_cnt", oc);
            snprintf(number, sizeof(number), "%d", oc);
            r = jetson_values_add(&throttle->alarms, device, name, 1, JETSON_OVERCURRENT_EVENTS,
                                  "oc", number);
        }
        if (throttle->alarms.n_rows > 0) {
            break; /* one monitor has them all */
        }
    }
    return r < 0 ? r : 0;
}

static int throttle_collect(void *state, struct jetson_round *round, struct snapshot *out,
                            struct error *err) {
    (void)round;
    struct throttle *throttle = state;
    int result = 0;
    for (size_t i = 0; i < throttle->n_states; i++) {
        double value;
        int r = source_file_number(&throttle->states[i], &value, result == 0 ? err : NULL);
        if (r > 0) {
            snapshot_add(out, &jetson_descs[JETSON_THROTTLE_ALERT], throttle->labels[i], value > 0);
        }
        result = result == 0 && r < 0 ? r : result;
    }
    int r = jetson_values_collect(&throttle->alarms, out, result == 0 ? err : NULL);
    return result == 0 ? r : result;
}

static void throttle_close(void *state) {
    struct throttle *throttle = state;
    if (throttle != NULL) {
        for (size_t i = 0; i < throttle->n_states; i++) {
            source_file_finish(&throttle->states[i]);
            labels_destroy(throttle->labels[i]);
        }
        free(throttle->states);
        free(throttle->labels);
        jetson_values_finish(&throttle->alarms);
    }
    free(throttle);
}

static int throttle_open(const struct collector_env *env, const struct jetson_board *board,
                         void **ret_state, struct error *err) {
    (void)board;
    struct throttle *throttle = calloc(1, sizeof(*throttle));
    int r = throttle != NULL ? find_alerts(throttle, env->sysfs) : -ENOMEM;
    if (r == 0) {
        r = find_alarms(throttle, env->sysfs);
    }
    if (r < 0) {
        throttle_close(throttle);
        return error_set(err, r, "out of memory");
    }
    *ret_state = throttle;
    return 0;
}

const struct jetson_part jetson_throttle_part = {
    .name = "throttle",
    .open = throttle_open,
    .collect = throttle_collect,
    .close = throttle_close,
};
