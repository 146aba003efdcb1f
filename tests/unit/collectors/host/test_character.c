#include "collectors/host/parse.h"

#include <sys/utsname.h>

#include "collectors/host/host.h"
#include "exporter/core/hash.h"
#include "tests/unit/collector_tree.h"

static char uuid[37];

void setUp(void) {
    tree_begin(&host_collector, "host");
    run("mkdir -p root/etc sys/firmware/devicetree/base sys/class/dmi/id sys/devices/system/cpu");
    run("printf '0-3,5\\n' > sys/devices/system/cpu/present");
    run("printf 'NAME=\"Debian GNU/Linux\"\\nVERSION_ID=\"12\"\\n' > root/etc/os-release");
    run("printf 'edge-17\\n' > root/etc/hostname");
    run("printf '0123456789abcdef0123456789abcdef\\n' > root/etc/machine-id");
    set_option("collector.host.characterization", "true");
}

void tearDown(void) {
    tree_end();
}

static void derive(const char *purpose, const char *secret) {
    struct buf text CLEANUP_BUF = {0};
    hash_uuid(purpose, secret, &text);
    snprintf(uuid, sizeof(uuid), "%s", buf_str(&text));
}

/* With the labels that all have in front. */
static void expect(const char *name, const char *class, const char *labels, double value) {
    struct buf text CLEANUP_BUF = {0};
    buf_printf(&text, "char_node_name=\"edge-17\",char_node_class=\"%s\",char_node_uuid=\"%s\"%s",
               class, uuid, labels);
    check(name, buf_str(&text), value);
}

static void test_only_where_it_is_asked_for(void) {
    set_option("collector.host.characterization", "false");
    collect();
    TEST_ASSERT_EQUAL_size_t(0, snapshot_count(&snapshot, "char_node_"));
}

static void test_a_jetson(void) {
    run("printf 'NVIDIA Jetson Xavier NX Developer Kit\\0' > sys/firmware/devicetree/base/model");
    run("printf '1421520012345\\0' > sys/firmware/devicetree/base/serial-number");
    derive("waap node serial", "1421520012345");
    collect();
    expect("char_node_device_model", "Computer",
           ",char_node_device_model_name=\"NVIDIA Jetson Xavier NX\"", 1);
    expect("char_node_ram_total_bytes", "Computer", "", 7933420.0 * 1024);
    expect("char_node_os", "Computer",
           ",char_node_os_name=\"Debian GNU/Linux\",char_node_os_version=\"12\"", 1);
    struct utsname system;
    uname(&system);
    struct buf labels CLEANUP_BUF = {0};
    buf_printf(&labels, ",char_node_arch=\"%s\",char_node_bits=\"%s\"", system.machine,
               strstr(system.machine, "64") != NULL ? "64" : "32");
    expect("char_node_cpu_total_cores", "Computer", buf_str(&labels), 5);
    TEST_ASSERT_EQUAL_size_t(1, count("char_node_disk_total_size"));
    TEST_ASSERT_EQUAL_size_t(0, count("char_node_battery"));
}

static void test_a_virtual_machine(void) {
    run("printf 'Standard PC\\n' > sys/class/dmi/id/product_name");
    run("printf 'processor\\t: 0\\nmodel name\\t: Some CPU\\nflags\\t\\t: fpu hypervisor lm\\n' "
        "> proc/cpuinfo");
    derive("waap node machine-id", "0123456789abcdef0123456789abcdef");
    collect();
    expect("char_node_device_model", "VM", ",char_node_device_model_name=\"Standard PC\"", 1);
    expect("char_node_ram_total_bytes", "VM", "", 7933420.0 * 1024);
}

/* A serial number of zeros is none, and what is not known is left out. */
static void test_a_bare_board(void) {
    run("printf '0000000000\\0' > sys/firmware/devicetree/base/serial-number");
    run("rm root/etc/os-release");
    derive("waap node machine-id", "0123456789abcdef0123456789abcdef");
    collect();
    expect("char_node_ram_total_bytes", "Computer", "", 7933420.0 * 1024);
    TEST_ASSERT_EQUAL_size_t(0, count("char_node_device_model"));
    TEST_ASSERT_EQUAL_size_t(0, count("char_node_os"));
}

static void test_without_any_identity(void) {
    run("rm root/etc/machine-id");
    set_option("collector.host.node-name", "other");
    set_option("collector.host.device-model", "Raspberry Pi 4");
    collect();
    check("char_node_device_model",
          "char_node_name=\"other\",char_node_class=\"Computer\","
          "char_node_device_model_name=\"Raspberry Pi 4\"",
          1);
}

static void test_batteries(void) {
    static const struct {
        const char *status;
        const char *plugged;
    } cases[] = {{"Discharging", "False"}, {"Charging", "True"}, {"Full", "True"}};
    derive("waap node machine-id", "0123456789abcdef0123456789abcdef");
    run("mkdir -p sys/class/power_supply/mouse sys/class/power_supply/BAT0 "
        "sys/class/power_supply/AC");
    run("cd sys/class/power_supply; echo Mains > AC/type; echo Battery | tee mouse/type > "
        "BAT0/type; "
        "echo Device > mouse/scope; echo 5 > mouse/capacity; echo 80 > BAT0/capacity");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        run("echo %s > sys/class/power_supply/BAT0/status", cases[i].status);
        collect();
        struct buf labels CLEANUP_BUF = {0};
        buf_printf(&labels, ",char_node_plugged_battery=\"%s\"", cases[i].plugged);
        expect("char_node_battery", "Computer", buf_str(&labels), 80);
        TEST_ASSERT_EQUAL_size_t(1, count("char_node_battery"));
    }
}

static void test_texts(void) {
    static const char os[] = "PRETTY_NAME=x\nNAME='A B'\nVERSION_ID=3\nEMPTY=\nBARE=\"\"";
    struct buf out CLEANUP_BUF = {0};
    TEST_ASSERT_TRUE(host_os_release_find(os, "NAME", &out));
    TEST_ASSERT_EQUAL_STRING("A B", buf_str(&out));
    buf_reset(&out);
    TEST_ASSERT_TRUE(host_os_release_find(os, "VERSION_ID", &out));
    TEST_ASSERT_EQUAL_STRING("3", buf_str(&out));
    TEST_ASSERT_FALSE(host_os_release_find(os, "EMPTY", &out));
    TEST_ASSERT_FALSE(host_os_release_find(os, "BARE", &out));
    TEST_ASSERT_FALSE(host_os_release_find(os, "VERSION", &out));
    buf_reset(&out);
    TEST_ASSERT_TRUE(
        host_cpuinfo_find("a\t: 1\nmodel name\t: X  Y\nmodel name\t: Z\n", "model name", &out));
    TEST_ASSERT_EQUAL_STRING("X  Y", buf_str(&out));
    TEST_ASSERT_TRUE(host_has_word("fpu hypervisor", "hypervisor"));
    TEST_ASSERT_TRUE(host_has_word("hypervisors hypervisor x", "hypervisor"));
    TEST_ASSERT_FALSE(host_has_word("hypervisors xhypervisor", "hypervisor"));
    TEST_ASSERT_EQUAL_UINT(4, host_count_cpus("0-3"));
    TEST_ASSERT_EQUAL_UINT(1, host_count_cpus("0"));
    TEST_ASSERT_EQUAL_UINT(6, host_count_cpus("0-3,6,8"));
    static const char *const no_lists[] = {"", "x", "3-1", "0-99999999", "1;2"};
    for (size_t i = 0; i < ARRAY_LEN(no_lists); i++) {
        TEST_ASSERT_EQUAL_UINT_MESSAGE(0, host_count_cpus(no_lists[i]), no_lists[i]);
    }
}
