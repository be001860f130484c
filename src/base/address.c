/* address.c - address ranges, and classification of addresses. */
#include "base/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

enum { BITS_MAX = 128, BITS_MAPPED = 96, TEXT_MAX = INET6_ADDRSTRLEN + 8 };

/* IPv4 ranges that are not public (RFC 6890 and its registry). */
static const char *const non_public4[] = {
    "0.0.0.0/8",     "10.0.0.0/8",      "100.64.0.0/10",  "127.0.0.0/8",    "169.254.0.0/16",
    "172.16.0.0/12", "192.0.0.0/24",    "192.0.2.0/24",   "192.88.99.0/24", "192.168.0.0/16",
    "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4",    "240.0.0.0/4",
};
/* IPv6 ranges inside 2000::/3 that are not public. Addresses outside 2000::/3 are never public. */
static const char *const non_public6[] = {"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"};
static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
static const unsigned char translated[12] = {0x00, 0x64, 0xff, 0x9b}; /* 64:ff9b::/96, RFC 6052 */

static bool prefix_equal(const unsigned char *a, const unsigned char *b, unsigned bits)
{
    unsigned bytes = bits / 8, rest = bits % 8;
    if (memcmp(a, b, bytes) != 0)
        return false;
    return rest == 0 || (a[bytes] >> (8 - rest)) == (b[bytes] >> (8 - rest));
}

bool address_range_parse(const char *text, size_t len, struct address_range *ret)
{
    char host[TEXT_MAX];
    int64_t bits = -1;
    const char *slash = memchr(text, '/', len);
    size_t host_len = slash ? (size_t)(slash - text) : len;
    if (host_len >= sizeof host || len - host_len > sizeof "/128" - 1)
        return false;
    if (slash) {
        (void)snprintf(host, sizeof host, "%.*s", (int)(len - host_len - 1), slash + 1);
        if (!str_parse_i64(host, &bits) || bits < 0)
            return false;
    }
    (void)snprintf(host, sizeof host, "%.*s", (int)host_len, text);
    memcpy(ret->first, mapped, sizeof mapped);
    bool four = inet_pton(AF_INET, host, ret->first + sizeof mapped) == 1;
    if (!four && inet_pton(AF_INET6, host, ret->first) != 1)
        return false;
    if (bits > (four ? 32 : BITS_MAX))
        return false;
    ret->bits = bits < 0 ? BITS_MAX : (unsigned)bits + (four ? BITS_MAPPED : 0);
    return true;
}

/* Converts an address to IPv6 bytes. Returns false for a family other than IPv4 and IPv6. */
static bool bytes_of(const struct sockaddr *address, unsigned char ret[static 16])
{
    if (address->sa_family == AF_INET) {
        memcpy(ret, mapped, sizeof mapped);
        memcpy(ret + sizeof mapped, &((const struct sockaddr_in *)(const void *)address)->sin_addr, 4);
        return true;
    }
    if (address->sa_family != AF_INET6)
        return false;
    memcpy(ret, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr, 16);
    if (memcmp(ret, translated, sizeof translated) == 0)
        memcpy(ret, mapped, sizeof mapped);
    return true;
}

bool address_range_has(const struct address_range *range, const struct sockaddr *address)
{
    unsigned char bytes[16];
    return bytes_of(address, bytes) && prefix_equal(bytes, range->first, range->bits);
}

static bool is_among(const unsigned char *bytes, const char *const *list, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        struct address_range range;
        if (address_range_parse(list[i], strlen(list[i]), &range) && prefix_equal(bytes, range.first, range.bits))
            return true;
    }
    return false;
}

bool address_is_public(const struct sockaddr *address)
{
    unsigned char bytes[16];
    if (!bytes_of(address, bytes))
        return false;
    if (memcmp(bytes, mapped, sizeof mapped) == 0)
        return !is_among(bytes, non_public4, sizeof non_public4 / sizeof *non_public4);
    return bytes[0] >> 5 == 1 && !is_among(bytes, non_public6, sizeof non_public6 / sizeof *non_public6);
}
