/* link.h - the agent's connection to the daemon: receives two streams (configuration and sessions), sends reports and
 * small requests.
 *
 * All traffic goes through the net sandbox (net_sandbox.h). If one daemon address does not answer, the next one is
 * tried. Received lines are passed to callbacks without interpretation; src/node and session.c interpret them.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "agent/net/identity.h"
#include "agent/net/net_sandbox.h"
#include "base/log.h"
#include "net/loop.h"

struct daemon_link;

struct link_handlers {
    void (*config)(void *ctx, const char *hash, const json_t *config);
    void (*session)(void *ctx, const json_t *line);
    /* The session stream was lost: all sessions are void, because their clients are gone. */
    void (*sessions_lost)(void *ctx);
    void (*reported)(void *ctx, uint64_t seq, int status, const json_t *answer);
    void (*certificate)(void *ctx, int64_t not_after_ns, const char *text, bool trial); /* net_sandbox_config.known */
    void *ctx;
};

struct daemon_link *link_new(struct loop *loop, const struct node_identity *id, const struct net_sandbox_user *user,
                             uint64_t epoch, const struct link_handlers *heard, const struct log *log);
void link_free(struct daemon_link *l); /* NULL is fine */
/* Opens the streams; called after the daemon has accepted the first report. Repeated calls have no effect. */
void link_listen(struct daemon_link *l);
/* The local configuration differs from the daemon's: reopens the stream unless a new configuration arrives soon. */
void link_reread(struct daemon_link *l);
/* Sends a report; frees `text` with free(). The answer goes to `reported`. */
void link_report(struct daemon_link *l, uint64_t seq, char *text);
/* Tries another certificate with its key; `certificate` receives the result. */
void link_try_certificate(struct daemon_link *l, const char *pem);
/* Called when the tried certificate is valid: reopens the streams with it. */
void link_reopen_streams(struct daemon_link *l);

typedef void link_answered(void *ctx, int status, const char *body, size_t len);
/* Sends a request below /v1/nodes/ID. `path` is percent-encoded: "/secrets/x". `answered` is called exactly once.
 * Status 0: no answer came, the body has the reason. LINK_GONE: the link is being freed; the callback may only free
 * `ctx`. */
enum { LINK_GONE = -1 };
void link_get(struct daemon_link *l, const char *path, link_answered *answered, void *ctx);
void link_post(struct daemon_link *l, const char *path, const char *type, const void *body, size_t len,
               link_answered *answered, void *ctx);
