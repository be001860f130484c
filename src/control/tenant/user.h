/* user.h - users, groups, roles and tokens: their rules, as parts of crud.h and as verbs for routes_users.c.
 *
 * The rules apply however a user is written: by its routes, in a transaction, by an import. A caller cannot grant more
 * than its own permissions, nor act for a user that has more. A caller cannot disable or delete itself or the last
 * enabled administrator.
 */
#pragma once

#include "control/api/crud.h"

/* Gets the permissions of a role as the transaction would leave it, and guards the role. -EINVAL: no such role. */
int role_guard(struct request *c, const char *role, enum scope ret[static PERMISSIONS]);
/* Checks that the caller may act for this user (its document): change it, delete it, create tokens for it. -EACCES: the
 * user has more permissions than the caller. */
int user_covered(struct request *c, const char *id, const json_t *doc);

/* user.c */
request_verb user_disable, user_enable;
/* role.c: built-in roles are listed and read like others, but never written. */
request_verb role_list, role_get, role_create, role_replace, role_patch, role_delete;
/* token_verb.c */
request_verb token_list, token_get, token_create, token_delete;
/* archive.c, archive_import.c */
request_verb user_export, user_import;

enum { TOKENS_USER_MAX = 1000 }; /* of one user or one node */
