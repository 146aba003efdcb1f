#include "exporter/channel/push_json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unity.h>

#include "exporter/core/cleanup.h"
#include "exporter/core/number.h"

static struct push_json *reader;
static struct push_message message;
static struct error err;
static struct buf shown;
static char
    *memory; /* what is read: exactly its size, so that a sanitizer sees every step beyond */

void setUp(void) {
    reader = push_json_create();
    err.text[0] = '\0';
}

void tearDown(void) {
    push_json_destroy(reader);
    buf_finish(&shown);
    free(TAKE(memory));
}

static int read_bytes(const char *text, size_t len) {
    free(memory);
    memory = malloc(len > 0 ? len : 1);
    memcpy(memory, text, len);
    struct json json = json_begin(memory, len, 1);
    push_json_reset(reader);
    int r = push_json_read(reader, &json, 1, &message, &err);
    TEST_ASSERT_TRUE(r < 0 || json_at_end(&json));
    return r;
}

static void show_numbers(char before, const double *numbers, size_t n) {
    for (size_t i = 0; i < n; i++) {
        char text[NUMBER_MAX_LEN];
        buf_add_char(&shown, i == 0 ? before : ',');
        buf_add(&shown, text, number_format(numbers[i], text));
    }
}

/* "name/type/op{label=value,…} values |bounds ttl=ms" of every update. */
static const char *show(void) {
    static const char *const types[] = {"-",         "untyped", "counter", "gauge",
                                        "histogram", "summary", "rate"};
    static const char *const operations[] = {"set", "inc", "total", "observe"};
    buf_reset(&shown);
    for (size_t i = 0; i < reader->n_updates; i++) {
        const struct push_update *u = &reader->updates[i];
        buf_printf(&shown, "%s%s/%s/%s{", i > 0 ? "; " : "", u->name, types[u->type],
                   operations[u->op]);
        for (size_t k = 0; k < u->n_labels; k++) {
            buf_printf(&shown, "%s%s=%s", k > 0 ? "," : "", u->labels[k].name, u->labels[k].value);
        }
        buf_add_char(&shown, '}');
        show_numbers(' ', u->values, u->n_values);
        show_numbers('|', u->bounds, u->n_bounds);
        if (u->ttl_ms != PUSH_TTL_DEFAULT) {
            buf_printf(&shown, " ttl=%lld", (long long)u->ttl_ms);
        }
        if (u->help != NULL) {
            buf_printf(&shown, " help=%s", u->help);
        }
    }
    return buf_str(&shown);
}

static void test_groups(void) {
    static const char *const rows[] = {
        "{\"group\":{\"instance\":\"b\",\"job\":\"a\",\"x\":\"\"},\"metric\":\"m\",\"set\":1}",
        "{\"metric\":\"m\",\"set\":1,\"group\":{\"job\":\"a\",\"instance\":\"b\"}}",
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, read_bytes(rows[i], strlen(rows[i])), err.text);
        TEST_ASSERT_EQUAL_STRING("m/-/set{} 1", show());
        TEST_ASSERT_NULL(message.plugin);
        TEST_ASSERT_EQUAL_size_t(2, message.n_group);
        TEST_ASSERT_EQUAL_STRING("instance", message.group[0].name);
        TEST_ASSERT_EQUAL_STRING("b", message.group[0].value);
        TEST_ASSERT_EQUAL_STRING("job", message.group[1].name);
        TEST_ASSERT_EQUAL_STRING("a", message.group[1].value);
    }
}

static void test_metrics(void) {
    static const struct {
        const char *text;
        const char *expected;
    } rows[] = {
        {"{\"metric\": \"frames_total\", \"type\": \"counter\", \"inc\": 1}",
         "frames_total/counter/inc{} 1"},
        {"{\"metric\":\"fps\",\"set\":29.7,\"labels\":{\"stage\":\"detect\",\"cam\":\"top\"},"
         "\"help\":\"Pictures.\",\"ttl\":60}",
         "fps/-/set{cam=top,stage=detect} 29.7 ttl=60000 help=Pictures."},
        {"{\"set\":1,\"metric\":\"x\",\"ttl\":0}", "x/-/set{} 1 ttl=0"},
        {"{\"set\":1,\"metric\":\"x\",\"ttl\":0.0001}", "x/-/set{} 1 ttl=1"},
        {"{\"metric\":\"s\",\"type\":\"histogram\",\"observe\":[0.031,0.029],\"buckets\":[0.01,0.1]"
         "}",
         "s/histogram/observe{} 0.031,0.029|0.01,0.1"},
        {"{\"metric\":\"s\",\"observe\":0.5}", "s/-/observe{} 0.5"},
        {"{\"metric\":\"s\",\"buckets\":[1,2],\"total\":{\"counts\":[3,4],\"count\":5,\"sum\":6.5}"
         "}",
         "s/-/total{} 3,4,5,6.5|1,2"},
        {"{\"metric\":\"s\",\"set\":{\"sum\":6.5,\"count\":5,\"counts\":[]}}", "s/-/set{} 5,6.5"},
        {"{\"metric\":\"f\",\"type\":\"rate\",\"total\":17}", "f/rate/total{} 17"},
        {"{\"metric\":\"g\",\"type\":\"gauge\",\"set\":\"NaN\"}", "g/gauge/set{} NaN"},
        {"{\"metric\":\"g\",\"type\":\"untyped\",\"set\":\"-Inf\"}", "g/untyped/set{} -Inf"},
        {"{\"metric\":\"g\",\"set\":1e308}", "g/-/set{} 1e+308"},
        {"{\"metric\":\"g\",\"set\":123456789012345678901234567890}",
         "g/-/set{} 1.2345678901234568e+29"},
        {"{\"metric\":\"g\",\"set\":1,\"labels\":{\"a\":\"\",\"b\":\"x\",\"c\":\"\"}}",
         "g/-/set{b=x} 1"},
        {"{\"metric\":\"g\",\"set\":1,\"labels\":{}}", "g/-/set{} 1"},
        {" {\t\"metric\" : \"g\" ,\r\n\"set\" : -0 } ", "g/-/set{} -0"},
        {"{\"m\\u0065tric\":\"\\u0067\",\"set\":1}", "g/-/set{} 1"},
        /* What the store refuses reaches it as it was said. */
        {"{\"metric\":\"waap_x\",\"set\":1,\"labels\":{\"__name__\":\"y\",\"node\":\"z\"}}",
         "waap_x/-/set{__name__=y,node=z} 1"},
        /* SageAppMetricsServer's form */
        {"{\"fps\":{\"value\":29.7,\"timestamp\":1628899200.5}}", "fps/gauge/set{} 29.7"},
        {"{\"fps\":{\"timestamp\":1,\"value\":2},\"RAM_usage\":{\"value\":3}}",
         "fps/gauge/set{} 2; RAM_usage/gauge/set{} 3"},
        {"{\"metric\":{\"value\":1}}", "metric/gauge/set{} 1"},
        {"{\"seq\":{\"value\":1}}", "seq/gauge/set{} 1"},
        {"{\"group\":{\"value\":1,\"timestamp\":2}}", "group/gauge/set{} 1"},
        {"{\"group\": { \"timestamp\" : 2, \"value\":1}}", "group/gauge/set{} 1"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        err.text[0] = '\0';
        int r = read_bytes(rows[i].text, strlen(rows[i].text));
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, r, err.text);
        TEST_ASSERT_EQUAL_INT(PUSH_MESSAGE_METRICS, message.kind);
        TEST_ASSERT_EQUAL_STRING(rows[i].expected, show());
    }
}

static void test_refusals(void) {
    static const struct {
        const char *text;
        const char *expected;
    } rows[] = {
        {"", "line 1, column 1: expected an object: {\"metric\": …}"},
        {"[]", "line 1, column 1: expected an object: {\"metric\": …}"},
        {"{", "line 1, column 2: expected a key in double quotes, got the end"},
        {"{'hello':{}}", "line 1, column 2: expected a key in double quotes, got 'hello'"},
        {"{\"metric\":'x'}", "line 1, column 11: expected a string in double quotes, got 'x'"},
        {"{}", "line 1, column 1: expected an object with the key metric, param or hello"},
        {"{\"set\":1}", "line 1, column 1: expected an object with the key metric, param or hello"},
        {"{\"metric\":\"x\"}",
         "line 1, column 1: x: expected one of inc, observe, set and total, got none"},
        {"{\"metric\":\"x\",\"set\":1,\"inc\":1}",
         "line 1, column 1: x: expected one of inc, observe, set and total, got several"},
        {"{\"metric\":\"x\",\"set\":1,\"set\":2}", "line 1, column 23: duplicate key set"},
        {"{\"metric\":\"x\",\"set\":NaN}", "line 1, column 21: JSON has no NaN or Infinity: write "
                                           "\"NaN\", \"+Inf\", \"-Inf\""},
        {"{\"metric\":\"x\",\"set\":true}", "line 1, column 21: expected a number, got true"},
        {"{\"metric\":\"x\",\"set\":[1]}", "line 1, column 21: expected one number, got an array"},
        {"{\"metric\":\"x\",\"observe\":[]}",
         "line 1, column 25: expected a number, got an empty array"},
        {"{\"metric\":\"x\",\"inc\":{}}", "line 1, column 21: expected a number, got {"},
        {"{\"metric\":\"x\",\"set\":{}}", "line 1, column 21: expected counts, count and sum"},
        {"{\"metric\":\"x\",\"set\":{\"n\":1}}",
         "line 1, column 22: unknown key \"n\": expected counts, count, sum"},
        {"{\"metric\":\"x\",\"set\":{\"sum\":1,\"sum\":2}}",
         "line 1, column 30: duplicate key sum"},
        {"{\"metric\":\"x\",\"lable\":{}}",
         "line 1, column 15: unknown key \"lable\", did you mean labels?"},
        {"{\"metrik\":\"x\",\"set\":1}",
         "line 1, column 2: unknown key \"metrik\", did you mean metric?"},
        {"{\"metric\":\"x\",\n\"sett\"\n:1}",
         "line 2, column 1: unknown key \"sett\", did you mean set?"},
        {"{\"metric\":\"x\",\"mim\":1}",
         "line 1, column 15: unknown key \"mim\"; a metric takes one of inc, "
         "observe, set and total"},
        {"{\"param\":\"x\",\"mim\":1}",
         "line 1, column 14: unknown key \"mim\", did you mean min?"},
        {"{\"helo\":1}", "line 1, column 2: unknown key \"helo\", did you mean hello?"},
        {"{\"metric\":\"x", "line 1, column 11: the string has no end"},
        {"{\"metric\":\"x\",\"type\":\"timer\",\"set\":1}",
         "line 1, column 22: x: type: expected counter, gauge, histogram, rate or untyped, got "
         "\"timer\""},
        {"{\"metric\":\"x\",\"set\":1,\"labels\":{\"a\":\"1\",\"a\":\"2\"}}",
         "line 1, column 41: duplicate label a"},
        {"{\"metric\":\"x\",\"set\":1,\"labels\":{\"a\":1}}",
         "line 1, column 37: label a: expected a string"},
        {"{\"metric\":\"x\",\"set\":1,\"labels\":[]}", "line 1, column 32: expected labels as an "
                                                       "object"},
        {"{\"metric\":\"x\",\"set\":1,\"ttl\":-1}",
         "line 1, column 29: ttl: expected seconds from 0 (for ever) to 1e9"},
        {"{\"metric\":\"x\",\"set\":1,\"buckets\":1}",
         "line 1, column 33: expected the buckets' bounds as an array"},
        {"{\"metric\":\"x\",\"set\":1,\"min\":1}", "line 1, column 23: min does not belong to a "
                                                   "metric"},
        {"{\"metric\":\"x\",\"set\":1,\"param\":\"y\"}",
         "line 1, column 23: param does not belong to a metric"},
        {"{\"metric\":\"x\",\"set\":1,\"seq\":1.5}",
         "line 1, column 29: seq: expected a whole number up to 2^53"},
        {"{\"metric\":\"\\ud800\",\"set\":1}", "line 1, column 13: half of a surrogate pair"},
        {"{\"metric\":\"\xff\",\"set\":1}", "line 1, column 12: invalid UTF-8 in a string"},
        {"{\"fps\":{\"timestamp\":1}}", "line 1, column 2: unknown key \"fps\""},
        {"{\"fps\":{\"value\":1,\"value\":2}}", "line 1, column 19: duplicate key value"},
        {"{\"fps\":{\"value\":\"1\"}}",
         "line 1, column 17: expected a number, \"NaN\", \"+Inf\" or \"-Inf\", got \"1\""},
        {"{\"hello\":{\"plugin\":1}}", "line 1, column 20: expected a string, got 1"},
        {"{\"hello\":{\"plugin\":\"a\",\"plugin\":\"b\"}}",
         "line 1, column 24: duplicate key plugin"},
        {"{\"metric\":\"x\",\"set\":1,\"plugin\":\"p\",\"group\":{\"job\":\"a\"}}",
         "line 1, column 1: x: is a plugin's or a group's, not of both"},
        {"{\"metric\":\"x\",\"set\":1,\"group\":\"a\"}",
         "line 1, column 31: expected labels as an object"},
        {"{\"group\":{\"value\":1", "line 1, column 20: expected a comma or }, got the end"},
        {"{\"group\":{\"value", "line 1, column 11: the string has no end"},
        {"{\"group\":{\"value\"", "line 1, column 18: expected a colon, got the end"},
        {"{\"group\":{\"job\":\"a\"}}",
         "line 1, column 1: expected an object with the key metric, param or hello"},
        {"{\"hello\":\"x\"}", "line 1, column 10: expected hello as an object"},
        {"{\"param\":\"res\",\"default\":1}",
         "line 1, column 1: res: has no type: int, float, bool, string, enum or any"},
        {"{\"param\":\"res\",\"type\":\"itn\",\"default\":1}",
         "line 1, column 23: res: type: expected int, float, bool, string, enum or any, got "
         "\"itn\""},
        {"{\"param\":\"res\",\"type\":\"int\",\"default\":2000,\"max\":1080}",
         "res: 2000 is above its maximum, 1080"},
        {"{\"param\":\"res\",\"applied\":1,\"min\":3}",
         "line 1, column 28: min does not belong to an applied param"},
        {"{\"param\":\"res\",\"applied\":none}", "line 1, column 26: expected a value, got none"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        TEST_ASSERT_TRUE_MESSAGE(read_bytes(rows[i].text, strlen(rows[i].text)) < 0, rows[i].text);
        TEST_ASSERT_EQUAL_STRING(rows[i].expected, err.text);
        TEST_ASSERT_EQUAL_STRING("", show());
    }
}

static void test_name_is_known_in_refusals(void) {
    static const char text[] = "{\"metric\":\"fps\",\"set\":x}";
    TEST_ASSERT_EQUAL_INT(-EINVAL, read_bytes(text, strlen(text)));
    TEST_ASSERT_EQUAL_STRING("fps", message.name);
}

static void test_hello(void) {
    static const char text[] =
        "{\"hello\":{\"plugin\":\"objcounter\",\"job\":\"cars\",\"start\":\"8f3a\",\"labels\":"
        "{\"cam\":\"top\"},\"container\":\"c\",\"pod\":\"p\",\"namespace\":\"n\",\"language\":"
        "{\"name\":[\"c\"]}},\"seq\":9007199254740992}";
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, read_bytes(text, strlen(text)), err.text);
    TEST_ASSERT_EQUAL_INT(PUSH_MESSAGE_HELLO, message.kind);
    TEST_ASSERT_EQUAL_STRING("objcounter", message.hello.plugin);
    TEST_ASSERT_EQUAL_STRING("cars", message.hello.job);
    TEST_ASSERT_EQUAL_STRING("8f3a", message.hello.start);
    TEST_ASSERT_EQUAL_STRING("c", message.hello.container);
    TEST_ASSERT_EQUAL_STRING("p", message.hello.pod);
    TEST_ASSERT_EQUAL_STRING("n", message.hello.namespace);
    TEST_ASSERT_EQUAL_size_t(1, message.hello.n_labels);
    TEST_ASSERT_EQUAL_STRING("top", message.hello.labels[0].value);
    TEST_ASSERT_TRUE(message.has_seq);
    TEST_ASSERT_EQUAL_UINT64(UINT64_C(9007199254740992), message.seq);
}

static void test_params(void) {
    static const char declared[] = "{\"param\":\"mode\",\"type\":\"enum\",\"values\":[\"fast\","
                                   "\"exact\"],\"default\":\"fast\","
                                   "\"unit\":\"u\",\"help\":\"How.\"}";
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, read_bytes(declared, strlen(declared)), err.text);
    TEST_ASSERT_EQUAL_INT(PUSH_MESSAGE_DECLARE, message.kind);
    TEST_ASSERT_EQUAL_STRING("mode", message.declared.name);
    TEST_ASSERT_EQUAL_INT(KNOB_ENUM, message.declared.type);
    TEST_ASSERT_EQUAL_STRING("exact", message.declared.values[1]);
    TEST_ASSERT_EQUAL_STRING("How.", message.declared.help);
    static const char applied[] = "{\"param\":\"flip\",\"applied\":true}";
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, read_bytes(applied, strlen(applied)), err.text);
    TEST_ASSERT_EQUAL_INT(PUSH_MESSAGE_APPLIED, message.kind);
    TEST_ASSERT_EQUAL_INT(KNOB_TRUTH, message.applied.form);
    TEST_ASSERT_EQUAL_STRING("flip", message.name);
}

static void test_sequence_alone(void) {
    TEST_ASSERT_EQUAL_INT(0, read_bytes("{\"seq\":0}", 9));
    TEST_ASSERT_EQUAL_INT(PUSH_MESSAGE_EMPTY, message.kind);
    TEST_ASSERT_TRUE(message.has_seq);
    TEST_ASSERT_EQUAL_UINT64(0, message.seq);
}

static void test_many_labels(void) {
    for (int n = PUSH_JSON_MAX_LABELS; n <= PUSH_JSON_MAX_LABELS + 1; n++) {
        struct buf text CLEANUP_BUF = {0};
        buf_add_str(&text, "{\"metric\":\"x\",\"set\":1,\"labels\":{");
        for (int i = n; i > 0; i--) {
            buf_printf(&text, "\"l%03d\":\"%d\"%s", i, i, i > 1 ? "," : "}}");
        }
        int r = read_bytes(text.data, text.len);
        TEST_ASSERT_EQUAL_INT(n > PUSH_JSON_MAX_LABELS ? -EINVAL : 0, r);
    }
    TEST_ASSERT_NOT_NULL(strstr(err.text, "more than 64 labels"));
}

/* Several objects of one request stay good together. */
static void test_updates_gather(void) {
    char text[] = "{\"metric\":\"a\",\"observe\":[1,2],\"labels\":{\"x\":\"y\"}} "
                  "{\"metric\":\"bad\"} {\"metric\":\"b\",\"inc\":3}";
    struct json json = json_begin(text, strlen(text), 1);
    TEST_ASSERT_EQUAL_INT(0, push_json_read(reader, &json, 1, &message, &err));
    TEST_ASSERT_EQUAL_INT(-EINVAL, push_json_read(reader, &json, 2, &message, &err));
    TEST_ASSERT_EQUAL_INT(0, push_json_read(reader, &json, 3, &message, &err));
    TEST_ASSERT_EQUAL_STRING("a/-/observe{x=y} 1,2; b/-/inc{} 3", show());
    TEST_ASSERT_EQUAL_size_t(3, reader->updates[1].index);
}

/* Every line, cut off anywhere, is refused, and no byte behind it is looked at. */
static void test_cut_anywhere(void) {
    static const char text[] =
        "{\"metric\":\"s\\u00e9\",\"type\":\"histogram\",\"observe\":[0.5,\"NaN\"],\"labels\":"
        "{\"a\":\"\\ud83d\\ude00\"},\"buckets\":[1e3],\"ttl\":1.5,\"help\":\"h\",\"seq\":3}";
    for (size_t n = 0; n < strlen(text); n++) {
        TEST_ASSERT_EQUAL_INT(-EINVAL, read_bytes(text, n));
    }
    TEST_ASSERT_EQUAL_INT(0, read_bytes(text, strlen(text)));
}
