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
struct seen {
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
    VEC(struct seen *) slots;
    VEC(uint32_t) unused;
    VEC(struct seen *) of[KINDS]; /* in arbitrary order, but the same for the same history */
    uint64_t revision;
};

/* A key of a transaction, before and after it. */
struct seen_change {
    enum kind kind;
    const struct seen *old, *now; /* NULL: absent before; deleted */
};

void mirror_done(struct mirror *m);
/* Applies an event. The caller frees *ret_old with seen_free; NULL: the key was absent. Returns -EBADMSG for a key of
 * an unknown kind or an unreadable document. */
int mirror_apply(struct mirror *m, const struct store_event *event, struct seen **ret_old, const struct seen **ret_now,
                 struct berth_err *err);
void seen_free(struct seen *s);

/* Returns NULL if the document is absent. */
const struct seen *mirror_find(const struct mirror *m, enum kind kind, const char *id);
/* Returns an app, a job or a vm. */
const struct seen *mirror_work(const struct mirror *m, const char *id);
const struct seen *mirror_instance(const struct mirror *m, uint64_t id);
/* Returns the document from which an instance was placed: its workload's current or kept document. NULL: unknown. */
const struct seen *mirror_placed_from(const struct mirror *m, const struct seen *instance);

/* Returns whether the instance is assigned, starting, running or stopping. */
static inline bool state_holds(enum berth_state state)
{
    return state != BERTH_RESERVED && state != BERTH_ENDED;
}
