#include "exporter/metrics/exposition.h"

#include <stdlib.h>
#include <unity.h>

#define TEXT "text/plain; version=0.0.4; charset=utf-8"
#define OPENMETRICS "application/openmetrics-text; version=1.0.0; charset=utf-8"
#define OPENMETRICS_0_0_1 "application/openmetrics-text; version=0.0.1; charset=utf-8"
#define UTF8 "; escaping=allow-utf-8"

struct accept_case {
    const char *accept;
    const char *content_type;
};

static void check(const struct accept_case *cases, size_t n) {
    for (size_t i = 0; i < n; i++) {
        struct exposition_choice choice = exposition_negotiate(cases[i].accept);
        TEST_ASSERT_EQUAL_STRING_MESSAGE(cases[i].content_type, exposition_content_type(choice),
                                         cases[i].accept);
    }
}

/* The lines that released versions of Prometheus send. */
static void test_what_prometheus_sends(void) {
    static const struct accept_case cases[] = {
        /* 2.42 */
        {"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;"
         "q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
         OPENMETRICS},
        /* 2.42 with native histograms */
        {"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding="
         "delimited,application/openmetrics-text;version=1.0.0;q=0.8,application/openmetrics-text;"
         "version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
         OPENMETRICS},
        /* 2.53 */
        {"application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version="
         "0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
         OPENMETRICS},
        /* 3.0 to 3.2, with one parameter given twice */
        {"application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/"
         "openmetrics-text;version=0.0.1;escaping=allow-utf-8;q=0.5,text/plain;version=1.0.0;"
         "escaping=allow-utf-8;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;escaping=allow-"
         "utf-8;q=0.3,*/*;q=0.2",
         OPENMETRICS UTF8},
        /* 3.3 */
        {"application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/"
         "openmetrics-text;version=0.0.1;escaping=allow-utf-8;q=0.5,text/plain;version=1.0.0;"
         "escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;escaping=allow-utf-8;q=0.3,*/*;q=0.2",
         OPENMETRICS UTF8},
        /* 3.4 and later */
        {"application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/"
         "openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
         "text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
         OPENMETRICS UTF8},
        /* 3.5 with native histograms */
        {"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding="
         "delimited;q=0.6,application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
         "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-"
         "utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
         OPENMETRICS UTF8},
        /* scrape_protocols: [PrometheusText1.0.0], doubled parameter and all */
        {"text/plain;version=1.0.0;escaping=allow-utf-8;escaping=allow-utf-8;q=0.3,*/*;q=0.2",
         TEXT UTF8},
        /* scrape_protocols: [PrometheusText0.0.4, OpenMetricsText0.0.1] */
        {"text/plain;version=0.0.4;q=0.4,application/openmetrics-text;version=0.0.1;q=0.3,*/*;"
         "q=0.2",
         TEXT},
        /* protobuf alone */
        {"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding="
         "delimited;q=0.3,*/*;q=0.2",
         TEXT},
    };
    check(cases, ARRAY_LEN(cases));
}

static void test_what_others_send(void) {
    static const struct accept_case cases[] = {
        {NULL, TEXT},
        {"", TEXT},
        {"*/*", TEXT},
        {"text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8", TEXT},
        {"application/json", TEXT},
        {"text/plain", TEXT},
        {"text/*;q=0.3, text/plain;q=0.7", TEXT},
        {"application/openmetrics-text", OPENMETRICS_0_0_1},
        {"application/openmetrics-text; version=0.0.1", OPENMETRICS_0_0_1},
        {"application/openmetrics-text; version=1.0.0; charset=utf-8", OPENMETRICS},
        {"application/openmetrics-text;version=2.0.0", TEXT},
        {"application/openmetrics-text;version=2.0.0,application/openmetrics-text;version=1.0.0;"
         "q=0.1",
         OPENMETRICS},
        {"APPLICATION/OpenMetrics-Text; Version=1.0.0; Q=0.5, text/plain; q=0.4", OPENMETRICS},
    };
    check(cases, ARRAY_LEN(cases));
}

#define ASK_OM "application/openmetrics-text;version=1.0.0"

static void test_weights(void) {
    static const struct accept_case cases[] = {
        {ASK_OM ";q=0.5,text/plain;q=0.5", OPENMETRICS}, /* a tie: the first named */
        {"text/plain;q=0.5," ASK_OM ";q=0.5", TEXT},
        {"text/plain," ASK_OM, TEXT},
        {ASK_OM ";q=0.1,text/plain;q=0.9", TEXT},
        {"text/plain;q=0.1," ASK_OM ";q=0.11", OPENMETRICS},
        {"text/plain;q=0.998," ASK_OM ";q=0.999", OPENMETRICS},
        {"text/plain;q=0.9," ASK_OM, OPENMETRICS}, /* none given is 1 */
        {ASK_OM ";q=0", TEXT},
        {ASK_OM ";q=0.000,*/*;q=0.1", TEXT},
        {ASK_OM ";q=0,text/plain;q=0", TEXT}, /* never 406 */
        {"text/plain;q=0," ASK_OM ";q=0.001", OPENMETRICS},
        {"text/plain;q=.4," ASK_OM ";q=.5", OPENMETRICS},
        {"text/plain;q=0.5," ASK_OM ";q=1", OPENMETRICS},
        {"text/plain;q=0.5," ASK_OM ";q=1.000", OPENMETRICS},
        {"text/plain;q=0.3333333333333333," ASK_OM ";q=0.4444444444444", OPENMETRICS},
        {"text/plain;q=0.9," ASK_OM ";q=", OPENMETRICS}, /* no number: as if not given */
        {"text/plain;q=0.9," ASK_OM ";q=much", OPENMETRICS},
        {"text/plain;q=0.9," ASK_OM ";q=-1", OPENMETRICS},
        {"text/plain;q=0.9," ASK_OM ";q=0x1", OPENMETRICS},
        {"text/plain;q=1," ASK_OM ";q=7", TEXT}, /* more than 1 is 1 */
        {"text/plain;q=1," ASK_OM ";q=1.9", TEXT},
    };
    check(cases, ARRAY_LEN(cases));
}

static void test_odd_spelling(void) {
    static const struct accept_case cases[] = {
        {"application/openmetrics-text;version=\"1.0.0\"", OPENMETRICS},
        {"application/openmetrics-text;version=\"1.0.0\";q=\"0.5\",text/plain;q=0.6", TEXT},
        {"\t" ASK_OM " ; q = 0.9 ,\ttext/plain ; q=0.8 ", OPENMETRICS},
        {"text/plain;note=\"a,b;q=0.1\\\"," ASK_OM "\";q=0.2," ASK_OM ";q=0.1", TEXT},
        {"text/plain;note=\"a,b\\\"c\";q=0.2," ASK_OM ";q=0.3", OPENMETRICS},
        {",,;;,;q=1,, " ASK_OM " ,,", OPENMETRICS},
        {"text/plain;;;q=0.1;," ASK_OM ";;q=0.2;;", OPENMETRICS},
        {"=;=,==;q==," ASK_OM, OPENMETRICS},
        {"text/plain;note=\"never closed," ASK_OM, TEXT},
        {"text/plain;note=\"never closed\\", TEXT},
        {"\"" ASK_OM "\"", TEXT},
        {"\x01\xff\xfe;q=0.5", TEXT},
        {"application/openmetrics-textile;version=1.0.0", TEXT},
        {"application/openmetrics-tex", TEXT},
        {"application/openmetrics-text;version=1.0.0.0", TEXT},
    };
    check(cases, ARRAY_LEN(cases));
}

static void test_escaping_comes_back(void) {
    static const struct accept_case cases[] = {
        {"text/plain;version=0.0.4;escaping=underscores", TEXT "; escaping=underscores"},
        {"text/plain;version=0.0.4;escaping=dots", TEXT "; escaping=dots"},
        {"text/plain;version=1.0.0;escaping=values", TEXT "; escaping=values"},
        {ASK_OM ";escaping=underscores", OPENMETRICS "; escaping=underscores"},
        {ASK_OM ";escaping=dots", OPENMETRICS "; escaping=dots"},
        {ASK_OM ";escaping=values", OPENMETRICS "; escaping=values"},
        {ASK_OM ";escaping=\"allow-utf-8\"", OPENMETRICS UTF8},
        {ASK_OM ";escaping=DOTS", OPENMETRICS "; escaping=dots"},
        {"application/openmetrics-text;escaping=dots", OPENMETRICS_0_0_1 "; escaping=dots"},
        {"*/*;escaping=allow-utf-8", TEXT UTF8},
        {ASK_OM ";escaping=", OPENMETRICS},
        {ASK_OM ";escaping=morse", OPENMETRICS},
        {ASK_OM ";escaping=dotsdots", OPENMETRICS},
        /* only what was said of the chosen one counts */
        {ASK_OM ";q=0.9,text/plain;escaping=dots;q=0.8", OPENMETRICS},
    };
    check(cases, ARRAY_LEN(cases));
}

static char *repeat(const char *piece, size_t times, const char *end) {
    struct buf buf = {0};
    for (size_t i = 0; i < times; i++) {
        buf_add_str(&buf, piece);
    }
    buf_add_str(&buf, end);
    return buf_take(&buf);
}

static void test_very_long_headers(void) {
    static const struct {
        const char *piece;
        const char *end;
        const char *content_type;
    } cases[] = {
        {"text/plain;q=0.5,", ASK_OM, OPENMETRICS},
        {",", ASK_OM, OPENMETRICS},
        {"a", "," ASK_OM, OPENMETRICS},
        {";", "," ASK_OM, OPENMETRICS},
        {"x;escaping=dots;", "," ASK_OM, OPENMETRICS},
        {"\"", ASK_OM, TEXT},
        {" ", ASK_OM, OPENMETRICS},
        {"0", ";q=0.00000," ASK_OM, OPENMETRICS},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *header CLEANUP_FREE = repeat(cases[i].piece, 100000, cases[i].end);
        TEST_ASSERT_EQUAL_STRING(cases[i].content_type,
                                 exposition_content_type(exposition_negotiate(header)));
    }
}

static void test_gzip_only_when_asked_for(void) {
    static const struct {
        const char *accept_encoding;
        bool gzip;
    } cases[] = {
        {NULL, false},
        {"", false},
        {"identity", false},
        {"gzip", true},
        {"GZIP", true},
        {"x-gzip", true},
        {"gzip, deflate, br, zstd", true},
        {"deflate, gzip;q=1.0, *;q=0.5", true},
        {"deflate,gzip;q=0.001", true},
        {"gzip;q=0", false},
        {"gzip;q=0.0, *", false},
        {"*, gzip;q=0", false},
        {"*", true},
        {"*;q=0", false},
        {"identity;q=0.5, *;q=0", false},
        {"gzipped", false},
        {"bzip2", false},
        {"br;note=\"gzip\"", false},
        {"br;note=gzip, deflate", false},
        {" , ;, gzip ", true},
        {"\"gzip\"", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        TEST_ASSERT_EQUAL_MESSAGE(cases[i].gzip, exposition_accepts_gzip(cases[i].accept_encoding),
                                  cases[i].accept_encoding);
    }
}
