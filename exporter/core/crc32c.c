#include "exporter/core/crc32c.h"

#include <endian.h>
#include <string.h>

enum { SLICES = 8 };

/* table[k][b]: what byte b does to the remainder k bytes later. */
static uint32_t table[SLICES][256];

/* Before main, so that no thread sees half a table. */
__attribute__((constructor)) static void fill_table(void) {
    const uint32_t polynomial = UINT32_C(0x82f63b78); /* bits reversed */
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ ((crc & 1) != 0 ? polynomial : 0);
        }
        table[0][byte] = crc;
    }
    for (size_t k = 1; k < SLICES; k++) {
        for (size_t byte = 0; byte < 256; byte++) {
            uint32_t before = table[k - 1][byte];
            table[k][byte] = before >> 8 ^ table[0][before & 0xff];
        }
    }
}

uint32_t crc32c(uint32_t crc, const void *data, size_t n) {
    const unsigned char *bytes = data;
    crc = ~crc;
    for (; n >= SLICES; n -= SLICES, bytes += SLICES) {
        uint64_t word;
        memcpy(&word, bytes, sizeof(word));
        word = le64toh(word) ^ crc;
        crc = 0;
        for (size_t k = 0; k < SLICES; k++) {
            crc ^= table[SLICES - 1 - k][word >> 8 * k & 0xff];
        }
    }
    for (; n > 0; n--, bytes++) {
        crc = crc >> 8 ^ table[0][(crc ^ *bytes) & 0xff];
    }
    return ~crc;
}
