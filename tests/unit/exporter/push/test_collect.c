#include <pthread.h>
#include <stdatomic.h>

#include "exporter/push/private.h"
#include "tests/unit/exporter/push/push_fixture.h"

/* One thread scrapes and renders while another pushes and removes: nothing that a page refers to
 * may go away before it is rendered. */

enum { SCRAPES = 150 };

static struct push_store *store;
static atomic_bool over;
static atomic_ulong n_rounds;

void setUp(void) {
    struct error err;
    struct push_store_config config = fixture_config();
    config.limits.max_owner_series = 10000;
    TEST_ASSERT_EQUAL_INT(0, push_store_create(&config, &store, &err));
}

void tearDown(void) {
    push_store_destroy(store);
}

static bool is_odd(const struct push_series_view *series, void *context) {
    (void)context;
    return series->n_labels == 1 && atoi(series->labels[0].value) % 2 == 1;
}

static void push_round(struct push_owner *owner, struct push_owner *group, unsigned long round) {
    static const double values[] = {1, 2, 3};
    char number[24], name[32];
    snprintf(number, sizeof(number), "%lu", round % 200);
    snprintf(name, sizeof(name), "family_%lu", round % 10);
    struct label label = {"number", number};
    struct push_update updates[] = {
        {.name = "many", .type = PUSH_GAUGE, .labels = &label, .n_labels = 1},
        {.name = "seconds", .type = PUSH_HISTOGRAM, .op = PUSH_OBSERVE},
        {.name = "fps", .type = PUSH_RATE, .op = PUSH_INC},
    };
    for (size_t i = 0; i < ARRAY_LEN(updates); i++) {
        updates[i].values = values;
        updates[i].n_values = 1;
        updates[i].ttl_ms = PUSH_TTL_DEFAULT;
        updates[i].help = round % 3 == 0 ? "Some help" : NULL;
    }
    fixture_apply(store, owner, PUSH_MERGE, 0, updates, ARRAY_LEN(updates));
    updates[0].name = name;
    fixture_apply(store, group, PUSH_REPLACE_ALL, 0, updates, 1);
}

static void *push_until_over(void *context) {
    (void)context;
    struct push_owner *group = fixture_group(store, "g");
    for (unsigned long round = 0; !over; round++) {
        struct push_owner *owner = fixture_plugin(store, round % 2 == 0 ? "a" : "b");
        push_round(owner, group, round);
        if (round % 100 == 99) {
            push_store_remove_if(store, is_odd, NULL);
        }
        if (round % 500 == 499) {
            push_store_remove_owner(store, owner);
        }
        push_owner_unref(store, owner);
        push_store_expire(store, SIZE_MAX);
        n_rounds++;
    }
    return NULL;
}

static void test_scrapes_and_pushes_at_once(void) {
    pthread_t thread;
    TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, push_until_over, NULL));
    struct exposition_renderer renderer = {0};
    struct push_reader *reader = push_reader_create(store);
    struct snapshot snapshot CLEANUP_SNAPSHOT = {0};
    unsigned long before = 0;
    for (int i = 0; i < SCRAPES; i++) {
        while (n_rounds == before) {
            sched_yield();
        }
        before = n_rounds;
        snapshot_reset(&snapshot);
        push_reader_collect(reader, &snapshot);
        uint64_t duplicates = 0;
        struct exposition_part *part = exposition_render(&renderer, &snapshot, &duplicates);
        TEST_ASSERT_NOT_NULL(part);
        TEST_ASSERT_EQUAL_UINT64(0, duplicates);
        exposition_part_unref(part);
    }
    over = true;
    pthread_join(thread, NULL);
    exposition_renderer_finish(&renderer);
    push_reader_destroy(reader);
    TEST_ASSERT_GREATER_THAN_UINT64(SCRAPES, n_rounds);
}

/* What a snapshot refers to stays, however many others take theirs meanwhile. */
static void test_a_slow_reader(void) {
    struct push_owner *owner = fixture_plugin(store, "slow");
    struct push_reader *slow = push_reader_create(store), *others[3];
    struct snapshot snapshot CLEANUP_SNAPSHOT = {0};
    fixture_push(store, owner, "odd", PUSH_GAUGE, PUSH_SET, 1);
    push_reader_collect(slow, &snapshot);
    push_store_remove_owner(store, owner);
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        struct snapshot other CLEANUP_SNAPSHOT = {0};
        others[i] = push_reader_create(store);
        push_reader_collect(others[i], &other);
        push_reader_collect(others[i], &other);
    }
    struct exposition_part *part = exposition_part_create(&snapshot, NULL);
    struct buf page CLEANUP_BUF = {0};
    exposition_text(&page, (struct exposition_choice){EXPOSITION_TEXT, 0}, &part, 1, NULL);
    exposition_part_unref(part);
    TEST_ASSERT_NOT_NULL(strstr(buf_str(&page), "odd{plugin=\"slow\"} 1\n"));
    push_reader_destroy(slow);
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        push_reader_destroy(others[i]);
    }
    push_owner_unref(store, owner);
}

struct collection {
    struct push_reader *reader;
    struct snapshot snapshot;
    pthread_t thread;
};

static void *collect(void *context) {
    struct collection *collection = context;
    push_reader_collect(collection->reader, &collection->snapshot);
    return NULL;
}

static void begin_collection(struct collection *collection, uint64_t number) {
    snapshot_reset(&collection->snapshot);
    TEST_ASSERT_EQUAL_INT(0, pthread_create(&collection->thread, NULL, collect, collection));
    for (bool begun = false; !begun; sched_yield()) { /* it then waits for the loop */
        pthread_mutex_lock(&store->lock);
        begun = store->collections == number;
        pthread_mutex_unlock(&store->lock);
    }
}

/* An older collection that goes on behind a newer one, as during a reload, does not make a series
 * the older one's alone. */
static void test_two_readers_at_once(void) {
    enum { TRIES = 40, SERIES = 400 };
    struct collection older = {0}, newer = {0};
    newer.reader = push_reader_create(store);
    for (uint64_t i = 0; i < TRIES; i++) {
        struct push_owner *owner = fixture_plugin(store, "p");
        for (int k = 0; k < SERIES; k++) {
            char name[16];
            snprintf(name, sizeof(name), "m%d", k);
            fixture_push(store, owner, name, PUSH_GAUGE, PUSH_SET, 1);
        }
        older.reader = push_reader_create(store);
        atomic_fetch_add(&store->n_waiting, 1);
        begin_collection(&older, 2 * i + 1);
        begin_collection(&newer, 2 * i + 2);
        atomic_fetch_sub(&store->n_waiting, 1);
        pthread_join(older.thread, NULL);
        pthread_join(newer.thread, NULL);
        push_store_remove_owner(store, owner);
        push_reader_destroy(older.reader);
        struct exposition_part *part = exposition_part_create(&newer.snapshot, NULL);
        exposition_part_unref(part);
        push_owner_unref(store, owner);
    }
    push_reader_destroy(newer.reader);
    snapshot_finish(&older.snapshot);
    snapshot_finish(&newer.snapshot);
}
