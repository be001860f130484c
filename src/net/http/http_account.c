/* http_account.c - accounts of addresses and users: connections, bodies, and unsent answers. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "net/http/http_inner.h"

enum { USER_MAX_BYTES = 128 };

static bool account_fits(const struct peer *p, size_t own, size_t bytes, size_t max)
{
    size_t others = p ? p->bytes - own : 0;
    return max == 0 || others == 0 || own + bytes + others <= max;
}

bool held_bytes_fit(const struct http_request *x, size_t bytes)
{
    const struct http_server *s = x->server;
    const struct conn *c = x->conn;
    return c->trusted || (account_fits(c->peer, x->held, bytes, s->bytes_per_address_max) &&
                          account_fits(c->user, x->held, bytes, s->bytes_per_user_max));
}

void held_bytes_add(struct http_request *x, size_t bytes)
{
    x->held += bytes;
    x->server->stats.bytes_held += bytes;
    x->conn->peer->bytes += bytes;
    if (x->conn->user)
        x->conn->user->bytes += bytes;
}

void held_bytes_drop(struct http_request *x, size_t bytes)
{
    assert(bytes <= x->held);
    x->held -= bytes;
    x->server->stats.bytes_held -= bytes;
    x->conn->peer->bytes -= bytes;
    if (x->conn->user)
        x->conn->user->bytes -= bytes;
}

/* Moves the connection and the bytes held by its exchange to the user's account; NULL: to no account. */
static void user_change(struct http_request *x, struct peer *user)
{
    struct conn *c = x->conn;

    if (c->user) {
        c->user->bytes -= x->held;
        peer_unref(x->server, c->user);
    }
    c->user = user;
    if (user)
        user->bytes += x->held;
}

int http_set_user(struct http_request *x, const char *user, struct berth_err *err)
{
    struct http_server *s = x->server;
    struct conn *c = x->conn;
    char name[USER_MAX_BYTES];

    (void)snprintf(name, sizeof name, "user:%s", user ? user : "");
    if (!user)
        user_change(x, NULL);
    else if (!c->user || strcmp(c->user->remote, name) != 0)
        user_change(x, peer_ref(s, name));
    if (c->user && s->connections_per_user_max && c->user->conns > s->connections_per_user_max) {
        user_change(x, NULL);
        s->stats.refused++;
        return err_set(err, EDQUOT, "too many connections; %zu are allowed", s->connections_per_user_max);
    }
    if (!held_bytes_fit(x, 1)) {
        s->stats.refused++;
        return err_set(err, EDQUOT, "too much of what you asked for waits to be read; read it, and try again");
    }
    return 0;
}
