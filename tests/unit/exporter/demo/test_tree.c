#include "exporter/demo/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <unity.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/file.h"
#include "exporter/demo/container.h"

static char parent[] = "/tmp/waap-test-XXXXXX";
static const char *const parents[] = {"/dev/null/nowhere", parent, NULL};
static struct demo_dir dir;
static struct demo_tree *tree;
static struct demo_model model;
static struct buf text;

static void make_tree(enum demo_board board) {
    struct error err = {.text = ""};
    TEST_ASSERT_EQUAL_INT(0, demo_dir_init(&dir, parents, NULL));
    demo_model_init(&model, 1);
    model.boot_seconds = 1.7e9;
    model.board = board;
    int r = demo_tree_create(dir.path, &model, &tree, &err);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, r, err.text);
}

static void remove_tree(void) {
    demo_tree_destroy(tree);
    demo_dir_finish(&dir);
    buf_finish(&text);
}

void setUp(void) {
    strcpy(parent + strlen(parent) - 6, "XXXXXX");
    TEST_ASSERT_NOT_NULL(mkdtemp(parent));
    make_tree(DEMO_BOARD_XAVIER_NX);
}

void tearDown(void) {
    remove_tree();
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, rmdir(parent), "something is left");
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
            demo_texts[i].write(&model, &out);
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
    TEST_ASSERT_EQUAL_INT(-ENOTDIR, demo_tree_create("/dev/null", &model, &other, &err));
    TEST_ASSERT_EQUAL_STRING("open /dev/null: Not a directory", err.text);
    TEST_ASSERT_EQUAL_INT(-EEXIST, demo_tree_create(dir.path, &model, &other, &err));
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
    remove_tree();
    make_tree(DEMO_BOARD_SERVER);
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

/* ---- the directory ---- */

static bool exists(const char *path) {
    return access(path, F_OK) == 0;
}

static void make_file(const char *in) {
    char path[256];
    snprintf(path, sizeof(path), "%s/sub", in);
    TEST_ASSERT_EQUAL_INT(0, mkdir(path, 0700));
    snprintf(path, sizeof(path), "%s/sub/file", in);
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    TEST_ASSERT_TRUE(fd >= 0);
    close(fd);
}

static void test_is_private_and_goes_with_its_content(void) {
    struct demo_dir own;
    struct stat stat_buf;
    TEST_ASSERT_EQUAL_INT(0, demo_dir_init(&own, parents, NULL));
    TEST_ASSERT_EQUAL_STRING_LEN(parent, own.path, strlen(parent));
    TEST_ASSERT_EQUAL_INT(0, stat(own.path, &stat_buf));
    TEST_ASSERT_EQUAL_INT(0700, stat_buf.st_mode & 07777);
    make_file(own.path);
    demo_dir_finish(&own);
    TEST_ASSERT_NULL(own.path);
    demo_dir_finish(&own);
}

static void test_left_ones_go_and_used_ones_stay(void) {
    char left[256], foreign[256];
    snprintf(left, sizeof(left), "%s/waap-demo-left", parent);
    snprintf(foreign, sizeof(foreign), "%s/other-left", parent);
    TEST_ASSERT_EQUAL_INT(0, mkdir(left, 0700));
    TEST_ASSERT_EQUAL_INT(0, mkdir(foreign, 0700));
    make_file(left);

    struct demo_dir first, second;
    TEST_ASSERT_EQUAL_INT(0, demo_dir_init(&first, parents, NULL));
    TEST_ASSERT_FALSE(exists(left));
    TEST_ASSERT_TRUE(exists(foreign));
    TEST_ASSERT_EQUAL_INT(0, demo_dir_init(&second, parents, NULL));
    TEST_ASSERT_TRUE(exists(first.path));
    demo_dir_finish(&first);
    TEST_ASSERT_TRUE(exists(second.path));
    demo_dir_finish(&second);
    TEST_ASSERT_EQUAL_INT(0, rmdir(foreign));
}

/* Removing a left directory must not follow links out of it. */
static void test_links_are_not_followed(void) {
    char target[256], link[256], file[300];
    snprintf(target, sizeof(target), "%s/target", parent);
    snprintf(link, sizeof(link), "%s/waap-demo-link", parent);
    TEST_ASSERT_EQUAL_INT(0, mkdir(target, 0700));
    make_file(target);
    TEST_ASSERT_EQUAL_INT(0, symlink(target, link));
    struct demo_dir own;
    TEST_ASSERT_EQUAL_INT(0, demo_dir_init(&own, parents, NULL));
    demo_dir_finish(&own);
    snprintf(file, sizeof(file), "%s/sub/file", target);
    TEST_ASSERT_EQUAL_INT(0, unlink(file));
    snprintf(file, sizeof(file), "%s/sub", target);
    rmdir(file);
    rmdir(target);
    unlink(link);
}

static void test_says_where_it_failed(void) {
    static const char *const nowhere[] = {"/dev/null/nowhere", NULL};
    struct demo_dir own;
    struct error err;
    TEST_ASSERT_EQUAL_INT(-ENOTDIR, demo_dir_init(&own, nowhere, &err));
    TEST_ASSERT_EQUAL_STRING("create a directory in /dev/null/nowhere: Not a directory", err.text);
}
