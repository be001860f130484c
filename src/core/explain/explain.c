/* explain.c - the reasons why a pod has no place: runs every filter alone and counts nodes.
 *
 * Called after the plan was made, for the state that the plan leaves. Computed once per class where the class alone
 * decides. advice.c suggests changes.
 */
#include <assert.h>
#include <string.h>

#include "base/bits.h"
#include "base/hash.h"
#include "base/str.h"
#include "core/backfill/timeline.h"
#include "core/explain/explain.h"
#include "core/gpu/gpu.h"
#include "core/plan/headroom.h"
#include "core/queue/plan_quota.h"

/* ---- formatting amounts ----------------------------------------------------------------------------------------- */

const char *explain_amount(struct arena *a, const char *resource, int64_t amount, bool up)
{
    static const char *const units[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi"};
    static const char *const sizes[] = {"memory", "hugepages-", "storage", "ephemeral-storage",
                                        "disk",   "swap",       "traffic"};
    size_t unit = 0;
    int64_t of = 1;
    bool size = false;

    if (amount < 0)
        amount = 0;
    if (strcmp(resource, "cpu") == 0)
        return amount % 1000 ? arena_fmt(a, "%lldm", (long long)amount)
                             : arena_fmt(a, "%lld", (long long)amount / 1000);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        size |= strncmp(resource, sizes[i], strlen(sizes[i])) == 0;
    for (; size && amount / of >= 1024 && unit < 5; unit++)
        of *= 1024;
    int64_t tenths = (amount / of) * 10 + (amount % of * 10 + (up ? of - 1 : 0)) / of;
    if (tenths % 10)
        return arena_fmt(a, "%lld.%lld%s", (long long)tenths / 10, (long long)tenths % 10, units[unit]);
    return arena_fmt(a, "%lld%s", (long long)tenths / 10, units[unit]);
}

/* The nodes that a filter refuses, for a filter that depends only on the constraints. */
struct filter_refusals {
    const uint64_t *refused; /* NULL: not computed yet */
    uint64_t nodes;
};

/* ---- running the filters ---------------------------------------------------------------------------------------- */

/* Returns the nodes that the filter refuses, allocated in `a`. */
static struct filter_refusals refusals_of_filter(struct filter_report *q, const struct filter *f, uint32_t aspect,
                                                 struct arena *a)
{
    struct cycle *c = &q->p->c;
    uint64_t *bits = arena_alloc(a, (c->blocks + 1) * sizeof *bits);

    for (uint32_t b = 0; b < c->blocks; b++)
        bits[b] = layout_block_bits(c->l, b);
    if (f->aspects)
        f->mask_aspect(&q->t, aspect, (struct block_range){0, c->blocks}, bits);
    else
        f->mask(&q->t, (struct block_range){0, c->blocks}, bits);
    for (uint32_t b = 0; b < c->blocks; b++)
        bits[b] = ~bits[b] & layout_block_bits(c->l, b);
    return (struct filter_refusals){bits, bits_count(bits, c->blocks)};
}

/* As refusals; computed once for all classes with the same constraints. */
static struct filter_refusals refusals_by_rules(struct filter_report *q, size_t filter)
{
    struct berth_plan *p = q->p;
    uint32_t constraints = q->t.k->constraints.v;
    if (!p->filter_refusals)
        p->filter_refusals = ARENA_ARRAY(&p->arena, struct filter_refusals *, p->s->constraints.len + 1);
    if (!p->filter_refusals[constraints])
        p->filter_refusals[constraints] = ARENA_ARRAY(&p->arena, struct filter_refusals, filters_len);
    struct filter_refusals *h = &p->filter_refusals[constraints][filter];
    if (!h->refused)
        *h = refusals_of_filter(q, filter_rows[filter], 0, &p->arena);
    return *h;
}

static void add_verdict(struct filter_report *q, size_t filter, uint32_t aspect)
{
    const struct filter *f = filter_rows[filter];
    bool shared = !f->aspects && (f->when == FILTER_STATIC || f->by_constraints);
    struct filter_refusals h = shared ? refusals_by_rules(q, filter) : refusals_of_filter(q, f, aspect, &q->p->scratch);
    if (h.nodes == 0)
        return;
    q->at[q->len++] = (struct filter_verdict){.filter = f,
                                              .what = f->aspects ? f->aspect_name(&q->t, aspect) : "",
                                              .aspect = aspect,
                                              .refused = h.refused,
                                              .nodes = h.nodes};
}

/* Finds the nodes with exactly one verdict, and counts them for each verdict. */
static void count_only(struct filter_report *q)
{
    uint32_t blocks = q->p->c.blocks;
    q->any = arena_alloc(&q->p->scratch, (blocks + 1) * sizeof *q->any);
    q->once = arena_alloc(&q->p->scratch, (blocks + 1) * sizeof *q->once);
    for (uint32_t b = 0; b < blocks; b++) {
        uint64_t any = 0, more = 0;
        for (uint32_t i = 0; i < q->len; i++) {
            more |= any & q->at[i].refused[b];
            any |= q->at[i].refused[b];
        }
        q->any[b] = any;
        q->once[b] = any & ~more;
        for (uint32_t i = 0; i < q->len; i++)
            q->at[i].only += (uint64_t)__builtin_popcountll(q->at[i].refused[b] & q->once[b]);
    }
}

static int64_t need_of(const struct filter_report *q, const struct filter_verdict *v)
{
    return q->t.k->needs[v->aspect].amount;
}

/* Returns the largest capacity of the resource on any node. */
static int64_t max_capacity(const struct filter_report *q, const struct filter_verdict *v)
{
    int64_t most = 0;
    for (uint32_t p = 0; p < q->p->c.len; p++) {
        int64_t has = snapshot_capacity(q->p->s, q->t.k->needs[v->aspect].resource, p);
        most = has > most ? has : most;
    }
    return most;
}

/* Returns the largest number of GPUs of the requested models and memory on any node. */
static uint32_t max_suitable_gpus(const struct filter_report *q)
{
    const struct layout *l = q->p->c.l;
    uint32_t most = 0;
    for (uint32_t p = 0; p < l->len; p++) {
        uint32_t suited = 0;
        for (uint32_t d = l->device[p]; d < l->device[p + 1]; d++)
            suited += gpu_device_suits(l, &q->t.k->gpu, d);
        most = suited > most ? suited : most;
    }
    return most;
}

/* For a verdict against every node: returns whether it is about the capacity of the nodes, and not about what is
 * free. */
static bool is_never(const struct filter_report *q, const struct filter_verdict *v)
{
    if (v->filter->reason == REASON_GPU_KIND)
        return true;
    return v->filter->reason == REASON_SHORT && max_capacity(q, v) < need_of(q, v);
}

static void add_all_verdicts(struct filter_report *q)
{
    struct cycle *c = &q->p->c;
    uint32_t most = 0;
    for (size_t f = 0; f < filters_len; f++)
        most += filter_rows[f]->aspects && filter_rows[f]->applies(&q->t) ? filter_rows[f]->aspects(&q->t) : 1;
    q->at = ARENA_ARRAY(&q->p->scratch, struct filter_verdict, most + 1);
    for (size_t f = 0; f < filters_len; f++) {
        const struct filter *row = filter_rows[f];
        if (!(c->profile.filters >> f & 1) || row->timed || !row->applies(&q->t))
            continue;
        uint32_t aspects = row->aspects ? row->aspects(&q->t) : 1;
        for (uint32_t a = 0; a < aspects; a++)
            add_verdict(q, f, a);
    }
    count_only(q);
    for (uint32_t i = 0; i < q->len; i++)
        q->at[i].never = q->at[i].nodes == c->len && is_never(q, &q->at[i]);
}

void filter_report_begin(struct filter_report *q, struct berth_plan *p, const struct demand *w)
{
    *q = (struct filter_report){.p = p, .mark = arena_mark(&p->scratch)};
    attempt_begin(&q->t, &p->c, demand_attempt_spec(w), false);
    add_all_verdicts(q);
}

void filter_report_end(struct filter_report *q)
{
    attempt_end(&q->t);
    arena_rewind(&q->p->scratch, q->mark);
}

/* ---- sentences -------------------------------------------------------------------------------------------------- */

static const char *nodes_text(const struct filter_report *q, uint64_t nodes)
{
    uint32_t all = q->p->c.len;
    if (nodes == all)
        return arena_fmt(&q->p->arena, all == 1 ? "the only node" : "all %u nodes", all);
    return arena_fmt(&q->p->arena, "%llu of %u nodes", (unsigned long long)nodes, all);
}

/* Returns the largest free amount on the refused nodes. */
static int64_t max_free(const struct filter_report *q, const struct filter_verdict *v)
{
    const int64_t *column = cycle_column(&q->p->c, q->t.k->needs[v->aspect].resource, false);
    int64_t most = 0;
    for (uint32_t b = 0; column && b < q->p->c.blocks; b++)
        BITS_EACH (lane, v->refused[b])
            most = column[b * BLOCK + lane] > most ? column[b * BLOCK + lane] : most;
    return most;
}

/* Puts the verb of a sentence about nodes into the singular for a single node. */
static const char *verb(const char *sentence, bool one, struct arena *a)
{
    static const char *const pairs[][2] = {
        {"are ",   "is "     },
        {"have ",  "has "    },
        {"hold ",  "holds "  },
        {"run ",   "runs "   },
        {"do not", "does not"}
    };
    for (size_t i = 0; one && i < sizeof pairs / sizeof *pairs; i++)
        if (strncmp(sentence, pairs[i][0], strlen(pairs[i][0])) == 0)
            return arena_fmt(a, "%s%s", pairs[i][1], sentence + strlen(pairs[i][0]));
    return sentence;
}

/* Formats as "H100 GPUs" or "GPUs with 80Gi of memory each". */
static const char *gpus_text(const struct filter_report *q)
{
    const struct gpu_need *need = &q->t.k->gpu;
    struct arena *a = &q->p->arena;
    CLEANUP(str) struct str s = {0};
    for (uint32_t i = 0; i < need->models.len; i++)
        str_addf(&s, "%s%s",
                 i == 0                     ? ""
                 : i + 1 < need->models.len ? ", "
                                            : " or ",
                 snapshot_text(q->p->s, need->models.at[i]));
    str_addf(&s, "%sGPU%s", s.len ? " " : "", need->count == 1 ? "" : "s");
    if (need->memory_bytes)
        str_addf(&s, " with %s of memory%s", explain_amount(a, "memory", need->memory_bytes, true),
                 need->count == 1 ? "" : " each");
    return arena_strdup(a, str_text(&s));
}

/* Formats as "no node has 64 CPUs; the largest has 32". */
static const char *never_sentence(const struct filter_report *q, const struct filter_verdict *v)
{
    struct arena *a = &q->p->arena;
    if (v->filter->reason == REASON_GPU_KIND) {
        uint32_t most = max_suitable_gpus(q);
        return most ? arena_fmt(a, "no node has %u %s; the largest has %u", q->t.k->gpu.count, gpus_text(q), most)
                    : arena_fmt(a, "no node has %u %s", q->t.k->gpu.count, gpus_text(q));
    }
    int64_t most = max_capacity(q, v), need = need_of(q, v);
    bool cores = strcmp(v->what, "cpu") == 0 && need % 1000 == 0;
    const char *of = !cores ? arena_fmt(a, " of %s", v->what) : need == 1000 ? " CPU" : " CPUs";
    if (most == 0)
        return arena_fmt(a, "no node has any %s", v->what);
    return arena_fmt(a, "no node has %s%s; the largest has %s", explain_amount(a, v->what, need, true), of,
                     explain_amount(a, v->what, most, false));
}

/* Headroom is kept in every zone, or in one domain. */
static const char *headroom_sentence(const struct filter_report *q, const struct filter_verdict *v, const char *nodes)
{
    struct arena *a = &q->p->arena;
    const char *domain = q->p->c.headroom->at[v->aspect].domain;
    const char *is = v->nodes == 1 ? "is" : "are";
    if (domain)
        return arena_fmt(a, "%s %s in the domain %s, which reserves free %s for more urgent work", nodes, is, domain,
                         v->what);
    return arena_fmt(a, "%s %s in a zone that reserves free %s for more urgent work", nodes, is, v->what);
}

static const char *sentence(const struct filter_report *q, const struct filter_verdict *v)
{
    struct arena *a = &q->p->arena;
    const char *nodes = nodes_text(q, v->nodes);
    bool one = v->nodes == 1;
    const char *says = verb(reasons[v->filter->reason].sentence, one, a);

    if (v->never)
        return never_sentence(q, v);
    if (v->filter->reason == REASON_HEADROOM)
        return headroom_sentence(q, v, nodes);
    if (v->filter->reason == REASON_SHORT)
        return arena_fmt(a, "%s %s too little %s left: %s needed, at most %s free", nodes, one ? "has" : "have",
                         v->what, explain_amount(a, v->what, need_of(q, v), true),
                         explain_amount(a, v->what, max_free(q, v), false));
    if (*v->what)
        return arena_fmt(a, "%s %s: %s", nodes, says, v->what);
    return arena_fmt(a, "%s %s", nodes, says);
}

/* ---- nodes ------------------------------------------------------------------------------------------------------ */

static const char *node_name(const struct filter_report *q, uint32_t position)
{
    return snapshot_text(q->p->s, q->p->c.l->id[position]);
}

sym explain_taint(const struct filter_report *q, uint32_t position)
{
    const struct tolerations *tolerations = &snapshot_constraints(q->p->s, q->t.k->constraints)->tolerations;
    const struct node_body *body = q->p->c.l->body[position];
    for (uint32_t i = 0; i < body->taints_len; i++)
        if (body->taints[i].effect != BERTH_PREFER_NO_SCHEDULE && !taint_tolerated(&body->taints[i], tolerations))
            return body->taints[i].key;
    return 0;
}

/* ---- explanations ----------------------------------------------------------------------------------------------- */

/* Orders verdicts: first those that no node can ever satisfy, then by the number of refused nodes. */
static bool verdict_precedes(const struct filter_verdict *a, const struct filter_verdict *b)
{
    if (a->never != b->never)
        return a->never;
    if (a->nodes != b->nodes)
        return a->nodes > b->nodes;
    if (a->filter->reason != b->filter->reason)
        return a->filter->reason < b->filter->reason;
    return strcmp(a->what, b->what) < 0;
}

static struct berth_reason *rows_of(struct filter_report *q)
{
    for (uint32_t i = 1; i < q->len; i++) {
        struct filter_verdict v = q->at[i];
        uint32_t j = i;
        for (; j > 0 && verdict_precedes(&v, &q->at[j - 1]); j--)
            q->at[j] = q->at[j - 1];
        q->at[j] = v;
    }
    struct berth_reason *rows = ARENA_ARRAY(&q->p->arena, struct berth_reason, q->len);
    for (uint32_t i = 0; i < q->len; i++) {
        const struct filter_verdict *v = &q->at[i];
        rows[i] = (struct berth_reason){reasons[v->filter->reason].word, v->what, v->nodes, v->only, sentence(q, v)};
    }
    return rows;
}

/* A cached sentence, by reason and numbers. */
struct sentence_cache {
    enum reason reason;
    int64_t a, b;
    const char *text;
};

const char **sentence_cache_slot(struct berth_plan *p, enum reason reason, int64_t a, int64_t b)
{
    enum { TOLD = 1024 };
    if (!p->sentence_cache)
        p->sentence_cache = ARENA_ARRAY(&p->arena, struct sentence_cache, TOLD);
    struct sentence_cache *at = &p->sentence_cache[hash_pair((uint64_t)a * REASONS_LEN + reason, (uint64_t)b) % TOLD];
    if (at->text && (at->reason != reason || at->a != a || at->b != b))
        at->text = NULL; /* the slot held another sentence, whose text stays valid */
    at->reason = reason;
    at->a = a;
    at->b = b;
    return &at->text;
}

static struct berth_reason gang_reason(struct berth_plan *p, const struct demand *w)
{
    if (w->blocked)
        return (struct berth_reason){reasons[REASON_STOPPING].word, "", 0, 0,
                                     "earlier instances of the gang are still stopping"};
    const char **text = sentence_cache_slot(p, REASON_GANG, w->gang_needs, w->gang_fits);
    if (!*text)
        *text = arena_fmt(&p->arena, "the gang needs %u pods placed at once; only %u fit", w->gang_needs, w->gang_fits);
    return (struct berth_reason){reasons[REASON_GANG].word, "", 0, 0, *text};
}

/* ---- reasons that are not about nodes --------------------------------------------------------------------------- */

static const char *quota_amount_text(struct berth_plan *p, uint32_t resource, int64_t amount)
{
    if (resource == QUOTA_GPU)
        return explain_amount(&p->arena, "cpu", amount, false); /* GPUs are counted in thousandths, too */
    return explain_amount(&p->arena, resource == QUOTA_JOBS ? "" : snapshot_text(p->s, p->s->resources[resource].name),
                          amount, false);
}

static struct berth_reason quota_reason(struct berth_plan *p, const struct quota_shortage *q)
{
    const char *resource = q->resource == QUOTA_GPU    ? "gpu"
                           : q->resource == QUOTA_JOBS ? "jobs"
                                                       : snapshot_text(p->s, p->s->resources[q->resource].name);
    const char *name = snapshot_text(p->s, p->s->quotas[q->quota].id);
    int64_t unit = q->resource == QUOTA_GPU || q->resource == RESOURCE_CPU ? 1000 : 1;
    const char *text =
        q->total ? arena_fmt(&p->arena, "quota %s: %lld of %lld %s-hours of this period are used or reserved", name,
                             (long long)(q->held / 3600 / unit), (long long)(q->limit / 3600 / unit), resource)
                 : arena_fmt(&p->arena, "quota %s: %s of %s %s are used or reserved; %s requested", name,
                             quota_amount_text(p, q->resource, q->held), quota_amount_text(p, q->resource, q->limit),
                             resource, quota_amount_text(p, q->resource, q->need));
    return (struct berth_reason){reasons[q->total ? REASON_TOTAL : REASON_QUOTA].word,
                                 arena_fmt(&p->arena, "%s %s", name, resource), 0, 0, text};
}

static struct berth_reason plain_reason(enum reason r)
{
    return (struct berth_reason){reasons[r].word, "", 0, 0, reasons[r].sentence};
}

enum { EXTRA_MAX = 5 + RESERVATION_REASONS_MAX };

static uint32_t extra_reasons(struct berth_plan *p, const struct demand *w, struct berth_reason ret[static EXTRA_MAX])
{
    uint32_t len = 0;
    struct quota_shortage short_of;
    if (w->behind)
        ret[len++] = plain_reason(REASON_BEHIND);
    if (w->over_budget)
        ret[len++] = plain_reason(REASON_STARTING);
    if (w->short_of_quota && plan_quota_blocking_limit(p, w->workload, snapshot_class(p->s, w->class), &short_of))
        ret[len++] = quota_reason(p, &short_of);
    if (w->gang_failed)
        ret[len++] = gang_reason(p, w);
    else if (w->spare_of != NONE && workload_is_stopping(p, w->workload))
        ret[len++] = plain_reason(REASON_STOPPING);
    else if (w->spare_of != NONE && !p->gang_stands[w->spare_of])
        ret[len++] = plain_reason(REASON_SPARE);
    len += reservation_reasons(p, w, ret + len);
    if (p->c.len == 0 && len == 0)
        ret[len++] = plain_reason(REASON_NO_NODES);
    return len;
}

/* ---- one demand ------------------------------------------------------------------------------------------------- */

/* Returns the verdicts of filters on nodes; computed once per class where the class alone decides. Reservations and
 * windows are left out: they are reported for each demand. */
static const struct explanation *explain_nodes(struct berth_plan *p, const struct demand *w)
{
    uint32_t class = w->class.v;
    if (!p->explained)
        p->explained = ARENA_ARRAY(&p->arena, const struct explanation *, p->s->classes.len + 1);

    bool shared = attempt_is_class_wide(&p->c, demand_attempt_spec(w));
    if (shared && p->explained[class])
        return p->explained[class];

    struct filter_report q;
    struct explanation *e = ARENA_NEW(&p->arena, struct explanation);
    filter_report_begin(&q, p, w);
    *e = (struct explanation){.reasons = rows_of(&q), .len = q.len};
    e->never = q.len && q.at[0].never;
    if (p->policy.windows_len)
        e->refused = arena_dup(&p->arena, q.any, (p->c.blocks + 1) * sizeof *q.any);
    if (shared)
        p->explained[class] = e;
    filter_report_end(&q);
    return e;
}

/* Returns whether the reason is a window over nodes that other filters refuse anyway, so that the window makes no
 * difference. */
static bool is_redundant_window(const struct berth_plan *p, const struct explanation *nodes,
                                const struct berth_reason *r)
{
    if (r->reason != reasons[REASON_WINDOW].word)
        return false;
    for (uint32_t i = 0; i < p->c.reservation_state->windows_len; i++) {
        const struct resolved_window *w = &p->c.reservation_state->windows[i];
        if (w->id != r->what)
            continue;
        assert(nodes->refused); /* because the policy has windows */
        for (uint32_t b = 0; b < p->c.blocks; b++)
            if (w->nodes[b] & ~nodes->refused[b])
                return false;
    }
    return true;
}

const struct explanation *explain(struct berth_plan *p, const struct demand *w)
{
    struct berth_reason extra[EXTRA_MAX];
    uint32_t len = extra_reasons(p, w, extra), first = 0;
    const struct explanation *nodes = explain_nodes(p, w);
    if (len == 0)
        return nodes;
    struct berth_reason *rows = ARENA_ARRAY(&p->arena, struct berth_reason, len + nodes->len);
    size_t at = 0;
    if (nodes->never)
        rows[at++] = nodes->reasons[first++];
    for (uint32_t i = 0; i < len; i++)
        if (!is_redundant_window(p, nodes, &extra[i]))
            rows[at++] = extra[i];
    for (size_t i = first; i < nodes->len; i++)
        rows[at++] = nodes->reasons[i];
    for (uint32_t i = 0; i < len; i++)
        if (is_redundant_window(p, nodes, &extra[i]))
            rows[at++] = extra[i];
    struct explanation *e = ARENA_NEW(&p->arena, struct explanation);
    *e = (struct explanation){.reasons = rows, .len = at, .never = nodes->never};
    return e;
}

/* ---- the nearest nodes ------------------------------------------------------------------------------------------ */

/* How far a node is from accepting a pod. */
struct node_shortfall {
    uint32_t position, reasons;
    int64_t share; /* largest missing part of a needed resource, in millionths */
};

static int64_t free_at(const struct filter_report *q, const struct filter_verdict *v, uint32_t position)
{
    const int64_t *column = cycle_column(&q->p->c, q->t.k->needs[v->aspect].resource, false);
    return column && column[position] > 0 ? column[position] : 0;
}

static struct node_shortfall node_shortfall_of(const struct filter_report *q, uint32_t position)
{
    struct node_shortfall m = {.position = position};
    for (const struct filter_verdict *v = q->at; v < q->at + q->len; v++) {
        if (!bits_has(v->refused, position))
            continue;
        m.reasons++;
        if (v->filter->reason != REASON_SHORT)
            continue;
        int64_t need = need_of(q, v), share = (int64_t)((__int128)(need - free_at(q, v, position)) * 1000000 / need);
        m.share = share > m.share ? share : m.share;
    }
    return m;
}

static bool is_nearer(const struct node_shortfall *a, const struct node_shortfall *b)
{
    if (a->reasons != b->reasons)
        return a->reasons < b->reasons;
    return a->share != b->share ? a->share < b->share : a->position < b->position;
}

static const char *node_shortfall_text(const struct filter_report *q, uint32_t position)
{
    struct arena *a = &q->p->arena;
    CLEANUP(str) struct str s = {0};
    for (const struct filter_verdict *v = q->at; v < q->at + q->len; v++) {
        if (!bits_has(v->refused, position))
            continue;
        const char *what =
            v->filter->reason == REASON_TAINT ? snapshot_text(q->p->s, explain_taint(q, position)) : v->what;
        str_add(&s, s.len ? "; " : "");
        if (v->filter->reason == REASON_SHORT)
            str_addf(&s, "has %s of %s free, %s needed", explain_amount(a, what, free_at(q, v, position), false), what,
                     explain_amount(a, what, need_of(q, v), true));
        else
            str_addf(&s, "%s%s%s", verb(reasons[v->filter->reason].sentence, true, a), *what ? ": " : "", what);
    }
    return arena_strdup(a, str_text(&s));
}

size_t explain_nearest(struct berth_plan *p, const struct demand *w, struct berth_near_miss *ret, size_t cap)
{
    struct filter_report q;
    size_t len = 0;
    filter_report_begin(&q, p, w);
    struct node_shortfall *best = ARENA_ARRAY(&p->scratch, struct node_shortfall, cap + 1);
    for (uint32_t at = 0; at < p->c.len; at++) {
        struct node_shortfall m = node_shortfall_of(&q, at);
        size_t k = len;
        for (; m.reasons && k > 0 && is_nearer(&m, &best[k - 1]); k--)
            best[k] = best[k - 1];
        if (m.reasons)
            best[k] = m;
        len += m.reasons && len < cap;
    }
    for (size_t i = 0; i < len; i++)
        ret[i] = (struct berth_near_miss){node_name(&q, best[i].position), node_shortfall_text(&q, best[i].position),
                                          best[i].reasons};
    filter_report_end(&q);
    return len;
}
