#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectors/jetson/jetson.h"
#include "exporter/core/buf.h"
#include "exporter/core/cleanup.h"
#include "exporter/core/clock.h"
#include "exporter/settings/option.h"
#include "exporter/settings/settings.h"
#include "tests/bench/stopwatch.h"
#include "tests/fakes/plant.h"

/* CPU time of one sample and one collection on the files of a Xavier NX, against the bare reading
 * of the files that a sample needs. Usage: bench_jetson MANIFEST */

enum { N_ROUNDS = 2000, N_TURNS = 5 };

static const char *const sampled[] = {
    "sys/devices/17000000.gv11b/load",    "sys/class/hwmon/hwmon3/in1_input",
    "sys/class/hwmon/hwmon3/curr1_input", "sys/class/hwmon/hwmon3/in2_input",
    "sys/class/hwmon/hwmon3/curr2_input", "sys/class/hwmon/hwmon3/in3_input",
    "sys/class/hwmon/hwmon3/curr3_input",
};

static char tree[] = "/tmp/bench_jetson.XXXXXX";
static char procfs[64], sysfs[64];
static char paths[ARRAY_LEN(sampled)][128];

static void read_bare(void) {
    char text[64];
    for (size_t i = 0; i < ARRAY_LEN(sampled); i++) {
        int fd CLEANUP_CLOSE = open(paths[i], O_RDONLY | O_CLOEXEC);
        if (fd < 0 || read(fd, text, sizeof(text)) <= 0) {
            perror(paths[i]);
            exit(1);
        }
    }
}

static struct settings *make_settings(void) {
    static const struct option own[] = {
        {.name = "collector.reprobe-interval", .type = OPTION_DURATION, .default_text = "60s"},
        {.name = "sample.hz", .type = OPTION_INT, .default_text = "10"},
        {.name = "sample.peak-window", .type = OPTION_DURATION, .default_text = "60s"},
    };
    static const struct option *options[16];
    size_t n = 0;
    for (const struct option *option = jetson_collector.options; option->name != NULL; option++) {
        options[n++] = option;
    }
    for (size_t i = 0; i < ARRAY_LEN(own); i++) {
        options[n++] = &own[i];
    }
    struct settings *settings = settings_create(options, n);
    settings_set(settings, settings_option(settings, "collector.jetson.tegrastats"), 1, "off",
                 NULL);
    return settings;
}

static void *open_jetson(const struct settings *settings) {
    static struct collector_env env;
    env = (struct collector_env){
        .procfs = procfs, .sysfs = sysfs, .cgroupfs = "", .rootfs = tree, .settings = settings};
    struct error err;
    void *state = NULL;
    if (jetson_collector.open(&env, &state, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    return state;
}

static void make_tree(const char *manifest) {
    struct error err;
    if (mkdtemp(tree) == NULL || plant(manifest, tree, &err) < 0) {
        fprintf(stderr, "%s: %s\n", manifest, err.text);
        exit(1);
    }
    snprintf(procfs, sizeof(procfs), "%s/proc", tree);
    snprintf(sysfs, sizeof(sysfs), "%s/sys", tree);
    for (size_t i = 0; i < ARRAY_LEN(sampled); i++) {
        snprintf(paths[i], sizeof(paths[i]), "%s/%s", tree, sampled[i]);
    }
}

static void remove_tree(void) {
    char command[96];
    snprintf(command, sizeof(command), "rm -rf '%s'", tree);
    if (system(command) != 0) {
        fprintf(stderr, "%s failed\n", command);
    }
}

static void keep_least(double *least, double begin, double end, int n_rounds) {
    double each = (end - begin) / n_rounds;
    *least = each < *least ? each : *least;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: %s MANIFEST\n", argv[0]);
        return 2;
    }
    make_tree(argv[1]);
    struct settings *settings CLEANUP_SETTINGS = make_settings();
    struct snapshot snapshot CLEANUP_SNAPSHOT = {0};
    void *jetson = open_jetson(settings);
    const int n_rounds = stopwatch_count(N_ROUNDS);
    double bare = 1, sample = 1, collect = 1;
    int64_t now_ns = CLOCK_NS_PER_SEC;
    for (int turn = 0; turn < stopwatch_count(N_TURNS); turn++) {
        double begin = stopwatch_cpu_seconds();
        for (int i = 0; i < n_rounds; i++) {
            read_bare();
        }
        double middle = stopwatch_cpu_seconds();
        for (int i = 0; i < n_rounds; i++, now_ns += CLOCK_NS_PER_SEC / 10) {
            jetson_sample_at(jetson, now_ns);
        }
        double end = stopwatch_cpu_seconds();
        keep_least(&bare, begin, middle, n_rounds);
        keep_least(&sample, middle, end, n_rounds);
        for (int i = 0; i < n_rounds; i++) {
            snapshot_reset(&snapshot);
            jetson_collect_at(jetson, now_ns, &snapshot, NULL);
        }
        keep_least(&collect, end, stopwatch_cpu_seconds(), n_rounds);
    }
    printf("jetson: one sample\t%.9f\t%.9f\topen, read, close\n", sample, bare);
    printf("jetson: collect, per series\t%.9f\n", collect / (double)snapshot_n_samples(&snapshot));
    jetson_collector.close(jetson);
    remove_tree();
    return 0;
}
