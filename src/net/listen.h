/* listen.h - addresses that a program listens at, as people write them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum { LISTEN_HOST_MAX = 46 };

/* "127.0.0.1:3980", "[::1]:3980", ":3980" or "127.0.0.1": an address in numbers, as no name can be listened on. */
int listen_parse(const char *text, uint16_t port_default, char ret_host[static LISTEN_HOST_MAX], uint16_t *ret_port,
                 struct berth_err *err);
/* Is it every address of the machine? Then it is none that others could be told. */
bool host_is_any(const char *host);
/* Does only this machine reach it? */
bool host_is_loopback(const char *host);
/* Returns whether requests to the URL stay on this machine: its host is "localhost" or a loopback address. A URL with user
 * information ("http://127.0.0.1@example.com") does not count, as its host is easily mistaken. */
bool url_is_loopback(const char *url);
