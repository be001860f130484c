/* mirror.h - the contents of the store, parsed independently of the daemon.
 *
 * The mirror receives the store's events one transaction at a time, so invariant checks see the cluster at exactly that
 * revision. Only the parsed documents are cached: sums are computed when they are needed.
 */
#pragma once

#include <jansson.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "control/kind/kind.h"
#include "store/store.h"
#include "wire/doc/api.h"
#include "wire/doc/queue_doc.h"

/* A parsed document. */
struct mirror_doc {
    enum kind kind;
    char *id;
    uint64_t created, revision;
    char *text; /* as stored */
    size_t len;
    json_t *doc;
    struct arena arena;
    union {
        struct node_doc node;
        struct work_doc work; /* also of a spec */
        struct instance_doc instance;
        struct user_doc user;
        struct group_doc group;
        struct queue_doc queue;
    };
    uint32_t slot;
    size_t place; /* index in the list of its kind */
};

struct mirror {
    struct map map;
    VEC(struct mirror_doc *) slots;
    VEC(uint32_t) unused;
    VEC(struct mirror_doc *) of[KINDS]; /* in arbitrary order, but the same for the same history */
    uint64_t revision;
};

/* A key of a transaction, before and after it. */
struct mirror_change {
    enum kind kind;
    const struct mirror_doc *old, *now; /* NULL: absent before; deleted */
};

void mirror_done(struct mirror *m);
/* Applies an event. The caller frees *ret_old with mirror_doc_free; NULL: the key was absent. Returns -EBADMSG for a
 * key of an unknown kind or an unreadable document. */
int mirror_apply(struct mirror *m, const struct store_event *event, struct mirror_doc **ret_old,
                 const struct mirror_doc **ret_now, struct berth_err *err);
void mirror_doc_free(struct mirror_doc *s);

/* Returns NULL if the document is absent. */
const struct mirror_doc *mirror_find(const struct mirror *m, enum kind kind, const char *id);
/* Returns an app, a job or a vm. */
const struct mirror_doc *mirror_work(const struct mirror *m, const char *id);
const struct mirror_doc *mirror_instance(const struct mirror *m, uint64_t id);
/* Returns the document from which an instance was placed: its workload's current or kept document. NULL: unknown. */
const struct mirror_doc *mirror_placed_from(const struct mirror *m, const struct mirror_doc *instance);

/* Returns whether the instance is assigned, starting, running or stopping. */
static inline bool state_holds(enum berth_state state)
{
    return state != BERTH_RESERVED && state != BERTH_ENDED;
}
