#include "plugin_text.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool text_reserve(struct waap_text *text, size_t more) {
    if (text->failed) {
        return false;
    }
    size_t need = text->len + more + 1;
    if (need <= text->size) {
        return true;
    }
    size_t size = text->size < 256 ? 256 : text->size;
    while (size < need) {
        size *= 2;
    }
    char *data = realloc(text->data, size);
    if (data == NULL) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->size = size;
    return true;
}

void waap_text_finish(struct waap_text *text) {
    free(text->data);
    *text = (struct waap_text){0};
}

void waap_text_add(struct waap_text *text, const char *bytes, size_t len) {
    if (!text_reserve(text, len)) {
        return;
    }
    memcpy(text->data + text->len, bytes, len);
    text->len += len;
    text->data[text->len] = '\0';
}

void waap_text_puts(struct waap_text *text, const char *string) {
    waap_text_add(text, string, strlen(string));
}

void waap_text_number(struct waap_text *text, double value) {
    char digits[40];
    snprintf(digits, sizeof(digits), "%.15g", value);
    if (strtod(digits, NULL) != value) {
        snprintf(digits, sizeof(digits), "%.17g", value);
    }
    waap_text_puts(text, digits);
}

/* The length of the UTF-8 sequence at `at`, 0 where there is none. The string's end is no
 * continuation byte, so nothing beyond it is read. */
static size_t utf8_length(const unsigned char *at) {
    static const unsigned char firsts[] = {0x80, 0xc2, 0xe0, 0xf0, 0xf5}; /* of each length */
    size_t n = 1;
    while (n < sizeof(firsts) && at[0] >= firsts[n]) {
        n++;
    }
    n = at[0] < 0x80 ? 1 : at[0] < 0xc2 || n == sizeof(firsts) ? 0 : n;
    for (size_t k = 1; k < n; k++) {
        if ((at[k] & 0xc0) != 0x80) {
            return 0;
        }
    }
    bool overlong = (at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xf0 && at[1] < 0x90);
    bool no_character = (at[0] == 0xed && at[1] > 0x9f) || (at[0] == 0xf4 && at[1] > 0x8f);
    return overlong || no_character ? 0 : n;
}

void waap_text_json(struct waap_text *text, const char *string) {
    const unsigned char *at = (const unsigned char *)string;
    waap_text_puts(text, "\"");
    while (*at != '\0') {
        size_t len = utf8_length(at);
        if (len == 0) {
            waap_text_puts(text, "\xef\xbf\xbd");
            at++;
            continue;
        }
        if (*at == '"' || *at == '\\' || *at < 0x20 || *at == 0x7f) {
            char escaped[8];
            snprintf(escaped, sizeof(escaped), "\\u%04x", (unsigned)*at);
            waap_text_puts(text, escaped);
        } else {
            waap_text_add(text, (const char *)at, len);
        }
        at += len;
    }
    waap_text_puts(text, "\"");
}

char *waap_text_name(const char *name, bool colons) {
    bool digit_first = *name >= '0' && *name <= '9';
    char *copy = malloc(strlen(name) + 2);
    if (copy == NULL) {
        return NULL;
    }
    copy[0] = '_';
    char *to = copy + digit_first;
    for (const char *at = name; *at != '\0'; at++) {
        bool plain = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
                     (*at >= '0' && *at <= '9') || *at == '_' || (*at == ':' && colons);
        *to++ = plain ? *at : '_';
    }
    *to = '\0';
    return copy;
}
