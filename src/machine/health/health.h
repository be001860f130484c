/* health.h - health checks of an instance: a program's exit code, an HTTP status, or a TCP connection, repeated
 * periodically.
 *
 * One check at a time; the next one starts `every` after the start of the last one, without jitter. `failures`
 * consecutive failures make the instance not ready, one success makes it ready. The HTTP check sends a GET request over
 * a new connection to 127.0.0.1, without TLS; a status of 200 to 399 is a success, and only the status line is read.
 * The caller executes programs.
 *
 * To add a kind of check: a row in health_read.c and its functions in health.c.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "net/loop.h"

struct health;

struct health_config {
    const json_t *check; /* "health" of node_config; valid only during the call */
    /* Returns the port of an endpoint; 0: none. */
    uint16_t (*port)(void *ctx, const char *endpoint);
    /* Runs a program in the instance's environment and calls `done` once with its exit code, or -1; not before this
     * function has returned. Returns a handle to cancel it; NULL: it could not be started, and `done` is not called. */
    void *(*exec)(void *ctx, const char *const *argv, int64_t timeout_ns, void (*done)(void *arg, int exit), void *arg);
    /* Ends the program; `done` is not called afterwards. */
    void (*exec_cancel)(void *ctx, void *run);
    /* The verdict has changed; the first one counts as a change. `text`: the failure; NULL: none. May free the
     * object. */
    void (*verdict)(void *ctx, bool ready, const char *text);
    void *ctx;
};

/* The first check starts after the configured delay. Defaults: every 10 s, timeout 1 s, no delay, 3 failures. -EINVAL:
 * invalid check: not exactly one of exec, http and tcp, an unknown key, or a timeout that is not below `every`. */
int health_new(struct loop *loop, const struct health_config *config, struct health **ret, struct berth_err *err);
void health_free(struct health *h); /* cancels an open check; NULL is fine */
