/* cache_assume.c - decisions about pods that the API server does not show yet, and queries about pods. */
#include "kube/cache/cache_internal.h"

/* ---- decisions -------------------------------------------------------------------------------------------------- */

static void gang_note(struct cache *p, uint32_t pod)
{
    if (p->pods.at[pod].gang != NONE)
        gang_changed(p, p->pods.at[pod].gang);
}

static uint64_t assume(struct cache *p, uint32_t pod, const char *node, uint64_t gpus, const uint64_t *waits,
                       size_t waits_len)
{
    struct pod_entry *e = &p->pods.at[pod];
    if (e->state != POD_WAITS || !e->there || e->gated || e->job || node_find(p, node) == NONE)
        return 0;
    struct kube_pod from = pod_read(p, pod);
    if (!volumes_choose(p, pod, &from, node)) {
        pod_exclude_node(p, pod, node);
        return 0;
    }
    e->state = waits_len ? POD_RESERVED : POD_ASSUMED;
    if (waits_len) {
        mem_free(e->wait->waits);
        e->wait->waits = mem_array(waits_len, sizeof *waits);
        memcpy(e->wait->waits, waits, waits_len * sizeof *waits);
        e->wait->waits_len = waits_len;
    } else {
        pod_refresh_now(p, pod, &from);
    }
    bool made = p->pods.at[pod].there && pod_instance_new(p, pod, node, gpus);
    if (!made) {
        p->pods.at[pod].state = POD_WAITS;
        volumes_forget(p, pod);
        pod_mark(p, pod);
    }
    gang_note(p, pod);
    return p->pods.at[pod].instance;
}

uint64_t cache_assume_pod(struct cache *p, const char *workload, const char *node, uint64_t gpus, const uint64_t *waits,
                          size_t waits_len)
{
    struct arena_mark mark = arena_mark(&p->arena);
    uint32_t pod = pod_find(p, workload);
    uint64_t instance = pod == NONE ? 0 : assume(p, pod, node, gpus, waits, waits_len);
    input_record(p, &(struct cache_change){
                        .op = CACHE_OP_ASSUME,
                        .id = workload,
                        .node = {node, strlen(node)},
                        .instance = instance,
                        .gpus = gpus,
                        .waits = waits,
                        .waits_len = waits_len
    });
    arena_rewind(&p->arena, mark);
    return instance;
}

bool cache_promote_pod(struct cache *p, uint64_t instance)
{
    struct arena_mark mark = arena_mark(&p->arena);
    uint32_t pod = pod_by_instance(p, instance);
    if (pod == NONE || p->pods.at[pod].state != POD_RESERVED)
        return false;
    input_record(p, &(struct cache_change){.op = CACHE_OP_PROMOTE, .instance = instance});
    struct pod_entry *e = &p->pods.at[pod];
    struct kube_pod from = pod_read(p, pod);
    e->state = POD_ASSUMED;
    bool ok = pod_instance_put(p, e, 0, NULL, NULL) == 0;
    if (ok) {
        pod_refresh_now(p, pod, &from);
        gang_note(p, pod);
    } else {
        e->state = POD_RESERVED;
    }
    arena_rewind(&p->arena, mark);
    return ok;
}

void cache_forget_pod(struct cache *p, uint64_t instance, int64_t not_before_ns)
{
    struct arena_mark mark = arena_mark(&p->arena);
    uint32_t pod = pod_by_instance(p, instance);
    if (pod == NONE || p->pods.at[pod].state == POD_BOUND)
        return;
    input_record(p, &(struct cache_change){.op = CACHE_OP_FORGET, .instance = instance, .moment_ns = not_before_ns});
    if (p->pods.at[pod].task) {
        pod_forget(p, pod); /* the task's pod was not created yet */
        arena_rewind(&p->arena, mark);
        return;
    }
    pod_instance_clear(p, pod);
    struct pod_entry *e = &p->pods.at[pod];
    e->wait->failures += e->state == POD_ASSUMED;
    e->wait->begin_ns = not_before_ns;
    e->state = POD_WAITS;
    e->stopping = false; /* a preemptor needs nothing from a pod without a node */
    volumes_forget(p, pod);
    pod_mark(p, pod);
    gang_note(p, pod);
    cache_notify(p); /* its node has room again, even if the pod was not marked */
    arena_rewind(&p->arena, mark);
}

static void stopping_set(struct cache *p, uint32_t pod, bool stopping)
{
    struct kube_pod from = pod_read(p, pod);
    if (!stopping && from.meta.deleted_ns)
        return; /* the pod is being deleted in any case */
    p->pods.at[pod].stopping = stopping;
    pod_refresh_now(p, pod, &from);
    gang_note(p, pod);
    cache_notify(p);
}

void cache_set_stopping(struct cache *p, uint64_t instance, bool stopping)
{
    struct arena_mark mark = arena_mark(&p->arena);
    uint32_t pod = pod_by_instance(p, instance);
    if (pod != NONE && p->pods.at[pod].stopping != stopping) {
        input_record(p, &(struct cache_change){.op = CACHE_OP_STOPPING, .instance = instance, .stopping = stopping});
        stopping_set(p, pod, stopping);
    }
    arena_rewind(&p->arena, mark);
}

uint64_t cache_reservation_waiting_for(const struct cache *p, uint64_t instance)
{
    for (size_t i = 0; i < p->pods.len; i++) {
        const struct pod_entry *e = &p->pods.at[i];
        for (size_t k = 0; e->id && e->state == POD_RESERVED && k < e->wait->waits_len; k++)
            if (e->wait->waits[k] == instance)
                return e->instance;
    }
    return 0;
}

void cache_note_message(struct cache *p, const char *workload, const char *text, int64_t now_ns)
{
    uint32_t pod = pod_find(p, workload);
    if (pod == NONE || !p->pods.at[pod].wait)
        return;
    input_record(p, &(struct cache_change){.op = CACHE_OP_REPORTED, .id = workload, .text = text, .moment_ns = now_ns});
    pod_text_set(&p->pods.at[pod].wait->told, text, strlen(text));
    p->pods.at[pod].wait->told_ns = now_ns;
}

/* ---- queries ---------------------------------------------------------------------------------------------------- */

static bool seen(const struct cache *p, uint32_t pod, struct cache_pod_view *ret)
{
    if (pod == NONE)
        return false;
    const struct pod_entry *e = &p->pods.at[pod];
    const struct pod_wait *w = e->wait;
    *ret = (struct cache_pod_view){.namespace = pod_namespace(p, e),
                                   .name = e->name,
                                   .uid = e->uid,
                                   .scheduler = e->scheduler ? e->scheduler : "",
                                   .node = e->node == NONE ? "" : p->nodes.at[e->node].name,
                                   .nominated = w && w->nominated ? w->nominated : "",
                                   .instance = e->instance,
                                   .ours = e->scheduler != NULL,
                                   .bound = e->state == POD_BOUND,
                                   .gated = e->gated,
                                   .told = w && w->told ? w->told : "",
                                   .told_ns = w ? w->told_ns : 0,
                                   .failures = w ? w->failures : 0,
                                   .role = e->task ? e->task->role : "",
                                   .owner = e->task ? e->task->owner : "",
                                   .ordinal = e->task ? e->task->ordinal : 0,
                                   .attempt = e->task ? e->task->attempt : 0,
                                   .stopping = e->stopping};
    return true;
}

bool cache_pod_find(const struct cache *p, const char *workload, struct cache_pod_view *ret)
{
    return seen(p, pod_find(p, workload), ret);
}

bool cache_pod_by_instance(const struct cache *p, uint64_t instance, struct cache_pod_view *ret)
{
    return seen(p, pod_by_instance(p, instance), ret);
}

size_t cache_claim_volumes(struct cache *p, uint64_t instance, struct cache_claim_volume *ret, size_t cap)
{
    uint32_t pod = pod_by_instance(p, instance);
    const struct pod_wait *w = pod == NONE ? NULL : p->pods.at[pod].wait;
    for (size_t i = 0; w && i < w->volumes_len && i < cap; i++)
        ret[i] = w->volumes[i];
    return w ? w->volumes_len : 0;
}

bool cache_claim_is_selected(struct cache *p, const struct cache_claim_volume *claim)
{
    struct arena_mark mark = arena_mark(&p->arena);
    struct kube_claim seen;
    bool selected = claim_find(p, claim->claim_namespace, claim->claim, &seen) && *seen.selected;
    arena_rewind(&p->arena, mark);
    return selected;
}

bool cache_volumes_are_bound(struct cache *p, uint64_t instance)
{
    struct arena_mark mark = arena_mark(&p->arena);
    uint32_t pod = pod_by_instance(p, instance);
    bool bound = pod != NONE && (!p->pods.at[pod].wait || volumes_are_bound(p, p->pods.at[pod].wait));
    arena_rewind(&p->arena, mark);
    return bound;
}

bool cache_volumes_are_reachable(struct cache *p, uint64_t instance)
{
    struct arena_mark mark = arena_mark(&p->arena);
    uint32_t pod = pod_by_instance(p, instance);
    bool reached = pod != NONE && volumes_are_reachable(p, &p->pods.at[pod]);
    arena_rewind(&p->arena, mark);
    return reached;
}

size_t cache_ephemeral_claims(struct cache *p, const char *workload, cache_claim_visitor *tell, void *ctx)
{
    struct arena_mark mark = arena_mark(&p->arena);
    uint32_t pod = pod_find(p, workload);
    size_t open = pod == NONE || p->pods.at[pod].job ? 0 : ephemeral_claims_visit(p, pod, tell, ctx);
    arena_rewind(&p->arena, mark);
    return open;
}
