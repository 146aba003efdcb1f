#pragma once

#include <netinet/in.h>
#include <stdbool.h>

#include "exporter/core/error.h"

/* Whether a routing table has a route by way of this address. `text` is the kernel's
 * /proc/net/route for IPv4 (mapped) addresses, its ipv6_route for others. */
bool route_names_gateway(const char *text, const struct in6_addr *address);

/* The same for the network that this process is in. */
int route_is_gateway(const struct in6_addr *address, bool *ret_is_gateway, struct error *err);
