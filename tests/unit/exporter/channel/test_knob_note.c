#include "exporter/channel/knob_note.h"

#include <string.h>
#include <unity.h>

#define HEAD "1700000000.500 alice@10.1.2.3\n"

static void test_notes(void) {
    static const struct {
        const char *text;
        bool good, has_spec;
    } rows[] = {
        {HEAD "480", true, false}, /* without a declaration */
        {HEAD "480\n{\"param\":\"res\",\"type\":\"int\",\"default\":720}", true, true},
        {HEAD "480\n{\"param\":\"res\",\"type\":\"int\",\"default\":", true, false},
        {HEAD "480\n{\"metric\":\"res\",\"set\":1}", true, false},
        {HEAD "480\n{\"param\":\"res\",\"type\":\"int\",\"default\":0.5}", true, false},
        {HEAD "480\n", true, false},
        {HEAD "", false, false},
        {HEAD "\"a", false, false},
        {HEAD, false, false},
        {"", false, false},
        {"1700000000.500 alice", false, false},
    };
    struct push_json *reader = push_json_create();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct knob_note note;
        struct knob_spec spec;
        TEST_ASSERT_EQUAL_MESSAGE(rows[i].good, knob_note_parse(rows[i].text, &note), rows[i].text);
        if (!rows[i].good) {
            continue;
        }
        TEST_ASSERT_EQUAL_DOUBLE(1700000000.5, note.request.seconds);
        TEST_ASSERT_EQUAL_STRING("alice@10.1.2.3", note.request.by);
        TEST_ASSERT_EQUAL_DOUBLE(480, note.request.value.number);
        TEST_ASSERT_EQUAL_MESSAGE(rows[i].has_spec, knob_note_spec(&note, reader, &spec),
                                  rows[i].text);
        if (rows[i].has_spec) {
            TEST_ASSERT_EQUAL_STRING("res", spec.name);
            TEST_ASSERT_EQUAL_DOUBLE(720, spec.initial.number);
        }
        knob_note_finish(&note);
    }
    push_json_destroy(reader);
}
