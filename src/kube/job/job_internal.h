/* job_internal.h - internals of kube/job/job_controller.h; included only by job_*.c. */
#pragma once

#include <jansson.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "kube/client/watch.h"
#include "kube/job/job.h"
#include "kube/job/job_controller.h"
#include "kube/job/job_pod.h"
#include "kube/job/job_write.h"
#include "kube/sched/provision.h"
#include "kube/sched/stuck_pods.h"

#define SECOND_NS INT64_C(1000000000)

/* An ephemeral claim of a pod. */
struct task_claim {
    char *uid;
    int64_t asked_ns; /* when the node was selected for it, by the wall clock; 0: not yet */
    bool known;       /* the claim has shown the selected node */
};

/* A pod as last seen; an ended one is kept after it is gone. */
struct task_pod {
    char *name, *uid, *why;
    uint32_t role, ordinal, attempt; /* role: index, or NONE_ROLE if the job has no role of that name */
    char *role_name;
    enum cache_task_phase phase;
    bool leaves;
    bool failed; /* failed by itself, not because it was deleted */
    VEC(struct task_claim) claims;
};
#define NONE_ROLE UINT32_MAX

struct job_task {
    uint32_t attempt; /* the next or the current attempt, from 1 */
    bool live, done;
};

struct job_role {
    char *id; /* workload id */
    struct job_task *tasks;
    uint32_t len;
    uint32_t live, done;
    uint32_t failures; /* consecutive failures to create a pod */
    bool shaped;       /* the role is in the cache */
    uint32_t stem;     /* index of the stem of its pod names */
    char *pod;         /* answer of the dry run, kept until all roles have one */
    size_t pod_len;
};

enum job_end { JOB_UNFINISHED, JOB_COMPLETE, JOB_FAILED };

struct job_entry {
    struct kube_jobs *k;
    char *key, *uid;    /* "namespace:name"; NULL until the object was seen */
    bool there;         /* the object was seen; false: only pods of the job */
    struct arena arena; /* of the spec */
    json_t *object;     /* the spec points into it */
    struct kube_job spec;
    bool known;         /* the spec was parsed at least once */
    int64_t generation; /* of the object as last seen, whether or not its spec is valid */
    bool leaves;
    char *refused;  /* why its spec or its pods are rejected; NULL: accepted */
    json_t *status; /* as last seen or written; NULL: none */

    VEC(struct task_pod) pods;
    struct map pods_by_name;
    VEC(struct job_role) roles; /* as in the spec */
    uint32_t attempt;           /* of a gang */
    uint32_t live, done, failed, restarts;
    bool progress_known; /* job_update_progress ran at least once */
    int64_t pause_ns;    /* no task is placed before this time */

    size_t dry_runs; /* dry runs in progress */
    uint32_t refusals;
    int64_t dry_run_ns;         /* next dry run, by the wall clock; 0: none is due */
    int64_t dry_run_generation; /* generation of the last or current dry run */
    bool first_dry_run;         /* counted in `firsts` */

    enum job_end end;
    char *end_reason, *end_text;
    bool over;   /* the end is written */
    char *waits; /* why it is pending; NULL: no reason reported */
    int64_t pending_reason_ns;

    bool served, serving;     /* its Service exists; is being created */
    bool makes_claims;        /* its pods have ephemeral claims */
    bool volumes_unreachable; /* a node of one of its tasks cannot reach one of its volumes */
    bool writing_status, deleting;
    int64_t write_not_before_ns; /* not before: the next write of the status */
    int64_t due_ns;              /* by the wall clock; 0: never */
    bool dirty;
};

/* A pod that the API server has created but the watch has not shown. */
struct created_pod {
    uint64_t instance;
    int64_t since_ns;
};

/* The common beginning of pod names, "namespace:job-role"; text NULL: a free slot. */
struct job_stem {
    char *text;
    struct job_entry *job;
};

/* A task whose claims are bound, or failed. */
struct provisioned_task {
    uint64_t instance;
    char *trouble; /* "": bound */
};

struct kube_jobs {
    struct kube_jobs_config c;
    struct kube_job_writer *writer;
    struct kube_watch *watch;
    struct kube_call *call; /* asks whether the API server serves jobs */
    struct loop_source *timer;
    int64_t timer_ns; /* when the timer fires, in the loop's clock */
    bool known;       /* all jobs are listed, or the API server has none */
    bool synced;      /* known, and all dry runs of the listed jobs were answered */
    size_t firsts;    /* number of dry runs that `synced` waits for */
    VEC(struct job_entry *) jobs;
    struct map by_key, by_uid; /* jobs whose object was seen; all jobs */
    VEC(struct job_stem) stems;
    VEC(uint32_t) stems_free;
    struct map stems_by_text;
    VEC(struct created_pod) made; /* until the watch shows them */
    struct stuck_pods stuck;      /* in the wall clock */
    struct map making,
        delete_after_create; /* instances whose pods are being created; of these, those to delete right after */
    VEC(uint64_t) queue;     /* instances in `making` that were not sent yet, from queue_first on */
    size_t queue_first, under_way;
    struct kube_provisioner *provisioner;
    VEC(uint64_t) awaiting; /* instances whose claims are being provisioned or bound */
    VEC(struct provisioned_task) served;
    struct str text;
    struct kube_jobs_stats stats;
};

/* job_cache.c */
struct job_entry *job_find(const struct kube_jobs *k, const char *key); /* NULL */
struct job_entry *job_by_uid(const struct kube_jobs *k, const char *uid);
/* Finds a job by the id of a role, "namespace:job:role". */
struct job_entry *job_of_role(struct kube_jobs *k, const char *role, uint32_t *ret_role);
void job_dirty(struct job_entry *j);
void job_text_set(char **text, const char *value);
void job_event(const struct job_entry *j, bool warning, const char *reason, const char *action, const char *note);
/* Has the cache request the claims of all roles again. */
void job_roles_changed(struct job_entry *j);
void job_roles_drop(struct job_entry *j);
/* The job's first dry runs were answered, or no longer count. */
void job_note_first_end(struct job_entry *j);
void job_free(struct job_entry *j);
static inline struct kube_job_ref job_ref(const struct job_entry *j)
{
    return (struct kube_job_ref){j->spec.namespace, j->spec.name, j->uid};
}
static inline bool job_is_unfinished(const struct job_entry *j)
{
    return j->there && j->known && !j->leaves && !j->over && j->end == JOB_UNFINISHED;
}

/* job_controller.c */
#define JOB_UNSEEN_NS (60 * SECOND_NS) /* a created pod that the watch has not shown by then is gone */
/* Sets the timer of all jobs to this wall-clock time, if earlier. */
void jobs_due(struct kube_jobs *k, int64_t wall_ns);
/* Has the job processed again at this wall-clock time; the earliest time counts. */
void job_due(struct job_entry *j, int64_t wall_ns);
void job_ends(struct job_entry *j, enum job_end end, const char *reason, const char *text);

/* job_progress.c: recomputes the state of the job from its pods; may end or restart the job. */
void job_update_progress(struct job_entry *j, int64_t now_ns);
/* The same for a process that only explains: starts, ends and deletes nothing. */
void job_recompute_progress(struct job_entry *j);
/* Reports whether an elastic role starts no further tasks because the others have completed the work. */
bool job_role_needs_no_more(const struct job_entry *j, size_t role);

/* job_act.c */
void job_dry_run_pods(struct job_entry *j);
void job_create_service(struct job_entry *j);
void job_pod_delete(struct kube_jobs *k, const struct kube_job_ref *job, const char *pod, const char *uid,
                    uint64_t instance);
void job_write_status(struct job_entry *j, int64_t now_ns);
void job_expire(struct job_entry *j, int64_t now_ns); /* deletes the job when its time to live after the end is over */

/* Creates the pod of an assumed task. */
void job_create_pod(struct kube_jobs *k, uint64_t instance);
/* Records that the pod could not be created: the whole job pauses and reports why. */
void job_create_failed(struct kube_jobs *k, const struct cache_pod_view *pod, const char *text);

/* job_name.c */
void job_stem_add(struct job_entry *j, struct job_role *role, const char *name);
void job_stem_drop(struct job_entry *j, const struct job_role *role);
void job_stems_done(struct kube_jobs *k);
/* Reports whether another job produces the same pod names, and appends why. O(tasks) with retries. */
bool job_name_taken(const struct job_entry *j, struct str *why);

/* job_volume.c */
/* Like job_create_pod, after the task's claims are bound. */
void job_provision_task(struct kube_jobs *k, uint64_t instance);
bool job_makes_claims(const struct kube_job *spec);
/* Frees what is known of the pod's ephemeral claims. */
void job_claims_forget(struct task_pod *pod);
void job_volumes_process(struct kube_jobs *k, int64_t now_ns);
void job_volumes_begin(struct kube_jobs *k);
void job_volumes_done(struct kube_jobs *k);

/* job_status.c */
json_t *job_status(const struct job_entry *j, int64_t now_ns);
/* "worker:0-3,7;master:0": the completed tasks, so that they are known after their pods are gone. */
void job_indexes_add(const struct job_entry *j, struct str *to);
void job_indexes_each(const char *text, void (*each)(void *ctx, const char *role, uint32_t ordinal), void *ctx);
/* Reports whether this condition of the status is true. */
bool job_condition(const json_t *status, const char *type);
