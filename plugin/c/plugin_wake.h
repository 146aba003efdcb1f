#pragma once

/* The pair of sockets by which others wake the thread out of poll(). A program that turns into a
 * daemon may close all descriptors it finds and open others under their numbers: those are left
 * alone. */

/* Where to wait for POLLIN; opens the pair where it is not open, or no longer. -1: it cannot be
 * had. Only for the thread, and before it runs. */
int waap_wake_open(void);

/* Closes it in a forked child, which takes one of its own. */
void waap_wake_close(void);

/* Wakes, or does nothing where there is none. Leaves errno alone. */
void waap_wake_up(void);

/* Forgets the calls to wake up so far. */
void waap_wake_take(void);
