#pragma once

#include <stddef.h>
#include <stdint.h>

/* SHA-256 (FIPS 180-4), for names that must not tell what they were made from. The TLS library has
 * it too, but takes a megabyte of memory to get ready. */
enum { SHA256_SIZE = 32 };

void sha256(const void *data, size_t len, uint8_t ret_hash[SHA256_SIZE]);
