/* address.h - IP addresses: which of them are public, and ranges of them as people write them.
 *
 * An IPv4 address that is written inside an IPv6 one (::ffff:a.b.c.d, 64:ff9b::a.b.c.d) is judged as the IPv4
 * address: the kernel or a translator connects to that one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

/* "10.1.0.0/16", "fd00::/8", "127.0.0.1". IPv4 is kept as ::ffff:a.b.c.d. */
struct address_range {
    unsigned char first[16];
    unsigned bits; /* of 128 */
};

/* `len` bytes of text; false: it is no address and no range of addresses. */
bool address_range_parse(const char *text, size_t len, struct address_range *ret);
bool address_range_has(const struct address_range *range, const struct sockaddr *address);

/* Is the address one of the public Internet? Not public: loopback, private, link-local, shared, multicast,
 * documentation and reserved addresses, 0.0.0.0, tunnels that carry an IPv4 address (6to4, Teredo), and every family
 * but IPv4 and IPv6. */
bool address_is_public(const struct sockaddr *address);
