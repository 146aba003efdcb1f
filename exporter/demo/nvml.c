#include "exporter/demo/nvml.h"

#include <pthread.h>
#include <stdio.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/clock.h"

struct nvml_handle {
    unsigned index;
};

static struct nvml_handle handles[DEMO_N_CARDS] = {{0}, {1}};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards `shown` */
static struct demo_card shown[DEMO_N_CARDS];

/* The process on each card; the first is the detector in its container. */
static const struct {
    unsigned pid;
    double share; /* of the card's memory and load */
} users[DEMO_N_CARDS] = {{2214, 0.9}, {3187, 0.95}};

void demo_nvml_update(const struct demo_card cards[static DEMO_N_CARDS]) {
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < DEMO_N_CARDS; i++) {
        shown[i] = cards[i];
    }
    pthread_mutex_unlock(&lock);
}

static struct demo_card card_of(const struct nvml_handle *device) {
    pthread_mutex_lock(&lock);
    struct demo_card card = shown[device->index];
    pthread_mutex_unlock(&lock);
    return card;
}

static unsigned give(unsigned *out, double value) {
    *out = (unsigned)llround(value);
    return NVML_CODE_SUCCESS;
}

static unsigned give_text(char *out, unsigned length, const char *text) {
    snprintf(out, length, "%s", text);
    return NVML_CODE_SUCCESS;
}

/* ---- identity ---- */

static unsigned start_or_stop(void) {
    return NVML_CODE_SUCCESS;
}

static const char *error_string(unsigned code) {
    return code == NVML_CODE_SUCCESS ? "The operation was successful" : "Simulated error";
}

static unsigned driver_version(char *out, unsigned length) {
    return give_text(out, length, "550.54.15");
}

static unsigned cuda_version(int *version) {
    *version = 12040;
    return NVML_CODE_SUCCESS;
}

static unsigned count(unsigned *n) {
    *n = DEMO_N_CARDS;
    return NVML_CODE_SUCCESS;
}

static unsigned handle(unsigned index, struct nvml_handle **device) {
    if (index >= DEMO_N_CARDS) {
        return NVML_CODE_INVALID_ARGUMENT;
    }
    *device = &handles[index];
    return NVML_CODE_SUCCESS;
}

static unsigned name(struct nvml_handle *device, char *out, unsigned length) {
    (void)device;
    return give_text(out, length, "NVIDIA RTX A4000");
}

static unsigned uuid(struct nvml_handle *device, char *out, unsigned length) {
    snprintf(out, length, "GPU-de300000-0000-4000-8000-%012u", device->index);
    return NVML_CODE_SUCCESS;
}

static unsigned vbios_version(struct nvml_handle *device, char *out, unsigned length) {
    (void)device;
    return give_text(out, length, "94.04.57.00.06");
}

static unsigned pci_info(struct nvml_handle *device, struct nvml_pci_info *pci) {
    *pci = (struct nvml_pci_info){.bus = 1 + device->index};
    snprintf(pci->bus_id, sizeof(pci->bus_id), "00000000:%02X:00.0", pci->bus);
    return NVML_CODE_SUCCESS;
}

/* ---- state ---- */

static unsigned utilization(struct nvml_handle *device, struct nvml_utilization *out) {
    struct demo_card card = card_of(device);
    give(&out->gpu, card.load * 100);
    return give(&out->memory, card.memory_load * 100);
}

static unsigned encoder(struct nvml_handle *device, unsigned *percent, unsigned *period_usec) {
    (void)device;
    *period_usec = 167000;
    return give(percent, 0);
}

static unsigned decoder(struct nvml_handle *device, unsigned *percent, unsigned *period_usec) {
    *period_usec = 167000;
    return give(percent, card_of(device).decoder_load * 100);
}

static unsigned memory_v2(struct nvml_handle *device, struct nvml_memory_v2 *memory) {
    static const unsigned long long mib = 1024 * 1024;
    memory->total = DEMO_CARD_MIB * mib;
    memory->reserved = 387 * mib;
    memory->used = (unsigned long long)card_of(device).memory_bytes;
    memory->free = memory->total - memory->reserved - memory->used;
    return NVML_CODE_SUCCESS;
}

static unsigned power(struct nvml_handle *device, unsigned *milliwatts) {
    return give(milliwatts, card_of(device).watts * 1e3);
}

static unsigned power_limit(struct nvml_handle *device, unsigned *milliwatts) {
    (void)device;
    return give(milliwatts, DEMO_CARD_WATTS * 1e3);
}

static unsigned power_range(struct nvml_handle *device, unsigned *min, unsigned *max) {
    give(min, 100e3);
    return power_limit(device, max);
}

static unsigned energy(struct nvml_handle *device, unsigned long long *millijoules) {
    *millijoules = (unsigned long long)(card_of(device).joules * 1e3);
    return NVML_CODE_SUCCESS;
}

static unsigned temperature(struct nvml_handle *device, unsigned sensor, unsigned *celsius) {
    (void)sensor;
    return give(celsius, card_of(device).celsius);
}

static unsigned threshold(struct nvml_handle *device, unsigned kind, unsigned *celsius) {
    static const unsigned celsiuses[] = {
        [NVML_THRESHOLD_SHUTDOWN] = 104,
        [NVML_THRESHOLD_SLOWDOWN] = 101,
        [NVML_THRESHOLD_GPU_MAX] = 92,
    };
    (void)device;
    bool known = kind < ARRAY_LEN(celsiuses) && celsiuses[kind] != 0;
    *celsius = known ? celsiuses[kind] : 0;
    return known ? NVML_CODE_SUCCESS : NVML_CODE_NOT_SUPPORTED;
}

static unsigned clock_now(struct nvml_handle *device, unsigned kind, unsigned *mhz) {
    struct demo_card card = card_of(device);
    bool memory = kind == NVML_CLOCK_OF_MEMORY;
    return give(mhz, (memory ? card.memory_hertz : card.hertz) / 1e6);
}

static unsigned clock_max(struct nvml_handle *device, unsigned kind, unsigned *mhz) {
    (void)device;
    bool memory = kind == NVML_CLOCK_OF_MEMORY;
    return give(mhz, (memory ? DEMO_CARD_MEMORY_HERTZ : DEMO_CARD_HERTZ) / 1e6);
}

static unsigned fan_v2(struct nvml_handle *device, unsigned fan, unsigned *percent) {
    return fan == 0 ? give(percent, card_of(device).fan_duty * 100) : NVML_CODE_INVALID_ARGUMENT;
}

static unsigned pstate(struct nvml_handle *device, unsigned *state) {
    return give(state, card_of(device).load > 0 ? 2 : 8);
}

static unsigned pcie_generation(struct nvml_handle *device, unsigned *generation) {
    return give(generation, card_of(device).load > 0 ? 4 : 1);
}

static unsigned pcie_generation_max(struct nvml_handle *device, unsigned *generation) {
    (void)device;
    return give(generation, 4);
}

static unsigned pcie_width(struct nvml_handle *device, unsigned *lanes) {
    (void)device;
    return give(lanes, 16);
}

static unsigned zero(struct nvml_handle *device, unsigned *value) {
    (void)device;
    return give(value, 0);
}

/* Bit 0: idle; bit 2: the power limit. */
static unsigned throttle_reasons(struct nvml_handle *device, unsigned long long *reasons) {
    struct demo_card card = card_of(device);
    *reasons = card.load > 0 ? 0 : 1;
    *reasons |= card.watts > 0.97 * DEMO_CARD_WATTS ? 1 << 2 : 0;
    return NVML_CODE_SUCCESS;
}

/* ---- processes ---- */

/* For the one process of a card. */
static bool has_room(unsigned *n) {
    unsigned room = *n;
    *n = 1;
    return room >= 1;
}

static unsigned compute_processes(struct nvml_handle *device, unsigned *n,
                                  struct nvml_process *processes) {
    if (!has_room(n)) {
        return NVML_CODE_INSUFFICIENT_SIZE;
    }
    double bytes = card_of(device).memory_bytes * users[device->index].share;
    processes[0] =
        (struct nvml_process){users[device->index].pid, (unsigned long long)bytes, ~0U, ~0U};
    return NVML_CODE_SUCCESS;
}

static unsigned process_loads(struct nvml_handle *device, struct nvml_process_load *loads,
                              unsigned *n, unsigned long long last_seen_usec) {
    (void)last_seen_usec;
    if (!has_room(n)) {
        return NVML_CODE_INSUFFICIENT_SIZE;
    }
    struct demo_card card = card_of(device);
    loads[0] = (struct nvml_process_load){
        .pid = users[device->index].pid,
        .timestamp_usec = (unsigned long long)(clock_wall_seconds() * 1e6),
    };
    give(&loads[0].memory, card.memory_load * 100);
    give(&loads[0].decoder, card.decoder_load * 100);
    return give(&loads[0].sm, card.load * 100 * users[device->index].share);
}

const struct nvml_library demo_nvml_library = {
    .init = start_or_stop,
    .shutdown = start_or_stop,
    .error_string = error_string,
    .driver_version = driver_version,
    .cuda_version = cuda_version,
    .count = count,
    .handle = handle,
    .name = name,
    .uuid = uuid,
    .vbios_version = vbios_version,
    .pci_info = pci_info,
    .utilization = utilization,
    .encoder = encoder,
    .decoder = decoder,
    .memory_v2 = memory_v2,
    .power = power,
    .power_limit = power_limit,
    .power_default = power_limit,
    .power_enforced = power_limit,
    .power_range = power_range,
    .energy = energy,
    .temperature = temperature,
    .threshold = threshold,
    .clock = clock_now,
    .clock_max = clock_max,
    .fan_v2 = fan_v2,
    .pstate = pstate,
    .pcie_generation = pcie_generation,
    .pcie_generation_max = pcie_generation_max,
    .pcie_width = pcie_width,
    .pcie_width_max = pcie_width,
    .pcie_replays = zero,
    .throttle_reasons = throttle_reasons,
    .compute_mode = zero,
    .persistence = zero,
    .compute_processes = compute_processes,
    .process_loads = process_loads,
};
