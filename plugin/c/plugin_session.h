#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "plugin_settings.h"

/* What the thread does in its turns: connect, send, receive, reconnect. waap_lock is held by the
 * caller of every call here; none of them waits. */

/* A connection that ends at once was none, so the waits between attempts grow from the first. */
enum { WAAP_FIRST_WAIT_MS = 100, WAAP_LONGEST_WAIT_MS = 2000 };

/* Begins with a start of its own, counting from 0. */
void waap_session_init(void);

/* Ends the connection for good. */
void waap_session_end(void);

/* In a forked child: leaves the parent's connection to the parent. */
void waap_session_leave(void);

/* One turn. Returns how many ms the next one may wait if nothing happens. */
int waap_session_turn(const struct waap_settings *settings, uint64_t now_ms);

/* The socket to wait for, -1: none; `ret_full` says that something could not be sent yet. */
int waap_session_fd(bool *ret_full);

/* Before the application is asked to collect: whether a turn at this time would look at the
 * metrics, if it can connect. Only what was asked for until then is answered by it. */
bool waap_session_prepare(uint64_t now_ms);

/* Asks for a round with an acknowledgement and returns its number. */
uint64_t waap_session_ask(void);

/* Whether the exporter has confirmed the round of that number. */
bool waap_session_confirmed(uint64_t number);

/* How often a connection was refused or lost. */
uint64_t waap_session_n_lost(void);

/* Once in an absence of some seconds: the errno with which nobody could be reached; else 0. */
int waap_session_take_absence(void);

/* The next thing that went wrong, NULL: none. The caller frees it. */
char *waap_session_take_error(void);

void waap_session_stats(struct waap_stats *stats);
