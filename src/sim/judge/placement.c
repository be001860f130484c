/* placement.c - checks each placement against simple rules, at the revision that committed it (1, 2, 3, 5, 10, 12).
 *
 * A commit batch guards everything that it relies on, so what was true at the decision is true at the commit.
 */
#include <inttypes.h>
#include <string.h>

#include "control/node/transition.h"
#include "sim/cluster/world.h"

static enum berth_on_lost lost_policy(const struct mirror_doc *work)
{
    const struct berth_workload *w = &work->work.workload;
    if (w->on_lost != BERTH_LOST_DEFAULT)
        return w->on_lost;
    return work->kind == KIND_APP && w->replicas > 1 ? BERTH_LOST_REPLACE : BERTH_LOST_FENCE;
}

bool prefers_two_copies(const struct mirror_doc *work)
{
    return lost_policy(work) == BERTH_LOST_REPLACE;
}

bool preferred_two_copies(const struct mirror *m, const char *workload, const struct mirror_doc *from)
{
    const struct berth_workload *d = &from->work.workload;
    bool app = mirror_find(m, KIND_APP, workload) != NULL;
    return d->on_lost == BERTH_LOST_REPLACE || (d->on_lost == BERTH_LOST_DEFAULT && app && d->replicas > 1);
}

static bool on_lost_node(const struct mirror *m, const struct berth_instance *i)
{
    const struct mirror_doc *node = mirror_find(m, KIND_NODE, i->node);
    return node && node->node.node.state == BERTH_NODE_LOST;
}

/* ---- 5: no pod twice -------------------------------------------------------------------------------------------- */

static bool awaits(const struct berth_instance *i, uint64_t id)
{
    for (size_t k = 0; k < i->waits_len; k++)
        if (i->waits[k] == id)
            return true;
    return false;
}

static void no_duplicate_verify(struct sim_world *w, const struct mirror_doc *now, const struct mirror_doc *work,
                                bool promoted)
{
    const struct berth_instance *i = &now->instance.instance;
    for (size_t k = 0; k < w->mirror.of[KIND_INSTANCE].len; k++) {
        const struct mirror_doc *s = w->mirror.of[KIND_INSTANCE].at[k];
        const struct berth_instance *o = &s->instance.instance;
        if (o->id == i->id || strcmp(o->workload, i->workload) != 0 || o->ordinal != i->ordinal)
            continue;
        if (o->state == BERTH_ENDED && work->kind == KIND_JOB) {
            world_breach(w, 13, "%s/%u is done (instance %" PRIu64 "), and is placed again as %" PRIu64, i->workload,
                         i->ordinal, o->id, i->id);
            return;
        }
        /* A place reserved while the other instance was lost is taken, even if the other one is back, because pods of a
         * service are interchangeable. */
        bool given_up = (o->state == BERTH_STOPPING || on_lost_node(&w->mirror, o) || promoted) &&
                        (prefers_two_copies(work) || i->replaces);
        if (o->state == BERTH_ENDED || o->id == i->replaces || o->replaces == i->id || awaits(i, o->id) || given_up)
            continue;
        world_breach(w, 5, "%s/%u is placed as %" PRIu64 " on %s while %" PRIu64 " on %s is %s", i->workload,
                     i->ordinal, i->id, i->node, o->id, o->node, berth_state_name(o->state));
    }
}

/* ---- 10: gangs -------------------------------------------------------------------------------------------------- */

static uint32_t tasks_in(const struct sim_world *w, const struct mirror_doc *work, bool done_too)
{
    uint32_t n = 0;
    for (size_t k = 0; k < w->mirror.of[KIND_INSTANCE].len; k++) {
        const struct berth_instance *i = &w->mirror.of[KIND_INSTANCE].at[k]->instance.instance;
        bool placed = i->state != BERTH_STOPPING && i->state != BERTH_ENDED;
        bool done = done_too && i->state == BERTH_ENDED && work->kind == KIND_JOB;
        if (strcmp(i->workload, work->id) == 0 && i->ordinal < work->work.workload.replicas && (placed || done))
            n++;
    }
    return n;
}

static bool owner_disabled(const struct mirror *m, const struct mirror_doc *work)
{
    const struct mirror_doc *owner = work->work.owner ? mirror_find(m, KIND_USER, work->work.owner) : NULL;
    return owner && owner->user.disabled;
}

bool mirror_should_run(const struct mirror *m, const struct mirror_doc *work)
{
    const struct work_doc *d = &work->work;
    return !d->hold && !d->stopped && !d->cancelled && !d->failed && !d->ended && !d->workload.suspended &&
           !owner_disabled(m, work);
}

static void gang_verify(struct sim_world *w, const char *gang)
{
    static const enum kind all[] = {KIND_APP, KIND_JOB, KIND_VM};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        for (size_t i = 0; i < w->mirror.of[all[k]].len; i++) {
            const struct mirror_doc *work = w->mirror.of[all[k]].at[i];
            const struct berth_workload *d = &work->work.workload;
            if (!d->gang || strcmp(d->gang, gang) != 0 || !mirror_should_run(&w->mirror, work))
                continue;
            uint32_t least = d->gang_min ? d->gang_min : d->replicas, there = tasks_in(w, work, true);
            if (there < least)
                world_breach(w, 10, "gang %s was placed, but %s has %u tasks of at least %u", gang, work->id, there,
                             least);
        }
}

/* ---- changes of instances by a transaction ---------------------------------------------------------------------- */

/* Pods of a service are interchangeable: an excess pod may replace another and be migrated, before or after it has
 * stopped. */
static bool takes_over(const struct sim_world *w, const struct berth_instance *i)
{
    for (size_t k = 0; k < i->waits_len; k++) {
        const struct mirror_doc *other = mirror_instance(&w->mirror, i->waits[k]);
        if (other && other->instance.instance.ordinal == i->ordinal &&
            strcmp(other->instance.instance.workload, i->workload) == 0)
            return true;
    }
    return i->replaces != 0;
}

static void new_instance_verify(struct sim_world *w, const struct transaction *t, const struct mirror_doc *now)
{
    const struct berth_instance *i = &now->instance.instance;
    const struct mirror_doc *work = mirror_work(&w->mirror, i->workload);
    char buf[200];
    int invariant;
    w->counts.placements++;
    if (strcmp(t->who, "berth") != 0 || strcmp(t->verb, "unit") != 0)
        world_breach(w, 12, "instance %" PRIu64 " was made by %s (%s), not by a plan", i->id, t->who, t->verb);
    if (!work) {
        world_breach(w, 12, "instance %" PRIu64 " is of %s, which is not there", i->id, i->workload);
        return;
    }
    if (now->instance.generation != work->work.meta.generation)
        world_breach(w, 12, "instance %" PRIu64 " is of generation %" PRIu64 " of %s, which is at %" PRIu64, i->id,
                     now->instance.generation, i->workload, work->work.meta.generation);
    if (work->work.hold || work->work.stopped || work->work.job.waits)
        world_breach(w, 17, "%s/%u is placed as %" PRIu64 ", but is held or waits for others", i->workload, i->ordinal,
                     i->id);
    if (work->work.cancelled || work->work.failed || work->work.ended)
        world_breach(w, 17, "%s/%u is placed as %" PRIu64 ", but it is over", i->workload, i->ordinal, i->id);
    if (i->ordinal >= work->work.workload.replicas && !takes_over(w, i))
        world_breach(w, 12, "%s/%u is placed as %" PRIu64 ", but nobody asked for it", i->workload, i->ordinal, i->id);
    int64_t now_ns = json_integer_value(json_object_get(json_object_get(t->record, "cycle"), "now"));
    if (work->work.workload.begin_ns > now_ns && !i->replaces)
        world_breach(w, 12, "%s/%u is placed as %" PRIu64 " before it may begin", i->workload, i->ordinal, i->id);
    const char *against = fit_refusal(&w->mirror, now, &invariant, buf, sizeof buf);
    if (against)
        world_breach(w, invariant, "%s/%u is placed as %" PRIu64 " on %s: %s", i->workload, i->ordinal, i->id, i->node,
                     against);
    no_duplicate_verify(w, now, work, false);
    if (work->work.workload.gang && *work->work.workload.gang)
        gang_verify(w, work->work.workload.gang);
}

static void promoted_verify(struct sim_world *w, const struct mirror_doc *old, const struct mirror_doc *now)
{
    const struct berth_instance *was = &old->instance.instance, *i = &now->instance.instance;
    const struct mirror_doc *work = mirror_work(&w->mirror, i->workload);
    char buf[200];
    int invariant;
    for (size_t k = 0; k < was->waits_len; k++) {
        const struct mirror_doc *other = mirror_instance(&w->mirror, was->waits[k]);
        if (other && state_holds(other->instance.instance.state))
            world_breach(w, 1, "%" PRIu64 " is promoted while %" PRIu64 ", which it waits for, is still there", i->id,
                         was->waits[k]);
    }
    const char *against = fit_refusal(&w->mirror, now, &invariant, buf, sizeof buf);
    if (against)
        world_breach(w, invariant, "%s/%u is promoted as %" PRIu64 " on %s: %s", i->workload, i->ordinal, i->id,
                     i->node, against);
    if (work)
        no_duplicate_verify(w, now, work, true);
}

/* Checks an instance deleted by a plan: a reservation, or an instance on a lost node that its agent has fenced. */
static void lost_instance_verify(struct sim_world *w, const struct transaction *t, const struct mirror_doc *old)
{
    const struct berth_instance *i = &old->instance.instance;
    const struct mirror_doc *node = mirror_find(&w->mirror, KIND_NODE, i->node),
                            *work = mirror_work(&w->mirror, i->workload);
    if (i->state == BERTH_RESERVED)
        return;
    if (!node || node->node.node.state != BERTH_NODE_LOST) {
        world_breach(w, 5, "a plan forgets %" PRIu64 " (%s on %s), whose node is not lost", i->id,
                     berth_state_name(i->state), i->node);
        return;
    }
    /* The plan saw an earlier state: nodes may have been lost since, and one may have been deleted. */
    uint64_t mirror_doc =
        (uint64_t)json_integer_value(json_object_get(json_object_get(t->record, "cycle"), "revision"));
    size_t lost = 0, nodes = w->mirror.of[KIND_NODE].len;
    for (size_t k = 0; k < nodes; k++) {
        const struct mirror_doc *n = w->mirror.of[KIND_NODE].at[k];
        lost += n->node.node.state == BERTH_NODE_LOST && n->revision <= mirror_doc;
    }
    if (lost > 2 && (lost - 1) * 3 > nodes)
        world_breach(w, 5, "%" PRIu64 " on %s is given away while %zu of %zu nodes are lost", i->id, i->node, lost,
                     nodes);
    int64_t now_ns = json_integer_value(json_object_get(json_object_get(t->record, "cycle"), "now"));
    int64_t fence_ns = work && work->work.workload.fence_ns ? work->work.workload.fence_ns : FENCE_NS_DEFAULT;
    if (work && lost_policy(work) == BERTH_LOST_FENCE && now_ns - node->node.node.since_ns < fence_ns)
        world_breach(w, 5, "%" PRIu64 " of %s on %s counts as fenced after %" PRId64 " s, %" PRId64 " are its fence",
                     i->id, i->workload, i->node, (now_ns - node->node.node.since_ns) / SECOND, fence_ns / SECOND);
}

void placements_verify(struct sim_world *w, const struct transaction *t)
{
    for (size_t k = 0; k < t->len; k++) {
        const struct mirror_doc *old = t->changes[k].old, *now = t->changes[k].now;
        if (t->changes[k].kind != KIND_INSTANCE)
            continue;
        if (!old && now)
            new_instance_verify(w, t, now);
        else if (old && now && old->instance.instance.state == BERTH_RESERVED &&
                 now->instance.instance.state == BERTH_ASSIGNED)
            promoted_verify(w, old, now);
        else if (old && !now && strcmp(t->verb, "unit") == 0)
            lost_instance_verify(w, t, old);
    }
}
