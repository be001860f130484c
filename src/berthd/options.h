/* options.h - the command line of berthd, as a table.
 *
 * To add an option: a field here and a row in options.c, which is also its help.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "base/log.h"
#include "net/listen.h"

enum { PORT_DEFAULT = 3980 };

struct daemon_options {
    const char *data, *listen, *agents, *names, *token_file, *config, *tls_cert, *tls_key, *log_name;
    bool init, tls, new_secret_key, help, version;
    uint64_t lease_s, audit_every, requests_per_s, connections_max,
        connections_per_address_max; /* 0: the daemon's default */

    /* Derived from the options above. */
    char host[LISTEN_HOST_MAX];
    uint16_t port;
    char agents_host[LISTEN_HOST_MAX]; /* "": agents are not served */
    uint16_t agents_port;
    enum log_level log_level;
};

/* Reads and checks argv[1] and later. -EINVAL with an explanation; *ret may then be incomplete. With --help or
 * --version the rest is not checked. */
int daemon_options_read(int argc, char *const *argv, struct daemon_options *ret, struct berth_err *err);
void daemon_options_help(FILE *to);
