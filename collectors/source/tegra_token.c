#include "collectors/source/tegra_token.h"

#include <float.h>
#include <string.h>

#include "exporter/core/number.h"

static bool is_blank(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* Behind the closing parenthesis; where there is none before the next one opens, the line is
 * damaged and a parenthesis is a character like others. */
static const char *skip_parenthesis(const char *at, const char *end) {
    for (const char *closing = at + 1; closing < end && *closing != '('; closing++) {
        if (*closing == ')') {
            return closing + 1;
        }
    }
    return at + 1;
}

bool tegra_token_next(struct tegra_token *rest, struct tegra_token *ret_token) {
    const char *at = rest->text;
    const char *end = at + rest->len;
    while (at < end && is_blank(*at)) {
        at++;
    }
    const char *begin = at;
    while (at < end && !is_blank(*at)) {
        at = *at == '(' ? skip_parenthesis(at, end) : at + 1;
    }
    *rest = (struct tegra_token){.text = at, .len = (size_t)(end - at)};
    *ret_token = (struct tegra_token){.text = begin, .len = (size_t)(at - begin)};
    return at > begin;
}

bool tegra_token_part(struct tegra_token *rest, char separator, struct tegra_token *ret_part) {
    if (rest->text == NULL) {
        return false;
    }
    *ret_part = *rest;
    const char *found = memchr(rest->text, separator, rest->len);
    if (found == NULL) {
        *rest = (struct tegra_token){0};
        return true;
    }
    ret_part->len = (size_t)(found - rest->text);
    rest->text = found + 1;
    rest->len -= ret_part->len + 1;
    return true;
}

bool tegra_token_equal(struct tegra_token token, const char *text) {
    return token.len == strlen(text) && memcmp(token.text, text, token.len) == 0;
}

bool tegra_token_skip(struct tegra_token *token, const char *text) {
    size_t len = strlen(text);
    if (token->len < len || memcmp(token->text, text, len) != 0) {
        return false;
    }
    token->text += len;
    token->len -= len;
    return true;
}

bool tegra_token_chop(struct tegra_token *token, const char *text) {
    size_t len = strlen(text);
    if (token->len < len || memcmp(token->text + token->len - len, text, len) != 0) {
        return false;
    }
    token->len -= len;
    return true;
}

bool tegra_token_unwrap(struct tegra_token *token, const char *opening, const char *closing) {
    struct tegra_token inner = *token;
    if (!tegra_token_skip(&inner, opening) || !tegra_token_chop(&inner, closing)) {
        return false;
    }
    *token = inner;
    return true;
}

/* More digits than a double holds exactly are damage. */
static bool all_digits(struct tegra_token token) {
    size_t n = 0;
    while (n < token.len && is_digit(token.text[n])) {
        n++;
    }
    return n > 0 && n == token.len && n <= DBL_DIG;
}

bool tegra_token_integer(struct tegra_token token, double *ret_value) {
    return all_digits(token) && number_parse(token.text, token.len, ret_value) == 0;
}

bool tegra_token_decimal(struct tegra_token token, double *ret_value) {
    struct tegra_token fraction = token;
    struct tegra_token whole;
    tegra_token_skip(&fraction, "-");
    return tegra_token_part(&fraction, '.', &whole) && all_digits(whole) &&
           (fraction.text == NULL || all_digits(fraction)) &&
           number_parse(token.text, token.len, ret_value) == 0;
}

bool tegra_token_name(struct tegra_token token, char *out, size_t size) {
    bool has_letter = false;
    if (token.len >= size) {
        return false;
    }
    for (size_t i = 0; i < token.len; i++) {
        char c = token.text[i];
        bool upper = c >= 'A' && c <= 'Z';
        bool letter = upper || (c >= 'a' && c <= 'z');
        if (!letter && !is_digit(c) && c != '_' && c != '-' && c != '.') {
            return false;
        }
        has_letter = has_letter || letter;
        out[i] = (char)(upper ? c - 'A' + 'a' : c);
    }
    out[token.len] = '\0';
    return has_letter;
}
