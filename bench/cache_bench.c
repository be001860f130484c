/* cache_bench.c - the cost of holding a Kubernetes cluster in Berth's cache: memory, time to read it, and a plan.
 *
 *     cache_bench [NODES [PODS]]      5000 nodes and 50000 bound pods
 *
 * Times are CPU time. Pods are like those of an API server: about four kilobytes each, a third of that managedFields;
 * 1000 deployments with 10 labels each.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "base/str.h"
#include "kube/cache/cache.h"
#include "kube/client/proto.h"

enum { DEPLOYMENTS = 1000 };

static double seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double mib(void)
{
    struct mallinfo2 m = mallinfo2();
    return (double)(m.uordblks + m.hblkhd) / (1 << 20);
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

static void meta(struct str *to, const char *namespace, const char *name, const char *uid, unsigned deployment)
{
    static const char junk[1500];
    char text[64];
    size_t at = proto_begin(to, 1);
    proto_add_text(to, 1, name);
    proto_add_text(to, 3, namespace);
    proto_add_text(to, 5, uid);
    proto_add_text(to, 6, "1234567");
    size_t created = proto_begin(to, 8);
    proto_add_int(to, 1, 1700000000);
    proto_end(to, created);
    (void)snprintf(text, sizeof text, "app-%u", deployment);
    entry(to, 11, "app.kubernetes.io/name", text, false);
    entry(to, 11, "app.kubernetes.io/instance", text, false);
    entry(to, 11, "pod-template-hash", "5d4f8c7b9d", false);
    entry(to, 12, "kubectl.kubernetes.io/restartedAt", "2026-01-01T00:00:00Z", false);
    proto_add_bytes(to, 17, junk, sizeof junk);
    proto_end(to, at);
}

static void toleration(struct str *to, const char *key)
{
    size_t at = proto_begin(to, 22);
    proto_add_text(to, 1, key);
    proto_add_text(to, 2, "Exists");
    proto_add_text(to, 4, "NoExecute");
    proto_add_int(to, 5, 300);
    proto_end(to, at);
}

static void container(struct str *to)
{
    static const char junk[300];
    size_t at = proto_begin(to, 2);
    proto_add_text(to, 1, "main");
    proto_add_text(to, 2, "registry.example.com/team/application:v1.2.3");
    for (int i = 0; i < 4; i++)
        proto_add_bytes(to, 7, junk, sizeof junk);
    size_t resources = proto_begin(to, 8);
    entry(to, 1, "memory", "512Mi", true);
    entry(to, 2, "cpu", "100m", true);
    entry(to, 2, "memory", "128Mi", true);
    proto_end(to, resources);
    proto_end(to, at);
}

static void pod(struct str *to, unsigned i, const char *node, struct kube_object *o)
{
    static char name[64], uid[64];
    str_clear(to);
    (void)snprintf(name, sizeof name, "app-%u-5d4f8c7b9d-%05x", i % DEPLOYMENTS, i);
    (void)snprintf(uid, sizeof uid, "01234567-89ab-cdef-0123-%012x", i);
    meta(to, "team-space", name, uid, i % DEPLOYMENTS);
    size_t spec = proto_begin(to, 2);
    size_t volume = proto_begin(to, 1);
    proto_add_text(to, 1, "kube-api-access-x7x2z");
    static const char junk[400];
    size_t source = proto_begin(to, 2);
    proto_add_bytes(to, 26, junk, sizeof junk);
    proto_end(to, source);
    proto_end(to, volume);
    container(to);
    proto_add_text(to, 10, node);
    proto_add_text(to, 19, "berth");
    toleration(to, "node.kubernetes.io/not-ready");
    toleration(to, "node.kubernetes.io/unreachable");
    proto_add_int(to, 25, 0);
    proto_end(to, spec);
    size_t status = proto_begin(to, 3);
    proto_add_text(to, 1, *node ? "Running" : "Pending");
    proto_add_bytes(to, 13, junk, sizeof junk);
    proto_end(to, status);
    *o = (struct kube_object){
        .namespace = "team-space", .name = name, .uid = uid, .raw = proto_reader(str_text(to), to->len)};
}

static void node(struct str *to, unsigned i, struct kube_object *o)
{
    static char name[64], zone[16];
    str_clear(to);
    (void)snprintf(name, sizeof name, "node-%u.cluster.example.com", i);
    (void)snprintf(zone, sizeof zone, "zone-%u", i % 3);
    size_t at = proto_begin(to, 1);
    proto_add_text(to, 1, name);
    proto_add_text(to, 5, name);
    entry(to, 11, "kubernetes.io/hostname", name, false);
    entry(to, 11, "kubernetes.io/arch", "amd64", false);
    entry(to, 11, "kubernetes.io/os", "linux", false);
    entry(to, 11, "node.kubernetes.io/instance-type", "m5.4xlarge", false);
    entry(to, 11, "topology.kubernetes.io/zone", zone, false);
    proto_end(to, at);
    size_t status = proto_begin(to, 3);
    entry(to, 2, "cpu", "16", true);
    entry(to, 2, "memory", "64Gi", true);
    entry(to, 2, "ephemeral-storage", "100Gi", true);
    entry(to, 2, "pods", "110", true);
    for (unsigned k = 0; k < 50; k++) {
        char image[128];
        size_t of = proto_begin(to, 8);
        (void)snprintf(image, sizeof image, "registry.example.com/team/application-%u:v1.2.3", (i + k) % 200);
        proto_add_text(to, 1, image);
        (void)snprintf(image, sizeof image, "registry.example.com/team/application-%u@sha256:%064u", (i + k) % 200,
                       (i + k) % 200);
        proto_add_text(to, 1, image);
        proto_add_int(to, 2, 100 << 20);
        proto_end(to, of);
    }
    proto_end(to, status);
    *o = (struct kube_object){.namespace = "", .name = name, .uid = name, .raw = proto_reader(str_text(to), to->len)};
}

static void plan(struct cache *p, const char *what)
{
    struct berth_policy policy = {
        .profile = berth_profile_find("default"), .preemption = {.on = true, .services = true}
    };
    struct berth_plan *made = NULL;
    double t0 = seconds();
    struct berth_cluster *c = cache_cluster(p);
    double t1 = seconds();
    struct berth_snapshot *s = berth_freeze(c, INT64_C(2000000000000000000), 0);
    double t2 = seconds();
    if (berth_plan_make(s, &policy, &made, NULL) < 0)
        exit(1);
    double t3 = seconds();
    size_t placed = 0;
    for (size_t i = 0; i < berth_plan_actions(made); i++) {
        struct berth_action a = berth_plan_action(made, i);
        placed += a.op == BERTH_PLACE && cache_assume_pod(p, a.workload, a.node, 0, NULL, 0) != 0;
    }
    double t4 = seconds();
    printf("%-22s settle %8.3f ms, freeze %7.3f ms, plan %8.3f ms, assume %7.3f ms, placed %zu\n", what,
           (t1 - t0) * 1e3, (t2 - t1) * 1e3, (t3 - t2) * 1e3, (t4 - t3) * 1e3, placed);
    berth_plan_free(made);
    berth_snapshot_free(s);
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"berth"};
    unsigned nodes = argc > 1 ? (unsigned)atoi(argv[1]) : 5000, pods = argc > 2 ? (unsigned)atoi(argv[2]) : 50000;
    CLEANUP(str) struct str bytes = {0};
    struct kube_object o;
    char name[64];
    double empty = mib();
    struct cache *p = cache_new(&(struct cache_config){.schedulers = names, .schedulers_len = 1});
    double t0 = seconds(), spent = 0;
    for (unsigned i = 0; i < nodes; i++) {
        node(&bytes, i, &o);
        double t = seconds();
        cache_object_put(p, CACHE_NODE, &o);
        spent += seconds() - t;
    }
    double after_nodes = mib();
    printf("%u nodes: %.1f MiB, %.1f us each\n", nodes, after_nodes - empty, spent / nodes * 1e6);
    spent = 0;
    for (unsigned i = 0; i < pods; i++) {
        (void)snprintf(name, sizeof name, "node-%u.cluster.example.com", i % nodes);
        pod(&bytes, i, name, &o);
        double t = seconds();
        cache_object_put(p, CACHE_POD, &o);
        spent += seconds() - t;
    }
    printf("%u bound pods of %zu bytes: %.1f MiB, %.0f bytes and %.2f us each\n", pods, bytes.len, mib() - after_nodes,
           (mib() - after_nodes) * (1 << 20) / pods, spent / pods * 1e6);
    spent = 0;
    for (unsigned i = 0; i < pods; i++) {
        (void)snprintf(name, sizeof name, "node-%u.cluster.example.com", i % nodes);
        pod(&bytes, i, name, &o);
        double t = seconds();
        cache_object_put(p, CACHE_POD, &o);
        spent += seconds() - t;
    }
    printf("the same again: %.2f us each\n", spent / pods * 1e6);
    plan(p, "nothing pending");
    plan(p, "nothing pending");
    unsigned next = pods;
    static const unsigned counts[] = {1, 1, 100, 100, 1000, 5000};
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        double t = seconds();
        for (unsigned i = 0; i < counts[k]; i++) {
            pod(&bytes, next++, "", &o);
            cache_object_put(p, CACHE_POD, &o);
        }
        (void)snprintf(name, sizeof name, "%u pending", counts[k]);
        (void)t;
        plan(p, name);
    }
    double before = mib();
    for (unsigned i = 0; i < pods; i++) {
        (void)snprintf(name, sizeof name, "node-%u.cluster.example.com", i % nodes);
        pod(&bytes, i, name, &o);
        cache_object_drop(p, CACHE_POD, &o);
        pod(&bytes, next++, name, &o);
        cache_object_put(p, CACHE_POD, &o);
    }
    printf("%u pods in place of others: %.0f bytes more each\n", pods, (mib() - before) * (1 << 20) / pods);
    printf("in all: %.1f MiB, %.1f s\n", mib() - empty, seconds() - t0);
    cache_free(p);
    return 0;
}
