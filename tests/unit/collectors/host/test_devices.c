#include "collectors/host/devices.h"

#include <stdio.h>
#include <string.h>
#include <unity.h>

#include "exporter/core/cleanup.h"

static struct host_devices devices;
static struct snapshot snapshot;

static const struct metric_desc descs[] = {
    {"a_total", "a", METRIC_COUNTER},
    {"b_total", "b", METRIC_COUNTER},
    {0},
};

void setUp(void) {
    devices = (struct host_devices){0};
    snapshot = (struct snapshot){0};
}

void tearDown(void) {
    snapshot_finish(&snapshot);
    host_devices_finish(&devices);
}

static void see(const char *name, size_t n_values) {
    struct host_device *device =
        host_devices_see(&devices, (struct scan_word){.text = name, .len = strlen(name)});
    TEST_ASSERT_NOT_NULL(device);
    device->n_values = n_values;
    device->values[0] = 1;
    device->values[1] = 2;
}

static void test_what_is_not_seen_is_forgotten(void) {
    host_devices_begin(&devices);
    see("sda", 2);
    see("sdb", 2);
    see("sdc", 2);
    host_devices_sweep(&devices);
    TEST_ASSERT_EQUAL_UINT64(3, devices.n_rows);
    const struct labels *kept = devices.rows[2].labels;

    host_devices_begin(&devices);
    see("sdc", 2);
    see("sda", 1);
    host_devices_sweep(&devices);
    TEST_ASSERT_EQUAL_UINT64(2, devices.n_rows);
    TEST_ASSERT_EQUAL_PTR(kept, devices.rows[1].labels);

    host_devices_emit(&devices, descs, &snapshot);
    TEST_ASSERT_EQUAL_UINT64(2, snapshot.n_families);
    TEST_ASSERT_EQUAL_UINT64(2, snapshot.families[0].n_samples);
    TEST_ASSERT_EQUAL_UINT64(1, snapshot.families[1].n_samples);
    TEST_ASSERT_EQUAL_STRING("device=\"sdc\"", snapshot.families[1].samples[0].labels->text);
}

static void test_many_devices_in_any_order(void) {
    char name[16];
    for (int round = 0; round < 3; round++) {
        host_devices_begin(&devices);
        for (int i = 0; i < 100; i++) {
            snprintf(name, sizeof(name), "d%d", (i * 37 + round) % 100);
            see(name, 1);
        }
        host_devices_sweep(&devices);
        TEST_ASSERT_EQUAL_UINT64(100, devices.n_rows);
    }
}
