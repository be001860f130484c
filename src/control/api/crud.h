/* crud.h - list, read, create, replace, patch and delete, once for every kind that has a collection.
 *
 * A small table of functions (struct crud) holds what differs between kinds. The rest is common: ids are case-folded
 * and unique, clients cannot set the daemon's keys ("created", "generation", ...), a document is checked as a whole
 * before the write, and reads go through the change, so that the parts of one transaction see each other.
 *
 * To add a kind: a struct crud beside its verbs, a row in cruds[] (crud.c), and its routes, whose verbs are one line:
 *
 *     COLLECTION(group)
 */
#pragma once

#include "control/api/request.h"

enum crud_mode {
    CRUD_CREATE,  /* the object must not exist */
    CRUD_REPLACE, /* the object may exist */
    CRUD_PATCH,   /* the object must exist; the body is a JSON merge patch */
};

struct crud {
    enum kind kind;
    enum permission make, change; /* `make`: to create an object; `change`: to replace, patch or delete one */

    /* Converts a client's document, which may be a partial one (a patch), to the stored form. NULL: no conversion. */
    int (*normalise)(struct request *c, const struct crud *k, json_t *body);
    /* Determines the id of a document that is about to be created, folded, in the arena, for kinds that do not take it
     * from `id` or `name`. `arg` is the path's argument, NULL for a POST. May set the keys that the id derives from
     * (`name`, `owner`). NULL: the id follows kinds[kind].grammar. */
    int (*identify)(struct request *c, const struct crud *k, const char *arg, json_t *doc, const char **ret_id);
    /* Determines the future owner and group, for the permission `make`. NULL: no owner, so only the scope `all`
     * suffices. */
    int (*belongs)(struct request *c, const struct crud *k, const char *id, const json_t *doc, const char **ret_owner,
                   const char **ret_group);
    /* Sets defaults, and rejects changes that a client may not make to the present document (`old`, NULL: none). May
     * set the first `generation` to a value other than 1. NULL: does nothing. */
    int (*prepare)(struct request *c, const struct crud *k, const char *id, const json_t *old, json_t *doc);
    /* Validates the finished document and all objects that it refers to. -EINVAL naming the key. */
    int (*check)(struct request *c, const struct crud *k, const char *id, const json_t *old, const json_t *doc);
    /* Called before an object is replaced (`next`) or deleted (`next` is NULL): writes dependent changes, or rejects
     * with -EBUSY. NULL: does nothing. */
    int (*leaving)(struct request *c, const struct crud *k, const char *id, const json_t *old, const json_t *next);
    /* Adds derived keys ("status") to the shown document, or removes keys. NULL: does nothing. */
    void (*show)(const struct request *c, const struct object *o, json_t *doc);
    /* Returns the document of an implicit object, one that exists without a stored document, as a new reference. NULL:
     * no such id. */
    json_t *(*implied)(const struct request *c, const char *id);
    /* Tells whether the object matches the query's filters. NULL: every object does. */
    bool (*pass)(const struct request *c, const struct object *o);

    /* Keys that may change without a new generation, and that a replacement keeps when it does not mention them; ends
     * with NULL. NULL: none. */
    const char *const *keep;
};

/* The verbs of a collection. */
int crud_list(struct request *c, const struct crud *k); /* accepts ?limit, ?after, ?watch and ?order */
int crud_get(struct request *c, const struct crud *k);
int crud_create(struct request *c, const struct crud *k);
int crud_replace(struct request *c, const struct crud *k);
int crud_patch(struct request *c, const struct crud *k);
int crud_delete(struct request *c, const struct crud *k);

/* The verbs as functions for a route table: COLLECTION(app) defines app_list and so on for app_crud. */
#define CRUD_VERB(name, verb)                                                                                          \
    static int name##_##verb(struct request *c)                                                                        \
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

/* The parts of the verbs, for transactions and other verbs. */

/* Writes one document and checks the permission. `arg` NULL: the body identifies the object. */
int crud_put(struct request *c, const struct crud *k, const char *arg, const json_t *body, enum crud_mode mode,
             const char **ret_id, bool *ret_new);
int crud_remove(struct request *c, const struct crud *k, const char *arg);
/* Returns -ENOENT, with the same text as request_object. */
int crud_not_found(struct request *c, enum kind kind, const char *arg);
/* As request_object, but sees the changes of the transaction: returns the document of the object that an argument
 * names, and its id. NULL with c->err set otherwise. */
const json_t *crud_open(struct request *c, enum kind kind, const char *arg, enum permission need, const char **ret_id);
/* Changes one document in place: opens the document, lets `edit` alter a copy, then checks and writes the copy as a
 * replacement would. `edit` returns 0 or a negative errno with c->err set. */
typedef int crud_edit_fn(struct request *c, const char *id, json_t *doc, const void *arg);
int crud_edit(struct request *c, const struct crud *k, enum permission need, crud_edit_fn *edit, const void *arg);
/* The second half of crud_edit: checks and writes a document that is already open. Consumes the reference to `doc`,
 * also on failure. */
int crud_write(struct request *c, const struct crud *k, const char *id, const json_t *old, json_t *doc);

/* Returns the document of an object as shown to this caller, with `revision` and the keys that `show` adds. A new
 * reference. */
json_t *crud_show_object(const struct request *c, const struct crud *k, const struct object *o);
/* Resolves a path argument to an id of this kind, in the arena: folds case, completes NAME with the caller as owner.
 * Returns -EINVAL for an invalid id. */
int crud_id(struct request *c, enum kind kind, const char *arg, const char **ret_id);
/* Returns an id as documents and answers contain it: a number for kinds with numeric ids. A new reference. */
json_t *crud_id_value(enum kind kind, const char *id);
/* Answers {"id": ...}, with status 201 for a new object. */
int crud_answer(struct request *c, enum kind kind, const char *id, bool is_new);
/* Sets the verb and the subject for the audit: "app.stop", "apps/photos.alice". */
void crud_name(struct request *c, enum kind kind, const char *id, const char *verb);

/* Removes the keys that this caller may not see although the caller sees the object: install configuration, secrets.
 * For every module that shows stored documents. */
void crud_redact(const struct caller *caller, const struct object *o, json_t *doc);

/* Returns the struct crud of a kind; NULL if the kind has none. */
const struct crud *crud_find(enum kind kind);

/* Workloads (control/kind/work.c). */
extern const struct crud app_crud, job_crud, vm_crud;
/* Secrets (control/kind/secret.c). */
extern const struct crud secret_crud;
/* Queues, operations on nodes, and nodes. */
extern const struct crud queue_crud, policy_crud, window_crud, domain_crud, optask_crud;
extern const struct crud node_crud, volume_crud, resource_crud, profile_crud, instance_crud;
/* Users. */
extern const struct crud user_crud, group_crud, role_crud;
