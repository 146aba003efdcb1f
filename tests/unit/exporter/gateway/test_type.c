#include "exporter/gateway/type.h"

#include <errno.h>
#include <string.h>
#include <unity.h>

#include "exporter/core/cleanup.h"

#define TYPE "application/vnd.google.protobuf"
#define PROTO "io.prometheus.client.MetricFamily"

static void test_types(void) {
    enum { TEXT, PROTOBUF, BAD };
    static const struct {
        const char *type;
        int want;
    } rows[] = {
        {NULL, TEXT},
        {"", TEXT},
        {"text/plain; version=0.0.4", TEXT},
        {"application/x-www-form-urlencoded", TEXT},
        {TYPE "x; proto=" PROTO "; encoding=delimited", TEXT},
        {TYPE "; proto=" PROTO "; encoding=delimited", PROTOBUF},
        {TYPE ";proto=" PROTO ";encoding=delimited", PROTOBUF},
        {" " TYPE " ; encoding=delimited ; proto=" PROTO " ", PROTOBUF},
        {TYPE "; proto=\"" PROTO "\"; encoding=\"delimited\"", PROTOBUF},
        {TYPE "; a=\"; b\\\"\"; proto=\"" PROTO "\"; encoding=\"de\\limited\"", PROTOBUF},
        {"Application/Vnd.Google.Protobuf; Proto=" PROTO "; ENCODING=delimited", PROTOBUF},
        {TYPE, BAD},
        {TYPE ";", BAD},
        {TYPE "; proto; encoding", BAD},
        {TYPE "; proto=" PROTO, BAD},
        {TYPE "; proto=" PROTO "; encoding=text", BAD},
        {TYPE "; proto=" PROTO "; encoding=delimite", BAD},
        {TYPE "; proto=" PROTO "s; encoding=delimited", BAD},
        {TYPE "; proto=" PROTO "; x=\"encoding=delimited\"", BAD},
        {TYPE "; proto=" PROTO "; x=\"; encoding=delimited", BAD},
        {TYPE "; proto=\"" PROTO "\\", BAD},
        {TYPE "; prot=" PROTO "; encoding=delimited", BAD},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bool protobuf = false;
        struct error err = {0};
        int r = gateway_type_parse(rows[i].type, &protobuf, &err);
        TEST_ASSERT_EQUAL_INT_MESSAGE(rows[i].want == BAD ? -EINVAL : 0, r, rows[i].type);
        TEST_ASSERT_EQUAL_MESSAGE(rows[i].want != TEXT, protobuf, rows[i].type);
        TEST_ASSERT_EQUAL_MESSAGE(
            rows[i].want == BAD, strstr(err.text, "encoding=delimited, got") != NULL, rows[i].type);
    }
}
