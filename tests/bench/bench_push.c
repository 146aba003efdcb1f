#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/hash.h"
#include "exporter/push/files.h"
#include "exporter/push/store.h"
#include "exporter/push/table.h"
#include "tests/bench/stopwatch.h"

/* CPU time of the push store, its table on tmpfs: against the bare hash of a series' text and a
 * store to memory, the bare rendering of labels, the bare reading and checking of the file, and a
 * snapshot that is filled from nowhere. */

enum { N_FEW = 100, N_SERIES = 100000, N_UPDATES = 2000000 };

static char path[] = "/dev/shm/bench_push.XXXXXX";
static struct error err;

static void must(int r) {
    if (r < 0) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
}

static struct push_store *create(void) {
    struct push_store *store = NULL;
    struct push_store_config config = {
        .limits = {.max_owner_series = 2 * N_SERIES, .max_peer_bytes = SIZE_MAX},
        .table_path = path,
        .table_bytes = 256 << 20,
    };
    must(push_store_create(&config, &store, &err));
    return store;
}

static struct push_owner *join(struct push_store *store) {
    struct push_owner *owner = NULL;
    struct push_identity identity = {.plugin = "objcounter", .container = "0123456789ab"};
    must(push_store_owner(store, &identity, &owner, &err));
    return owner;
}

static char numbers[N_SERIES][8];

static void push(struct push_store *store, struct push_owner *owner, size_t number,
                 enum push_type type, enum push_op op, double value) {
    static const char *const names[] = {
        [PUSH_COUNTER] = "frames_total",
        [PUSH_GAUGE] = "level_ratio",
        [PUSH_HISTOGRAM] = "inference_seconds",
        [PUSH_RATE] = "fps",
    };
    struct label labels[] = {{"camera", "top"}, {"stage", numbers[number]}};
    struct push_update update = {.name = names[type],
                                 .type = type,
                                 .op = op,
                                 .labels = labels,
                                 .n_labels = 2,
                                 .values = &value,
                                 .n_values = 1,
                                 .ttl_ms = PUSH_TTL_DEFAULT};
    struct push_batch batch = {.start = 5, .updates = &update, .n_updates = 1};
    must(push_store_apply(store, owner, &batch, NULL, &err));
}

static double measure(struct push_store *store, struct push_owner *owner, size_t n_series,
                      enum push_type type, enum push_op op) {
    for (size_t i = 0; i < n_series; i++) {
        push(store, owner, i, type, op, 0);
    }
    const size_t n_updates = (size_t)stopwatch_count(N_UPDATES);
    double begin = stopwatch_cpu_seconds();
    for (size_t i = 0; i < n_updates; i++) {
        push(store, owner, i * 7919 % n_series, type, op, (double)i);
    }
    return (stopwatch_cpu_seconds() - begin) / (double)n_updates;
}

/* ---- what there is to compare with ---- */

static double words[N_SERIES];

static double measure_bare(size_t n_series) {
    const size_t n_updates = (size_t)stopwatch_count(N_UPDATES);
    double begin = stopwatch_cpu_seconds();
    for (size_t i = 0; i < n_updates; i++) {
        size_t number = i * 7919 % n_series;
        uint64_t hash = hash_seeded(7, "frames_total", 12) + hash_seeded(7, "camera", 6) +
                        hash_seeded(7, "top", 3) + hash_seeded(7, "stage", 5) +
                        hash_seeded(7, numbers[number], strlen(numbers[number]));
        __atomic_store_n((uint64_t *)&words[number], hash, __ATOMIC_RELEASE);
    }
    return (stopwatch_cpu_seconds() - begin) / (double)n_updates;
}

static double measure_labels(void) {
    double begin = stopwatch_cpu_seconds();
    for (size_t i = 0; i < N_SERIES; i++) {
        labels_destroy(labels_render("camera", "top", "container", "0123456789ab", "plugin",
                                     "objcounter", "stage", numbers[i]));
    }
    return (stopwatch_cpu_seconds() - begin) / N_SERIES;
}

static void pass_over(const struct push_entry *entry, uint32_t id, void *context) {
    (void)entry;
    (void)id;
    (void)context;
}

static double measure_reading(void) {
    double begin = stopwatch_cpu_seconds();
    struct push_remains remains CLEANUP_PUSH_REMAINS = {0};
    must(push_recover(PUSH_FILE_TABLE, path, &remains, &err));
    push_pages_scan(remains.file.data + remains.offset, remains.len, pass_over, NULL);
    return stopwatch_cpu_seconds() - begin;
}

static double measure_snapshot(size_t n) {
    static const struct metric_desc desc = {.name = "x", .help = "x", .type = METRIC_GAUGE};
    struct snapshot snapshot CLEANUP_SNAPSHOT = {0};
    double begin = 0;
    for (int round = 0; round < 2; round++) {
        begin = stopwatch_cpu_seconds();
        snapshot_reset(&snapshot);
        for (size_t i = 0; i < n; i++) {
            snapshot_add(&snapshot, &desc, NULL, words[i % N_SERIES]);
        }
    }
    return stopwatch_cpu_seconds() - begin;
}

/* ---- results ---- */

static void update(struct push_store *store, struct push_owner *owner) {
    static const struct {
        const char *what;
        enum push_type type;
        enum push_op op;
    } rows[] = {
        {"add to a counter", PUSH_COUNTER, PUSH_INC},
        {"give a counter's total", PUSH_COUNTER, PUSH_TOTAL},
        {"set a gauge", PUSH_GAUGE, PUSH_SET},
        {"count for a rate", PUSH_RATE, PUSH_INC},
        {"observe, 11 buckets", PUSH_HISTOGRAM, PUSH_OBSERVE},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        double ours = measure(store, owner, N_FEW, rows[i].type, rows[i].op);
        printf("pushed: %s\t%.4g\t%.4g\tbare hash and store\n", rows[i].what, ours,
               measure_bare(N_FEW));
    }
}

static void make_many(struct push_store *store, struct push_owner *owner) {
    double begin = stopwatch_cpu_seconds();
    for (size_t i = N_FEW; i < N_SERIES; i++) {
        push(store, owner, i, PUSH_COUNTER, PUSH_INC, 1);
    }
    double ours = (stopwatch_cpu_seconds() - begin) / (N_SERIES - N_FEW);
    printf("pushed: make a series\t%.4g\t%.4g\tits labels alone\n", ours, measure_labels());
    printf("pushed: add to one of 100000 counters\t%.4g\t%.4g\tbare hash and store\n",
           measure(store, owner, N_SERIES, PUSH_COUNTER, PUSH_INC), measure_bare(N_SERIES));
}

static void take_over(void) {
    double begin = stopwatch_cpu_seconds();
    struct push_remains remains CLEANUP_PUSH_REMAINS = {0};
    must(push_recover(PUSH_FILE_TABLE, path, &remains, &err));
    struct push_store *store = create();
    struct push_load_report report;
    push_store_load(store, remains.file.data + remains.offset, remains.len, &report);
    double ours = stopwatch_cpu_seconds() - begin;
    printf("pushed: take over 100000 series at the start\t%.4g\t%.4g\treading and checking\n", ours,
           measure_reading());
    struct snapshot snapshot CLEANUP_SNAPSHOT = {0};
    struct push_reader *reader = push_reader_create(store);
    push_reader_collect(reader, &snapshot);
    snapshot_reset(&snapshot);
    begin = stopwatch_cpu_seconds();
    push_reader_collect(reader, &snapshot);
    ours = stopwatch_cpu_seconds() - begin;
    printf("pushed: collect 100000 series\t%.4g\t%.4g\ta snapshot alone\n", ours,
           measure_snapshot(snapshot_n_samples(&snapshot)));
    push_reader_destroy(reader);
    push_store_destroy(store);
}

int main(void) {
    int fd = mkstemp(path);
    if (fd < 0) {
        perror(path);
        return 1;
    }
    close(fd);
    for (size_t i = 0; i < N_SERIES; i++) {
        snprintf(numbers[i], sizeof(numbers[i]), "%zu", i);
    }
    struct push_store *store = create();
    struct push_owner *owner = join(store);
    update(store, owner);
    make_many(store, owner);
    must(push_store_publish(store, &err));
    push_store_destroy(store);
    take_over();
    unlink(path);
    return 0;
}
