#include "exporter/settings/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <unity.h>

#include "exporter/core/buf.h"

static const struct option alpha_options[] = {
    {.name = "collector.alpha.directory", .type = OPTION_STRING, .repeatable = true},
    {.name = "collector.alpha.mount-points-exclude", .type = OPTION_REGEX, .default_text = "^/x"},
    {0},
};
static const struct collector alpha = {
    .name = "alpha", .help = "Reads alpha", .options = alpha_options, .on_by_default = true};
static const struct collector beta = {.name = "beta", .help = "Reads beta"};
static const struct collector *const collectors[] = {&alpha, &beta, NULL};

static char directory[] = "/tmp/test_config.XXXXXX";
static struct config *config;
static struct problems problems;

void tearDown(void) {
    config_unref(config);
    config = NULL;
    problems_finish(&problems);
    unlink("waap.yaml");
}

static void write_file(const char *text) {
    FILE *file CLEANUP_FCLOSE = fopen("waap.yaml", "we");
    TEST_ASSERT_NOT_NULL(file);
    fputs(text, file);
}

/* Loads from a file (NULL: none), variables and flags, each ended by NULL. */
static int load(const char *yaml, const char *const *variables, const char *const *flags) {
    tearDown();
    const char *argv[32] = {"serve"};
    int argc = 1;
    while (flags != NULL && flags[argc - 1] != NULL) {
        argv[argc] = flags[argc - 1];
        argc++;
    }
    if (yaml != NULL) {
        write_file(yaml);
    }
    struct config_sources sources = {
        .file = yaml != NULL ? "waap.yaml" : NULL,
        .variables = (char *const *)variables,
        .argv = (char *const *)argv,
        .argc = argc,
    };
    return config_load(collectors, &sources, &config, &problems);
}

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static char *join_lines(const struct problems *from) {
    struct buf text = {0};
    for (size_t i = 0; i < from->n_lines; i++) {
        buf_printf(&text, "%s\n", from->lines[i]);
    }
    return buf_take(&text);
}

static void check_good(int r) {
    char *lines CLEANUP_FREE = join_lines(&problems);
    TEST_ASSERT_EQUAL_STRING("", lines);
    TEST_ASSERT_EQUAL_INT(0, r);
    TEST_ASSERT_NOT_NULL(config);
}

static void check_bad(int r, const char *expected, const char *what) {
    char *lines CLEANUP_FREE = join_lines(&problems);
    TEST_ASSERT_EQUAL_STRING_MESSAGE(expected, lines, what);
    TEST_ASSERT_EQUAL_INT_MESSAGE(-EINVAL, r, what);
    TEST_ASSERT_NULL_MESSAGE(config, what);
}

static void check_list(const char *name, const char *const *expected) {
    const char *const *list = settings_list(config->settings, name);
    size_t i = 0;
    for (; expected[i] != NULL; i++) {
        TEST_ASSERT_NOT_NULL(list[i]);
        TEST_ASSERT_EQUAL_STRING(expected[i], list[i]);
    }
    TEST_ASSERT_NULL(list[i]);
}

static void test_defaults(void) {
    check_good(load(NULL, NULL, NULL));
    check_list("web.listen-address", LIST(":9090"));
    TEST_ASSERT_EQUAL_INT64(128, settings_int(config->settings, "web.max-connections"));
    TEST_ASSERT_EQUAL_INT64(500, settings_duration_ms(config->settings, "scrape.timeout-offset"));
    TEST_ASSERT_TRUE(settings_bool(config->settings, "collector.alpha"));
    TEST_ASSERT_FALSE(settings_bool(config->settings, "collector.beta"));
}

/* A choice with a meaning of its own takes no word that is not joined to it. */
static void test_flag_of_a_choice_may_stand_alone(void) {
    static const struct {
        const char *flag;
        size_t expected;
    } rows[] = {{"--demo", 1}, {"--demo=jetson", 1}, {"--demo=true", 1}, {"--demo=off", 0}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        check_good(load("demo: off\n", NULL, LIST(rows[i].flag)));
        TEST_ASSERT_EQUAL_UINT(rows[i].expected, settings_choice(config->settings, "demo"));
    }
    check_good(load("demo: true\n", NULL, NULL));
    TEST_ASSERT_EQUAL_UINT(1, settings_choice(config->settings, "demo"));
    check_good(load(NULL, LIST("WAAP_DEMO=1"), NULL));
    TEST_ASSERT_EQUAL_UINT(1, settings_choice(config->settings, "demo"));
    check_bad(load(NULL, NULL, LIST("--demo", "off")),
              "off: unexpected argument, flags begin with --\n", "--demo off");
}

static void test_file_can_set_everything(void) {
    check_good(load("log: {level: debug}\n"
                    "web:\n"
                    "  listen_address: [\":1\", 'unix:/run/x']\n"
                    "  telemetry_path: /m\n"
                    "  max_requests: \"7\"\n"
                    "  max_header_size: 8KiB\n"
                    "  header_timeout: 5\n"
                    "  listen_mode: 0600\n"
                    "  config:\n"
                    "    file: web.yaml\n"
                    "scrape:\n"
                    "collector:\n"
                    "  disable_defaults: true\n"
                    "  alpha:\n"
                    "    directory: one\n"
                    "    mount_points_exclude: ''\n"
                    "  beta:\n"
                    "    enabled: true\n",
                    NULL, NULL));
    const struct settings *settings = config->settings;
    TEST_ASSERT_EQUAL_STRING("debug", settings_string(settings, "log.level"));
    check_list("web.listen-address", LIST(":1", "unix:/run/x"));
    TEST_ASSERT_EQUAL_STRING("/m", settings_string(settings, "web.telemetry-path"));
    TEST_ASSERT_EQUAL_INT64(7, settings_int(settings, "web.max-requests"));
    TEST_ASSERT_EQUAL_INT64(8192, settings_int(settings, "web.max-header-size"));
    TEST_ASSERT_EQUAL_INT64(5000, settings_duration_ms(settings, "web.header-timeout"));
    TEST_ASSERT_EQUAL_STRING("0600", settings_string(settings, "web.listen-mode"));
    TEST_ASSERT_EQUAL_STRING("web.yaml", settings_string(settings, "web.config.file"));
    check_list("collector.alpha.directory", LIST("one"));
    TEST_ASSERT_EQUAL_STRING("", settings_string(settings, "collector.alpha.mount-points-exclude"));
    TEST_ASSERT_FALSE(settings_bool(settings, "collector.alpha"));
    TEST_ASSERT_TRUE(settings_bool(settings, "collector.beta"));
}

static void test_empty_list_in_file(void) {
    check_good(load("web: {listen_address: []}\n", NULL, NULL));
    TEST_ASSERT_NULL(settings_list(config->settings, "web.listen-address")[0]);
}

static void test_bad_files(void) {
    static const struct {
        const char *text;
        const char *expected;
    } rows[] = {
        {"web:\n  max_requests: ten\n",
         "waap.yaml:2:17: web.max_requests: expected a whole number from 0 to 10000, got "
         "\"ten\"\n"},
        {"web:\n  max_requests: 10001\n",
         "waap.yaml:2:17: web.max_requests: expected a whole number from 0 to 10000, got "
         "\"10001\"\n"},
        {"web:\n  max_requests: [1]\n",
         "waap.yaml:2:17: web.max_requests: expected a whole number from 0 to 10000, got a "
         "list\n"},
        {"web:\n  max_requests:\n",
         "waap.yaml:2:16: web.max_requests: expected a whole number from 0 to 10000, got "
         "nothing\n"},
        {"web:\n  max_header_size: 2MiB\n",
         "waap.yaml:2:20: web.max_header_size: expected a size from 4KiB to 1MiB, got "
         "\"2MiB\"\n"},
        {"web: {idle_timeout: soon}\n",
         "waap.yaml:1:21: web.idle_timeout: expected a duration from 1s to 1d, got \"soon\"\n"},
        {"web: {telemetry_path: metrics}\n",
         "waap.yaml:1:23: web.telemetry_path: expected a path that begins with /, got "
         "\"metrics\"\n"},
        {"web: {listen_mode: 0980}\n",
         "waap.yaml:1:20: web.listen_mode: expected permissions in octal such as 0660, got "
         "\"0980\"\n"},
        {"web: {listen_address: {a: b}}\n",
         "waap.yaml:1:23: web.listen_address: expected a text or a list of such, got a mapping\n"},
        {"web: {listen_address: [\":1\", [x]]}\n",
         "waap.yaml:1:30: web.listen_address: expected a text or a list of such, got a list\n"},
        {"web: {systemd_socket: yes}\n",
         "waap.yaml:1:23: web.systemd_socket: expected true or false, got \"yes\"\n"},
        {"log: {level: loud}\n",
         "waap.yaml:1:14: log.level: expected one of debug, info, warn, error, got \"loud\"\n"},
        {"log: warn\n", "waap.yaml:1:6: log: expected a mapping, got a value\n"},
        {"- web\n", "waap.yaml:1:1: expected a mapping, got a list\n"},
        {"wep: {}\n", "waap.yaml:1:1: wep: unknown key, did you mean web?\n"},
        {"web:\n  listen-address: [\":1\"]\n",
         "waap.yaml:2:3: web.listen-address: unknown key, did you mean listen_address?\n"},
        {"listen_address: x\n",
         "waap.yaml:1:1: listen_address: unknown key, did you mean listen_address under web?\n"},
        {"web.listen-address: x\n", "waap.yaml:1:1: web.listen-address: unknown key, did you mean "
                                    "listen_address under web?\n"},
        {"collector: {web: {max-requests: 1}}\n", "waap.yaml:1:13: collector.web: unknown key\n"},
        {"enabled: true\n", "waap.yaml:1:1: enabled: unknown key\n"},
        {"config-file: x\n", "waap.yaml:1:1: config-file: unknown key\n"},
        {"collector:\n  alhpa: {enabled: true}\n",
         "waap.yaml:2:3: collector.alhpa: unknown key, did you mean alpha?\n"},
        {"collector:\n  betta: {enabled: true}\n",
         "waap.yaml:2:3: collector.betta: unknown key, did you mean beta?\n"},
        {"collector:\n  alpha: {enable: true}\n",
         "waap.yaml:2:11: collector.alpha.enable: unknown key, did you mean enabled?\n"},
        {"collector:\n  alpha: true\n", "waap.yaml:2:10: collector.alpha: expected a mapping such "
                                        "as {enabled: true}, got a value\n"},
        {"collector: {alpha: false}\n", "waap.yaml:1:20: collector.alpha: expected a mapping such "
                                        "as {enabled: false}, got a value\n"},
        {"collector: {alpha: [false]}\n",
         "waap.yaml:1:20: collector.alpha: expected a mapping, got a list\n"},
        {"collector: {alpha: {mount_points_exclude: '('}}\n",
         "waap.yaml:1:43: collector.alpha.mount_points_exclude: expected a regular expression, "
         "got \"(\": missing closing parenthesis at offset 1\n"},
        {"config: {file: other.yaml}\n",
         "waap.yaml:1:10: config.file: cannot be set in the file, only by --config.file\n"},
        {"log: {level: info}\nlog: {level: warn}\n",
         "waap.yaml:2:1: log: duplicate key, first given in line 1\n"},
        {"log: {level: info,\n", "waap.yaml:2:1: not valid YAML: did not find expected node "
                                 "content while parsing a flow node that began in line 2\n"},
        {"log:\n  level: loud\n  colour: red\nweb:\n  max_requests: -1\n  max_requests: 2\nx: 1\n",
         "waap.yaml:6:3: web.max_requests: duplicate key, first given in line 5\n"
         "waap.yaml:2:10: log.level: expected one of debug, info, warn, error, got \"loud\"\n"
         "waap.yaml:3:3: log.colour: unknown key\n"
         "waap.yaml:5:17: web.max_requests: expected a whole number from 0 to 10000, got "
         "\"-1\"\n"
         "waap.yaml:7:1: x: unknown key\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        check_bad(load(rows[i].text, NULL, NULL), rows[i].expected, rows[i].text);
    }
}

static void test_flags_in_all_their_forms(void) {
    check_good(
        load(NULL, NULL,
             LIST("--log.level=warn", "--web.max-requests", "3", "--web.systemd-socket",
                  "--no-collector.alpha", "--collector.beta=true", "--web.enable-lifecycle=false",
                  "--web.listen-address=:1", "--web.listen-address", "unix:/a=b",
                  "--web.listen-group=", "--web.max-requests=4")));
    const struct settings *settings = config->settings;
    TEST_ASSERT_EQUAL_STRING("warn", settings_string(settings, "log.level"));
    TEST_ASSERT_EQUAL_INT64(4, settings_int(settings, "web.max-requests"));
    TEST_ASSERT_TRUE(settings_bool(settings, "web.systemd-socket"));
    TEST_ASSERT_FALSE(settings_bool(settings, "web.enable-lifecycle"));
    TEST_ASSERT_FALSE(settings_bool(settings, "collector.alpha"));
    TEST_ASSERT_TRUE(settings_bool(settings, "collector.beta"));
    check_list("web.listen-address", LIST(":1", "unix:/a=b"));
}

static void test_bad_flags(void) {
    static const struct {
        const char *flags[4]; /* ended by NULL */
        const char *expected;
    } rows[] = {
        {{"--web.max-requests=x"},
         "--web.max-requests: expected a whole number from 0 to 10000, got \"x\"\n"},
        {{"--web.max-requests"},
         "--web.max-requests: expected a whole number from 0 to 10000, got nothing\n"},
        {{"--web.max-requests", "--log.level=info"},
         "--web.max-requests: expected a whole number from 0 to 10000, got nothing\n"},
        {{"--web.systemd-socket=maybe"},
         "--web.systemd-socket: expected true or false, got \"maybe\"\n"},
        {{"--no-collector.alpha=true"}, "--no-collector.alpha: takes no value, got \"true\"\n"},
        {{"--web.listen-adress=:1"},
         "--web.listen-adress: unknown flag, did you mean --web.listen-address?\n"},
        {{"--no-colector.alpha"},
         "--no-colector.alpha: unknown flag, did you mean --no-collector.alpha?\n"},
        {{"--no-log.level"},
         "--no-log.level: only switches can be negated, --log.level takes a value\n"},
        {{"--listen=:1"}, "--listen: unknown flag, did you mean --web.listen-address?\n"},
        {{"--no-frobnicate"}, "--no-frobnicate: unknown flag\n"},
        {{"--frobnicate=1"}, "--frobnicate: unknown flag\n"},
        {{"--"}, "--: unknown flag\n"},
        {{"--web.systemd-socket", "true"}, "true: unexpected argument, flags begin with --\n"},
        {{"-x", "--log.level=loud", "--y"},
         "-x: unexpected argument, flags begin with --\n"
         "--log.level: expected one of debug, info, warn, error, got \"loud\"\n"
         "--y: unknown flag\n"},
        {{"--config.file=missing.yaml"},
         "--config.file: open missing.yaml: No such file or directory\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        check_bad(load(NULL, NULL, rows[i].flags), rows[i].expected, rows[i].flags[0]);
    }
}

static void test_variables(void) {
    check_good(
        load(NULL,
             LIST("PATH=/bin", "WAAP_LOG_LEVEL=error", "WAAP_WEB_LISTEN_ADDRESS=:1,,:2",
                  "WAAP_COLLECTOR_BETA=1", "WAAP_COLLECTOR_ALPHA=false",
                  "WAAP_COLLECTOR_ALPHA_MOUNT_POINTS_EXCLUDE=a,b", "WAAP_WEB_MAX_CONNECTIONS="),
             NULL));
    const struct settings *settings = config->settings;
    TEST_ASSERT_EQUAL_STRING("error", settings_string(settings, "log.level"));
    check_list("web.listen-address", LIST(":1", ":2"));
    TEST_ASSERT_TRUE(settings_bool(settings, "collector.beta"));
    TEST_ASSERT_FALSE(settings_bool(settings, "collector.alpha"));
    TEST_ASSERT_EQUAL_STRING("a,b",
                             settings_string(settings, "collector.alpha.mount-points-exclude"));
    TEST_ASSERT_EQUAL_INT64(128, settings_int(settings, "web.max-connections"));
    TEST_ASSERT_EQUAL_UINT64(0, config->warnings.n_lines);
}

static void test_bad_variables(void) {
    int r = load(NULL, LIST("WAAP_WEB_MAX_REQUESTS=x", "WAAP_COLLECTOR_BETA=on"), NULL);
    check_bad(r,
              "WAAP_WEB_MAX_REQUESTS: expected a whole number from 0 to 10000, got \"x\"\n"
              "WAAP_COLLECTOR_BETA: expected true or false, got \"on\"\n",
              "variables");
    r = load(NULL, LIST("WAAP_CONFIG_FILE=missing.yaml"), NULL);
    check_bad(r, "WAAP_CONFIG_FILE: open missing.yaml: No such file or directory\n", "file");
}

static void test_unknown_variables_are_warnings(void) {
    check_good(load(NULL,
                    LIST("WAAP_LOG_LEVL=info", "WAAP_X=1", "WAAP_DATASET=/d", "WAAP_DEBUG=1",
                         "WAAP_JOB=b", "WAAP_PLUGIN_NAME=a"),
                    NULL));
    char *lines CLEANUP_FREE = join_lines(&config->warnings);
    TEST_ASSERT_EQUAL_STRING("WAAP_LOG_LEVL: unknown variable, did you mean WAAP_LOG_LEVEL?\n"
                             "WAAP_X: unknown variable\n",
                             lines);
}

static void test_flags_win_over_environment_over_file(void) {
    check_good(load("web: {max_requests: 1, max_connections: 11, header_timeout: 21s}\n",
                    LIST("WAAP_WEB_MAX_REQUESTS=2", "WAAP_WEB_MAX_CONNECTIONS=12"),
                    LIST("--web.max-requests=3")));
    TEST_ASSERT_EQUAL_INT64(3, settings_int(config->settings, "web.max-requests"));
    TEST_ASSERT_EQUAL_INT64(12, settings_int(config->settings, "web.max-connections"));
    TEST_ASSERT_EQUAL_INT64(21000, settings_duration_ms(config->settings, "web.header-timeout"));
}

static void test_mistakes_of_all_sources_at_once(void) {
    int r = load("log: {level: a}\n", LIST("WAAP_LOG_LEVEL=b"), LIST("--log.level=c"));
    check_bad(r,
              "--log.level: expected one of debug, info, warn, error, got \"c\"\n"
              "WAAP_LOG_LEVEL: expected one of debug, info, warn, error, got \"b\"\n"
              "waap.yaml:1:14: log.level: expected one of debug, info, warn, error, got \"a\"\n",
              "all");
}

static void test_file_named_by_variable_or_flag(void) {
    write_file("sample: {hz: 20}\n");
    const char *const *variables = LIST("WAAP_CONFIG_FILE=waap.yaml");
    struct config_sources sources = {.variables = (char *const *)variables};
    check_good(config_load(collectors, &sources, &config, &problems));
    TEST_ASSERT_EQUAL_INT64(20, settings_int(config->settings, "sample.hz"));
    config_unref(config);

    const char *const *argv = LIST("serve", "--config.file=waap.yaml", "--sample.hz=30");
    sources = (struct config_sources){.argv = (char *const *)argv, .argc = 3};
    check_good(config_load(collectors, &sources, &config, &problems));
    TEST_ASSERT_EQUAL_INT64(30, settings_int(config->settings, "sample.hz"));
}

static void test_disable_defaults_keeps_what_was_asked_for(void) {
    check_good(load(NULL, NULL, LIST("--collector.disable-defaults", "--collector.beta")));
    TEST_ASSERT_FALSE(settings_bool(config->settings, "collector.alpha"));
    TEST_ASSERT_TRUE(settings_bool(config->settings, "collector.beta"));

    check_good(
        load("collector: {alpha: {enabled: true}}\n", NULL, LIST("--collector.disable-defaults")));
    TEST_ASSERT_TRUE(settings_bool(config->settings, "collector.alpha"));
    TEST_ASSERT_FALSE(settings_bool(config->settings, "collector.beta"));
}

void suiteSetUp(void) {
    if (mkdtemp(directory) == NULL || chdir(directory) < 0) {
        perror(directory);
        exit(1);
    }
}

int suiteTearDown(int failures) {
    rmdir(directory);
    return failures;
}
