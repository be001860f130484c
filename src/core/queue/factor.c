/* factor.c - the factors: properties of a waiting workload, each as a number from 0 to a million. */
#include "core/queue/factor.h"

#include <string.h>

#include "base/math.h"

#define SECOND_NS ((int64_t)1000000000)
#define WEEK_NS (7 * 86400 * SECOND_NS)
#define HOUR_NS (3600 * SECOND_NS)
#define LONG_S (30.0 * 86400) /* the upper end of the time scale */

enum { LEVEL_MAX = 100, URGENCY_MAX = 1000, HALF = MILLION / 2 };

static const double PARAMETERS_MAX = 1e12; /* the upper end of the scale of parameter counts */

/* ---- rows ------------------------------------------------------------------------------------------------------- */

struct rank_row row_of(struct ranks *r, uint32_t workload)
{
    static const struct claim silent;
    const struct claim *t = snapshot_claim(r->s, workload);
    return (struct rank_row){workload, NONE, snapshot_workload(r->s, workload), t ? t : &silent};
}

int64_t row_estimate_ns(const struct ranks *r, const struct rank_row *row)
{
    if (row->t->estimate_ns)
        return row->t->estimate_ns;
    if (row->t->limit_ns)
        return row->t->limit_ns;
    return r->estimate_ns ? r->estimate_ns : HOUR_NS;
}

int64_t row_waited_s(const struct ranks *r, const struct rank_row *row)
{
    int64_t waited;
    if (__builtin_sub_overflow(r->now_ns, row->w->created_ns, &waited) || waited < 0)
        return 0;
    return waited / SECOND_NS;
}

int64_t ranks_total(struct ranks *r, uint32_t resource)
{
    const struct layout *l = r->s->layout;
    if (resource == QUOTA_GPU)
        return (int64_t)l->device[l->len] * BERTH_GPU_MILLI;
    if (resource >= l->resources || !l->capacity[resource])
        return 0;
    if (r->totals[resource] < 0) {
        int64_t sum = 0;
        for (uint32_t at = 0; at < l->len; at++)
            if (__builtin_add_overflow(sum, l->capacity[resource][at], &sum))
                sum = INT64_MAX;
        r->totals[resource] = sum;
    }
    return r->totals[resource];
}

double ranks_share(struct ranks *r, uint32_t resource, int64_t amount)
{
    int64_t total = ranks_total(r, resource);
    return total > 0 && amount > 0 ? (double)amount / (double)total : 0;
}

/* Returns the extent of one pod of the class. */
static struct demand_size class_extent(struct ranks *r, struct class_ix k)
{
    if (!r->classes)
        r->classes = ARENA_ARRAY(&r->p->arena, struct demand_size, r->s->classes.len + 1);
    struct demand_size *e = &r->classes[k.v];
    if (e->known)
        return *e;
    const struct class *class = snapshot_class(r->s, k);
    int64_t gpus = quota_need(class, QUOTA_GPU);
    *e = (struct demand_size){.pods = 1, .known = true, .share = ranks_share(r, QUOTA_GPU, gpus)};
    e->size = (double)(gpus ? gpus : class_need(class, RESOURCE_CPU)) / 1000;
    for (uint32_t i = 0; i < class->needs_len; i++) {
        double share = ranks_share(r, class->needs[i].resource, class->needs[i].amount);
        e->share = share > e->share ? share : e->share;
    }
    return *e;
}

static uint32_t gang_pods(const struct workload *w)
{
    return w->gang_min ? w->gang_min : w->replicas;
}

/* Returns the dominant share of a gang's minimum; the needs of its roles are summed for each resource. */
static double gang_share(struct ranks *r, const struct gang *g)
{
    double shares[8] = {0}, most = 0;
    uint32_t resources[8], len = 0;
    for (uint32_t at = g->first; at != NONE; at = snapshot_workload(r->s, at)->next_in_gang) {
        const struct workload *w = snapshot_workload(r->s, at);
        const struct class *k = snapshot_class(r->s, w->class);
        for (uint32_t i = 0; i <= k->needs_len; i++) {
            uint32_t resource = i < k->needs_len ? k->needs[i].resource : QUOTA_GPU, n = 0;
            while (n < len && resources[n] != resource)
                n++;
            if (n == len && len == sizeof shares / sizeof *shares)
                continue; /* resources beyond the first eight kinds are ignored */
            if (n == len)
                resources[len++] = resource;
            shares[n] += gang_pods(w) * ranks_share(r, resource, quota_need(k, resource));
            most = shares[n] > most ? shares[n] : most;
        }
    }
    return most;
}

static struct demand_size gang_extent(struct ranks *r, uint32_t gang)
{
    if (!r->gangs)
        r->gangs = ARENA_ARRAY(&r->p->arena, struct demand_size, r->s->gangs.len + 1);
    struct demand_size *e = &r->gangs[gang];
    const struct gang *g = pages_at(&r->s->gangs, gang);
    if (e->known)
        return *e;
    *e = (struct demand_size){.known = true, .share = gang_share(r, g)};
    for (uint32_t at = g->first; at != NONE; at = snapshot_workload(r->s, at)->next_in_gang) {
        const struct workload *w = snapshot_workload(r->s, at);
        e->pods += gang_pods(w);
        e->size += gang_pods(w) * class_extent(r, w->class).size;
    }
    return *e;
}

struct demand_size row_extent(struct ranks *r, const struct rank_row *row)
{
    return row->w->gang == NONE ? class_extent(r, row->w->class) : gang_extent(r, row->w->gang);
}

/* ---- scales ----------------------------------------------------------------------------------------------------- */

static int32_t clamp(double x)
{
    return x >= 1 ? MILLION : x > 0 ? (int32_t)(x * MILLION) : 0;
}

/* Caches logarithms: values repeat, since times and sizes are mostly round numbers. */
static double log2_cached(struct ranks *r, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    struct rank_log_cache *l = &r->logs[(bits * 0x9e3779b97f4a7c15u) >> 54];
    if (l->x != x)
        *l = (struct rank_log_cache){x, math_log2(x)};
    return l->log2;
}

/* Maps 1 to 0 and `most` to a million, by the logarithm. */
static int32_t log_scale(struct ranks *r, double x, double most)
{
    return x > 1 ? clamp(log2_cached(r, x) / log2_cached(r, most)) : 0;
}

static int32_t time_scale(struct ranks *r, int64_t ns)
{
    int64_t whole_s = ns / SECOND_NS;
    return log_scale(r, (double)whole_s, LONG_S);
}

/* ---- factors ---------------------------------------------------------------------------------------------------- */

static int32_t age(struct ranks *r, const struct rank_row *row)
{
    int64_t full_ns = r->order.age_ns ? r->order.age_ns : WEEK_NS;
    return clamp((double)row_waited_s(r, row) * SECOND_NS / (double)full_ns);
}

static int32_t size(struct ranks *r, const struct rank_row *row)
{
    return clamp(row_extent(r, row).share);
}

static int32_t priority(struct ranks *r, const struct rank_row *row)
{
    (void)r;
    return (row->t->urgency + URGENCY_MAX) * (MILLION / (2 * URGENCY_MAX));
}

static int32_t user_level(struct ranks *r, const struct rank_row *row)
{
    (void)r;
    return row->t->user_level * (MILLION / LEVEL_MAX);
}

static int32_t group_level(struct ranks *r, const struct rank_row *row)
{
    (void)r;
    return row->t->group_level * (MILLION / LEVEL_MAX);
}

static int32_t queue(struct ranks *r, const struct rank_row *row)
{
    int64_t low = r->queue_low, range = r->queue_high - low;
    int64_t at = row->queue == NONE ? 0 : r->order.queues[row->queue].priority;
    return range == 0 ? HALF : (int32_t)((at - low) * MILLION / range);
}

static int32_t fair_share(struct ranks *r, const struct rank_row *row)
{
    if (row->t->quotas_len == 0)
        return HALF;
    if (!r->fair)
        fair_make(r);
    return r->fair[row->t->quotas[0]];
}

static int32_t run_time(struct ranks *r, const struct rank_row *row)
{
    return time_scale(r, row_estimate_ns(r, row));
}

static int32_t requested_time(struct ranks *r, const struct rank_row *row)
{
    return row->t->limit_ns ? time_scale(r, row->t->limit_ns) : MILLION;
}

static int32_t deadline(struct ranks *r, const struct rank_row *row)
{
    int64_t left;
    if (row->t->deadline_ns == 0)
        return 0;
    if (__builtin_sub_overflow(row->t->deadline_ns, r->now_ns, &left) || left <= 0)
        return MILLION;
    return clamp((double)row_estimate_ns(r, row) / (double)left);
}

static int32_t parameters(struct ranks *r, const struct rank_row *row)
{
    return log_scale(r, (double)row->t->parameters, PARAMETERS_MAX);
}

static int32_t attained(struct ranks *r, const struct rank_row *row)
{
    return time_scale(r, row->t->attained_ns);
}

static int32_t load(struct ranks *r, const struct rank_row *row)
{
    (void)row;
    double most = 0;
    if (r->load >= 0)
        return r->load;
    if (!r->admitted)
        account_usage_make(r);
    for (uint32_t i = 0; i < LOADS; i++) {
        double share = ranks_share(r, loads[i], r->admitted->asked[i]);
        most = share > most ? share : most;
    }
    r->load = clamp(most / (1 + most));
    return r->load;
}

static int32_t interference(struct ranks *r, const struct rank_row *row)
{
    (void)r;
    return row->t->interference < MILLION ? row->t->interference : MILLION;
}

static int32_t account_dominant(struct ranks *r, const struct quota *q)
{
    double most = 0;
    for (size_t i = 0; i < q->books.len; i++) {
        double share = ranks_share(r, q->books.at[i].resource, q->books.at[i].asked);
        most = share > most ? share : most;
    }
    return clamp(most);
}

static int32_t dominant(struct ranks *r, const struct rank_row *row)
{
    if (row->t->quotas_len == 0)
        return size(r, row);
    if (!r->dominant)
        r->dominant = ARENA_ARRAY(&r->p->arena, int32_t, r->s->quotas_len + 1);
    int32_t *known = &r->dominant[row->t->quotas[0]];
    if (*known == 0)
        *known = 1 + account_dominant(r, &r->s->quotas[row->t->quotas[0]]);
    return *known - 1;
}

const struct factor factors[] = {
    {"age",          "waiting time; 1 after a week, or after the time that the policy sets",                true,  age           },
    {"size",         "the job's share of the cluster in its scarcest resource",                             false, size          },
    {"priority",     "the urgency set by the owner: -1000 is 0, 0 is 0.5, 1000 is 1",                       false, priority      },
    {"user_level",   "the level of the owner, 0 to 100",                                                    false, user_level    },
    {"group_level",  "the level of the owner's group, 0 to 100",                                            false, group_level   },
    {"queue",        "the priority of the queue, from the lowest (0) to the highest (1) that exists",       false, queue         },
    {"fair_share",   "the fair-share position of the account: 1 is the most underserved, near 0 the least", true,
     fair_share                                                                                                                  },
    {"time",         "the expected run time, logarithmic: 0 is a second, 1 is 30 days",                     false, run_time      },
    {"asked_time",   "the time limit, logarithmic: 0 is a second, 1 is 30 days or no limit",                false, requested_time},
    {"deadline",     "the run time as a share of the time left until the deadline; 0 without a deadline",   true,  deadline      },
    {"parameters",   "the number of model parameters, logarithmic: 0 is one or none, 1 is a trillion",      false, parameters    },
    {"attained",     "the run time of earlier attempts, logarithmic: 0 is a second, 1 is 30 days",          false, attained      },
    {"load",         "the total demand of admitted work relative to the capacity; 0.5 if they are equal",   false, load          },
    {"interference", "the slowdown that the job and its neighbours cause each other; 0 if unknown",         false,
     interference                                                                                                                },
    {"dominant",     "the share of the cluster that all admitted work of the account requests",             false, dominant      },
};
const uint32_t factors_len = sizeof factors / sizeof *factors;
_Static_assert(sizeof factors / sizeof *factors <= FACTORS_MAX, "rank.h promises room for so many");

uint32_t factor_find(const char *name)
{
    for (uint32_t i = 0; i < factors_len; i++)
        if (strcmp(factors[i].name, name) == 0)
            return i;
    return NONE;
}

const char *berth_factor_at(size_t i, const char **ret_sentence)
{
    if (i >= factors_len)
        return NULL;
    if (ret_sentence)
        *ret_sentence = factors[i].sentence;
    return factors[i].name;
}
