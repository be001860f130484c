/* crud.h - list, read, create, replace, patch and delete, once for every kind that has a collection.
 *
 * What differs between kinds stands in a small table of functions (struct crud). The rest is the same everywhere: ids
 * are folded and unique, what the daemon adds ("created", "generation", ...) is not the client's, a document is checked
 * as a whole before it is written, and reads go through the change, so that the parts of one transaction see each
 * other.
 *
 * To add a kind: a struct crud beside its verbs, a row in cruds[] (crud.c), and its routes, whose verbs are one line:
 *
 *     COLLECTION(group)
 */
#pragma once

#include "control/api/request.h"

enum crud_mode {
    CRUD_CREATE,  /* must not be there */
    CRUD_REPLACE, /* may be there */
    CRUD_PATCH,   /* must be there; the body is a JSON merge patch */
};

struct crud {
    enum kind kind;
    enum permission make, change; /* to create one; to replace, patch or delete one */

    /* Brings what a client wrote into the stored form, whatever of it is there: a patch, too. NULL: it is that
     * already. */
    int (*normalise)(struct call *c, const struct crud *k, json_t *body);
    /* Of a document that is about to be created: its id, folded, in the arena; where it comes from something else than
     * its `id` or `name`. `arg` is the path's, NULL for a POST. May fill in what the id rests on (`name`, `owner`).
     * NULL: as kinds[kind].grammar says. */
    int (*identify)(struct call *c, const struct crud *k, const char *arg, json_t *doc, const char **ret_id);
    /* Who it will belong to, for the permission `make`. NULL: to nobody, so that only the scope `all` suffices. */
    int (*belongs)(struct call *c, const struct crud *k, const char *id, const json_t *doc, const char **ret_owner,
                   const char **ret_group);
    /* Fills in defaults, and refuses what a client may not change of the present document (`old`, NULL: none). May set
     * the first `generation` to another than 1. NULL: nothing. */
    int (*prepare)(struct call *c, const struct crud *k, const char *id, const json_t *old, json_t *doc);
    /* Is the finished document right, by itself and with all that it refers to? -EINVAL naming the key. */
    int (*check)(struct call *c, const struct crud *k, const char *id, const json_t *old, const json_t *doc);
    /* It is about to be replaced (`next`) or deleted (`next` is NULL): what else is to be written, or why not: -EBUSY.
     * NULL: nothing. */
    int (*leaving)(struct call *c, const struct crud *k, const char *id, const json_t *old, const json_t *next);
    /* Adds to what is shown ("status"), or takes away. NULL: nothing. */
    void (*show)(const struct call *c, const struct object *o, json_t *doc);
    /* An object that is there without being made: its document, a new reference. NULL: there is none of this id. */
    json_t *(*implied)(const struct call *c, const char *id);
    /* Does it pass the query's filters? NULL: all do. */
    bool (*pass)(const struct call *c, const struct object *o);

    const char *const *keep; /* keys that may change without a new generation, and that stay as they are when a
                                replacement does not mention them; ended by NULL. NULL: none */
};

/* The verbs of a collection. */
int crud_list(struct call *c, const struct crud *k); /* takes ?limit, ?after, ?watch and ?order */
int crud_get(struct call *c, const struct crud *k);
int crud_create(struct call *c, const struct crud *k);
int crud_replace(struct call *c, const struct crud *k);
int crud_patch(struct call *c, const struct crud *k);
int crud_delete(struct call *c, const struct crud *k);

/* The same as functions for a table of routes: COLLECTION(app) defines app_list and so on for app_crud. */
#define CRUD_VERB(name, verb)                                                                                          \
    static int name##_##verb(struct call *c)                                                                           \
    {                                                                                                                  \
        return crud_##verb(c, &name##_crud);                                                                           \
    }
#define COLLECTION(name)                                                                                               \
    CRUD_VERB(name, list)                                                                                              \
    CRUD_VERB(name, get)                                                                                               \
    CRUD_VERB(name, create)                                                                                            \
    CRUD_VERB(name, replace)                                                                                           \
    CRUD_VERB(name, patch)                                                                                             \
    CRUD_VERB(name, delete)

/* Their parts, for transactions and other verbs. */

/* Writes one document; permission included. `arg` NULL: identified by the body. */
int crud_put(struct call *c, const struct crud *k, const char *arg, const json_t *body, enum crud_mode mode,
             const char **ret_id, bool *ret_new);
int crud_remove(struct call *c, const struct crud *k, const char *arg);
/* Says that there is none, in the words of call_object: -ENOENT. */
int crud_absent(struct call *c, enum kind kind, const char *arg);
/* As call_object, but of the transaction: the document of the object an argument names, and its id. NULL with
 * c->err. */
const json_t *crud_open(struct call *c, enum kind kind, const char *arg, enum permission need, const char **ret_id);
/* A verb that changes one document in place: opens it, lets `edit` alter a copy, then checks and writes it as a
 * replacement would. `edit` returns 0 or a negative errno with c->err. */
typedef int crud_edit_fn(struct call *c, const char *id, json_t *doc, const void *arg);
int crud_edit(struct call *c, const struct crud *k, enum permission need, crud_edit_fn *edit, const void *arg);
/* The same of a document that has been opened. */
int crud_write(struct call *c, const struct crud *k, const char *id, const json_t *old, json_t *doc);

/* The document of an object as this caller is shown it, with `revision` and what `show` adds. A new reference. */
json_t *crud_shown(const struct call *c, const struct crud *k, const struct object *o);
/* The id that a path's argument means for this kind, in the arena: folded, NAME completed by the caller; -EINVAL with
 * what is wrong with it. */
int crud_id(struct call *c, enum kind kind, const char *arg, const char **ret_id);
/* An id as documents and answers have it: a number for kinds that have numbers. A new reference. */
json_t *crud_id_value(enum kind kind, const char *id);
/* {"id": ...}, of status 201 if it is new. */
int crud_answer(struct call *c, enum kind kind, const char *id, bool is_new);
/* Names what is done for the audit: "app.stop", "apps/photos.alice". */
void crud_name(struct call *c, enum kind kind, const char *id, const char *verb);

/* Takes out of a document what this caller may not see although it sees the object: install configuration, secrets. For
 * whoever shows stored documents. */
void crud_hide(const struct caller *caller, const struct object *o, json_t *doc);

/* Of a kind; NULL: it has none. */
const struct crud *crud_find(enum kind kind);

/* Of whoever writes workloads (work.c) ... */
extern const struct crud app_crud, job_crud, vm_crud;
/* ... secrets (secret.c) ... */
extern const struct crud secret_crud;
/* ... nodes (node.c) ... */
extern const struct crud queue_crud, policy_crud, window_crud, domain_crud, optask_crud;
extern const struct crud node_crud, volume_crud, resource_crud, profile_crud, instance_crud;
/* ... users. */
extern const struct crud user_crud, group_crud, role_crud;
