#pragma once

#include <stdio.h>

#include "exporter/core/buf.h"
#include "exporter/core/error.h"

struct json_t;

/* Text that several reports write. */

/* A JSON number, as json_put_number but null if it is not finite. */
void text_put_number(struct buf *out, const char *key, double value);

/* A JSON array of the texts, which end in NULL. */
void text_put_list(struct buf *out, const char *key, const char *const *texts);

/* A string as it is, any other value as JSON, "unknown" for NULL. The caller frees it. */
char *text_of_json(const struct json_t *value);

/* As buf_printf, but texts (%s) are escaped for XML and HTML, in elements and in attributes;
 * characters that XML excludes become U+FFFD. Of the other conversions it knows %d, %u, %zu, %f and
 * %g. */
void text_markup(struct buf *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A value for people, in three or four digits and with a prefix: "1.21 GiB", "28.9 /s", "31.4 ms".
 * The unit is that of the record ("s", "B", "W", "ratio", …); a very long one is left out. */
struct text_human {
    char text[64];
};
struct text_human text_human(double value, const char *unit);

/* Replaces DIR/NAME by what `write` writes, as a whole or not at all. */
typedef int text_write(FILE *to, const void *context, struct error *err);
int text_file_replace(const char *dir, const char *name, text_write *write, const void *context,
                      struct error *err);
