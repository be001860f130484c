/* secret.h - secrets: text that instances see as files, and that nobody reads back.
 *
 * The store has them sealed (libsodium's secretbox) under a key that it does not have: the control is given it. So neither
 * the store, its log, a backup nor an answer holds the text; only the agent of a node that is to run an instance which
 * names the secret is told (GET /v1/nodes/ID/secrets/ID). Each seal names its secret, so that one cannot be put in the
 * place of another.
 */
#pragma once

#include "control/api/crud.h"
#include "wire/doc/api.h"

/* The id that a workload's file means: a name alone is of the workload's owner. */
const char *secret_id(const char *name, const char *owner, struct arena *arena);
/* Does the workload's document name this secret in a file? */
bool secret_named(const json_t *work, const char *owner, const char *id);
/* Are the secrets that a workload's files name there, its owner's own, and have these keys? -EINVAL. Guards them. */
int secrets_check(struct call *c, const json_t *doc, const struct work_run *run);

/* The data of a secret's document, {key: text}; a new reference. -EIO: it was sealed under another key. */
int secret_open(const struct control *c, const char *id, const json_t *doc, json_t **ret, struct berth_err *err);

call_run node_secret; /* GET /v1/nodes/{id}/secrets/{secret} */

/* How many secrets there are, and whether the key of the control opens some of them. Opens them one after the other until
 * one is good. */
struct secret_fit {
    size_t secrets;
    bool opens;
};
struct secret_fit secret_key_fit(struct control *c);
