#include "exporter/http/process_metrics.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <unity.h>

#include "exporter/core/clock.h"

static struct exposition_part *part;

void setUp(void) {
    part = process_metrics_part();
    TEST_ASSERT_NOT_NULL(part);
}

void tearDown(void) {
    exposition_part_unref(part);
}

static double value_of(const char *name) {
    size_t n;
    const struct exposition_block *blocks = exposition_part_blocks(part, &n);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(blocks[i].name, name) == 0) {
            return strtod((const char *)blocks[i].pieces[0].iov_base + strlen(name), NULL);
        }
    }
    return NAN;
}

static int n_entries(const char *path) {
    DIR *dir = opendir(path);
    TEST_ASSERT_NOT_NULL(dir);
    int n = 0;
    const struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) {
        n += entry->d_name[0] != '.';
    }
    closedir(dir);
    return n;
}

/* qemu-user makes up /proc/self/stat and takes no limit of memory. */
static void ignore_if_emulated(void) {
    const char *emulator = getenv("WAAP_EMULATOR");
    if (emulator != NULL && emulator[0] != '\0') {
        TEST_IGNORE_MESSAGE("not under emulation");
    }
}

static void test_values_are_plausible(void) {
    ignore_if_emulated();
    double page = (double)sysconf(_SC_PAGESIZE);
    TEST_ASSERT_EQUAL_DOUBLE(n_entries("/proc/self/task"), value_of("process_threads"));
    TEST_ASSERT_TRUE(value_of("process_resident_memory_bytes") >= 50 * page);
    TEST_ASSERT_TRUE(value_of("process_virtual_memory_bytes") >
                     value_of("process_resident_memory_bytes"));
    TEST_ASSERT_DOUBLE_WITHIN(60, clock_wall_seconds(), value_of("process_start_time_seconds"));
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    TEST_ASSERT_EQUAL_DOUBLE((double)limit.rlim_cur, value_of("process_max_fds"));
}

static void again(void) {
    exposition_part_unref(part);
    part = process_metrics_part();
}

static void test_open_descriptors_are_counted_without_the_one_for_counting(void) {
    double before = value_of("process_open_fds");
    TEST_ASSERT_TRUE(before >= 3);
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    again();
    TEST_ASSERT_EQUAL_DOUBLE(before + 1, value_of("process_open_fds"));
    close(fd);
    again();
    TEST_ASSERT_EQUAL_DOUBLE(before, value_of("process_open_fds"));
}

static void test_cpu_time_rises_finely(void) {
    double before = value_of("process_cpu_seconds_total");
    clock_t until = clock() + CLOCKS_PER_SEC / 50;
    while (clock() < until) {
    }
    again();
    TEST_ASSERT_DOUBLE_WITHIN(0.5, before + 0.02, value_of("process_cpu_seconds_total"));
    TEST_ASSERT_TRUE(value_of("process_cpu_seconds_total") > before + 0.015);
}

static void test_limit_of_memory_is_shown_only_if_there_is_one(void) {
    ignore_if_emulated();
    struct rlimit before;
    getrlimit(RLIMIT_AS, &before);
    if (before.rlim_cur == RLIM_INFINITY) {
        TEST_ASSERT_TRUE(isnan(value_of("process_virtual_memory_max_bytes")));
    }
    struct rlimit limit = {.rlim_cur = INT64_C(1) << 62, .rlim_max = before.rlim_max};
    setrlimit(RLIMIT_AS, &limit);
    again();
    setrlimit(RLIMIT_AS, &before);
    TEST_ASSERT_EQUAL_DOUBLE((double)(INT64_C(1) << 62),
                             value_of("process_virtual_memory_max_bytes"));
}

static void test_all_that_is_shown_is_listed(void) {
    size_t n;
    const struct exposition_block *blocks = exposition_part_blocks(part, &n);
    TEST_ASSERT_GREATER_OR_EQUAL_size_t(7, n);
    for (size_t i = 0; i < n; i++) {
        bool found = false;
        for (size_t k = 0; process_metrics[k].name != NULL; k++) {
            found |= strcmp(process_metrics[k].name, blocks[i].name) == 0;
        }
        TEST_ASSERT_TRUE_MESSAGE(found, blocks[i].name);
    }
}
