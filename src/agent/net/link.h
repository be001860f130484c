/* link.h - the agent's conversation with the daemon: two streams to listen to, reports and small requests to send.
 *
 * What is said goes through the network half (net_sandbox.h). Several addresses: when one does not answer, the next is tried. What is heard is handed on as it comes; what it means is
 * node/'s and session.c's business.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "agent/net/identity.h"
#include "agent/net/net_sandbox.h"
#include "base/log.h"
#include "net/loop.h"

struct link;

struct link_heard {
    void (*config)(void *ctx, const char *hash, const json_t *config);
    void (*errand)(void *ctx, const json_t *line);
    /* No errand of before is of any use: who asked is gone. */
    void (*errands_lost)(void *ctx);
    void (*reported)(void *ctx, uint64_t seq, int status, const json_t *answer);
    void (*certificate)(void *ctx, int64_t not_after_ns, const char *text, bool trial); /* half_config.known */
    void *ctx;
};

struct link *link_new(struct loop *loop, const struct identity *id, const struct half_user *user, uint64_t epoch,
                      const struct link_heard *heard, const struct log *log);
void link_free(struct link *l); /* NULL is fine */
/* Begins to listen; after the first report was taken. Again is harmless. */
void link_listen(struct link *l);
/* The configuration here is not the daemon's: if the stream does not bring it soon, it is opened anew. */
void link_reread(struct link *l);
/* Takes the text (free). Answered by `reported`. */
void link_report(struct link *l, uint64_t seq, char *text);
/* Another certificate, with its key; `certificate` tells whether it is good. */
void link_try(struct link *l, const char *pem);
/* It is: streams are opened anew with it. */
void link_renewed(struct link *l);

typedef void link_answered(void *ctx, int status, const char *body, size_t len);
/* A request below /v1/nodes/ID. `path`: "/secrets/x", encoded. Answered once. Status 0: no answer came, the body says why;
 * LINK_GONE: the link is being freed, and nothing is left to do but to free `ctx`. */
enum { LINK_GONE = -1 };
void link_get(struct link *l, const char *path, link_answered *answered, void *ctx);
void link_post(struct link *l, const char *path, const char *type, const void *body, size_t len,
               link_answered *answered, void *ctx);
