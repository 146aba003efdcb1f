#include "exporter/metrics/parse.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unity.h>

#include "exporter/core/buf.h"
#include "exporter/core/file.h"
#include "exporter/core/number.h"
#include "exporter/metrics/exposition.h"
#include "exporter/metrics/snapshot.h"
#include "tests/unit/exporter/metrics/exposition_text.h"

static const struct exposition_limits roomy = {
    .max_families = 1000000,
    .max_samples = 1000000,
    .max_labels = 64,
    .max_name_len = 256,
    .max_value_len = 4096,
};

static struct exposition_doc doc;
static struct error err;

void tearDown(void) {
    exposition_doc_finish(&doc);
}

/* Parses a copy of exactly that size, so that a sanitizer sees a read past its end. The copy stays
 * until the next call: the document points into it. */
static int parse_bytes(const char *text, size_t len, const struct exposition_limits *limits) {
    static char *copy;
    free(copy);
    copy = malloc(len > 0 ? len : 1);
    memcpy(copy, text, len);
    err.text[0] = '\0';
    return exposition_parse(copy, len, limits, &doc, &err);
}

static int parse(const char *text) {
    return parse_bytes(text, strlen(text), &roomy);
}

static void dump_sample(struct buf *out, const struct exposition_sample *sample) {
    buf_printf(out, "%s%s", doc.families[sample->family].desc.name, sample->suffix);
    const struct label *labels = exposition_doc_labels(&doc, sample);
    for (size_t i = 0; i < sample->n_labels; i++) {
        buf_printf(out, "%s%s=\"%s\"", i == 0 ? "{" : ",", labels[i].name, labels[i].value);
    }
    char number[NUMBER_MAX_LEN];
    int n = (int)number_format(sample->value, number);
    buf_printf(out, "%s %.*s", sample->n_labels > 0 ? "}" : "", n, number);
    if (sample->has_timestamp) {
        buf_printf(out, " @%lld", (long long)sample->timestamp_ms);
    }
}

static void dump(struct buf *out) {
    for (size_t i = 0; i < doc.n_families; i++) {
        const struct metric_desc *desc = &doc.families[i].desc;
        buf_printf(out, "%s%s %s", i > 0 ? "; " : "", metric_type_name(desc->type), desc->name);
        if (desc->help != NULL) {
            buf_printf(out, " \"%s\"", desc->help);
        }
    }
    for (size_t i = 0; i < doc.n_samples; i++) {
        buf_add_str(out, "; ");
        dump_sample(out, &doc.samples[i]);
    }
}

/* Undoes the escapes of a column of the table. */
static void decode(const char *from, size_t len, struct buf *out) {
    buf_reset(out);
    for (const char *c = from; c < from + len; c++) {
        if (*c != '\\') {
            buf_add_char(out, *c);
        } else if (*++c == 'x') {
            char hex[3] = {c[1], c[2], '\0'};
            buf_add_char(out, (char)strtoul(hex, NULL, 16));
            c += 2;
        } else {
            buf_add_char(out, *c == 'n' ? '\n' : *c == 't' ? '\t' : *c == 'r' ? '\r' : *c);
        }
    }
}

static void check_row(const char *row) {
    const char *page = strchr(row, '\t') + 1;
    const char *expected = strchr(page, '\t');
    TEST_ASSERT_NOT_NULL_MESSAGE(expected, row);

    struct buf text CLEANUP_BUF = {0};
    struct buf want CLEANUP_BUF = {0};
    struct buf got CLEANUP_BUF = {0};
    decode(page, (size_t)(expected - page), &text);
    decode(expected + 1, strlen(expected + 1), &want);
    int r = parse_bytes(buf_str(&text), text.len, &roomy);
    if (r == 0) {
        dump(&got);
    }
    const char *result = r == 0 ? buf_str(&got) : err.text;
    TEST_ASSERT_EQUAL_STRING_MESSAGE(buf_str(&want), result, row);
    int code = strstr(buf_str(&want), "second sample of") != NULL ? -EEXIST
               : strncmp(buf_str(&want), "line ", 5) == 0         ? -EINVAL
                                                                  : 0;
    TEST_ASSERT_EQUAL_MESSAGE(code, r, row);
    TEST_ASSERT_TRUE_MESSAGE(r == 0 || doc.n_samples + doc.n_families == 0, row);
}

static void test_table_of_pages(void) {
    char *path CLEANUP_FREE =
        file_path_join(getenv("WAAP_SOURCE_ROOT"), "tests/fixtures/textfile/cases.tsv");
    struct buf table CLEANUP_BUF = {0};
    TEST_ASSERT_EQUAL_MESSAGE(0, file_read(path, &table, &err), err.text);
    size_t n_rows = 0;
    char *rest = table.data;
    for (char *row; (row = strsep(&rest, "\n")) != NULL;) {
        if (row[0] != '#' && row[0] != '\0') {
            check_row(row);
            n_rows++;
        }
    }
    TEST_ASSERT_GREATER_THAN(100, n_rows);
}

static void test_limits_name_themselves(void) {
    static const struct {
        const char *text;
        const char *message;
    } rows[] = {
        {"a 1\nb 1\nc 1\n", "line 3: column 1: more than 2 families"},
        {"# HELP a x\n# HELP b x\n# HELP c x\n", "line 3: column 8: more than 2 families"},
        {"a 1\na{b=\"1\"} 1\na{b=\"2\"} 1\n", "line 3: column 1: more than 2 samples"},
        {"a{b=\"1\",c=\"2\",d=\"3\",e=\"4\"} 1\n", "line 1: column 21: more than 3 labels"},
        {"abcdefghi 1\n", "line 1: column 1: name \"abcdefghi\" is longer than 8 bytes"},
        {"# HELP abcdefghi x\n", "line 1: column 8: name \"abcdefghi\" is longer than 8 bytes"},
        {"a{abcdefghi=\"\"} 1\n", "line 1: column 3: name \"abcdefghi\" is longer than 8 bytes"},
        {"a{b=\"123456\"} 1\n", "line 1: column 6: value of label \"b\" is longer than 5 bytes"},
    };
    static const struct exposition_limits tight = {.max_families = 2,
                                                   .max_samples = 2,
                                                   .max_labels = 3,
                                                   .max_name_len = 8,
                                                   .max_value_len = 5};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        TEST_ASSERT_EQUAL(-E2BIG, parse_bytes(rows[i].text, strlen(rows[i].text), &tight));
        TEST_ASSERT_EQUAL_STRING(rows[i].message, err.text);
    }
    const char *at_the_limits = "abcdefgh{a=\"12345\",b=\"\\\\\\\\\\\\\\\\\\\\\",c=\"\"} 1\nb 1\n";
    TEST_ASSERT_EQUAL(0, parse_bytes(at_the_limits, strlen(at_the_limits), &tight));
}

static void test_timestamps_are_refused_where_told(void) {
    struct exposition_limits limits = roomy;
    limits.no_timestamps = true;
    const char *text = "a 1\nb 1 1700000000000\n";
    TEST_ASSERT_EQUAL(-EINVAL, parse_bytes(text, strlen(text), &limits));
    TEST_ASSERT_EQUAL_STRING("line 2: column 5: timestamps are not allowed here", err.text);
}

static void test_many_series_and_families_are_told_apart(void) {
    struct buf page CLEANUP_BUF = {0};
    for (int i = 0; i < 20000; i++) {
        buf_printf(&page, "family_%d 1\nmany{a=\"%d\",b=\"%d\"} %d\n", i, i % 7, i, i);
    }
    TEST_ASSERT_EQUAL(0, parse_bytes(page.data, page.len, &roomy));
    TEST_ASSERT_EQUAL(20001, doc.n_families);
    TEST_ASSERT_EQUAL(40000, doc.n_samples);
    for (size_t i = 0; i < doc.n_samples; i += 2) {
        TEST_ASSERT_EQUAL_DOUBLE((double)i / 2, doc.samples[i + 1].value);
        TEST_ASSERT_EQUAL_STRING("many", doc.families[doc.samples[i + 1].family].desc.name);
    }
    buf_add_str(&page, "many{b=\"777\",a=\"0\"} 1\n");
    TEST_ASSERT_EQUAL(-EEXIST, parse_bytes(page.data, page.len, &roomy));
    TEST_ASSERT_EQUAL_STRING("line 40001: column 1: second sample of the same series of \"many\"",
                             err.text);
}

static void test_a_document_is_used_again(void) {
    TEST_ASSERT_EQUAL(0, parse("# TYPE a gauge\na{b=\"c\"} 1\n"));
    TEST_ASSERT_EQUAL(-EINVAL, parse("a{b=\"c\"} 1\nb"));
    TEST_ASSERT_EQUAL(0, parse("# TYPE a counter\na{b=\"c\"} 1\n"));
    TEST_ASSERT_EQUAL(1, doc.n_families);
    TEST_ASSERT_EQUAL(1, doc.n_samples);
    TEST_ASSERT_EQUAL(1, doc.families[0].n_samples);
    TEST_ASSERT_EQUAL(METRIC_COUNTER, doc.families[0].desc.type);
}

/* Renders the document as a page of ours. */
static void render(struct buf *out) {
    struct snapshot snapshot CLEANUP_SNAPSHOT = {0};
    struct labels **labels = calloc(doc.n_samples, sizeof(struct labels *));
    for (size_t i = 0; i < doc.n_samples; i++) {
        const struct exposition_sample *sample = &doc.samples[i];
        labels[i] = labels_create(exposition_doc_labels(&doc, sample), sample->n_labels);
        snapshot_add_suffixed(&snapshot, &doc.families[sample->family].desc, sample->suffix,
                              labels[i], sample->value);
    }
    struct exposition_part *part = exposition_part_create(&snapshot, NULL);
    exposition_text(out, (struct exposition_choice){.format = EXPOSITION_TEXT}, &part, 1, NULL);
    exposition_part_unref(part);
    for (size_t i = 0; i < doc.n_samples; i++) {
        labels_destroy(labels[i]);
    }
    free(labels);
}

static void test_what_we_write_reads_back_equal(void) {
    TEST_ASSERT_EQUAL(0, parse("# HELP a back\\\\slash\\nline\n# TYPE a gauge\n"
                               "a{x=\"\\\"q\\\"\\\\\\n\xe2\x82\xac\",b=\"2\"} 0.1\n"
                               "a NaN\na{i=\"1\"} +Inf\na{i=\"2\"} -Inf\na{i=\"3\"} 5e-324\n"
                               "a{i=\"4\"} 1.7976931348623157e+308\na{i=\"5\"} 9007199254740993\n"
                               "# HELP h h\n# TYPE h histogram\nh_bucket{le=\"0.5\"} 1\n"
                               "h_bucket{le=\"+Inf\"} 2\nh_sum 3.25\nh_count 2\n"
                               "# HELP s s\n# TYPE s summary\ns{quantile=\"0.9\"} 1e-9\n"
                               "s_sum 1\ns_count 1\n"
                               "# HELP x_total t\n# TYPE x_total counter\nx_total 1e21\n"));
    struct buf before CLEANUP_BUF = {0};
    struct buf after CLEANUP_BUF = {0};
    struct buf page CLEANUP_BUF = {0};
    dump(&before);
    render(&page);
    TEST_ASSERT_EQUAL_MESSAGE(0, parse(buf_str(&page)), err.text);
    dump(&after);
    TEST_ASSERT_EQUAL_STRING(before.data, after.data);
}
