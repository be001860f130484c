/* headroom.c - sums of free resources by zone and domain. */
#include "core/plan/headroom.h"

#include <string.h>

#include "base/hash.h"

static bool zone_same(const void *ctx, uint32_t value, const void *key)
{
    return ((const sym *)ctx)[value] == *(const sym *)key;
}

/* Returns the zone index of each ready node; zones are numbered in the order of the layout. */
static uint32_t *number_zones(struct cycle *c, uint32_t *ret_len)
{
    uint32_t *zone = ARENA_ARRAY(c->arena, uint32_t, (size_t)c->blocks * BLOCK + 1), len = 0;
    sym *names = mem_array(c->len + 1, sizeof *names);
    struct map map = {0};

    for (uint32_t p = 0; p < c->len; p++) {
        sym name = c->l->zone[p];
        zone[p] = NONE;
        if (c->s->state[p] != BERTH_NODE_READY)
            continue;
        zone[p] = map_find(&map, hash_u64(name), zone_same, names, &name);
        if (zone[p] != MAP_NONE)
            continue;
        zone[p] = len;
        names[len] = name;
        map_add(&map, hash_u64(name), len++);
    }
    map_done(&map);
    mem_free(names);
    *ret_len = len;
    return zone;
}

/* Marks the ready nodes of one domain. */
static uint32_t *mark_domain(struct cycle *c, const char *domain)
{
    uint32_t *zone = ARENA_ARRAY(c->arena, uint32_t, (size_t)c->blocks * BLOCK + 1);
    for (uint32_t p = 0; p < c->len; p++) {
        bool of = strcmp(snapshot_text(c->s, c->l->body[p]->domain), domain) == 0;
        zone[p] = of && c->s->state[p] == BERTH_NODE_READY ? 0 : NONE;
    }
    return zone;
}

static uint32_t resource_of(const struct berth_snapshot *s, const char *name)
{
    for (uint32_t r = 0; r < s->resources_len; r++)
        if (strcmp(snapshot_text(s, s->resources[r].name), name) == 0)
            return r;
    return NONE;
}

static int64_t free_at(const struct cycle *c, uint32_t resource, uint32_t position)
{
    int64_t free = c->free[resource][position];
    return free > 0 ? free : 0;
}

static void fill_row(struct cycle *c, struct headroom_row *row, uint32_t zones,
                     const struct berth_headroom_amount *from)
{
    row->free = ARENA_ARRAY(c->arena, int64_t, zones + 1);
    row->keep = ARENA_ARRAY(c->arena, int64_t, zones + 1);
    int64_t *capacity = ARENA_ARRAY(c->scratch, int64_t, zones + 1);
    for (uint32_t p = 0; p < c->len; p++) {
        if (row->zone[p] == NONE)
            continue;
        row->free[row->zone[p]] += free_at(c, row->resource, p);
        capacity[row->zone[p]] += snapshot_capacity(c->s, row->resource, p);
    }
    for (uint32_t z = 0; z < zones; z++) {
        int64_t share = (int64_t)((__int128)capacity[z] * from->permille / 1000);
        row->keep[z] = share > from->amount ? share : from->amount;
    }
}

struct headroom *headroom_new(struct cycle *c, const struct berth_headroom *from)
{
    uint32_t zones = 0;
    const uint32_t *every = NULL;
    if (from->reserves_len == 0)
        return NULL;
    struct headroom *h = ARENA_NEW(c->arena, struct headroom);
    h->priority = from->priority;
    h->tasks = from->tasks;
    h->at = ARENA_ARRAY(c->arena, struct headroom_row, from->reserves_len);
    for (size_t i = 0; i < from->reserves_len; i++) {
        const struct berth_headroom_amount *x = &from->reserves[i];
        bool domain = x->domain && *x->domain;
        uint32_t r = resource_of(c->s, x->resource);
        if (r == NONE || r >= c->resources || !c->free[r] || c->s->resources[r].optional)
            continue; /* no node has any, or nodes take any number */
        if (!domain && !every)
            every = number_zones(c, &zones);
        h->at[h->len].resource = r;
        h->at[h->len].domain = domain ? arena_strdup(c->arena, x->domain) : NULL;
        h->at[h->len].zone = domain ? mark_domain(c, x->domain) : every;
        fill_row(c, &h->at[h->len++], domain ? 1 : zones, x);
    }
    return h->len ? h : NULL;
}

void headroom_count(const struct cycle *c, uint32_t position, int sign)
{
    for (uint32_t i = 0; i < c->headroom->len; i++) {
        const struct headroom_row *row = &c->headroom->at[i];
        if (row->zone[position] != NONE)
            row->free[row->zone[position]] += sign * free_at(c, row->resource, position);
    }
}

/* Returns the number of pods of the workload's gang; 0 without a gang. */
static uint64_t gang_tasks(const struct berth_snapshot *s, const struct workload *w)
{
    uint64_t tasks = 0;
    if (w->gang == NONE)
        return 0;
    for (uint32_t at = ((const struct gang *)pages_at(&s->gangs, w->gang))->first; at != NONE;
         at = snapshot_workload(s, at)->next_in_gang)
        tasks += snapshot_workload(s, at)->replicas;
    return tasks;
}

bool headroom_binds(const struct headroom *h, const struct attempt *t)
{
    if (t->w->priority >= h->priority || t->replaces != NONE)
        return false;
    return h->tasks == 0 || gang_tasks(t->c->s, t->w) < h->tasks;
}
