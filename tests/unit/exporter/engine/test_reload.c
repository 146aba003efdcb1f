#include "exporter/engine/engine.h"

#include <unity.h>

#include "tests/unit/exporter/engine/engine_puppets.h"

static void test_what_does_not_change_goes_on(void) {
    configure(NULL);
    WAIT_UNTIL(puppet_a.n_opens == 1 && puppet_b.n_opens == 1);
    configure("--web.max-requests=3");
    configure("--collector.b.flavour=sweet");
    WAIT_UNTIL(puppet_b.n_opens == 2 && puppet_b.n_closes == 1);
    TEST_ASSERT_EQUAL_INT(1, puppet_a.n_opens);
    TEST_ASSERT_EQUAL_INT(0, puppet_a.n_closes);
    configure("--no-collector.a");
    TEST_ASSERT_EQUAL_HEX64(B, engine_enabled(engine));
    TEST_ASSERT_FALSE(engine_status(engine, 0).enabled);
    WAIT_UNTIL(puppet_a.n_closes == 1);
}

static void test_a_replaced_collector_is_asked_anew_in_a_shared_round(void) {
    configure(NULL);
    hang(&puppet_a, true);
    hang(&puppet_b, true);
    struct scrape waiting, next;
    begin(&waiting, A | B, 10000);
    WAIT_UNTIL(puppet_b.n_collects == 1);
    configure("--collector.b.flavour=sweet");
    hang(&puppet_b, false);
    TEST_ASSERT_EQUAL_INT(0, waiting.n_finished);
    begin(&next, B, ENDLESS_MS);
    finish(&next);
    TEST_ASSERT_EQUAL_HEX64(0, next.scrape.missed);
    hang(&puppet_a, false);
    finish(&waiting);
}

static void test_replacing_a_hung_collector_frees_its_scrapes(void) {
    configure(NULL);
    hang(&puppet_b, true);
    struct scrape waiting, next;
    begin(&waiting, B, 100000);
    WAIT_UNTIL(puppet_b.n_collects == 1);
    configure("--collector.b.flavour=sour");
    TEST_ASSERT_EQUAL_INT(1, waiting.n_finished);
    TEST_ASSERT_EQUAL_HEX64(B, waiting.scrape.missed);
    finish(&waiting);
    hang(&puppet_b, false);
    begin(&next, B, 10000);
    finish(&next);
    TEST_ASSERT_EQUAL_HEX64(0, next.scrape.missed);
    WAIT_UNTIL(puppet_b.n_closes == 1);
}

static void test_retiring_right_after_a_start_leaks_nothing(void) {
    struct config *replaced CLEANUP_CONFIG = load("--collector.b.flavour=x");
    configure(NULL);
    for (int i = 0; i < 20; i++) {
        TEST_ASSERT_EQUAL_INT(0, engine_configure(engine, replaced, &err));
        struct scrape scrape;
        begin(&scrape, A | B, 10000);
        engine_release(engine);
        finish(&scrape);
        configure(NULL);
    }
    WAIT_UNTIL(atomic_load(&replaced->refs) == 1); /* every slot held one */
    TEST_ASSERT_EQUAL_INT(40, puppet_b.n_closes);
}

static void test_destroy_leaves_a_hung_collector_behind_in_time(void) {
    configure(NULL);
    hang(&puppet_a, true);
    struct scrape scrape;
    begin(&scrape, A | B, 1);
    finish(&scrape);
    WAIT_UNTIL(puppet_a.n_collects == 1);
    TEST_ASSERT_FALSE(engine_destroy(engine, 100));
    TEST_ASSERT_EQUAL_INT(1, puppet_b.n_closes);
    fflush(stdout);
}

void suiteSetUp(void) {
    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
}
