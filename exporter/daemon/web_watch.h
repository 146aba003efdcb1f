#pragma once

#include "exporter/daemon/daemon.h"

/* Looks now and then whether the web configuration file or the certificates it names are other
 * files by now, and puts them into force: certificates are renewed by programs that know of no
 * signal. A bad file is refused, with its reasons in the log, and the old one stays. */
struct web_watch;

struct web_watch *web_watch_create(struct daemon *daemon); /* NULL when memory is out */

/* The reload worker must have ended. Accepts NULL. */
void web_watch_destroy(struct web_watch *watch);
