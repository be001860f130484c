#include "control/api/rate_limit.h"

#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"

enum { NONE = UINT32_MAX };

/* A caller. All buckets are in one list, from the most recent request to the least recent. */
struct bucket {
    char who[LIMIT_CALLER_MAX + 1];
    uint64_t hash;
    double level;
    int64_t at_ns; /* time of `level` */
    uint32_t newer, older;
};

struct rate_limits {
    struct bucket *buckets;
    size_t len, cap, max;
    uint32_t newest, oldest;
    uint64_t seed;
    struct map map;
};

struct rate_limits *limits_new(size_t max, uint64_t seed)
{
    struct rate_limits *l = mem_zalloc(sizeof *l);
    l->max = max && max < LIMITS_MAX ? max : LIMITS_MAX;
    l->newest = l->oldest = NONE;
    l->seed = seed;
    return l;
}

void limits_free(struct rate_limits *l)
{
    if (!l)
        return;
    map_done(&l->map);
    mem_free(l->buckets);
    mem_free(l);
}

size_t limits_len(const struct rate_limits *l)
{
    return l->len;
}

static bool same(const void *ctx, uint32_t value, const void *key)
{
    const struct rate_limits *l = ctx;
    return strcmp(l->buckets[value].who, key) == 0;
}

static void unlink_bucket(struct rate_limits *l, uint32_t ix)
{
    const struct bucket *b = &l->buckets[ix];
    *(b->newer == NONE ? &l->newest : &l->buckets[b->newer].older) = b->older;
    *(b->older == NONE ? &l->oldest : &l->buckets[b->older].newer) = b->newer;
}

static void link_newest(struct rate_limits *l, uint32_t ix)
{
    struct bucket *b = &l->buckets[ix];
    b->newer = NONE;
    b->older = l->newest;
    *(l->newest == NONE ? &l->oldest : &l->buckets[l->newest].newer) = ix;
    l->newest = ix;
}

/* Returns a position for a new caller: an unused one, or that of the caller that was idle longest. */
static uint32_t bucket_alloc(struct rate_limits *l)
{
    if (l->len == l->max) {
        uint32_t ix = l->oldest;
        unlink_bucket(l, ix);
        map_drop(&l->map, l->buckets[ix].hash, ix);
        return ix;
    }
    if (l->len == l->cap) {
        l->cap = l->cap ? l->cap * 2 : 64;
        l->buckets = mem_resize(l->buckets, l->cap, sizeof *l->buckets);
    }
    return (uint32_t)l->len++;
}

static struct bucket *bucket_of(struct rate_limits *l, const char *who, double burst, int64_t steady_ns)
{
    char name[LIMIT_CALLER_MAX + 1] = "";
    size_t len = strnlen(who, LIMIT_CALLER_MAX);
    memcpy(name, who, len);
    uint64_t hash = hash_bytes(name, len, l->seed);
    uint32_t ix = map_find(&l->map, hash, same, l, name);
    if (ix != MAP_NONE) {
        unlink_bucket(l, ix);
    } else {
        ix = bucket_alloc(l);
        l->buckets[ix] = (struct bucket){.hash = hash, .level = burst, .at_ns = steady_ns};
        memcpy(l->buckets[ix].who, name, sizeof name);
        map_add(&l->map, hash, ix);
    }
    link_newest(l, ix);
    return &l->buckets[ix];
}

bool limit_take(struct rate_limits *l, const char *who, double per_s, double burst, double cost, int64_t steady_ns,
                int64_t *ret_retry_ns)
{
    if (per_s <= 0)
        return true;
    if (burst < 1)
        burst = 1;
    if (cost > burst)
        cost = burst;
    struct bucket *b = bucket_of(l, who, burst, steady_ns);
    if (steady_ns > b->at_ns) {
        b->level += (double)(steady_ns - b->at_ns) / 1e9 * per_s;
        b->at_ns = steady_ns;
    }
    if (b->level > burst)
        b->level = burst;
    if (b->level >= cost) {
        b->level -= cost;
        return true;
    }
    /* Rounded up, so that a retry after this time succeeds. At most an hour, for very low rates. */
    double wait_ns = (cost - b->level) / per_s * 1e9 + 1;
    *ret_retry_ns = wait_ns < 3600e9 ? (int64_t)wait_ns : 3600 * INT64_C(1000000000);
    return false;
}
