#pragma once

#include <netinet/in.h>
#include <stdbool.h>

#include "exporter/core/error.h"

/* A range of addresses: "10.0.0.0/8", "2001:db8::/32", or one address. IPv4 is kept as mapped. */
struct network {
    struct in6_addr address;
    unsigned n_bits; /* of 128 */
};

/* Parses one; -EINVAL with what was expected. Bits behind the prefix are ignored. */
int network_parse(const char *text, struct network *ret_network, struct error *err);

/* The same for option tables: only checks it. */
int network_check(const char *text, struct error *err);

bool network_contains(const struct network *network, const struct in6_addr *address);

/* Whether it is one address. */
bool network_is_address(const struct network *network);

/* 127.0.0.0/8 or ::1. */
bool network_is_loopback(const struct in6_addr *address);

/* Whether two addresses count as one peer: a host has all of an IPv6 network of 64 bits. */
bool network_is_same_peer(const struct in6_addr *a, const struct in6_addr *b);

/* The address as people write it. */
void network_format(const struct in6_addr *address, char out[static INET6_ADDRSTRLEN]);
