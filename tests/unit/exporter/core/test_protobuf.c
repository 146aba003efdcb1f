#include "exporter/core/protobuf.h"

#include <errno.h>
#include <stdio.h>
#include <unity.h>

#include "exporter/core/cleanup.h"

void tearDown(void) {
}

#define TEXT(literal)                                                                              \
    { literal, sizeof(literal) - 1 }

static void test_fields(void) {
    struct protobuf message = TEXT("\x08\x96\x01" /* 1: 150 */
                                   "\x12\x03"
                                   "abc"                                  /* 2: "abc" */
                                   "\x1a\x00"                             /* 3: "" */
                                   "\x25\x04\x03\x02\x01"                 /* 4: 32 bits */
                                   "\x29\x08\x07\x06\x05\x04\x03\x02\x01" /* 5: 64 bits */
                                   "\xf8\xff\xff\xff\x0f\x01"             /* the highest */
                                   "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" /* 1: -1 */);
    static const struct {
        uint32_t number;
        enum protobuf_wire wire;
        uint64_t value;
        size_t len;
    } rows[] = {
        {1, PROTOBUF_VARINT, 150, 0},
        {2, PROTOBUF_BYTES, 0, 3},
        {3, PROTOBUF_BYTES, 0, 0},
        {4, PROTOBUF_FIXED32, 0x01020304, 0},
        {5, PROTOBUF_FIXED64, 0x0102030405060708, 0},
        {(1 << 29) - 1, PROTOBUF_VARINT, 1, 0},
        {1, PROTOBUF_VARINT, UINT64_MAX, 0},
    };
    struct protobuf_field field;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        TEST_ASSERT_EQUAL_INT(1, protobuf_next(&message, &field));
        TEST_ASSERT_EQUAL_UINT32(rows[i].number, field.number);
        TEST_ASSERT_EQUAL_INT(rows[i].wire, field.wire);
        TEST_ASSERT_EQUAL_UINT64(rows[i].value, field.value);
        TEST_ASSERT_EQUAL_UINT64(rows[i].len, field.bytes.len);
        if (rows[i].len > 0) {
            TEST_ASSERT_EQUAL_STRING_LEN("abc", field.bytes.data, 3);
        }
    }
    TEST_ASSERT_EQUAL_INT(0, protobuf_next(&message, &field));
}

static void test_what_is_no_message(void) {
    static const struct protobuf rows[] = {
        TEXT("\x08"),     /* no value */
        TEXT("\x08\x80"), /* half a value */
        TEXT("\x80"),     /* half a key */
        TEXT("\x00\x00"), /* there is no field 0 */
        TEXT("\x12\x04"
             "abc"), /* one byte too few */
        TEXT("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
             "abc"),                                              /* a length beyond all */
        TEXT("\x25\x01\x02\x03"),                                 /* 32 bits, but one byte */
        TEXT("\x29\x01\x02\x03\x04\x05\x06\x07"),                 /* 64 bits, but one byte */
        TEXT("\x0b\x0c"),                                         /* a group */
        TEXT("\x0e\x01"),                                         /* no such kind */
        TEXT("\x80\x80\x80\x80\x10\x01"),                         /* number beyond the highest */
        TEXT("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), /* 11 bytes */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct protobuf message = rows[i];
        struct protobuf_field field;
        char which[32];
        snprintf(which, sizeof(which), "row %zu", i);
        TEST_ASSERT_EQUAL_INT_MESSAGE(-EINVAL, protobuf_next(&message, &field), which);
    }
}

static void test_row_of_messages(void) {
    struct protobuf row = TEXT("\x03"
                               "abc"
                               "\x00\x02"
                               "d");
    struct protobuf message;
    TEST_ASSERT_EQUAL_INT(0, protobuf_next_delimited(&row, &message));
    TEST_ASSERT_EQUAL_STRING_LEN("abc", message.data, 3);
    TEST_ASSERT_EQUAL_size_t(3, message.len);
    TEST_ASSERT_EQUAL_INT(0, protobuf_next_delimited(&row, &message));
    TEST_ASSERT_EQUAL_size_t(0, message.len);
    TEST_ASSERT_EQUAL_INT(-EINVAL, protobuf_next_delimited(&row, &message));
}
