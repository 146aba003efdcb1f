#include "collectors/source/energy.h"

#include <math.h>
#include <pthread.h>
#include <unity.h>

static struct energy *energy;
static struct energy_list list;

void setUp(void) {
    energy = energy_create();
    TEST_ASSERT_NOT_NULL(energy);
}

void tearDown(void) {
    energy_list_finish(&list);
    energy_destroy(energy);
}

static void put(struct energy_meter *meter, double joules) {
    struct energy_reading reading = {.joules = joules, .seconds = joules / 2, .gpu_joules = NAN};
    energy_meter_put(meter, &reading, NULL, 0);
}

static void test_what_is_put_is_read(void) {
    static const struct energy_share shares[] = {{"/docker/a", 0.75}, {"/docker/b", 0.25}};
    struct energy_meter *module = energy_meter_open(energy, "jetson");
    struct energy_meter *card = energy_meter_open(energy, "GPU-1");
    struct energy_reading reading = {
        .joules = 7, .seconds = 3, .gpu_joules = 2, .gpu_busy_seconds = 1};
    energy_meter_put(module, &reading, shares, 2);
    put(card, 4);
    energy_read(energy, &list);
    TEST_ASSERT_EQUAL_UINT64(2, list.n_rows);
    TEST_ASSERT_TRUE(list.rows[0].meter != list.rows[1].meter);
    TEST_ASSERT_EQUAL_DOUBLE(7, list.rows[0].reading.joules);
    TEST_ASSERT_EQUAL_DOUBLE(1, list.rows[0].reading.gpu_busy_seconds);
    TEST_ASSERT_EQUAL_UINT64(2, list.rows[0].n_shares);
    TEST_ASSERT_EQUAL_STRING("/docker/b", list.rows[0].shares[1].id);
    TEST_ASSERT_EQUAL_DOUBLE(0.25, list.rows[0].shares[1].ratio);
    TEST_ASSERT_EQUAL_DOUBLE(4, list.rows[1].reading.joules);
    put(module, 8);
    energy_read(energy, &list);
    TEST_ASSERT_EQUAL_DOUBLE(8, list.rows[0].reading.joules);
    TEST_ASSERT_EQUAL_UINT64(0, list.rows[0].n_shares);
    energy_meter_close(module);
    energy_read(energy, &list);
    TEST_ASSERT_EQUAL_UINT64(1, list.n_rows);
    TEST_ASSERT_EQUAL_DOUBLE(4, list.rows[0].reading.joules);
    energy_meter_close(card);
}

/* A collector is started again while its predecessor hangs in a driver. */
static void test_a_namesake_takes_over(void) {
    struct energy_meter *old = energy_meter_open(energy, "jetson");
    put(old, 100);
    energy_read(energy, &list);
    uint64_t first = list.rows[0].meter;
    struct energy_meter *other = energy_meter_open(energy, "jetson");
    put(other, 1);
    put(old, 101);
    energy_meter_close(old);
    energy_read(energy, &list);
    TEST_ASSERT_EQUAL_UINT64(1, list.n_rows);
    TEST_ASSERT_EQUAL_DOUBLE(1, list.rows[0].reading.joules);
    TEST_ASSERT_TRUE(list.rows[0].meter != first);
    energy_meter_close(other);
}

static void test_none_is_good(void) {
    TEST_ASSERT_NULL(energy_meter_open(NULL, "jetson"));
    put(NULL, 1);
    energy_meter_close(NULL);
    energy_read(NULL, &list);
    TEST_ASSERT_EQUAL_UINT64(0, list.n_rows);
}

static void *put_many(void *context) {
    static const struct energy_share share = {"/docker/a", 1};
    struct energy_meter *meter = energy_meter_open(energy, context);
    for (int i = 1; i <= 2000; i++) {
        struct energy_reading reading = {.joules = i, .seconds = i};
        energy_meter_put(meter, &reading, &share, 1);
    }
    energy_meter_close(meter);
    return NULL;
}

/* For the sanitizers; a reading is never seen half. */
static void test_threads(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, put_many, "a");
    pthread_create(&threads[1], NULL, put_many, "b");
    for (int i = 0; i < 500; i++) {
        energy_read(energy, &list);
        for (size_t row = 0; row < list.n_rows; row++) {
            const struct energy_reading *reading = &list.rows[row].reading;
            TEST_ASSERT_EQUAL_DOUBLE(reading->joules, reading->seconds);
        }
    }
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    energy_read(energy, &list);
    TEST_ASSERT_EQUAL_UINT64(0, list.n_rows);
}
