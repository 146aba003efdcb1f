#include "exporter/core/sha256.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unity.h>

#include "exporter/core/cleanup.h"

static void check(const char *expected, const void *data, size_t len) {
    uint8_t hash[SHA256_SIZE];
    char text[2 * SHA256_SIZE + 1];
    sha256(data, len, hash);
    for (size_t i = 0; i < SHA256_SIZE; i++) {
        snprintf(text + 2 * i, 3, "%02x", hash[i]);
    }
    TEST_ASSERT_EQUAL_STRING(expected, text);
}

/* The examples that NIST gives for FIPS 180-4. */
static void test_examples(void) {
    static const struct {
        const char *text, *hash;
    } rows[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        check(rows[i].hash, rows[i].text, strlen(rows[i].text));
    }
    check(rows[0].hash, NULL, 0);
}

/* Around the ends of blocks, and NIST's million. */
static void test_many_times_a(void) {
    static const struct {
        size_t len;
        const char *hash;
    } rows[] = {
        {55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
        {56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"},
        {63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34"},
        {64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
        {65, "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0"},
        {119, "31eba51c313a5c08226adf18d4a359cfdfd8d2e816b13f4af952f7ea6584dcfb"},
        {120, "2f3d335432c70b580af0e8e1b3674a7c020d683aa5f73aaaedfdc55af904c21c"},
        {128, "6836cf13bac400e9105071cd6af47084dfacad4e5e302c94bfed24e013afb73e"},
        {1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char *text CLEANUP_FREE = malloc(rows[i].len);
        TEST_ASSERT_NOT_NULL(text);
        memset(text, 'a', rows[i].len);
        check(rows[i].hash, text, rows[i].len);
    }
}
