#pragma once

#include <stddef.h>
#include <stdint.h>

/* CRC-32C (Castagnoli) of `n` bytes; `crc` is 0, or what came before gave. */
uint32_t crc32c(uint32_t crc, const void *data, size_t n);
