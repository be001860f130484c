/* user.h - users, groups, roles and tokens: their rules, as parts of crud.h and as verbs for routes_users.c.
 *
 * The rules hold wherever a user is written: by its routes, in a transaction, by an import. Nobody gives, or acts for
 * somebody who has, more than one's own permissions; nobody disables or deletes oneself or the last enabled administrator.
 */
#pragma once

#include "control/api/crud.h"

/* What a role gives as the transaction would leave it; the role is guarded. -EINVAL: there is none. */
int role_rest_on(struct call *c, const char *role, enum scope ret[static PERMISSIONS]);
/* May the caller act for this user (its document): change it, delete it, make tokens for it? -EACCES if it has more
 * permissions than the caller. */
int user_covered(struct call *c, const char *id, const json_t *doc);

/* user.c */
call_run user_disable, user_enable;
/* role.c: the built-in ones are listed and read like others, but never written. */
call_run role_list, role_get, role_create, role_replace, role_patch, role_delete;
/* token_verb.c */
call_run token_list, token_get, token_create, token_delete;
/* archive.c, archive_import.c */
call_run user_export, user_import;

enum { TOKENS_USER_MAX = 1000 }; /* of one user, or of one node */
