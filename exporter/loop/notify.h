#pragma once

#include "exporter/loop/loop.h"

/* Tells the service manager that started the daemon how it is, as systemd's sd_notify(3) describes:
 * datagrams to the socket that NOTIFY_SOCKET names, and with WATCHDOG_USEC a sign of life twice per
 * period. The signs are given by a timer of the loop, so they end when the loop hangs. */
struct notify;

/* Reads the environment. Where no manager wants to hear anything, the calls below do nothing. NULL:
 * out of memory. */
struct notify *notify_create(struct loop *loop);
void notify_destroy(struct notify *notify); /* accepts NULL, as do all below */

/* Begins the signs of life and says that requests are answered; again after each reload, with what
 * came of it. */
void notify_ready(struct notify *notify, const char *status);

/* notify_ready has to follow. */
void notify_reloading(struct notify *notify);

void notify_stopping(struct notify *notify);
