#include <errno.h>
#include <string.h>
#include <unity.h>

#include "exporter/gateway/body.h"
#include "tests/unit/exporter/gateway/gateway_updates.h"

static const struct exposition_limits limits = {
    .max_families = 4,
    .max_samples = 4,
    .max_labels = 2,
    .max_name_len = 10,
    .max_value_len = 10,
};

static struct gateway_body body;

/* ---- a writer of messages ---- */

static void varint(struct buf *out, uint64_t value) {
    for (; value >= 0x80; value >>= 7) {
        buf_add_char(out, (char)(value | 0x80));
    }
    buf_add_char(out, (char)value);
}

static void field_integer(struct buf *out, unsigned number, uint64_t value) {
    varint(out, number << 3);
    varint(out, value);
}

static void field_double(struct buf *out, unsigned number, double value) {
    varint(out, number << 3 | 1);
    buf_add(out, &value, sizeof(value));
}

static void field_bytes(struct buf *out, unsigned number, const void *data, size_t len) {
    varint(out, number << 3 | 2);
    varint(out, len);
    buf_add(out, data, len);
}

static void field_text(struct buf *out, unsigned number, const char *text) {
    field_bytes(out, number, text, strlen(text));
}

/* Puts the message behind its number into `out` and empties it. */
static void field_message(struct buf *out, unsigned number, struct buf *message) {
    field_bytes(out, number, message->data, message->len);
    buf_reset(message);
}

static void field_label(struct buf *metric, const char *name, const char *value) {
    struct buf label CLEANUP_BUF = {0};
    field_text(&label, 1, name);
    field_text(&label, 2, value);
    field_message(metric, 1, &label);
}

static void field_bound(struct buf *out, bool histogram, double bound, double value) {
    struct buf message CLEANUP_BUF = {0};
    if (histogram) {
        field_integer(&message, 1, (uint64_t)value);
        field_double(&message, 2, bound);
    } else {
        field_double(&message, 1, bound);
        field_double(&message, 2, value);
    }
    field_message(out, 3, &message);
}

/* A family of one metric, behind its length. */
static void family(struct buf *out, const char *name, uint64_t type, struct buf *metric) {
    struct buf message CLEANUP_BUF = {0};
    field_message(&message, 4, metric); /* before the name, which is legal */
    field_text(&message, 1, name);
    field_text(&message, 2, "so so");
    field_integer(&message, 3, type);
    varint(out, message.len);
    buf_add(out, message.data, message.len);
}

/* What a metric of that field has as its single value. */
static void single(struct buf *metric, unsigned field, double value) {
    struct buf message CLEANUP_BUF = {0};
    field_double(&message, 1, value);
    field_message(metric, field, &message);
}

static int read_all(const struct buf *data, struct error *err) {
    return gateway_protobuf_read(data->data, data->len, &limits, &body, err);
}

static void check(const struct buf *data, const char *want) {
    struct error err = {0};
    int r = read_all(data, &err);
    TEST_ASSERT_EQUAL_STRING("", err.text);
    TEST_ASSERT_EQUAL_INT(0, r);
    struct buf got CLEANUP_BUF = {0};
    TEST_ASSERT_EQUAL_STRING(want, gateway_updates_text(&got, &body));
}

/* ---- tests ---- */

static void test_simple(void) {
    struct buf data CLEANUP_BUF = {0}, metric CLEANUP_BUF = {0};
    field_label(&metric, "y", "2");
    field_label(&metric, "x", "1");
    single(&metric, 3, 4.5);
    family(&data, "a", 0, &metric);
    field_label(&metric, "empty", "");
    single(&metric, 2, -1);
    family(&data, "b", 1, &metric);
    field_bytes(&metric, 5, "", 0); /* 0 is left out in protobuf */
    field_integer(&metric, 99, 7);  /* of a later version */
    family(&data, "c", 3, &metric);
    check(&data, "counter a{x=1,y=2} 4.5 \"so so\"\n"
                 "gauge b{} -1 \"so so\"\n"
                 "untyped c{} 0 \"so so\"\n");
}

static void test_timestamps_are_noticed(void) {
    struct buf data CLEANUP_BUF = {0}, metric CLEANUP_BUF = {0};
    single(&metric, 3, 1);
    family(&data, "a", 0, &metric);
    check(&data, "counter a{} 1 \"so so\"\n");
    TEST_ASSERT_FALSE(body.has_timestamps);
    single(&metric, 3, 1);
    field_integer(&metric, 6, 1000);
    family(&data, "b", 0, &metric);
    check(&data, "counter a{} 1 \"so so\"\ncounter b{} 1 \"so so\"\n");
    TEST_ASSERT_TRUE(body.has_timestamps);
}

static void test_composed(void) {
    struct buf data CLEANUP_BUF = {0}, metric CLEANUP_BUF = {0}, value CLEANUP_BUF = {0};
    field_integer(&value, 1, 3);
    field_double(&value, 2, 4.5);
    field_bound(&value, true, 1, 2);
    field_bound(&value, true, 2, 3);
    field_bound(&value, true, HUGE_VAL, 3);
    field_message(&metric, 7, &value);
    family(&data, "h", 4, &metric);
    field_integer(&value, 1, 9);
    field_double(&value, 2, 3);
    field_bound(&value, false, 0.5, 7);
    field_message(&metric, 4, &value);
    family(&data, "s", 2, &metric);
    check(&data, "histogram h{} 1:2 2:3 | 3 4.5 \"so so\"\nsummary s{} 0.5:7 | 9 3 \"so so\"\n");
}

/* The last one counts, whichever had more buckets. */
static void test_composed_twice(void) {
    for (int first = 0; first < 40; first += 13) {
        struct buf data CLEANUP_BUF = {0}, metric CLEANUP_BUF = {0}, value CLEANUP_BUF = {0};
        for (int i = 0; i < first; i++) {
            field_bound(&value, true, i, i);
        }
        field_message(&metric, 7, &value);
        field_integer(&value, 1, 3);
        field_bound(&value, true, 1, 2);
        field_message(&metric, 7, &value);
        family(&data, "h", 4, &metric);
        check(&data, "histogram h{} 1:2 | 3 0 \"so so\"\n");
    }
}

static void check_bad(struct buf *metric, const char *name, uint64_t type, const char *words) {
    struct buf data CLEANUP_BUF = {0};
    struct error err = {0};
    family(&data, name, type, metric);
    TEST_ASSERT_LESS_THAN_INT_MESSAGE(0, read_all(&data, &err), words);
    TEST_ASSERT_NOT_NULL_MESSAGE(strstr(err.text, words), err.text);
    TEST_ASSERT_EQUAL_size_t(0, body.n_updates);
}

static void test_bad(void) {
    struct buf metric CLEANUP_BUF = {0};
    single(&metric, 3, 1);
    check_bad(&metric, "a b", 0, "name is not valid");
    single(&metric, 3, 1);
    check_bad(&metric, "", 0, "name is not valid");
    single(&metric, 3, 1);
    check_bad(&metric, "a", 5, "gauge histograms cannot be pushed");
    single(&metric, 3, 1);
    check_bad(&metric, "a", 6, "type is not known");
    single(&metric, 2, 1);
    check_bad(&metric, "a", 0, "no value of its type");
    single(&metric, 3, 1);
    field_label(&metric, "x", "1");
    field_label(&metric, "x", "2");
    check_bad(&metric, "a", 0, "given twice");
    field_label(&metric, "1x", "1");
    check_bad(&metric, "a", 0, "label name is not valid");
    field_label(&metric, "x", "12345678901");
    check_bad(&metric, "a", 0, "longer than allowed");
    field_label(&metric, "x", "1");
    field_label(&metric, "y", "1");
    field_label(&metric, "z", "1");
    check_bad(&metric, "a", 0, "more labels than allowed");
    field_bytes(&metric, 3, "\x09\x01", 2);
    check_bad(&metric, "a", 0, "a value is damaged");
}

static void test_too_many(void) {
    struct buf data CLEANUP_BUF = {0}, metric CLEANUP_BUF = {0};
    struct error err = {0};
    for (int i = 0; i < 5; i++) {
        single(&metric, 3, 1);
        family(&data, "a", 0, &metric);
    }
    TEST_ASSERT_EQUAL_INT(-E2BIG, read_all(&data, &err));
    TEST_ASSERT_EQUAL_STRING("family 5: more metrics than allowed", err.text);
}

/* Every cut but those between families is noticed. */
static void test_cut(void) {
    struct buf data CLEANUP_BUF = {0}, metric CLEANUP_BUF = {0};
    field_label(&metric, "x", "1");
    single(&metric, 3, 1);
    family(&data, "a", 0, &metric);
    for (size_t len = 1; len < data.len; len++) {
        struct error err = {0};
        TEST_ASSERT_EQUAL_INT(-EINVAL, gateway_protobuf_read(data.data, len, &limits, &body, &err));
        TEST_ASSERT_EQUAL_STRING("family 1: the body ends within it", err.text);
    }
}

int suiteTearDown(int failures) {
    gateway_body_finish(&body);
    return failures;
}
