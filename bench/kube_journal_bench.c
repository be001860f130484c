/* kube_journal_bench.c - the cost of berth-kube's journal: pods that arrive, are placed, bound and end, with and
 * without a journal.
 *
 *     kube_journal_bench [NODES [PODS [FOLDER [HELD]]]]
 *
 * Defaults: 1000 nodes, 50000 pods in rounds of 500, a new folder under /tmp, no HELD pods. HELD pods are bound before
 * the measurement; the time to write a base record of them on the event loop is printed, too.
 *
 * Times are CPU time of all threads. The network is not included: see tests/kube/bench.py for the whole.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "base/str.h"
#include "kube/client/clock.h"
#include "kube/journal/journal.h"
#include "kube/sched/plan_choice.h"
#include "kube/sched/policy.h"
#include "net/loop.h"

enum { ROUND = 500, DEPLOYMENTS = 100 };

static double seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void entry(struct str *to, uint32_t number, const char *key, const char *value, bool quantity)
{
    size_t at = proto_begin(to, number);
    proto_add_text(to, 1, key);
    size_t inner = quantity ? proto_begin(to, 2) : 0;
    proto_add_text(to, quantity ? 1 : 2, value);
    if (quantity)
        proto_end(to, inner);
    proto_end(to, at);
}

static void node_put(struct cache *p, struct str *to, unsigned i)
{
    char name[64];
    str_clear(to);
    (void)snprintf(name, sizeof name, "node-%u.cluster.example.com", i);
    size_t at = proto_begin(to, 1);
    proto_add_text(to, 1, name);
    entry(to, 11, "kubernetes.io/hostname", name, false);
    proto_end(to, at);
    size_t status = proto_begin(to, 3);
    entry(to, 2, "cpu", "64", true);
    entry(to, 2, "memory", "256Gi", true);
    entry(to, 2, "pods", "110", true);
    proto_end(to, status);
    cache_object_put(
        p, CACHE_NODE,
        &(struct kube_object){.namespace = "", .name = name, .uid = name, .raw = proto_reader(str_text(to), to->len)});
}

/* Adds a pod of about three kilobytes, of which a few hundred bytes are kept. */
static void pod_put(struct cache *p, struct str *to, unsigned i, const char *node, const char *phase)
{
    static const char junk[1500];
    char name[64], uid[64], app[32];
    str_clear(to);
    (void)snprintf(name, sizeof name, "app-%u-5d4f8c7b9d-%05x", i % DEPLOYMENTS, i);
    (void)snprintf(uid, sizeof uid, "01234567-89ab-cdef-0123-%012x", i);
    (void)snprintf(app, sizeof app, "app-%u", i % DEPLOYMENTS);
    size_t at = proto_begin(to, 1);
    proto_add_text(to, 1, name);
    proto_add_text(to, 3, "team-space");
    proto_add_text(to, 5, uid);
    size_t created = proto_begin(to, 8);
    proto_add_int(to, 1, 1700000000);
    proto_end(to, created);
    entry(to, 11, "app.kubernetes.io/name", app, false);
    entry(to, 11, "pod-template-hash", "5d4f8c7b9d", false);
    proto_add_bytes(to, 17, junk, sizeof junk);
    proto_end(to, at);
    size_t spec = proto_begin(to, 2);
    size_t container = proto_begin(to, 2);
    proto_add_text(to, 1, "main");
    proto_add_text(to, 2, "registry.example.com/team/application:v1.2.3");
    proto_add_bytes(to, 7, junk, sizeof junk);
    size_t resources = proto_begin(to, 8);
    entry(to, 2, "cpu", "100m", true);
    entry(to, 2, "memory", "128Mi", true);
    proto_end(to, resources);
    proto_end(to, container);
    if (*node)
        proto_add_text(to, 10, node);
    proto_add_text(to, 19, "berth");
    proto_add_int(to, 25, 0);
    proto_end(to, spec);
    size_t status = proto_begin(to, 3);
    proto_add_text(to, 1, phase);
    proto_end(to, status);
    cache_object_put(p, CACHE_POD,
                     &(struct kube_object){.namespace = "team-space",
                                           .name = name,
                                           .uid = uid,
                                           .version = i,
                                           .raw = proto_reader(str_text(to), to->len)});
}

struct journal_bench {
    struct kube_journal *journal; /* NULL: no journal */
    double base;                  /* duration of the last base record, in seconds */
};

static void on_input(void *ctx, const struct cache_change *in)
{
    struct journal_bench *b = ctx;
    if (b->journal)
        kube_journal_input(b->journal, in);
}

static void round_plan(struct journal_bench *b, struct cache *p, const struct kube_policy *kept, int64_t now_ns)
{
    struct plan_policy policy;
    struct kube_choice choice;
    struct berth_cluster *cluster = cache_cluster(p);
    double begun = seconds();
    if (b->journal && kube_journal_prepare(b->journal, now_ns)) {
        b->base = seconds() - begun;
        cluster = cache_cluster(p);
    }
    kube_policy_read(kept, NULL, &policy);
    if (kube_choose(cluster, now_ns, &policy.policy, &choice, NULL) < 0)
        exit(1);
    if (b->journal)
        kube_journal_plan(b->journal, now_ns, choice.plan);
    for (size_t i = 0; i < berth_plan_actions(choice.plan); i++) {
        const struct berth_action a = berth_plan_action(choice.plan, i);
        (void)cache_assume_pod(p, a.workload, a.node, a.gpus, NULL, 0);
    }
    kube_remember(cluster, choice.plan);
    kube_choice_done(&choice);
    plan_policy_done(&policy);
}

/* Returns CPU seconds. */
static double run(unsigned nodes, unsigned pods, unsigned held, const char *folder, struct kube_journal_stats *ret,
                  double *ret_base)
{
    static const char *const names[] = {"berth"};
    const struct log log = {.out = stderr, .level = LEVEL_WARN};
    struct journal_bench b = {0};
    struct kube_policy kept;
    struct loop *loop;
    CLEANUP(str) struct str bytes = {0};
    struct cache *p =
        cache_new(&(struct cache_config){.schedulers = names, .schedulers_len = 1, .ctx = &b, .input = on_input});
    if (loop_new(&loop, NULL) < 0)
        exit(1);
    if (folder)
        b.journal = kube_journal_new(&(struct kube_journal_config){.loop = loop,
                                                                   .log = &log,
                                                                   .dir = folder,
                                                                   .keep_ns = INT64_MAX / 2,
                                                                   .keep_bytes = UINT64_MAX,
                                                                   .cache = p,
                                                                   .profile = "default",
                                                                   .schedulers = names,
                                                                   .schedulers_len = 1,
                                                                   .identity = "bench"});
    kube_policy_init(&kept, berth_profile_find("default"), NULL, 0);
    for (unsigned i = 0; i < nodes; i++)
        node_put(p, &bytes, i);
    for (unsigned i = 0; i < held; i++) {
        char node[64];
        (void)snprintf(node, sizeof node, "node-%u.cluster.example.com", i % nodes);
        pod_put(p, &bytes, pods + ROUND + i, node, "Running");
    }
    (void)cache_cluster(p);
    double begun = seconds();
    for (unsigned at = 0; at < pods; at += ROUND) {
        for (unsigned i = at; i < at + ROUND; i++)
            pod_put(p, &bytes, i, "", "Pending");
        round_plan(&b, p, &kept, kube_wall_ns());
        for (unsigned i = at; i < at + ROUND; i++) {
            struct cache_pod_view pod;
            char id[128];
            (void)snprintf(id, sizeof id, "team-space:app-%u-5d4f8c7b9d-%05x", i % DEPLOYMENTS, i);
            if (!cache_pod_find(p, id, &pod) || !*pod.node)
                exit(1);
            char node[64];
            (void)snprintf(node, sizeof node, "%s", pod.node);
            pod_put(p, &bytes, i, node, "Pending");
            pod_put(p, &bytes, i, node, "Running");
            pod_put(p, &bytes, i, node, "Succeeded");
        }
        (void)loop_once(loop, 0, NULL);
    }
    *ret = b.journal ? kube_journal_stats(b.journal) : (struct kube_journal_stats){0};
    kube_journal_free(b.journal);
    double took = seconds() - begun;
    *ret_base = b.base;
    cache_free(p);
    loop_free(loop);
    return took;
}

int main(int argc, char **argv)
{
    unsigned nodes = argc > 1 ? (unsigned)atoi(argv[1]) : 1000, pods = argc > 2 ? (unsigned)atoi(argv[2]) : 50000;
    struct kube_journal_stats none, stats;
    CLEANUP(str) struct str folder = {0};
    str_addf(&folder, "%s/berth-kube-journal-XXXXXX", argc > 3 ? argv[3] : "/tmp");
    if (!mkdtemp(folder.at)) {
        perror(folder.at);
        return 1;
    }
    unsigned held = argc > 4 ? (unsigned)atoi(argv[4]) : 0;
    double base, without = run(nodes, pods, held, NULL, &none, &base),
                 with = run(nodes, pods, held, folder.at, &stats, &base) - base;
    printf(
        "%u nodes, %u pods: %.2f us of the processor per pod without a journal, %.2f with; %.0f bytes per pod in %llu "
        "records; a base in %.1f ms; in %s\n",
        nodes, pods, without / pods * 1e6, with / pods * 1e6, (double)stats.bytes / pods,
        (unsigned long long)stats.records, base * 1e3, folder.at);
    return stats.gaps != 0;
}
