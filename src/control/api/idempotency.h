/* idempotency.h - a request with an idempotency key happens once: its answer is kept and given again.
 *
 * The answer is a document (KIND_REPLY, id USER/HASH-OF-KEY) written by the same transaction as the change itself, so
 * either both are durable or neither. Of two requests at the same time with the same key one meets a conflict, is run
 * again, and then finds the answer. Only success is kept: what was refused changed nothing and may be tried again.
 *
 * For control.c: reply_find before the verb, at each attempt; reply_put after it, unless it is a dry run; reply_expire now
 * and then. A key is the caller's own (a user's, or an agent's) and no secret. An answer with a secret is never kept:
 * routes that answer with a token refuse a key.
 */
#pragma once

#include "control/api/request.h"

enum {
    REPLY_KEY_MAX = 128,         /* characters, printable ASCII */
    REPLY_AGE_S_MAX = 24 * 3600, /* then it may be forgotten */
    REPLY_USER_MAX = 10000,      /* kept for one user, or a few hundred more; the oldest leave */
    REPLY_ALL_MAX = 200000,      /* kept at all; beyond it, and beyond twice a user's, new keys are refused */
    REPLY_LOOKS = 1000,          /* replies one sweep looks into */
};

struct reply {
    int status;
    json_t *body;      /* owned; NULL: none. As the verb made it: without what the commit adds */
    uint64_t revision; /* of the commit */
};

/* 0: the request has no key, or one that is new; 1: it was answered before, with *ret. Else with c->err: -EINVAL for a key
 * that is none, -EEXIST (409) when the key came with another method, path, query or body, -EDQUOT when too many are kept. */
int reply_find(struct call *c, struct reply *ret);
/* Adds the answer to the call's change, and now and then takes away the oldest of a user that has too many. Nothing without
 * a key. */
void reply_put(struct call *c);

/* Deletes, through the change, replies that are too old or of users that are gone: of the REPLY_LOOKS oldest. Returns how
 * many. O(all replies). */
size_t reply_expire(struct change *c, int64_t now_ns);
/* Deletes those of one user, up to `max`; when the user is gone what is left is nobody's, and goes by itself. */
size_t reply_forget(struct change *c, const char *user, size_t max);
