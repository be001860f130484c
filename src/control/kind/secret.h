/* secret.h - secrets: text that instances read as files and that the API never returns.
 *
 * Secrets are stored sealed (libsodium's secretbox) under a key that is not in the store but is given to the control.
 * So the store, its log, backups and answers never contain the text. Only the agent of a node that is to run an
 * instance which names the secret receives it (GET /v1/nodes/ID/secrets/ID). Each sealed text contains the secret's ID,
 * so that one cannot be put in place of another.
 */
#pragma once

#include "control/api/crud.h"
#include "wire/doc/api.h"

/* Returns the ID of a secret that a workload's file names: a name without owner is one of the workload's owner. */
const char *secret_id(const char *name, const char *owner, struct arena *arena);
/* Returns whether a file of the workload's document names this secret. */
bool secret_named(const json_t *work, const char *owner, const char *id);
/* Checks that the secrets named by a workload's files exist, belong to its owner and have the named keys. -EINVAL.
 * Guards them. */
int secrets_check(struct request *c, const json_t *doc, const struct work_run *run);

/* Decrypts a secret's data, {key: text}; a new reference. -EIO: it was sealed under another key. */
int secret_open(const struct control *c, const char *id, const json_t *doc, json_t **ret, struct berth_err *err);

request_verb node_secret; /* GET /v1/nodes/{id}/secrets/{secret} */

/* How many secrets there are, and whether the control's key opens at least one. Tries them in order until one opens. */
struct secret_key_match {
    size_t secrets;
    bool opens;
};
struct secret_key_match secret_key_fit(struct control *c);
