/* mirror.h - what the store says, read by somebody who is not the daemon.
 *
 * Fed with the store's events, one transaction at a time, so that judges see the cluster as it was at that very revision.
 * Nothing is cached beyond the parsed documents: sums are made when they are asked for.
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

/* One document, parsed. */
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
    size_t place; /* in the list of its kind */
};

struct mirror {
    struct map map;
    VEC(struct seen *) slots;
    VEC(uint32_t) unused;
    VEC(struct seen *) of[KINDS]; /* in no order that means anything, but the same for the same history */
    uint64_t revision;
};

/* One key of a transaction, before and after it. */
struct seen_change {
    enum kind kind;
    const struct seen *old, *now; /* NULL: was not there; is gone */
};

void mirror_done(struct mirror *m);
/* Applies one event. *ret_old is the caller's to free with seen_free, NULL: it was not there. -EBADMSG for a key of no kind
 * or a document that cannot be read. */
int mirror_apply(struct mirror *m, const struct store_event *event, struct seen **ret_old, const struct seen **ret_now,
                 struct berth_err *err);
void seen_free(struct seen *s);

/* NULL: not there. */
const struct seen *mirror_find(const struct mirror *m, enum kind kind, const char *id);
/* An app, a job or a vm. */
const struct seen *mirror_work(const struct mirror *m, const char *id);
const struct seen *mirror_instance(const struct mirror *m, uint64_t id);
/* The document that an instance was placed from: its workload as it is, or as it was kept. NULL: not known. */
const struct seen *mirror_placed_from(const struct mirror *m, const struct seen *instance);

/* Assigned, starting, running or stopping. */
static inline bool state_holds(enum berth_state state)
{
    return state != BERTH_RESERVED && state != BERTH_ENDED;
}
