/* net_sandbox.h - the network half of the agent, as the root half sees it (decision 46).
 *
 * Everything that is said to the daemon and heard from it goes through a second process of the same program, which has no
 * rights: another user, no capabilities, no new privileges, few calls of the kernel (net_sandbox_drop.c). It alone connects, speaks TLS
 * and reads HTTP (net_sandbox_main.c). It may say about the daemon whatever it likes, and that is much: the daemon can have scripts run
 * as root. When it ends, has no good certificate, or does not answer any more, what was under way fails, and it is started
 * again.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/options.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "net/client/async.h"
#include "net/loop.h"

struct half;
struct half_call; /* a request under way */

/* Whom it runs as. */
struct half_user {
    uid_t uid;
    gid_t gid;
};
/* --network-user, or the account 'berth-agent', or a number of its own just below those of owners. Where this is not root,
 * whoever this is. */
int half_user_find(const struct agent_options *options, struct half_user *ret, struct berth_err *err);

struct half_config {
    struct half_user user;
    const char *ca_path, *pem_path; /* read here, at each start of it */
    /* Until when (since 1970) the certificate is good; 0: it is of no use, or the process cannot be had, and `text` says why.
     * `trial`: of half_try, not of the files. */
    void (*known)(void *ctx, int64_t not_after_ns, const char *text, bool trial);
    void *ctx;
};

/* It is started soon. */
struct half *half_new(struct loop *loop, const struct half_config *config, const struct log *log);
/* Ends every request without telling; NULL is fine. */
void half_free(struct half *h);
/* Another certificate with its key, used from now on if it is good: `known` tells. Before that nobody need rely on it. */
void half_try(struct half *h, const char *pem);

/* As async_start and async_cancel; `token` and `accept` are not sent. */
struct half_call *half_start(struct half *h, const struct async_request *request);
void half_cancel(struct half_call *call);

/* One request to whoever has the key of this pin, by a network half of its own; waits. The status of the answer, or a negative errno. */
int half_ask(const struct half_user *user, const char *url, const char *pin, const char *body, struct str *ret_answer,
             struct berth_err *err);

/* net_sandbox_spawn.c: starts it; *ret_fd is what it is spoken to by, and belongs to the caller. */
int half_spawn(const struct half_user *user, pid_t *ret_pid, int *ret_fd, struct berth_err *err);
/* net_sandbox_drop.c: gives up everything that a network half does not need, for ever. */
int half_drop(const struct half_user *user, struct berth_err *err);
/* net_sandbox_main.c: the process itself, from main. */
int half_main(int argc, char **argv);
