#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <unity.h>

#include "collectors/collector.h"
#include "exporter/core/buf.h"
#include "exporter/core/cleanup.h"
#include "exporter/settings/option.h"
#include "exporter/settings/settings.h"
#include "tests/unit/snapshot_find.h"

/* A collector on a directory of the test's own, which begins as a copy of recorded files. */

static const struct collector *collector;
static struct settings *settings;
static struct snapshot snapshot;
static struct error err;
static void *state; /* NULL: not open */
static char tree[64];
static char procfs[80], sysfs[80], cgroupfs[80], rootfs[80]; /* below it */
static struct collector_env env;

/* Runs a command in the directory. */
static inline void run(const char *format, ...) __attribute__((format(printf, 1, 2)));
static inline void run(const char *format, ...) {
    struct buf command CLEANUP_BUF = {0};
    va_list args;
    va_start(args, format);
    buf_printf(&command, "cd '%s' && ", tree);
    buf_vprintf(&command, format, args);
    va_end(args);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, system(buf_str(&command)), buf_str(&command));
}

static inline void set_option(const char *name, const char *text) {
    const struct option *option = settings_option(settings, name);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, settings_set(settings, option, 1, text, &err), err.text);
}

/* Where cgroups are looked for: a name in the directory. */
static inline void use_cgroups(const char *name) {
    snprintf(cgroupfs, sizeof(cgroupfs), "%s/%s", tree, name);
}

static inline void tree_begin(const struct collector *tested, const char *fixtures) {
    static const struct option window = {
        .name = "sample.peak-window", .type = OPTION_DURATION, .default_text = "60s"};
    static const struct option *options[24] = {&window};
    size_t n = 1;
    for (const struct option *option = tested->options; option->name != NULL; option++) {
        options[n++] = option;
    }
    collector = tested;
    settings = settings_create(options, n);
    TEST_ASSERT_NOT_NULL(settings);
    snprintf(tree, sizeof(tree), "/tmp/test_%s.XXXXXX", tested->name);
    TEST_ASSERT_NOT_NULL(mkdtemp(tree));
    const char *source = getenv("WAAP_SOURCE_ROOT");
    char *here CLEANUP_FREE = get_current_dir_name();
    run("cp -a '%s/tests/fixtures/%s/.' .", source != NULL ? source : here, fixtures);
    snprintf(procfs, sizeof(procfs), "%s/proc", tree);
    snprintf(sysfs, sizeof(sysfs), "%s/sys", tree);
    snprintf(rootfs, sizeof(rootfs), "%s/root", tree);
    use_cgroups("v2");
    env = (struct collector_env){.procfs = procfs,
                                 .sysfs = sysfs,
                                 .cgroupfs = cgroupfs,
                                 .rootfs = rootfs,
                                 .settings = settings};
    snapshot = (struct snapshot){0};
    err = (struct error){{0}};
    state = NULL;
}

static inline void tree_end(void) {
    if (state != NULL) {
        collector->close(state);
    }
    snapshot_finish(&snapshot);
    settings_destroy(settings);
    run("rm -rf '%s'", tree);
}

static inline int collect(void) {
    if (state == NULL) {
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, collector->open(&env, &state, &err), err.text);
    }
    snapshot_reset(&snapshot);
    return collector->collect(state, &snapshot, &err);
}

/* The sample of `name{labels}` or NULL; two of them are a failure. */
static inline const struct sample *find(const char *name, const char *labels) {
    return snapshot_find(&snapshot, name, labels);
}

/* How many samples the family of that name has. */
static inline size_t count(const char *name) {
    for (size_t i = 0; i < snapshot.n_families; i++) {
        if (strcmp(snapshot.families[i].desc->name, name) == 0) {
            return snapshot.families[i].n_samples;
        }
    }
    return 0;
}

static inline void check(const char *name, const char *labels, double value) {
    const struct sample *sample = find(name, labels);
    TEST_ASSERT_NOT_NULL_MESSAGE(sample, name);
    TEST_ASSERT_EQUAL_DOUBLE_MESSAGE(value, sample->value, name);
}
