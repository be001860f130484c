/* gpu_cost.c - the value of a node with and without a pod. */
#include "core/gpu/gpu_cost.h"

#include <assert.h>
#include <string.h>

#include "base/bits.h"
#include "core/backfill/reservation.h"
#include "core/gpu/gpu.h"
#include "core/gpu/gpu_prices.h"

static const double scarcity_weight =
    0.2; /* GPUs, for a device that only requests which may use no other kind would fill */
static const double idle_weight = 1e-4; /* GPUs, for each idle GPU */
static const double lowest = -1e300;

/* Rows of nodes with GPUs, and of segments of such nodes: the distance of each step from the minimum, below 0, then the
 * number of idle GPUs. The row of a segment has the minimum over its nodes, step by step. */
struct gpu_cost_rows {
    uint32_t width;                 /* the steps, and one for the idle GPUs */
    uint32_t *row;                  /* [position]: index of the row; nodes without GPUs have none */
    double *at;                     /* [row][width] */
    uint64_t *known;                /* bit set of positions whose row is up to date */
    double **segment;               /* [segment][width]; NULL: not computed yet */
    uint64_t *tight;                /* bit set of segments whose row is up to date */
    struct class_cost **class_cost; /* [class]; NULL: not computed yet */
};

/* What a pod of a class takes at each step. */
struct class_cost {
    double *need;     /* [step]: cost of what it needs besides GPUs */
    double *of_part;  /* [step]: minimum that a share takes of a partly used GPU */
    double *of_whole; /* [step]: minimum that it takes of wholly free GPUs */
    double size;      /* number of GPUs that it takes */
    double scarcity;  /* minimum cost of their scarcity */
};

/* ---- rows ------------------------------------------------------------------------------------------------------- */

static uint32_t parts_of(int32_t milli)
{
    return milli > 0 ? (uint32_t)milli / (BERTH_GPU_MILLI / CUTTING_STOCK_PARTS) : 0;
}

static const double *part(const struct gpu_prices *m, uint32_t kind, uint32_t parts)
{
    return m->kinds[kind].part + (size_t)parts * m->steps;
}

static const double *block(const struct gpu_prices *m, uint32_t kind, uint32_t whole)
{
    return m->kinds[kind].block + (size_t)whole * m->steps;
}

static void add(double *to, const double *what, uint32_t len)
{
    for (uint32_t s = 0; s < len; s++)
        to[s] += what[s];
}

/* Returns the number of wholly free devices of one kind on the node. */
static uint32_t whole_of(const struct attempt *t, uint32_t p, uint32_t kind)
{
    const struct layout *l = t->c->l;
    uint32_t whole = 0;
    for (uint32_t d = l->device[p]; d < l->device[p + 1]; d++)
        whole += t->c->gpu_prices->kind[d] == kind && gpu_milli_left(t, d) == BERTH_GPU_MILLI;
    return whole;
}

/* Adds the earnings of the node's GPUs; returns how many thousandths are idle. */
static int64_t add_gpus(const struct attempt *t, uint32_t p, double *row)
{
    const struct gpu_prices *m = t->c->gpu_prices;
    uint32_t first = t->c->l->device[p], len = t->c->l->device[p + 1] - first;
    uint64_t whole = 0;
    int64_t idle_milli = 0;
    for (uint32_t d = 0; d < len; d++) {
        int32_t milli = gpu_milli_left(t, first + d);
        idle_milli += milli;
        if (milli == BERTH_GPU_MILLI)
            whole |= (uint64_t)1 << d;
        else if (parts_of(milli))
            add(row, part(m, m->kind[first + d], parts_of(milli)), m->steps);
    }
    while (whole) {
        uint32_t kind = m->kind[first + (uint32_t)__builtin_ctzll(whole)], of = 0;
        BITS_EACH (d, whole)
            if (m->kind[first + d] == kind) {
                whole &= ~((uint64_t)1 << d);
                of++;
            }
        add(row, block(m, kind, of), m->steps);
    }
    return idle_milli;
}

static void row_make(const struct attempt *t, uint32_t p, double *row)
{
    const struct gpu_prices *m = t->c->gpu_prices;
    double free = 0;
    assert(row && m->steps > 0);
    for (uint32_t s = 0; s < m->steps; s++) {
        if (s % GPU_PRICES_PER_RESOURCE == 0) {
            const int64_t *column = cycle_column(t->c, m->resource[s], t->later);
            free = column ? (double)column[p] : 0;
        }
        row[s] = m->price[s] * free;
    }
    row[m->steps] = (double)add_gpus(t, p, row) / BERTH_GPU_MILLI;
    double least = row[0];
    for (uint32_t s = 1; s < m->steps; s++)
        least = row[s] < least ? row[s] : least;
    for (uint32_t s = 0; s < m->steps; s++)
        row[s] = least - row[s];
}

/* Returns the row of a node. Rows of what is free now are kept; others are made in the buffer. */
static const double *row_of(const struct attempt *t, uint32_t p, double *buffer)
{
    struct gpu_cost_rows *b = t->c->gpu_cost;
    if (t->later) {
        row_make(t, p, buffer);
        return buffer;
    }
    double *row = b->at + (size_t)b->row[p] * b->width;
    if (!bits_has(b->known, p)) {
        bits_add(b->known, p);
        row_make(t, p, row);
    }
    return row;
}

static const double *segment_of(const struct attempt *t, uint32_t segment)
{
    struct gpu_cost_rows *b = t->c->gpu_cost;
    struct span of = layout_below(t->c->l, 1, segment);
    double *least = b->segment[segment];
    if (of.to - of.from == 1)
        return row_of(t, of.from, NULL);
    if (bits_has(b->tight, segment))
        return least;
    if (!least)
        least = b->segment[segment] = arena_alloc(t->c->arena, b->width * sizeof *least);
    memcpy(least, row_of(t, of.from, NULL), b->width * sizeof *least);
    for (uint32_t p = of.from + 1; p < of.to; p++) {
        const double *row = row_of(t, p, NULL);
        for (uint32_t s = 0; s < b->width; s++)
            least[s] = row[s] < least[s] ? row[s] : least[s];
    }
    bits_add(b->tight, segment);
    return least;
}

/* ---- the cost of a pod ------------------------------------------------------------------------------------------ */

/* Returns the maximum over the steps of what a pod takes: what it needs, plus the value of GPUs before (`was`) less
 * their value after (`is` and `more`), each if not NULL. */
static double max_over_steps(const double *row, const double *need, const double *was, const double *is,
                             const double *more, uint32_t steps)
{
    double max[4] = {lowest, lowest, lowest, lowest}; /* four at a time: the order does not matter */
    assert(steps % 4 == 0);
    for (uint32_t s = 0; s < steps; s += 4)
        for (uint32_t i = 0; i < 4; i++) {
            double taken = row[s + i] + need[s + i], of = was ? was[s + i] : 0;
            of = is ? of - is[s + i] : of;
            taken += more ? of - more[s + i] : of;
            max[i] = taken > max[i] ? taken : max[i];
        }
    max[0] = max[1] > max[0] ? max[1] : max[0];
    max[2] = max[3] > max[2] ? max[3] : max[2];
    return max[2] > max[0] ? max[2] : max[0];
}

static bool is_share(const struct class *k)
{
    return k->gpu.count == 1 && k->gpu.milli < BERTH_GPU_MILLI;
}

/* Lowers `least` to the loss of turning `was` into `is` and `more`. */
static void lower_to_loss(double *least, const double *was, const double *is, const double *more, uint32_t steps)
{
    for (uint32_t s = 0; s < steps; s++) {
        double taken = more ? was[s] - is[s] - more[s] : was[s] - is[s];
        least[s] = taken < least[s] ? taken : least[s];
    }
}

static void class_cost_of_share(const struct attempt *t, struct class_cost *a, uint32_t kind)
{
    const struct gpu_prices *m = t->c->gpu_prices;
    uint32_t size = parts_of((int32_t)t->k->gpu.milli); /* the rest may have been rounded up by one */
    for (uint32_t parts = size; parts < CUTTING_STOCK_PARTS; parts++)
        lower_to_loss(a->of_part, part(m, kind, parts), part(m, kind, parts - size), NULL, m->steps);
    const double *is = part(m, kind, parts_of(BERTH_GPU_MILLI - (int32_t)t->k->gpu.milli));
    for (uint32_t of = 1; of <= m->gpus_max; of++)
        lower_to_loss(a->of_whole, block(m, kind, of), is, block(m, kind, of - 1), m->steps);
}

static void class_cost_of_whole(const struct attempt *t, struct class_cost *a, uint32_t kind)
{
    const struct gpu_prices *m = t->c->gpu_prices;
    for (uint32_t of = t->k->gpu.count; of <= m->gpus_max; of++)
        lower_to_loss(a->of_whole, block(m, kind, of), block(m, kind, of - t->k->gpu.count), NULL, m->steps);
}

/* Fills in the minimum loss over the kinds of GPUs that the pod may hold. */
static void class_cost_of_gpus(const struct attempt *t, struct class_cost *a)
{
    const struct cycle *c = t->c;
    const struct gpu_prices *m = c->gpu_prices;
    bool known = bits_has(m->asked, t->class), any = false;
    for (uint32_t i = 0; i < m->kinds_len; i++) {
        double scarcity = scarcity_weight * (m->kinds[i].scarcity * a->size);
        if (known && !gpu_device_suits(c->l, &t->k->gpu, m->kinds[i].device))
            continue;
        if (is_share(t->k))
            class_cost_of_share(t, a, i);
        else
            class_cost_of_whole(t, a, i);
        a->scarcity = !any || scarcity < a->scarcity ? scarcity : a->scarcity;
        any = true;
    }
    if (t->k->gpu.count > 1 && m->mixed) { /* devices of several kinds: no bound */
        memset(a->of_whole, 0, m->steps * sizeof *a->of_whole);
        a->scarcity = 0;
    }
}

static struct class_cost *class_cost_new(const struct attempt *t)
{
    struct arena *arena = t->c->arena;
    const struct gpu_prices *m = t->c->gpu_prices;
    struct class_cost *a = ARENA_NEW(arena, struct class_cost);
    a->need = ARENA_ARRAY(arena, double, m->steps);
    for (uint32_t s = 0; s < m->steps; s++)
        a->need[s] = m->price[s] * (double)class_need(t->k, m->resource[s]);
    if (t->k->gpu.count == 0)
        return a;
    a->size = t->k->gpu.count * t->k->gpu.milli / (double)BERTH_GPU_MILLI;
    a->of_part = ARENA_ARRAY(arena, double, m->steps);
    a->of_whole = ARENA_ARRAY(arena, double, m->steps);
    for (uint32_t s = 0; s < m->steps; s++)
        a->of_part[s] = a->of_whole[s] = BERTH_NODE_GPUS_MAX; /* more than any loss */
    class_cost_of_gpus(t, a);
    return a;
}

static const struct class_cost *class_cost_of(const struct attempt *t)
{
    struct class_cost **at = &t->c->gpu_cost->class_cost[t->class];
    if (!*at)
        *at = class_cost_new(t);
    return *at;
}

/* Returns whether an earlier device is just like this one. */
static bool has_equal_earlier_device(const struct attempt *t, uint32_t first, uint64_t fit, uint32_t d)
{
    const uint32_t *kind = t->c->gpu_prices->kind + first;
    BITS_EACH (i, fit & (((uint64_t)1 << d) - 1))
        if (kind[i] == kind[d] && gpu_milli_left(t, first + (uint32_t)i) == gpu_milli_left(t, first + d))
            return true;
    return false;
}

static struct gpu_cost share(const struct attempt *t, uint32_t p, uint64_t fit, const double *row)
{
    const struct gpu_prices *m = t->c->gpu_prices;
    uint32_t first = t->c->l->device[p];
    int32_t milli = (int32_t)t->k->gpu.milli;
    const struct class_cost *class_cost = class_cost_of(t);
    struct gpu_cost best = {.device = NONE};
    BITS_EACH (i, fit) {
        uint32_t d = (uint32_t)i, kind = m->kind[first + d];
        int32_t left = gpu_milli_left(t, first + d);
        const double *was = part(m, kind, parts_of(left)), *is = part(m, kind, parts_of(left - milli)), *more = NULL;
        if (has_equal_earlier_device(t, first, fit, d))
            continue;
        if (left == BERTH_GPU_MILLI) {
            uint32_t whole = whole_of(t, p, kind);
            was = block(m, kind, whole);
            more = block(m, kind, whole - 1);
        }
        double cost = max_over_steps(row, class_cost->need, was, is, more, m->steps);
        cost += scarcity_weight * (m->kinds[kind].scarcity * class_cost->size);
        cost += idle_weight * left / BERTH_GPU_MILLI;
        if (best.device == NONE || cost < best.cost)
            best = (struct gpu_cost){cost, d};
    }
    assert(best.device != NONE);
    return best;
}

/* Cost of the first devices that fit; of none for a pod without GPUs. */
static struct gpu_cost whole(const struct attempt *t, uint32_t p, uint64_t fit, const double *row)
{
    const struct gpu_prices *m = t->c->gpu_prices;
    const uint32_t *kinds = m->kind + t->c->l->device[p];
    double taken[GPU_PRICE_STEPS_MAX], scarcity = 0;
    const double *need = class_cost_of(t)->need, *was = NULL, *is = NULL;
    uint64_t picked = 0;
    for (uint32_t left = t->k->gpu.count; left; left--) {
        picked |= fit & -fit;
        fit &= fit - 1;
    }
    while (picked) {
        uint32_t kind = kinds[__builtin_ctzll(picked)], len = 0;
        BITS_EACH (i, picked)
            if (kinds[i] == kind) {
                picked &= ~((uint64_t)1 << i);
                len++;
            }
        if (was) /* devices of several kinds */
            for (uint32_t s = 0; s < m->steps; s++)
                taken[s] = need[s] + (was[s] - is[s]);
        need = was ? taken : need;
        uint32_t of = whole_of(t, p, kind);
        was = block(m, kind, of);
        is = block(m, kind, of - len);
        scarcity += m->kinds[kind].scarcity * len;
    }
    return (struct gpu_cost){max_over_steps(row, need, was, is, NULL, m->steps) + scarcity_weight * scarcity, 0};
}

struct gpu_cost gpu_cost_of(const struct attempt *t, uint32_t position)
{
    const struct cycle *c = t->c;
    if (!gpu_cost_applies_to_node(c, position))
        return (struct gpu_cost){0};
    double buffer[GPU_PRICE_STEPS_MAX + 1];
    const double *row = row_of(t, position, buffer);
    uint64_t may = t->k->gpu.count ? reservations_devices(t, position) : 0, fit = 0;
    for (uint32_t d = c->l->device[position]; may && d < c->l->device[position + 1]; d++)
        fit |= (uint64_t)gpu_device_fits(t, d) << (d - c->l->device[position]);
    struct gpu_cost found = is_share(t->k) ? share(t, position, fit & may, row) : whole(t, position, fit & may, row);
    found.cost += idle_weight * row[c->gpu_prices->steps];
    return found;
}

/* ---- bounds ----------------------------------------------------------------------------------------------------- */

/* Returns a bound that the cost of a share of a partly used, or wholly free, GPU cannot fall below. */
static double share_cost_min(const struct attempt *t, const double *least, bool in_part)
{
    const struct class_cost *a = class_cost_of(t);
    uint32_t milli = in_part ? t->k->gpu.milli : BERTH_GPU_MILLI;
    double cost =
        max_over_steps(least, a->need, in_part ? a->of_part : a->of_whole, NULL, NULL, t->c->gpu_prices->steps);
    cost += a->scarcity;
    return cost + idle_weight * milli / BERTH_GPU_MILLI;
}

double gpu_cost_min(const struct attempt *t, uint32_t segment)
{
    const struct cycle *c = t->c;
    const struct class_cost *a = class_cost_of(t);
    uint32_t steps = c->gpu_prices->steps;
    const double *least = segment_of(t, segment);
    double cost;
    if (is_share(t->k)) {
        bool part = c->bounds[1].max[cycle_gpu_column(c, GPU_PART)][segment] >= t->k->gpu.milli;
        bool whole = c->bounds[1].max[cycle_gpu_column(c, GPU_FREE)][segment] > 0;
        cost = share_cost_min(t, least, part);
        double other = part && whole ? share_cost_min(t, least, false) : cost;
        cost = other < cost ? other : cost;
    } else if (t->k->gpu.count) {
        cost = max_over_steps(least, a->need, a->of_whole, NULL, NULL, steps) + a->scarcity;
    } else {
        cost = max_over_steps(least, a->need, NULL, NULL, NULL, steps);
    }
    return cost + idle_weight * least[steps];
}

/* ---- setup and changes ------------------------------------------------------------------------------------------ */

void gpu_cost_begin(struct cycle *c)
{
    c->gpu_prices = c->profile.gpu_cost && c->l->device[c->len] ? gpu_prices_new(c) : NULL;
    if (!c->gpu_prices)
        return;
    struct gpu_cost_rows *b = ARENA_NEW(c->arena, struct gpu_cost_rows);
    uint32_t rows = 0;
    b->width = c->gpu_prices->steps + 1;
    b->row = ARENA_ARRAY(c->arena, uint32_t, c->len + 1);
    b->known = ARENA_ARRAY(c->arena, uint64_t, c->blocks + 1);
    for (uint32_t p = 0; p < c->len; p++) {
        b->row[p] = rows;
        rows += gpu_cost_applies_to_node(c, p);
    }
    b->at = arena_alloc(c->arena, (size_t)rows * b->width * sizeof *b->at);
    b->segment = ARENA_ARRAY(c->arena, double *, c->l->segments + 1);
    b->tight = ARENA_ARRAY(c->arena, uint64_t, bits_words(c->l->segments) + 1);
    b->class_cost = ARENA_ARRAY(c->arena, struct class_cost *, c->s->classes.len + 1);
    c->gpu_cost = b;
}

void gpu_cost_changed(struct cycle *c, uint32_t position)
{
    if (!gpu_cost_applies_to_node(c, position))
        return;
    bits_drop(c->gpu_cost->known, position);
    bits_drop(c->gpu_cost->tight, layout_segment(c->l, position));
}
