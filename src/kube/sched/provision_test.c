/* provision_test.c - volumes of claims shared by several waiting pods: which pod requests them, also after that pod has
 * gone.
 */
#include "kube/sched/provision.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "kube/client/server_kit_test.h"
#include "kube/object/object_kit_test.h"

#define USES "volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]"
#define CLAIM(notes, spec)                                                                                             \
    "{metadata: {name: data, namespace: default, uid: u1" notes "}, spec: {storageClassName: fast, accessModes: "      \
    "[ReadWriteMany], resources: {requests: {storage: 1Gi}}" spec "}}"
#define SELECTED CLAIM(", annotations: {volume.kubernetes.io/selected-node: n1}", "")
#define BOUND CLAIM(", annotations: {pv.kubernetes.io/bind-completed: 'yes'}", ", volumeName: pv1")
#define DATA "/api/v1/namespaces/default/persistentvolumeclaims/data"
#define PV1 "/api/v1/persistentvolumes/pv1"

struct served {
    struct fake f; /* first member: handlers get its address */
    struct scene s;
    struct kube_provisioner *provisioner;
    uint64_t served, failed; /* instances of the last callbacks */
};

static void done(void *ctx, uint64_t instance, const char *trouble)
{
    struct served *t = ctx;
    *(*trouble ? &t->failed : &t->served) = instance;
}

/* A class whose volumes are provisioned, or exist; three pods with one claim. */
static void served_begin(struct served *t, bool made)
{
    *t = (struct served){0};
    fake_start(&t->f, (struct http_config){0});
    scene_begin(&t->s);
    scene_node(&t->s, "n1", "a", "");
    scene_put(&t->s, CACHE_STORAGE_CLASS,
              made ? "{metadata: {name: fast}, provisioner: x, volumeBindingMode: WaitForFirstConsumer}"
                   : "{metadata: {name: fast}, volumeBindingMode: WaitForFirstConsumer}");
    if (!made)
        scene_put(&t->s, CACHE_VOLUME,
                  "{metadata: {name: pv1}, spec: {storageClassName: fast, accessModes: [ReadWriteMany], capacity: "
                  "{storage: 1Gi}}, status: {phase: Available}}");
    scene_put(&t->s, CACHE_CLAIM, CLAIM("", ""));
    scene_pod(&t->s, "a", "", "", USES);
    scene_pod(&t->s, "b", "", "", USES);
    scene_pod(&t->s, "c", "", "", USES);
    (void)cache_cluster(t->s.p);
    t->provisioner = kube_provisioner_new(t->f.kit.loop, t->f.api, t->s.p, done, t);
}

static void served_cleanup(struct served *t)
{
    kube_provisioner_free(t->provisioner);
    scene_cleanup(&t->s);
    fake_cleanup(&t->f);
}

static uint64_t begin(struct served *t, const char *pod)
{
    uint64_t instance = cache_assume_pod(t->s.p, pod, "n1", 0, NULL, 0);
    assert_true(instance && kube_provision(t->provisioner, instance));
    return instance;
}

static struct http_request *next(struct served *t, const char *method, const char *path)
{
    struct http_request *x = fake_next(&t->f);
    assert_string_equal(http_method(x), method);
    assert_string_equal(http_path(x), path);
    return x;
}

static void nothing_is_asked(struct served *t)
{
    for (int i = 0; i < 20; i++)
        kit_round(&t->f.kit);
    assert_int_equal(t->f.asked.len, 0);
}

/* The first pod requests the volume and goes; then the second does, then the third. */
static void next_pod_requests_volume_of_gone_pod(void **state)
{
    (void)state;
    CLEANUP(served) struct served t;
    served_begin(&t, true);
    uint64_t a = begin(&t, "default:a"), b = begin(&t, "default:b"), c = begin(&t, "default:c");
    fake_answer(next(&t, "PATCH", DATA), 403, "{\"kind\":\"Status\",\"message\":\"no\"}");
    KIT_UNTIL(&t.f.kit, t.failed == a);
    nothing_is_asked(&t);
    cache_forget_pod(t.s.p, a, 0);
    kube_provision_check(t.provisioner);
    struct http_request *x = next(&t, "PATCH", DATA);
    size_t len;
    assert_non_null(strstr(http_body(x, &len), "\"volume.kubernetes.io/selected-node\":\"n1\""));
    kube_provision_check(t.provisioner);
    nothing_is_asked(&t); /* once */
    fake_answer(x, 403, "{\"kind\":\"Status\",\"message\":\"no\"}");
    KIT_UNTIL(&t.f.kit, t.failed == b);
    scene_drop(&t.s, CACHE_POD, "{metadata: {name: b, namespace: default}}");
    kube_provision_check(t.provisioner);
    fake_answer(next(&t, "PATCH", DATA), 200, "{}");
    scene_put(&t.s, CACHE_CLAIM, BOUND);
    KIT_UNTIL(&t.f.kit, t.served == c);
}

/* A pod that was given back waits again, and joins the pod that requests the volume now. */
static void given_back_pod_joins_again(void **state)
{
    (void)state;
    CLEANUP(served) struct served t;
    served_begin(&t, true);
    uint64_t a = begin(&t, "default:a"), b = begin(&t, "default:b");
    fake_answer(next(&t, "PATCH", DATA), 403, "{\"kind\":\"Status\",\"message\":\"no\"}");
    KIT_UNTIL(&t.f.kit, t.failed == a);
    cache_forget_pod(t.s.p, a, 0);
    (void)cache_cluster(t.s.p);
    a = begin(&t, "default:a");
    kube_provision_check(t.provisioner);
    fake_answer(next(&t, "PATCH", DATA), 200, "{}");
    nothing_is_asked(&t);
    scene_put(&t.s, CACHE_CLAIM, BOUND);
    t.served = 0;
    kube_provision_check(t.provisioner);
    assert_true(t.served == a || t.served == b);
}

/* The first pod has gone but the node stays selected, so the volume will come. When the provisioner clears the
 * selection, the second pod requests it. */
static void selected_node_outlives_its_pod(void **state)
{
    (void)state;
    CLEANUP(served) struct served t;
    served_begin(&t, true);
    (void)begin(&t, "default:a");
    uint64_t b = begin(&t, "default:b");
    fake_answer(next(&t, "PATCH", DATA), 200, "{}");
    scene_put(&t.s, CACHE_CLAIM, SELECTED);
    scene_drop(&t.s, CACHE_POD, "{metadata: {name: a, namespace: default}}");
    kube_provision_check(t.provisioner);
    nothing_is_asked(&t);
    scene_put(&t.s, CACHE_CLAIM, CLAIM("", ""));
    kube_provision_check(t.provisioner);
    fake_answer(next(&t, "PATCH", DATA), 200, "{}");
    scene_put(&t.s, CACHE_CLAIM, BOUND);
    KIT_UNTIL(&t.f.kit, t.served == b);
}

/* The same with an existing volume: it stays reserved for the claim. */
static void reserved_volume_passes_to_next_pod(void **state)
{
    (void)state;
    CLEANUP(served) struct served t;
    served_begin(&t, false);
    scene_put(&t.s, CACHE_CLAIM,
              "{metadata: {name: more, namespace: default, uid: u2}, spec: {storageClassName: fast, accessModes: "
              "[ReadWriteMany], resources: {requests: {storage: 1Gi}}}}");
    scene_pod(&t.s, "d", "", "", "volumes: [{name: v, persistentVolumeClaim: {claimName: more}}]");
    (void)cache_cluster(t.s.p);
    uint64_t a = begin(&t, "default:a"), b = begin(&t, "default:b");
    fake_answer(next(&t, "GET", PV1), 403, "{\"kind\":\"Status\",\"message\":\"no\"}");
    KIT_UNTIL(&t.f.kit, t.failed == a);
    cache_forget_pod(t.s.p, a, 0);
    assert_non_null(strstr(scene_says(&t.s), "?d"));
    kube_provision_check(t.provisioner);
    fake_answer(next(&t, "GET", PV1), 200, "{\"metadata\":{\"resourceVersion\":\"7\"},\"spec\":{}}");
    fake_answer(next(&t, "PATCH", PV1), 200, "{}");
    cache_forget_pod(t.s.p, b, 0);
    assert_non_null(strstr(scene_says(&t.s), "d->n1"));
}

/* A reserved pod had joined another; when it is promoted, the claim is bound already and no further event comes. */
static void promoted_pod_finds_claim_bound(void **state)
{
    (void)state;
    CLEANUP(served) struct served t;
    served_begin(&t, true);
    scene_pod(&t.s, "victim", "", "n1", "");
    struct cache_pod_view victim;
    assert_true(cache_pod_find(t.s.p, "default:victim", &victim));
    uint64_t a = begin(&t, "default:a");
    uint64_t b = cache_assume_pod(t.s.p, "default:b", "n1", 0, &victim.instance, 1);
    fake_answer(next(&t, "PATCH", DATA), 200, "{}");
    scene_put(&t.s, CACHE_CLAIM, BOUND);
    KIT_UNTIL(&t.f.kit, t.served == a);
    scene_drop(&t.s, CACHE_POD, "{metadata: {name: victim, namespace: default}}");
    assert_true(cache_promote_pod(t.s.p, b) && kube_provision(t.provisioner, b));
    KIT_UNTIL(&t.f.kit, t.served == b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(next_pod_requests_volume_of_gone_pod), cmocka_unit_test(given_back_pod_joins_again),
        cmocka_unit_test(selected_node_outlives_its_pod),       cmocka_unit_test(reserved_volume_passes_to_next_pod),
        cmocka_unit_test(promoted_pod_finds_claim_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
