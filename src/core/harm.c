/* harm.c - looking at nodes for whom to stop. */
#include "core/harm.h"

#include <string.h>

#include "base/hash.h"
#include "base/sort.h"
#include "core/allot.h"
#include "core/gpu.h"

enum { MEMO_BYTES_MAX = 64 << 20 };

/* ---- one node ------------------------------------------------------------------------------------------------------ */

struct trial {
    struct berth_plan *p;
    const struct harm_asker *a;
    uint32_t position;
    int64_t *left; /* [need]: later, with what those who go give back */
    int32_t milli[BERTH_NODE_GPUS_MAX];
    int64_t mem[BERTH_NODE_GPUS_MAX];
    uint32_t devices;
    uint32_t *chosen, len;
};

static bool trial_begin(struct trial *t)
{
    const struct cycle *c = &t->p->c;
    const struct class *k = t->a->k;
    t->left = ARENA_ARRAY(&t->p->scratch, int64_t, k->needs_len + 1);
    for (uint32_t n = 0; n < k->needs_len; n++) {
        const int64_t *column = cycle_column(c, k->needs[n].resource, true);
        if (!column)
            return false; /* nobody has any */
        t->left[n] = column[t->position];
    }
    t->devices = k->gpu.count ? c->l->device[t->position + 1] - c->l->device[t->position] : 0;
    for (uint32_t d = 0; d < t->devices; d++) {
        t->milli[d] = c->devices[c->l->device[t->position] + d].later;
        t->mem[d] = c->devices[c->l->device[t->position] + d].mem_later;
    }
    return true;
}

/* Counts what one that goes (sign 1) gives back, or takes again. */
static void count_member(struct trial *t, uint32_t slot, int sign)
{
    const struct instance *i = snapshot_instance(t->p->s, slot);
    const struct class *k = snapshot_class(t->p->s, i->class);
    if (t->a->quota && sign > 0)
        allot_leave(t->p, i);
    else if (t->a->quota)
        allot_stay(t->p, i);
    if (snapshot_position(t->p->s, i) != t->position)
        return;
    for (uint32_t n = 0; n < t->a->k->needs_len; n++)
        t->left[n] += sign * class_need(k, t->a->k->needs[n].resource);
    BITS_EACH (d, i->gpus)
        if (d < t->devices) {
            t->milli[d] += sign * (int32_t)k->gpu.milli;
            t->mem[d] += sign * gpu_memory_held(&k->gpu);
        }
}

/* Does it go with a party that was chosen, other than `but`? */
static bool is_chosen(const struct trial *t, uint32_t slot, uint32_t but)
{
    const struct victims *v = t->p->victims;
    for (uint32_t n = 0; n < t->len; n++) {
        const struct party *x = &v->parties[t->chosen[n]];
        for (uint32_t m = 0; m < x->len && t->chosen[n] != but; m++)
            if (v->members[x->first + m] == slot)
                return true;
    }
    return false;
}

/* A spare pod of a gang is in two parties; it counts once. */
static void count_party(struct trial *t, uint32_t party, int sign)
{
    const struct victims *v = t->p->victims;
    const struct party *x = &v->parties[party];
    bool twice = snapshot_workload(t->p->s, x->workload)->gang != NONE;
    for (uint32_t m = 0; m < x->len; m++) {
        uint32_t slot = v->members[x->first + m];
        if (member_stands(t->p, slot) && !(twice && is_chosen(t, slot, party)))
            count_member(t, slot, sign);
    }
}

static bool gpus_fit(const struct trial *t)
{
    const struct cycle *c = &t->p->c;
    const struct gpu_need *need = &t->a->k->gpu;
    uint32_t found = 0;
    for (uint32_t d = 0; d < t->devices && found < need->count; d++)
        found += t->milli[d] >= (int32_t)need->milli &&
                 (need->milli == BERTH_GPU_MILLI || t->mem[d] >= need->memory_bytes) &&
                 gpu_device_suits(c->l, need, c->l->device[t->position] + d);
    return found >= need->count;
}

/* Is every port asked for held by nobody but those who go? */
static bool ports_fit(const struct trial *t)
{
    const struct cycle *c = &t->p->c;
    for (uint32_t n = 0; n < t->a->k->ports_len; n++) {
        uint32_t thing = t->a->k->ports[n];
        const struct hold *h;
        for (uint32_t at = snapshot_thing(c->s, thing)->first; at != NONE; at = h->next) {
            h = pages_at(&c->s->holds, at);
            if (h->node != c->l->slot[t->position])
                continue;
            bool goes = h->instance != NONE && (snapshot_instance(c->s, h->instance)->state == BERTH_STOPPING ||
                                                !member_stands(t->p, h->instance) || is_chosen(t, h->instance, NONE));
            if (!goes)
                return false;
        }
        for (const struct fresh_hold *f = c->fresh_holds ? c->fresh_holds[thing] : NULL; f; f = f->next)
            if (f->position == t->position)
                return false;
    }
    return true;
}

static bool fits(const struct trial *t)
{
    const struct class *k = t->a->k;
    for (uint32_t n = 0; n < k->needs_len; n++)
        if (t->left[n] < k->needs[n].amount)
            return false;
    return (k->gpu.count == 0 || gpus_fit(t)) && ports_fit(t) &&
           (!t->a->quota || allot_room(t->p, t->a->workload, k, true, 1) > 0);
}

static int compare_parties(const void *ctx, uint32_t a, uint32_t b)
{
    const struct victims *v = ctx;
    const struct party *x = &v->parties[a], *y = &v->parties[b];
    if (x->tier != y->tier)
        return x->tier < y->tier ? -1 : 1;
    if (x->lost != y->lost)
        return x->lost < y->lost ? -1 : 1;
    if (x->id != y->id)
        return x->id > y->id ? -1 : 1;
    return x->len < y->len ? -1 : 1;
}

/* One pod of a workload, or of a gang, is as good as another: none goes for its own. */
static bool is_own(const struct trial *t, const struct party *x)
{
    uint32_t gang = snapshot_workload(t->p->s, x->workload)->gang;
    return x->workload == t->a->workload || (gang != NONE && gang == snapshot_workload(t->p->s, t->a->workload)->gang);
}

/* Services keep their minimum, whoever asks: of each only so many may go. */
static uint32_t keep_available(const struct victims *v, uint32_t *list, uint32_t len)
{
    uint32_t left = 0;
    for (uint32_t n = 0; n < len; n++) {
        const struct party *x = &v->parties[list[n]];
        int32_t before = 0;
        for (uint32_t i = 0; x->available && i < left; i++)
            before += v->parties[list[i]].available && v->parties[list[i]].workload == x->workload;
        if (!x->available || before < v->spare[x->workload])
            list[left++] = list[n];
    }
    return left;
}

uint32_t harm_root(const struct berth_plan *p, uint32_t workload)
{
    const struct claim *claim = p->s->guaranteed ? snapshot_claim(p->s, workload) : NULL;
    uint32_t at = claim && claim->quotas_len ? claim->quotas[0] : NONE;
    while (at != NONE && p->s->quotas[at].parent != NONE)
        at = p->s->quotas[at].parent;
    return at;
}

/* Guarantees are claimed from other groups: within one, what runs is stopped for what has a higher priority only. */
static bool is_kin(const struct trial *t, const struct party *x)
{
    return t->a->root != NONE && (uint32_t)x->tier >= (uint32_t)t->a->tier && x->tier >> 32 != BERTH_SPARE &&
           harm_root(t->p, x->workload) == t->a->root;
}

/* The parties on the node that may go, in order. */
static uint32_t *gather(const struct trial *t, uint32_t *ret_len)
{
    const struct victims *v = t->p->victims;
    uint32_t from = v->first[t->position], to = v->first[t->position + 1], len = 0;
    uint32_t *list = ARENA_ARRAY(&t->p->scratch, uint32_t, 2 * (size_t)(to - from) + 1);
    for (uint32_t i = from; i < to; i++) {
        const struct party *x = &v->parties[v->at[i]];
        bool again = len > 0 && list[len - 1] == v->at[i];
        if (!again && x->tier < t->a->tier && !is_own(t, x) && !is_kin(t, x) && party_stands(t->p, x))
            list[len++] = v->at[i];
    }
    sort_indices(list, list + (to - from), len, compare_parties, v);
    *ret_len = keep_available(v, list, len);
    return list;
}

/* Whoever is not needed stays, the most valuable first. */
static void reprieve(struct trial *t)
{
    for (uint32_t n = t->len; n-- > 0;) {
        uint32_t party = t->chosen[n];
        count_party(t, party, -1);
        memmove(&t->chosen[n], &t->chosen[n + 1], (t->len - n - 1) * sizeof *t->chosen);
        t->len--;
        if (fits(t))
            continue;
        memmove(&t->chosen[n + 1], &t->chosen[n], (t->len - n) * sizeof *t->chosen);
        t->chosen[n] = party;
        t->len++;
        count_party(t, party, 1);
    }
}

/* The least harm comes first. */
static int compare(const struct harm *a, const struct harm *b)
{
    if (a->tier != b->tier)
        return a->tier < b->tier ? -1 : 1;
    if (a->lost != b->lost)
        return a->lost < b->lost ? -1 : 1;
    if (a->pods != b->pods)
        return a->pods < b->pods ? -1 : 1;
    return a->id == b->id ? 0 : a->id > b->id ? -1 : 1;
}

static struct harm sum_up(const struct trial *t)
{
    const struct victims *v = t->p->victims;
    struct harm h = {.possible = true, .tier = INT64_MIN};
    for (uint32_t n = 0; n < t->len; n++) {
        const struct party *x = &v->parties[t->chosen[n]];
        h.tier = x->tier > h.tier ? x->tier : h.tier;
        h.lost += x->lost;
        h.pods += party_pods(t->p, x);
        h.id = x->id > h.id ? x->id : h.id;
    }
    return h;
}

/* As few as needed, in order. */
static struct harm choose(struct trial *t, const uint32_t *list, uint32_t len)
{
    while (t->len < len && !fits(t)) {
        count_party(t, list[t->len], 1);
        t->chosen[t->len] = list[t->len];
        t->len++;
    }
    if (!fits(t))
        return (struct harm){0};
    reprieve(t);
    return sum_up(t);
}

static void unchoose(struct trial *t)
{
    while (t->len)
        count_party(t, t->chosen[--t->len], -1);
}

/* Would one alone, the first that is large enough, be less harm than the several who were chosen? */
static struct harm choose_one(struct trial *t, const uint32_t *list, uint32_t len, struct harm several)
{
    uint32_t *chosen = t->chosen, before = t->len, alone;
    unchoose(t);
    t->chosen = &alone;
    for (uint32_t n = 0; n < len; n++) {
        struct harm h = choose(t, &list[n], 1);
        if (h.possible && compare(&h, &several) < 0) {
            t->chosen = chosen;
            chosen[0] = alone;
            return h;
        }
        unchoose(t);
        if (h.possible)
            break;
    }
    t->chosen = chosen;
    for (; t->len < before; t->len++)
        count_party(t, chosen[t->len], 1);
    return several;
}

struct harm harm_at(struct berth_plan *p, const struct harm_asker *a, uint32_t position, uint32_t *ret,
                    uint32_t *ret_len)
{
    const struct victims *v = p->victims;
    struct harm h = {0};
    if (v->lowest[position] >= a->tier)
        return h;
    struct arena_mark mark = arena_mark(&p->scratch);
    struct trial t = {.p = p, .a = a, .position = position};
    uint32_t len = 0;
    if (trial_begin(&t) && !fits(&t)) { /* else something other than room is missing */
        const uint32_t *list = gather(&t, &len);
        t.chosen = ARENA_ARRAY(&p->scratch, uint32_t, len + 1);
        h = choose(&t, list, len);
        if (h.possible && t.len > 1)
            h = choose_one(&t, list, len, h);
        for (len = 0; ret && h.possible && len < t.len; len++)
            ret[len] = t.chosen[len];
        unchoose(&t);
    }
    if (ret_len)
        *ret_len = h.possible ? len : 0;
    arena_rewind(&p->scratch, mark);
    return h;
}

/* ---- all nodes ------------------------------------------------------------------------------------------------------ */

struct harms {
    struct harms *next;
    int64_t tier;
    uint64_t account; /* of those whose quotas are full: which; and as of how many stops */
    uint32_t root;    /* of who asks */
    uint32_t stops;
    uint32_t as_of; /* of victims.changed */
    uint32_t possible;
    const uint64_t *mask;
    struct harm *at; /* [position] */
};

static void look_again(struct berth_plan *p, const struct harm_asker *a, struct harms *h, uint32_t position)
{
    h->possible -= h->at[position].possible;
    h->at[position] = bits_has(h->mask, position) ? harm_at(p, a, position, NULL, NULL) : (struct harm){0};
    h->possible += h->at[position].possible;
}

static void refresh(struct berth_plan *p, const struct harm_asker *a, struct harms *h)
{
    for (; h->as_of < p->victims->changed_len; h->as_of++)
        look_again(p, a, h, p->victims->changed[h->as_of]);
}

static void fill(struct berth_plan *p, const struct harm_asker *a, struct harms *h)
{
    const struct turn fixed = {.c = &p->c, .k = a->k}; /* enough for filters that look at what is fixed of a node */
    h->mask = turn_rules_mask(&p->c, &fixed);
    h->as_of = p->victims->changed_len;
    h->stops = p->stop_turns;
    h->possible = 0;
    for (uint32_t at = 0; at < p->c.len; at++) {
        h->at[at].possible = false;
        look_again(p, a, h, at);
    }
}

/* Who may share what is remembered of a class: all, but those whose quotas are full with those of the same quotas, and who
 * has pods among those that could go with nobody. */
static uint64_t account_of(const struct berth_plan *p, const struct harm_asker *a)
{
    const struct claim *claim = a->quota ? snapshot_claim(p->s, a->workload) : NULL;
    uint64_t account = claim ? hash_bytes(claim->quotas, claim->quotas_len * sizeof *claim->quotas, 1) | 1 : 0;
    uint32_t gang = snapshot_workload(p->s, a->workload)->gang, at = NONE;
    bool own = bits_has(p->victims->present, a->workload);
    if (gang != NONE)
        at = ((const struct gang *)pages_at(&p->s->gangs, gang))->first;
    for (; at != NONE && !own; at = snapshot_workload(p->s, at)->next_in_gang)
        own = bits_has(p->victims->present, at);
    return own ? hash_pair(account, a->workload) | 1 : account;
}

/* What is remembered, as it is now; of quotas only while nothing more was stopped. */
static bool is_valid(struct berth_plan *p, const struct harm_asker *a, struct harms *h)
{
    if (h->account && h->stops != p->stop_turns)
        return false;
    struct harm_asker then = *a;
    then.tier = h->tier;
    refresh(p, &then, h);
    return true;
}

struct harms *harms_of(struct berth_plan *p, const struct harm_asker *a)
{
    struct victims *v = p->victims;
    uint64_t account = account_of(p, a);
    victims_catch_up(p);
    struct harms **list = &v->memos[a->class.v], *found = NULL;
    size_t bytes = sizeof *found + (p->c.len + 1) * sizeof *found->at;
    for (struct harms *h = *list; h && !found; h = h->next) {
        if (h->account != account || h->root != a->root || h->tier < a->tier || !is_valid(p, a, h))
            continue;
        if (h->possible == 0)
            return NULL; /* and nothing for who comes after it */
        if (h->tier == a->tier)
            found = h;
    }
    if (found)
        return found;
    bool keep = v->memo_bytes + bytes <= MEMO_BYTES_MAX;
    struct arena *arena = keep ? &p->arena : &p->scratch;
    found = ARENA_NEW(arena, struct harms);
    found->at = ARENA_ARRAY(arena, struct harm, p->c.len + 1);
    found->tier = a->tier;
    found->account = account;
    found->root = a->root;
    fill(p, a, found);
    if (keep) {
        v->memo_bytes += bytes;
        found->next = *list;
        *list = found;
    }
    return found->possible ? found : NULL;
}

uint32_t harms_best(struct berth_plan *p, const struct harm_asker *a, struct harms *h, const uint64_t *mask)
{
    for (;;) {
        uint32_t best = NONE;
        for (uint32_t b = 0; b < p->c.blocks; b++)
            BITS_EACH (lane, mask[b]) {
                uint32_t at = b * BLOCK + (uint32_t)lane;
                if (h->at[at].possible && (best == NONE || compare(&h->at[at], &h->at[best]) < 0))
                    best = at;
            }
        if (best == NONE)
            return NONE;
        struct harm before = h->at[best];
        look_again(p, a, h, best);
        if (h->at[best].possible && compare(&h->at[best], &before) == 0)
            return best;
    }
}
