/* placement_budget.c - counts the pods of each account that are placed and not yet starting. */
#include "core/queue/placement_budget.h"

void placement_budget_begin(struct berth_plan *p)
{
    const struct berth_snapshot *s = p->s;
    if (p->policy.starting == 0)
        return;
    p->starting = ARENA_ARRAY(&p->arena, int64_t, s->quotas_len + 1);
    for (uint32_t q = 0; q < s->quotas_len; q++)
        for (size_t i = 0; i < s->quotas[q].books.len; i++)
            if (s->quotas[q].books.at[i].resource == QUOTA_ASSIGNED)
                p->starting[q] = s->quotas[q].books.at[i].active;
}

void placement_budget_update(struct berth_plan *p)
{
    size_t len = p->c.acts.len;
    for (size_t i = p->starting ? p->starting_seen : len; i < len; i++) {
        const struct plan_act *a = &p->c.acts.at[i];
        const struct instance *was = a->instance == NONE ? NULL : snapshot_instance(p->s, a->instance);
        const struct claim *claim = was ? snapshot_claim(p->s, was->workload.v) : NULL;
        bool goes = a->op == BERTH_STOP || a->op == BERTH_LOSE;
        if (goes && claim && claim->quotas_len && was->state == BERTH_ASSIGNED && !was->replaces)
            p->starting[claim->quotas[0]]--;
    }
    p->starting_seen = len;
}

static bool is_free(const struct berth_plan *p, const struct demand *w)
{
    return !p->starting || p->starting_gang || w->account == NONE || w->replaces != NONE;
}

uint32_t placement_budget_room(const struct berth_plan *p, const struct demand *w, uint32_t most)
{
    if (is_free(p, w))
        return most;
    int64_t room = (int64_t)p->policy.starting - p->starting[w->account];
    return room <= 0 ? 0 : room < most ? (uint32_t)room : most;
}

bool placement_budget_gang_fits(const struct berth_plan *p, const struct demand *w, uint32_t pods)
{
    return is_free(p, w) || p->starting[w->account] <= 0 || placement_budget_room(p, w, pods) == pods;
}

void placement_budget_count(struct berth_plan *p, const struct demand *w, int sign)
{
    if (p->starting && w->account != NONE && w->replaces == NONE)
        p->starting[w->account] += sign;
}
