#include "exporter/http/route.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "exporter/core/buf.h"
#include "exporter/core/file.h"
#include "exporter/core/scan.h"

/* About 1000 routes, which the kernel takes 2 ms to write: the time grows with their square. */
enum { MAX_TABLE = 128 << 10, MAX_HEX = 2 * sizeof(struct in6_addr) + 1 };

struct table {
    const char *path;
    unsigned n_before; /* words of a line before the gateway, which is zero where there is none */
};

/* Iface Destination Gateway Flags … */
static const struct table table_v4 = {"/proc/self/net/route", 2};

/* Destination, its bits, source, its bits, gateway, … */
static const struct table table_v6 = {"/proc/self/net/ipv6_route", 4};

static const struct table *table_of(const struct in6_addr *address) {
    return IN6_IS_ADDR_V4MAPPED(address) ? &table_v4 : &table_v6;
}

/* The address as its table has it: IPv4 as a number of this machine's byte order. */
static void format_hex(const struct in6_addr *address, char out[static MAX_HEX]) {
    if (IN6_IS_ADDR_V4MAPPED(address)) {
        uint32_t number;
        memcpy(&number, &address->s6_addr[12], sizeof(number));
        snprintf(out, MAX_HEX, "%08X", (unsigned)number);
        return;
    }
    for (size_t i = 0; i < sizeof(address->s6_addr); i++) {
        snprintf(out + 2 * i, 3, "%02x", address->s6_addr[i]);
    }
}

static bool has_word(const char *line, unsigned n_before, const char *text) {
    struct scan_word word;
    while (scan_word(&line, &word)) {
        if (n_before-- == 0) {
            return scan_word_equal(word, text);
        }
    }
    return false;
}

bool route_names_gateway(const char *text, const struct in6_addr *address) {
    char hex[MAX_HEX];
    format_hex(address, hex);
    while (!has_word(text, table_of(address)->n_before, hex)) {
        text = strchr(text, '\n');
        if (text == NULL) {
            return false;
        }
        text++;
    }
    return true;
}

int route_is_gateway(const struct in6_addr *address, bool *ret_is_gateway, struct error *err) {
    struct buf text CLEANUP_BUF = {0};
    int r = file_read_at(AT_FDCWD, table_of(address)->path, MAX_TABLE, &text, err);
    if (r == 0) {
        *ret_is_gateway = route_names_gateway(buf_str(&text), address);
    }
    return r;
}
