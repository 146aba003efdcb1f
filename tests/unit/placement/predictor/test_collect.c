#include "placement/predictor/collect.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>
#include <unity.h>

static struct burner burner;
static struct error err;

void setUp(void) {
    burner = (struct burner){.n_children = 0};
}

void tearDown(void) {
    burner_stop(&burner);
}

static void test_one_per_cpu_until_stopped(void) {
    TEST_ASSERT_EQUAL_INT(0, burner_start(&burner, 30, &err));
    TEST_ASSERT_EQUAL_UINT64(sysconf(_SC_NPROCESSORS_ONLN), burner.n_children);
    pid_t first = burner.children[0];
    TEST_ASSERT_EQUAL_INT(0, kill(first, 0));
    burner_stop(&burner);
    TEST_ASSERT_EQUAL_INT(-1, kill(first, 0));
    TEST_ASSERT_EQUAL_INT(ESRCH, errno);
    TEST_ASSERT_EQUAL_UINT64(0, burner.n_children);
}

static void test_none_without_load(void) {
    TEST_ASSERT_EQUAL_INT(0, burner_start(&burner, 0, &err));
    TEST_ASSERT_EQUAL_UINT64(0, burner.n_children);
}

/* A container may be given less than all CPUs, so how much it is cannot be told. */
static void test_measures_what_is_there(void) {
    double percent = -1;
    TEST_ASSERT_EQUAL_INT(0, burner_start(&burner, 100, &err));
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, burner_measure(0.5, &percent, &err), err.text);
    TEST_ASSERT_TRUE(percent > 0 && percent <= 100);
}
