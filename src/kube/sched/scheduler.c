#include "kube/sched/scheduler.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "kube/client/clock.h"
#include "kube/sched/plan_choice.h"
#include "kube/sched/policy.h"
#include "kube/sched/provision.h"
#include "kube/sched/stuck_pods.h"

#define SECOND_NS INT64_C(1000000000)
#define REPORT_NS (SECOND_NS / 2)        /* between two rounds of writing why pods are pending */
#define REPORT_AGAIN_NS (10 * SECOND_NS) /* minimum interval for one pod when its reasons change */

struct kube_scheduler {
    struct kube_scheduler_config c;
    struct kube_writer *binder, *pod_writer; /* bindings; victims, nominations and conditions */
    struct kube_provisioner *provisioner;
    struct stuck_pods stuck; /* in the loop's clock */
    struct loop_source *timer;
    struct kube_policy policy;
    int64_t due_ns;             /* when to plan next, in the loop's clock; INT64_MAX: never */
    int64_t plan_not_before_ns; /* not before this: planning takes at most a third of the time */
    int64_t told_ns;            /* last round of writing reasons, in the loop's clock */
    struct kube_scheduler_stats stats;
    struct kube_name_stats *names;           /* by scheduler name */
    struct kube_name_stats other_schedulers; /* for preempted pods of other schedulers */
    struct str text;
};

static struct kube_pod_ref ref_of(const struct cache_pod_view *pod)
{
    return (struct kube_pod_ref){.namespace = pod->namespace, .name = pod->name, .uid = pod->uid};
}

static void event_add(struct kube_scheduler *s, const struct cache_pod_view *pod, bool warning, const char *reason,
                      const char *action, const char *note)
{
    if (s->c.events)
        kube_events_add(s->c.events, &(struct kube_event){.controller = pod->scheduler[0] ? pod->scheduler : NULL,
                                                          .kind = "Pod",
                                                          .api_version = "v1",
                                                          .namespace = pod->namespace,
                                                          .name = pod->name,
                                                          .uid = pod->uid,
                                                          .warning = warning,
                                                          .reason = reason,
                                                          .action = action,
                                                          .note = note});
}

static struct kube_name_stats *stats_of(struct kube_scheduler *s, const struct cache_pod_view *pod)
{
    for (size_t i = 0; i < s->c.profiles->len; i++)
        if (strcmp(s->c.profiles->names[i], pod->scheduler) == 0)
            return &s->names[i];
    return &s->other_schedulers;
}

/* Requests a plan; the earliest request counts. */
static void request_plan(struct kube_scheduler *s, int64_t at_ns)
{
    if (at_ns < s->plan_not_before_ns)
        at_ns = s->plan_not_before_ns;
    if (at_ns >= s->due_ns)
        return;
    s->due_ns = at_ns;
    loop_timer_set(s->timer, at_ns);
}

/* Delays the next plan, including those requested while the last one was made. */
static void delay_plan(struct kube_scheduler *s, int64_t until_ns)
{
    int64_t due_ns = s->due_ns;
    s->plan_not_before_ns = until_ns;
    s->due_ns = INT64_MAX;
    if (due_ns != INT64_MAX)
        request_plan(s, due_ns);
}

/* ---- bindings --------------------------------------------------------------------------------------------------- */

static void on_bound(void *ctx, uint64_t instance, enum kube_write_result fate, const char *text)
{
    struct kube_scheduler *s = ctx;
    struct cache_pod_view pod;
    bool there = cache_pod_by_instance(s->c.cache, instance, &pod);
    s->stats.bound += fate == KUBE_DONE;
    s->stats.failed += fate != KUBE_DONE;
    if (!there)
        return;
    struct kube_name_stats *of = stats_of(s, &pod);
    of->bound += fate == KUBE_DONE;
    of->failed += fate != KUBE_DONE;
    str_clear(&s->text);
    if (fate == KUBE_DONE) {
        str_addf(&s->text, "Successfully assigned %s/%s to %s", pod.namespace, pod.name, pod.node);
        event_add(s, &pod, false, "Scheduled", "Binding", s->text.at);
        return; /* the pod stays assumed until the watch shows the binding */
    }
    log_write(s->c.log, kube_wall_ns(), LEVEL_WARN, "bind.failed", LOG_TEXT("namespace", pod.namespace),
              LOG_TEXT("pod", pod.name), LOG_TEXT("node", pod.node), LOG_TEXT("text", text));
    if (fate == KUBE_FAILED) {
        str_addf(&s->text, "binding to %s failed: %s", pod.node, text);
        event_add(s, &pod, true, "FailedScheduling", "Scheduling", s->text.at);
    }
    cache_forget_pod(s->c.cache, instance, kube_wall_ns() + kube_pause_ns(pod.failures));
    kube_scheduler_wake(s);
}

static void on_provisioned(void *ctx, uint64_t instance, const char *trouble)
{
    struct kube_scheduler *s = ctx;
    struct cache_pod_view pod;
    if (trouble[0]) {
        on_bound(s, instance, KUBE_FAILED, trouble);
    } else if (!s->c.leads(s->c.ctx)) {
        cache_forget_pod(s->c.cache, instance, 0); /* the new leader decides anew */
    } else if (cache_pod_by_instance(s->c.cache, instance, &pod)) {
        const struct kube_pod_ref ref = ref_of(&pod);
        kube_bind(s->binder, &ref, pod.node, instance);
    }
}

/* Binds the pod, after its volumes if it has unbound claims. */
static void bind(struct kube_scheduler *s, const struct cache_pod_view *pod, const char *node)
{
    const struct kube_pod_ref ref = ref_of(pod);
    s->stats.placed++;
    stats_of(s, pod)->placed++;
    if (!kube_provision(s->provisioner, pod->instance))
        kube_bind(s->binder, &ref, node, pod->instance);
}

/* ---- victims ---------------------------------------------------------------------------------------------------- */

static void on_victim_deleted(void *ctx, uint64_t instance, enum kube_write_result fate, const char *text)
{
    struct kube_scheduler *s = ctx;
    struct cache_pod_view pod;
    if (fate != KUBE_FAILED || !cache_pod_by_instance(s->c.cache, instance, &pod))
        return;
    log_write(s->c.log, kube_wall_ns(), LEVEL_WARN, "preempt.failed", LOG_TEXT("namespace", pod.namespace),
              LOG_TEXT("pod", pod.name), LOG_TEXT("text", text));
    request_plan(s, stuck_pods_add(&s->stuck, instance, loop_now_ns(s->c.loop)));
}

/* Withdraws the nomination of a pod that lost its reservation. */
static void on_reservation_lost(void *ctx, const struct cache_pod_view *pod)
{
    const struct kube_scheduler *s = ctx;
    const struct kube_pod_ref ref = ref_of(pod);
    if (!*pod->role) /* the pod of a task is not created yet */
        kube_nominate(s->pod_writer, &ref, "");
}

/* Finds the preemptor: the pod whose reservation in the same plan waits for this instance. */
static bool preemptor_of(const struct kube_scheduler *s, const struct berth_plan *plan, uint64_t instance,
                         struct cache_pod_view *ret)
{
    for (size_t i = 0; i < berth_plan_actions(plan); i++) {
        const struct berth_action a = berth_plan_action(plan, i);
        for (size_t k = 0; a.op == BERTH_RESERVE && k < a.waits_len; k++)
            if (a.waits[k] == instance)
                return cache_pod_find(s->c.cache, a.workload, ret);
    }
    return false;
}

static void stop(struct kube_scheduler *s, const struct berth_plan *plan, const struct berth_action *a)
{
    struct cache_pod_view pod, preemptor;
    if (!cache_pod_by_instance(s->c.cache, a->instance, &pod))
        return;
    if (!pod.bound) { /* a reservation that is no longer valid */
        const struct kube_pod_ref ref = ref_of(&pod);
        kube_nominate(s->pod_writer, &ref, "");
        cache_forget_pod(s->c.cache, a->instance, 0);
        return;
    }
    if (a->cause != BERTH_CAUSE_PREEMPTED)
        return; /* other problems of bound pods are not ours to fix */
    str_clear(&s->text);
    if (preemptor_of(s, plan, a->instance, &preemptor)) {
        size_t len = strcspn(preemptor.name, ":"); /* a role of a job is called "job:role" */
        str_addf(&s->text, "Preempted by %s %s/%.*s on node %s", preemptor.name[len] ? "job" : "pod",
                 preemptor.namespace, (int)len, preemptor.name, pod.node);
    }
    if (!s->text.len)
        str_addf(&s->text, "Preempted on node %s", pod.node);
    const struct kube_pod_ref ref = ref_of(&pod);
    kube_preempt_pod(s->pod_writer, &ref, s->text.at, a->instance);
    event_add(s, &pod, false, "Preempted", "Preempting", s->text.at);
    cache_set_stopping(s->c.cache, a->instance, true);
    s->stats.preempted++;
    stats_of(s, &pod)->preempted++;
}

/* ---- planning --------------------------------------------------------------------------------------------------- */

static void place(struct kube_scheduler *s, const struct berth_action *a)
{
    struct cache_pod_view pod;
    if (cache_assume_pod(s->c.cache, a->workload, a->node, a->gpus, a->waits, a->waits_len) == 0 ||
        !cache_pod_find(s->c.cache, a->workload, &pod))
        return;
    if (a->op == BERTH_PLACE) {
        bind(s, &pod, a->node);
    } else if (strcmp(pod.nominated, a->node) != 0) {
        const struct kube_pod_ref ref = ref_of(&pod);
        kube_nominate(s->pod_writer, &ref, a->node);
    }
}

static void promote(struct kube_scheduler *s, const struct berth_action *a)
{
    struct cache_pod_view pod;
    if (cache_promote_pod(s->c.cache, a->instance) && cache_pod_by_instance(s->c.cache, a->instance, &pod))
        bind(s, &pod, pod.node);
}

static void carry_out(struct kube_scheduler *s, const struct berth_plan *plan)
{
    for (size_t i = 0; i < berth_plan_actions(plan); i++) {
        const struct berth_action a = berth_plan_action(plan, i);
        if (s->c.jobs && kube_jobs_apply_action(s->c.jobs, &a))
            continue;
        if (a.op == BERTH_STOP)
            stop(s, plan, &a);
        else if (a.op == BERTH_PLACE || a.op == BERTH_RESERVE)
            place(s, &a);
        else if (a.op == BERTH_PROMOTE)
            promote(s, &a);
    }
}

/* Writes why the pod is pending. False: postponed, because a reason was written moments ago. */
static bool report_pending(struct kube_scheduler *s, const struct berth_pending *pending, int64_t now_ns)
{
    struct cache_pod_view pod;
    bool told = true;
    if (s->c.jobs && kube_jobs_report_pending(s->c.jobs, pending, now_ns, &told))
        return told;
    if (!cache_pod_find(s->c.cache, pending->workload, &pod) || pod.gated || pod.instance)
        return true;
    if (pod.told_ns && now_ns - pod.told_ns < REPORT_AGAIN_NS)
        return false;
    str_clear(&s->text);
    cache_unschedulable_message(s->c.cache, pending, &s->text);
    if (strcmp(str_text(&s->text), pod.told) == 0)
        return true;
    const struct kube_pod_ref ref = ref_of(&pod);
    kube_mark_unschedulable(s->pod_writer, &ref, "Unschedulable", str_text(&s->text));
    event_add(s, &pod, true, "FailedScheduling", "Scheduling", str_text(&s->text));
    cache_note_message(s->c.cache, pending->workload, str_text(&s->text), now_ns);
    return true;
}

/* Writes why pods are pending: soon, but not after every plan. */
static void report_all_pending(struct kube_scheduler *s, struct berth_plan *plan, int64_t now_ns)
{
    int64_t loop_ns = loop_now_ns(s->c.loop);
    if (s->stats.pending == 0)
        return;
    if (s->told_ns && loop_ns - s->told_ns < REPORT_NS) {
        request_plan(s, s->told_ns + REPORT_NS);
        return;
    }
    s->told_ns = loop_ns;
    bool all = true;
    for (size_t i = 0; i < s->stats.pending; i++) {
        const struct berth_pending pending = berth_plan_pending(plan, i);
        all &= report_pending(s, &pending, now_ns);
    }
    if (!all)
        request_plan(s, loop_ns + REPORT_AGAIN_NS);
}

static void policy_failures(const struct kube_scheduler *s, struct plan_policy *p, int64_t now_ns)
{
    const char *name, *why;
    while ((name = plan_policy_failure(p, &why)))
        log_write(s->c.log, now_ns, LEVEL_WARN, "policy.failed", LOG_TEXT("policy", name), LOG_TEXT("text", why));
}

static void step(void *ctx)
{
    struct kube_scheduler *s = ctx;
    struct berth_err err = {0};
    struct kube_choice choice;
    struct plan_policy policy;
    s->due_ns = INT64_MAX;
    if (!s->c.leads(s->c.ctx))
        return;
    kube_provision_check(s->provisioner);
    request_plan(s, stuck_pods_check(&s->stuck, loop_now_ns(s->c.loop)));
    int64_t now_ns = kube_wall_ns(), begin_ns = kube_clock_ns();
    if (s->c.jobs)
        kube_jobs_process(s->c.jobs, now_ns);
    struct berth_cluster *cluster = cache_cluster(s->c.cache);
    if (s->c.journal && kube_journal_prepare(s->c.journal, now_ns))
        cluster = cache_cluster(s->c.cache);
    kube_policy_read(&s->policy, s->c.tenants, &policy);
    if (kube_choose(cluster, now_ns, &policy.policy, &choice, &err) < 0) {
        log_write(s->c.log, now_ns, LEVEL_ERROR, "plan.failed", LOG_TEXT("text", err.text));
        plan_policy_done(&policy);
        return;
    }
    if (!s->c.leads(s->c.ctx)) { /* planning took so long that leadership may be lost */
        kube_choice_done(&choice);
        plan_policy_done(&policy);
        return;
    }
    if (s->c.journal)
        kube_journal_plan(s->c.journal, now_ns, choice.plan);
    s->stats.last_ns = kube_clock_ns() - begin_ns;
    delay_plan(s, kube_clock_ns() + 2 * s->stats.last_ns);
    s->stats.seconds += (double)s->stats.last_ns / 1e9;
    s->stats.plans++;
    s->stats.pending = berth_plan_pendings(choice.plan);
    int64_t recheck_ns = berth_plan_recheck_ns(choice.plan);
    if (recheck_ns != BERTH_NEVER_NS)
        request_plan(s, loop_now_ns(s->c.loop) + (recheck_ns > now_ns ? recheck_ns - now_ns : 0));
    policy_failures(s, &policy, now_ns);
    carry_out(s, choice.plan);
    kube_remember(cluster, choice.plan);
    report_all_pending(s, choice.plan, now_ns);
    kube_choice_done(&choice);
    plan_policy_done(&policy);
}

/* ---- interface -------------------------------------------------------------------------------------------------- */

struct kube_scheduler *kube_scheduler_new(const struct kube_scheduler_config *config)
{
    struct kube_scheduler *s = mem_zalloc(sizeof *s);
    s->c = *config;
    s->due_ns = INT64_MAX;
    s->names = mem_zarray(config->profiles->len, sizeof *s->names);
    kube_policy_init(&s->policy, config->profiles->own, config->profiles->profiles, config->profiles->len);
    s->binder = kube_writer_new(config->api, on_bound, s);
    s->pod_writer = kube_writer_new(config->api, on_victim_deleted, s);
    s->provisioner = kube_provisioner_new(config->loop, config->api, config->cache, on_provisioned, s);
    s->stuck = (struct stuck_pods){.cache = config->cache, .gives_back = on_reservation_lost, .ctx = s};
    s->timer = loop_timer_new(config->loop, step, s);
    return s;
}

void kube_scheduler_free(struct kube_scheduler *s)
{
    if (!s)
        return;
    loop_source_free(s->timer);
    kube_provisioner_free(s->provisioner);
    kube_writer_free(s->binder);
    kube_writer_free(s->pod_writer);
    stuck_pods_done(&s->stuck);
    str_done(&s->text);
    mem_free(s->names);
    mem_free(s);
}

void kube_scheduler_wake(struct kube_scheduler *s)
{
    request_plan(s, loop_now_ns(s->c.loop));
}

struct kube_scheduler_stats kube_scheduler_stats(const struct kube_scheduler *s)
{
    struct kube_scheduler_stats stats = s->stats;
    stats.assumed = kube_writer_stats(s->binder).under_way;
    return stats;
}

struct kube_name_stats kube_scheduler_name_stats(const struct kube_scheduler *s, size_t i)
{
    return s->names[i];
}
