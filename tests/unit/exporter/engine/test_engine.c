#include "exporter/engine/engine.h"

#include <unity.h>

#include "tests/unit/exporter/engine/engine_puppets.h"

/* ---- rounds ---- */

static void test_a_scrape_gets_what_it_wants(void) {
    configure(NULL);
    struct scrape scrape;
    begin(&scrape, A | B, 10000);
    TEST_ASSERT_EQUAL_INT(0, scrape.n_finished);
    finish(&scrape);
    TEST_ASSERT_EQUAL_HEX64(0, scrape.scrape.missed);
    TEST_ASSERT_TRUE(scrape.has_samples[0] && scrape.has_samples[1]);
    begin(&scrape, A, 10000);
    finish(&scrape);
    TEST_ASSERT_TRUE(scrape.has_samples[0]);
    TEST_ASSERT_FALSE(scrape.has_samples[1]);
    TEST_ASSERT_EQUAL_INT(1, puppet_b.n_collects);
    begin(&scrape, 0, 10000);
    TEST_ASSERT_EQUAL_INT(1, scrape.n_finished);
    finish(&scrape);
}

static void test_scrapes_share_a_round(void) {
    configure(NULL);
    hang(&puppet_b, true);
    struct scrape first, second, only_a;
    begin(&first, A | B, 10000);
    WAIT_UNTIL(puppet_b.n_collects == 1 && engine_entry(engine, 0)->answered);
    begin(&second, A | B, 10000);
    begin(&only_a, A, 10000);
    TEST_ASSERT_EQUAL_INT(1, only_a.n_finished); /* it is there already */
    finish(&only_a);
    hang(&puppet_b, false);
    finish(&first);
    finish(&second);
    TEST_ASSERT_EQUAL_INT(1, puppet_a.n_collects);
    TEST_ASSERT_EQUAL_INT(1, puppet_b.n_collects);
}

static void test_each_scrape_has_its_own_deadline(void) {
    configure(NULL);
    hang(&puppet_b, true);
    struct scrape patient, hasty;
    begin(&patient, A | B, ENDLESS_MS);
    begin(&hasty, A | B, 50);
    finish(&hasty);
    TEST_ASSERT_EQUAL_HEX64(B, hasty.scrape.missed);
    TEST_ASSERT_TRUE(hasty.has_samples[0]);
    TEST_ASSERT_GREATER_OR_EQUAL_INT64(50, hasty.took_ms);
    TEST_ASSERT_EQUAL_INT(0, patient.n_finished);
    hang(&puppet_b, false);
    finish(&patient);
    TEST_ASSERT_EQUAL_HEX64(0, patient.scrape.missed);
}

static void test_a_hasty_scraper_does_not_take_a_collector_from_others(void) {
    configure(NULL);
    hang(&puppet_b, true);
    struct scrape hasty, next;
    begin(&hasty, B, 1);
    finish(&hasty);
    TEST_ASSERT_EQUAL_HEX64(B, hasty.scrape.missed);
    begin(&next, B, 10000);
    TEST_ASSERT_EQUAL_INT(0, next.n_finished);
    hang(&puppet_b, false);
    finish(&next);
    TEST_ASSERT_EQUAL_HEX64(0, next.scrape.missed);
}

static void test_who_was_late_is_not_waited_for_until_it_returns(void) {
    configure(NULL);
    hang(&puppet_b, true);
    struct scrape scrape;
    begin(&scrape, A | B, 250);
    finish(&scrape);
    TEST_ASSERT_EQUAL_HEX64(B, scrape.scrape.missed);
    TEST_ASSERT_FALSE(engine_status(engine, 1).healthy);
    TEST_ASSERT_NOT_NULL(strstr(engine_status(engine, 1).error, "no response within"));

    begin(&scrape, A | B, ENDLESS_MS);
    finish(&scrape);
    TEST_ASSERT_EQUAL_HEX64(B, scrape.scrape.missed);
    begin(&scrape, B, 10000);
    TEST_ASSERT_EQUAL_INT(1, scrape.n_finished);
    finish(&scrape);
    TEST_ASSERT_EQUAL_INT(1, puppet_b.n_collects);

    hang(&puppet_b, false);
    WAIT_UNTIL(engine_status(engine, 1).healthy);
    begin(&scrape, A | B, 10000);
    finish(&scrape);
    TEST_ASSERT_EQUAL_HEX64(0, scrape.scrape.missed);
    TEST_ASSERT_EQUAL_INT(2, puppet_b.n_collects);
}

static void test_a_stale_round_is_not_joined(void) {
    configure(NULL);
    hang(&puppet_b, true);
    struct scrape old, fresh;
    begin(&old, A | B, ENDLESS_MS);
    WAIT_UNTIL(engine_entry(engine, 0)->answered);
    const struct exposition_part *first = engine_entry(engine, 0)->part;
    begin(&fresh, A, ENDLESS_MS);
    TEST_ASSERT_EQUAL_INT(1, fresh.n_finished); /* it is there already */
    do {
        begin(&fresh, A, ENDLESS_MS);
        finish(&fresh);
    } while (puppet_a.n_collects == 1);
    /* A scrape that goes on waiting shares the new answers: there is one set of them. */
    TEST_ASSERT_TRUE(engine_entry(engine, 0)->part != first);
    TEST_ASSERT_EQUAL_INT(0, old.n_finished);
    begin(&fresh, B, ENDLESS_MS);
    hang(&puppet_b, false);
    finish(&old);
    finish(&fresh);
    TEST_ASSERT_TRUE(old.has_samples[0] && old.has_samples[1] && fresh.has_samples[1]);
    TEST_ASSERT_EQUAL_INT(1, puppet_b.n_collects); /* its one answer serves both */
}

static void test_nothing_is_kept_between_rounds(void) {
    configure(NULL);
    struct scrape scrape;
    begin(&scrape, A | B, ENDLESS_MS);
    finish(&scrape);
    TEST_ASSERT_NULL(engine_entry(engine, 0)->part);
    uint64_t generation = engine_generation(engine);
    begin(&scrape, A | B, ENDLESS_MS);
    TEST_ASSERT_EQUAL_INT(0, scrape.n_finished);
    finish(&scrape);
    TEST_ASSERT_TRUE(engine_generation(engine) > generation);
    TEST_ASSERT_EQUAL_INT(2, puppet_a.n_collects);
}

static void test_a_wait_can_be_cancelled(void) {
    configure(NULL);
    hang(&puppet_b, true);
    struct scrape cancelled, other;
    begin(&cancelled, A | B, 1000);
    begin(&other, A | B, ENDLESS_MS);
    engine_scrape_cancel(engine, &cancelled.scrape);
    hang(&puppet_b, false);
    finish(&other);
    TEST_ASSERT_EQUAL_INT(0, cancelled.n_finished);
    TEST_ASSERT_EQUAL_HEX64(0, other.scrape.missed);

    hang(&puppet_b, true);
    begin(&cancelled, B, ENDLESS_MS);
    engine_scrape_cancel(engine, &cancelled.scrape);
    engine_release(engine);
    TEST_ASSERT_EQUAL_INT(0, cancelled.n_finished);
    hang(&puppet_b, false);
}

static void test_release_ends_every_wait(void) {
    configure(NULL);
    hang(&puppet_a, true);
    struct scrape one, two;
    begin(&one, A, 100000);
    begin(&two, A | B, 100000);
    engine_release(engine);
    TEST_ASSERT_EQUAL_INT(1, one.n_finished);
    TEST_ASSERT_EQUAL_INT(1, two.n_finished);
    TEST_ASSERT_EQUAL_HEX64(A, one.scrape.missed);
    finish(&one);
    finish(&two);
}

/* ---- faults ---- */

static void test_a_failure_is_told_and_its_samples_are_served(void) {
    configure(NULL);
    atomic_store(&puppet_a.collect_code, -EIO);
    struct scrape scrape;
    begin(&scrape, A | B, 10000);
    finish(&scrape);
    TEST_ASSERT_EQUAL_INT(-EIO, scrape.entries[0].code);
    TEST_ASSERT_TRUE(scrape.has_samples[0]);
    TEST_ASSERT_EQUAL_HEX64(0, scrape.scrape.missed);
    struct engine_status status = engine_status(engine, 0);
    TEST_ASSERT_FALSE(status.healthy);
    TEST_ASSERT_EQUAL_STRING("told to fail", status.error);
    TEST_ASSERT_EQUAL_DOUBLE(0, status.last_success_seconds);

    atomic_store(&puppet_a.collect_code, -EPERM); /* without words of its own */
    begin(&scrape, A, 10000);
    finish(&scrape);
    TEST_ASSERT_FALSE(engine_status(engine, 0).healthy);
    TEST_ASSERT_EQUAL_STRING("Operation not permitted", engine_status(engine, 0).error);

    atomic_store(&puppet_a.collect_code, -ENODATA);
    begin(&scrape, A, 10000);
    finish(&scrape);
    status = engine_status(engine, 0);
    TEST_ASSERT_TRUE(status.healthy);
    TEST_ASSERT_EQUAL_STRING("", status.error);
    TEST_ASSERT_DOUBLE_WITHIN(60, clock_wall_seconds(), status.last_success_seconds);
}

static void test_an_absent_source_is_looked_for_again(void) {
    atomic_store(&puppet_a.open_code, -ENODEV);
    configure(NULL);
    struct scrape scrape;
    begin(&scrape, A, 10000);
    finish(&scrape);
    TEST_ASSERT_EQUAL_INT(-ENODEV, scrape.entries[0].code);
    TEST_ASSERT_EQUAL_INT(ENGINE_WORKER_ABSENT, engine_status(engine, 0).state);
    TEST_ASSERT_EQUAL_INT(0, puppet_a.n_collects);
    atomic_store(&puppet_a.open_code, 0);
    WAIT_UNTIL(engine_status(engine, 0).state == ENGINE_WORKER_OPEN);
    TEST_ASSERT_EQUAL_INT(2, puppet_a.n_opens);
}

static void test_a_source_that_vanishes_is_closed_and_comes_back(void) {
    configure(NULL);
    WAIT_UNTIL(engine_status(engine, 0).state == ENGINE_WORKER_OPEN);
    atomic_store(&puppet_a.collect_code, -ENODEV);
    struct scrape scrape;
    begin(&scrape, A, 10000);
    finish(&scrape);
    TEST_ASSERT_EQUAL_INT(ENGINE_WORKER_ABSENT, engine_status(engine, 0).state);
    TEST_ASSERT_EQUAL_INT(1, puppet_a.n_closes);
    atomic_store(&puppet_a.collect_code, 0);
    WAIT_UNTIL(engine_status(engine, 0).state == ENGINE_WORKER_OPEN);
    begin(&scrape, A, 10000);
    finish(&scrape);
    TEST_ASSERT_TRUE(engine_status(engine, 0).healthy);
}

static void test_samplers_run_between_scrapes(void) {
    configure(NULL);
    WAIT_UNTIL(puppet_b.n_samples >= 3);
    TEST_ASSERT_EQUAL_INT(0, puppet_b.n_collects);
    TEST_ASSERT_EQUAL_INT(0, puppet_a.n_samples);
}

static void test_a_collector_is_woken(void) {
    configure(NULL);
    WAIT_UNTIL(puppet_b.n_samples >= 1);
    for (int i = 1; i <= 3; i++) {
        TEST_ASSERT_EQUAL_INT(0, eventfd_write(puppet_b.wake_fd, 1));
        WAIT_UNTIL(puppet_b.n_wakes == i);
    }
    TEST_ASSERT_EQUAL_INT(0, puppet_a.n_wakes);
}

static void test_one_that_wakes_all_the_time_is_still_sampled(void) {
    atomic_store(&puppet_b.deaf, true);
    TEST_ASSERT_EQUAL_INT(0, eventfd_write(puppet_b.wake_fd, 1));
    configure(NULL);
    WAIT_UNTIL(puppet_b.n_wakes >= 100);
    int before = puppet_b.n_samples;
    WAIT_UNTIL(puppet_b.n_samples >= before + 3);
    struct scrape scrape;
    begin(&scrape, B, 10000);
    finish(&scrape);
    TEST_ASSERT_TRUE(scrape.has_samples[1]);
}

void suiteSetUp(void) {
    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
}
