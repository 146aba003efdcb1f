#pragma once

#include <stdint.h>

#include "plugin_metric.h"
#include "plugin_param.h"
#include "plugin_settings.h"
#include "plugin_text.h"

/* The lines of the plugin channel. Each call adds one and notes in the series or parameter what the
 * exporter will then know; waap_lock is held, the thread's locale is "C". */

/* `start` is random: totals count from there. */
void waap_line_hello(struct waap_text *out, const struct waap_settings *settings, uint64_t start);

void waap_line_metric(struct waap_text *out, struct waap_metric *metric);
void waap_line_param(struct waap_text *out, struct waap_param *param);
void waap_line_applied(struct waap_text *out, struct waap_param *param);

/* Asks for an acknowledgement of all that stands before. */
void waap_line_seq(struct waap_text *out, uint64_t seq);
