/* health.h - is an instance well? Asked again and again: a program's exit, an HTTP answer, a TCP connection.
 *
 * One question at a time, the next one `every` after the last was asked; no jitter. `failures` in a row make it not ready,
 * one success makes it ready. HTTP is a GET of HTTP/1.1 over a connection of its own to 127.0.0.1, without TLS; 200 to 399 is
 * well, and no more than the status line is read. Starting programs is the caller's.
 *
 * To add a kind of question: a row in health.c and its functions.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "net/loop.h"

struct health;

struct health_config {
    const json_t *check; /* "health" of node_config; need not live on */
    /* The port an endpoint is at; 0: none. */
    uint16_t (*port)(void *ctx, const char *endpoint);
    /* Runs a program in the instance's surroundings; calls `done` once with its exit code, or -1; not before it returns.
     * Returns something to cancel it by; NULL: could not, and `done` is not called. */
    void *(*exec)(void *ctx, const char *const *argv, int64_t timeout_ns, void (*done)(void *arg, int exit), void *arg);
    /* Ends the program; `done` is not called any more. */
    void (*exec_cancel)(void *ctx, void *run);
    /* The verdict has changed; the first one counts as a change. `text`: what is wrong; NULL: nothing. May free the
     * health. */
    void (*verdict)(void *ctx, bool ready, const char *text);
    void *ctx;
};

/* Begins after the check's delay. Not given: every 10 s, timeout 1 s, no delay, 3 failures. -EINVAL: the check makes no
 * sense: not exactly one of exec, http and tcp, a key that is not known, a timeout that is not below `every`. */
int health_new(struct loop *loop, const struct health_config *config, struct health **ret, struct berth_err *err);
void health_free(struct health *h); /* cancels what is under way; NULL is fine */
