/* cache_parts.h - the inside of a projection; for project*.c alone.
 *
 * Three tables: what is known of each kind of object (shelves of stripped bytes), of nodes, of pods. A pod that depends on other objects
 * joins their topics ("claim:ns:name"); whoever changes such an object marks the pods of its topic, and they are projected again
 * before the cluster is next looked at (project_settle), each once.
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

/* The label that says a pod's namespace; no label of Kubernetes has this form. */
#define NAMESPACE_LABEL "@namespace"
/* The topic of whoever is in a queue. */
#define TENANTS_TOPIC "tenants"

/* ---- shelves: stripped objects by key ----------------------------------------------------------------------------- */

struct kept {
    char *key; /* NULL: a free place */
    uint8_t *bytes;
    size_t len;
};

struct shelf {
    VEC(struct kept) at;
    VEC(uint32_t) free;
    struct map by_key;
};

void shelf_clear(struct shelf *s);
uint32_t shelf_find(const struct shelf *s, const char *key);                         /* NONE */
bool shelf_differs(const struct shelf *s, const char *key, const struct str *bytes); /* from what is there */
void shelf_put(struct shelf *s, const char *key, const struct str *bytes);
bool shelf_drop(struct shelf *s, const char *key); /* false: it was not there */
static inline struct proto_reader shelf_bytes(const struct shelf *s, uint32_t i)
{
    return proto_reader(s->at.at[i].bytes, s->at.at[i].len);
}

/* ---- topics: who depends on what ---------------------------------------------------------------------------------- */

struct topic {
    char *key;          /* NULL: a free place */
    VEC(uint32_t) pods; /* in no order */
};
struct pod_topic {
    uint32_t topic, place; /* among its pods */
};

/* ---- nodes -------------------------------------------------------------------------------------------------------- */

struct held_image {
    sym name;
    uint32_t size_kib;
};

struct node_entry {
    char *name;     /* NULL: a free place */
    uint8_t *bytes; /* stripped, without images; NULL: pods are there, the node is not */
    size_t len;
    uint64_t hash; /* of all that was stripped */
    struct held_image *images;
    size_t images_len;
    uint32_t pods; /* bound, assumed or reserved here */
    sym domain;    /* that it is in; of names */
    bool unschedulable;
};

/* ---- pods --------------------------------------------------------------------------------------------------------- */

enum pod_state { POD_WAITS, POD_RESERVED, POD_ASSUMED, POD_BOUND };
/* Of a pod that waits in a group: by itself, with others or not at all, or until the group is complete. */
enum pod_role { ROLE_ALONE, ROLE_TOGETHER, ROLE_LATER };

/* What only those need that are not bound yet. */
struct pod_wait {
    char *told, *nominated; /* NULL: "" */
    char *why;              /* it cannot be placed at all, in words; NULL: it can */
    int64_t told_ns, begin_ns;
    uint32_t failures;
    uint64_t *waits; /* of a reserved one */
    size_t waits_len;
    struct project_volume *volumes; /* chosen for its claims; texts are owned */
    size_t volumes_len;
    VEC(char *) shunned; /* nodes where its claims found no volumes, until something about them changes */
};

/* Of a pod that is a task of a job, or is to be one as soon as it is made: then its uid is "". */
struct pod_task {
    char *role, *owner; /* id of the workload; uid of the job */
    uint32_t ordinal, attempt;
};

/* Of an entry that is a role of a job: it waits for ever, and its tasks have entries of their own. */
struct pod_job {
    char *owner;
    VEC(uint64_t) ended; /* by ordinal: the instance of a task that has ended well; 0: it has not */
};

struct pod_entry {
    char *id;               /* of its workload; NULL: a free place. One block with uid */
    const char *name, *uid; /* within, or within another block if the id is not made of it */
    const char *scheduler;  /* of ours; NULL: another's */
    sym namespace;
    uint32_t template; /* index: what it has in common with others */
    uint32_t node;     /* index, NONE */
    uint64_t instance; /* 0: none */
    int64_t created_ns, deleted_ns;
    int64_t bound_ns;      /* as the API server says; 0: since it was made */
    struct pod_wait *wait; /* NULL once it is bound */
    struct pod_topic *topics;
    uint32_t topics_len;
    uint32_t gang;  /* index, NONE */
    uint32_t payer; /* index and one: whom it counts for; 0: nobody */
    struct pod_task *task;
    struct pod_job *job;
    enum pod_state state : 8;
    enum pod_role role : 8;
    bool gated, stopping, marked; /* marked: to be projected again */
    bool there;                   /* its workload is in the cluster */
    bool holds;                   /* it has volumes, as it was last told */
};

/* Whom pods count for, by their names; 0: none. The group is there where it is not the user's own. */
struct payer {
    sym user, group, queue;
};

/* What is stripped of pods, each once. */
struct template
{
    uint8_t *bytes; /* NULL: a free place */
    uint32_t len, pods;
};

/* Pods that start together. */
struct gang {
    char *key;    /* NULL: a free place */
    uint32_t min; /* as the group's object says, or a pod; 0: no minimum */
    bool known;   /* the object is there */
    VEC(uint32_t) pods;
};

/* A node that volumes are attached to. */
struct attached {
    char *node;       /* NULL: a free place */
    VEC(uint32_t) at; /* of the shelf of attachments, in no order */
    uint64_t alone;   /* over those that no pod uses there, as the node was last told; 0: there are none */
    bool old;         /* that may be different by now */
};

/* A volume that was chosen for a claim of a pod on its way. */
struct taken {
    char *volume;
    uint32_t pod;
};

struct project {
    struct project_config config;
    struct berth_cluster *cluster;
    struct arena arena; /* of the call; empty in between */
    struct str stripped;
    uint64_t instances; /* ids given so far */
    size_t forgotten;   /* pods, since the cluster was made */
    struct shelf shelves[PROJECT_GROUP + 1];
    VEC(struct topic) topics;
    VEC(uint32_t) topics_free;
    struct map topics_by_key;
    struct intern names; /* of images and namespaces */
    VEC(struct node_entry) nodes;
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
    VEC(struct gang) gangs;
    VEC(uint32_t) gangs_free;
    struct map gangs_by_key;
    VEC(struct taken) taken;
    VEC(uint32_t) taken_free;
    struct map taken_by_volume;
    VEC(struct payer) payers;
    struct map payers_by_names;
    VEC(struct attached) attached;
    VEC(uint32_t) attached_free, attached_old;
    struct map attached_by_node;
    VEC(sym) attached_volumes; /* of each in the shelf of attachments: its volume's name; 0: it does not count */
};

/* "kind:a:b", or, where that is too long for the model, its hash under the same kind. In the arena. */
const char *project_key(struct project *p, const char *kind, const char *a, const char *b);
void project_changed(struct project *p);
/* A new cluster, which is told all there is. */
void project_renew(struct project *p);
void project_trouble(struct project *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static inline void input_tell(struct project *p, const struct project_input *in)
{
    if (p->config.input)
        p->config.input(p->config.ctx, in);
}

/* cache_index.c */
void topic_follow(struct project *p, uint32_t pod, const char *key);
void topic_leave_all(struct project *p, uint32_t pod);
void topic_mark(struct project *p, const char *key);
const struct topic *topic_look(const struct project *p, const char *key); /* NULL: nobody follows it */
void topic_mark_others(struct project *p, const char *key, uint32_t but);
/* The pod's claims have no volumes on this node: not there again as things are. */
void pod_shun(struct project *p, uint32_t pod, const char *node);
void pod_shun_none(struct pod_wait *wait);
void topics_clear(struct project *p);

/* cache_node.c */
uint32_t node_find(const struct project *p, const char *name); /* NONE */
/* The node, or a place for its pods until it is seen; one more pod is there. */
uint32_t node_enter(struct project *p, const char *name);
void node_leave(struct project *p, uint32_t node);
void node_put(struct project *p, const struct kube_object *o);
void node_drop(struct project *p, const char *name);
void node_attach_changed(struct project *p, const char *name); /* what volumes it takes */
bool node_again(struct project *p, const char *name);          /* is told; false: it is not there */
void nodes_tell(struct project *p);                            /* all of them, to a new cluster */
void nodes_done(struct project *p);

/* cache_index.c: templates */
uint32_t template_take(struct project *p, const struct str *bytes);
void template_leave(struct project *p, uint32_t template);
void templates_done(struct project *p);

/* cache_pod.c */
uint32_t pod_find(const struct project *p, const char *id); /* NONE */
/* The name as the configuration has it; NULL: it is not ours. */
const char *pod_scheduler(const struct project *p, const char *name);
void pod_put(struct project *p, const struct kube_object *o);
void pod_drop(struct project *p, const struct kube_object *o);
/* It is told anew at the next look, which is asked for: whatever marks it, nobody else need do so. */
void pod_mark(struct project *p, uint32_t pod);
/* Tells the cluster of the pod as it is now known. */
void pod_project(struct project *p, uint32_t pod);
static inline const char *pod_namespace(const struct project *p, const struct pod_entry *e)
{
    return intern_text(&p->names, e->namespace);
}
/* What its template says, and what is its own, in the arena. It was read once already: this cannot fail. */
struct kube_pod pod_read(struct project *p, uint32_t pod);
uint32_t pod_by_instance(const struct project *p, uint64_t instance); /* NONE */
/* The workload, and the instance where there is one: it keeps its id and node, and holds what the pod holds now. */
void pod_tell(struct project *p, uint32_t pod, const struct kube_pod *from);
/* With a shape: what it holds from now on; NULL: as it is, or of a new one as its workload says. */
int pod_instance_tell(struct project *p, const struct pod_entry *e, uint64_t gpus, const struct berth_shape *shape,
                      struct berth_err *err);
/* A new instance on the node, with the class that the workload has now. */
bool pod_instance_make(struct project *p, uint32_t pod, const char *node, uint64_t gpus);
void pod_instance_clear(struct project *p, uint32_t pod);
void pod_text_set(char **text, const char *at, size_t len); /* NULL for "" */
void pods_tell(struct project *p);
void pods_done(struct project *p);

/* An entry for an object of this name; what waits of one is freed. */
uint32_t pod_new(struct project *p, const char *id, const struct kube_object *o);
void pod_forget(struct project *p, uint32_t pod);
void pod_wait_free(struct project *p, uint32_t pod);
bool pod_strip(struct project *p, struct proto_reader raw, const struct kube_pod_facts *facts);

/* Since when it holds its place. */
static inline int64_t pod_began_ns(const struct pod_entry *e)
{
    return e->bound_ns ? e->bound_ns : e->created_ns;
}

/* cache_usage.c */
/* Whom a workload counts for, by its quotas; 0: nobody. */
uint32_t use_payer(struct project *p, const struct berth_workload *w);
/* A pod that may have run goes: what it used is booked. */
void use_ends(struct project *p, uint32_t pod);
/* A role goes: those of its tasks that still run count for whom they did. */
void use_roles_left(struct project *p, uint32_t role);
void uses_done(struct project *p);

/* cache_task.c */
/* The uid of the job that made the pod; "" if none did. */
const char *task_owner(struct project *p, struct proto_reader raw);
/* The pod of a name that was assumed: the entry is its own from now on, or is forgotten because the pod is another's (NONE). */
uint32_t task_met(struct project *p, uint32_t pod, const struct kube_object *o);
/* A new entry becomes a task if its labels and its owner say so. */
void task_join(struct project *p, uint32_t pod, const struct kube_pod *from, const struct kube_object *o);
/* Whoever runs jobs is told of the pod, if it is one of a job. */
void task_note(struct project *p, const struct kube_object *o);
void task_note_gone(struct project *p, const struct pod_entry *e);

/* cache_job.c */
void task_bound(struct project *p, uint32_t pod, const struct kube_pod *from, const char *node);
void task_tell(struct project *p, uint32_t pod, const struct kube_pod *from);
const char *task_workload(struct project *p, const struct pod_task *task);
/* A role: what is claimed for it goes into its workload; before it is told, and after. */
struct shaped;
void role_claim(struct project *p, uint32_t pod, struct shaped *shaped);
void role_told(struct project *p, uint32_t pod);
void job_parts_free(struct project *p, struct pod_entry *e);

/* cache_shape.c: the pod as a workload, in the arena; `why`: NULL, or why it cannot be placed at all. `settled`: it has its place, and only what
 * it holds and how others stand to it counts. Joins topics. */
struct shaped {
    struct berth_workload workload;
    const char *why;
};
void budgets_tell(struct project *p);
void budget_changed(struct project *p, const char *namespace, const char *name);
struct shaped shape_pod(struct project *p, uint32_t pod, const struct kube_pod *from, bool settled);

/* cache_volume.c: adds to the shape what the pod's claims ask for. */
struct volumes_shape {
    struct kube_terms require; /* of nodes; empty: nothing */
    struct kube_texts ids;     /* of the cluster's volumes */
    struct kube_texts alone;   /* claims that one pod alone may use */
    const char *why;
};
void shape_volumes(struct project *p, uint32_t pod, const struct kube_pod *from, bool settled,
                   struct volumes_shape *ret);
bool claim_find(struct project *p, const char *namespace, const char *name, struct kube_claim *ret);
bool volume_find(struct project *p, const char *name, struct kube_volume *ret);
bool class_find(struct project *p, const char *name, struct kube_class *ret);
/* The claim that the pod mounts, by name. */
const char *mount_claim(struct project *p, const struct kube_pod *from, const struct kube_mount *mount);

/* cache_bind_volume.c */
/* Was it chosen for another pod that is on its way? */
bool volume_taken(const struct project *p, const char *volume, uint32_t but);
/* The node on which another pod on its way has the claim's volume made; "": none has. */
const char *claim_made_on(struct project *p, uint32_t pod, const struct kube_claim *claim);
/* Which volumes its claims get on the node; false: there is none for one of them. */
bool volumes_choose(struct project *p, uint32_t pod, const struct kube_pod *from, const char *node);
/* Have all that were chosen been bound to their claims? */
bool volumes_are_bound(struct project *p, const struct pod_wait *wait);
bool volumes_are_reached(struct project *p, const struct pod_entry *e);
void volumes_forget(struct project *p, uint32_t pod);
/* Of project_claims_made. */
size_t claims_made(struct project *p, uint32_t pod, project_claim_teller *tell, void *ctx);
/* Those that were chosen once, in place of any. */
void volumes_take(struct project *p, const char *workload, const struct project_volume *volumes, size_t len);
void volumes_done(struct project *p);

/* cache_capacity.c: nodes where the class can make a volume of the claim's size, in *to; empty: it can nowhere. False: on all nodes. */
bool capacity_where(struct project *p, const struct kube_claim *claim, const struct kube_class *class,
                    struct kube_terms *to);
/* Can it on the node of these labels? */
bool capacity_on(struct project *p, const struct kube_claim *claim, const struct kube_class *class,
                 const struct kube_labels *node);
/* The driver of this name; false: nothing is known of it. */
bool driver_find(struct project *p, const char *name, struct kube_driver *ret);

/* cache_attach.c: an attachment is on the shelf from now on; or no longer, before it is taken from there. */
void attachment_join(struct project *p, const char *name);
void attachment_leave(struct project *p, const char *name);
/* The volume of this name came, changed or went. */
void attached_volume_changed(struct project *p, const char *volume);
/* What pods on the node use is different now. */
void attached_touch(struct project *p, const char *node);
/* Looks at what is attached to the node. */
void attached_look(struct project *p, const char *node);
/* How many volumes of the driver are attached to the node, and used by no pod there. */
int64_t attached_alone(struct project *p, const char *node, const char *driver);
/* Tells nodes again of which that is different by now; false: there are none. When pods are up to date, and after a new cluster was told all. */
bool attached_settle(struct project *p);
void attached_done(struct project *p);

/* cache_gang.c */
void gang_join(struct project *p, uint32_t pod, const struct kube_pod *from);
void gang_leave(struct project *p, uint32_t pod);
/* Pods of the gang of this one came, went or were placed: roles follow. */
void gang_changed(struct project *p, uint32_t gang);
void gang_object(struct project *p, const char *namespace, const char *name);
const char *gang_why(struct project *p, uint32_t pod); /* NULL: nothing holds it up */
void gangs_done(struct project *p);
