#include "plugin_json.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 16 };

static char *skip_spaces(char *at) {
    return at + strspn(at, " \t\r\n");
}

/* Four hexadecimal digits, -1 where they are not. */
static int32_t read_hex4(const char *at) {
    char digits[5] = "";
    memcpy(digits, at, strspn(at, "0123456789abcdefABCDEF") < 4 ? 0 : 4);
    return digits[0] != '\0' ? (int32_t)strtol(digits, NULL, 16) : -1;
}

static char *put_utf8(char *to, uint32_t code) {
    static const unsigned char leads[] = {0, 0xc0, 0xe0, 0xf0};
    int more = (code >= 0x80) + (code >= 0x800) + (code >= 0x10000);
    *to++ = (char)(leads[more] | code >> 6 * more);
    while (more > 0) {
        more--;
        *to++ = (char)(0x80 | (code >> 6 * more & 0x3f));
    }
    return to;
}

/* Decodes what follows "\u" at *at and moves behind it. What is no character, and a NUL, which C
 * text cannot hold, becomes U+FFFD. */
static char *read_unicode(char **at, char *to) {
    int32_t code = read_hex4(*at);
    if (code < 0) {
        return NULL;
    }
    *at += 4;
    bool high = code >= 0xd800 && code < 0xdc00;
    if (high && (*at)[0] == '\\' && (*at)[1] == 'u') {
        int32_t low = read_hex4(*at + 2);
        if (low >= 0xdc00 && low < 0xe000) {
            *at += 6;
            return put_utf8(to,
                            0x10000 + ((uint32_t)(code - 0xd800) << 10) + (uint32_t)low - 0xdc00);
        }
    }
    bool lone = code >= 0xd800 && code < 0xe000;
    return put_utf8(to, lone || code == 0 ? 0xfffd : (uint32_t)code);
}

/* Decodes the string that begins behind the quote at `at`, in place: it never grows. Returns what
 * follows its closing quote. */
static char *read_string(char *at, const char **ret_text) {
    static const char letters[] = "\"\\/bfnrt", plain[] = "\"\\/\b\f\n\r\t";
    *ret_text = at;
    char *to = at;
    while (*at != '"') {
        if ((unsigned char)*at < 0x20) {
            return NULL;
        }
        if (*at != '\\') {
            *to++ = *at++;
            continue;
        }
        at++;
        const char *letter = *at == '\0' ? NULL : strchr(letters, *at);
        if (letter != NULL) {
            *to++ = plain[letter - letters];
            at++;
            continue;
        }
        if (*at++ != 'u') {
            return NULL;
        }
        to = read_unicode(&at, to);
        if (to == NULL) {
            return NULL;
        }
    }
    *to = '\0';
    return at + 1;
}

/* strtod also takes hexadecimal digits, "inf" and "nan", which JSON does not. */
static char *read_number(char *at, double *ret_number) {
    size_t len = strspn(at, "+-.0123456789eE");
    char *end;
    double number = strtod(at, &end);
    if (len == 0 || end != at + len || *at == '+' || *at == '.' || !isfinite(number)) {
        return NULL;
    }
    *ret_number = number;
    return end;
}

/* Passes over an object or array, without looking at its commas and colons. */
static char *skip_nested(char *at) {
    int depth = 0;
    do {
        const char *unused;
        if (*at == '\0') {
            return NULL;
        }
        if (*at == '"') {
            at = read_string(at + 1, &unused);
            if (at == NULL) {
                return NULL;
            }
            continue;
        }
        depth += (*at == '{' || *at == '[') - (*at == '}' || *at == ']');
        at++;
    } while (depth > 0 && depth <= MAX_DEPTH);
    return depth == 0 ? at : NULL;
}

static char *read_value(char *at, struct waap_json_value *ret_value) {
    static const struct {
        const char *word;
        struct waap_json_value value;
    } words[] = {
        {"null", {.type = WAAP_JSON_NULL}},
        {"true", {.type = WAAP_JSON_BOOL, .number = 1}},
        {"false", {.type = WAAP_JSON_BOOL}},
    };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t len = strlen(words[i].word);
        if (strncmp(at, words[i].word, len) == 0) {
            *ret_value = words[i].value;
            return at + len;
        }
    }
    if (*at == '"') {
        ret_value->type = WAAP_JSON_TEXT;
        return read_string(at + 1, &ret_value->text);
    }
    if (*at == '{' || *at == '[') {
        ret_value->type = WAAP_JSON_OTHER;
        return skip_nested(at);
    }
    ret_value->type = WAAP_JSON_NUMBER;
    return read_number(at, &ret_value->number);
}

static void line_set(struct waap_json_line *line, const char *key,
                     const struct waap_json_value *value) {
    const struct {
        const char *key;
        const char **text;
    } texts[] = {{"error", &line->error}, {"metric", &line->metric}, {"param", &line->param}};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (value->type == WAAP_JSON_TEXT && strcmp(key, texts[i].key) == 0) {
            *texts[i].text = value->text;
        }
    }
    if (strcmp(key, "value") == 0) {
        line->has_value = true;
        line->value = *value;
    } else if (strcmp(key, "ack") == 0 && value->type == WAAP_JSON_NUMBER) {
        line->ack = value->number;
    }
}

bool waap_json_read(char *line, struct waap_json_line *ret_line) {
    struct waap_json_line read = {.ack = -1};
    char *at = skip_spaces(line);
    if (*at++ != '{') {
        return false;
    }
    at = skip_spaces(at);
    bool more = *at != '}';
    while (more) {
        const char *key;
        struct waap_json_value value = {0};
        if (*at != '"' || (at = read_string(at + 1, &key)) == NULL) {
            return false;
        }
        at = skip_spaces(at);
        if (*at != ':' || (at = read_value(skip_spaces(at + 1), &value)) == NULL) {
            return false;
        }
        line_set(&read, key, &value);
        at = skip_spaces(at);
        more = *at == ',';
        at = more ? skip_spaces(at + 1) : at;
    }
    if (*at != '}' || *skip_spaces(at + 1) != '\0') {
        return false;
    }
    *ret_line = read;
    return true;
}
