/* permit.h - who is asking, and may they? The only place that decides it.
 *
 * A role gives each permission a scope: nothing, what is one's own, what is one's group's, everything. Built-in roles
 * stand in a table in permit.c; administrators define others as objects of KIND_ROLE. What has no rule is not allowed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "control/state/state.h"

enum permission {
    PERMIT_PUBLIC,  /* no token needed: health, version, openapi */
    PERMIT_SELF,    /* any valid token: who am I */
    PERMIT_READ,    /* see workloads, instances, events, users */
    PERMIT_CLUSTER, /* see nodes, profiles, resources, capacity */
    PERMIT_SUBMIT,  /* create workloads and volumes, for oneself or for those in scope */
    PERMIT_MANAGE,  /* change, stop, delete them */
    PERMIT_NODES,   /* add, drain, release, configure nodes */
    PERMIT_USERS,   /* users, groups, their tokens */
    PERMIT_SYSTEM,  /* settings, roles, system services, backup, metrics */
    PERMIT_AUDIT,   /* who did what */
    PERMIT_REPORT,  /* an agent: its own node's config and report */
    PERMISSIONS
};

enum scope { SCOPE_NONE, SCOPE_OWN, SCOPE_GROUP, SCOPE_ALL };

struct caller {
    const char *user;  /* "" for an agent, or nobody */
    const char *group; /* "": none */
    const char *role;
    const char *node;  /* of an agent; else "" */
    const char *token; /* its id, for the audit and for closing streams; "": a certificate */
    enum scope scope[PERMISSIONS];
    uint64_t joined; /* of an agent: which join of its node; one after it is another agent's */
    uint64_t epoch;  /* of an agent that has said it: node_epoch_check; 0: it has not */
};

const char *permission_name(enum permission p);
int permission_find(const char *name); /* -1: none */
const char *scope_name(enum scope s);
int scope_find(const char *name); /* -1: none */

/* Built-in roles; NULL past the end. */
struct role {
    const char *name, *about;
    enum scope scope[PERMISSIONS];
};
const struct role *role_at(size_t i);
/* NULL: no built-in role has this name. */
const struct role *role_find(const char *name);
/* What a role gives, built-in or of KIND_ROLE. -ENOENT: there is no such role. */
int role_scopes(const struct state *s, const char *name, enum scope ret[static PERMISSIONS], struct berth_err *err);
/* The same of a role's document; -EINVAL for an unknown permission or scope. */
int role_doc_scopes(const json_t *doc, enum scope ret[static PERMISSIONS], struct berth_err *err);
/* Has the caller at least this much of everything? Whoever gives a role, or acts for one who has it, needs to. */
bool caller_covers(const struct caller *c, const enum scope scope[static PERMISSIONS]);

/* Who has this token or, without one, this client certificate (of common name "user:ID" or "node:ID"). -EPERM, in one
 * sentence whatever the cause, for one that is missing, unknown, wrong, expired, or whose user is disabled or gone. The
 * texts live as long as the state is unchanged; copy them to keep them. Constant time in the secret. */
int caller_find(const struct state *s, const char *token, const char *peer, int64_t now_ns, struct caller *ret,
                struct berth_err *err);
/* Is a client certificate not over and, if it is a node's, of its present join? `serial` is its serial number in hex; NULL:
 * neither is looked at. */
bool peer_current(const struct state *s, const char *peer, const char *serial, int64_t until_ns, int64_t now_ns);
/* Is this token still good? For streams. "" stands for a certificate, which does not expire here: see caller_alive. */
bool token_alive(const struct state *s, const char *token_id, int64_t now_ns);
/* Is a caller that was found earlier still the same: alive, with the same group, role and scopes, and no newer agent on its
 * node? Then what it was shown it may still be shown. Certificates too. */
bool caller_alive(const struct state *s, const struct caller *c, int64_t now_ns);

/* May the caller use a permission on something of this owner and group? Of PERMIT_REPORT the owner is a node. PUBLIC and
 * SELF are about nothing that has an owner: true for everybody, and for every valid caller. */
bool permit(const struct caller *c, enum permission need, const char *owner, const char *group);

/* The hash of a token's secret that the store keeps; false for a text that is no token. */
enum { TOKEN_ID_LEN = 12, TOKEN_HASH_LEN = 32 };
bool token_read(const char *text, char ret_id[static TOKEN_ID_LEN + 1], unsigned char ret_hash[static TOKEN_HASH_LEN]);

/* An invitation of a machine to join as a node: a token whose text begins otherwise and that nobody can call with. NULL,
 * whatever the cause, for one that is unknown, used, expired, or none. */
#define TOKEN_PREFIX "berth_"
#define INVITATION_PREFIX "berth_join_"
#define INVITATION_ROLE "join"
const struct object *invitation_find(const struct state *s, const char *text, int64_t now_ns);

/* A new token: its text, shown once ("berth_ID_SECRET"), and the document to be stored, without the secret. `random`
 * fills 40 bytes. */
enum { TOKEN_TEXT_MAX = 128 };
json_t *token_make(const unsigned char random[static 40], const char *user, const char *node, const char *role,
                   const char *note, int64_t now_ns, int64_t expires_ns, char ret_text[static TOKEN_TEXT_MAX],
                   const char **ret_id, struct arena *arena);
