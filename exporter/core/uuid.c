#include "exporter/core/uuid.h"

#include <stdbool.h>

#include "exporter/core/sha256.h"

enum { UUID_SIZE = 16 };

void uuid_derive(const char *purpose, const char *secret, struct buf *out) {
    struct buf text CLEANUP_BUF = {0};
    buf_printf(&text, "%s %s", purpose, secret);
    if (text.failed) {
        out->failed = true;
        return;
    }
    uint8_t hash[SHA256_SIZE];
    sha256(text.data, text.len, hash);
    hash[6] = (hash[6] & 0x0f) | 0x80; /* version 8: made in one's own way (RFC 9562) */
    hash[8] = (hash[8] & 0x3f) | 0x80;
    for (size_t i = 0; i < UUID_SIZE; i++) {
        bool begins_group = i == 4 || i == 6 || i == 8 || i == 10;
        buf_printf(out, "%s%02x", begins_group ? "-" : "", hash[i]);
    }
}
