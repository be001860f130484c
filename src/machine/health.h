/* health.h - is an instance well? Asked again and again: a program's exit, an HTTP answer, a TCP connection. */
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
    /* Runs a program in the instance's surroundings; calls `done` once with its exit code, or -1. Returns something to
     * cancel it by; NULL: could not, and `done` is not called. */
    void *(*exec)(void *ctx, const char *const *argv, int64_t timeout_ns, void (*done)(void *arg, int exit), void *arg);
    void (*exec_cancel)(void *ctx, void *run);
    /* The verdict has changed; the first one counts as a change. `text`: what is wrong; NULL: nothing. */
    void (*verdict)(void *ctx, bool ready, const char *text);
    void *ctx;
};

/* Begins after the check's delay. -EINVAL: the check makes no sense. */
int health_new(struct loop *loop, const struct health_config *config, struct health **ret, struct berth_err *err);
void health_free(struct health *h); /* NULL is fine */
