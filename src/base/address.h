/* address.h - parses IP addresses and CIDR ranges, and classifies addresses as public or not public.
 *
 * An IPv4 address embedded in an IPv6 address (::ffff:a.b.c.d, 64:ff9b::a.b.c.d) is treated as the IPv4 address,
 * because the kernel or a translator connects to the IPv4 address.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

/* Parsed from text such as "10.1.0.0/16", "fd00::/8" or "127.0.0.1". An IPv4 range is stored as ::ffff:a.b.c.d. */
struct address_range {
    unsigned char first[16];
    unsigned bits; /* prefix length, up to 128 */
};

/* Parses `len` bytes of text. Returns false if the text is neither an address nor a range. */
bool address_range_parse(const char *text, size_t len, struct address_range *ret);
bool address_range_has(const struct address_range *range, const struct sockaddr *address);

/* Returns whether the address belongs to the public Internet. Not public: loopback, private, link-local, shared,
 * multicast, documentation and reserved addresses, 0.0.0.0, tunnels that carry an IPv4 address (6to4, Teredo), and
 * every family other than IPv4 and IPv6. */
bool address_is_public(const struct sockaddr *address);
