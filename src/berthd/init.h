/* init.h - the first start: creates a new cluster, and its administrator's token in a file.
 *
 * The cluster is created in a temporary folder and moved to its place only when the token is safely in its file. So an
 * interrupted first start leaves no cluster without a usable token, and can be repeated.
 */
#pragma once

#include <stdbool.h>

#include "control/control.h"

/* Creates DIR/store.db unless it exists. *ret_made: it was created. -ENOENT and similar: the folder or the file cannot
 * be written. `env` is only used for time and randomness. */
int cluster_init(const char *dir, const char *token_file, const struct control_env *env, bool *ret_made,
                 struct berth_err *err);
/* Returns whether the folder contains a store. */
bool cluster_exists(const char *dir);
/* Writes a secret to a file atomically, synced to disk, and readable by its owner only. */
int secret_write(const char *path, const char *text, struct berth_err *err);
/* Reads the key that seals secrets from DIR/secret.key. *ret_there false: the file does not exist, and `ret` is a new
 * random key. -EBADMSG: the file does not contain a key. */
int secret_key_read(const char *dir, const struct control_env *env, unsigned char ret[static 32], bool *ret_there,
                    struct berth_err *err);
/* Creates DIR/secret.key. */
int secret_key_write(const char *dir, const unsigned char key[static 32], struct berth_err *err);
