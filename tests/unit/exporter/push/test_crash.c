#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "exporter/push/files.h"
#include "tests/unit/exporter/push/push_fixture.h"
#include "tests/unit/waiting.h"

/* Kills a process that pushes, again and again, at whatever instruction it is. What it had done is
 * there afterwards, once. WAAP_KILLS says how often. */

enum { PLUGINS = 8, KILLS = 100 };

/* What each plugin knows to be done; in memory that outlives the process. */
struct done {
    atomic_ulong incs, totals, frames, sets, series;
};
static struct done *done;

static char directory[] = "/tmp/test_push_crash.XXXXXX";
static char path[64];

static struct push_store *open_store(void) {
    struct push_store *store = NULL;
    struct error err = {0};
    struct push_store_config config = fixture_config();
    config.table_path = path;
    config.table_bytes = 16 << 20;
    config.limits.max_owner_series = 100000;
    struct push_remains remains CLEANUP_PUSH_REMAINS = {0};
    int found = push_recover(PUSH_FILE_TABLE, path, &remains, &err);
    TEST_ASSERT_TRUE_MESSAGE(found == 0 || found == -ENOENT, err.text);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, push_store_create(&config, &store, &err), err.text);
    if (found == 0) {
        struct push_load_report report;
        push_store_load(store, remains.file.data + remains.offset, remains.len, &report);
        TEST_ASSERT_EQUAL_UINT64(0, report.n_damaged_pages);
        /* A family or total without its series is what a kill may leave; nothing else. */
        TEST_ASSERT_LESS_THAN_UINT64(3, report.n_dropped);
    }
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, push_store_publish(store, &err), err.text);
    return store;
}

static void must(int r) {
    if (r < 0) {
        fprintf(stderr, "%s\n", fixture_err.text);
        _exit(3);
    }
}

static void push_total(struct push_store *store, struct push_owner *owner, uint64_t start,
                       double total) {
    struct push_update update = {.name = "totals",
                                 .type = PUSH_COUNTER,
                                 .op = PUSH_TOTAL,
                                 .values = &total,
                                 .n_values = 1,
                                 .ttl_ms = -1};
    must(fixture_apply(store, owner, PUSH_MERGE, start, &update, 1));
}

static void observe(struct push_store *store, struct push_owner *owner) {
    static const double values[] = {0.25, 4};
    static const double bounds[] = {1};
    struct push_update update = {.name = "frames",
                                 .type = PUSH_HISTOGRAM,
                                 .op = PUSH_OBSERVE,
                                 .values = values,
                                 .n_values = 2,
                                 .bounds = bounds,
                                 .n_bounds = 1,
                                 .ttl_ms = -1};
    must(fixture_apply(store, owner, PUSH_MERGE, 0, &update, 1));
}

static void add_series(struct push_store *store, struct push_owner *owner, unsigned long number) {
    char text[24];
    snprintf(text, sizeof(text), "%lu", number);
    struct label label = {"number", text};
    double value = (double)number + 1;
    struct push_update update = {.name = "many",
                                 .type = PUSH_GAUGE,
                                 .labels = &label,
                                 .n_labels = 1,
                                 .values = &value,
                                 .n_values = 1,
                                 .ttl_ms = -1};
    must(fixture_apply(store, owner, PUSH_MERGE, 0, &update, 1));
}

/* Makes entries die, so that the table is copied now and then. */
static void churn(struct push_store *store, struct push_owner *group, unsigned long number) {
    char name[32];
    snprintf(name, sizeof(name), "churn_%lu", number);
    static const double one = 1;
    struct push_update update = {
        .name = name, .type = PUSH_GAUGE, .values = &one, .n_values = 1, .ttl_ms = -1};
    must(fixture_apply(store, group, PUSH_REPLACE_ALL, 0, &update, 1));
}

static void push_for_ever(uint64_t start) {
    struct push_store *store = open_store();
    struct push_owner *owners[PLUGINS];
    for (size_t i = 0; i < PLUGINS; i++) {
        owners[i] = fixture_plugin(store, (const char[]){(char)('a' + i), '\0'});
    }
    struct push_owner *group = fixture_group(store, "churn");
    for (unsigned long round = 0;; round++) {
        struct push_owner *owner = owners[round % PLUGINS];
        struct done *own = &done[round % PLUGINS];
        must(fixture_push(store, owner, "incs", PUSH_COUNTER, PUSH_INC, 1));
        own->incs++;
        push_total(store, owner, start, (double)(own->totals + 1));
        own->totals++;
        observe(store, owner);
        own->frames++;
        must(fixture_push(store, owner, "sets", PUSH_GAUGE, PUSH_SET, (double)(own->sets + 1)));
        own->sets++;
        if (round % 64 == 0) {
            add_series(store, owner, own->series);
            own->series++;
            churn(store, group, start * 1000000 + round);
        }
    }
}

struct found {
    double incs, totals, sets, frames[3], many;
    unsigned long n_many;
};

static bool find(const struct push_series_view *series, void *context) {
    struct found *found = context;
    if (strcmp(series->name, "incs_total") == 0) {
        found->incs = series->values[0];
    } else if (strcmp(series->name, "totals_total") == 0) {
        found->totals = series->values[0];
    } else if (strcmp(series->name, "sets") == 0) {
        found->sets = series->values[0];
    } else if (strcmp(series->name, "frames") == 0) {
        memcpy(found->frames, series->values, sizeof(found->frames));
    } else if (strcmp(series->name, "many") == 0) {
        TEST_ASSERT_EQUAL_DOUBLE(atof(series->labels[0].value) + 1, series->values[0]);
        found->n_many++;
    }
    return true;
}

/* All that was done, and at most one that nobody was told of. */
static void expect(const char *what, unsigned long known, double there) {
    char words[80];
    snprintf(words, sizeof(words), "%s: %lu done, %.0f there", what, known, there);
    TEST_ASSERT_TRUE_MESSAGE(there == (double)known || there == (double)known + 1, words);
}

static void verify(uint64_t start) {
    struct push_store *store = open_store();
    for (size_t i = 0; i < PLUGINS; i++) {
        struct push_owner *owner = fixture_plugin(store, (const char[]){(char)('a' + i), '\0'});
        struct found found = {0};
        push_store_visit(store, owner, find, &found);
        expect("incs", done[i].incs, found.incs);
        expect("totals", done[i].totals, found.totals);
        expect("sets", done[i].sets, found.sets);
        expect("series", done[i].series, (double)found.n_many);
        expect("frames", done[i].frames, found.frames[0]);
        TEST_ASSERT_EQUAL_DOUBLE(2 * found.frames[0], found.frames[1]);
        TEST_ASSERT_EQUAL_DOUBLE(4.25 * found.frames[0], found.frames[2]);
        done[i].incs = (unsigned long)found.incs;
        done[i].frames = (unsigned long)found.frames[0];
        done[i].sets = (unsigned long)found.sets;
        done[i].series = found.n_many;
        if (done[i].totals > 0) { /* sent again, as a peer does that was not answered */
            push_total(store, owner, start, (double)(done[i].totals + 1));
            done[i].totals++;
            memset(&found, 0, sizeof(found));
            push_store_visit(store, owner, find, &found);
            TEST_ASSERT_EQUAL_DOUBLE((double)done[i].totals, found.totals);
        }
        push_owner_unref(store, owner);
    }
    push_store_destroy(store);
}

static void test_nothing_is_lost_or_doubled(void) {
    const char *text = getenv("WAAP_KILLS");
    int n_kills = text != NULL ? atoi(text) : KILLS;
    const uint64_t start = 5;
    srand((unsigned)time(NULL));
    for (int i = 0; i < n_kills; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            push_for_ever(start);
        }
        TEST_ASSERT_GREATER_THAN(0, pid);
        pace_ms(3 + rand() % 15);
        kill(pid, SIGKILL);
        int status = 0;
        TEST_ASSERT_EQUAL_INT(pid, waitpid(pid, &status, 0));
        TEST_ASSERT_TRUE(WIFSIGNALED(status));
        verify(start);
    }
    unsigned long n = 0;
    for (size_t i = 0; i < PLUGINS; i++) {
        n += done[i].incs + done[i].totals + done[i].frames + done[i].sets + done[i].series;
    }
    printf("%d kills, %lu updates\n", n_kills, n);
    TEST_ASSERT_GREATER_THAN(1000, n);
}

void suiteSetUp(void) {
    done = mmap(NULL, PLUGINS * sizeof(*done), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                -1, 0);
    if (done == MAP_FAILED || mkdtemp(directory) == NULL) {
        exit(1);
    }
    snprintf(path, sizeof(path), "%s/table", directory);
}

int suiteTearDown(int failures) {
    unlink(path);
    rmdir(directory);
    return failures;
}
