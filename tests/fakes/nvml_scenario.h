#pragma once

#include <stdbool.h>

/* What a fake driver answers, as a text file says it: lines of a key and a value, `0.power 23500`
 * for GPU 0, `*.power 23500` for all that have no line of their own, `gpus 2` for the whole. A
 * value `error 15` answers with that code, `block 30` sleeps so many seconds first; in a list, `-`
 * is a value that is not supported. Without a line a call is not supported. */

enum { SCENARIO_DRIVER = -2, SCENARIO_ALL = -1 };

/* Reads the file that $FAKE_NVML names, again where it has a line `watch` and has changed. */
bool scenario_load(void);

/* The value of a key, or NULL with the code to answer; the text is good until the thread's next
 * call. */
const char *scenario_text(int gpu, const char *key, unsigned *ret_code);

/* The number at place `index` of the list that is the value. */
unsigned scenario_number(int gpu, const char *key, unsigned index, unsigned long long *ret_number);
