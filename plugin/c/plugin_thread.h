#pragma once

#include <pthread.h>

/* What is special about a thread in a program that knows nothing of it. */

/* Starts it. The caller has blocked all signals: the thread takes none that is meant for the
 * application's. Returns 0 or an errno. */
int waap_thread_start(pthread_t *ret_thread, void *(*run)(void *));

/* In the thread, first of all: its name and its locale, "C". */
void waap_thread_dress(void);
