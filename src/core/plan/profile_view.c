/* profile_view.c - switches a cycle from one profile's view to another's. */
#include "core/plan/profile_view.h"

#include <string.h>

#include "core/gpu/gpu_cost.h"

static void view_save(const struct cycle *c, struct profile_view *v)
{
    v->profile = c->profile;
    v->key = c->key;
    for (uint32_t level = 1; level <= c->l->levels; level++)
        v->bounds[level] = c->bounds[level].key;
    v->gpu_prices = c->gpu_prices;
    v->gpu_cost = c->gpu_cost;
    memcpy(v->largest, c->largest, sizeof v->largest);
}

static void view_restore(struct cycle *c, const struct profile_view *v)
{
    c->profile = v->profile;
    c->key = v->key;
    for (uint32_t level = 1; level <= c->l->levels; level++)
        c->bounds[level].key = v->bounds[level];
    c->gpu_prices = v->gpu_prices;
    c->gpu_cost = v->gpu_cost;
    memcpy(c->largest, v->largest, sizeof c->largest);
}

/* Returns whether any workload, present or past, names the profile. */
static bool is_named(const struct berth_snapshot *s, const char *name)
{
    for (uint32_t i = 0; i < s->preference_sets.len; i++) {
        sym profile = snapshot_preferences(s, (struct preferences_ix){i})->profile;
        if (profile && strcmp(snapshot_text(s, profile), name) == 0)
            return true;
    }
    return false;
}

void views_begin(struct cycle *c, const struct berth_profile *others, const struct profile *resolved, size_t len)
{
    uint32_t filters = c->profile.filters;
    for (size_t i = 0; i < len; i++) {
        if (!is_named(c->s, others[i].name))
            continue;
        if (!c->views) {
            c->views = ARENA_ARRAY(c->arena, struct profile_view, len + 1);
            view_save(c, &c->views[c->views_len++]);
        }
        c->profile = resolved[i];
        c->profile.filters = filters; /* all views use the filters of the policy's own profile */
        cycle_profile_begin(c);
        c->views[c->views_len].name = arena_strdup(c->arena, others[i].name);
        view_save(c, &c->views[c->views_len++]);
    }
    if (c->views)
        view_restore(c, &c->views[0]);
}

uint32_t view_of(const struct cycle *c, const struct class *k)
{
    sym profile = snapshot_preferences(c->s, k->preferences)->profile;
    uint32_t i = profile ? c->views_len - 1 : 0;
    while (i > 0 && strcmp(c->views[i].name, snapshot_text(c->s, profile)) != 0)
        i--;
    return i;
}

void view_enter(struct cycle *c, uint32_t view)
{
    if (view == c->view)
        return;
    cycle_refresh(c); /* dirty entries belong to the view that is left */
    c->views[c->view].as_of = c->changed.len;
    view_restore(c, &c->views[view]);
    c->view = view;
    for (size_t i = c->views[view].as_of; i < c->changed.len; i++) {
        cycle_key_changed(c, c->changed.at[i]);
        if (c->gpu_prices)
            gpu_cost_changed(c, c->changed.at[i]);
    }
}
