/* earliest_start.c - finds the first moment at which pods fit, and the nodes.
 *
 * Nodes without a reserved place only gain resources over time. Their columns are copied, and one sweep over all ends
 * in order of time counts how many pods fit; nodes inside a window of others are left out while it lasts. On nodes with
 * a reserved place the number of pods may also fall: the moments at which it changes are computed node by node and
 * merged into the sweep. That is expensive, so it is first done up to a horizon only.
 */
#include <assert.h>
#include <string.h>

#include "base/bits.h"
#include "core/backfill/timeline.h"
#include "core/gpu/gpu.h"
#include "core/search/attempt.h"

/* From this moment on, a node takes so many more pods, or fewer. */
struct fit_step {
    int64_t at_ns;
    uint32_t position;
    int32_t more;
};

/* The state of a node from a moment on: the number of pods that fit by resources, and the free devices. */
struct node_point {
    int64_t at_ns;
    uint32_t fits;
    uint64_t devices;
    bool less;
};

struct start_sweep {
    struct reservation_state *f;
    const struct pods_request *d;
    int64_t duration_ns, longest_ns, horizon_ns;
    uint64_t *plain;   /* nodes without a reserved place */
    uint64_t *special; /* other nodes that may take the pods */
    int64_t **free;    /* [need][position] */
    int32_t *milli;    /* [device] */
    int64_t *mem;
    uint32_t *fits; /* [position] */
    uint64_t total;
    /* The values at the moment of the plan; NULL: not loaded yet. */
    const int32_t *milli_now;
    const int64_t *mem_now;
    const uint32_t *fits_now;
    uint64_t total_now;
    uint64_t *closed;    /* plain nodes that take nothing now: the pod would overlap a window of others */
    int64_t closed_next; /* when that may change */
    VEC(struct fit_step) steps;
    VEC(struct node_point) points;
    VEC(int64_t) times;
    struct keyed *order; /* steps by time */
    size_t end, fresh, step;
    int64_t end_ns, fresh_ns, step_ns; /* time of the next of each; BERTH_NEVER_NS: none */
};

/* ---- nodes without a reserved place ----------------------------------------------------------------------------- */

/* Returns whether windows allow a pod on the node for all of that time. */
static bool windows_allow(const struct reservation_state *f, uint64_t foreign, uint32_t position, int64_t at_ns,
                          int64_t duration_ns)
{
    BITS_EACH (i, foreign) {
        const struct resolved_window *w = &f->windows[i];
        if (bits_has(w->nodes, position) && at_ns < w->end_ns && add_ns(at_ns, duration_ns) > w->start_ns)
            return false;
    }
    return true;
}

/* Finds the nodes that could take a pod; returns whether some of them have a reserved place. */
static bool sort_nodes(struct start_sweep *s)
{
    struct reservation_state *f = s->f;
    struct cycle *c = &f->p->c;
    const struct attempt fixed = {.c = c, .k = s->d->k};
    const uint64_t *constraints = attempt_constraints_mask(c, &fixed);
    uint64_t any = 0;

    s->plain = ARENA_ARRAY(c->scratch, uint64_t, c->blocks + 1);
    s->special = ARENA_ARRAY(c->scratch, uint64_t, c->blocks + 1);
    for (uint32_t b = 0; b < c->blocks; b++) {
        uint64_t may = constraints[b];
        if (s->d->only != NONE)
            may &= s->d->only / BLOCK == b ? (uint64_t)1 << s->d->only % BLOCK : 0;
        s->plain[b] = may & ~f->reserved[b];
        s->special[b] = may & f->reserved[b];
        any |= s->special[b];
    }
    return any;
}

static uint32_t plain_fits(const struct start_sweep *s, uint32_t position)
{
    const struct class *k = s->d->k;
    const struct layout *l = s->f->p->c.l;
    struct node_free r;

    for (uint32_t i = 0; i < k->needs_len; i++) {
        r.free[i] = s->free[i][position];
        if (r.free[i] < k->needs[i].amount)
            return 0;
    }
    r.devices = k->gpu.count ? l->device[position + 1] - l->device[position] : 0;
    if (r.devices) {
        memcpy(r.milli, s->milli + l->device[position], r.devices * sizeof *r.milli);
        memcpy(r.mem, s->mem + l->device[position], r.devices * sizeof *r.mem);
    }
    return node_free_fits(k, &r, s->d->pods);
}

static void load_devices(struct start_sweep *s)
{
    struct cycle *c = &s->f->p->c;
    uint32_t len = s->d->k->gpu.count ? c->l->device[c->len] : 0;
    if (!len)
        return;
    if (!s->milli_now) {
        int32_t *milli = arena_alloc(c->scratch, len * sizeof *milli);
        int64_t *mem = arena_alloc(c->scratch, len * sizeof *mem);
        for (uint32_t d = 0; d < len; d++) {
            milli[d] = gpu_device_suits(c->l, &s->d->k->gpu, d) ? c->devices[d].later : INT32_MIN / 2;
            mem[d] = c->devices[d].mem_later;
        }
        s->milli_now = milli;
        s->mem_now = mem;
    }
    s->milli = arena_dup(c->scratch, s->milli_now, len * sizeof *s->milli);
    s->mem = arena_dup(c->scratch, s->mem_now, len * sizeof *s->mem);
}

static void count_now(struct start_sweep *s)
{
    const struct cycle *c = &s->f->p->c;
    uint32_t *fits = ARENA_ARRAY(c->scratch, uint32_t, c->len + 1);
    s->total_now = 0;
    for (uint32_t b = 0; b < c->blocks; b++)
        BITS_EACH (i, s->plain[b]) {
            uint32_t at = b * BLOCK + (uint32_t)i;
            s->total_now += fits[at] = plain_fits(s, at);
        }
    s->fits_now = fits;
}

/* Loads the state at the moment of the plan, which is computed once for all sweeps. */
static bool load_plain(struct start_sweep *s)
{
    struct cycle *c = &s->f->p->c;
    const struct class *k = s->d->k;
    s->free = ARENA_ARRAY(c->scratch, int64_t *, k->needs_len + 1);
    for (uint32_t i = 0; i < k->needs_len; i++) {
        const int64_t *column = cycle_column(c, k->needs[i].resource, true);
        if (!column)
            return false;
        s->free[i] = arena_dup(c->scratch, column, (size_t)c->len * sizeof *column);
    }
    load_devices(s);
    if (!s->fits_now)
        count_now(s);
    s->fits = arena_dup(c->scratch, s->fits_now, (c->len + 1) * sizeof *s->fits);
    s->total = s->total_now;
    return true;
}

static void plain_node_gains(struct start_sweep *s, uint32_t position, const struct class *of, uint64_t gpus)
{
    const struct class *k = s->d->k;
    if (!bits_has(s->plain, position))
        return;
    for (uint32_t i = 0; i < k->needs_len; i++)
        s->free[i][position] += class_need_at(of, i, k->needs[i].resource);
    if (k->gpu.count)
        BITS_EACH (d, gpus) {
            uint32_t device = s->f->p->c.l->device[position] + (uint32_t)d;
            s->milli[device] += (int32_t)of->gpu.milli;
            s->mem[device] += gpu_memory_booked(&of->gpu);
        }
    uint32_t fits = plain_fits(s, position);
    if (!bits_has(s->closed, position))
        s->total += fits - s->fits[position];
    s->fits[position] = fits;
}

/* Returns the first start with which a pod of that duration still runs at at_ns. */
static int64_t first_overlapping_start(const struct start_sweep *s, int64_t at_ns, int64_t for_ns)
{
    int64_t now = s->f->p->s->now_ns;
    return for_ns == BERTH_NEVER_NS || at_ns - now < for_ns ? now : at_ns - for_ns + 1;
}

/* Opens and closes nodes according to the windows at this moment. */
static void plain_close(struct start_sweep *s, int64_t now)
{
    const struct cycle *c = &s->f->p->c;
    uint64_t windows = 0;
    if (now < s->closed_next)
        return;
    s->closed_next = BERTH_NEVER_NS;
    BITS_EACH (i, s->d->foreign) {
        int64_t from = first_overlapping_start(s, s->f->windows[i].start_ns, s->longest_ns),
                to = s->f->windows[i].end_ns;
        int64_t next = now < from ? from : now < to ? to : BERTH_NEVER_NS;
        windows |= (uint64_t)(from <= now && now < to) << i;
        s->closed_next = next < s->closed_next ? next : s->closed_next;
    }
    for (uint32_t b = 0; b < c->blocks; b++) {
        uint64_t closed = 0;
        BITS_EACH (i, windows)
            closed |= s->f->windows[i].nodes[b] & s->plain[b];
        BITS_EACH (i, closed & ~s->closed[b])
            s->total -= s->fits[b * BLOCK + i];
        BITS_EACH (i, s->closed[b] & ~closed)
            s->total += s->fits[b * BLOCK + i];
        s->closed[b] = closed;
    }
}

/* ---- nodes with a reserved place -------------------------------------------------------------------------------- */

static void point_add(struct start_sweep *s, const struct node_free *r, int64_t at_ns, bool less)
{
    const struct class *k = s->d->k;
    struct node_point x = {.at_ns = at_ns, .less = less, .fits = node_free_fits_needs(k, r, s->d->pods)};
    if (x.fits && k->gpu.count && k->gpu.milli == BERTH_GPU_MILLI)
        x.devices = node_free_devices(k, r);
    vec_push(&s->points, x);
}

/* Computes the states of the node in order of time; the first one is now. Beyond the horizon, only states with fewer
 * resources are kept. */
static bool points_of(struct start_sweep *s, uint32_t position)
{
    struct timeline_changes x = timeline_changes(s->f, position);
    int64_t last = add_ns(s->horizon_ns, s->duration_ns);
    struct node_free room;
    s->points.len = 0;
    if (!node_free_load(&s->f->p->c, s->d->k, position, &room))
        return false;
    point_add(s, &room, s->f->p->s->now_ns, false);
    for (size_t i = 0; i < x.len && x.at[i].at_ns <= last;) {
        bool less = false;
        int64_t now = x.at[i].at_ns;
        for (; i < x.len && x.at[i].at_ns == now; i++) {
            node_free_add(s->d->k, &room, x.at[i].k, x.at[i].gpus, x.at[i].pods);
            less |= x.at[i].pods < 0;
        }
        if (less || now <= s->horizon_ns)
            point_add(s, &room, now, less);
    }
    return true;
}

/* Returns how many pods fit from `t` on for the whole duration. `from`: index of the state at that moment. */
static uint32_t fits_from(struct start_sweep *s, uint32_t position, size_t from, int64_t t)
{
    const struct class *k = s->d->k;
    const struct node_point *at = s->points.at;
    int64_t until = add_ns(t, s->duration_ns);

    if (!at[from].fits || !windows_allow(s->f, s->d->foreign, position, t, s->longest_ns))
        return 0;
    if (k->gpu.count && k->gpu.milli < BERTH_GPU_MILLI) { /* shares must be checked device by device */
        struct node_free low;
        (void)timeline_min_room(s->f, k, position, t, s->duration_ns, &low);
        return node_free_fits(k, &low, s->d->pods);
    }
    uint32_t fits = at[from].fits;
    uint64_t devices = at[from].devices;
    for (size_t i = from + 1; i < s->points.len && at[i].at_ns < until; i++) {
        if (!at[i].less)
            continue;
        fits = at[i].fits < fits ? at[i].fits : fits;
        devices &= at[i].devices;
    }
    if (!k->gpu.count)
        return fits;
    uint32_t by_devices = (uint32_t)__builtin_popcountll(devices) / k->gpu.count;
    return by_devices < fits ? by_devices : fits;
}

/* Adds a moment in order, unless it is beyond the horizon. */
static void time_add(struct start_sweep *s, int64_t at_ns)
{
    if (at_ns > s->horizon_ns)
        return;
    vec_push(&s->times, at_ns);
    size_t i = s->times.len - 1;
    for (; i > 0 && s->times.at[i - 1] > at_ns; i--)
        s->times.at[i] = s->times.at[i - 1];
    s->times.at[i] = at_ns;
}

static void special_steps(struct start_sweep *s, uint32_t position)
{
    struct reservation_state *f = s->f;
    uint32_t last = 0;

    s->times.len = 0;
    if (!points_of(s, position))
        return;
    for (size_t i = 0; i < s->points.len; i++) {
        time_add(s, s->points.at[i].at_ns);
        if (s->points.at[i].less)
            time_add(s, first_overlapping_start(s, s->points.at[i].at_ns, s->duration_ns));
    }
    BITS_EACH (i, s->d->foreign)
        if (bits_has(f->windows[i].nodes, position)) {
            time_add(s, first_overlapping_start(s, f->windows[i].start_ns, s->longest_ns));
            time_add(s, f->windows[i].end_ns);
        }
    for (size_t i = 0, from = 0; i < s->times.len; i++) {
        int64_t t = s->times.at[i];
        if (i && t == s->times.at[i - 1])
            continue;
        while (from + 1 < s->points.len && s->points.at[from + 1].at_ns <= t)
            from++;
        uint32_t fits = fits_from(s, position, from, t);
        if (fits != last)
            vec_push(&s->steps, ((struct fit_step){t, position, (int32_t)fits - (int32_t)last}));
        last = fits;
    }
}

static void load_special(struct start_sweep *s)
{
    struct arena *a = &s->f->p->scratch;
    s->steps.len = 0;
    for (uint32_t b = 0; b < s->f->p->c.blocks; b++)
        BITS_EACH (i, s->special[b])
            special_steps(s, b * BLOCK + (uint32_t)i);
    size_t len = s->steps.len;
    s->order = arena_alloc(a, (2 * len + 1) * sizeof *s->order);
    for (size_t i = 0; i < len; i++)
        s->order[i] = (struct keyed){(uint64_t)s->steps.at[i].at_ns - (uint64_t)s->f->p->s->now_ns, (uint32_t)i};
    sort_keyed(s->order, s->order + len, len);
}

/* ---- the sweep -------------------------------------------------------------------------------------------------- */

/* Each sets the time of the next valid entry, from the current index on. */
static void skip_to_fresh(struct start_sweep *s)
{
    const struct reservation_state *f = s->f;
    while (s->fresh < f->fresh_order.len && f->fresh.at[f->fresh_order.at[s->fresh]].gone)
        s->fresh++;
    bool any = s->fresh < f->fresh_order.len;
    s->fresh_ns = any ? f->fresh.at[f->fresh_order.at[s->fresh]].at_ns : BERTH_NEVER_NS;
}

static void skip_to_end(struct start_sweep *s)
{
    const struct reservation_state *f = s->f;
    while (s->end < f->ends_len && bits_has(f->p->c.stopped, f->ends[s->end].slot))
        s->end++;
    s->end_ns = s->end < f->ends_len ? f->ends[s->end].at_ns : BERTH_NEVER_NS;
}

static void skip_to_step(struct start_sweep *s)
{
    s->step_ns = s->step < s->steps.len ? s->steps.at[s->order[s->step].value].at_ns : BERTH_NEVER_NS;
}

/* Returns when something changes next. */
static int64_t next_moment(const struct start_sweep *s)
{
    int64_t next = s->end_ns < s->closed_next ? s->end_ns : s->closed_next;
    next = s->fresh_ns < next ? s->fresh_ns : next;
    return s->step_ns < next ? s->step_ns : next;
}

/* Applies all changes until then. */
static void apply_changes_until(struct start_sweep *s, int64_t now)
{
    for (; s->end_ns <= now && s->end < s->f->ends_len; s->end++, skip_to_end(s)) {
        const struct expected_end *e = &s->f->ends[s->end];
        plain_node_gains(s, e->position, e->k, e->gpus);
    }
    for (; s->fresh_ns <= now && s->fresh < s->f->fresh_order.len; s->fresh++, skip_to_fresh(s)) {
        const struct new_pod_end *x = &s->f->fresh.at[s->f->fresh_order.at[s->fresh]];
        plain_node_gains(s, x->position, x->k, x->gpus);
    }
    for (; s->step_ns <= now && s->step < s->steps.len; s->step++, skip_to_step(s)) {
        const struct fit_step *t = &s->steps.at[s->order[s->step].value];
        s->fits[t->position] += (uint32_t)t->more;
        s->total += (uint64_t)(int64_t)t->more;
    }
    plain_close(s, now);
}

/* Returns the first moment up to the horizon at which all pods fit; BERTH_NEVER_NS: none. */
static int64_t sweep(struct start_sweep *s)
{
    s->end = s->fresh = s->step = 0;
    s->closed = ARENA_ARRAY(&s->f->p->scratch, uint64_t, s->f->p->c.blocks + 1);
    s->closed_next = INT64_MIN;
    if (!load_plain(s))
        return BERTH_NEVER_NS;
    load_special(s);
    skip_to_end(s);
    skip_to_fresh(s);
    skip_to_step(s);
    int64_t moment = s->f->p->s->now_ns;
    for (apply_changes_until(s, moment); s->total < s->d->pods; apply_changes_until(s, moment)) {
        moment = next_moment(s);
        if (moment == BERTH_NEVER_NS || moment > s->horizon_ns)
            return BERTH_NEVER_NS;
    }
    return moment;
}

/* As sweep, for nodes without a reserved place only, which is cheap. */
static int64_t plain_moment(struct start_sweep *s)
{
    uint64_t *special = s->special;
    s->special = ARENA_ARRAY(&s->f->p->scratch, uint64_t, s->f->p->c.blocks + 1);
    s->horizon_ns = BERTH_NEVER_NS;
    int64_t at = sweep(s);
    s->special = special;
    return at;
}

/* ---- places ----------------------------------------------------------------------------------------------------- */

/* Adds places for shares: each device is a place of its own, because several pods may hold shares of it. */
static void add_shares(const struct pods_request *d, struct reserved_place x, struct node_free *low, place_list *places)
{
    for (uint32_t left = x.pods; left; left -= x.pods) {
        x.gpus = node_free_devices(d->k, low);
        assert(x.gpus);
        x.gpus &= -x.gpus;
        x.pods = 0;
        while (x.pods < left && node_free_devices(d->k, low) & x.gpus) {
            node_free_add(d->k, low, d->k, x.gpus, -1);
            x.pods++;
        }
        vec_push(places, x);
    }
}

/* Adds as many pods as fit on the node; returns their number. */
static uint32_t add_place(const struct start_sweep *s, uint32_t position, int64_t at_ns, uint32_t most,
                          place_list *places)
{
    const struct class *k = s->d->k;
    struct node_free low;
    if (!windows_allow(s->f, s->d->foreign, position, at_ns, s->longest_ns) ||
        !timeline_min_room(s->f, k, position, at_ns, s->duration_ns, &low))
        return 0;
    uint32_t pods = node_free_fits(k, &low, most);
    struct reserved_place x = {.demand = s->d->demand, .position = position, .pods = pods};
    if (!pods)
        return 0;
    if (k->gpu.count && k->gpu.milli < BERTH_GPU_MILLI) {
        add_shares(s->d, x, &low, places);
        return pods;
    }
    uint64_t devices = k->gpu.count ? node_free_devices(k, &low) : 0;
    for (uint32_t i = 0; i < pods * k->gpu.count; i++, devices &= devices - 1)
        x.gpus |= devices & -devices;
    vec_push(places, x);
    return pods;
}

/* Adds places in order of position. `fits`: skips nodes where the number is 0; NULL: tries all nodes. */
static bool add_places(const struct start_sweep *s, int64_t at_ns, const uint32_t *fits, place_list *places)
{
    uint32_t left = s->d->pods;
    for (uint32_t b = 0; b < s->f->p->c.blocks && left; b++)
        BITS_EACH (i, s->plain[b] | s->special[b]) {
            uint32_t position = b * BLOCK + (uint32_t)i;
            if (left && (!fits || fits[position]))
                left -= add_place(s, position, at_ns, left, places);
        }
    return left == 0;
}

static void sweep_done(struct start_sweep *s, struct arena_mark mark)
{
    vec_done(&s->steps);
    vec_done(&s->points);
    vec_done(&s->times);
    arena_rewind(&s->f->p->scratch, mark);
}

static struct start_sweep sweep_of(struct reservation_state *f, const struct pods_request *d, int64_t duration_ns)
{
    int64_t longest_ns = d->longest_ns > duration_ns ? d->longest_ns : duration_ns;
    return (struct start_sweep){.f = f, .d = d, .duration_ns = duration_ns, .longest_ns = longest_ns};
}

int64_t find_earliest_start(struct reservation_state *f, const struct pods_request *d, int64_t duration_ns,
                            place_list *places)
{
    struct start_sweep s = sweep_of(f, d, duration_ns);
    struct arena_mark mark = arena_mark(&f->p->scratch);
    int64_t now = f->p->s->now_ns, at = BERTH_NEVER_NS;

    timeline_gather(f);
    timeline_sort_fresh(f);
    int64_t last = sort_nodes(&s) ? plain_moment(&s) : BERTH_NEVER_NS; /* the other nodes can only make it earlier */
    int64_t near = f->horizon_ns > now ? add_ns(f->horizon_ns, f->horizon_ns - now) : now;
    if (near > now && near < last) {
        s.horizon_ns = near;
        at = sweep(&s);
    }
    if (at == BERTH_NEVER_NS) {
        s.horizon_ns = last;
        at = sweep(&s);
    }
    bool all = at == BERTH_NEVER_NS || add_places(&s, at, s.fits, places);
    assert(all);
    (void)all;
    sweep_done(&s, mark);
    return at;
}

bool places_at(struct reservation_state *f, const struct pods_request *d, int64_t at_ns, int64_t duration_ns,
               place_list *places)
{
    struct start_sweep s = sweep_of(f, d, duration_ns);
    struct arena_mark mark = arena_mark(&f->p->scratch);
    (void)sort_nodes(&s);
    bool all = add_places(&s, at_ns, NULL, places);
    sweep_done(&s, mark);
    return all;
}
