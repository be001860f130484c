/* explain.c - why a pod was left over: every filter alone, with counts, and the smallest change that would help.
 *
 * Asked after the plan, of the state the plan leaves. One look per class where the class decides.
 */
#include <assert.h>
#include <string.h>

#include "base/bits.h"
#include "base/hash.h"
#include "base/str.h"
#include "core/allot.h"
#include "core/filter/filters.h"
#include "core/future.h"
#include "core/plan.h"
#include "core/turn.h"

/* One reason to refuse: a filter, or one aspect of it. */
struct verdict {
    const struct filter *filter;
    const char *what;
    uint32_t aspect;
    const uint64_t *refused; /* positions */
    uint64_t nodes, only;
};

/* What a filter refuses that the rules alone decide. */
struct heard {
    const uint64_t *refused; /* NULL: not heard yet */
    uint64_t nodes;
};

struct inquest {
    struct berth_plan *p;
    struct turn t;
    struct verdict *at;
    uint32_t len;
    uint64_t *once; /* positions with one verdict against them, and no more */
};

/* ---- amounts in words ------------------------------------------------------------------------------------------- */

/* cpu in cores or thousandths; sizes in the largest binary unit they fill, with one decimal rounded up or down, so that
 * what is needed and what is there never look the same; everything else as it is. */
static const char *amount_text(struct arena *a, const char *resource, int64_t amount, bool up)
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

/* ---- hearing ---------------------------------------------------------------------------------------------------- */

/* What the filter refuses, in `a`. */
static struct heard refusals(struct inquest *q, const struct filter *f, uint32_t aspect, struct arena *a)
{
    struct cycle *c = &q->p->c;
    uint64_t *bits = arena_alloc(a, (c->blocks + 1) * sizeof *bits);

    for (uint32_t b = 0; b < c->blocks; b++)
        bits[b] = layout_block_bits(c->l, b);
    if (f->aspects)
        f->mask_aspect(&q->t, aspect, (struct range){0, c->blocks}, bits);
    else
        f->mask(&q->t, (struct range){0, c->blocks}, bits);
    for (uint32_t b = 0; b < c->blocks; b++)
        bits[b] = ~bits[b] & layout_block_bits(c->l, b);
    return (struct heard){bits, bits_count(bits, c->blocks)};
}

/* The same for all classes of the same rules: heard once. */
static struct heard refusals_by_rules(struct inquest *q, size_t filter)
{
    struct berth_plan *p = q->p;
    uint32_t rules = q->t.k->rules.v;
    if (!p->heard)
        p->heard = ARENA_ARRAY(&p->arena, struct heard *, p->s->rules.len + 1);
    if (!p->heard[rules])
        p->heard[rules] = ARENA_ARRAY(&p->arena, struct heard, filters_len);
    struct heard *h = &p->heard[rules][filter];
    if (!h->refused)
        *h = refusals(q, filter_rows[filter], 0, &p->arena);
    return *h;
}

static void hear(struct inquest *q, size_t filter, uint32_t aspect)
{
    const struct filter *f = filter_rows[filter];
    bool shared = !f->aspects && (f->when == FILTER_STATIC || f->by_rules);
    struct heard h = shared ? refusals_by_rules(q, filter) : refusals(q, f, aspect, &q->p->scratch);
    if (h.nodes == 0)
        return;
    q->at[q->len++] = (struct verdict){.filter = f,
                                       .what = f->aspects ? f->aspect_name(&q->t, aspect) : "",
                                       .aspect = aspect,
                                       .refused = h.refused,
                                       .nodes = h.nodes};
}

/* Who is refused by one verdict alone, and how many each of them refuses so. */
static void count_only(struct inquest *q)
{
    uint32_t blocks = q->p->c.blocks;
    q->once = arena_alloc(&q->p->scratch, (blocks + 1) * sizeof *q->once);
    for (uint32_t b = 0; b < blocks; b++) {
        uint64_t any = 0, more = 0;
        for (uint32_t i = 0; i < q->len; i++) {
            more |= any & q->at[i].refused[b];
            any |= q->at[i].refused[b];
        }
        q->once[b] = any & ~more;
        for (uint32_t i = 0; i < q->len; i++)
            q->at[i].only += (uint64_t)__builtin_popcountll(q->at[i].refused[b] & q->once[b]);
    }
}

static void hear_all(struct inquest *q)
{
    struct cycle *c = &q->p->c;
    uint32_t most = 0;
    for (size_t f = 0; f < filters_len; f++)
        most += filter_rows[f]->aspects && filter_rows[f]->applies(&q->t) ? filter_rows[f]->aspects(&q->t) : 1;
    q->at = ARENA_ARRAY(&q->p->scratch, struct verdict, most + 1);
    for (size_t f = 0; f < filters_len; f++) {
        const struct filter *row = filter_rows[f];
        if (!(c->profile.filters >> f & 1) || row->timed || !row->applies(&q->t))
            continue;
        uint32_t aspects = row->aspects ? row->aspects(&q->t) : 1;
        for (uint32_t a = 0; a < aspects; a++)
            hear(q, f, a);
    }
    count_only(q);
}

/* ---- sentences -------------------------------------------------------------------------------------------------- */

static const char *nodes_text(const struct inquest *q, uint64_t nodes)
{
    uint32_t all = q->p->c.len;
    if (nodes == all)
        return arena_fmt(&q->p->arena, all == 1 ? "the only node" : "all %u nodes", all);
    return arena_fmt(&q->p->arena, "%llu of %u nodes", (unsigned long long)nodes, all);
}

static int64_t need_of(const struct inquest *q, const struct verdict *v)
{
    return q->t.k->needs[v->aspect].amount;
}

/* The most that any of them has free. */
static int64_t most_free(const struct inquest *q, const struct verdict *v)
{
    const int64_t *column = cycle_column(&q->p->c, q->t.k->needs[v->aspect].resource, false);
    int64_t most = 0;
    for (uint32_t b = 0; column && b < q->p->c.blocks; b++)
        BITS_EACH (lane, v->refused[b])
            most = column[b * BLOCK + lane] > most ? column[b * BLOCK + lane] : most;
    return most;
}

/* Sentences are of nodes; one node alone "has" where several "have". */
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

static const char *sentence(const struct inquest *q, const struct verdict *v)
{
    struct arena *a = &q->p->arena;
    const char *nodes = nodes_text(q, v->nodes);
    bool one = v->nodes == 1;
    const char *says = verb(reasons[v->filter->reason].sentence, one, a);

    if (v->filter->reason == REASON_SHORT)
        return arena_fmt(a, "%s %s too little %s left: %s needed, at most %s free", nodes, one ? "has" : "have",
                         v->what, amount_text(a, v->what, need_of(q, v), true),
                         amount_text(a, v->what, most_free(q, v), false));
    if (*v->what)
        return arena_fmt(a, "%s %s: %s", nodes, says, v->what);
    return arena_fmt(a, "%s %s", nodes, says);
}

/* ---- the smallest change ---------------------------------------------------------------------------------------- */

static const char *node_name(const struct inquest *q, uint32_t position)
{
    return snapshot_text(q->p->s, q->p->c.l->id[position]);
}

/* Among nodes that refuse only for this resource, the one that lacks least. */
static uint32_t nearest(const struct inquest *q, const struct verdict *v, int64_t *ret_free)
{
    const int64_t *column = cycle_column(&q->p->c, q->t.k->needs[v->aspect].resource, false);
    uint32_t best = NONE;
    for (uint32_t b = 0; column && b < q->p->c.blocks; b++)
        BITS_EACH (lane, v->refused[b] & q->once[b]) {
            uint32_t at = b * BLOCK + (uint32_t)lane;
            if (best == NONE || column[at] > *ret_free) {
                best = at;
                *ret_free = column[at];
            }
        }
    return best;
}

/* The resource of which the least would have to be given up, in proportion, to fit somewhere. */
static const struct verdict *smallest_cut(const struct inquest *q)
{
    const struct verdict *best = NULL;
    int64_t best_free = 0;
    for (const struct verdict *v = q->at; v < q->at + q->len; v++) {
        int64_t free = 0;
        if (v->filter->reason != REASON_SHORT || !v->only || nearest(q, v, &free) == NONE || free <= 0)
            continue;
        if (best && (__int128)free * need_of(q, best) <= (__int128)best_free * need_of(q, v))
            continue;
        best = v;
        best_free = free;
    }
    return best;
}

static const char *help_short(const struct inquest *q, const struct verdict *v)
{
    struct arena *a = &q->p->arena;
    int64_t free = 0;
    uint32_t at = nearest(q, v, &free);
    return arena_fmt(a, "asking for %s of %s instead of %s would fit on %s", amount_text(a, v->what, free, false),
                     v->what, amount_text(a, v->what, need_of(q, v), true), node_name(q, at));
}

/* The first taint of the node that is not tolerated; "": none. */
static const char *taint_at(const struct inquest *q, uint32_t position)
{
    const struct tolerations *tolerations = &snapshot_rules(q->p->s, q->t.k->rules)->tolerations;
    const struct node_body *body = q->p->c.l->body[position];
    for (uint32_t i = 0; i < body->taints_len; i++)
        if (body->taints[i].effect != BERTH_PREFER_NO_SCHEDULE && !taint_tolerated(&body->taints[i], tolerations))
            return snapshot_text(q->p->s, body->taints[i].key);
    return "";
}

/* The taint that keeps the first node away which refuses for nothing else. */
static const char *taint_name(const struct inquest *q, const struct verdict *v)
{
    for (uint32_t p = 0; p < q->p->c.len; p++)
        if (bits_has(q->once, p) && bits_has(v->refused, p))
            return taint_at(q, p);
    return "";
}

static const char *help_other(const struct inquest *q, const struct verdict *v)
{
    static const char *const changes[REASONS_LEN] = {
        [REASON_STATE] = "once ready again",
        [REASON_OVER] = "once they hold no more than they have",
        [REASON_PRESSURE] = "once less of their memory is in use",
        [REASON_TARGET] = "if it may move anywhere",
        [REASON_NAME] = "without the node's name",
        [REASON_LABELS] = "with other required labels",
        [REASON_DOMAIN] = "in another domain",
        [REASON_RUNTIME] = "with another runtime",
        [REASON_ARCH] = "for another architecture",
        [REASON_PAGE_SIZE] = "with another huge-page size",
        [REASON_GPU_KIND] = "with fewer GPUs, or of another model or memory",
        [REASON_GPU] = "with fewer GPUs, or once some are free",
        [REASON_PORT] = "with another port",
        [REASON_VOLUME] = "without the volume, or once it is free",
        [REASON_ATTACH] = "with fewer volumes",
        [REASON_SPREAD] = "with a larger skew",
        [REASON_AFFINITY] = "without the affinity",
        [REASON_ANTI_AFFINITY] = "without the anti-affinity",
        [REASON_PER_NODE] = "with more pods allowed per node",
        [REASON_HEADROOM] = "with a higher priority, or less headroom",
    };
    if (v->filter->reason == REASON_TAINT)
        return arena_fmt(&q->p->arena, "with a toleration of the taint %s, %s would take it", taint_name(q, v),
                         nodes_text(q, v->only));
    if (v->filter->reason == REASON_SHORT)
        return arena_fmt(&q->p->arena, "with less %s, %s would take it", v->what, nodes_text(q, v->only));
    return arena_fmt(&q->p->arena, "%s, %s would take it", changes[v->filter->reason], nodes_text(q, v->only));
}

/* Nothing helps alone: the node that refuses for the fewest reasons. */
static const char *help_several(const struct inquest *q)
{
    uint32_t best = NONE, fewest = UINT32_MAX;
    for (uint32_t p = 0; p < q->p->c.len; p++) {
        uint32_t count = 0;
        for (uint32_t i = 0; i < q->len; i++)
            count += bits_has(q->at[i].refused, p);
        if (count && count < fewest) {
            fewest = count;
            best = p;
        }
    }
    if (best == NONE)
        return "";
    CLEANUP(str) struct str s = {0};
    str_addf(&s, "nearest is %s, which refuses for:", node_name(q, best));
    for (uint32_t i = 0; i < q->len; i++)
        if (bits_has(q->at[i].refused, best))
            str_addf(&s, " %s%s%s%s", reasons[q->at[i].filter->reason].word, *q->at[i].what ? " (" : "", q->at[i].what,
                     *q->at[i].what ? ")" : "");
    return arena_strdup(&q->p->arena, str_text(&s));
}

static const char *help(const struct inquest *q)
{
    const struct verdict *best = smallest_cut(q);
    if (best)
        return help_short(q, best);
    for (uint32_t i = 0; i < q->len; i++)
        if (q->at[i].only && (!best || q->at[i].only > best->only))
            best = &q->at[i];
    return best ? help_other(q, best) : help_several(q);
}

/* ---- explanations ----------------------------------------------------------------------------------------------- */

static bool before(const struct verdict *a, const struct verdict *b)
{
    if (a->nodes != b->nodes)
        return a->nodes > b->nodes;
    if (a->filter->reason != b->filter->reason)
        return a->filter->reason < b->filter->reason;
    return strcmp(a->what, b->what) < 0;
}

static struct berth_reason *rows_of(struct inquest *q)
{
    for (uint32_t i = 1; i < q->len; i++) {
        struct verdict v = q->at[i];
        uint32_t j = i;
        for (; j > 0 && before(&v, &q->at[j - 1]); j--)
            q->at[j] = q->at[j - 1];
        q->at[j] = v;
    }
    struct berth_reason *rows = ARENA_ARRAY(&q->p->arena, struct berth_reason, q->len);
    for (uint32_t i = 0; i < q->len; i++) {
        const struct verdict *v = &q->at[i];
        rows[i] = (struct berth_reason){reasons[v->filter->reason].word, v->what, v->nodes, v->only, sentence(q, v)};
    }
    return rows;
}

/* What was told lately, by reason and numbers. */
struct told {
    enum reason reason;
    int64_t a, b;
    const char *text;
};

const char **told_text(struct berth_plan *p, enum reason reason, int64_t a, int64_t b)
{
    enum { TOLD = 1024 };
    if (!p->told)
        p->told = ARENA_ARRAY(&p->arena, struct told, TOLD);
    struct told *at = &p->told[hash_pair((uint64_t)a * REASONS_LEN + reason, (uint64_t)b) % TOLD];
    if (at->text && (at->reason != reason || at->a != a || at->b != b))
        at->text = NULL; /* of others, whose text stays where it is */
    at->reason = reason;
    at->a = a;
    at->b = b;
    return &at->text;
}

static struct berth_reason gang_reason(struct berth_plan *p, const struct wish *w)
{
    if (w->blocked)
        return (struct berth_reason){reasons[REASON_STOPPING].word, "", 0, 0,
                                     "earlier instances of the gang are still stopping"};
    const char **text = told_text(p, REASON_GANG, w->gang_needs, w->gang_fits);
    if (!*text)
        *text =
            arena_fmt(&p->arena, "the gang needs %u pods placed at once; %u found room", w->gang_needs, w->gang_fits);
    return (struct berth_reason){reasons[REASON_GANG].word, "", 0, 0, *text};
}

/* ---- reasons that are not of nodes ------------------------------------------------------------------------------ */

static const char *quota_amount_text(struct berth_plan *p, uint32_t resource, int64_t amount)
{
    if (resource == QUOTA_GPU)
        return amount_text(&p->arena, "cpu", amount, false); /* thousandths, too */
    return amount_text(&p->arena, resource == QUOTA_JOBS ? "" : snapshot_text(p->s, p->s->resources[resource].name),
                       amount, false);
}

static struct berth_reason quota_reason(struct berth_plan *p, const struct allot_short *q)
{
    const char *resource = q->resource == QUOTA_GPU    ? "gpu"
                           : q->resource == QUOTA_JOBS ? "jobs"
                                                       : snapshot_text(p->s, p->s->resources[q->resource].name);
    const char *name = snapshot_text(p->s, p->s->quotas[q->quota].id);
    int64_t unit = q->resource == QUOTA_GPU || q->resource == RESOURCE_CPU ? 1000 : 1;
    const char *text =
        q->total ? arena_fmt(&p->arena, "the quota %s has %lld of %lld %s-hours used or promised in this period", name,
                             (long long)(q->held / 3600 / unit), (long long)(q->limit / 3600 / unit), resource)
                 : arena_fmt(&p->arena, "the quota %s has %s of %s %s in use or promised; %s needed", name,
                             quota_amount_text(p, q->resource, q->held), quota_amount_text(p, q->resource, q->limit),
                             resource, quota_amount_text(p, q->resource, q->need));
    return (struct berth_reason){reasons[q->total ? REASON_TOTAL : REASON_QUOTA].word,
                                 arena_fmt(&p->arena, "%s %s", name, resource), 0, 0, text};
}

static struct berth_reason plain_reason(enum reason r)
{
    return (struct berth_reason){reasons[r].word, "", 0, 0, reasons[r].sentence};
}

enum { EXTRA_MAX = 5 + FUTURE_WHYS_MAX };

static uint32_t extra_reasons(struct berth_plan *p, const struct wish *w, struct berth_reason ret[static EXTRA_MAX])
{
    uint32_t len = 0;
    struct allot_short short_of;
    if (w->behind)
        ret[len++] = plain_reason(REASON_BEHIND);
    if (w->over_budget)
        ret[len++] = plain_reason(REASON_STARTING);
    if (w->short_of_quota && allot_why(p, w->workload, snapshot_class(p->s, w->class), &short_of))
        ret[len++] = quota_reason(p, &short_of);
    if (w->gang_failed)
        ret[len++] = gang_reason(p, w);
    else if (w->spare_of != NONE && place_still_stops(p, w->workload))
        ret[len++] = plain_reason(REASON_STOPPING);
    else if (w->spare_of != NONE && !p->gang_stands[w->spare_of])
        ret[len++] = plain_reason(REASON_SPARE);
    len += future_why(p, w, ret + len);
    if (p->c.len == 0 && len == 0)
        ret[len++] = plain_reason(REASON_NO_NODES);
    return len;
}

/* ---- one wish --------------------------------------------------------------------------------------------------- */

/* What nodes say; where the class alone decides, once for all of it. Reservations and windows are left out: they are told by
 * the wish itself. */
static const struct explanation *explain_nodes(struct berth_plan *p, const struct wish *w)
{
    uint32_t class = w->class.v;
    if (!p->explained)
        p->explained = ARENA_ARRAY(&p->arena, const struct explanation *, p->s->classes.len + 1);

    bool shared = turn_alike(&p->c, wish_asker(w));
    if (shared && p->explained[class])
        return p->explained[class];

    struct arena_mark mark = arena_mark(&p->scratch);
    struct inquest q = {.p = p};
    struct explanation *e = ARENA_NEW(&p->arena, struct explanation);
    turn_begin(&q.t, &p->c, wish_asker(w), false);
    hear_all(&q);
    *e = (struct explanation){rows_of(&q), q.len, help(&q)};
    if (shared)
        p->explained[class] = e;
    turn_end(&q.t);
    arena_rewind(&p->scratch, mark);
    return e;
}

const struct explanation *explain(struct berth_plan *p, const struct wish *w)
{
    struct berth_reason extra[EXTRA_MAX];
    uint32_t len = extra_reasons(p, w, extra);
    const struct explanation *nodes = explain_nodes(p, w);
    if (len == 0)
        return nodes;
    struct berth_reason *rows = ARENA_ARRAY(&p->arena, struct berth_reason, len + nodes->len);
    for (uint32_t i = 0; i < len; i++)
        rows[i] = extra[i];
    for (size_t i = 0; i < nodes->len; i++)
        rows[len + i] = nodes->reasons[i];
    struct explanation *e = ARENA_NEW(&p->arena, struct explanation);
    *e = (struct explanation){rows, len + nodes->len, nodes->help};
    return e;
}

/* ---- the nearest nodes ------------------------------------------------------------------------------------------ */

/* How far a node is from taking a pod. */
struct miss {
    uint32_t position, reasons;
    int64_t share; /* millionths of what is needed that it lacks, of the resource of which it lacks most */
};

static int64_t free_at(const struct inquest *q, const struct verdict *v, uint32_t position)
{
    const int64_t *column = cycle_column(&q->p->c, q->t.k->needs[v->aspect].resource, false);
    return column && column[position] > 0 ? column[position] : 0;
}

static struct miss miss_of(const struct inquest *q, uint32_t position)
{
    struct miss m = {.position = position};
    for (const struct verdict *v = q->at; v < q->at + q->len; v++) {
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

static bool is_nearer(const struct miss *a, const struct miss *b)
{
    if (a->reasons != b->reasons)
        return a->reasons < b->reasons;
    return a->share != b->share ? a->share < b->share : a->position < b->position;
}

static const char *miss_text(const struct inquest *q, uint32_t position)
{
    struct arena *a = &q->p->arena;
    CLEANUP(str) struct str s = {0};
    for (const struct verdict *v = q->at; v < q->at + q->len; v++) {
        if (!bits_has(v->refused, position))
            continue;
        const char *what = v->filter->reason == REASON_TAINT ? taint_at(q, position) : v->what;
        str_add(&s, s.len ? "; " : "");
        if (v->filter->reason == REASON_SHORT)
            str_addf(&s, "has %s of %s free, %s needed", amount_text(a, what, free_at(q, v, position), false), what,
                     amount_text(a, what, need_of(q, v), true));
        else
            str_addf(&s, "%s%s%s", verb(reasons[v->filter->reason].sentence, true, a), *what ? ": " : "", what);
    }
    return arena_strdup(a, str_text(&s));
}

size_t explain_nearest(struct berth_plan *p, const struct wish *w, struct berth_miss *ret, size_t cap)
{
    struct arena_mark mark = arena_mark(&p->scratch);
    struct inquest q = {.p = p};
    size_t len = 0;
    turn_begin(&q.t, &p->c, wish_asker(w), false);
    hear_all(&q);
    struct miss *best = ARENA_ARRAY(&p->scratch, struct miss, cap + 1);
    for (uint32_t at = 0; at < p->c.len; at++) {
        struct miss m = miss_of(&q, at);
        size_t k = len;
        for (; m.reasons && k > 0 && is_nearer(&m, &best[k - 1]); k--)
            best[k] = best[k - 1];
        if (m.reasons)
            best[k] = m;
        len += m.reasons && len < cap;
    }
    for (size_t i = 0; i < len; i++)
        ret[i] = (struct berth_miss){node_name(&q, best[i].position), miss_text(&q, best[i].position), best[i].reasons};
    turn_end(&q.t);
    arena_rewind(&p->scratch, mark);
    return len;
}
