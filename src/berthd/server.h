/* server.h - connects the HTTP server with the control: passes requests in, answers and streams out.
 *
 * The server decides nothing: control/ checks permissions and interprets requests.
 */
#pragma once

#include <stdint.h>

#include "control/control.h"
#include "net/loop.h"

struct server;

struct server_config {
    const char *address;
    uint16_t port;
    const char *cert_pem, *key_pem;     /* NULL: no TLS */
    const char *client_ca_pem;          /* requests client certificates of this CA; NULL: requests none */
    bool tls13_only;                    /* otherwise also TLS 1.2 */
    size_t connections_max;             /* 0: default of net/http/http.h */
    size_t connections_per_address_max; /* 0: 1024; connections with a client certificate are not counted */
    bool dashboard;                     /* serves the dashboard beside the API */
};

/* Creates a server; it serves as soon as the loop runs. */
int server_new(struct loop *loop, struct control *control, const struct server_config *config, struct server **ret,
               struct berth_err *err);
uint16_t server_port(const struct server *s);
/* Accepts no new connections; requests and streams in progress go on. */
void server_quiesce(struct server *s);
/* Returns the number of requests and streams in progress. */
size_t server_busy(const struct server *s);
/* Closes everything; later answers of the control are discarded. Call before the control is freed. */
void server_free(struct server *s);
