#include "kube/sched/stuck_pods.h"

#include "kube/client/clock.h"

void stuck_pods_done(struct stuck_pods *s)
{
    vec_done(&s->pods);
}

int64_t stuck_pods_add(struct stuck_pods *s, uint64_t instance, int64_t now_ns)
{
    struct stuck_pod *pod = NULL;
    for (size_t i = 0; i < s->pods.len; i++)
        if (s->pods.at[i].instance == instance)
            pod = &s->pods.at[i];
    if (!pod) {
        vec_push(&s->pods, ((struct stuck_pod){.instance = instance}));
        pod = &s->pods.at[s->pods.len - 1];
    }
    pod->until_ns = now_ns + kube_pause_ns(pod->failures++);
    return pod->until_ns;
}

static void undo(const struct stuck_pods *s, uint64_t instance)
{
    struct cache_pod_view pod;
    uint64_t waiter;
    cache_set_stopping(s->cache, instance, false);
    if (cache_pod_by_instance(s->cache, instance, &pod) && pod.stopping)
        return; /* deleted otherwise, or only the answer was lost */
    while ((waiter = cache_reservation_waiting_for(s->cache, instance)) &&
           cache_pod_by_instance(s->cache, waiter, &pod)) {
        if (s->gives_back)
            s->gives_back(s->ctx, &pod);
        cache_forget_pod(s->cache, waiter, 0);
    }
}

int64_t stuck_pods_check(struct stuck_pods *s, int64_t now_ns)
{
    int64_t next_ns = INT64_MAX;
    size_t left = 0;
    for (size_t i = 0; i < s->pods.len; i++) {
        struct stuck_pod stuck = s->pods.at[i];
        struct cache_pod_view pod;
        if (!cache_pod_by_instance(s->cache, stuck.instance, &pod))
            continue; /* the pod is gone after all */
        if (stuck.until_ns <= now_ns) {
            undo(s, stuck.instance);
            stuck.until_ns = INT64_MAX;
        }
        next_ns = stuck.until_ns < next_ns ? stuck.until_ns : next_ns;
        s->pods.at[left++] = stuck;
    }
    s->pods.len = left;
    return next_ns;
}
