#include "exporter/http/stats.h"

#include <string.h>
#include <unity.h>

#include "exporter/metrics/exposition.h"
#include "tests/unit/exporter/metrics/exposition_text.h"

static struct http_stats *stats;
static struct buf page;

void setUp(void) {
    stats = http_stats_create();
    TEST_ASSERT_NOT_NULL(stats);
}

void tearDown(void) {
    http_stats_destroy(stats);
    buf_finish(&page);
}

static void render(void) {
    struct snapshot snapshot CLEANUP_SNAPSHOT = {0};
    http_stats_collect(stats, &snapshot);
    struct exposition_part *part = exposition_part_create(&snapshot, NULL);
    buf_finish(&page);
    exposition_text(&page, (struct exposition_choice){EXPOSITION_TEXT}, &part, 1, NULL);
    exposition_part_unref(part);
}

static void check_line(const char *line) {
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(buf_str(&page), line), line);
}

static void test_counts_by_code_and_handler(void) {
    http_stats_note(stats, "/metrics", 200, 0.1);
    http_stats_note(stats, "/metrics", 200, 0.1);
    http_stats_note(stats, "/metrics", 503, 0.1);
    http_stats_note(stats, "other", 404, 0.1);
    render();
    check_line("\nwaap_http_requests_total{code=\"200\",handler=\"/metrics\"} 2\n");
    check_line("\nwaap_http_requests_total{code=\"503\",handler=\"/metrics\"} 1\n");
    check_line("\nwaap_http_requests_total{code=\"404\",handler=\"other\"} 1\n");
}

static void test_histogram_is_cumulative_with_inclusive_bounds(void) {
    http_stats_note(stats, "/", 200, 0);
    http_stats_note(stats, "/", 200, 0.0005);
    http_stats_note(stats, "/", 200, 0.25);
    http_stats_note(stats, "/", 200, 11);
    render();
    check_line("\nwaap_http_request_duration_seconds_bucket{handler=\"/\",le=\"0.0005\"} 2\n");
    check_line("\nwaap_http_request_duration_seconds_bucket{handler=\"/\",le=\"0.1\"} 2\n");
    check_line("\nwaap_http_request_duration_seconds_bucket{handler=\"/\",le=\"0.25\"} 3\n");
    check_line("\nwaap_http_request_duration_seconds_bucket{handler=\"/\",le=\"10.0\"} 3\n");
    check_line("\nwaap_http_request_duration_seconds_bucket{handler=\"/\",le=\"+Inf\"} 4\n");
    check_line("\nwaap_http_request_duration_seconds_sum{handler=\"/\"} 11.2505\n");
    check_line("\nwaap_http_request_duration_seconds_count{handler=\"/\"} 4\n");
}

static void test_has_an_end(void) {
    for (unsigned code = 100; code < 2000; code++) {
        http_stats_note(stats, "/", code, 0.1);
    }
    render();
    check_line("{code=\"355\",handler=\"/\"} 1\n");
    TEST_ASSERT_NULL(strstr(buf_str(&page), "{code=\"356\""));
    check_line("_count{handler=\"/\"} 1900\n");
}
