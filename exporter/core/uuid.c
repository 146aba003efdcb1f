#include "exporter/core/uuid.h"

#include <nettle/sha2.h>
#include <stdbool.h>

enum { UUID_SIZE = 16 };

void uuid_derive(const char *purpose, const char *secret, struct buf *out) {
    struct buf text CLEANUP_BUF = {0};
    buf_printf(&text, "%s %s", purpose, secret);
    uint8_t hash[SHA256_DIGEST_SIZE];
    struct sha256_ctx context;
    sha256_init(&context);
    sha256_update(&context, text.len, (const uint8_t *)text.data);
    sha256_digest(&context, sizeof(hash), hash);
    hash[6] = (hash[6] & 0x0f) | 0x80; /* version 8: made in one's own way (RFC 9562) */
    hash[8] = (hash[8] & 0x3f) | 0x80;
    for (size_t i = 0; i < UUID_SIZE; i++) {
        bool begins_group = i == 4 || i == 6 || i == 8 || i == 10;
        buf_printf(out, "%s%02x", begins_group ? "-" : "", hash[i]);
    }
}
