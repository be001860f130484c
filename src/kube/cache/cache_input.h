/* cache_input.h - the inputs that change a cache, one at a time: recorded by the journal (kube/journal/journal.h) and
 * applied to another cache by replay (kube/journal/replay.h).
 *
 * The state of a cache is a function of its inputs and their order. Objects are recorded as they are kept: fields that
 * a scheduler does not need, such as the environment of containers and most annotations, are in no input. An object
 * that changes nothing produces no input.
 *
 * To add an input: an enum constant here, a call of input_tell where it takes effect, a row in journal_ops.c, a case in
 * cache_input.c; and, if it leaves state behind, an entry in project_image.
 */
#pragma once

#include "kube/cache/cache.h"

enum project_op {
    PROJECT_PUT,
    PROJECT_DROP,
    PROJECT_SETTLE, /* dependents of changed objects were updated */
    PROJECT_ASSUME,
    PROJECT_PROMOTE,
    PROJECT_GIVE_BACK,
    PROJECT_STOPPING,
    PROJECT_TOLD, /* changes nothing that a plan depends on */
    PROJECT_ROLE_PUT,
    PROJECT_ROLE_DROP,
    PROJECT_ROLE_CHANGED,
    PROJECT_TASK_ASSUME,
    PROJECT_TASK_END,
    PROJECT_TASKS_AGAIN,
    /* The following occur only in an image. */
    PROJECT_HELD,  /* a waiting pod: failures, backoff and excluded nodes */
    PROJECT_TAKEN, /* an assumed or reserved pod: the volumes chosen for it */
    PROJECT_RENEW, /* end of the image: the cluster is filled anew */
    PROJECT_OPS,
};

/* One input. `op` says which members are set; texts that are set are never NULL. Valid during the call. */
struct project_input {
    enum project_op op;
    enum project_kind kind;           /* of PUT and DROP */
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
    const struct project_volume *volumes; /* of TAKEN */
    size_t volumes_len;
    size_t places; /* of RENEW: number of pod slots, free ones included */
};

/* Applies the input to a cache. With `image`, instances get the numbers they were recorded with. Returns false if the
 * operation produced another instance than recorded. */
bool project_input_take(struct project *p, const struct project_input *in, bool image);

/* Emits the inputs that rebuild this cache from an empty one. Call right after project_cluster, with nothing marked.
 * Refills this cache's own cluster too, so that both start from equal clusters; forgets the pods that project_orphans
 * reports. O(cache). */
void project_image(struct project *p, void (*tell)(void *ctx, const struct project_input *in), void *ctx);

/* Reports whether there are assumed tasks, not seen yet, whose job is gone. No input describes them; until their pods
 * are seen, shortly after, only this cache knows that their node is taken. O(pods). */
bool project_orphans(const struct project *p);
