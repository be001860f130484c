/* window.c - windows of the policy: their nodes, and which workloads may use them. */
#include <string.h>

#include "base/bits.h"
#include "base/hash.h"
#include "base/str.h"
#include "core/backfill/timeline.h"
#include "core/search/attempt.h"

/* ---- nodes ------------------------------------------------------------------------------------------------------ */

static const char *label_text(const struct berth_snapshot *s, struct labels labels, const char *key)
{
    for (uint32_t i = 0; i < labels.len; i++)
        if (strcmp(snapshot_text(s, labels.at[i].key), key) == 0)
            return snapshot_text(s, labels.at[i].value);
    return NULL;
}

/* As expr_holds in core/model/shape.c, for a condition with words that the snapshot may not know. */
static bool expr_text_holds(const struct berth_expr *e, const char *value)
{
    bool listed = false;
    int64_t number, bound;

    for (size_t i = 0; value && i < e->values_len; i++)
        listed |= strcmp(e->values[i], value) == 0;
    switch (e->match) {
    case BERTH_EXISTS: return value != NULL;
    case BERTH_NOT_EXISTS: return value == NULL;
    case BERTH_IN: return listed;
    case BERTH_NOT_IN: return !listed;
    case BERTH_GT:
    case BERTH_LT:
        if (!value || e->values_len != 1 || !str_parse_i64(value, &number) || !str_parse_i64(e->values[0], &bound))
            return false;
        return e->match == BERTH_GT ? number > bound : number < bound;
    }
    return false;
}

static bool terms_hold(const struct berth_snapshot *s, const struct berth_window *w, struct labels labels)
{
    for (size_t t = 0; t < w->require_len; t++) {
        const struct berth_term *term = &w->require[t];
        size_t held = 0;
        while (held < term->exprs_len &&
               expr_text_holds(&term->exprs[held], label_text(s, labels, term->exprs[held].key)))
            held++;
        if (held == term->exprs_len && held)
            return true;
    }
    return false;
}

struct named_nodes {
    const struct cycle *c;
    struct map map; /* from ids to positions */
};

static bool same_id(const void *ctx, uint32_t position, const void *id)
{
    const struct cycle *c = ctx;
    return strcmp(snapshot_text(c->s, c->l->id[position]), id) == 0;
}

static void name_nodes(struct named_nodes *n)
{
    for (uint32_t p = 0; p < n->c->len; p++) {
        const char *id = snapshot_text(n->c->s, n->c->l->id[p]);
        map_add(&n->map, hash_bytes(id, strlen(id), 0), p);
    }
}

static const uint64_t *nodes_of(struct named_nodes *names, const struct berth_window *w)
{
    const struct cycle *c = names->c;
    uint64_t *nodes = ARENA_ARRAY(c->arena, uint64_t, c->blocks + 1);
    if (w->nodes_len && names->map.len == 0)
        name_nodes(names);
    for (size_t i = 0; i < w->nodes_len; i++) {
        uint32_t p = map_find(&names->map, hash_bytes(w->nodes[i], strlen(w->nodes[i]), 0), same_id, c, w->nodes[i]);
        if (p != MAP_NONE)
            bits_add(nodes, p);
    }
    for (uint32_t p = 0; w->require_len && p < c->len; p++)
        if (terms_hold(c->s, w, c->l->body[p]->labels))
            bits_add(nodes, p);
    return nodes;
}

/* ---- permitted workloads ---------------------------------------------------------------------------------------- */

static const uint32_t *quotas_of(const struct cycle *c, const struct berth_window *w, uint32_t *ret_len)
{
    uint32_t *list = ARENA_ARRAY(c->arena, uint32_t, w->quotas_len + 1);
    for (size_t i = 0; i < w->quotas_len; i++)
        for (uint32_t q = 0; q < c->s->quotas_len; q++)
            if (strcmp(snapshot_text(c->s, c->s->quotas[q].id), w->quotas[i]) == 0)
                list[(*ret_len)++] = q;
    return list;
}

void windows_resolve(struct reservation_state *f)
{
    struct berth_plan *p = f->p;
    struct named_nodes names = {.c = &p->c};
    struct resolved_window *at = ARENA_ARRAY(&p->arena, struct resolved_window, p->policy.windows_len + 1);

    for (size_t i = 0; i < p->policy.windows_len; i++) {
        const struct berth_window *w = &p->policy.windows[i];
        if (w->end_ns <= p->s->now_ns)
            continue;
        struct resolved_window *x = &at[f->windows_len++];
        *x = (struct resolved_window){
            .start_ns = w->start_ns, .end_ns = w->end_ns, .id = arena_strdup(&p->arena, w->id)};
        x->nodes = nodes_of(&names, w);
        x->quotas = quotas_of(&p->c, w, &x->quotas_len);
        plan_recheck(p, w->start_ns);
        plan_recheck(p, w->end_ns);
    }
    f->windows = at;
    map_done(&names.map);
}

uint64_t windows_of_others(const struct reservation_state *f, uint32_t workload)
{
    const struct claim *t = snapshot_claim(f->p->s, workload);
    uint32_t chain[QUOTA_CHAIN_MAX], len = f->windows_len && t ? quota_chain(f->p->s->quotas, t, chain) : 0;
    uint64_t foreign = 0;

    for (uint32_t i = 0; i < f->windows_len; i++) {
        bool own = false;
        for (uint32_t q = 0; q < f->windows[i].quotas_len; q++)
            for (uint32_t n = 0; n < len; n++)
                own |= chain[n] == f->windows[i].quotas[q];
        foreign |= (uint64_t)!own << i;
    }
    return foreign;
}

/* ---- for filter/window.c ---------------------------------------------------------------------------------------- */

uint64_t windows_bind(const struct attempt *t)
{
    struct reservation_state *f = t->c->reservation_state;
    if (!f || !f->windows_len)
        return 0;
    int64_t until =
        add_ns(f->p->s->now_ns, max_duration_of(f->p, t->workload)); /* the maximum run time, not the expected one */
    uint64_t foreign = windows_of_others(f, t->workload), bind = 0;
    BITS_EACH (i, foreign)
        bind |= (uint64_t)(until > f->windows[i].start_ns) << i;
    return bind;
}

const char *window_name(const struct attempt *t, uint32_t i)
{
    return t->c->reservation_state->windows[i].id;
}

void window_mask(const struct attempt *t, uint32_t i, struct block_range blocks, uint64_t *bits)
{
    struct reservation_state *f = t->c->reservation_state;
    for (uint32_t b = blocks.from; b < blocks.to; b++) {
        f->refused |= (bits[b - blocks.from] & f->windows[i].nodes[b]) != 0;
        bits[b - blocks.from] &= ~f->windows[i].nodes[b];
    }
}
