#include "exporter/net/network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ALL_BITS = 128, IPV4_BITS = 32, MAX_TEXT = INET6_ADDRSTRLEN };

static bool parse_address(const char *text, struct in6_addr *ret_address, unsigned *ret_max_bits) {
    struct in_addr v4;
    if (inet_pton(AF_INET6, text, ret_address) == 1) {
        *ret_max_bits = ALL_BITS;
        return true;
    }
    if (inet_pton(AF_INET, text, &v4) != 1) {
        return false;
    }
    *ret_address = (struct in6_addr){.s6_addr = {[10] = 0xff, [11] = 0xff}};
    memcpy(&ret_address->s6_addr[12], &v4, sizeof(v4));
    *ret_max_bits = IPV4_BITS;
    return true;
}

int network_parse(const char *text, struct network *ret_network, struct error *err) {
    size_t len = strcspn(text, "/");
    char address[MAX_TEXT + 1] = {0};
    struct network network;
    unsigned max_bits;
    if (len <= MAX_TEXT) {
        memcpy(address, text, len);
    }
    if (!parse_address(address, &network.address, &max_bits)) {
        return error_set(
            err, -EINVAL,
            "expected a network such as 172.17.0.0/16 or 2001:db8::/32, or an address, got \"%s\"",
            text);
    }
    const char *bits = text[len] == '/' ? text + len + 1 : NULL;
    unsigned long n = max_bits;
    if (bits != NULL) {
        size_t n_digits = strlen(bits);
        bool digits = n_digits > 0 && n_digits <= 3 && strspn(bits, "0123456789") == n_digits;
        n = digits ? strtoul(bits, NULL, 10) : max_bits + 1;
    }
    if (n > max_bits) {
        return error_set(err, -EINVAL, "expected a prefix length from 0 to %u, got \"%s\"",
                         max_bits, bits);
    }
    network.n_bits = (unsigned)n + ALL_BITS - max_bits;
    *ret_network = network;
    return 0;
}

int network_check(const char *text, struct error *err) {
    struct network ignored;
    return network_parse(text, &ignored, err);
}

bool network_contains(const struct network *network, const struct in6_addr *address) {
    unsigned n_bytes = network->n_bits / 8;
    unsigned n_left = network->n_bits % 8;
    if (memcmp(&network->address, address, n_bytes) != 0) {
        return false;
    }
    unsigned differ =
        n_left == 0 ? 0 : network->address.s6_addr[n_bytes] ^ address->s6_addr[n_bytes];
    return differ >> (8 - n_left) == 0;
}

bool network_is_address(const struct network *network) {
    return network->n_bits == ALL_BITS;
}

bool network_is_loopback(const struct in6_addr *address) {
    return IN6_IS_ADDR_LOOPBACK(address) ||
           (IN6_IS_ADDR_V4MAPPED(address) && address->s6_addr[12] == 127);
}

bool network_is_same_peer(const struct in6_addr *a, const struct in6_addr *b) {
    size_t len = IN6_IS_ADDR_V4MAPPED(a) ? sizeof(*a) : sizeof(*a) / 2;
    return IN6_IS_ADDR_V4MAPPED(a) == IN6_IS_ADDR_V4MAPPED(b) && memcmp(a, b, len) == 0;
}

void network_format(const struct in6_addr *address, char out[static INET6_ADDRSTRLEN]) {
    if (IN6_IS_ADDR_V4MAPPED(address)) {
        inet_ntop(AF_INET, &address->s6_addr[12], out, INET6_ADDRSTRLEN);
    } else {
        inet_ntop(AF_INET6, address, out, INET6_ADDRSTRLEN);
    }
}
