#include "exporter/cli/cli.h"

#include <string.h>
#include <unity.h>

static const struct metric_desc load = {
    .name = "node_load1", .type = METRIC_GAUGE, .help = "Load over 1m"};
static const struct metric_desc cpu = {.name = "node_cpu_seconds_total",
                                       .type = METRIC_COUNTER,
                                       .labels = "cpu, mode",
                                       .help = "Seconds the CPUs spent"};
static const struct metric_desc shared = {
    .name = "gpu_info", .type = METRIC_INFO, .labels = "gpu", .help = "What it is"};
static const struct metric_desc build_info = {
    .name = "waap_build_info", .type = METRIC_INFO, .labels = "version", .help = "This build"};

static const struct option host_options[] = {
    {.name = "collector.host.mounts", .type = OPTION_REGEX, .default_text = "^/", .help = "Mounts"},
    {0},
};
static const struct collector host = {
    .name = "host",
    .help = "CPU and load",
    .on_by_default = true,
    .options = host_options,
    .metrics = (const struct metric_desc *const[]){&load, &shared, &cpu, NULL},
};
static const struct collector nvml = {
    .name = "nvml",
    .help = "NVIDIA cards",
    .metrics = (const struct metric_desc *const[]){&shared, NULL},
};
static const struct metric_desc *const own[] = {&build_info, NULL};
static const struct cli_build build = {
    .collectors = (const struct collector *const[]){&host, &nvml, NULL},
    .own = {.name = "-", .metrics = own},
};

static struct buf out;

void tearDown(void) {
    buf_finish(&out);
}

static void test_metrics_are_sorted_and_aligned(void) {
    cli_write_metrics(&build, &out);
    TEST_ASSERT_EQUAL_STRING(
        "metric                  type     labels     collector  help\n"
        "gpu_info                info     gpu        host       What it is\n"
        "gpu_info                info     gpu        nvml       What it is\n"
        "node_cpu_seconds_total  counter  cpu, mode  host       Seconds the CPUs spent\n"
        "node_load1              gauge    -          host       Load over 1m\n"
        "waap_build_info         info     version    -          This build\n",
        buf_str(&out));
}

static void test_collectors(void) {
    cli_write_collectors(&build, &out);
    TEST_ASSERT_EQUAL_STRING("collector  default  reads\n"
                             "host       on       CPU and load\n"
                             "nvml       off      NVIDIA cards\n",
                             buf_str(&out));
}

static void test_settings_have_all_their_names(void) {
    static const char *const patterns[][6] = {
        {"setting ", " key ", " variable ", " takes ", " default ", " help\n"},
        {"collector.host ", " collector.host.enabled ", " WAAP_COLLECTOR_HOST ", " true or false ",
         " true ", " CPU and load\n"},
        {"collector.host.mounts ", " collector.host.mounts ", " WAAP_COLLECTOR_HOST_MOUNTS ",
         " a regular expression ", " ^/ ", " Mounts\n"},
        {"config.file ", " - ", " WAAP_CONFIG_FILE ", " a text ", " - ", "\n"},
        {"log.level ", " log.level ", " WAAP_LOG_LEVEL ", " one of debug, info, warn, error ",
         " info ", "\n"},
        {"web.listen-address ", " web.listen_address ", " WAAP_WEB_LISTEN_ADDRESS ",
         " a text, repeatable ", " :9090 ", "\n"},
    };
    cli_write_settings(&build, &out);
    for (size_t i = 0; i < ARRAY_LEN(patterns); i++) {
        const char *at = strstr(buf_str(&out), patterns[i][0]);
        TEST_ASSERT_NOT_NULL_MESSAGE(at, patterns[i][0]);
        TEST_ASSERT_TRUE(at == buf_str(&out) || at[-1] == '\n');
        const char *end = strchr(at, '\n');
        for (size_t j = 1; j < ARRAY_LEN(patterns[i]); j++) {
            at = strstr(at + 1, patterns[i][j]);
            TEST_ASSERT_TRUE_MESSAGE(at != NULL && at <= end, patterns[i][j]);
        }
    }
}

static void test_help_shows_every_kind_of_option(void) {
    static const char *const parts[] = {
        "usage: waap serve [flags]\n",
        "\ncommon settings\n  --config.file=TEXT\n",
        "      Default info; one of debug, info, warn, error; WAAP_LOG_LEVEL\n",
        "  --web.listen-address=TEXT (repeatable)\n",
        "\nquestions\n  --help\n",
        "\ncollector\n  --[no-]collector.disable-defaults\n",
        "  --[no-]collector.host\n      CPU and load\n      Default on; WAAP_COLLECTOR_HOST\n",
        "  --collector.host.mounts=REGEX\n      Mounts\n",
        "      Default ^/; WAAP_COLLECTOR_HOST_MOUNTS\n",
        "  --[no-]collector.nvml\n      NVIDIA cards\n      Default off; WAAP_COLLECTOR_NVML\n",
        "\nweb\n",
        "      Default empty; WAAP_WEB_LISTEN_GROUP\n",
        "      Default 16KiB; a size from 4KiB to 1MiB; WAAP_WEB_MAX_HEADER_SIZE\n",
    };
    cli_write_help(&build, &out);
    const char *at = buf_str(&out);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        at = strstr(at, parts[i]); /* in this order */
        TEST_ASSERT_NOT_NULL_MESSAGE(at, parts[i]);
    }
}

static void test_questions_are_found_anywhere(void) {
    static const struct {
        const char *argv[4];
        const char *expected; /* beginning of the answer; NULL: none */
    } rows[] = {
        {{"serve"}, NULL},
        {{"serve", "--log.level=info"}, NULL},
        {{"--help"}, NULL},
        {{"serve", "--help"}, "usage: waap serve"},
        {{"serve", "--bad", "-h"}, "usage: waap serve"},
        {{"serve", "--version", "--help"}, "waap "},
        {{"serve", "--list-metrics"}, "metric "},
        {{"serve", "--list-collectors"}, "collector "},
        {{"serve", "--list-settings"}, "setting "},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int argc = 0;
        while (rows[i].argv[argc] != NULL) {
            argc++;
        }
        buf_reset(&out);
        bool answered = cli_answer(&build, argc, (char *const *)rows[i].argv, &out);
        TEST_ASSERT_EQUAL_INT(rows[i].expected != NULL, answered);
        const char *expected = rows[i].expected != NULL ? rows[i].expected : "";
        TEST_ASSERT_EQUAL_STRING_LEN(expected, buf_str(&out), strlen(expected));
    }
}
