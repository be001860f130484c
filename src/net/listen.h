/* listen.h - parses listen addresses of programs. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum { LISTEN_HOST_MAX = 46 };

/* Parses "127.0.0.1:3980", "[::1]:3980", ":3980" or "127.0.0.1". The address must be numeric, because a program cannot
 * listen on a name. */
int listen_parse(const char *text, uint16_t port_default, char ret_host[static LISTEN_HOST_MAX], uint16_t *ret_port,
                 struct berth_err *err);
/* Returns whether the host is the wildcard address. Other machines cannot connect to a wildcard address. */
bool host_is_any(const char *host);
/* Returns whether the host is a loopback address, which only this machine can reach. */
bool host_is_loopback(const char *host);
/* Returns whether requests to the URL stay on this machine: its host is "localhost" or a loopback address. A URL with
 * user information ("http://127.0.0.1@example.com") does not count, as its host is easily mistaken. */
bool url_is_loopback(const char *url);
