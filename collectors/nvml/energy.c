#include <math.h>

#include "collectors/nvml/device.h"
#include "collectors/nvml/shares.h"
#include "collectors/source/energy.h"
#include "exporter/core/clock.h"

/* Reports to the energy accounts what the card used, and which containers kept it busy. */

#define REPORT_NS CLOCK_NS_PER_SEC

struct report {
    struct energy_meter *meter; /* NULL: not wanted */
    bool never;                 /* the card has no counter of energy */
    double begin_millijoules;
    int64_t begin_ns; /* 0: the meter has not begun */
    int64_t next_ns;
    struct nvml_shares shares;
};

/* The counter starts from 0 when the driver does. */
static void begin(struct report *report, struct nvml_device *device, double millijoules,
                  int64_t now_ns) {
    energy_meter_close(report->meter);
    report->meter = energy_meter_open(device->config->energy, device->uuid);
    report->begin_millijoules = millijoules;
    report->begin_ns = now_ns;
}

static void energy_sample(struct nvml_device *device, void *state, int64_t now_ns) {
    struct report *report = state;
    unsigned long long millijoules = 0;
    if (report->meter == NULL || report->never || now_ns < report->next_ns) {
        return;
    }
    unsigned code = NVML_CALL(device->library->energy, device->handle, &millijoules);
    if (!nvml_device_check(device, code, &report->never)) {
        return;
    }
    report->next_ns = now_ns + REPORT_NS;
    if (nvml_shares_read(&report->shares, device) > 0) {
        device->busy_ns = now_ns;
    }
    double counter = (double)millijoules;
    if (report->begin_ns == 0 || counter < report->begin_millijoules) {
        begin(report, device, counter, now_ns);
    }
    double joules = (counter - report->begin_millijoules) / 1e3;
    struct energy_reading reading = {
        .joules = joules,
        .seconds = (double)(now_ns - report->begin_ns) / 1e9,
        .gpu_joules = joules,
        .gpu_busy_seconds = NAN,
    };
    energy_meter_put(report->meter, &reading, report->shares.rows, report->shares.n_rows);
}

static void energy_open(void *state, const struct nvml_device *device) {
    struct report *report = state;
    report->meter = energy_meter_open(device->config->energy, device->uuid);
}

static void energy_close(void *state) {
    struct report *report = state;
    energy_meter_close(report->meter);
    nvml_shares_finish(&report->shares);
}

const struct nvml_part nvml_energy_part = {
    .state_size = sizeof(struct report),
    .open = energy_open,
    .sample = energy_sample,
    .close = energy_close,
};
