/* liveness.c - checks that no pod is forgotten (17), and that the cluster settles when faults stop (18).
 *
 * A pod that should run has an instance, or the last plan gives a reason. Between a change and the next plan neither
 * may be true; a pod for which that lasts is in limbo.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "control/sched/scheduler.h"
#include "sim/cluster/world.h"

#define LOOK_NS (5 * SECOND)
#define LIMBO_NS (90 * SECOND)

struct missing {
    char workload[ID_OWNED_MAX + 1];
    uint32_t ordinal;
    int64_t since_ns;
    uint64_t life;
    bool still;
};

struct unexplained {
    VEC(struct missing) at;
    int64_t next_ns;
};

struct unexplained *unexplained_new(void)
{
    return mem_zalloc(sizeof(struct unexplained));
}

void unexplained_free(struct unexplained *l)
{
    if (l)
        vec_done(&l->at);
    mem_free(l);
}

static bool has_instance(const struct mirror *m, const char *workload, uint32_t ordinal)
{
    for (size_t k = 0; k < m->of[KIND_INSTANCE].len; k++) {
        const struct berth_instance *i = &m->of[KIND_INSTANCE].at[k]->instance.instance;
        if (i->ordinal == ordinal && strcmp(i->workload, workload) == 0)
            return true;
    }
    return false;
}

static uint32_t instances_of(const struct mirror *m, const char *workload)
{
    uint32_t n = 0;
    for (size_t k = 0; k < m->of[KIND_INSTANCE].len; k++) {
        const struct berth_instance *i = &m->of[KIND_INSTANCE].at[k]->instance.instance;
        n += i->state != BERTH_ENDED && strcmp(i->workload, workload) == 0;
    }
    return n;
}

static bool is_pending(struct sim_world *w, const struct mirror_doc *work, uint32_t ordinal)
{
    struct berth_pending p;
    if (!scheduler_pending(control_scheduler(w->daemon.control), work->id, &p))
        return false;
    if (work->kind != KIND_JOB)
        return p.ordinals_len >= work->work.workload.replicas - ordinal;
    for (size_t i = 0; i < p.ordinals_len; i++)
        if (p.ordinals[i] == ordinal)
            return true;
    return false;
}

static void breach(struct sim_world *w, const struct missing *m)
{
    struct scheduler *scheduler = control_scheduler(w->daemon.control);
    struct berth_workload_view mirror_doc = {.id = ""};
    struct berth_pending p = {0};
    (void)berth_workload_find(state_cluster(control_state(w->daemon.control)), m->workload, &mirror_doc);
    (void)scheduler_pending(scheduler, m->workload, &p);
    world_breach(w, 17,
                 "%s/%u is neither held, nor placed, nor waiting for a reason, for %" PRId64
                 " s; the last plan was made at revision %" PRIu64
                 " and left %zu of its pods; to the core it has %u pods and is%s suspended",
                 m->workload, m->ordinal, (w->now_ns - m->since_ns) / SECOND, scheduler_status(scheduler).revision,
                 p.ordinals_len, mirror_doc.replicas, mirror_doc.suspended ? "" : " not");
}

static void note(struct sim_world *w, const char *workload, uint32_t ordinal)
{
    struct unexplained *l = w->unexplained;
    for (size_t i = 0; i < l->at.len; i++) {
        struct missing *m = &l->at.at[i];
        if (m->ordinal != ordinal || m->life != w->daemon.life || strcmp(m->workload, workload) != 0)
            continue;
        m->still = true;
        if (w->now_ns - m->since_ns > LIMBO_NS)
            breach(w, m);
        return;
    }
    struct missing m = {.ordinal = ordinal, .since_ns = w->now_ns, .life = w->daemon.life, .still = true};
    (void)snprintf(m.workload, sizeof m.workload, "%s", workload);
    vec_push(&l->at, m);
}

/* Returns whether a workload waits before its next attempt after failures, or begins later, by a clock that may
 * jump. */
static bool is_paused(const struct mirror *m, const struct mirror_doc *work)
{
    char id[OBJECT_KEY_MAX];
    if (work->work.workload.begin_ns)
        return true;
    (void)snprintf(id, sizeof id, "since/%s", work->id);
    return mirror_find(m, KIND_FACT, id) != NULL;
}

/* Calls `tell` for pods without an instance. Pods of a service are interchangeable, so only their number counts; `tell`
 * gets the first missing one. */
static void each_missing(struct sim_world *w,
                         void (*tell)(struct sim_world *w, const struct mirror_doc *work, uint32_t ordinal))
{
    for (unsigned k = KIND_APP; k <= KIND_VM; k++)
        for (size_t i = 0; i < w->mirror.of[k].len; i++) {
            const struct mirror_doc *work = w->mirror.of[k].at[i];
            uint32_t replicas = work->work.workload.replicas;
            if (!mirror_should_run(&w->mirror, work) || is_paused(&w->mirror, work))
                continue;
            uint32_t there = k == KIND_JOB ? 0 : instances_of(&w->mirror, work->id);
            if (k != KIND_JOB && there < replicas)
                tell(w, work, there);
            for (uint32_t o = 0; k == KIND_JOB && o < replicas; o++)
                if (!has_instance(&w->mirror, work->id, o))
                    tell(w, work, o);
        }
}

static void unexplained_note(struct sim_world *w, const struct mirror_doc *work, uint32_t ordinal)
{
    if (!is_pending(w, work, ordinal))
        note(w, work->id, ordinal);
}

void unexplained_check(struct sim_world *w)
{
    struct unexplained *l = w->unexplained;
    if (w->now_ns < l->next_ns || !w->daemon.control)
        return;
    l->next_ns = w->now_ns + LOOK_NS;
    if (faults_store_fails(w)) { /* nothing can be written, so nothing can be placed */
        l->at.len = 0;
        return;
    }
    for (size_t i = 0; i < l->at.len; i++)
        l->at.at[i].still = false;
    each_missing(w, unexplained_note);
    size_t kept = 0;
    for (size_t i = 0; i < l->at.len; i++)
        if (l->at.at[i].still)
            l->at.at[kept++] = l->at.at[i];
    l->at.len = kept;
    w->counts.checks++;
}

/* ---- settling --------------------------------------------------------------------------------------------------- */

/* Other workloads may have anti-affinity to the label. */
static bool has_label(const struct berth_workload *w, const char *key)
{
    for (size_t i = 0; i < w->labels_len; i++)
        if (strcmp(w->labels[i].key, key) == 0)
            return true;
    return false;
}

/* Checks work conservation: a waiting pod fits on no node. Gangs and pods with topology constraints are excluded,
 * because they have further requirements. */
static void waiting_pod_check(struct sim_world *w, const struct mirror_doc *work, uint32_t ordinal)
{
    const struct berth_workload *d = &work->work.workload;
    if (d->gang || d->shape.spread_len || d->shape.near_len || has_label(d, "app") || !quota_has_room(&w->mirror, work))
        return;
    for (size_t i = 0; i < w->mirror.of[KIND_NODE].len && !w->unsettled.len; i++) {
        const struct mirror_doc *node = w->mirror.of[KIND_NODE].at[i];
        if (fit_has_room(&w->mirror, node, work))
            str_addf(&w->unsettled, "%s/%u waits although %s would take it", work->id, ordinal, node->id);
    }
}

static void instance_settled(struct sim_world *w, const struct mirror_doc *s)
{
    const struct berth_instance *i = &s->instance.instance;
    const struct mirror_doc *node = mirror_find(&w->mirror, KIND_NODE, i->node),
                            *work = mirror_work(&w->mirror, i->workload);
    const char *why = NULL;
    if (i->state == BERTH_ENDED || !node || node->node.node.state == BERTH_NODE_LOST || w->unsettled.len)
        return;
    if (!work)
        why = ", which is gone,";
    else if (!mirror_should_run(&w->mirror, work))
        why = ", which is held,";
    else if (i->state == BERTH_STOPPING || i->state == BERTH_ASSIGNED || i->state == BERTH_STARTING)
        why = "";
    if (why)
        str_addf(&w->unsettled, "instance %s of %s%s is still %s on %s", s->id, i->workload, why,
                 berth_state_name(i->state), i->node);
}

/* Checks that everything of a job has ended, and that its document then says so. */
static void job_settled(struct sim_world *w, const struct mirror_doc *job)
{
    uint32_t done = 0;
    for (size_t i = 0; i < w->mirror.of[KIND_INSTANCE].len; i++) {
        const struct berth_instance *x = &w->mirror.of[KIND_INSTANCE].at[i]->instance.instance;
        const struct mirror_doc *node = mirror_find(&w->mirror, KIND_NODE, x->node);
        if (strcmp(x->workload, job->id) != 0 || (node && node->node.node.state == BERTH_NODE_LOST))
            continue;
        if (x->state != BERTH_ENDED && x->state != BERTH_RESERVED && !w->unsettled.len)
            str_addf(&w->unsettled, "task %u of job %s still runs", x->ordinal, job->id);
        done += x->state == BERTH_ENDED;
    }
    if (!w->unsettled.len && !job->work.job.finished_ns && done >= job->work.workload.replicas && done)
        str_addf(&w->unsettled, "all tasks of job %s are done, and it is not over", job->id);
}

bool has_settled(struct sim_world *w)
{
    str_clear(&w->unsettled);
    w->counts.checks++;
    if (!w->daemon.control)
        str_add(&w->unsettled, "the daemon is down");
    for (size_t i = 0; i < w->mirror.of[KIND_INSTANCE].len; i++)
        instance_settled(w, w->mirror.of[KIND_INSTANCE].at[i]);
    for (size_t i = 0; i < w->mirror.of[KIND_JOB].len && !w->unsettled.len; i++)
        job_settled(w, w->mirror.of[KIND_JOB].at[i]);
    if (!w->unsettled.len)
        each_missing(w, waiting_pod_check);
    if (!w->unsettled.len)
        instances_settled(w);
    return w->unsettled.len == 0;
}
