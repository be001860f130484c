/* listen.c - parsing of listen addresses. */
#include "net/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"

static int port_read(const char *text, uint16_t *ret, struct berth_err *err)
{
    int64_t port;

    if (!str_parse_i64(text, &port) || port < 0 || port > UINT16_MAX)
        return err_set(err, EINVAL, "the port is a number from 0 to 65535, not '%s'", text);
    *ret = (uint16_t)port;
    return 0;
}

int listen_parse(const char *text, uint16_t port_default, char ret_host[static LISTEN_HOST_MAX], uint16_t *ret_port,
                 struct berth_err *err)
{
    unsigned char address[sizeof(struct in6_addr)];
    char host[LISTEN_HOST_MAX] = "127.0.0.1";
    uint16_t port = port_default;
    bool bracket = *text == '[';
    const char *begin = text + bracket, *end = bracket ? strchr(text, ']') : strchr(text, ':');
    size_t len = end ? (size_t)(end - begin) : strlen(begin);
    const char *rest = bracket && end ? end + 1 : begin + len;

    if ((bracket && !end) || (*rest && *rest != ':') || len >= sizeof host)
        return err_set(err, EINVAL, "takes ADDRESS:PORT, such as 127.0.0.1:3980 or [::1]:3980, not '%s'", text);
    if (len) {
        memcpy(host, begin, len);
        host[len] = '\0';
    }
    if (inet_pton(bracket ? AF_INET6 : AF_INET, host, address) != 1)
        return err_set(err, EINVAL, "takes an address in numbers, such as 127.0.0.1:3980 or [::1]:3980, not '%s'",
                       text);
    int rc = *rest ? port_read(rest + 1, &port, err) : 0;
    if (rc < 0)
        return rc;
    memcpy(ret_host, host, sizeof host);
    *ret_port = port;
    return 0;
}

bool host_is_loopback(const char *host)
{
    struct in6_addr six;
    struct in_addr four;

    if (inet_pton(AF_INET, host, &four) == 1)
        return ntohl(four.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, host, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

bool url_is_loopback(const char *url)
{
    const char *host = strstr(url, "://");
    char name[LISTEN_HOST_MAX];

    if (!host)
        return false;
    host += 3;
    size_t len = strcspn(host, "/?#");
    if (memchr(host, '@', len))
        return false;
    bool bracket = *host == '[';
    const char *end = bracket ? memchr(host, ']', len) : host + strcspn(host, ":/?#");
    host += bracket;
    if (!end || (size_t)(end - host) >= sizeof name || (bracket && !strchr(":/?#", end[1])))
        return false;
    memcpy(name, host, (size_t)(end - host));
    name[end - host] = '\0';
    return host_is_loopback(name) || (!bracket && strcasecmp(name, "localhost") == 0);
}

bool host_is_any(const char *host)
{
    return strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
}
