#pragma once

#include <stdbool.h>

/* One line per event on standard error, as logfmt or JSON. Only the top layers log (main, engine,
 * http); everything below reports through struct error. Safe from any thread. */

enum log_level { LOG_LEVEL_DEBUG, LOG_LEVEL_INFO, LOG_LEVEL_WARN, LOG_LEVEL_ERROR };
enum log_format { LOG_FORMAT_LOGFMT, LOG_FORMAT_JSON };

/* Sets what is written from now on; the start values are info and logfmt. */
void log_configure(enum log_level level, enum log_format format);

/* Whether a line of that level would be written. */
bool log_enabled(enum log_level level);

void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_debug(...) log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)
#define log_info(...) log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_warn(...) log_write(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_error(...) log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
