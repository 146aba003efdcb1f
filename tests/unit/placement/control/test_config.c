#include "placement/control/config.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>
#include <unity.h>

#include "exporter/core/clock.h"

static struct control_config config;
static struct problems problems;

void tearDown(void) {
    control_config_finish(&config);
    problems_finish(&problems);
}

static int parse(const char *text) {
    control_config_finish(&config);
    problems_finish(&problems);
    return control_config_parse("c.yaml", text, strlen(text), &config, &problems);
}

static void parse_well(const char *text) {
    int r = parse(text);
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, r, problems.n_lines > 0 ? problems.lines[0] : "");
}

#define HEAD                                                                                       \
    "prometheus: {url: 'http://a:9090'}\n"                                                         \
    "exporter: {url: 'http://b:9090'}\n"                                                           \
    "loops:\n"
#define KNOB "    knob: {plugin: p, param: res}\n"
#define LOOP                                                                                       \
    "  - name: fps\n"                                                                              \
    "    query: avg(fps)\n" KNOB

static void test_defaults(void) {
    parse_well(HEAD LOOP "    setpoint: 20\n    direction: down\n    min: 240\n    max: 1080\n");
    TEST_ASSERT_EQUAL_size_t(1, config.n_loops);
    TEST_ASSERT_EQUAL_STRING("http://a:9090", config.prometheus.url);
    TEST_ASSERT_EQUAL_STRING("/metrics", config.metrics_path);
    const struct control_loop_config *loop = &config.loops[0];
    const struct control_rule *rule = &loop->rule;
    TEST_ASSERT_EQUAL_STRING("fps", loop->name);
    TEST_ASSERT_FALSE(loop->from_exporter);
    TEST_ASSERT_NULL(loop->age_query);
    TEST_ASSERT_EQUAL_INT64(10000, loop->interval_ms);
    TEST_ASSERT_EQUAL_INT(CONTROL_STEP, rule->kind);
    TEST_ASSERT_EQUAL_INT(-1, rule->direction);
    TEST_ASSERT_EQUAL_DOUBLE(20, rule->low);
    TEST_ASSERT_EQUAL_DOUBLE(20, rule->high);
    TEST_ASSERT_EQUAL_DOUBLE(1, rule->deadband);
    TEST_ASSERT_EQUAL_DOUBLE(84, rule->up.max_step);
    TEST_ASSERT_EQUAL_INT64(60 * CLOCK_NS_PER_SEC, rule->down.dwell_ns);
    TEST_ASSERT_EQUAL_UINT(0, rule->max_failures);
    TEST_ASSERT_EQUAL_UINT(4, rule->max_reversals);
    TEST_ASSERT_EQUAL_INT64(1200 * CLOCK_NS_PER_SEC, rule->window_ns);
}

static void test_everything(void) {
    parse_well("prometheus:\n"
               "  url: https://a/prefix\n"
               "  timeout: 2s\n"
               "  basic_auth: {username: u, password: p}\n"
               "  tls: {ca_file: ca.pem, cert_file: /c.pem, key_file: k.pem, "
               "insecure_skip_verify: true}\n"
               "  headers: {X-Scope-OrgID: edge}\n"
               "exporter: {url: 'http://b:9090', bearer_token: t}\n"
               "metrics_path: /m\n"
               "loops:\n"
               "  - name: a\n"
               "    query: fps\n"
               "    band: [10, 20]\n"
               "    deadband: 0.5\n"
               "    knob: {plugin: p, param: res, container: c, job: j, namespace: n, pod: o}\n"
               "    direction: up\n"
               "    law: pi\n"
               "    pi: {kp: 2, ki: 0.5}\n"
               "    min: 0\n    max: 100\n    step: 5\n    max_step: 10\n    dwell: 30s\n"
               "    up: {max_step: 5, dwell: 2m}\n"
               "    down: {max_step: 50}\n"
               "    safe: 50\n    failures: 7\n    stale_after: 20s\n    ack_timeout: 3s\n"
               "    interval: 5s\n"
               "    oscillation: {reversals: 2, window: 1h}\n");
    TEST_ASSERT_EQUAL_STRING("u", config.prometheus.user);
    TEST_ASSERT_EQUAL_STRING("ca.pem", config.prometheus.ca_file);
    TEST_ASSERT_TRUE(config.prometheus.insecure);
    TEST_ASSERT_EQUAL_STRING("X-Scope-OrgID: edge", config.prometheus.headers[0]);
    TEST_ASSERT_NULL(config.prometheus.headers[1]);
    TEST_ASSERT_EQUAL_INT64(2000, config.prometheus.timeout_ms);
    TEST_ASSERT_EQUAL_STRING("t", config.exporter.bearer_token);
    const struct control_loop_config *loop = &config.loops[0];
    const struct control_rule *rule = &loop->rule;
    TEST_ASSERT_EQUAL_STRING("time() - timestamp(fps)", loop->age_query);
    TEST_ASSERT_EQUAL_STRING("o", loop->knob.pod);
    TEST_ASSERT_EQUAL_INT(CONTROL_PI, rule->kind);
    TEST_ASSERT_EQUAL_DOUBLE(10, rule->low);
    TEST_ASSERT_EQUAL_DOUBLE(20, rule->high);
    TEST_ASSERT_EQUAL_DOUBLE(0.5, rule->deadband);
    TEST_ASSERT_EQUAL_DOUBLE(5, rule->up.max_step);
    TEST_ASSERT_EQUAL_INT64(120 * CLOCK_NS_PER_SEC, rule->up.dwell_ns);
    TEST_ASSERT_EQUAL_DOUBLE(50, rule->down.max_step);
    TEST_ASSERT_EQUAL_INT64(30 * CLOCK_NS_PER_SEC, rule->down.dwell_ns);
    TEST_ASSERT_EQUAL_DOUBLE(2, rule->kp);
    TEST_ASSERT_EQUAL_UINT(7, rule->max_failures);
    TEST_ASSERT_EQUAL_DOUBLE(50, rule->safe);
    TEST_ASSERT_EQUAL_UINT(2, rule->max_reversals);
    TEST_ASSERT_EQUAL_INT64(3600 * CLOCK_NS_PER_SEC, rule->window_ns);
    TEST_ASSERT_EQUAL_INT64(3000, loop->ack_ms);
}

static void test_levels(void) {
    parse_well(HEAD LOOP "    setpoint: 1\n    direction: up\n    levels: [\"1\", 2, true, fast]\n"
                         "    safe: fast\n");
    const struct control_loop_config *loop = &config.loops[0];
    TEST_ASSERT_EQUAL_size_t(4, loop->n_levels);
    TEST_ASSERT_EQUAL_INT(KNOB_TEXT, loop->levels[0].form);
    TEST_ASSERT_EQUAL_INT(KNOB_NUMBER, loop->levels[1].form);
    TEST_ASSERT_EQUAL_INT(KNOB_TRUTH, loop->levels[2].form);
    TEST_ASSERT_EQUAL_DOUBLE(3, loop->rule.safe);
    TEST_ASSERT_EQUAL_DOUBLE(3, loop->rule.max);
    TEST_ASSERT_EQUAL_DOUBLE(1, loop->rule.up.max_step);
    struct knob_value two = {.form = KNOB_NUMBER, .number = 2};
    TEST_ASSERT_EQUAL_DOUBLE(1, control_config_position(loop, &two));
    two.number = 1;
    TEST_ASSERT_TRUE(isnan(control_config_position(loop, &two)));
}

static void test_from_the_exporter(void) {
    parse_well("exporter: {url: 'http://b'}\n"
               "loops: [{name: a, source: exporter, query: 'fps{plugin=\"p\"}', setpoint: 1, "
               "direction: up, min: 0, max: 1, knob: {plugin: p, param: q}}]\n");
    TEST_ASSERT_TRUE(config.loops[0].from_exporter);
    const struct label plugin = {"plugin", "p"};
    TEST_ASSERT_EQUAL_INT(1, selector_match(config.loops[0].selector, "fps", &plugin, 1, NULL, 0));
    TEST_ASSERT_NULL(config.loops[0].age_query);
}

/* Every mistake is named with its place; several at once. */
static void test_mistakes(void) {
    static const struct {
        const char *text;
        const char *words[4]; /* one problem each, in this order */
    } cases[] = {
        {"", {"c.yaml: expected at least one loop", "c.yaml: expected exporter: {url"}},
        {"loop: []\n", {"c.yaml:1:1: loop: unknown key, did you mean loops?"}},
        {"exporter: {url: b}\n", {"c.yaml:1:17: exporter.url: expected an address"}},
        {"prometheus: {url: 'http://u:p@a'}\n", {"may not hold a user or a password"}},
        {"prometheus: {basic_auth: {password: a, password_file: b}}\n",
         {"expected a username", "expected either password or password_file"}},
        {"prometheus: {tls: {cert_file: a}}\n", {"expected both cert_file and key_file"}},
        {HEAD "  - {}\n",
         {"c.yaml:4:5: loops[0]: expected a name", "loops[0]: expected a query",
          "loops[0]: expected either setpoint or band",
          "c.yaml:4:5: loops[0]: knob: expected a plugin and a param"}},
        {HEAD LOOP "    setpoint: 1\n    band: [1, 2]\n    direction: up\n    min: 0\n    max: 1\n",
         {"loops[0]: expected either setpoint or band"}},
        {HEAD LOOP "    band: [2, 1]\n    direction: up\n    min: 0\n    max: 1\n",
         {"c.yaml:7:11: loops[0].band: expected the lower number first"}},
        {HEAD LOOP "    setpoint: x\n    direction: up\n    min: 0\n    max: 1\n",
         {"c.yaml:7:15: loops[0].setpoint: expected a number, got \"x\"",
          "expected either setpoint or band"}},
        {HEAD LOOP "    setpoint: 1\n    min: 0\n    max: 1\n", {"loops[0]: expected a direction"}},
        {HEAD LOOP "    setpoint: 1\n    direction: left\n    min: 0\n    max: 1\n",
         {"c.yaml:8:16: loops[0].direction: expected one of up, down, got \"left\""}},
        {HEAD LOOP "    setpoint: 1\n    direction: up\n    min: 1\n    max: 1\n",
         {"loops[0]: expected min and, above it, max"}},
        {HEAD LOOP "    setpoint: 1\n    direction: up\n    min: 0\n    max: 1\n    step: 2\n",
         {"step: larger than from min to max"}},
        {HEAD LOOP "    setpoint: 1\n    direction: up\n    min: 0\n    max: 9\n    step: 2\n    "
                   "max_step: 1\n",
         {"up: max_step is smaller than step", "down: max_step is smaller than step"}},
        {HEAD LOOP "    setpoint: 1\n    direction: up\n    min: 0\n    max: 1\n    safe: 2\n",
         {"c.yaml:11:11: loops[0]: safe: expected a number between min and max"}},
        {HEAD LOOP "    setpoint: 1\n    direction: up\n    levels: [a, b]\n    safe: c\n",
         {"safe: expected one of the levels"}},
        {HEAD LOOP "    setpoint: 1\n    direction: up\n    levels: [a, a]\n",
         {"loops[0].levels[1]: a: duplicate level", "at least two values"}},
        {HEAD LOOP "    setpoint: 1\n    direction: up\n    levels: [a, b]\n    min: 1\n",
         {"expected either levels, or min, max and step"}},
        {HEAD LOOP "    setpoint: 1\n    direction: up\n    min: 0\n    max: 1\n    law: fuzzy\n",
         {"law: expected one of step, pi, table, got \"fuzzy\""}},
        {HEAD LOOP "    setpoint: 1\n    direction: up\n    min: 0\n    max: 1\n    law: pi\n",
         {"expected pi: {kp, ki}"}},
        {HEAD LOOP "    setpoint: 1\n    min: 0\n    max: 1\n    law: table\n",
         {"expected table: {file, measure}", "expected a direction"}},
        {HEAD LOOP "    setpoint: 1\n    min: 0\n    max: 1\n    law: table\n"
                   "    table: {file: /nonexistent/x, measure: fps}\n",
         {"table: open /nonexistent/x: No such file", "expected a direction"}},
        {HEAD LOOP "    setpoint: 1\n    direction: up\n    min: 0\n    max: 1\n    deadband: -1\n",
         {"loops[0].deadband: expected a number such as 0.5 or 5%"}},
        {HEAD LOOP
         "    setpoint: 1\n    direction: up\n    min: 0\n    max: 1\n    interval: 1ms\n",
         {"loops[0].interval: expected a duration"}},
        {HEAD LOOP
         "    setpoint: 1\n    direction: up\n    min: 0\n    max: 1\n    source: exporter\n",
         {"c.yaml:5:12: loops[0]: query: expected a selector"}},
        {HEAD LOOP "    setpoint: 1\n    direction: up\n    min: 0\n    max: 1\n" LOOP
                   "    setpoint: 1\n    direction: up\n    min: 0\n    max: 1\n",
         {"c.yaml:11:5: loops: another loop is called fps",
          "c.yaml:11:5: loops: the loop fps turns the same knob, res of p"}},
        {"exporter: {url: 'http://b'}\nloops:\n" LOOP
         "    setpoint: 1\n    direction: up\n    min: 0\n    max: 1\n",
         {"c.yaml: expected prometheus: {url"}},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        TEST_ASSERT_EQUAL_INT_MESSAGE(-EINVAL, parse(cases[i].text), cases[i].text);
        for (size_t k = 0; k < ARRAY_LEN(cases[i].words) && cases[i].words[k] != NULL; k++) {
            TEST_ASSERT_TRUE_MESSAGE(k < problems.n_lines, cases[i].words[k]);
            TEST_ASSERT_NOT_NULL_MESSAGE(strstr(problems.lines[k], cases[i].words[k]),
                                         problems.lines[k]);
        }
    }
}

/* Two loops on one param of two containers do not fight; on one of any container they do. */
static void test_knobs_that_are_not_the_same(void) {
    static const char two[] =
        "exporter: {url: 'http://b'}\n"
        "prometheus: {url: 'http://b'}\n"
        "loops:\n"
        "  - {name: a, query: x, setpoint: 1, direction: up, min: 0, max: 1,\n"
        "     knob: {plugin: p, param: q, container: one}}\n"
        "  - {name: b, query: x, setpoint: 1, direction: up, min: 0, max: 1,\n"
        "     knob: {plugin: p, param: q, container: two}}\n";
    parse_well(two);
    TEST_ASSERT_EQUAL_size_t(2, config.n_loops);
    char any[sizeof(two)];
    strcpy(any, two);
    memset(strstr(any, ", container: two"), ' ', strlen(", container: two"));
    TEST_ASSERT_EQUAL_INT(-EINVAL, parse(any));
}

static void test_files_are_named_from_the_file(void) {
    static const char text[] = "exporter: {url: 'http://b', bearer_token_file: secret}\n"
                               "prometheus: {url: 'http://b', bearer_token_file: /secret}\n";
    control_config_parse("/etc/waap/c.yaml", text, strlen(text), &config, &problems);
    TEST_ASSERT_EQUAL_STRING("/etc/waap/secret", config.exporter.bearer_token_file);
    TEST_ASSERT_EQUAL_STRING("/secret", config.prometheus.bearer_token_file);
}

static void test_messages(void) {
    parse_well("exporter: {url: 'http://b'}\nwaggle: {}\n");
    TEST_ASSERT_EQUAL_STRING("/run/metrics", config.waggle.directory);
    TEST_ASSERT_EQUAL_STRING("ses", config.waggle.namespace);
    TEST_ASSERT_EQUAL_INT64(30000, config.waggle.interval_ms);
    parse_well("exporter: {url: 'http://b'}\n"
               "waggle: {directory: /x, namespace: '', interval: 5s}\n");
    TEST_ASSERT_EQUAL_STRING("/x", config.waggle.directory);
    TEST_ASSERT_EQUAL_STRING("", config.waggle.namespace);
    TEST_ASSERT_EQUAL_INT(-EINVAL, parse("waggle: {}\n"));
}

#define WAGGLE "exporter: {url: 'http://b'}\nwaggle:\n"
#define BROKER "  amqp: {host: rabbit, password_file: word}\n"

static void test_waggle_broker(void) {
    parse_well(WAGGLE BROKER);
    TEST_ASSERT_NULL(config.waggle.directory);
    const struct amqp_target *target = &config.waggle.amqp;
    TEST_ASSERT_EQUAL_STRING("rabbit", target->host);
    TEST_ASSERT_EQUAL_INT64(5672, target->port);
    TEST_ASSERT_EQUAL_STRING("service", target->user);
    TEST_ASSERT_EQUAL_STRING("to-validator", target->exchange);
    TEST_ASSERT_EQUAL_STRING("node", target->routing_key);
    parse_well("prometheus: {url: 'http://a'}\n" WAGGLE "  directory: /x\n"
               "  amqp: {host: h, port: 1, user: u, password_file: /p, exchange: e, scope: all}\n"
               "  messages:\n"
               "    - {name: sys.node.power, query: 'node:power:watts'}\n"
               "    - {name: a_1, query: up}\n");
    TEST_ASSERT_EQUAL_STRING("/x", config.waggle.directory);
    TEST_ASSERT_EQUAL_STRING("/p", target->password_file);
    TEST_ASSERT_EQUAL_STRING("all", target->routing_key);
    TEST_ASSERT_EQUAL_size_t(2, config.waggle.n_messages);
    TEST_ASSERT_EQUAL_STRING("node:power:watts", config.waggle.messages[0].query);
    TEST_ASSERT_EQUAL_STRING("a_1", config.waggle.messages[1].name);
}

static void test_waggle_mistakes(void) {
    static const struct {
        const char *text, *said;
    } cases[] = {
        {WAGGLE "  amqp: {host: rabbit}\n",
         ":3:9: waggle.amqp: expected a host and a password_file"},
        {WAGGLE BROKER "  messages: [{name: a, query: up}]\n", "expected prometheus: {url: "},
        {WAGGLE BROKER "  messages: [{name: a}]\n",
         "waggle.messages[0]: expected a name and a query"},
        {WAGGLE BROKER "  messages: [{name: ../a, query: up}]\n", "got \"../a\""},
        {WAGGLE BROKER
         "  messages: [{name: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, "
         "query: up}]\n",
         "at most 64 lower-case letters"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        TEST_ASSERT_EQUAL_INT(-EINVAL, parse(cases[i].text));
        TEST_ASSERT_NOT_NULL_MESSAGE(strstr(problems.lines[0], cases[i].said), problems.lines[0]);
    }
}

static void test_table(void) {
    char path[] = "/tmp/test_control_config.XXXXXX";
    int fd CLEANUP_CLOSE = mkstemp(path);
    static const char summary[] = "{\"sweep\":[{\"knobs\":{\"res\":720},\"measures\":{\"fps\":20}},"
                                  "{\"knobs\":{\"res\":240},\"measures\":{\"fps\":60}}]}";
    TEST_ASSERT_EQUAL_INT(strlen(summary), write(fd, summary, strlen(summary)));
    struct buf text CLEANUP_BUF = {0};
    buf_printf(&text,
               HEAD LOOP "    setpoint: 30\n    min: 240\n    max: 1080\n    law: table\n"
                         "    table: {file: %s, measure: fps}\n",
               path);
    parse_well(buf_str(&text));
    unlink(path);
    const struct control_rule *rule = &config.loops[0].rule;
    TEST_ASSERT_EQUAL_size_t(2, rule->n_table);
    TEST_ASSERT_EQUAL_DOUBLE(240, rule->table[0].position);
    TEST_ASSERT_EQUAL_INT(-1, rule->direction);
    TEST_ASSERT_EQUAL_DOUBLE(840, rule->up.max_step);
}
