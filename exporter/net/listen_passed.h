#pragma once

#include <stddef.h>

/* Sockets that systemd hands over at the start: LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES say
 * which. Those of a socket unit with FileDescriptorName=push are for plugins, all others for HTTP.
 */

enum { LISTEN_PASSED_MAX = 64 };

/* The descriptors that are meant for `who`, "http" or "push"; returns how many. */
size_t listen_passed_find(const char *who, int ret_fds[static LISTEN_PASSED_MAX]);
