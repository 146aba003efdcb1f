#pragma once

/* A failure in words for a person. Holds nothing that needs freeing. */
struct error {
    char text[1024];
};

/* Words a failure and returns `code` (a negative errno), so that callers can `return error_set(…)`.
 * `err` may be NULL, and `err->text` an argument. "%m" is the errno at the call. */
int error_set(struct error *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
