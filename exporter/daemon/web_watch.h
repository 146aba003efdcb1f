#pragma once

#include "exporter/daemon/daemon.h"

/* Checks every few seconds whether the web configuration file or its certificates were replaced,
 * and applies them: programs that renew certificates send no signal. A bad file is rejected, with
 * the reason in the log, and the old one stays active. */
struct web_watch;

struct web_watch *web_watch_create(struct daemon *daemon);

/* The reload worker must have ended. Accepts NULL. */
void web_watch_destroy(struct web_watch *watch);
