/* cache_internal.h - internals of the cache; included only by the files of this folder.
 *
 * Three tables: stripped objects by kind (shelves), nodes and pods. A pod that depends on other objects follows their
 * topics ("claim:ns:name"). A change to such an object marks the pods of its topic, and cache_cluster puts each
 * marked pod into the cluster again, once.
 */
#pragma once

#include "base/arena.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "kube/cache/cache.h"
#include "kube/cache/cache_input.h"
#include "kube/object/budget.h"
#include "kube/object/defaults.h"
#include "kube/object/driver.h"
#include "kube/object/node.h"
#include "kube/object/pod.h"
#include "kube/object/volume.h"
#include "kube/tenant/tenant.h"

#define NONE UINT32_MAX

/* Label that holds a pod's namespace; "@" is not valid in Kubernetes labels, so the name cannot clash. */
#define NAMESPACE_LABEL "@namespace"
/* Topic of all pods that are in a queue. */
#define TENANTS_TOPIC "tenants"

/* ---- shelves: stripped objects by key --------------------------------------------------------------------------- */

struct cache_object {
    char *key; /* NULL: a free slot */
    uint8_t *bytes;
    size_t len;
};

struct object_store {
    VEC(struct cache_object) at;
    VEC(uint32_t) free;
    struct map by_key;
};

void object_store_clear(struct object_store *s);
uint32_t object_store_find(const struct object_store *s, const char *key); /* NONE */
bool object_store_differs(const struct object_store *s, const char *key,
                          const struct str *bytes); /* from the stored bytes */
void object_store_put(struct object_store *s, const char *key, const struct str *bytes);
bool object_store_remove(struct object_store *s, const char *key); /* false: not found */
static inline struct proto_reader object_store_bytes(const struct object_store *s, uint32_t i)
{
    return proto_reader(s->at.at[i].bytes, s->at.at[i].len);
}

/* ---- topics: which pods depend on which objects ----------------------------------------------------------------- */

struct cache_topic {
    char *key;          /* NULL: a free slot */
    VEC(uint32_t) pods; /* in no order */
};
struct pod_topic {
    uint32_t topic, place; /* `place`: index in the topic's pods */
};

/* ---- nodes ------------------------------------------------------------------------------------------------------ */

struct node_image {
    sym name;
    uint32_t size_kib;
};

struct cache_node {
    char *name;     /* NULL: a free slot */
    uint8_t *bytes; /* stripped, without images; NULL: pods are bound to a node that does not exist */
    size_t len;
    uint64_t hash; /* of the stripped node with images */
    struct node_image *images;
    size_t images_len;
    uint32_t pods; /* bound, assumed or reserved here */
    sym domain;    /* the node's domain, in `names` */
    bool unschedulable;
};

/* ---- pods ------------------------------------------------------------------------------------------------------- */

enum pod_state { POD_WAITS, POD_RESERVED, POD_ASSUMED, POD_BOUND };
/* How a waiting pod of a group is placed: by itself, with the gang or not at all, or only after the gang is
 * complete. */
enum pod_role { ROLE_ALONE, ROLE_TOGETHER, ROLE_LATER };

/* State of a pod that is not bound yet. */
struct pod_wait {
    char *told, *nominated; /* NULL: "" */
    char *why;              /* why the pod cannot be placed at all; NULL: it can */
    int64_t told_ns, begin_ns;
    uint32_t failures;
    uint64_t *waits; /* instances that a reserved pod waits for */
    size_t waits_len;
    struct cache_claim_volume *volumes; /* chosen for its claims; texts are owned */
    size_t volumes_len;
    VEC(char *) excluded_nodes; /* nodes without volumes for the pod's claims; cleared when these objects change */
};

/* Of a pod that is a task of a job, or of an assumed task whose pod is not created yet (its uid is ""). */
struct pod_task {
    char *role, *owner; /* workload id of the role; uid of the job */
    uint32_t ordinal, attempt;
};

/* Of an entry that is a role of a job. The entry stays in state POD_WAITS; its tasks have entries of their own. */
struct pod_job {
    char *owner;
    VEC(uint64_t) ended; /* by ordinal: instance of a task that succeeded; 0: not yet */
};

struct pod_entry {
    char *id; /* workload id; NULL: a free slot. One block with uid */
    /* point into the block of `id`; `name` has bytes of its own if the id is not "namespace:name" */
    const char *name, *uid;
    const char *scheduler; /* one of our scheduler names; NULL: another scheduler's pod */
    sym namespace;
    uint32_t template; /* index: content shared with similar pods */
    uint32_t node;     /* index, or NONE */
    uint64_t instance; /* 0: none */
    int64_t created_ns, deleted_ns;
    int64_t bound_ns;      /* from the PodScheduled condition; 0: unknown, use created_ns */
    struct pod_wait *wait; /* NULL once the pod is bound */
    struct pod_topic *topics;
    uint32_t topics_len;
    uint32_t gang;  /* index, or NONE */
    uint32_t payer; /* index + 1 of the payer; 0: none */
    struct pod_task *task;
    struct pod_job *job;
    enum pod_state state : 8;
    enum pod_role role : 8;
    bool gated, stopping, marked; /* marked: must be put into the cluster again */
    bool there;                   /* the workload is in the cluster */
    bool holds;                   /* the pod had volumes when it was last put into the cluster */
};

/* User, group and queue that a pod is charged to; 0: none. The group is set only if it is not the user's own. */
struct payer {
    sym user, group, queue;
};

/* Stripped bytes of pods, shared by pods with equal bytes. */
struct template
{
    uint8_t *bytes; /* NULL: a free slot */
    uint32_t len, pods;
};

/* Pods that start together. */
struct pod_gang {
    char *key;    /* NULL: a free slot */
    uint32_t min; /* from the group object or a pod's label; 0: no minimum */
    bool known;   /* the group object exists, or a pod's label gives the minimum */
    VEC(uint32_t) pods;
};

/* A node with attached volumes. */
struct node_attachments {
    char *node;       /* NULL: a free slot */
    VEC(uint32_t) at; /* indices in the shelf of attachments, in no order */
    uint64_t alone;   /* hash of the attachments no pod here uses, as last put into the cluster; 0: none */
    bool old;         /* `alone` may be out of date */
};

/* A volume chosen for a claim of an assumed or reserved pod. */
struct volume_reservation {
    char *volume;
    uint32_t pod;
};

struct cache {
    struct cache_config config;
    struct berth_cluster *cluster;
    struct arena arena; /* per call; empty between calls */
    struct str stripped;
    uint64_t instances; /* last instance id given */
    size_t forgotten;   /* pods removed since the cluster was created */
    struct object_store shelves[CACHE_POD_GROUP + 1];
    VEC(struct cache_topic) topics;
    VEC(uint32_t) topics_free;
    struct map topics_by_key;
    struct intern names; /* image names and namespaces */
    VEC(struct cache_node) nodes;
    VEC(uint32_t) nodes_free;
    struct map nodes_by_name;
    size_t nodes_there;
    VEC(struct template) templates;
    VEC(uint32_t) templates_free;
    struct map templates_by_bytes;
    VEC(struct pod_entry) pods;
    VEC(uint32_t) pods_free;
    struct map pods_by_id, pods_by_instance;
    VEC(uint32_t) marked;
    VEC(struct pod_gang) gangs;
    VEC(uint32_t) gangs_free;
    struct map gangs_by_key;
    VEC(struct volume_reservation) taken;
    VEC(uint32_t) taken_free;
    struct map taken_by_volume;
    VEC(struct payer) payers;
    struct map payers_by_names;
    VEC(struct node_attachments) attached;
    VEC(uint32_t) node_attachments_free, attached_old;
    struct map attached_by_node;
    /* by index in the shelf of attachments: the volume's name; 0: the attachment does not count */
    VEC(sym) attached_volumes;
};

/* Returns "kind:a:b", or "kind:" with a hash if that is too long or not a valid id of the model. In the arena. */
const char *cache_key(struct cache *p, const char *kind, const char *a, const char *b);
void cache_notify(struct cache *p);
/* Replaces the cluster by a new one with everything the cache holds. */
void cache_refill_cluster(struct cache *p);
void cache_trouble(struct cache *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static inline void input_record(struct cache *p, const struct cache_change *in)
{
    if (p->config.input)
        p->config.input(p->config.ctx, in);
}

/* cache_index.c */
void topic_follow(struct cache *p, uint32_t pod, const char *key);
void topic_leave_all(struct cache *p, uint32_t pod);
void topic_mark(struct cache *p, const char *key);
const struct cache_topic *topic_lookup(const struct cache *p, const char *key); /* NULL: no follower */
void topic_mark_others(struct cache *p, const char *key, uint32_t but);
/* Excludes a node that has no volumes for the pod's claims, until these objects change. */
void pod_exclude_node(struct cache *p, uint32_t pod, const char *node);
void pod_clear_excluded_nodes(struct pod_wait *wait);
void topics_clear(struct cache *p);

/* cache_node.c */
uint32_t node_find(const struct cache *p, const char *name); /* NONE */
/* Returns the index of the node, counting one more pod on it; creates an entry without resources for a node not seen
 * yet. */
uint32_t node_enter(struct cache *p, const char *name);
void node_leave(struct cache *p, uint32_t node);
void node_put(struct cache *p, const struct kube_object *o);
void node_drop(struct cache *p, const char *name);
void node_attach_changed(struct cache *p, const char *name); /* its volume limits changed */
bool node_refresh(struct cache *p, const char *name);        /* puts the node into the cluster; false: no such node */
void nodes_refill(struct cache *p);                          /* puts all nodes into a new cluster */
void nodes_done(struct cache *p);

/* cache_index.c: templates */
uint32_t template_take(struct cache *p, const struct str *bytes);
void template_leave(struct cache *p, uint32_t template);
void templates_done(struct cache *p);

/* cache_pod.c */
uint32_t pod_find(const struct cache *p, const char *id); /* NONE */
/* Returns the name as the configuration holds it; NULL: not one of our schedulers. */
const char *pod_scheduler(const struct cache *p, const char *name);
void pod_put(struct cache *p, const struct kube_object *o);
void pod_drop(struct cache *p, const struct kube_object *o);
/* Marks the pod to be put into the cluster again by the next cache_cluster, and calls `changed`; callers need not
 * call it. */
void pod_mark(struct cache *p, uint32_t pod);
/* Puts the pod's present state into the cluster. */
void pod_refresh(struct cache *p, uint32_t pod);
static inline const char *pod_namespace(const struct cache *p, const struct pod_entry *e)
{
    return intern_text(&p->names, e->namespace);
}
/* Returns the pod of the template plus the entry's own fields, in the arena. Cannot fail: the template was parsed when
 * the pod came. */
struct kube_pod pod_read(struct cache *p, uint32_t pod);
uint32_t pod_by_instance(const struct cache *p, uint64_t instance); /* NONE */
/* Puts the workload and its instance, if any, into the cluster. The instance keeps its id and node and gets the pod's
 * present shape. */
void pod_refresh_now(struct cache *p, uint32_t pod, const struct kube_pod *from);
/* `shape`: what the instance holds from now on; NULL: unchanged, or the workload's shape for a new instance. */
int pod_instance_put(struct cache *p, const struct pod_entry *e, uint64_t gpus, const struct berth_shape *shape,
                     struct berth_err *err);
/* Creates an instance on the node with the workload's present class. */
bool pod_instance_new(struct cache *p, uint32_t pod, const char *node, uint64_t gpus);
void pod_instance_clear(struct cache *p, uint32_t pod);
void pod_text_set(char **text, const char *at, size_t len); /* NULL for "" */
void pods_refill(struct cache *p);
void pods_done(struct cache *p);

/* Creates an entry for an object of this name. A pod_wait of the entry is freed with pod_wait_free. */
uint32_t pod_new(struct cache *p, const char *id, const struct kube_object *o);
void pod_forget(struct cache *p, uint32_t pod);
void pod_wait_free(struct cache *p, uint32_t pod);
bool pod_strip(struct cache *p, struct proto_reader raw, const struct kube_pod_facts *facts);

/* Returns since when the pod is bound. */
static inline int64_t pod_began_ns(const struct pod_entry *e)
{
    return e->bound_ns ? e->bound_ns : e->created_ns;
}

/* cache_usage.c */
/* Returns the payer of a workload from its quotas (index + 1); 0: none. */
uint32_t usage_payer_of(struct cache *p, const struct berth_workload *w);
/* Books the usage of a pod that is about to go, if it ran. */
void usage_pod_ended(struct cache *p, uint32_t pod);
/* Copies the payer of a role that is about to go to its running tasks, which stay charged to it. */
void usage_role_removed(struct cache *p, uint32_t role);
void usage_done(struct cache *p);

/* cache_task.c */
/* Returns the uid of the job that created the pod; "" if none did. */
const char *task_owner(struct cache *p, struct proto_reader raw);
/* Handles the appearance of a pod with the name of an assumed task: the entry takes the pod's uid; or, if the pod
 * belongs to another task, the entry is forgotten (NONE). */
uint32_t task_pod_appeared(struct cache *p, uint32_t pod, const struct kube_object *o);
/* Makes a new entry a task if the pod's labels and owner say so. */
void task_detect(struct cache *p, uint32_t pod, const struct kube_pod *from, const struct kube_object *o);
/* Calls the `task` callback if the pod belongs to a job. */
void task_report(struct cache *p, const struct kube_object *o);
void task_report_removed(struct cache *p, const struct pod_entry *e);

/* cache_job.c */
void task_bound(struct cache *p, uint32_t pod, const struct kube_pod *from, const char *node);
void task_refresh(struct cache *p, uint32_t pod, const struct kube_pod *from);
const char *task_workload(struct cache *p, const struct pod_task *task);
/* role_claim adds the result of the `claim` callback to the role's workload before the cluster gets it;
 * role_restore_ended adds the ended tasks after that. */
struct shaped_pod;
void role_claim(struct cache *p, uint32_t pod, struct shaped_pod *shaped);
void role_restore_ended(struct cache *p, uint32_t pod);
void job_parts_free(struct cache *p, struct pod_entry *e);

/* cache_shape.c: returns the pod as a workload, in the arena. `why`: NULL, or why the pod cannot be placed at all.
 * `settled`: the pod has a node, so only what it holds and its effect on other pods go into the shape. Follows
 * topics. */
struct shaped_pod {
    struct berth_workload workload;
    const char *why;
};
void budgets_refill(struct cache *p);
void budget_changed(struct cache *p, const char *namespace, const char *name);
struct shaped_pod shape_pod(struct cache *p, uint32_t pod, const struct kube_pod *from, bool settled);

/* cache_volume.c: adds the requirements of the pod's claims to the shape. */
struct volumes_shape {
    struct kube_terms require; /* node terms; empty: none */
    struct kube_texts ids;     /* volume ids in the cluster */
    struct kube_texts alone;   /* names of ReadWriteOncePod claims */
    const char *why;
};
void shape_volumes(struct cache *p, uint32_t pod, const struct kube_pod *from, bool settled, struct volumes_shape *ret);
bool claim_find(struct cache *p, const char *namespace, const char *name, struct kube_claim *ret);
bool volume_find(struct cache *p, const char *name, struct kube_volume *ret);
bool class_find(struct cache *p, const char *name, struct kube_class *ret);
/* Returns the name of the claim that the mount refers to. */
const char *mount_claim(struct cache *p, const struct kube_pod *from, const struct kube_mount *mount);

/* cache_bind_volume.c */
/* Reports whether the volume was chosen for an assumed or reserved pod other than `but`. */
bool is_volume_reserved(const struct cache *p, const char *volume, uint32_t but);
/* Returns the node for which another assumed pod has the claim's volume provisioned; "": none. */
const char *claim_provisioned_on(struct cache *p, uint32_t pod, const struct kube_claim *claim);
/* Chooses the volumes of the pod's claims on the node; false: one of the claims has none. */
bool volumes_choose(struct cache *p, uint32_t pod, const struct kube_pod *from, const char *node);
/* Reports whether all chosen volumes are bound to their claims. */
bool volumes_are_bound(struct cache *p, const struct pod_wait *wait);
bool volumes_are_reachable(struct cache *p, const struct pod_entry *e);
void volumes_forget(struct cache *p, uint32_t pod);
/* Implements cache_ephemeral_claims. */
size_t ephemeral_claims_visit(struct cache *p, uint32_t pod, cache_claim_visitor *tell, void *ctx);
/* Replaces the chosen volumes by recorded ones. */
void volumes_restore(struct cache *p, const char *workload, const struct cache_claim_volume *volumes, size_t len);
void volumes_done(struct cache *p);

/* cache_capacity.c: returns in *to the nodes where the class can provision a volume of the claim's size; empty: none.
 * False: all nodes. */
bool capacity_where(struct cache *p, const struct kube_claim *claim, const struct kube_class *class,
                    struct kube_terms *to);
/* Reports whether the class can provision the volume on the node with these labels. */
bool capacity_on(struct cache *p, const struct kube_claim *claim, const struct kube_class *class,
                 const struct kube_labels *node);
/* Finds the CSI driver of this name; false: unknown. */
bool driver_find(struct cache *p, const char *name, struct kube_driver *ret);

/* cache_attach.c: attachment_join is called after an attachment was put on its shelf, attachment_leave before it is
 * removed. */
void attachment_join(struct cache *p, const char *name);
void attachment_leave(struct cache *p, const char *name);
/* Notes that the volume was added, changed or removed. */
void node_attachments_volume_changed(struct cache *p, const char *volume);
/* Notes that the volumes used by pods on the node may have changed. */
void node_attachments_mark(struct cache *p, const char *node);
/* Updates the hash of the node's attachments that no pod uses. */
void node_attachments_rehash(struct cache *p, const char *node);
/* Returns how many volumes of the driver are attached to the node and used by no pod there. */
int64_t node_attachments_unused_count(struct cache *p, const char *node, const char *driver);
/* Puts nodes whose unused attachments changed into the cluster again; returns false if there were none. Called when
 * pods are up to date, and after a new cluster was filled. */
bool node_attachments_update(struct cache *p);
void node_attachments_done(struct cache *p);

/* cache_gang.c */
void gang_join(struct cache *p, uint32_t pod, const struct kube_pod *from);
void gang_leave(struct cache *p, uint32_t pod);
/* Updates the roles of the gang's waiting pods after pods of the gang were added, removed or placed. */
void gang_changed(struct cache *p, uint32_t gang);
void gang_object(struct cache *p, const char *namespace, const char *name);
const char *gang_why(struct cache *p, uint32_t pod); /* NULL: the gang does not hold the pod up */
void gangs_done(struct cache *p);
