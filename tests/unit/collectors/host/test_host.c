#include "collectors/host/host.h"

#include <errno.h>

#include "exporter/core/file.h"
#include "tests/unit/collector_tree.h"

static void write_file(const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", tree, name);
    FILE *file CLEANUP_FCLOSE = fopen(path, "we");
    TEST_ASSERT_NOT_NULL_MESSAGE(file, path);
    fputs(text, file);
}

void setUp(void) {
    tree_begin(&host_collector, "host");
    env.rootfs = tree;
}

void tearDown(void) {
    tree_end();
}

static size_t count_all(const char *prefix) {
    return snapshot_count(&snapshot, prefix);
}

static const struct {
    const char *name;
    const char *labels;
    double value;
} expected[] = {
    {"node_boot_time_seconds", "", 1062191376},
    {"node_context_switches_total", "", 1990473},
    {"node_cpu_guest_seconds_total", "cpu=\"0\",mode=\"nice\"", 0.02},
    {"node_cpu_guest_seconds_total", "cpu=\"0\",mode=\"user\"", 0.41},
    {"node_cpu_seconds_total", "cpu=\"0\",mode=\"idle\"", 18495.88},
    {"node_cpu_seconds_total", "cpu=\"0\",mode=\"iowait\"", 115.3},
    {"node_cpu_seconds_total", "cpu=\"0\",mode=\"irq\"", 1.38},
    {"node_cpu_seconds_total", "cpu=\"0\",mode=\"nice\"", 1.78},
    {"node_cpu_seconds_total", "cpu=\"0\",mode=\"softirq\"", 0.12},
    {"node_cpu_seconds_total", "cpu=\"0\",mode=\"system\"", 2.9},
    {"node_cpu_seconds_total", "cpu=\"0\",mode=\"user\"", 23.45},
    {"node_cpu_seconds_total", "cpu=\"3\",mode=\"steal\"", 0.07},
    {"node_disk_discard_time_seconds_total", "device=\"mmcblk0\"", 0.015},
    {"node_disk_discarded_sectors_total", "device=\"mmcblk0\"", 4096},
    {"node_disk_discards_completed_total", "device=\"mmcblk0\"", 7},
    {"node_disk_discards_merged_total", "device=\"mmcblk0\"", 1},
    {"node_disk_flush_requests_time_seconds_total", "device=\"mmcblk0\"", 0.039},
    {"node_disk_flush_requests_total", "device=\"mmcblk0\"", 60},
    {"node_disk_io_now", "device=\"mmcblk0\"", 1},
    {"node_disk_io_time_seconds_total", "device=\"mmcblk0\"", 2.716},
    {"node_disk_io_time_weighted_seconds_total", "device=\"mmcblk0\"", 4.112},
    {"node_disk_read_bytes_total", "device=\"mmcblk0\"", 106664960},
    {"node_disk_read_time_seconds_total", "device=\"mmcblk0\"", 1.823},
    {"node_disk_reads_completed_total", "device=\"mmcblk0\"", 3021},
    {"node_disk_reads_merged_total", "device=\"mmcblk0\"", 1480},
    {"node_disk_write_time_seconds_total", "device=\"mmcblk0\"", 2.25},
    {"node_disk_writes_completed_total", "device=\"mmcblk0p1\"", 500},
    {"node_disk_writes_merged_total", "device=\"mmcblk0\"", 611},
    {"node_disk_written_bytes_total", "device=\"mmcblk0\"", 9572352},
    {"node_filesystem_device_error", "device=\"/dev/mmcblk0p1\",fstype=\"ext4\",mountpoint=\"/\"",
     0},
    {"node_filesystem_device_error",
     "device=\"/dev/sda1\",fstype=\"vfat\",mountpoint=\"/media/my disk\"", 1},
    {"node_filesystem_readonly", "device=\"/dev/mmcblk0p1\",fstype=\"ext4\",mountpoint=\"/\"", 0},
    {"node_filesystem_readonly",
     "device=\"/dev/sda1\",fstype=\"vfat\",mountpoint=\"/media/my disk\"", 0},
    {"node_forks_total", "", 2915},
    {"node_intr_total", "", 114930548},
    {"node_load1", "", 0.21},
    {"node_load15", "", 12},
    {"node_load5", "", 1.37},
    {"node_memory_Active_anon_bytes", "", 1260957696},
    {"node_memory_FancyCounter", "", 17},
    {"node_memory_Fancy_thing_bytes", "", 2048},
    {"node_memory_HugePages_Total", "", 4},
    {"node_memory_Hugepagesize_bytes", "", 2097152},
    {"node_memory_MemTotal_bytes", "", 8123822080},
    {"node_network_receive_bytes_total", "device=\"eth0\"", 65431250},
    {"node_network_receive_bytes_total", "device=\"lo\"", 3267},
    {"node_network_receive_compressed_total", "device=\"eth0\"", 5},
    {"node_network_receive_drop_total", "device=\"eth0\"", 2},
    {"node_network_receive_errs_total", "device=\"eth0\"", 1},
    {"node_network_receive_fifo_total", "device=\"eth0\"", 3},
    {"node_network_receive_frame_total", "device=\"eth0\"", 4},
    {"node_network_receive_multicast_total", "device=\"eth0\"", 6},
    {"node_network_receive_packets_total", "device=\"eth0\"", 154312},
    {"node_network_transmit_bytes_total", "device=\"eth0\"", 72591000},
    {"node_network_transmit_carrier_total", "device=\"eth0\"", 11},
    {"node_network_transmit_colls_total", "device=\"eth0\"", 10},
    {"node_network_transmit_compressed_total", "device=\"eth0\"", 12},
    {"node_network_transmit_drop_total", "device=\"eth0\"", 8},
    {"node_network_transmit_errs_total", "device=\"eth0\"", 7},
    {"node_network_transmit_fifo_total", "device=\"eth0\"", 9},
    {"node_network_transmit_packets_total", "device=\"eth0\"", 95312},
    {"node_pressure_cpu_waiting_seconds_total", "", 14.293735},
    {"node_pressure_io_stalled_seconds_total", "", 8.661089},
    {"node_pressure_io_waiting_seconds_total", "", 9.045976},
    {"node_pressure_memory_stalled_seconds_total", "", 0},
    {"node_pressure_memory_waiting_seconds_total", "", 1e-6},
    {"node_procs_blocked", "", 4},
    {"node_procs_running", "", 1},
    {"node_thermal_zone_temp", "type=\"CPU-therm\",zone=\"0\"", 45.5},
    {"node_thermal_zone_temp", "type=\"GPU-therm\",zone=\"1\"", -12},
};

static void check_expected(void) {
    for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
        const struct sample *sample = find(expected[i].name, expected[i].labels);
        TEST_ASSERT_NOT_NULL_MESSAGE(sample, expected[i].name);
        TEST_ASSERT_EQUAL_MESSAGE(true, expected[i].value == sample->value, expected[i].name);
    }
}

static void test_whole_collector(void) {
    for (int round = 0; round < 3; round++) {
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
        check_expected();
        TEST_ASSERT_EQUAL_UINT64(2 * 8, count_all("node_cpu_seconds_total"));
        TEST_ASSERT_EQUAL_UINT64(2 * 2, count_all("node_cpu_guest_seconds_total"));
        TEST_ASSERT_EQUAL_UINT64(17 + 11 + 15, count_all("node_disk_"));
        TEST_ASSERT_EQUAL_UINT64(2, count_all("node_filesystem_device_error"));
        TEST_ASSERT_EQUAL_UINT64(1, count_all("node_filesystem_size_bytes"));
        TEST_ASSERT_EQUAL_UINT64(14, count_all("node_memory_"));
        TEST_ASSERT_EQUAL_UINT64(2 * 16, count_all("node_network_"));
        TEST_ASSERT_EQUAL_UINT64(5, count_all("node_pressure_"));
        TEST_ASSERT_EQUAL_UINT64(2, count_all("node_thermal_zone_temp"));
        TEST_ASSERT_EQUAL_UINT64(1, count_all("node_uname_info"));
        TEST_ASSERT_EQUAL_UINT64(1, count_all("node_time_seconds"));
    }
}

static void test_descriptions_are_sound_and_listed(void) {
    const struct metric_desc *desc, *other;
    for (size_t i = 0; (desc = collector_metric(&host_collector, i)) != NULL; i++) {
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, metric_desc_check(desc, &err), err.text);
        for (size_t j = i + 1; (other = collector_metric(&host_collector, j)) != NULL; j++) {
            TEST_ASSERT_TRUE_MESSAGE(strcmp(desc->name, other->name) != 0, desc->name);
        }
    }
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    for (size_t i = 0; i < snapshot.n_families; i++) {
        desc = snapshot.families[i].desc;
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, metric_desc_check(desc, &err), err.text);
        bool listed = strstr(desc->name, "Fancy") != NULL;
        for (size_t j = 0; collector_metric(&host_collector, j) != NULL; j++) {
            listed = listed || collector_metric(&host_collector, j) == desc;
        }
        TEST_ASSERT_TRUE_MESSAGE(listed, desc->name);
    }
}

static void test_what_is_missing_is_no_failure(void) {
    run("rm -r %s/pressure %s/diskstats %s/loadavg %s/1 %s/class", procfs, procfs, procfs, procfs,
        sysfs);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    TEST_ASSERT_EQUAL_UINT64(0, count_all("node_pressure_"));
    TEST_ASSERT_EQUAL_UINT64(0, count_all("node_disk_"));
    TEST_ASSERT_EQUAL_UINT64(0, count_all("node_load"));
    TEST_ASSERT_EQUAL_UINT64(0, count_all("node_network_"));
    TEST_ASSERT_EQUAL_UINT64(0, count_all("node_filesystem_"));
    TEST_ASSERT_EQUAL_UINT64(0, count_all("node_thermal_"));
    TEST_ASSERT_EQUAL_UINT64(14, count_all("node_memory_"));
}

static void test_no_proc_is_no_source(void) {
    env.procfs = "/nonexistent";
    TEST_ASSERT_EQUAL_INT(-ENODEV, host_collector.open(&env, &state, &err));
    TEST_ASSERT_EQUAL_STRING("/nonexistent/stat: No such file or directory", err.text);
}

static void test_fallback_for_a_hidden_first_process(void) {
    run("mv %s/1/net %s/net && mv %s/1/mounts %s/mounts && rmdir %s/1", procfs, procfs, procfs,
        procfs, procfs);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    check_expected();
}

static void test_garbage_is_named_and_the_rest_collected(void) {
    static const struct {
        const char *file;
        const char *text;
        const char *reason;
        const char *lost;   /* a family that must be gone */
        const char *others; /* a family of the same file that must stay, or NULL */
    } cases[] = {
        {"proc/stat", "cpu0 1 2 3 4\ncpu1 1 two 3 4\nctxt 5\n", "1 two 3", "node_boot_time",
         "node_context_switches_total"},
        {"proc/stat", "cpu0 1 2 3 4\nctxt\n", "proc/stat:2: not understood: \"ctxt\"",
         "node_context_switches_total", "node_cpu_seconds_total"},
        {"proc/meminfo", "MemTotal: 1 kB\nMemFree: lots\n", "proc/meminfo:2", "node_memory_MemFree",
         "node_memory_MemTotal"},
        {"proc/diskstats", "179 0 mmcblk0 1 2", "proc/diskstats:1", "node_disk_", NULL},
        {"proc/loadavg", "0.1 0.2\n", "proc/loadavg:1", "node_load", NULL},
        {"proc/1/mounts", "/dev/sda\n/dev/sdb / ext4 rw 0 0\n", "proc/1/mounts:1", "none",
         "node_filesystem_size_bytes"},
        {"proc/1/net/dev", "a\nb\neth0: 1\n", "proc/1/net/dev:3", "node_network_", NULL},
        {"proc/pressure/io", "some\n", "proc/pressure/io:1", "node_pressure_io_",
         "node_pressure_memory_waiting"},
        {"sys/class/thermal/thermal_zone0/temp", "hot\n", "thermal_zone0/temp:1", "none",
         "node_thermal_zone_temp"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        write_file(cases[i].file, cases[i].text);
        TEST_ASSERT_EQUAL_INT_MESSAGE(-EINVAL, collect(), cases[i].file);
        TEST_ASSERT_NOT_NULL_MESSAGE(strstr(err.text, cases[i].reason), err.text);
        TEST_ASSERT_EQUAL_UINT64_MESSAGE(0, count_all(cases[i].lost), cases[i].lost);
        if (cases[i].others != NULL) {
            TEST_ASSERT_NOT_EQUAL_MESSAGE(0, count_all(cases[i].others), cases[i].others);
        }
        TEST_ASSERT_EQUAL_UINT64(1, count_all("node_uname_info"));
        tearDown();
        setUp();
    }
}

static void test_what_comes_and_goes(void) {
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    write_file("proc/stat", "cpu1 1 2 3 4\n");
    write_file("proc/diskstats", "8 0 sda 1 2 3 4 5 6 7 8 9 10 11\n");
    write_file("proc/1/net/dev", "a\nb\nwg\xff: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n");
    write_file("proc/1/mounts", "none / weird\\040fs ro 0 0\n");
    run("rm -r %s/class/thermal/thermal_zone0", sysfs);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    TEST_ASSERT_EQUAL_UINT64(4, count_all("node_cpu_seconds_total"));
    TEST_ASSERT_NOT_NULL(find("node_cpu_seconds_total", "cpu=\"1\",mode=\"idle\""));
    TEST_ASSERT_EQUAL_UINT64(0, count_all("node_boot_time_seconds"));
    TEST_ASSERT_EQUAL_UINT64(11, count_all("node_disk_"));
    TEST_ASSERT_EQUAL_UINT64(16, count_all("node_network_"));
    TEST_ASSERT_NOT_NULL(find("node_network_receive_bytes_total", "device=\"wg\xef\xbf\xbd\""));
    TEST_ASSERT_EQUAL_UINT64(1, count_all("node_thermal_zone_temp"));
    const struct sample *readonly = find(
        "node_filesystem_readonly", "device=\"none\",fstype=\"weird\\\\040fs\",mountpoint=\"/\"");
    TEST_ASSERT_NOT_NULL(readonly);
    TEST_ASSERT_EQUAL_DOUBLE(1, readonly->value);
    TEST_ASSERT_EQUAL_UINT64(7, count_all("node_filesystem_"));
}

static void test_excludes(void) {
    set_option("collector.host.disk.device-exclude", "^mmc");
    set_option("collector.host.network.device-exclude", "^lo$");
    set_option("collector.host.filesystem.mount-points-exclude", "^/$");
    set_option("collector.host.filesystem.fs-types-exclude", "^(proc|overlay|tmpfs)$");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    TEST_ASSERT_EQUAL_UINT64(3, count_all("node_disk_io_now"));
    TEST_ASSERT_NOT_NULL(find("node_disk_io_now", "device=\"loop0\""));
    TEST_ASSERT_EQUAL_UINT64(16, count_all("node_network_"));
    TEST_ASSERT_EQUAL_UINT64(2, count_all("node_filesystem_readonly"));
    TEST_ASSERT_NULL(find("node_filesystem_readonly",
                          "device=\"/dev/mmcblk0p1\",fstype=\"ext4\",mountpoint=\"/\""));
}

static void test_root_of_the_host_is_stripped(void) {
    char mounts[256];
    snprintf(mounts, sizeof(mounts), "a %s ext4 rw 0 0\nb %s/proc/1 xfs rw 0 0\nc /else xfs rw\n",
             tree, tree);
    write_file("proc/1/mounts", mounts);
    set_option("collector.host.filesystem.mount-points-exclude", "");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    static const char *const labels[] = {
        "device=\"a\",fstype=\"ext4\",mountpoint=\"/\"",
        "device=\"b\",fstype=\"xfs\",mountpoint=\"/proc/1\"",
    };
    for (size_t i = 0; i < ARRAY_LEN(labels); i++) {
        const struct sample *error = find("node_filesystem_device_error", labels[i]);
        TEST_ASSERT_NOT_NULL_MESSAGE(error, labels[i]);
        TEST_ASSERT_EQUAL_DOUBLE(0, error->value);
    }
}

/* Reading the speed of the loopback device is refused with EINVAL, as a sleeping sensor does. */
static void test_a_zone_that_refuses_is_skipped(void) {
    struct buf text CLEANUP_BUF = {0};
    if (file_read("/sys/class/net/lo/speed", &text, NULL) != -EINVAL) {
        TEST_IGNORE_MESSAGE("this machine has no file that answers EINVAL");
    }
    run("ln -sf /sys/class/net/lo/speed %s/class/thermal/thermal_zone0/temp", sysfs);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    TEST_ASSERT_EQUAL_UINT64(1, count_all("node_thermal_zone_temp"));
    TEST_ASSERT_NOT_NULL(find("node_thermal_zone_temp", "type=\"GPU-therm\",zone=\"1\""));
}

static void test_this_machine(void) {
    env = (struct collector_env){
        .procfs = "/proc", .sysfs = "/sys", .cgroupfs = "", .rootfs = "/", .settings = settings};
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, collect(), err.text);
    TEST_ASSERT_NOT_NULL(find("node_memory_MemTotal_bytes", ""));
    TEST_ASSERT_NOT_NULL(find("node_cpu_seconds_total", "cpu=\"0\",mode=\"idle\""));
}
