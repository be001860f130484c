/* job_parts.h - the inside of kube/job/job_life.h; for job_*.c alone. */
#pragma once

#include <jansson.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "kube/client/watch.h"
#include "kube/job/job.h"
#include "kube/job/job_life.h"
#include "kube/job/job_pod.h"
#include "kube/job/job_write.h"
#include "kube/sched/provision.h"
#include "kube/sched/stuck_pods.h"

#define SECOND_NS INT64_C(1000000000)

/* A claim that is made for a pod itself. */
struct seen_claim {
    char *uid;
    int64_t asked_ns; /* its provisioner was told the node, by the wall clock; 0: it was not */
    bool known;       /* and the claim has shown that it knows it */
};

/* A pod as it was last seen; one that has ended is remembered when it is gone. */
struct seen_pod {
    char *name, *uid, *why;
    uint32_t role, ordinal, attempt; /* role: index, NONE_ROLE where the job has none of that name */
    char *role_name;
    enum project_phase phase;
    bool leaves;
    bool failed; /* by itself, not because it was deleted */
    VEC(struct seen_claim) claims;
};
#define NONE_ROLE UINT32_MAX

struct job_task {
    uint32_t attempt; /* the next or the present one, from 1 */
    bool live, done;
};

struct job_role {
    char *id; /* of its workload */
    struct job_task *tasks;
    uint32_t len;
    uint32_t live, done;
    uint32_t failures; /* pods in a row that could not be made */
    bool shaped;       /* it is in the projection */
    uint32_t stem;     /* index: of the names of its pods */
    char *pod;         /* as the API server would make it, until all roles are known */
    size_t pod_len;
};

enum job_end { JOB_GOES_ON, JOB_COMPLETE, JOB_FAILED };

struct live_job {
    struct kube_jobs *k;
    char *key, *uid;    /* "namespace:name"; NULL until the object was seen */
    bool there;         /* it was; false: only pods of it */
    struct arena arena; /* of the spec */
    json_t *object;     /* that the spec points into */
    struct kube_job spec;
    bool known;         /* the spec was read at least once */
    int64_t generation; /* of the object as last seen, whatever its spec */
    bool leaves;
    char *refused;  /* why its spec, or a pod of it, is not accepted; NULL: it is */
    json_t *status; /* as last seen or written; NULL: none */

    VEC(struct seen_pod) pods;
    struct map pods_by_name;
    VEC(struct job_role) roles; /* as in the spec */
    uint32_t attempt;           /* of a gang */
    uint32_t live, done, failed, restarts;
    bool judged;      /* at least once */
    int64_t pause_ns; /* nothing is placed before */

    size_t trials; /* under way */
    uint32_t refusals;
    int64_t trial_ns; /* the next one, by the wall clock; 0: none is due */
    int64_t trial_of; /* the generation that was tried, or is */
    bool first_trial; /* others wait for it */

    enum job_end end;
    char *end_reason, *end_text;
    bool over;   /* the end is written */
    char *waits; /* why it waits; NULL: nobody said */
    int64_t waits_ns;

    bool served, serving; /* it has its Service; that is being made */
    bool makes_claims;    /* its pods have claims of their own */
    bool scattered;       /* a volume of it turned out to be out of reach of some of its tasks */
    bool telling, deleting;
    int64_t tell_ns; /* the next try to write */
    int64_t due_ns;  /* by the wall clock; 0: never */
    bool dirty;
};

/* Made, the API server says, and not seen yet. */
struct made_pod {
    uint64_t instance;
    int64_t since_ns;
};

/* What names of pods begin with, "namespace:job-role"; text NULL: a free place. */
struct job_stem {
    char *text;
    struct live_job *job;
};

/* Its claims have their volumes, or will not get them. */
struct task_served {
    uint64_t instance;
    char *trouble; /* "": they have */
};

struct kube_jobs {
    struct kube_jobs_config c;
    struct kube_job_writer *writer;
    struct kube_watch *watch;
    struct kube_call *call; /* looks whether the API server has them */
    struct loop_source *timer;
    int64_t timer_ns; /* when it is set to, by the loop's clock */
    bool known;       /* all that is there, or that there is none */
    bool synced;      /* known, and all trials were answered that were begun before */
    size_t firsts;    /* trials that others wait for */
    VEC(struct live_job *) jobs;
    struct map by_key, by_uid; /* those that are there; all */
    VEC(struct job_stem) stems;
    VEC(uint32_t) stems_free;
    struct map stems_by_text;
    VEC(struct made_pod) made; /* until they are seen */
    struct stuck stuck;        /* by the wall clock */
    struct map making, doomed; /* instances whose pods are being made; of these: are to be deleted at once */
    VEC(uint64_t) queue;       /* of those that are being made: not sent yet, the first from queue_first on */
    size_t queue_first, under_way;
    struct kube_provisioner *provisioner;
    VEC(uint64_t) awaiting; /* instances whose claims are being served */
    VEC(struct task_served) served;
    struct str text;
    struct kube_jobs_stats stats;
};

/* job_cache.c */
struct live_job *job_find(const struct kube_jobs *k, const char *key); /* NULL */
struct live_job *job_by_uid(const struct kube_jobs *k, const char *uid);
/* By the id of a role, "namespace:job:role". */
struct live_job *job_of_role(struct kube_jobs *k, const char *role, uint32_t *ret_role);
void job_dirty(struct live_job *j);
void job_text_set(char **text, const char *value);
void job_event(const struct live_job *j, bool warning, const char *reason, const char *action, const char *note);
/* The role is told to the projection again. */
void job_roles_changed(struct live_job *j);
void job_roles_drop(struct live_job *j);
/* The trials of a job were answered, or nobody waits for them any more. */
void job_first_over(struct live_job *j);
void job_free(struct live_job *j);
static inline struct kube_job_ref job_ref(const struct live_job *j)
{
    return (struct kube_job_ref){j->spec.namespace, j->spec.name, j->uid};
}
static inline bool job_goes_on(const struct live_job *j)
{
    return j->there && j->known && !j->leaves && !j->over && j->end == JOB_GOES_ON;
}

/* job_life.c */
#define JOB_UNSEEN_NS (60 * SECOND_NS) /* after it was made, a pod that nobody saw is gone */
/* All of them are looked at again at this moment of the wall clock. */
void jobs_due(struct kube_jobs *k, int64_t wall_ns);
/* It is looked at again at this moment of the wall clock; the first of several counts. */
void job_due(struct live_job *j, int64_t wall_ns);
void job_ends(struct live_job *j, enum job_end end, const char *reason, const char *text);

/* job_progress.c: how it stands, from its pods; it may end by it, or begin anew. */
void job_judge(struct live_job *j, int64_t now_ns);
/* The same for whoever only looks: nothing is begun, ended or deleted. */
void job_reckon(struct live_job *j);
/* Of an elastic role: is there nothing more to begin, because others have done the work? */
bool job_role_closed(const struct live_job *j, size_t role);

/* job_act.c */
void job_try(struct live_job *j);
void job_serve(struct live_job *j);
void job_pod_delete(struct kube_jobs *k, const struct kube_job_ref *job, const char *pod, const char *uid,
                    uint64_t instance);
void job_tell(struct live_job *j, int64_t now_ns);
void job_expire(struct live_job *j, int64_t now_ns); /* some time after its end it is deleted */

/* The pod of an assumed task is made. */
void job_make(struct kube_jobs *k, uint64_t instance);
/* It could not be: all of the job pauses, and says so. */
void job_make_failed(struct kube_jobs *k, const struct project_pod *pod, const char *text);

/* job_name.c */
void job_stem_add(struct live_job *j, struct job_role *role, const char *name);
void job_stem_drop(struct live_job *j, const struct job_role *role);
void job_stems_done(struct kube_jobs *k);
/* Has another job pods of the same names? Then why says so. O(tasks), where it has retries. */
bool job_name_taken(const struct live_job *j, struct str *why);

/* job_volume.c */
/* Like job_make, after its claims have their volumes. */
void job_begin(struct kube_jobs *k, uint64_t instance);
bool job_makes_claims(const struct kube_job *spec);
/* What is known of claims that were made for the pod. */
void job_claims_forget(struct seen_pod *pod);
void job_volumes_look(struct kube_jobs *k, int64_t now_ns);
void job_volumes_begin(struct kube_jobs *k);
void job_volumes_done(struct kube_jobs *k);

/* job_status.c */
json_t *job_status(const struct live_job *j, int64_t now_ns);
/* "worker:0-3,7;master:0": the tasks that have ended well, so that it is known when their pods are gone. */
void job_indexes_add(const struct live_job *j, struct str *to);
void job_indexes_each(const char *text, void (*each)(void *ctx, const char *role, uint32_t ordinal), void *ctx);
/* Is this condition of the status true? */
bool job_condition(const json_t *status, const char *type);
