/* fragmentation.c - computes the fragmentation gradient. */
#include "core/gpu/fragmentation.h"

#include <assert.h>
#include <string.h>

#include "base/hash.h"
#include "base/math.h"
#include "core/backfill/reservation.h"
#include "core/gpu/gpu.h"
#include "core/score/scores.h"

enum { SEEN_GPUS = 8, SEEN_BITS = 11, SEEN_MAX = 1 << SEEN_BITS };

/* The state of a node as a pod would find it; compared byte by byte. */
struct gpu_node_state {
    const struct typical_kind *kind;
    int64_t cpu;
    uint64_t fit; /* devices that the pod may hold, a bit each */
    uint32_t class, unused;
    int32_t milli[BERTH_NODE_GPUS_MAX];
};

/* A cached result: many nodes are in the same state. Nodes with more GPUs are not cached. */
struct cached_result {
    bool known;
    struct fragmentation found;
    _Alignas(8) char node_state[offsetof(struct gpu_node_state, milli) + SEEN_GPUS * sizeof(int32_t)];
};

struct fragmentation_cache {
    const struct typical_pods *typical;
    struct typical_kind *kinds;
    const struct typical_kind **kind; /* [position] */
    struct cached_result *cached_result;
};

static struct fragmentation_cache *fragments_of(struct cycle *c)
{
    if (!c->fragmentation_cache) {
        struct fragmentation_cache *f = ARENA_NEW(c->arena, struct fragmentation_cache);
        f->typical = c->typical ? c->typical : typical_pods_new(c->s, NULL, 0, c->arena);
        f->kind = ARENA_ARRAY(c->arena, const struct typical_kind *, c->len + 1);
        f->cached_result = ARENA_ARRAY(c->arena, struct cached_result, SEEN_MAX);
        c->fragmentation_cache = f;
    }
    return c->fragmentation_cache;
}

static const struct typical_kind *kind_at(struct fragmentation_cache *f, const struct cycle *c, uint32_t p)
{
    uint32_t first = c->l->device[p], len = c->l->device[p + 1] - first;
    if (!f->kind[p])
        f->kind[p] = typical_kind_of(&f->kinds, c->s, f->typical, c->l->devices + first, len, c->arena);
    return f->kind[p];
}

static void node_state_load(const struct attempt *t, const struct typical_kind *kind, uint32_t p,
                            struct gpu_node_state *n)
{
    const struct cycle *c = t->c;
    const int64_t *cpu = cycle_column(c, RESOURCE_CPU, t->later);
    uint32_t first = c->l->device[p];
    uint64_t may = t->k->gpu.count ? reservations_devices(t, p) : 0;

    memset(n, 0, offsetof(struct gpu_node_state, milli) + SEEN_GPUS * sizeof *n->milli);
    n->kind = kind;
    n->class = t->class;
    n->cpu = cpu ? cpu[p] : 0;
    for (uint32_t i = 0; i < kind->len; i++) {
        const struct device_free *f = &c->devices[first + i];
        n->milli[i] = t->later || f->later < f->now ? f->later : f->now;
        if (may >> i & 1 && gpu_device_fits(t, first + i))
            n->fit |= (uint64_t)1 << i;
    }
}

static int64_t cpu_need(const struct class *k)
{
    for (uint32_t i = 0; i < k->needs_len; i++)
        if (k->needs[i].resource == RESOURCE_CPU)
            return k->needs[i].amount;
    return 0;
}

/* Computes the published formula to the last bit, which decides where F hardly changes; math_sigmoid would be more
 * precise. */
static int32_t score_of(const struct attempt *t, double gain)
{
    return score_from(t, 1 / (1 + math_exp(-(gain / BERTH_GPU_MILLI))));
}

static struct fragmentation fragmentation_of_whole(const struct attempt *t, const struct typical_pods *typical,
                                                   struct gpu_node_state n)
{
    uint32_t left = t->k->gpu.count;
    double before = typical_pods_useless_milli(typical, n.kind, n.cpu, n.milli);
    for (uint32_t i = 0; i < n.kind->len && left; i++)
        if (n.fit >> i & 1) {
            n.milli[i] = 0;
            left--;
        }
    double gain = before - typical_pods_useless_milli(typical, n.kind, n.cpu - cpu_need(t->k), n.milli);
    return (struct fragmentation){gain, score_of(t, gain), 0};
}

static bool has_equal_earlier_device(const struct gpu_node_state *n, uint32_t device)
{
    for (uint32_t i = 0; i < device; i++)
        if (n->fit >> i & 1 && n->milli[i] == n->milli[device] &&
            n->kind->devices[i].model == n->kind->devices[device].model)
            return true;
    return false;
}

static struct fragmentation fragmentation_of_share(const struct attempt *t, const struct typical_pods *typical,
                                                   struct gpu_node_state n)
{
    struct fragmentation best = {.device = NONE};
    int32_t milli = (int32_t)t->k->gpu.milli;
    int64_t cpu = n.cpu - cpu_need(t->k);
    double before = typical_pods_useless_milli(typical, n.kind, n.cpu, n.milli);
    for (uint32_t i = 0; i < n.kind->len; i++) {
        if (!(n.fit >> i & 1) || has_equal_earlier_device(&n, i))
            continue;
        n.milli[i] -= milli;
        double gain = before - typical_pods_useless_milli(typical, n.kind, cpu, n.milli);
        n.milli[i] += milli;
        int32_t score = score_of(t, gain);
        if (best.device == NONE || score > best.score)
            best = (struct fragmentation){gain, score, i};
    }
    assert(best.device != NONE);
    return best;
}

struct fragmentation fragmentation_of(const struct attempt *t, uint32_t position)
{
    struct fragmentation_cache *f = fragments_of(t->c);
    const struct typical_kind *kind = kind_at(f, t->c, position);
    bool is_share = t->k->gpu.count == 1 && t->k->gpu.milli < BERTH_GPU_MILLI;
    struct gpu_node_state n;

    if (kind->len == 0)
        return (struct fragmentation){0, score_of(t, 0), 0};
    node_state_load(t, kind, position, &n);
    struct cached_result *cached_result =
        kind->len > SEEN_GPUS
            ? NULL
            : &f->cached_result[hash_bytes(&n, sizeof cached_result->node_state, 0) >> (64 - SEEN_BITS)];
    if (cached_result && cached_result->known &&
        memcmp(cached_result->node_state, &n, sizeof cached_result->node_state) == 0)
        return cached_result->found;
    struct fragmentation found =
        is_share ? fragmentation_of_share(t, f->typical, n) : fragmentation_of_whole(t, f->typical, n);
    if (cached_result) {
        cached_result->known = true;
        cached_result->found = found;
        memcpy(cached_result->node_state, &n, sizeof cached_result->node_state);
    }
    return found;
}
