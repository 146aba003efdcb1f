#include "exporter/core/utf8.h"

#include <stdbool.h>

static bool is_continuation(unsigned char byte) {
    return (byte & 0xc0) == 0x80;
}

size_t utf8_sequence(const char *text, size_t left) {
    const unsigned char *b = (const unsigned char *)text;
    if (left >= 1 && b[0] < 0x80) {
        return 1;
    }
    if (left >= 2 && b[0] >= 0xc2 && b[0] <= 0xdf && is_continuation(b[1])) {
        return 2;
    }
    if (left >= 3 && b[0] >= 0xe0 && b[0] <= 0xef && is_continuation(b[1]) &&
        is_continuation(b[2])) {
        bool overlong = b[0] == 0xe0 && b[1] < 0xa0;
        bool surrogate = b[0] == 0xed && b[1] >= 0xa0;
        return overlong || surrogate ? 0 : 3;
    }
    if (left >= 4 && b[0] >= 0xf0 && b[0] <= 0xf4 && is_continuation(b[1]) &&
        is_continuation(b[2]) && is_continuation(b[3])) {
        bool overlong = b[0] == 0xf0 && b[1] < 0x90;
        bool too_high = b[0] == 0xf4 && b[1] >= 0x90;
        return overlong || too_high ? 0 : 4;
    }
    return 0;
}
