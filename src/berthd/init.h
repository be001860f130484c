/* init.h - the first start: a new cluster, and its administrator's token in a file.
 *
 * The cluster is made aside and put in its place only when the token is safely in its file. So a first start that is cut
 * short leaves nothing that nobody has the key to, and can simply be tried again.
 */
#pragma once

#include <stdbool.h>

#include "control/control.h"

/* Makes DIR/store.db unless it is there. *ret_made: it was made. -ENOENT and its kin: the folder or the file cannot be
 * written. The environment is only asked for time and randomness. */
int cluster_init(const char *dir, const char *token_file, const struct control_env *env, bool *ret_made,
                 struct berth_err *err);
/* Is there a store in this folder? */
bool cluster_exists(const char *dir);
/* Writes a secret so that the file appears whole, on disk, and readable by its owner only. */
int secret_write(const char *path, const char *text, struct berth_err *err);
/* The key that secrets are sealed under, of DIR/secret.key. *ret_there false: there is no such file, and `ret` is a new key
 * that nobody has yet. -EBADMSG: the file holds no key. */
int secret_key_read(const char *dir, const struct control_env *env, unsigned char ret[static 32], bool *ret_there,
                    struct berth_err *err);
/* Makes DIR/secret.key. */
int secret_key_write(const char *dir, const unsigned char key[static 32], struct berth_err *err);
