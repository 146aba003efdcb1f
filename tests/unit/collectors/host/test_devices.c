#include "collectors/host/devices.h"

#include <string.h>
#include <unity.h>

static struct settings *settings;
static struct host_devices devices;
static struct snapshot snapshot;

static const struct metric_desc descs[] = {
    {"a_total", "a", METRIC_COUNTER},
    {"b_total", "b", METRIC_COUNTER},
    {0},
};

void setUp(void) {
    static const struct option option = {
        .name = "exclude", .type = OPTION_REGEX, .default_text = "^loop", .help = "Names"};
    settings = settings_create((const struct option *const[]){&option}, 1);
    host_devices_init(&devices, descs, settings, "exclude");
    snapshot = (struct snapshot){0};
}

void tearDown(void) {
    snapshot_finish(&snapshot);
    host_devices_finish(&devices);
    settings_destroy(settings);
}

static void see(const char *name, size_t n_values) {
    struct host_device *device =
        host_devices_see(&devices, (struct scan_word){.text = name, .len = strlen(name)});
    TEST_ASSERT_NOT_NULL(device);
    device->n_values = n_values;
    device->values[0] = 1;
    device->values[1] = 2;
}

static void test_values_of_those_that_exist(void) {
    see("sda", 2);
    see("sdb", 2);
    see("sdc", 2);
    host_devices_collect(&devices, NULL, &snapshot, NULL);
    TEST_ASSERT_EQUAL_UINT64(6, snapshot_n_samples(&snapshot));

    snapshot_reset(&snapshot);
    see("sdc", 2);
    see("loop0", 2);
    see("sda", 1);
    host_devices_collect(&devices, NULL, &snapshot, NULL);
    TEST_ASSERT_EQUAL_UINT64(2, snapshot.n_families);
    TEST_ASSERT_EQUAL_UINT64(2, snapshot.families[0].n_samples);
    TEST_ASSERT_EQUAL_UINT64(1, snapshot.families[1].n_samples);
    TEST_ASSERT_EQUAL_STRING("device=\"sdc\"", snapshot.families[1].samples[0].labels->text);
}
