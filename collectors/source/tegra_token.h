#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The pieces of a line of tegrastats, without copying. Any byte may occur in one, NUL too. */
struct tegra_token {
    const char *text;
    size_t len;
};

/* Takes the next token off `rest`: what stands between blanks, where blanks inside of parentheses
 * belong to it ("(lfb 7x4MB)"); false at the end. */
bool tegra_token_next(struct tegra_token *rest, struct tegra_token *ret_token);

/* Takes what stands before the next `separator` off `rest`, or all of it; false once that is taken.
 * "a,,b" has three parts, "" has one. */
bool tegra_token_part(struct tegra_token *rest, char separator, struct tegra_token *ret_part);

bool tegra_token_equal(struct tegra_token token, const char *text);

/* Shorten `token` and return true if it begins or ends with `text`. */
bool tegra_token_skip(struct tegra_token *token, const char *text);
bool tegra_token_chop(struct tegra_token *token, const char *text);

/* Takes off a pair of brackets: "[…]". */
bool tegra_token_unwrap(struct tegra_token *token, const char *opening, const char *closing);

/* The whole token as a number: digits only; or with a sign and a fraction, "-392", "47.312". */
bool tegra_token_integer(struct tegra_token token, double *ret_value);
bool tegra_token_decimal(struct tegra_token token, double *ret_value);

/* Writes the token in lower case; false if it is no name (letters, at least one, digits, "_", "-",
 * ".") or longer than `size` - 1. */
bool tegra_token_name(struct tegra_token token, char *out, size_t size);
