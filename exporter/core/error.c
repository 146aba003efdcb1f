#include "exporter/core/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int error_set(struct error *err, int code, const char *format, ...) {
    if (err == NULL) {
        return code;
    }
    char text[sizeof(err->text)]; /* err->text itself may be among the arguments */
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    strcpy(err->text, text);
    return code;
}
