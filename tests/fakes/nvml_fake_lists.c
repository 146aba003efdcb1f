#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/fakes/nvml_fake.h"
#include "tests/fakes/nvml_scenario.h"

/* What the fake driver answers with lists: processes, samples, events. */

enum { FIRST_GENERATED_PID = 100000, MAX_SAMPLES = 120 };

/* `compute 12:4096 13:8192`, and so many more by `compute.more 5000`; where `grow` is set there are
 * some more with every call. Returns how many there are. */
static unsigned list(const struct nvml_handle *device, const char *key, const char *more_key,
                     struct nvml_process *out, unsigned room, unsigned *ret_code) {
    static unsigned long long grown;
    unsigned long long more = 0, grow = 0;
    scenario_number(fake_gpu(device), more_key, 0, &more);
    scenario_number(fake_gpu(device), "grow", 0, &grow);
    const char *text = scenario_text(fake_gpu(device), key, ret_code);
    if (text == NULL) {
        return 0;
    }
    grown += grow;
    unsigned n = 0;
    for (const char *at = text; *at != '\0'; at += strspn(at, " ")) {
        char *end;
        unsigned pid = (unsigned)strtoul(at, &end, 0);
        unsigned long long bytes = *end == ':' ? strtoull(end + 1, &end, 0) : ~0ULL;
        at = end;
        if (n < room) {
            out[n] = (struct nvml_process){pid, bytes, ~0U, ~0U};
        }
        n++;
    }
    for (unsigned long long i = 0; i < more + grown; i++, n++) {
        if (n < room) {
            out[n] =
                (struct nvml_process){FIRST_GENERATED_PID + (unsigned)i, 4096 * (i + 1), ~0U, ~0U};
        }
    }
    return n;
}

static unsigned answer(const struct nvml_handle *device, const char *key, const char *more_key,
                       unsigned *n, struct nvml_process *out) {
    unsigned code;
    unsigned room = *n;
    *n = list(device, key, more_key, out, room, &code);
    return code == NVML_CODE_SUCCESS && *n > room ? NVML_CODE_INSUFFICIENT_SIZE : code;
}

static unsigned answer_v1(const struct nvml_handle *device, const char *key, const char *more_key,
                          unsigned *n, struct nvml_process_v1 *out) {
    struct nvml_process *all = calloc(*n + 1, sizeof(*all));
    unsigned room = *n;
    unsigned code = answer(device, key, more_key, n, all);
    for (unsigned i = 0; i < *n && i < room; i++) {
        out[i] = (struct nvml_process_v1){all[i].pid, all[i].used_memory};
    }
    free(all);
    return code;
}

EXPORT unsigned nvmlDeviceGetComputeRunningProcesses(struct nvml_handle *device, unsigned *n,
                                                     struct nvml_process_v1 *processes) {
    return answer_v1(device, "compute", "compute.more", n, processes);
}

EXPORT unsigned nvmlDeviceGetGraphicsRunningProcesses(struct nvml_handle *device, unsigned *n,
                                                      struct nvml_process_v1 *processes) {
    return answer_v1(device, "graphics", "graphics.more", n, processes);
}

#ifndef OLD_DRIVER
EXPORT unsigned nvmlDeviceGetComputeRunningProcesses_v2(struct nvml_handle *device, unsigned *n,
                                                        struct nvml_process *processes) {
    return answer(device, "compute", "compute.more", n, processes);
}

EXPORT unsigned nvmlDeviceGetGraphicsRunningProcesses_v2(struct nvml_handle *device, unsigned *n,
                                                         struct nvml_process *processes) {
    return answer(device, "graphics", "graphics.more", n, processes);
}

static unsigned long long now_usec(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_nsec / 1000;
}

/* `loads 12 70 13 20`: pid and load by turns. */
EXPORT unsigned nvmlDeviceGetProcessUtilization(struct nvml_handle *device,
                                                struct nvml_process_load *loads, unsigned *n,
                                                unsigned long long last_seen_usec) {
    unsigned code;
    if (scenario_text(fake_gpu(device), "loads", &code) == NULL) {
        return code;
    }
    unsigned count = 0;
    unsigned long long pid, load;
    while (scenario_number(fake_gpu(device), "loads", 2 * count, &pid) == NVML_CODE_SUCCESS &&
           scenario_number(fake_gpu(device), "loads", 2 * count + 1, &load) == NVML_CODE_SUCCESS) {
        if (count < *n) {
            loads[count] = (struct nvml_process_load){
                .pid = (unsigned)pid, .timestamp_usec = now_usec(), .sm = (unsigned)load};
        }
        count++;
    }
    code = count > *n ? NVML_CODE_INSUFFICIENT_SIZE : NVML_CODE_SUCCESS;
    *n = count;
    return now_usec() > last_seen_usec ? code : NVML_CODE_NOT_FOUND;
}

/* `samples.utilization 20000 10 90`: every 20 ms one of the values, by turns. */
EXPORT unsigned nvmlDeviceGetSamples(struct nvml_handle *device, unsigned kind,
                                     unsigned long long last_seen_usec, unsigned *type, unsigned *n,
                                     struct nvml_sample *samples) {
    const char *key = kind == NVML_SAMPLES_OF_POWER ? "samples.power" : "samples.utilization";
    unsigned long long period = 0, n_values = 0, value;
    unsigned code = scenario_number(fake_gpu(device), key, 0, &period);
    if (code != NVML_CODE_SUCCESS) {
        return code;
    }
    *type = NVML_IS_UNSIGNED;
    if (samples == NULL) {
        *n = MAX_SAMPLES;
        return NVML_CODE_SUCCESS;
    }
    while (scenario_number(fake_gpu(device), key, 1 + (unsigned)n_values, &value) ==
           NVML_CODE_SUCCESS) {
        n_values++;
    }
    unsigned long long last = now_usec() / period;
    unsigned long long first = last_seen_usec / period + 1;
    first = last - first >= MAX_SAMPLES ? last - MAX_SAMPLES + 1 : first;
    unsigned count = 0;
    for (unsigned long long i = first; i <= last && count < *n; i++, count++) {
        scenario_number(fake_gpu(device), key, 1 + (unsigned)(i % n_values), &value);
        samples[count].timestamp_usec = i * period;
        samples[count].value.as_unsigned = (unsigned)value;
    }
    *n = count;
    return count > 0 ? NVML_CODE_SUCCESS : NVML_CODE_NOT_FOUND;
}

EXPORT unsigned nvmlEventSetCreate(void **set) {
    static int events;
    *set = &events;
    return NVML_CODE_SUCCESS;
}

EXPORT unsigned nvmlEventSetFree(void *set) {
    (void)set;
    return NVML_CODE_SUCCESS;
}

EXPORT unsigned nvmlDeviceRegisterEvents(struct nvml_handle *device, unsigned long long types,
                                         void *set) {
    (void)set;
    unsigned code;
    const char *text = scenario_text(fake_gpu(device), "xid", &code);
    return text != NULL && types == NVML_EVENT_XID ? NVML_CODE_SUCCESS : NVML_CODE_NOT_SUPPORTED;
}

/* `xid 31 31 79`: each is reported once, in the lifetime of the process. */
EXPORT unsigned nvmlEventSetWait_v2(void *set, struct nvml_event *event, unsigned timeout_ms) {
    (void)set, (void)timeout_ms;
    static unsigned n_reported[8];
    for (int i = 0; i < 8; i++) {
        unsigned long long code;
        if (scenario_number(i, "xid", n_reported[i], &code) == NVML_CODE_SUCCESS) {
            n_reported[i]++;
            *event = (struct nvml_event){fake_handle(i), NVML_EVENT_XID, code, ~0U, ~0U};
            return NVML_CODE_SUCCESS;
        }
    }
    return NVML_CODE_TIMEOUT;
}
#endif
