#include "exporter/core/crc32c.h"

#include <string.h>
#include <unity.h>

/* From RFC 3720, B.4, and the usual check value. */
static void test_known_values(void) {
    unsigned char bytes[32] = {0};
    TEST_ASSERT_EQUAL_HEX32(0x8a9136aa, crc32c(0, bytes, 32));
    memset(bytes, 0xff, 32);
    TEST_ASSERT_EQUAL_HEX32(0x62a8ab43, crc32c(0, bytes, 32));
    for (unsigned char i = 0; i < 32; i++) {
        bytes[i] = i;
    }
    TEST_ASSERT_EQUAL_HEX32(0x46dd794e, crc32c(0, bytes, 32));
    TEST_ASSERT_EQUAL_HEX32(0xe3069283, crc32c(0, "123456789", 9));
    TEST_ASSERT_EQUAL_HEX32(0, crc32c(0, "", 0));
}

static void test_in_pieces(void) {
    static const char text[] = "The quick brown fox jumps over the lazy dog";
    uint32_t whole = crc32c(0, text, sizeof(text));
    for (size_t i = 0; i <= sizeof(text); i++) {
        TEST_ASSERT_EQUAL_HEX32(whole, crc32c(crc32c(0, text, i), text + i, sizeof(text) - i));
    }
}
