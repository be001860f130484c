/* permit.h - authentication and authorization: identifies the caller and checks permissions. No other module decides
 * this.
 *
 * A role gives each permission a scope: none, own objects, objects of the own group, or all objects. Built-in roles are
 * rows of a table in permit.c; administrators define further roles as objects of KIND_ROLE. A permission that a role
 * does not mention is denied.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "control/state/state.h"

enum permission {
    PERMIT_PUBLIC,  /* no token needed: health, version, openapi */
    PERMIT_SELF,    /* any valid token: /v1/whoami */
    PERMIT_READ,    /* see workloads, instances, events, users */
    PERMIT_CLUSTER, /* see nodes, profiles, resources, capacity */
    PERMIT_SUBMIT,  /* create workloads and volumes, for the caller or for owners in scope */
    PERMIT_MANAGE,  /* change, stop, delete workloads and volumes */
    PERMIT_NODES,   /* add, drain, release, configure nodes */
    PERMIT_USERS,   /* users, groups, their tokens */
    PERMIT_SYSTEM,  /* settings, roles, system services, backup, metrics */
    PERMIT_AUDIT,   /* read the audit records */
    PERMIT_REPORT,  /* an agent: read its node's configuration, send reports */
    PERMISSIONS
};

enum scope { SCOPE_NONE, SCOPE_OWN, SCOPE_GROUP, SCOPE_ALL };

struct caller {
    const char *user;  /* "" for an agent or an unauthenticated caller */
    const char *group; /* "": none */
    const char *role;
    const char *node;  /* node of an agent; else "" */
    const char *token; /* token id, for the audit and for closing streams; "": authenticated by certificate */
    enum scope scope[PERMISSIONS];
    uint64_t joined; /* agents: number of the node's join; a later join belongs to another agent */
    uint64_t epoch;  /* agents: epoch that the agent reported (node_epoch_check); 0: none yet */
};

const char *permission_name(enum permission p);
int permission_find(const char *name); /* -1: unknown */
const char *scope_name(enum scope s);
int scope_find(const char *name); /* -1: unknown */

/* A role. role_at returns the built-in roles; NULL past the end. */
struct role {
    const char *name, *about;
    enum scope scope[PERMISSIONS];
};
const struct role *role_at(size_t i);
/* Returns NULL if no built-in role has this name. */
const struct role *role_find(const char *name);
/* Reads the scopes of a role, built-in or of KIND_ROLE. Returns -ENOENT for an unknown role. */
int role_scopes(const struct state *s, const char *name, enum scope ret[static PERMISSIONS], struct berth_err *err);
/* Reads the scopes of a role document. Returns -EINVAL for an unknown permission or scope. */
int role_doc_scopes(const json_t *doc, enum scope ret[static PERMISSIONS], struct berth_err *err);
/* Tells whether the caller has at least these scopes. Required to assign a role, and to act for a user with that
 * role. */
bool caller_covers(const struct caller *c, const enum scope scope[static PERMISSIONS]);

/* Identifies the caller by the token or, without a token, by the client certificate (common name "user:ID" or
 * "node:ID"). Returns -EPERM, with the same text for every cause, if the token is missing, unknown, wrong or expired,
 * or if the user is disabled or deleted. The texts in *ret are valid until the state changes. Constant time in the
 * secret. */
int caller_find(const struct state *s, const char *token, const char *peer, int64_t now_ns, struct caller *ret,
                struct berth_err *err);
/* Tells whether a client certificate has not expired and, for a node, belongs to the node's current join. `serial` is
 * the serial number in hex; NULL skips both checks. */
bool certificate_valid(const struct state *s, const char *peer, const char *serial, int64_t until_ns, int64_t now_ns);
/* Tells whether a token is still valid, for streams. "" stands for a certificate and is always valid here: see
 * caller_unchanged. */
bool token_is_valid(const struct state *s, const char *token_id, int64_t now_ns);
/* Tells whether a caller that was identified earlier is unchanged: still valid, with the same group, role and scopes,
 * and without a newer agent on its node. A stream to such a caller may continue. Works for certificates too. */
bool caller_unchanged(const struct state *s, const struct caller *c, int64_t now_ns);

/* Tells whether the caller has a permission on an object of this owner and group. For PERMIT_REPORT the owner is a
 * node. PERMIT_PUBLIC and PERMIT_SELF apply to no owned object: PERMIT_PUBLIC gives true always, PERMIT_SELF for every
 * valid caller. */
bool permit(const struct caller *c, enum permission need, const char *owner, const char *group);

/* Parses a token into its id and the hash of its secret, which is what the store keeps. Returns false for a malformed
 * token. */
enum { TOKEN_ID_LEN = 12, TOKEN_HASH_LEN = 32 };
bool token_read(const char *text, char ret_id[static TOKEN_ID_LEN + 1], unsigned char ret_hash[static TOKEN_HASH_LEN]);

/* Finds an invitation: a token that lets a machine join as a node. Its text has another prefix, and no API request can
 * be made with it. Returns NULL, whatever the cause, for an invitation that is unknown, used, expired or malformed. */
#define TOKEN_PREFIX "berth_"
#define INVITATION_PREFIX "berth_join_"
#define INVITATION_ROLE "join"
const struct object *invitation_find(const struct state *s, const char *text, int64_t now_ns);

/* Creates a token: its text ("berth_ID_SECRET"), shown once, and the document to store, which lacks the secret.
 * `random` is 40 random bytes. */
enum { TOKEN_TEXT_MAX = 128 };
json_t *token_make(const unsigned char random[static 40], const char *user, const char *node, const char *role,
                   const char *note, int64_t now_ns, int64_t expires_ns, char ret_text[static TOKEN_TEXT_MAX],
                   const char **ret_id, struct arena *arena);
