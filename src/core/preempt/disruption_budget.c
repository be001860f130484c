/* disruption_budget.c - disruption budgets of a cluster, and how a plan uses them up. */
#include "core/preempt/disruption_budget.h"

#include <errno.h>

/* ---- in the cluster --------------------------------------------------------------------------------------------- */

static size_t budget_find(const struct berth_cluster *c, const char *id)
{
    sym s = intern_find(&c->names, id ? id : "");
    size_t i = 0;
    while (i < c->budgets.len && c->budgets.at[i].id != s)
        i++;
    return i;
}

int berth_budget_put(struct berth_cluster *c, const struct berth_budget *from, struct berth_err *err)
{
    int rc = describe_budget(from, err);
    if (rc)
        return rc;
    size_t at = budget_find(c, from->id);
    struct disruption_budget b = {intern_put(&c->names, from->id), budget_selector_put(c, &from->select),
                                  (int32_t)from->allowed};
    if (at == c->budgets.len)
        vec_push(&c->budgets, b);
    else
        c->budgets.at[at] = b;
    c->revision++;
    return 0;
}

int berth_budget_remove(struct berth_cluster *c, const char *id, struct berth_err *err)
{
    size_t at = budget_find(c, id);
    if (at == c->budgets.len)
        return err_set(err, ENOENT, "budget \"%s\" does not exist", id ? id : "");
    c->budgets.at[at] = c->budgets.at[--c->budgets.len];
    c->revision++;
    return 0;
}

void berth_budget_spend(struct berth_cluster *c, const char *workload)
{
    uint32_t slot = cluster_workload_find(c, workload);
    if (slot == NONE || cluster_workload(c, slot)->gone)
        return;
    const struct label_set *set = pages_at(&c->label_sets, cluster_workload(c, slot)->label_set);
    for (size_t i = 0; i < c->budgets.len; i++) {
        struct disruption_budget *b = &c->budgets.at[i];
        const struct pool_entry *topology_constraint =
            pages_at(&c->shapes.topology_constraints.items, b->topology_constraint.v);
        if (b->allowed &&
            term_holds(&c->names, &((const struct topology_constraint *)topology_constraint->object)->select,
                       set->labels)) {
            b->allowed--;
            c->revision++;
        }
    }
}

/* ---- in a plan -------------------------------------------------------------------------------------------------- */

/* A budget that a label set counts against. */
struct budget_link {
    uint32_t budget, next; /* index of the next link of the label set, or NONE */
};

/* A preemption that was counted. */
struct counted_preemption {
    uint32_t workload;
    size_t act;
};

struct budgets {
    int32_t *left;   /* [budget] */
    uint32_t *first; /* [label set]: index into links, or NONE */
    VEC(struct budget_link) links;
    VEC(struct counted_preemption) spent;
    size_t acts; /* number of actions that were counted */
    uint32_t turn;
};

static void link_set(const struct berth_plan *p, struct budgets *b, uint32_t budget, uint32_t set)
{
    const struct label_set *s = pages_at(&p->s->label_sets, set);
    const struct topology_constraint *topology_constraint =
        snapshot_topology_constraint(p->s, p->s->budgets[budget].topology_constraint);
    if (s->first == NONE || !term_holds(&p->s->names, &topology_constraint->select, s->labels))
        return;
    struct budget_link link = {budget, b->first[set]};
    b->first[set] = (uint32_t)b->links.len;
    vec_push(&b->links, link);
}

/* Links the budget to the label sets that it selects. */
static void link_budget(const struct berth_plan *p, struct budgets *b, uint32_t budget)
{
    const struct topology_constraint *topology_constraint =
        snapshot_topology_constraint(p->s, p->s->budgets[budget].topology_constraint);
    for (uint32_t set = 0; topology_constraint->anchors_len == 0 && set < p->s->label_sets.len; set++)
        link_set(p, b, budget, set);
    for (uint32_t a = 0; a < topology_constraint->anchors_len; a++) {
        const struct label_pair *pair = pages_at(&p->s->pairs, topology_constraint->anchors[a]);
        const struct label_posting *at;
        for (uint32_t x = pair->first; x != NONE; x = at->next) {
            at = pages_at(&p->s->postings, x);
            link_set(p, b, budget, at->set);
        }
    }
}

struct budgets *budgets_new(struct berth_plan *p)
{
    if (p->s->budgets_len == 0)
        return NULL;
    struct budgets *b = ARENA_NEW(&p->arena, struct budgets);
    b->left = ARENA_ARRAY(&p->arena, int32_t, p->s->budgets_len);
    b->first = ARENA_ARRAY(&p->arena, uint32_t, p->s->label_sets.len + 1);
    for (uint32_t i = 0; i < p->s->label_sets.len; i++)
        b->first[i] = NONE;
    for (uint32_t i = 0; i < p->s->budgets_len; i++) {
        b->left[i] = p->s->budgets[i].allowed;
        link_budget(p, b, i);
    }
    return b;
}

void budgets_done(struct budgets *b)
{
    if (!b)
        return;
    vec_done(&b->links);
    vec_done(&b->spent);
}

#define BUDGETS_EACH(at, p, b, workload)                                                                               \
    for (uint32_t at = (b)->first[snapshot_workload((p)->s, workload)->label_set]; at != NONE;                         \
         at = (b)->links.at[at].next)

/* Uses one disruption of each budget of the workload; returns false if some budget falls below zero. */
static bool use_disruption(const struct berth_plan *p, struct budgets *b, uint32_t workload)
{
    bool had = true;
    BUDGETS_EACH (at, p, b, workload)
        had &= --b->left[b->links.at[at].budget] >= 0;
    return had;
}

static void return_disruption(const struct berth_plan *p, struct budgets *b, uint32_t workload)
{
    BUDGETS_EACH (at, p, b, workload)
        b->left[b->links.at[at].budget]++;
}

/* A reserved instance is no running pod yet and does not count. */
static bool counts(const struct berth_plan *p, uint32_t slot)
{
    return snapshot_instance(p->s, slot)->state != BERTH_RESERVED;
}

/* Counts the preemptions since the last call. */
static void catch_up(struct berth_plan *p, struct budgets *b)
{
    for (; b->acts < p->c.acts.len; b->acts++) {
        const struct plan_act *a = &p->c.acts.at[b->acts];
        if (a->op != BERTH_STOP || a->cause != BERTH_CAUSE_PREEMPTED || !counts(p, a->instance))
            continue;
        struct counted_preemption one = {a->workload, b->acts};
        vec_push(&b->spent, one);
        (void)use_disruption(p, b, a->workload);
    }
}

void budgets_rewind(struct berth_plan *p, size_t acts)
{
    struct budgets *b = p->victims->budgets;
    if (!b || b->acts <= acts)
        return;
    for (; b->spent.len && b->spent.at[b->spent.len - 1].act >= acts; b->spent.len--) {
        return_disruption(p, b, b->spent.at[b->spent.len - 1].workload);
        b->turn++;
    }
    b->acts = acts;
}

uint32_t budgets_exceeded_by(struct berth_plan *p)
{
    struct budgets *b = p->victims->budgets;
    int32_t over = 0;
    if (!b)
        return 0;
    catch_up(p, b);
    for (uint32_t i = 0; i < p->s->budgets_len; i++)
        over -= b->left[i] < 0 ? b->left[i] : 0;
    return (uint32_t)over;
}

uint32_t budgets_generation(const struct berth_plan *p)
{
    return p->victims->budgets ? p->victims->budgets->turn : 0;
}

/* Uses the disruptions for all that would stop with the group; returns the number of pods that break a budget. */
static uint32_t use_group_disruptions(const struct berth_plan *p, struct budgets *b, const struct victim_group *x)
{
    uint32_t broken = 0;
    for (uint32_t m = 0; m < x->len; m++) {
        uint32_t slot = p->victims->members[x->first + m];
        if (victim_stands(p, slot) && counts(p, slot))
            broken += !use_disruption(p, b, snapshot_instance(p->s, slot)->workload.v);
    }
    return broken;
}

static void return_group_disruptions(const struct berth_plan *p, struct budgets *b, const struct victim_group *x)
{
    for (uint32_t m = 0; m < x->len; m++) {
        uint32_t slot = p->victims->members[x->first + m];
        if (victim_stands(p, slot) && counts(p, slot))
            return_disruption(p, b, snapshot_instance(p->s, slot)->workload.v);
    }
}

uint32_t budgets_order(struct berth_plan *p, uint32_t *victim_groups, uint32_t len, bool may_break)
{
    struct budgets *b = p->victims->budgets;
    const struct victim_group *all = p->victims->victim_groups;
    if (!b)
        return len;
    catch_up(p, b);
    struct arena_mark mark = arena_mark(&p->scratch);
    uint32_t *behind = ARENA_ARRAY(&p->scratch, uint32_t, len + 1), behind_len = 0, left = 0;
    for (uint32_t n = 0; n < len; n++) {
        if (use_group_disruptions(p, b, &all[victim_groups[n]]) == 0) {
            victim_groups[left++] = victim_groups[n];
            continue;
        }
        return_group_disruptions(p, b, &all[victim_groups[n]]);
        behind[behind_len++] = victim_groups[n];
    }
    for (uint32_t n = 0; n < left; n++)
        return_group_disruptions(p, b, &all[victim_groups[n]]);
    for (uint32_t n = 0; n < behind_len && may_break; n++)
        victim_groups[left++] = behind[n];
    arena_rewind(&p->scratch, mark);
    return left;
}

uint32_t budgets_broken_by(struct berth_plan *p, const uint32_t *victim_groups, uint32_t len)
{
    struct budgets *b = p->victims->budgets;
    uint32_t broken = 0;
    if (!b)
        return 0;
    catch_up(p, b);
    for (uint32_t n = 0; n < len; n++)
        broken += use_group_disruptions(p, b, &p->victims->victim_groups[victim_groups[n]]);
    for (uint32_t n = 0; n < len; n++)
        return_group_disruptions(p, b, &p->victims->victim_groups[victim_groups[n]]);
    return broken;
}
