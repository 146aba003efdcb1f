#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "collectors/nvml/read.h"
#include "collectors/nvml/shares.h"
#include "collectors/source/energy.h"
#include "exporter/core/clock.h"
#include "exporter/core/memory.h"

/* Reports to the energy accounts what the card used, and which containers kept it busy. */

#define TELL_NS CLOCK_NS_PER_SEC

/* A card that may power down is left alone for this long once it has been idle for that long. */
#define REST_NS (10 * CLOCK_NS_PER_SEC)
#define REST_AFTER_NS (5 * CLOCK_NS_PER_SEC)

struct teller {
    struct energy_meter *meter; /* NULL: nobody wants to know */
    bool never;                 /* the card has no counter of energy */
    double begin_millijoules;
    int64_t begin_ns; /* 0: the meter has not begun */
    int64_t next_ns;
    int64_t busy_at_ns;
    struct nvml_shares shares;
};

/* The counter starts from 0 when the driver does. */
static void begin(struct teller *teller, struct nvml_device *device, double millijoules,
                  int64_t now_ns) {
    energy_meter_close(teller->meter);
    teller->meter = energy_meter_open(device->config->energy, device->uuid);
    teller->begin_millijoules = millijoules;
    teller->begin_ns = now_ns;
    teller->busy_at_ns = now_ns;
}

static void energy_sample(struct nvml_device *device, void *state, int64_t now_ns) {
    struct teller *teller = state;
    double values[NVML_MAX_VALUES];
    if (teller->meter == NULL || teller->never || now_ns < teller->next_ns) {
        return;
    }
    unsigned code = nvml_read_energy(device->library, device->handle, NULL, values);
    if (!nvml_device_check(device, code, &teller->never)) {
        return;
    }
    double load = nvml_shares_read(&teller->shares, device);
    if (teller->begin_ns == 0 || values[0] < teller->begin_millijoules) {
        begin(teller, device, values[0], now_ns);
    }
    double joules = (values[0] - teller->begin_millijoules) / 1e3;
    struct energy_reading reading = {
        .joules = joules,
        .seconds = (double)(now_ns - teller->begin_ns) / 1e9,
        .gpu_joules = joules,
        .gpu_busy_seconds = NAN,
    };
    energy_meter_put(teller->meter, &reading, teller->shares.rows, teller->shares.n_rows);
    teller->busy_at_ns = load > 0 ? now_ns : teller->busy_at_ns;
    bool rests = device->runtime_status != NULL && now_ns - teller->busy_at_ns >= REST_AFTER_NS;
    teller->next_ns = now_ns + (rests ? REST_NS : TELL_NS);
}

static void *energy_open(struct nvml_device *device) {
    struct teller *teller = mem_zalloc(1, sizeof(*teller));
    teller->meter = energy_meter_open(device->config->energy, device->uuid);
    return teller;
}

static void energy_close(void *state) {
    struct teller *teller = state;
    energy_meter_close(teller->meter);
    nvml_shares_finish(&teller->shares);
    free(teller);
}

const struct nvml_part nvml_energy_part = {
    .open = energy_open,
    .sample = energy_sample,
    .close = energy_close,
};
