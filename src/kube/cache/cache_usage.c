/* cache_usage.c - which user, group or queue each running pod is charged to, since when, and for which resources.
 *
 * Usage of ended pods is reported to the tenants, which keep the usage records (kube/tenant/tenant.h). These reports
 * are no inputs of the cache: the tenants record what follows from them.
 */
#include "base/hash.h"
#include "kube/cache/cache_internal.h"

/* ---- payers ----------------------------------------------------------------------------------------------------- */

static bool payer_same(const void *ctx, uint32_t value, const void *key)
{
    const struct payer *a = &((const struct cache *)ctx)->payers.at[value], *b = key;
    return a->user == b->user && a->group == b->group && a->queue == b->queue;
}

static sym named(struct cache *p, const char *quota, const char *prefix)
{
    size_t len = strlen(prefix);
    return strncmp(quota, prefix, len) == 0 ? intern_put(&p->names, quota + len) : 0;
}

uint32_t usage_payer_of(struct cache *p, const struct berth_workload *w)
{
    struct payer of = {0};
    for (size_t i = 0; i < w->quotas_len; i++) {
        sym user = named(p, w->quotas[i], "user/"), group = named(p, w->quotas[i], "group/");
        sym queue = named(p, w->quotas[i], "queue/");
        of.user = user ? user : of.user;
        of.group = group ? group : of.group;
        of.queue = queue ? queue : of.queue;
    }
    if (!of.user && !of.group && !of.queue)
        return 0;
    uint64_t hash = hash_u64((uint64_t)of.user << 32 ^ (uint64_t)of.group << 16 ^ of.queue);
    uint32_t i = map_find(&p->payers_by_names, hash, payer_same, p, &of);
    if (i != MAP_NONE)
        return i + 1;
    map_add(&p->payers_by_names, hash, (uint32_t)p->payers.len);
    vec_push(&p->payers, of);
    return (uint32_t)p->payers.len;
}

/* Returns the payer of a pod; a task has its role's. If the role is not in the cache yet (right after a start, until
 * the API server answered the dry run of its pod), asks the job. Only if tenants are in use already: a claim would put
 * them in use, and this claim is not recorded. */
static uint32_t payer_of(struct cache *p, const struct pod_entry *e)
{
    if (!e->task)
        return e->payer;
    uint32_t role = pod_find(p, e->task->role);
    bool mine = role != NONE && p->pods.at[role].job && strcmp(p->pods.at[role].job->owner, e->task->owner) == 0;
    if (mine && p->pods.at[role].payer)
        return p->pods.at[role].payer;
    if (e->payer || (role != NONE && !mine) || !p->config.claim || !tenants_in_use(p->config.tenants))
        return e->payer;
    struct berth_workload w = {.id = e->task->role};
    (void)p->config.claim(p->config.ctx, e->task->role, &p->arena, &w);
    return usage_payer_of(p, &w);
}

static void payer_keep(void *ctx, const struct berth_instance_view *i)
{
    struct cache *p = ctx;
    uint32_t pod = pod_by_instance(p, i->id);
    if (pod != NONE)
        p->pods.at[pod].payer = payer_of(p, &p->pods.at[pod]);
}

void usage_role_removed(struct cache *p, uint32_t role)
{
    if (p->config.tenants)
        berth_instances(p->cluster, p->pods.at[role].id, payer_keep, p);
}

/* ---- running pods ----------------------------------------------------------------------------------------------- */

static bool runs(const struct pod_entry *e)
{
    return e->id && !e->job && e->state == POD_BOUND && e->instance;
}

static struct tenant_run run_of(const struct cache *p, const struct pod_entry *e, uint32_t payer,
                                const struct kube_amounts *holds)
{
    const struct payer *of = &p->payers.at[payer - 1];
    return (struct tenant_run){.user = intern_text(&p->names, of->user),
                               .group = intern_text(&p->names, of->group),
                               .queue = intern_text(&p->names, of->queue),
                               .begin_ns = pod_began_ns(e),
                               .amounts = holds->at,
                               .amounts_len = holds->len};
}

void usage_pod_ended(struct cache *p, uint32_t pod)
{
    const struct pod_entry *e = &p->pods.at[pod];
    uint32_t payer = p->config.tenants && runs(e) ? payer_of(p, e) : 0;
    if (!payer)
        return;
    struct kube_pod from = pod_read(p, pod);
    struct tenant_run run = run_of(p, &p->pods.at[pod], payer, &from.requests);
    tenants_work_ended(p->config.tenants, &run);
}

void cache_running_pods(void *of, void (*tell)(void *ctx, const struct tenant_run *run), void *ctx)
{
    struct cache *p = of;
    struct arena_mark mark = arena_mark(&p->arena);
    struct kube_amounts *holds = ARENA_ARRAY(&p->arena, struct kube_amounts, p->templates.len);
    for (uint32_t i = 0; i < p->pods.len; i++) {
        uint32_t payer = runs(&p->pods.at[i]) ? payer_of(p, &p->pods.at[i]) : 0;
        if (!payer)
            continue;
        const struct pod_entry *e = &p->pods.at[i];
        if (!holds[e->template].at) /* pods of one template have equal requests */
            holds[e->template] = pod_read(p, i).requests;
        struct tenant_run run = run_of(p, e, payer, &holds[e->template]);
        tell(ctx, &run);
    }
    arena_rewind(&p->arena, mark);
}

void usage_done(struct cache *p)
{
    vec_done(&p->payers);
    map_done(&p->payers_by_names);
}
