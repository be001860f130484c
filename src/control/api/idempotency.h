/* idempotency.h - runs a request with an idempotency key only once: keeps the answer and repeats it.
 *
 * The answer is a document (KIND_REPLY, id USER/HASH-OF-KEY) written by the same transaction as the change itself, so
 * either both are durable or neither. Of two concurrent requests with the same key, one meets a conflict, runs again,
 * and then finds the answer. Only successful answers are kept: a rejected request changed nothing and may be retried.
 *
 * Used by handle.c: reply_find before the verb, at each attempt; reply_put after the verb, unless it is a dry run. The
 * daemon calls reply_expire now and then. A key belongs to one caller (a user or an agent) and is no secret. An answer
 * with a secret is never kept: routes that answer with a token reject a key.
 */
#pragma once

#include "control/api/request.h"

enum {
    REPLY_KEY_MAX = 128,         /* characters, printable ASCII */
    REPLY_AGE_S_MAX = 24 * 3600, /* lifetime; then the answer may be deleted */
    REPLY_USER_MAX = 10000,      /* answers per user, soft (a few hundred more may exist); the oldest are deleted */
    /* answers of all users; beyond this, or beyond twice REPLY_USER_MAX, new keys are rejected */
    REPLY_ALL_MAX = 200000,
    REPLY_SWEEP_MAX = 1000, /* replies that one sweep examines */
};

struct reply {
    int status;
    json_t *body;      /* owned; NULL: none. As the verb made it, without the keys that the commit adds */
    uint64_t revision; /* of the commit */
};

/* Returns 0 if the request has no key or a new key, and 1 with *ret if the request was answered before. Otherwise sets
 * c->err: -EINVAL for an invalid key, -EEXIST (409) if the key came with another method, path, query or body, -EDQUOT
 * if too many answers are kept. */
int reply_find(struct request *c, struct reply *ret);
/* Adds the answer to the request's change, and now and then deletes the oldest answers of a user with too many. Does
 * nothing without a key. */
void reply_put(struct request *c);

/* Deletes, through the change, expired replies and replies of deleted users, among the REPLY_SWEEP_MAX oldest. Returns
 * the number of deleted replies. O(all replies). */
size_t reply_expire(struct change *c, int64_t now_ns);
/* Deletes up to `max` replies of one user. Replies that are left after the user is deleted expire by themselves. */
size_t reply_delete_user(struct change *c, const char *user, size_t max);
