/* cache_job_test.c - roles of jobs as workloads, and their pods as instances: placed, seen, ended, orphaned. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "kube/object/object_kit_test.h"

#define CPU(amount) "spec: {containers: [{name: c, resources: {requests: {cpu: " amount "}}}]}"
#define ROLE "default:train:w"

struct play {
    struct scene s; /* first member: callbacks get its address */
    uint32_t tasks, min;
    bool gang, suspended;
    const char *refuses;
    char told[256]; /* of the last task callback */
};

static const char *claim(void *ctx, const char *role, struct arena *arena, struct berth_workload *w)
{
    const struct play *p = ctx;
    (void)arena;
    assert_int_equal(strncmp(role, "default:train:", 14), 0);
    w->replicas = p->tasks;
    w->gang = p->gang ? "default:train" : NULL;
    w->gang_min = p->min;
    w->suspended = p->suspended;
    return p->refuses;
}

static void task(void *ctx, const struct cache_task_view *t)
{
    static const char *const phases[] = {"pending", "running", "succeeded", "failed", "gone"};
    struct play *p = ctx;
    (void)snprintf(p->told, sizeof p->told, "%s/%s/%s %u.%u %s %s%s%s%s", t->job, t->role, t->name, t->ordinal,
                   t->attempt, phases[t->phase], t->node, t->leaves ? " leaves" : "", *t->why ? ": " : "", t->why);
}

static void play_begin(struct play *p)
{
    static const char *const names[] = {"berth"};
    *p = (struct play){.tasks = 2, .gang = true};
    p->s.tenants = tenants_new(scene_changed, p);
    p->s.p = cache_new(&(struct cache_config){.schedulers = names,
                                              .schedulers_len = 1,
                                              .tenants = p->s.tenants,
                                              .changed = scene_changed,
                                              .trouble = scene_trouble,
                                              .ctx = p,
                                              .claim = claim,
                                              .task = task});
    scene_node(&p->s, "n1", "a", "");
    scene_node(&p->s, "n2", "b", "");
}

static void play_cleanup(struct play *p)
{
    assert_string_equal(p->s.trouble, "");
    scene_cleanup(&p->s);
}

static void role(struct play *p, const char *id, const char *owner, const char *pod)
{
    CLEANUP(str) struct str bytes = {0}, yaml = {0};
    str_addf(&yaml, "{metadata: {namespace: default, labels: {app: x}}, %s}", pod);
    kit_object(&bytes, CACHE_POD, yaml.at);
    assert_true(cache_role_put(p->s.p, &(struct cache_job_role){.id = id,
                                                                .namespace = "default",
                                                                .owner = owner,
                                                                .pod = proto_reader(str_text(&bytes), bytes.len)}));
}

/* Puts or drops the pod of a task as the API server reports it. */
static void pod(struct play *p, const char *owner, unsigned ordinal, unsigned attempt, const char *node,
                const char *more, bool put)
{
    CLEANUP(str) struct str yaml = {0};
    str_addf(
        &yaml,
        "{metadata: {name: train-w-%u, namespace: default, uid: uid-%s-%u, creationTimestamp: 200, labels: {app: x, "
        "berth.dev/job: train, berth.dev/role: w, berth.dev/index: '%u', berth.dev/attempt: '%u'}, ownerReferences: "
        "[{kind: Job, apiVersion: berth.dev/v1, uid: %s, controller: true}]}, spec: {schedulerName: berth, nodeName: %s, containers: [{name: c, "
        "resources: {requests: {cpu: 3}}}]}%s%s}",
        ordinal, owner, ordinal, ordinal, attempt, owner, node, *more ? ", " : "", more);
    scene_tell(&p->s, CACHE_POD, yaml.at, put);
}

static uint64_t assume(struct play *p, unsigned ordinal, const char *node)
{
    char name[32];
    (void)snprintf(name, sizeof name, "train-w-%u", ordinal);
    return cache_assume_task(p->s.p, &(struct cache_task_placement){
                                         .role = ROLE, .name = name, .ordinal = ordinal, .attempt = 1, .node = node});
}

static void gang_role_is_placed_as_a_whole(void **state)
{
    (void)state;
    CLEANUP(play) struct play p;
    play_begin(&p);
    role(&p, ROLE, "j-1", CPU("3"));
    assert_string_equal(scene_says(&p.s), "train:w->n1 train:w->n2");
    p.tasks = 3; /* two nodes have room for two tasks */
    cache_role_changed(p.s.p, ROLE);
    assert_string_equal(scene_says(&p.s), "?train:w");
    assert_non_null(strstr(scene_why(&p.s, "train:w"), "0/2 nodes are available"));
    p.min = 2;
    cache_role_changed(p.s.p, ROLE);
    assert_string_equal(scene_says(&p.s), "?train:w train:w->n1 train:w->n2");
    p.suspended = true;
    cache_role_changed(p.s.p, ROLE);
    assert_string_equal(scene_says(&p.s), "");
    p.suspended = false;
    p.refuses = "its queue is closed";
    cache_role_changed(p.s.p, ROLE);
    assert_string_equal(scene_why(&p.s, "train:w"), "0/2 nodes are available: its queue is closed.");
    cache_role_drop(p.s.p, ROLE);
    assert_string_equal(scene_says(&p.s), "");
}

static void two_roles_start_together(void **state)
{
    (void)state;
    CLEANUP(play) struct play p;
    play_begin(&p);
    p.tasks = 1;
    role(&p, ROLE, "j-1", CPU("3"));
    role(&p, "default:train:m", "j-1", CPU("5"));
    assert_string_equal(scene_says(&p.s), "?train:m ?train:w");
    role(&p, "default:train:m", "j-1", CPU("2"));
    assert_string_equal(scene_says(&p.s), "train:m->n1 train:w->n2");
}

static void task_from_assumption_to_success(void **state)
{
    (void)state;
    CLEANUP(play) struct play p;
    struct cache_pod_view seen;
    play_begin(&p);
    p.gang = false;
    role(&p, ROLE, "j-1", CPU("3"));
    assert_string_equal(scene_says(&p.s), "train:w->n1 train:w->n2");
    uint64_t first = assume(&p, 0, "n1"), second = assume(&p, 1, "n2");
    assert_true(first && second && first != second);
    assert_int_equal(assume(&p, 0, "n1"), 0); /* task 0 is assumed already */
    assert_int_equal(assume(&p, 1, "n9"), 0);
    assert_string_equal(scene_says(&p.s), "");
    cache_forget_pod(p.s.p, second, 0); /* its pod could not be created */
    assert_string_equal(scene_says(&p.s), "train:w->n2");
    assert_false(cache_pod_by_instance(p.s.p, second, &seen));
    pod(&p, "j-1", 0, 1, "n1", "status: {phase: Running}", true);
    assert_string_equal(p.told, "train/w/train-w-0 0.1 running n1");
    assert_true(cache_pod_by_instance(p.s.p, first, &seen)); /* the instance is unchanged */
    assert_true(seen.bound);
    assert_string_equal(seen.uid, "uid-j-1-0");
    assert_string_equal(seen.role, ROLE);
    assert_string_equal(scene_says(&p.s), "train:w->n2");
    pod(&p, "j-1", 0, 1, "n1", "status: {phase: Succeeded}", true);
    assert_string_equal(p.told, "train/w/train-w-0 0.1 succeeded n1");
    cache_task_succeeded(p.s.p, ROLE, 0);
    assert_string_equal(scene_says(&p.s), "train:w->n1"); /* task 1; n1 has room again */
    cache_tasks_rerun(p.s.p, ROLE);
    assert_string_equal(scene_says(&p.s), "train:w->n1 train:w->n2");
}

static void failed_task_has_reason(void **state)
{
    (void)state;
    CLEANUP(play) struct play p;
    play_begin(&p);
    role(&p, ROLE, "j-1", CPU("3"));
    pod(&p, "j-1", 1, 1, "n1", "status: {phase: Failed}", true);
    assert_string_equal(p.told, "train/w/train-w-1 1.1 failed n1");
    pod(&p, "j-1", 0, 2, "n2", "status: {phase: Running}", true);
    pod(&p, "j-1", 0, 2, "n2", "", false);
    assert_string_equal(p.told, "train/w/train-w-0 0.2 gone n2");
}

/* A pod of another job, or of a deleted job, is no task of this job, and its instance is stopped. */
static void pods_of_other_jobs_are_not_tasks(void **state)
{
    (void)state;
    CLEANUP(play) struct play p;
    play_begin(&p);
    pod(&p, "j-0", 0, 1, "n1", "status: {phase: Running}", true);
    assert_string_equal(scene_says(&p.s), "-train:w"); /* its job is unknown */
    p.tasks = 1;
    role(&p, ROLE, "j-1", CPU("3"));
    assert_string_equal(scene_says(&p.s), "-train:w:j-0 train:w->n2");
    assert_int_equal(assume(&p, 0, "n2"), 0); /* its name is not free yet */
    pod(&p, "j-0", 0, 1, "n1", "", false);
    uint64_t instance = assume(&p, 0, "n2");
    assert_true(instance);
    pod(&p, "j-9", 0, 1, "n1", "status: {phase: Running}", true); /* another job created a pod of that name first */
    struct cache_pod_view seen;
    assert_false(cache_pod_by_instance(p.s.p, instance, &seen));
    assert_string_equal(scene_says(&p.s), "-train:w:j-9 train:w->n2");
}

/* Labels without the owner do not make a pod a task. */
static void labels_without_owner_make_no_task(void **state)
{
    static const char *const owners[] = {
        "", "ownerReferences: [{kind: ReplicaSet, apiVersion: apps/v1, uid: r, controller: true}]",
        "ownerReferences: [{kind: Job, apiVersion: batch/v1, uid: r, controller: true}]",
        "ownerReferences: [{kind: Job, apiVersion: berth.dev/v1, uid: r}]"};
    (void)state;
    for (size_t i = 0; i < ROWS(owners); i++) {
        CLEANUP(play) struct play p;
        CLEANUP(str) struct str yaml = {0};
        play_begin(&p);
        str_addf(&yaml,
                 "{metadata: {name: train-w-0, namespace: default, labels: {berth.dev/job: train, berth.dev/role: w, "
                 "berth.dev/index: '0', berth.dev/attempt: '1'}, %s}, spec: {nodeName: n1, containers: [{name: c}]}}",
                 owners[i]);
        scene_put(&p.s, CACHE_POD, yaml.at);
        assert_string_equal(p.told, "");
        assert_string_equal(scene_says(&p.s), ""); /* no plan stops it */
    }
}

static void reserved_task_is_promoted(void **state)
{
    (void)state;
    CLEANUP(play) struct play p;
    struct cache_pod_view seen;
    play_begin(&p);
    p.tasks = 1;
    role(&p, ROLE, "j-1", CPU("3"));
    scene_pod(&p.s, "other", "", "n1", "containers: [{name: c, resources: {requests: {cpu: 3}}}]");
    (void)scene_says(&p.s);
    assert_true(cache_pod_find(p.s.p, "default:other", &seen));
    uint64_t waits = seen.instance;
    uint64_t instance = cache_assume_task(
        p.s.p, &(struct cache_task_placement){
                   .role = ROLE, .name = "train-w-0", .attempt = 1, .node = "n1", .waits = &waits, .waits_len = 1});
    cache_set_stopping(p.s.p, waits, true);
    assert_string_equal(scene_says(&p.s), "");
    scene_drop(&p.s, CACHE_POD, "{metadata: {name: other, namespace: default}}");
    assert_string_equal(scene_says(&p.s), "train:w->n1"); /* promoted */
    assert_true(cache_promote_pod(p.s.p, instance));
    assert_string_equal(scene_says(&p.s), "");
}

#define MOUNTS(cpu)                                                                                                     \
    "spec: {volumes: [{name: v, persistentVolumeClaim: {claimName: c}}], containers: [{name: c, resources: {requests: " \
    "{cpu: " cpu "}}}]}"
#define LATE "{metadata: {name: late}, provisioner: x, volumeBindingMode: WaitForFirstConsumer}"
#define CLAIM(notes, spec)                                                                                             \
    "{metadata: {name: c, namespace: default, uid: c-1" notes "}, spec: {storageClassName: late" spec "}}"
#define IS_BOUND CLAIM(", annotations: {pv.kubernetes.io/bind-completed: 'yes'}", ", volumeName: pv")
#define ON(node)                                                                                                       \
    "nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, "   \
    "values: [" node "]}]}]}}"

/* A WaitForFirstConsumer claim is provisioned for the first task; the others wait for the same volume and may turn out
 * not to reach it. */
static void claim_is_provisioned_for_first_task(void **state)
{
    (void)state;
    CLEANUP(play) struct play p;
    struct cache_claim_volume chosen[2];
    play_begin(&p);
    role(&p, ROLE, "j-1", MOUNTS("3"));
    assert_string_equal(scene_why(&p.s, "train:w"), "0/2 nodes are available: persistentvolumeclaim \"c\" not found.");
    scene_put(&p.s, CACHE_CLAIM, CLAIM("", ""));
    assert_non_null(strstr(scene_why(&p.s, "train:w"), "unbound immediate"));
    scene_put(&p.s, CACHE_STORAGE_CLASS, LATE);
    assert_string_equal(scene_says(&p.s), "train:w->n1 train:w->n2");
    uint64_t a = assume(&p, 0, "n1"), b = assume(&p, 1, "n2");
    assert_true(a && b);
    assert_int_equal(cache_claim_volumes(p.s.p, a, chosen, 2), 1);
    assert_string_equal(chosen[0].claim_uid, "c-1");
    assert_string_equal(chosen[0].volume, "");
    assert_false(chosen[0].joined);
    assert_int_equal(cache_claim_volumes(p.s.p, b, chosen, 2), 1);
    assert_true(chosen[0].joined);
    assert_false(cache_volumes_are_bound(p.s.p, b));
    scene_put(&p.s, CACHE_VOLUME, "{metadata: {name: pv}, spec: {csi: {driver: d, volumeHandle: h}, " ON("n1") "}}");
    scene_put(&p.s, CACHE_CLAIM, IS_BOUND);
    assert_true(cache_volumes_are_bound(p.s.p, a) && cache_volumes_are_bound(p.s.p, b));
    assert_true(cache_volumes_are_reachable(p.s.p, a));
    assert_false(cache_volumes_are_reachable(p.s.p, b));
    cache_forget_pod(p.s.p, a, 0);
    cache_forget_pod(p.s.p, b, 0);
    assert_string_equal(scene_says(&p.s), "?train:w"); /* the node of the volume has no room for both */
    p.tasks = 1;
    cache_role_changed(p.s.p, ROLE);
    assert_string_equal(scene_says(&p.s), "train:w->n1");
}

/* An existing volume is taken by the claim of the first task and by no other claim. */
static void chosen_volume_is_reserved_for_its_claim(void **state)
{
    (void)state;
    CLEANUP(play) struct play p;
    struct cache_claim_volume chosen[2];
    play_begin(&p);
    role(&p, ROLE, "j-1", MOUNTS("1"));
    scene_put(&p.s, CACHE_STORAGE_CLASS,
              "{metadata: {name: late}, provisioner: kubernetes.io/no-provisioner, volumeBindingMode: "
              "WaitForFirstConsumer}");
    scene_put(&p.s, CACHE_CLAIM, CLAIM("", ""));
    scene_put(&p.s, CACHE_VOLUME,
              "{metadata: {name: pv}, spec: {storageClassName: late, " ON("n2") "}, status: {phase: Available}}");
    assert_string_equal(scene_says(&p.s), "train:w->n2 train:w->n2");
    assert_int_equal(assume(&p, 0, "n1"), 0); /* no volume there: the role is planned again without this node */
    uint64_t a = assume(&p, 0, "n2"), b = assume(&p, 1, "n2");
    assert_int_equal(cache_claim_volumes(p.s.p, a, chosen, 2), 1);
    assert_string_equal(chosen[0].volume, "pv");
    assert_int_equal(cache_claim_volumes(p.s.p, b, chosen, 2), 1);
    assert_string_equal(chosen[0].volume, "pv");
    assert_true(chosen[0].joined);
    scene_put(&p.s, CACHE_CLAIM, "{metadata: {name: d, namespace: default, uid: d-1}, spec: {storageClassName: late}}");
    scene_pod(&p.s, "q", "", "", "volumes: [{name: v, persistentVolumeClaim: {claimName: d}}]");
    assert_string_equal(scene_says(&p.s), "?q");
    cache_forget_pod(p.s.p, b, 0);
    assert_non_null(strstr(scene_says(&p.s), "?q"));
    cache_forget_pod(p.s.p, a, 0);
    assert_non_null(strstr(scene_says(&p.s), "q->n2"));
}

/* Tasks that share an attached ReadWriteOnce volume are kept on one node; plain pods are not, as in kube-scheduler. */
static void shared_rwo_claim_keeps_tasks_on_one_node(void **state)
{
    static const struct {
        const char *label, *driver, *mode, *want;
    } rows[] = {
        {"attached, for one node",         "attachRequired: true",  "ReadWriteOnce", "one"},
        {"attached, for many",             "attachRequired: true",  "ReadWriteMany", "two"},
        {"not attached",                   "attachRequired: false", "ReadWriteOnce", "two"},
        {"nothing is known of the driver", NULL,                    "ReadWriteOnce", "two"},
    };
    (void)state;
    for (size_t i = 0; i < 2 * ROWS(rows); i++) {
        CLEANUP(play) struct play p;
        CLEANUP(str) struct str yaml = {0};
        play_begin(&p);
        scene_put(&p.s, CACHE_STORAGE_CLASS, LATE);
        if (rows[i / 2].driver)
            str_addf(&yaml, "{metadata: {name: x}, spec: {%s}}", rows[i / 2].driver);
        if (yaml.len)
            scene_put(&p.s, CACHE_CSI_DRIVER, yaml.at);
        str_clear(&yaml);
        bool bound = i % 2;
        str_addf(&yaml,
                 "{metadata: {name: c, namespace: default, uid: c-1%s}, spec: {storageClassName: late, accessModes: "
                 "[%s]%s}}",
                 bound ? ", annotations: {pv.kubernetes.io/bind-completed: 'yes'}" : "", rows[i / 2].mode,
                 bound ? ", volumeName: pv" : "");
        scene_put(&p.s, CACHE_CLAIM, yaml.at);
        scene_put(&p.s, CACHE_VOLUME, "{metadata: {name: pv}, spec: {csi: {driver: x, volumeHandle: h}}}");
        role(&p, ROLE, "j-1", MOUNTS("2"));
        scene_pod(&p.s, "small", "", "n1", "containers: [{name: c, resources: {requests: {cpu: 1}}}]");
        const char *says = scene_says(&p.s);
        bool one = strcmp(says, "train:w->n2 train:w->n2") == 0; /* the only node with room for both */
        bool two = strcmp(says, "train:w->n1 train:w->n2") == 0;
        if (strcmp(one ? "one" : two ? "two" : "", rows[i / 2].want) != 0)
            fail_msg("%s: %s", rows[i / 2].label, says);
    }
}

struct told_claims {
    unsigned count, selected; /* claims without a selected node; claims with one */
    char name[64];
};

static void claim_told(void *ctx, const struct cache_claim_volume *claim, bool selected)
{
    struct told_claims *t = ctx;
    t->count += !selected;
    t->selected += selected;
    (void)snprintf(t->name, sizeof t->name, "%s/%s", claim->claim, claim->claim_uid);
}

#define OWN_CLAIM(notes, spec)                                                                                         \
    "{metadata: {name: train-w-0-v, namespace: default, uid: c-1, ownerReferences: [{uid: uid-j-1-0, controller: "     \
    "true}]" notes "}, spec: {storageClassName: late" spec "}}"

/* Each pod has an ephemeral claim, created after the pod, for its node. */
static void ephemeral_claim_per_task(void **state)
{
    (void)state;
    CLEANUP(play) struct play p;
    struct told_claims told = {0};
    play_begin(&p);
    p.tasks = 1;
    role(&p, ROLE, "j-1",
         "spec: {volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: late, accessModes: "
         "[ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}], containers: [{name: c, resources: {requests: "
         "{cpu: 3}}}]}");
    assert_non_null(
        strstr(scene_why(&p.s, "train:w"), "volume v is created for each pod of the job: its claim must name"));
    scene_put(&p.s, CACHE_STORAGE_CLASS,
              "{metadata: {name: late}, provisioner: x, volumeBindingMode: WaitForFirstConsumer, allowedTopologies: "
              "[{matchLabelExpressions: [{key: kubernetes.io/hostname, values: [n2]}]}]}");
    assert_string_equal(scene_says(&p.s), "train:w->n2");
    scene_put(&p.s, CACHE_CSI_DRIVER, "{metadata: {name: x}, spec: {storageCapacity: true}}");
    assert_non_null(strstr(scene_why(&p.s, "train:w"), "did not have enough free storage"));
    scene_put(&p.s, CACHE_STORAGE_CAPACITY,
              "{metadata: {name: s}, storageClassName: late, capacity: 2Gi, nodeTopology: {}}");
    assert_string_equal(scene_says(&p.s), "train:w->n2");
    p.tasks = 2; /* the driver attaches volumes, but each pod has its own */
    scene_put(&p.s, CACHE_STORAGE_CLASS, LATE);
    cache_role_changed(p.s.p, ROLE);
    assert_string_equal(scene_says(&p.s), "train:w->n1 train:w->n2");
    p.tasks = 1;
    cache_role_changed(p.s.p, ROLE);
    uint64_t a = assume(&p, 0, "n2");
    assert_int_equal(cache_claim_volumes(p.s.p, a, NULL, 0), 0); /* nothing to provision before the pod is created */
    scene_put(
        &p.s, CACHE_POD,
        "{metadata: {name: train-w-0, namespace: default, uid: uid-j-1-0, labels: {berth.dev/job: train, berth.dev/role: "
        "w, berth.dev/index: '0', berth.dev/attempt: '1'}, ownerReferences: [{kind: Job, apiVersion: berth.dev/v1, "
        "uid: j-1, controller: true}]}, spec: {schedulerName: berth, nodeName: n2, volumes: [{name: v, ephemeral: "
        "{volumeClaimTemplate: {spec: {storageClassName: late}}}}], containers: [{name: c}]}}");
    assert_string_equal(scene_says(&p.s), "");
    /* the claim is not created yet */
    assert_int_equal(cache_ephemeral_claims(p.s.p, "default:train-w-0", claim_told, &told), 1);
    assert_int_equal(told.count, 0);
    scene_put(&p.s, CACHE_CLAIM, "{metadata: {name: train-w-0-v, namespace: default}, spec: {storageClassName: late}}");
    assert_int_equal(cache_ephemeral_claims(p.s.p, "default:train-w-0", claim_told, &told), 1);
    assert_int_equal(told.count, 0); /* the claim has another owner */
    scene_put(&p.s, CACHE_CLAIM, OWN_CLAIM("", ""));
    assert_int_equal(cache_ephemeral_claims(p.s.p, "default:train-w-0", claim_told, &told), 1);
    assert_string_equal(told.name, "train-w-0-v/c-1");
    scene_put(&p.s, CACHE_CLAIM, OWN_CLAIM(", annotations: {volume.kubernetes.io/selected-node: n2}", ""));
    assert_int_equal(cache_ephemeral_claims(p.s.p, "default:train-w-0", claim_told, &told), 1);
    assert_int_equal(told.count, 1);
    assert_int_equal(told.selected, 1);
    scene_put(&p.s, CACHE_CLAIM,
              OWN_CLAIM(", annotations: {pv.kubernetes.io/bind-completed: 'yes'}", ", volumeName: pv"));
    assert_int_equal(cache_ephemeral_claims(p.s.p, "default:train-w-0", claim_told, &told), 0);
    assert_int_equal(told.count + told.selected, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gang_role_is_placed_as_a_whole),
        cmocka_unit_test(two_roles_start_together),
        cmocka_unit_test(task_from_assumption_to_success),
        cmocka_unit_test(failed_task_has_reason),
        cmocka_unit_test(pods_of_other_jobs_are_not_tasks),
        cmocka_unit_test(reserved_task_is_promoted),
        cmocka_unit_test(labels_without_owner_make_no_task),
        cmocka_unit_test(claim_is_provisioned_for_first_task),
        cmocka_unit_test(chosen_volume_is_reserved_for_its_claim),
        cmocka_unit_test(shared_rwo_claim_keeps_tasks_on_one_node),
        cmocka_unit_test(ephemeral_claim_per_task),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
