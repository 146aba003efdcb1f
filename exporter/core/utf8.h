#pragma once

#include <stddef.h>

#define UTF8_REPLACEMENT "\xef\xbf\xbd"

/* Length of the valid UTF-8 sequence at `text` (1 to 4), or 0 where it is not valid: overlong
 * forms, surrogates and anything above U+10FFFF are not. `left` bytes may be read. */
size_t utf8_sequence(const char *text, size_t left);
