/* net_sandbox.h - the net sandbox, seen from the agent's root process (decision 46).
 *
 * All communication with the daemon goes through a second process of the same program without privileges: another user,
 * no capabilities, no_new_privs, a narrow seccomp filter (net_sandbox_drop.c). Only this process connects, speaks TLS
 * and parses HTTP (net_sandbox_main.c). A compromised sandbox can still forge messages of the daemon, and the daemon
 * may run scripts as root. If the process exits, has no valid certificate or stops answering, all pending requests fail
 * and it is restarted.
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

struct net_sandbox;
struct net_sandbox_request; /* a pending request */

/* User and group of the sandbox process. */
struct net_sandbox_user {
    uid_t uid;
    gid_t gid;
};
/* Finds the user: --network-user, the account 'berth-agent', or the uid just below --uid-first. If the agent is not
 * root: the agent's own user. */
int net_sandbox_user_find(const struct agent_options *options, struct net_sandbox_user *ret, struct berth_err *err);

struct net_sandbox_config {
    struct net_sandbox_user user;
    const char *ca_path, *pem_path; /* files; read at each start of the sandbox */
    /* `not_after_ns`: when the certificate expires (since 1970); 0: the certificate is invalid or the process cannot be
     * started, with the reason in `text`. `trial`: refers to the certificate of net_sandbox_try, not to the files. */
    void (*known)(void *ctx, int64_t not_after_ns, const char *text, bool trial);
    void *ctx;
};

/* Creates the handle; the process is started from the event loop. */
struct net_sandbox *net_sandbox_new(struct loop *loop, const struct net_sandbox_config *config, const struct log *log);
/* Drops all pending requests without calling their callbacks; NULL is fine. */
void net_sandbox_free(struct net_sandbox *h);
/* Tries another certificate with its key and uses it from now on if it is valid: `known` receives the result. */
void net_sandbox_try(struct net_sandbox *h, const char *pem);

/* Like async_start and async_cancel; `token` and `accept` are not sent. */
struct net_sandbox_request *net_sandbox_start(struct net_sandbox *h, const struct async_request *request);
void net_sandbox_cancel(struct net_sandbox_request *call);

/* Sends one request to the server that has the key of this pin, through a temporary sandbox process; blocks. Returns
 * the HTTP status or a negative errno. */
int net_sandbox_ask(const struct net_sandbox_user *user, const char *url, const char *pin, const char *body,
                    struct str *ret_answer, struct berth_err *err);

/* net_sandbox_spawn.c: starts the process. The caller owns *ret_fd, the socket to it. */
int net_sandbox_spawn(const struct net_sandbox_user *user, pid_t *ret_pid, int *ret_fd, struct berth_err *err);
/* net_sandbox_drop.c: irrevocably drops all privileges that the sandbox does not need. */
int net_sandbox_drop(const struct net_sandbox_user *user, struct berth_err *err);
/* net_sandbox_main.c: main function of the sandbox process. */
int net_sandbox_main(int argc, char **argv);
