#include "placement/control/loop.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unity.h>

#include "tests/fakes/web_peer.h"

static struct web_peer *peer;
static struct web_client *client;
static struct control_knob knob;
static struct error error;
static const struct control_knob_name name = {
    .plugin = "obj/counter", .param = "res", .container = "a b", .pod = "p"};

void setUp(void) {
    peer = web_peer_create();
    struct web_endpoint endpoint = {.url = web_peer_url(peer)};
    TEST_ASSERT_EQUAL_INT(0, web_client_create(&endpoint, &client, &error));
}

void tearDown(void) {
    control_knob_finish(&knob);
    web_client_destroy(client);
    web_peer_destroy(peer);
}

static void say(unsigned status, const char *body) {
    web_peer_say(peer, (struct web_peer_answer){.status = status, .body = body});
}

static void test_reading(void) {
    say(200,
        "{\"status\":\"success\",\"data\":{\"param\":\"res\",\"type\":\"int\",\"default\":720,"
        "\"min\":240,\"max\":1080,\"step\":120,\"unit\":\"lines\",\"requested\":480,"
        "\"requested_at\":12.5,\"requested_by\":\"x\",\"applied\":720,\"applied_at\":10.5}}\n");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, control_knob_read(client, &name, &knob, &error), error.text);
    TEST_ASSERT_EQUAL_INT(KNOB_INT, knob.type);
    TEST_ASSERT_EQUAL_DOUBLE(240, knob.min);
    TEST_ASSERT_EQUAL_DOUBLE(1080, knob.max);
    TEST_ASSERT_EQUAL_DOUBLE(120, knob.step);
    TEST_ASSERT_EQUAL_DOUBLE(720, control_knob_value(&knob)->number);
    TEST_ASSERT_TRUE(control_knob_is_pending(&knob));
    static const char first[] =
        "GET /api/v1/plugins/obj%2Fcounter/params/res?container=a%20b&pod=p\n";
    TEST_ASSERT_EQUAL_STRING_LEN(first, web_peer_heard(peer), strlen(first));
}

static void test_writing(void) {
    struct knob_value value = {.form = KNOB_TEXT, .text = "fa\"st"};
    say(200, "{\"status\":\"success\",\"data\":{\"type\":\"enum\",\"default\":\"slow\","
             "\"requested\":\"fa\\\"st\",\"applied\":null}}");
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, control_knob_write(client, &name, &value, &knob, &error),
                                  error.text);
    TEST_ASSERT_EQUAL_STRING("{\"value\":\"fa\\\"st\"}", strstr(web_peer_heard(peer), "\n\n") + 2);
    TEST_ASSERT_TRUE(isinf(knob.min) && isinf(knob.max));
    TEST_ASSERT_TRUE(control_knob_is_pending(&knob));
    TEST_ASSERT_EQUAL_STRING("fa\"st", control_knob_value(&knob)->text);
}

/* requested, applied and when: pending or not */
static void test_pending(void) {
    static const struct {
        double requested, requested_at, applied, applied_at; /* 0: none */
        bool pending;
    } cases[] = {
        {0, 0, 0, 0, false}, {0, 0, 5, 1, false}, {5, 1, 0, 0, true},
        {5, 2, 5, 1, false}, {5, 2, 4, 1, true},  {5, 2, 4, 3, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct control_knob one = {
            .requested = {.form = cases[i].requested > 0 ? KNOB_NUMBER : KNOB_ABSENT,
                          .number = cases[i].requested},
            .requested_seconds = cases[i].requested_at,
            .applied = {.form = cases[i].applied > 0 ? KNOB_NUMBER : KNOB_ABSENT,
                        .number = cases[i].applied},
            .applied_seconds = cases[i].applied_at,
            .initial = {.form = KNOB_NUMBER, .number = 1},
        };
        TEST_ASSERT_EQUAL_INT(cases[i].pending, control_knob_is_pending(&one));
        double value = cases[i].applied > 0     ? cases[i].applied
                       : cases[i].requested > 0 ? cases[i].requested
                                                : 1;
        TEST_ASSERT_EQUAL_DOUBLE(value, control_knob_value(&one)->number);
    }
}

static void test_refusals(void) {
    static const struct {
        unsigned status;
        const char *body;
        int code;
        const char *words;
    } cases[] = {
        {404, "{\"status\":\"error\",\"error\":\"p: no such plugin\"}", -ENOENT,
         "HTTP 404: p: no such plugin"},
        {400, "{\"status\":\"error\",\"error\":\"res: 1 is below its minimum\"}", -EREMOTEIO,
         "HTTP 400: res: 1 is below"},
        {403, "only this machine may write\n", -EREMOTEIO, "HTTP 403: only this machine"},
        {200, "<html>", -EINVAL, "HTTP 200: line 1"},
        {200, "{\"data\":{\"type\":\"odd\"}}", -EINVAL, "unknown type odd"},
        {200, "{}", -EINVAL, "no knob in it"},
        {200, "", -EINVAL, "HTTP 200"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        say(cases[i].status, cases[i].body);
        TEST_ASSERT_EQUAL_INT(cases[i].code, control_knob_read(client, &name, &knob, &error));
        TEST_ASSERT_NOT_NULL_MESSAGE(strstr(error.text, cases[i].words), error.text);
    }
}
