#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unity.h>

#include "collectors/jetson/jetson.h"
#include "exporter/core/buf.h"
#include "exporter/core/cleanup.h"
#include "exporter/settings/option.h"
#include "exporter/settings/settings.h"
#include "tests/fakes/plant.h"

/* A board's files in a directory of the test's own, and the collector open on them. */

#define NX_UUID "uuid=\"IGPU-d7774e1a-04df-8290-914e-a521e6893e7b\""
#define NX_GPU "gpu=\"0\"," NX_UUID /* of the boards xavier_nx_* */

static struct settings *settings;
static struct snapshot snapshot;
static struct error err;
static void *state;
static char tree[64];
static char procfs[80];
static char sysfs[80];
static struct collector_env env;

static const struct option sample_options[] = {
    {.name = "sample.hz", .type = OPTION_INT, .default_text = "10"},
    {.name = "sample.peak-window", .type = OPTION_DURATION, .default_text = "60s"},
    {.name = "collector.reprobe-interval", .type = OPTION_DURATION, .default_text = "60s"},
};

static inline void run(const char *format, ...) __attribute__((format(printf, 1, 2)));
static inline void run(const char *format, ...) {
    struct buf command CLEANUP_BUF = {0};
    va_list args;
    va_start(args, format);
    buf_vprintf(&command, format, args);
    va_end(args);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, system(buf_str(&command)), buf_str(&command));
}

static inline const char *source_root(void) {
    const char *root = getenv("WAAP_SOURCE_ROOT");
    return root != NULL ? root : ".";
}

static inline void plant_board(const char *board) {
    char manifest[512];
    snprintf(manifest, sizeof(manifest), "%s/tests/fixtures/jetson/%s.tree", source_root(), board);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, plant(manifest, tree, &err), err.text);
}

static inline void set_option(const char *name, const char *text) {
    const struct option *option = settings_option(settings, name);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, settings_set(settings, option, 1, text, &err), err.text);
}

static inline void tree_begin(void) {
    static const struct option *options[16];
    size_t n = 0;
    for (const struct option *option = jetson_collector.options; option->name != NULL; option++) {
        options[n++] = option;
    }
    for (size_t i = 0; i < ARRAY_LEN(sample_options); i++) {
        options[n++] = &sample_options[i];
    }
    settings = settings_create(options, n);
    TEST_ASSERT_NOT_NULL(settings);
    set_option("collector.jetson.nvml", "off");
    set_option("collector.jetson.tegrastats", "off");
    /* Hundreds of small files: in memory where that can be had. */
    bool memory = access("/dev/shm", W_OK) == 0;
    snprintf(tree, sizeof(tree), "%s/test_jetson.XXXXXX", memory ? "/dev/shm" : "/tmp");
    TEST_ASSERT_NOT_NULL(mkdtemp(tree));
    snprintf(procfs, sizeof(procfs), "%s/proc", tree);
    snprintf(sysfs, sizeof(sysfs), "%s/sys", tree);
    env = (struct collector_env){
        .procfs = procfs, .sysfs = sysfs, .cgroupfs = "", .rootfs = tree, .settings = settings};
    snapshot = (struct snapshot){0};
    err = (struct error){{0}};
    state = NULL;
}

/* Without assertions, which would not return after a test that failed. */
static inline void remove_files(const char *pattern) {
    char command[256];
    snprintf(command, sizeof(command), "rm -rf %s", pattern);
    if (system(command) != 0) {
        fprintf(stderr, "%s failed\n", command);
    }
}

static inline void tree_end(void) {
    if (state != NULL) {
        jetson_collector.close(state);
    }
    snapshot_finish(&snapshot);
    settings_destroy(settings);
    remove_files(tree);
}

static inline void open_collector(void) {
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, jetson_collector.open(&env, &state, &err), err.text);
}

static inline int collect_at(int64_t now_ns) {
    snapshot_reset(&snapshot);
    return jetson_collect_at(state, now_ns, &snapshot, &err);
}
