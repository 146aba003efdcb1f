#include "placement/control/memory.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <unity.h>

#include "exporter/core/clock.h"
#include "exporter/core/file.h"

static struct error error;

static void test_there_and_back(void) {
    char directory[] = "/tmp/test_control_memory.XXXXXX";
    TEST_ASSERT_NOT_NULL(mkdtemp(directory));
    char *path CLEANUP_FREE = file_path_join(directory, "state");
    struct control_state state;
    control_law_start(&state, 720);
    state.output = 725.25;
    state.widening = 1.5;
    state.floor = 0.5;
    state.last_direction = -1;
    state.has_changed = true;
    int64_t begin_ns = clock_monotonic_ns();
    state.changed_ns = begin_ns - 30 * CLOCK_NS_PER_SEC;
    struct control_memory saved[] = {control_memory_of("a \"quoted\"", &state), {"b"}};
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, control_memory_save(path, saved, 2, &error), error.text);

    struct control_memory loaded[] = {{"b"}, {"a \"quoted\""}, {"c"}};
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, control_memory_load(path, loaded, 3, &error), error.text);
    TEST_ASSERT_FALSE(loaded[0].is_set);
    TEST_ASSERT_TRUE(loaded[1].is_set);
    TEST_ASSERT_FALSE(loaded[2].is_set);

    struct control_state again;
    control_law_start(&again, 720);
    control_memory_recall(&loaded[1], &again);
    TEST_ASSERT_EQUAL_DOUBLE(725.25, again.output);
    TEST_ASSERT_EQUAL_DOUBLE(1.5, again.widening);
    TEST_ASSERT_EQUAL_INT(-1, again.last_direction);
    TEST_ASSERT_TRUE(again.has_changed);
    int64_t passed_ns = clock_monotonic_ns() - begin_ns;
    TEST_ASSERT_INT64_WITHIN(passed_ns + CLOCK_NS_PER_SEC, state.changed_ns, again.changed_ns);

    /* Somebody has turned the knob meanwhile: nothing holds any more. */
    control_law_start(&again, 480);
    control_memory_recall(&loaded[1], &again);
    TEST_ASSERT_EQUAL_DOUBLE(480, again.output);
    TEST_ASSERT_FALSE(again.has_changed);
    unlink(path);
    rmdir(directory);
}

static void test_clocks_that_were_set(void) {
    struct control_memory memory = {
        .is_set = true, .position = 1, .changed_at = clock_wall_seconds() + 1e6};
    struct control_state state;
    control_law_start(&state, 1);
    control_memory_recall(&memory, &state);
    TEST_ASSERT_TRUE(clock_monotonic_ns() - state.changed_ns >= 0);
    memory.changed_at = 1;
    control_law_start(&state, 1);
    control_memory_recall(&memory, &state);
    TEST_ASSERT_FALSE(state.has_changed);
}

static void test_no_file(void) {
    struct control_memory entry = {"a"};
    TEST_ASSERT_EQUAL_INT(0, control_memory_load("/nonexistent/x", &entry, 1, &error));
    TEST_ASSERT_FALSE(entry.is_set);
    TEST_ASSERT_EQUAL_INT(-ENOENT, control_memory_save("/nonexistent/x", &entry, 1, &error));
    TEST_ASSERT_NOT_NULL(strstr(error.text, "/nonexistent/x"));
}

static void test_broken_texts(void) {
    static const char *const texts[] = {
        " ",
        "[]",
        "{\"loops\":1}",
        "{\"loops\":{\"a\":1}}",
        "{\"loops\":{\"a\":{\"output\":\"x\"}}}",
        "{\"loops\":{}} x",
        "{\"loops\":{\"a\":{\"last_direction\":null}}}",
        "{\"loops\":{\"a\":{\"floor\":-1}}}",
        "{\"loops\":{\"a\":{\"widening\":-0.5}}}",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct control_memory entry = {"a"};
        char *copy CLEANUP_FREE = strdup(texts[i]);
        TEST_ASSERT_EQUAL_INT_MESSAGE(
            -EINVAL, control_memory_parse(copy, strlen(copy), &entry, 1, &error), texts[i]);
        TEST_ASSERT_FALSE(entry.is_set);
    }
}
