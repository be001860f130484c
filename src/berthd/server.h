/* server.h - HTTP on one side, the control on the other: requests in, answers and streams out.
 *
 * Decides nothing: who may do what, and what it means, is control/.
 */
#pragma once

#include <stdint.h>

#include "control/control.h"
#include "net/loop.h"

struct server;

struct server_config {
    const char *address;
    uint16_t port;
    const char *cert_pem, *key_pem;     /* NULL: without TLS */
    const char *client_ca_pem;          /* asks for certificates of this authority; NULL: does not ask */
    bool tls13_only;                    /* else TLS 1.2 too */
    size_t connections_max;             /* 0: as net/http/http.h has it */
    size_t connections_per_address_max; /* 0: 1024; those with a client certificate do not count */
    bool dashboard;                     /* serves it beside the API */
};

/* Serves as soon as the loop runs. */
int server_new(struct loop *loop, struct control *control, const struct server_config *config, struct server **ret,
               struct berth_err *err);
uint16_t server_port(const struct server *s);
/* Takes no new connections; what is under way goes on. */
void server_quiesce(struct server *s);
/* Requests and streams under way. */
size_t server_busy(const struct server *s);
/* Closes everything; requests that the control has yet to answer are answered to nobody. Before the control goes. */
void server_free(struct server *s);
