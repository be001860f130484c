/* cache_input.h - the inputs that change a cache, one at a time: recorded by the journal (kube/journal/journal.h) and
 * applied to another cache by replay (kube/journal/replay.h).
 *
 * The state of a cache is a function of its inputs and their order. Objects are recorded as they are kept: fields that
 * a scheduler does not need, such as the environment of containers and most annotations, are in no input. An object
 * that changes nothing produces no input.
 *
 * To add an input: an enum constant here, a call of input_record where it takes effect, a row in journal_ops.c, a case
 * in cache_input.c; and, if it leaves state behind, an entry in cache_dump_changes.
 */
#pragma once

#include "kube/cache/cache.h"

enum cache_op {
    CACHE_OP_PUT,
    CACHE_OP_DROP,
    CACHE_OP_SETTLE, /* dependents of changed objects were updated */
    CACHE_OP_ASSUME,
    CACHE_OP_PROMOTE,
    CACHE_OP_FORGET,
    CACHE_OP_STOPPING,
    CACHE_OP_REPORTED, /* changes nothing that a plan depends on */
    CACHE_OP_ROLE_PUT,
    CACHE_OP_ROLE_DROP,
    CACHE_OP_ROLE_CHANGED,
    CACHE_OP_TASK_ASSUME,
    CACHE_OP_TASK_SUCCEEDED,
    CACHE_OP_TASKS_RERUN,
    /* The following occur only in an image. */
    CACHE_OP_BACKOFF,   /* a waiting pod: failures, backoff and excluded nodes */
    CACHE_OP_VOLUMES,   /* an assumed or reserved pod: the volumes chosen for it */
    CACHE_OP_IMAGE_END, /* end of the image: the cluster is filled anew */
    CACHE_OPS,
};

/* One input. `op` says which members are set; texts that are set are never NULL. Valid during the call. */
struct cache_change {
    enum cache_op op;
    enum cache_kind kind;             /* of PUT and DROP */
    const struct kube_object *object; /* of PUT and DROP: namespace, name, uid and version */
    struct proto_reader kept;         /* stripped object; for a pod without its own fields, which are: */
    int64_t created_ns, deleted_ns;
    int64_t bound_ns;  /* of a bound pod; 0: since its creation */
    bool known;        /* of a pod: only its node may have changed; the members above and the uid need not be set */
    const char *owner; /* uid of the job of the pod or role; "": none */
    struct proto_text node; /* node the pod is bound or assigned to */
    const char *id;         /* workload id */
    const char *namespace;  /* of a role */
    const char *name;       /* name of a task's pod */
    uint32_t ordinal, attempt;
    uint64_t instance; /* instance of the operation, or created by it; in an image also that of a bound pod */
    uint64_t gpus;
    const uint64_t *waits;
    size_t waits_len;
    int64_t moment_ns; /* not-before time */
    uint32_t failures;
    bool stopping;
    const char *text;
    const char *const *nodes; /* of HELD: excluded nodes */
    size_t nodes_len;
    const struct cache_claim_volume *volumes; /* of TAKEN */
    size_t volumes_len;
    size_t places; /* of RENEW: number of pod slots, free ones included */
};

/* Applies the input to a cache. With `image`, instances get the numbers they were recorded with. Returns false if the
 * operation produced another instance than recorded. */
bool cache_change_apply(struct cache *p, const struct cache_change *in, bool image);

/* Emits the inputs that rebuild this cache from an empty one. Call right after cache_cluster, with nothing marked.
 * Refills this cache's own cluster too, so that both start from equal clusters; forgets the pods that cache_has_orphans
 * reports. O(cache). */
void cache_dump_changes(struct cache *p, void (*tell)(void *ctx, const struct cache_change *in), void *ctx);

/* Reports whether there are assumed tasks, not seen yet, whose job is gone. No input describes them; until their pods
 * are seen, shortly after, only this cache knows that their node is taken. O(pods). */
bool cache_has_orphans(const struct cache *p);
