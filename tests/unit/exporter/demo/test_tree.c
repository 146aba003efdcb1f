#include "exporter/demo/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <unity.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/file.h"
#include "exporter/demo/container.h"
#include "exporter/demo/dir.h"
#include "exporter/demo/text.h"

static const char *const parents[] = {"/tmp", NULL};
static struct demo_dir dir;
static struct demo_tree *tree;
static struct demo_model model;
static struct buf text;

void setUp(void) {
    struct error err = {.text = ""};
    TEST_ASSERT_EQUAL_INT(0, demo_dir_init(&dir, parents, NULL));
    demo_model_init(&model, 1);
    int r = demo_tree_create(dir.path, 1.7e9, &model, &tree, &err);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, r, err.text);
}

void tearDown(void) {
    demo_tree_destroy(tree);
    demo_dir_finish(&dir);
    buf_finish(&text);
}

static const char *content(const char *name) {
    char *path CLEANUP_FREE = file_path_join(dir.path, name);
    struct error err = {.text = ""};
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, file_read(path, &text, &err), err.text);
    return buf_str(&text);
}

static int open_file(const char *name) {
    char *path CLEANUP_FREE = file_path_join(dir.path, name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static void test_units_are_the_kernels(void) {
    TEST_ASSERT_EQUAL_STRING("VDD_SOC\n", content("sys/class/hwmon/hwmon3/in3_label"));
    double millivolts = atof(content("sys/class/hwmon/hwmon3/in3_input"));
    double milliamperes = atof(content("sys/class/hwmon/hwmon3/curr3_input"));
    TEST_ASSERT_DOUBLE_WITHIN(0.005, model.rail_watts[DEMO_RAIL_SOC],
                              millivolts * milliamperes / 1e6);
    TEST_ASSERT_DOUBLE_WITHIN(0.5, 1000 * model.gpu_load,
                              atof(content("sys/devices/17000000.gv11b/load")));
    TEST_ASSERT_DOUBLE_WITHIN(0.5, 1000 * model.zone_celsius[DEMO_ZONE_AO],
                              atof(content("sys/class/thermal/thermal_zone3/temp")));
    TEST_ASSERT_DOUBLE_WITHIN(
        0.5, model.cpu_hertz[5] / 1000,
        atof(content("sys/devices/system/cpu/cpu5/cpufreq/scaling_cur_freq")));
    TEST_ASSERT_NOT_NULL(strstr(content("proc/stat"), "\nbtime 1700000000\n"));
}

static void test_device_tree_texts_end_in_nul(void) {
    static const char model_name[] = "NVIDIA Jetson Xavier NX Developer Kit";
    content("proc/device-tree/model");
    TEST_ASSERT_EQUAL_UINT(sizeof(model_name), text.len);
    TEST_ASSERT_EQUAL_MEMORY(model_name, text.data, sizeof(model_name));
}

static void test_open_files_see_the_change(void) {
    int load CLEANUP_CLOSE = open_file("sys/devices/17000000.gv11b/load");
    int stat CLEANUP_CLOSE = open_file("proc/stat");
    static const double loads[] = {1, 0.999, 0.05, 0, 0.7};
    for (size_t i = 0; i < ARRAY_LEN(loads); i++) {
        char expected[16], seen[16] = {0};
        snprintf(expected, sizeof(expected), "%.0f\n", 1000 * loads[i]);
        model.gpu_load = loads[i];
        model.forks = 5e4 + (double)i;
        TEST_ASSERT_EQUAL_INT(0, demo_tree_update(tree, &model, NULL));
        TEST_ASSERT_TRUE(pread(load, seen, sizeof(seen) - 1, 0) > 0);
        TEST_ASSERT_EQUAL_STRING(expected, seen);
        snprintf(expected, sizeof(expected), " 5000%zu\n", i);
        TEST_ASSERT_EQUAL_INT(0, file_reread(stat, "stat", 1 << 20, &text, NULL));
        TEST_ASSERT_NOT_NULL(strstr(buf_str(&text), expected));
    }
}

/* Else a reader in the midst of a write would see the end of the old text. */
static void test_long_texts_keep_their_length(void) {
    size_t lengths[32] = {0}, container_lengths[64] = {0};
    struct buf out CLEANUP_BUF = {0};
    for (int step = 0; step < 600; step++) {
        demo_model_step(&model, step % 50 == 0 ? 2000 : 0.1);
        for (size_t i = 0; demo_texts[i].path != NULL; i++) {
            buf_reset(&out);
            demo_texts[i].write(&model, 1.7e9, &out);
            TEST_ASSERT_TRUE(lengths[i] == 0 || lengths[i] == out.len);
            lengths[i] = out.len;
        }
        for (size_t i = 0; i < demo_container_n_files(); i++) {
            buf_reset(&out);
            demo_container_write(i, &model, &out);
            TEST_ASSERT_TRUE(container_lengths[i] == 0 || container_lengths[i] == out.len);
            container_lengths[i] = out.len;
        }
    }
}

static void test_says_what_it_cannot_write(void) {
    struct demo_tree *other = NULL;
    struct error err;
    TEST_ASSERT_EQUAL_INT(-ENOTDIR, demo_tree_create("/dev/null", 0, &model, &other, &err));
    TEST_ASSERT_EQUAL_STRING("open /dev/null: Not a directory", err.text);
    TEST_ASSERT_EQUAL_INT(-EEXIST, demo_tree_create(dir.path, 0, &model, &other, &err));
    TEST_ASSERT_NULL(other);
}

/* What makes a Jetson is missing, and the rest is where it was. */
static void test_a_server_is_no_jetson(void) {
    static const struct {
        const char *path;
        bool there;
    } cases[] = {
        {"proc/stat", true},
        {"proc/2214/comm", true},
        {"sys/devices/system/cpu/cpu5/cpufreq/scaling_cur_freq", true},
        {"proc/device-tree/compatible", false},
        {"sys/devices/17000000.gv11b/load", false},
        {"sys/class/hwmon/hwmon3/in3_input", false},
        {"sys/class/thermal/thermal_zone1/temp", false},
        {"sys/kernel/debug/nvmap/iovmm/clients", false},
        {"etc/nv_tegra_release", false},
    };
    tearDown();
    TEST_ASSERT_EQUAL_INT(0, demo_dir_init(&dir, parents, NULL));
    model.board = DEMO_BOARD_SERVER;
    TEST_ASSERT_EQUAL_INT(0, demo_tree_create(dir.path, 1.7e9, &model, &tree, NULL));
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char path[256];
        snprintf(path, sizeof(path), "%s/%s", dir.path, cases[i].path);
        TEST_ASSERT_EQUAL_MESSAGE(cases[i].there, access(path, F_OK) == 0, cases[i].path);
    }
    model.cpu_hertz[5] = 1234e6;
    TEST_ASSERT_EQUAL_INT(0, demo_tree_update(tree, &model, NULL));
    TEST_ASSERT_EQUAL_STRING("1234000\n",
                             content("sys/devices/system/cpu/cpu5/cpufreq/scaling_cur_freq"));
    TEST_ASSERT_NULL(strstr(content("proc/meminfo"), "NvMap"));
}
