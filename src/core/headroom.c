/* headroom.c - sums of what zones have free. */
#include "core/headroom.h"

#include <string.h>

#include "base/hash.h"

static bool zone_same(const void *ctx, uint32_t value, const void *key)
{
    return ((const sym *)ctx)[value] == *(const sym *)key;
}

/* The zones of ready nodes, numbered in the order of the layout. */
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

static void fill_row(struct cycle *c, const struct headroom *h, struct headroom_row *row, uint32_t zones,
                     const struct berth_reserve *from)
{
    row->free = ARENA_ARRAY(c->arena, int64_t, zones + 1);
    row->keep = ARENA_ARRAY(c->arena, int64_t, zones + 1);
    int64_t *capacity = ARENA_ARRAY(c->scratch, int64_t, zones + 1);
    for (uint32_t p = 0; p < c->len; p++) {
        if (h->zone[p] == NONE)
            continue;
        row->free[h->zone[p]] += free_at(c, row->resource, p);
        capacity[h->zone[p]] += snapshot_capacity(c->s, row->resource, p);
    }
    for (uint32_t z = 0; z < zones; z++) {
        int64_t share = (int64_t)((__int128)capacity[z] * from->permille / 1000);
        row->keep[z] = share > from->amount ? share : from->amount;
    }
}

struct headroom *headroom_new(struct cycle *c, const struct berth_headroom *from)
{
    uint32_t zones;
    if (from->reserves_len == 0)
        return NULL;
    struct headroom *h = ARENA_NEW(c->arena, struct headroom);
    h->priority = from->priority;
    h->zone = number_zones(c, &zones);
    h->at = ARENA_ARRAY(c->arena, struct headroom_row, from->reserves_len);
    for (size_t i = 0; i < from->reserves_len; i++) {
        uint32_t r = resource_of(c->s, from->reserves[i].resource);
        if (r == NONE || r >= c->resources || !c->free[r] || c->s->resources[r].optional)
            continue; /* nobody has any, or everybody any number */
        h->at[h->len].resource = r;
        fill_row(c, h, &h->at[h->len++], zones, &from->reserves[i]);
    }
    return h->len ? h : NULL;
}

void headroom_count(const struct cycle *c, uint32_t position, int sign)
{
    uint32_t zone = c->headroom->zone[position];
    for (uint32_t i = 0; zone != NONE && i < c->headroom->len; i++)
        c->headroom->at[i].free[zone] += sign * free_at(c, c->headroom->at[i].resource, position);
}
