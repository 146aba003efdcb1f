#include "exporter/channel/session.h"

#include <stdlib.h>
#include <string.h>
#include <unity.h>

#include "exporter/core/clock.h"
#include "exporter/core/container_of.h"
#include "tests/unit/exporter/push/push_fixture.h"

static struct push_session_env env;
static struct push_session session;
static size_t n_answered;
static struct push_lines stream;
static struct buf taken; /* the lines, each with '|' behind it; "!" where one was too long */

static struct push_store *create_store(void) {
    struct push_store_config config = fixture_config();
    struct push_store *store = NULL;
    TEST_ASSERT_EQUAL_INT(0, push_store_create(&config, &store, NULL));
    return store;
}

void setUp(void) {
    env.store = create_store();
    env.knobs = knobs_create(env.store);
    env.reader = push_json_create();
    push_session_init(&session, &env);
    session.peer = (struct push_peer){.pid = 7, .uid = 1000};
    n_answered = 0;
}

void tearDown(void) {
    push_session_finish(&session);
    push_json_destroy(env.reader);
    knobs_destroy(env.knobs);
    push_store_destroy(env.store);
    push_lines_finish(&stream);
    buf_finish(&taken);
}

/* Says a line, in memory of exactly its size; returns what is answered to it. */
static const char *say_as(struct push_session *who, const char *line) {
    size_t len = strlen(line);
    char *copy CLEANUP_FREE = malloc(len > 0 ? len : 1);
    memcpy(copy, line, len);
    buf_reset(&who->out);
    push_session_line(who, copy, len);
    return buf_str(&who->out);
}

static const char *say(const char *line) {
    return say_as(&session, line);
}

static double seen;
static size_t n_seen;

static bool see(const struct push_series_view *series, void *context) {
    if (strcmp(series->text, context) == 0) {
        seen = series->values[0];
        n_seen++;
    }
    return true;
}

/* The value of the one series with these labels. */
static double value_of(const char *labels) {
    n_seen = 0;
    push_store_visit(env.store, NULL, see, (void *)labels);
    TEST_ASSERT_EQUAL_size_t_MESSAGE(1, n_seen, labels);
    return seen;
}

static void test_metrics_reach_the_store(void) {
    TEST_ASSERT_EQUAL_STRING("", say("{\"hello\":{\"plugin\":\"p\",\"start\":\"s\"}}"));
    TEST_ASSERT_EQUAL_STRING("", say("  "));
    TEST_ASSERT_EQUAL_STRING("", say("{\"metric\":\"n\",\"type\":\"counter\",\"total\":5}"));
    TEST_ASSERT_EQUAL_STRING("", say("{\"metric\":\"n\",\"total\":7}"));
    TEST_ASSERT_EQUAL_DOUBLE(7, value_of("plugin=\"p\""));
}

static void test_groups_are_not_for_the_socket(void) {
    say("{\"hello\":{\"plugin\":\"p\"}}");
    const char *answer =
        say("{\"metric\":\"n\",\"type\":\"gauge\",\"set\":5,\"group\":{\"job\":\"j\"}}");
    TEST_ASSERT_NOT_NULL(strstr(answer, "groups are pushed over HTTP"));
    n_seen = 0;
    push_store_visit(env.store, NULL, see, "");
    TEST_ASSERT_EQUAL_size_t(0, n_seen);
}

/* A knob is the plugin's that says it, so a line that names another is not taken for its own. */
static void test_knobs_are_of_the_hello(void) {
    say("{\"hello\":{\"plugin\":\"p\"}}");
    const char *declared =
        say("{\"param\":\"res\",\"type\":\"int\",\"default\":1,\"plugin\":\"other\"}");
    TEST_ASSERT_NOT_NULL(strstr(declared, "name it in a hello"));
    TEST_ASSERT_NULL(session.knobs.plugin);
    say("{\"param\":\"res\",\"type\":\"int\",\"default\":1}");
    const char *applied = say("{\"param\":\"res\",\"applied\":2,\"plugin\":\"other\"}");
    TEST_ASSERT_NOT_NULL(strstr(applied, "name it in a hello"));
    TEST_ASSERT_EQUAL_DOUBLE(1, knobs_find(session.knobs.plugin, "res")->applied.number);
}

/* Its figures are known for as long as it is connected, whoever comes and goes. */
static void test_the_start_of_who_is_connected(void) {
    say("{\"hello\":{\"plugin\":\"p\",\"start\":\"s\"}}");
    say("{\"metric\":\"n\",\"type\":\"counter\",\"total\":5}");
    for (int i = 0; i < 200; i++) {
        struct push_session other;
        char hello[64];
        push_session_init(&other, &env);
        other.peer = session.peer;
        snprintf(hello, sizeof(hello), "{\"hello\":{\"plugin\":\"p\",\"start\":\"%d\"}}", i);
        say_as(&other, hello);
        TEST_ASSERT_EQUAL_STRING("", say_as(&other, "{\"metric\":\"n\",\"total\":1}"));
        push_session_finish(&other);
    }
    say("{\"metric\":\"n\",\"total\":7}");
    TEST_ASSERT_EQUAL_DOUBLE(207, value_of("plugin=\"p\""));
}

static void test_complaints(void) {
    TEST_ASSERT_EQUAL_STRING(
        "{\"error\":\"line 1, column 1: x: expected one of inc, observe, set and total, got "
        "none\",\"metric\":\"x\",\"line\":1}\n",
        say("{\"metric\": \"x\"}"));
    TEST_ASSERT_EQUAL_STRING("{\"error\":\"x: its first use must say the type\",\"metric\":\"x\","
                             "\"line\":2}\n{\"ack\":3}\n",
                             say("{\"metric\":\"x\",\"set\":1,\"seq\":3}"));
    TEST_ASSERT_EQUAL_STRING(
        "{\"error\":\"p: no such param was declared\",\"param\":\"p\",\"line\":3}\n",
        say("{\"param\":\"p\",\"applied\":1}"));
}

/* Counts for the connection and for all those of the plugin. */
static void test_rate(void) {
    enum { MAX = 2 }; /* so that a test that is held up does not earn another line */
    struct push_session other;
    push_session_init(&other, &env);
    other.peer = session.peer;
    TEST_ASSERT_EQUAL_INT64(0, push_session_wait_ns(&session, 0));
    say("{\"hello\":{\"plugin\":\"p\"}}");
    say_as(&other, "{\"hello\":{\"plugin\":\"p\"}}");
    for (int i = 0; i < MAX; i++) {
        TEST_ASSERT_EQUAL_INT64(0, push_session_wait_ns(i % 2 == 0 ? &session : &other, MAX));
    }
    TEST_ASSERT_GREATER_THAN_INT64(0, push_session_wait_ns(&session, MAX));
    TEST_ASSERT_GREATER_THAN_INT64(0, push_session_wait_ns(&other, MAX));
    say_as(&other, "{\"hello\":{\"plugin\":\"q\"}}"); /* what had to wait was not paid for */
    for (int i = 0; i < MAX / 2; i++) {
        TEST_ASSERT_EQUAL_INT64(0, push_session_wait_ns(&other, MAX));
    }
    push_session_finish(&other);
}

/* Plugins that never read are not cut for complaints, but for what they asked for. */
static void test_answers_are_bounded(void) {
    char bad[] = "{", ask[] = "{\"seq\":1}";
    for (int i = 0; i < 10000; i++) {
        push_session_line(&session, bad, 1);
    }
    TEST_ASSERT_EQUAL_INT(PUSH_SESSION_OPEN, session.must_end);
    TEST_ASSERT_LESS_THAN(PUSH_SESSION_MAX_COMPLAINTS + 200, session.out.len);
    for (int i = 0; i < 10000; i++) {
        memcpy(ask, "{\"seq\":1}", sizeof(ask));
        push_session_line(&session, ask, strlen(ask));
    }
    TEST_ASSERT_EQUAL_INT(PUSH_SESSION_NOT_READING, session.must_end);
    TEST_ASSERT_LESS_THAN(PUSH_SESSION_MAX_OUT + 200, session.out.len);
}

static const char gauge[] = "{\"metric\":\"g\",\"type\":\"gauge\",\"set\":1}";

static void test_name_without_hello(void) {
    say(gauge);
    TEST_ASSERT_EQUAL_DOUBLE(1, value_of("plugin=\"unknown\""));
    push_session_finish(&session);
    push_session_init(&session, &env);
    session.peer = (struct push_peer){.pid = 7, .process = (char[]){"app"}};
    say(gauge);
    TEST_ASSERT_EQUAL_DOUBLE(1, value_of("plugin=\"app\""));
    push_session_finish(&session);
    push_session_init(&session, &env);
    session.peer.pid = 7;
    session.peer.container_id = (char[]){"0123"};
    session.peer.container = (char[]){"box"};
    say(gauge);
    TEST_ASSERT_EQUAL_DOUBLE(1, value_of("container=\"box\",plugin=\"box\""));
}

static const char liar[] = "{\"hello\":{\"plugin\":\"p\",\"container\":\"c\",\"pod\":\"o\"}}";

static void test_only_the_hidden_are_believed(void) {
    say(liar);
    say(gauge);
    TEST_ASSERT_EQUAL_DOUBLE(1, value_of("plugin=\"p\""));
    push_session_finish(&session);
    push_session_init(&session, &env);
    session.peer.pid = 0;
    say(liar);
    say(gauge);
    TEST_ASSERT_EQUAL_DOUBLE(1, value_of("container=\"c\",plugin=\"p\",pod=\"o\""));
}

static void test_labels_do_not_say_more(void) {
    static const char *const names[] = {"container", "namespace", "pod"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char line[100];
        snprintf(line, sizeof(line), "{\"hello\":{\"plugin\":\"p\",\"labels\":{\"%s\":\"c\"}}}",
                 names[i]);
        session.peer.pid = 7;
        TEST_ASSERT_NOT_NULL(strstr(say(line), "comes from the kernel"));
        session.peer.pid = 0;
        TEST_ASSERT_EQUAL_STRING("", say(line));
    }
}

static void test_names_are_not_taken_over(void) {
    static const struct {
        struct push_peer peer;
        const char *whose; /* NULL: it may */
    } rows[] = {
        {{.pid = 8, .uid = 1001}, "uid 1001"},
        {{.pid = 8, .uid = 1000}, NULL},
        {{.pid = 0, .uid = 1000}, "unverified"},
        {{.pid = 9, .uid = 1000, .gone = true}, "ended uid 1000"},
        {{.pid = 9, .uid = 1000, .gone = true, .of_our_network = true}, NULL},
        {{.pid = 9, .uid = 0, .gone = true, .of_our_network = true}, "uid 0"},
        {{.pid = 8, .uid = 0}, NULL},
    };
    say("{\"hello\":{\"plugin\":\"p\"}}");
    say(gauge);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct push_session other;
        push_session_init(&other, &env);
        other.peer = rows[i].peer;
        const char *answer = say_as(&other, "{\"hello\":{\"plugin\":\"p\"}}");
        TEST_ASSERT_EQUAL_MESSAGE(rows[i].whose == NULL, answer[0] == '\0', answer);
        TEST_ASSERT_TRUE(rows[i].whose == NULL || strstr(answer, rows[i].whose) != NULL);
        push_session_finish(&other);
    }
}

/* Says a hello and a metric as that peer; returns what was answered. */
static const char *push_as(struct push_session *who, struct push_peer peer) {
    push_session_init(who, &env);
    who->peer = peer;
    const char *answer = say_as(who, "{\"hello\":{\"plugin\":\"p\"}}");
    return answer[0] != '\0' ? answer : say_as(who, gauge);
}

static void test_who_is_known_better_takes_over(void) {
    struct push_session claimants[4];
    static const struct push_peer peers[] = {
        {.pid = 0, .uid = 1000},
        {.pid = 9, .uid = 1001, .gone = true},
        {.pid = 8, .uid = 1002},
    };
    for (size_t i = 0; i < ARRAY_LEN(peers); i++) {
        TEST_ASSERT_EQUAL_STRING("", push_as(&claimants[i], peers[i]));
        TEST_ASSERT_EQUAL_STRING("", say_as(&claimants[i], "{\"metric\":\"g\",\"set\":2}"));
        for (size_t k = 0; k < i; k++) {
            const char *answer = say_as(&claimants[k], "{\"metric\":\"g\",\"set\":9}");
            bool lost = strstr(answer, "is owned by") != NULL;
            bool refused = strstr(answer, "hello rejected") != NULL; /* as it was told */
            TEST_ASSERT_TRUE_MESSAGE(lost || refused, answer);
        }
        TEST_ASSERT_EQUAL_DOUBLE(2, value_of("plugin=\"p\""));
    }
    const char *answer = push_as(&claimants[3], (struct push_peer){.pid = 9, .gone = true});
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(answer, "owned by uid 1002; you are ended uid 0"), answer);
    for (size_t i = 0; i < ARRAY_LEN(claimants); i++) {
        push_session_finish(&claimants[i]);
    }
}

static void test_a_container_is_more_than_a_user_who_names_one(void) {
    static char id[] = "0123", box[] = "box";
    struct push_session user, container;
    TEST_ASSERT_EQUAL_STRING(
        "", push_as(&user, (struct push_peer){.pid = 7, .uid = 1000, .container = box}));
    say_as(&user, "{\"metric\":\"forged\",\"type\":\"gauge\",\"set\":1}");
    TEST_ASSERT_EQUAL_STRING(
        "",
        push_as(&container, (struct push_peer){.pid = 8, .container_id = id, .container = box}));
    TEST_ASSERT_EQUAL_DOUBLE(1, value_of("container=\"box\",plugin=\"p\"")); /* of two */
    TEST_ASSERT_NOT_NULL(strstr(say_as(&user, gauge), "owned by container; you are uid 1000"));
    push_session_finish(&user);
    push_session_finish(&container);
}

/* A silent session releases a name that it has lost, too. */
static void test_a_name_lost_is_let_go(void) {
    struct push_session quiet, rightful;
    push_as(&quiet, (struct push_peer){.pid = 0, .uid = 1000});
    push_session_check(&quiet);
    TEST_ASSERT_NOT_NULL(quiet.owner);
    push_as(&rightful, (struct push_peer){.pid = 8, .uid = 1002});
    push_session_check(&rightful);
    push_session_check(&quiet);
    TEST_ASSERT_NULL(quiet.owner);
    TEST_ASSERT_NOT_NULL(strstr(buf_str(&quiet.out), "is owned by"));
    TEST_ASSERT_EQUAL_size_t(1, push_owner_view(env.store, rightful.owner).n_refs);
    push_session_finish(&quiet);
    push_session_finish(&rightful);
}

/* Its knobs are the other's, too. */
static void test_a_name_lost_hears_no_knobs(void) {
    struct push_session rightful;
    session.peer.pid = 0;
    say("{\"hello\":{\"plugin\":\"p\"}}");
    say("{\"param\":\"res\",\"type\":\"int\",\"default\":720}");
    TEST_ASSERT_EQUAL_STRING("", push_as(&rightful, (struct push_peer){.pid = 8, .uid = 1}));
    TEST_ASSERT_NULL(knobs_of(env.knobs, rightful.owner)); /* which has declared none */
    char line[] = "{\"param\":\"res\",\"type\":\"int\",\"default\":720}";
    push_session_line(&rightful, line, strlen(line));
    struct knobs_plugin *plugin = knobs_of(env.knobs, rightful.owner);
    TEST_ASSERT_NOT_NULL(plugin);
    struct knob_value request = {.form = KNOB_NUMBER, .number = 480};
    buf_reset(&session.out);
    knobs_request(env.knobs, rightful.owner, plugin, knobs_find(plugin, "res"), &request, "x",
                  NULL);
    TEST_ASSERT_EQUAL_size_t(0, session.out.len); /* also before it has said anything */
    TEST_ASSERT_NOT_NULL(strstr(say("{\"param\":\"res\",\"applied\":1}"), "is owned by"));
    TEST_ASSERT_NULL(session.knobs.plugin);
    push_session_finish(&rightful);
}

static void test_nothing_is_taken_after_a_refused_hello(void) {
    static const char *const hellos[] = {
        "{\"hello\":{\"plugin\":\"p\",\"labels\":{\"pod\":\"x\"}}}",
        "{\"hello\":{\"plugin\":5}}",
        "{\"hello\":{\"plgin\":\"p\"}}",
        "{\"hello\":{\"plugin\":\"\\u0000\"}}",
    };
    for (size_t i = 0; i < ARRAY_LEN(hellos); i++) {
        say("{\"hello\":{\"plugin\":\"before\"}}");
        TEST_ASSERT_NOT_NULL_MESSAGE(strstr(say(hellos[i]), "error"), hellos[i]);
        TEST_ASSERT_NOT_NULL_MESSAGE(strstr(say(gauge), "hello rejected"), hellos[i]);
        TEST_ASSERT_EQUAL_INT(PUSH_SESSION_OPEN, session.must_end);
        session.refused_ns -= 11 * CLOCK_NS_PER_SEC;
        say(gauge);
        TEST_ASSERT_EQUAL_INT(PUSH_SESSION_REFUSED, session.must_end); /* to say it again */
        session.must_end = PUSH_SESSION_OPEN;
        TEST_ASSERT_EQUAL_STRING("{\"ack\":1}\n", say("{\"seq\":1}"));
        TEST_ASSERT_EQUAL_size_t(0, push_store_stats(env.store).n_series);
    }
    say("{\"hello\":{\"plugin\":\"p\"}}");
    TEST_ASSERT_EQUAL_STRING("", say(gauge));
    TEST_ASSERT_EQUAL_DOUBLE(1, value_of("plugin=\"p\""));
}

/* Once the first is gone, and its series too, the name is free. */
static void test_names_become_free(void) {
    say("{\"hello\":{\"plugin\":\"p\"}}");
    say(gauge);
    push_session_finish(&session);
    push_session_init(&session, &env);
    session.peer = (struct push_peer){.pid = 8, .uid = 1001};
    TEST_ASSERT_NOT_NULL(strstr(say("{\"hello\":{\"plugin\":\"p\"}}"), "is owned by"));
    fixture_ms += 600000;
    push_store_expire(env.store, SIZE_MAX);
    TEST_ASSERT_EQUAL_STRING("", say("{\"hello\":{\"plugin\":\"p\"}}"));
}

static void test_a_peer_leaves_names_to_others(void) {
    char hello[64];
    struct push_store_config config = fixture_config();
    config.limits.max_peer_bytes = 8 << 10;
    push_store_configure(env.store, &config);
    for (int i = 0; i < 5; i++) {
        snprintf(hello, sizeof(hello), "{\"hello\":{\"plugin\":\"p%d\"}}", i);
        TEST_ASSERT_EQUAL_STRING("", say(hello));
        TEST_ASSERT_EQUAL_STRING("", say(gauge));
    }
    TEST_ASSERT_NOT_NULL(strstr(say("{\"hello\":{\"plugin\":\"q\"}}"), "push.max-size-per-peer"));
    TEST_ASSERT_EQUAL_STRING("", say("{\"hello\":{\"plugin\":\"p0\"}}"));
    struct push_session other;
    push_session_init(&other, &env);
    other.peer = (struct push_peer){.pid = 8, .uid = 1001};
    TEST_ASSERT_EQUAL_STRING("", say_as(&other, "{\"hello\":{\"plugin\":\"q\"}}"));
    push_session_finish(&other);
    other.peer = (struct push_peer){0};
    push_session_init(&other, &env);
    other.peer = (struct push_peer){
        .pid = 9, .uid = 1000, .container_id = (char[]){"0"}, .container = (char[]){"box"}};
    TEST_ASSERT_EQUAL_STRING("", say_as(&other, "{\"hello\":{\"plugin\":\"q\"}}"));
    push_session_finish(&other);
}

/* With its last series goes all that is known of a plugin but what was asked of its knobs. */
static void test_nothing_is_left_behind(void) {
    say("{\"hello\":{\"plugin\":\"p\"}}");
    say(gauge);
    push_session_finish(&session);
    push_session_init(&session, &env);
    TEST_ASSERT_NOT_NULL(push_store_next_owner(env.store, NULL));
    fixture_ms += 600000;
    push_store_expire(env.store, SIZE_MAX);
    TEST_ASSERT_NULL(push_store_next_owner(env.store, NULL));
}

static void note_answered(struct push_session *who) {
    TEST_ASSERT_EQUAL_PTR(&session, who);
    n_answered++;
}

static void test_knobs(void) {
    session.answered = note_answered;
    say("{\"hello\":{\"plugin\":\"p\"}}");
    TEST_ASSERT_EQUAL_STRING("", say("{\"param\":\"res\",\"type\":\"int\",\"default\":720}"));
    struct knobs_plugin *plugin = knobs_of(env.knobs, session.owner);
    struct knob *knob = knobs_find(plugin, "res");
    TEST_ASSERT_NOT_NULL(knob);
    struct knob_value value = {.form = KNOB_NUMBER, .number = 480};
    TEST_ASSERT_EQUAL_INT(
        0, knobs_request(env.knobs, session.owner, plugin, knob, &value, "me", NULL));
    TEST_ASSERT_EQUAL_size_t(1, n_answered);
    TEST_ASSERT_EQUAL_STRING("{\"param\":\"res\",\"value\":480}\n", buf_str(&session.out));
    TEST_ASSERT_EQUAL_STRING("", say("{\"param\":\"res\",\"applied\":480}"));
    TEST_ASSERT_EQUAL_DOUBLE(480, knob->applied.number);
    /* Declared again, the value is sent again. */
    TEST_ASSERT_EQUAL_STRING("{\"param\":\"res\",\"value\":480}\n",
                             say("{\"param\":\"res\",\"type\":\"int\",\"default\":720}"));
    /* Under another name it is another plugin. */
    say("{\"hello\":{\"plugin\":\"q\"}}");
    TEST_ASSERT_EQUAL_STRING("", say("{\"param\":\"res\",\"type\":\"int\",\"default\":720}"));
    TEST_ASSERT_NULL(plugin->links);
}

/* ---- lines ---- */

static size_t n_allowed;

static bool take(struct push_lines *lines, char *text, size_t len) {
    (void)lines;
    if (n_allowed == 0) {
        return false;
    }
    n_allowed--;
    buf_add(&taken, text, len);
    buf_add_char(&taken, '|');
    memset(text, '#', len); /* who takes it may */
    return true;
}

static void too_long(struct push_lines *lines) {
    (void)lines;
    buf_add_char(&taken, '!');
}

static void begin(size_t allowed) {
    stream = (struct push_lines){.max_line = 5, .take = take, .too_long = too_long};
    buf_reset(&taken);
    n_allowed = allowed;
}

/* Adds it in memory of exactly its size. */
static void add(const char *text, size_t len) {
    char *copy CLEANUP_FREE = malloc(len);
    memcpy(copy, text, len);
    push_lines_add(&stream, copy, len);
}

static const struct {
    const char *in, *out;
} rows[] = {
    {"a\nbc\n", "a|bc|"},          {"a\n\nbc", "a||bc|"}, {"12345\n123456\nx\n", "12345|!x|"},
    {"1234567890123\nx\n", "!x|"}, {"123456", "!"},       {"a\n123456\n", "a|!"},
};

/* However it comes. */
static void test_in_pieces(void) {
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        size_t len = strlen(rows[i].in);
        for (size_t piece = 1; piece <= len; piece++) {
            begin(SIZE_MAX);
            for (size_t at = 0; at < len; at += piece) {
                add(rows[i].in + at, len - at < piece ? len - at : piece);
                TEST_ASSERT_TRUE(stream.rest.len <= stream.max_line);
            }
            push_lines_end(&stream);
            TEST_ASSERT_EQUAL_STRING(rows[i].out, buf_str(&taken));
            push_lines_finish(&stream);
        }
    }
}

/* Each is taken at the second try. */
static void release(void) {
    while (stream.held) {
        TEST_ASSERT_EQUAL_size_t(0, push_lines_resume(&stream));
        n_allowed = 1;
        push_lines_resume(&stream);
    }
}

/* Nothing is lost, nothing comes twice. */
static void test_held(void) {
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        size_t len = strlen(rows[i].in);
        for (size_t piece = 1; piece <= len; piece++) {
            begin(0);
            for (size_t at = 0; at < len; at += piece) {
                add(rows[i].in + at, len - at < piece ? len - at : piece);
                release();
            }
            push_lines_end(&stream);
            release();
            TEST_ASSERT_EQUAL_STRING(rows[i].out, buf_str(&taken));
            push_lines_finish(&stream);
        }
    }
}

static void test_says_how_much_was_taken(void) {
    begin(1);
    add("a\nbc\nx\ny", 8);
    TEST_ASSERT_TRUE(stream.held);
    n_allowed = 1;
    TEST_ASSERT_EQUAL_size_t(3, push_lines_resume(&stream));
    TEST_ASSERT_TRUE(stream.held);
    n_allowed = 9;
    TEST_ASSERT_EQUAL_size_t(2, push_lines_resume(&stream));
    TEST_ASSERT_FALSE(stream.held);
    TEST_ASSERT_EQUAL_STRING("a|bc|x|", buf_str(&taken));
    TEST_ASSERT_EQUAL_size_t(1, stream.rest.len);
}
