#pragma once

#include "exporter/loop/loop.h"

/* Reports the state of the daemon to the service manager, as systemd's sd_notify(3) describes:
 * datagrams to the socket that NOTIFY_SOCKET names, and with WATCHDOG_USEC a sign of life twice per
 * period. The signs are given by a timer of the loop, so they end when the loop hangs. */
struct notify;

/* Reads the environment. Without a manager the calls below do nothing. */
struct notify *notify_create(struct loop *loop);
void notify_destroy(struct notify *notify); /* accepts NULL, as do all below */

/* Begins the signs of life and reports that requests are answered; again after each reload, with
 * its result. */
void notify_ready(struct notify *notify, const char *status);

/* notify_ready has to follow. */
void notify_reloading(struct notify *notify);

void notify_stopping(struct notify *notify);
