#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Text that grows. After a failed allocation nothing more is added and `failed` stands. */
struct waap_text {
    char *data;
    size_t len;
    size_t size;
    bool failed;
};

void waap_text_finish(struct waap_text *text);
void waap_text_add(struct waap_text *text, const char *bytes, size_t len);
void waap_text_puts(struct waap_text *text, const char *string);

/* Adds the shortest of %.15g and %.17g that reads back the same; the thread's locale must be "C".
 */
void waap_text_number(struct waap_text *text, double value);

/* Adds a JSON string; bytes that are not UTF-8 become U+FFFD. */
void waap_text_json(struct waap_text *text, const char *string);

/* A copy in which what Prometheus does not allow in a name is '_'; colons only where `colons`. The
 * caller frees it; NULL: no memory. */
char *waap_text_name(const char *name, bool colons);
