#pragma once

#include <stdbool.h>

#include "exporter/core/buf.h"

/* Appends what os-release says under a key, without quotes: "Debian GNU/Linux" for NAME. False
 * where it says nothing. */
bool host_os_release_find(const char *text, const char *key, struct buf *out);

/* Appends what /proc/cpuinfo says of the first CPU under a key: "model name". False where it says
 * nothing. */
bool host_cpuinfo_find(const char *text, const char *key, struct buf *out);

/* Whether a text has a word, between blanks: one of the flags in /proc/cpuinfo. */
bool host_has_word(const char *text, const char *word);

/* How many CPUs a list of them has: "0-3,5"; 0 where it is none. */
unsigned host_count_cpus(const char *list);

/* Appends what a board is called: its model without "Developer Kit". */
void host_device_name(const char *model, struct buf *out);
