/* cache_input.h - all that a projection is ever told, one input at a time: for whoever keeps a record of it (kube/journal/journal.h) and for whoever
 * makes the same projection again of such a record (kube/journal/replay.h).
 *
 * A projection is a function of its inputs and their order. Objects come as they are kept: what a scheduler does not need, such as the
 * environment of containers and most annotations, is in no input. What changes nothing is not told.
 *
 * To add one: a word here, a call of input_tell where it takes effect, a row in journal_ops.c, a case in cache_input.c; and, where it leaves
 * something behind, project_image.
 */
#pragma once

#include "kube/cache/cache.h"

enum project_op {
    PROJECT_PUT,
    PROJECT_DROP,
    PROJECT_SETTLE, /* what depends on others was brought up to date */
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
    /* Only of an image. */
    PROJECT_HELD,  /* a pod that waits: what is remembered of it */
    PROJECT_TAKEN, /* a pod on its way: the volumes that were chosen for it */
    PROJECT_RENEW, /* the end: the cluster is told everything anew */
    PROJECT_OPS,
};

/* Which members count follows from `op`; texts are never NULL where they do. Valid for the call. */
struct project_input {
    enum project_op op;
    enum project_kind kind;           /* of PUT, DROP */
    const struct kube_object *object; /* of the same: namespace, name, uid and version */
    struct proto_reader kept;         /* of a pod without what is its own, which is: */
    int64_t created_ns, deleted_ns;
    int64_t bound_ns; /* of one that is; 0: since it was made */
    bool
        known; /* of a pod: all of that, and its uid, is as it was; only its node may be new. Then they need not be there */
    const char *owner;      /* uid of the job that made it, or that the role is of; "" */
    struct proto_text node; /* bound to it; or going there */
    const char *id;         /* of a workload */
    const char *namespace;  /* of a role */
    const char *name;       /* of the pod of a task */
    uint32_t ordinal, attempt;
    uint64_t instance; /* that it is about, or that came of it; in an image also of a pod that is bound */
    uint64_t gpus;
    const uint64_t *waits;
    size_t waits_len;
    int64_t moment_ns; /* not before */
    uint32_t failures;
    bool stopping;
    const char *text;
    const char *const *nodes; /* of HELD: shunned */
    size_t nodes_len;
    const struct project_volume *volumes; /* of TAKEN */
    size_t volumes_len;
    size_t places; /* of RENEW: for pods, free ones counted */
};

/* Does to a projection what the input says. In an image instances get the numbers they had. False: it did not come to the same instance. */
bool project_input_take(struct project *p, const struct project_input *in, bool image);

/* Inputs that make the same projection of an empty one; right after project_cluster, with nothing left to settle. The projection tells its cluster
 * everything anew, too, so that both begin from the same. What project_orphans finds is forgotten. O(everything). */
void project_image(struct project *p, void (*tell)(void *ctx, const struct project_input *in), void *ctx);

/* Pods that were made and not seen yet, of jobs that are gone? No input tells of them; until they are seen, in a moment, only this projection
 * knows that their place is taken. O(pods). */
bool project_orphans(const struct project *p);
