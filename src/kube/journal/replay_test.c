/* replay_test.c - bases with volumes, gangs and gates in progress; the command; foreign journals. */
#include "kube/journal/journal_kit_test.h"

#include <errno.h>

#include "control/journal/replay.h"
#include "store/store.h"

#define ASKS "storageClassName: fast, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}"
#define HAS "storageClassName: fast, accessModes: [ReadWriteOnce], capacity: {storage: 2Gi}"
#define ON_HOST(name)                                                                                                  \
    "nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, "   \
    "values: [" name "]}]}]}}"
#define USES(claim) "volumes: [{name: v, persistentVolumeClaim: {claimName: " claim "}}]"

static void same(struct room *r, uint64_t bases)
{
    struct room_difference found = {0};
    struct kube_replay_result result = room_replay(r, &found);
    room_same(&result, &found, 0);
    assert_int_equal(result.bases, bases);
    assert_int_equal(result.skipped + result.gaps, 0);
    assert_true(result.plans >= bases);
}

/* A volume chosen for a pod stays taken, also in a replay that begins with the base; so do the nodes without
 * volumes. */
static void base_keeps_chosen_volumes(void **state)
{
    struct room *r = *state;
    scene_node(&r->s, "n1", "a", "");
    scene_node(&r->s, "n2", "b", "");
    scene_put(&r->s, CACHE_STORAGE_CLASS, "{metadata: {name: fast}, volumeBindingMode: WaitForFirstConsumer}");
    scene_put(&r->s, CACHE_VOLUME,
              "{metadata: {name: pv1}, spec: {" HAS ", " ON_HOST("n1") "}, status: {phase: Available}}");
    for (unsigned i = 0; i < 3; i++) {
        CLEANUP(str) struct str claim = {0}, pod = {0};
        char name[8];
        (void)snprintf(name, sizeof name, "p%u", i);
        str_addf(&claim, "{metadata: {name: c%u, namespace: default, uid: u%u}, spec: {" ASKS "}}", i, i);
        scene_put(&r->s, CACHE_CLAIM, claim.at);
        str_addf(&pod, CPU("1") ", " USES("c%u"), i);
        scene_pod(&r->s, name, "", "", pod.at);
        assert_int_equal(room_plan(r) > 0, i == 0); /* there is one volume */
        room_settle(r);
    }
    scene_put(&r->s, CACHE_VOLUME,
              "{metadata: {name: pv2}, spec: {" HAS ", " ON_HOST("n2") "}, status: {phase: Available}}");
    assert_int_equal(room_plan(r), 2); /* both may have it; only one got it */
    room_settle(r);
    (void)room_plan(r);
    struct cache_pod_view first, second;
    assert_true(cache_pod_find(r->s.p, "default:p1", &first) && cache_pod_find(r->s.p, "default:p2", &second));
    assert_int_equal((first.instance != 0) + (second.instance != 0), 1);
    cache_forget_pod(r->s.p, first.instance ? first.instance : second.instance, 0);
    (void)room_plan(r);
    same(r, 5);
}

/* The same for tasks of a job, which share the volume chosen for the claim of the first. */
static void base_keeps_volumes_of_tasks(void **state)
{
    struct room *r = *state;
    struct cache_pod_view first = {0}, second = {0};
    scene_node(&r->s, "n1", "a", "");
    scene_node(&r->s, "n2", "b", "");
    room_queue(r, "gpu", "{}");
    scene_put(&r->s, CACHE_STORAGE_CLASS, "{metadata: {name: fast}, volumeBindingMode: WaitForFirstConsumer}");
    for (unsigned i = 0; i < 2; i++) {
        CLEANUP(str) struct str claim = {0};
        str_addf(&claim, "{metadata: {name: c%u, namespace: default, uid: u%u}, spec: {" ASKS "}}", i, i);
        scene_put(&r->s, CACHE_CLAIM, claim.at);
    }
    scene_put(&r->s, CACHE_VOLUME,
              "{metadata: {name: pv1}, spec: {" HAS ", " ON_HOST("n1") "}, status: {phase: Available}}");
    room_role(r, "w", CPU("1") ", " USES("c0"));
    assert_int_equal(room_plan(r), 2);
    assert_true(cache_pod_find(r->s.p, "default:w-0", &first) && cache_pod_find(r->s.p, "default:w-1", &second));
    assert_true(first.instance && second.instance);
    room_settle(r); /* a base while these are assumed */
    scene_pod(&r->s, "p", "", "", CPU("1") ", " USES("c1"));
    assert_int_equal(room_plan(r), 0); /* the volume stays taken */
    cache_forget_pod(r->s.p, first.instance, 0);
    cache_forget_pod(r->s.p, second.instance, 0);
    assert_int_equal(room_plan(r), 3); /* one volume for three: the first two have it */
    assert_true(cache_pod_find(r->s.p, "default:w-0", &first) && first.instance);
    scene_drop(&r->s, CACHE_VOLUME, "{metadata: {name: pv1}}"); /* another choice would not find it */
    room_settle(r);
    (void)room_plan(r);
    same(r, 3);
}

/* Two pods share a claim: the base says which of them owns the volume, in either order. The volume is free only when
 * both are given back. */
static void a_volume_of_two(struct room *r, bool first_is_told_last)
{
    struct cache_pod_view owner = {0}, other = {0};
    scene_node(&r->s, "n1", "a", "");
    scene_put(&r->s, CACHE_STORAGE_CLASS, "{metadata: {name: fast}, volumeBindingMode: WaitForFirstConsumer}");
    scene_put(&r->s, CACHE_CLAIM, "{metadata: {name: c0, namespace: default, uid: u0}, spec: {" ASKS "}}");
    scene_put(&r->s, CACHE_CLAIM, "{metadata: {name: c1, namespace: default, uid: u1}, spec: {" ASKS "}}");
    scene_put(&r->s, CACHE_VOLUME, "{metadata: {name: pv1}, spec: {" HAS "}, status: {phase: Available}}");
    if (first_is_told_last)
        scene_pod(&r->s, "other", "", "", CPU("1") ", " USES("c0"));
    scene_pod(&r->s, "owner", "", "", CPU("1") ", priority: 7, " USES("c0"));
    if (!first_is_told_last)
        scene_pod(&r->s, "other", "", "", CPU("1") ", " USES("c0"));
    assert_int_equal(room_plan(r), 2);
    assert_true(cache_pod_find(r->s.p, "default:owner", &owner) && owner.instance);
    assert_true(cache_pod_find(r->s.p, "default:other", &other) && other.instance);
    room_settle(r); /* a base while these are assumed */
    (void)room_plan(r);
    scene_pod(&r->s, "third", "", "", CPU("1") ", " USES("c1"));
    cache_forget_pod(r->s.p, first_is_told_last ? other.instance : owner.instance, INT64_MAX / 2);
    assert_int_equal(room_plan(r), 0);
    cache_forget_pod(r->s.p, first_is_told_last ? owner.instance : other.instance, INT64_MAX / 2);
    assert_int_equal(room_plan(r), 1);
    same(r, 2);
}

static void volume_of_two_pods_replays_in_order(void **state)
{
    a_volume_of_two(*state, false);
}

static void volume_of_two_pods_replays_in_another_order(void **state)
{
    a_volume_of_two(*state, true);
}

/* Whether a pod uses an attached volume follows from the other inputs, also in a replay that begins with a base. */
static void replay_knows_unused_attachments(void **state)
{
    struct room *r = *state;
    scene_node(&r->s, "n1", "a", "");
    scene_put(&r->s, CACHE_CSI_NODE,
              "{metadata: {name: n1}, spec: {drivers: [{name: d, nodeID: x, allocatable: {count: 2}}]}}");
    for (unsigned i = 0; i < 3; i++) {
        CLEANUP(str) struct str yaml = {0};
        str_addf(&yaml, "{metadata: {name: pv%u}, spec: {csi: {driver: d, volumeHandle: h%u}}}", i, i);
        scene_put(&r->s, CACHE_VOLUME, yaml.at);
        str_clear(&yaml);
        str_addf(&yaml,
                 "{metadata: {name: c%u, namespace: default, annotations: {pv.kubernetes.io/bind-completed: 'yes'}}, "
                 "spec: {volumeName: pv%u}}",
                 i, i);
        scene_put(&r->s, CACHE_CLAIM, yaml.at);
        str_clear(&yaml);
        str_addf(&yaml,
                 "{metadata: {name: at%u}, spec: {attacher: d, nodeName: n1, source: {persistentVolumeName: pv%u}}}", i,
                 i);
        if (i < 2)
            scene_put(&r->s, CACHE_ATTACHMENT, yaml.at);
    }
    scene_pod(&r->s, "a", "", "n1", CPU("1") ", " USES("c0"));
    scene_pod(&r->s, "b", "", "", CPU("1") ", " USES("c2"));
    assert_int_equal(room_plan(r), 0);
    room_settle(r);
    assert_int_equal(room_plan(r), 0);
    scene_drop(&r->s, CACHE_POD, "{metadata: {name: a, namespace: default}}");
    assert_int_equal(room_plan(r), 0); /* as before: the volume it used is attached */
    scene_drop(&r->s, CACHE_ATTACHMENT, "{metadata: {name: at1}}");
    assert_int_equal(room_plan(r), 1);
    room_settle(r);
    (void)room_plan(r);
    same(r, 3);
}

/* Two claims, and no node has volumes for both: each node is tried and excluded, also in a replay that begins with a
 * base. */
static void base_keeps_excluded_nodes(void **state)
{
    struct room *r = *state;
    scene_node(&r->s, "n1", "a", "");
    scene_node(&r->s, "n2", "b", "");
    room_queue(r, "gpu", "{}");
    scene_put(&r->s, CACHE_STORAGE_CLASS, "{metadata: {name: fast}, volumeBindingMode: WaitForFirstConsumer}");
    scene_put(&r->s, CACHE_CLAIM, "{metadata: {name: c0, namespace: default, uid: u0}, spec: {" ASKS "}}");
    scene_put(&r->s, CACHE_CLAIM, "{metadata: {name: c1, namespace: default, uid: u1}, spec: {" ASKS "}}");
    scene_put(&r->s, CACHE_VOLUME,
              "{metadata: {name: pv1}, spec: {" HAS ", " ON_HOST("n1") "}, status: {phase: Available}}");
    scene_put(&r->s, CACHE_VOLUME,
              "{metadata: {name: pv2}, spec: {" HAS ", " ON_HOST("n2") "}, status: {phase: Available}}");
    r->tasks = 1;
    room_role(
        r, "x",
        CPU("1") ", volumes: [{name: v, persistentVolumeClaim: {claimName: c0}}, {name: u, persistentVolumeClaim: "
                 "{claimName: c1}}]");
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(room_plan(r), i < 2);
        room_settle(r);
    }
    (void)room_plan(r);
    same(r, 4);
}

static void gangs_and_gates(void **state)
{
    struct room *r = *state;
    static const char *const pods[] = {"a", "b", "c"};
    scene_node(&r->s, "n1", "a", "");
    scene_put(&r->s, CACHE_POD_GROUP,
              "{metadata: {name: g, namespace: default}, spec: {schedulingPolicy: {gang: {minCount: 3}}}}");
    scene_put(&r->s, CACHE_BUDGET,
              "{metadata: {name: b, namespace: default}, spec: {selector: {matchLabels: {app: x}}}, status: "
              "{disruptionsAllowed: 1}}");
    scene_pod(&r->s, "gated", "app: x", "", CPU("1") ", schedulingGates: [{name: later}]");
    for (size_t i = 0; i < ROWS(pods); i++) {
        scene_pod(&r->s, pods[i], "app: x", "", CPU("1") ", schedulingGroup: {podGroupName: g}");
        assert_int_equal(room_plan(r), i == 2 ? 3 : 0);
        room_settle(r);
    }
    scene_pod(&r->s, "gated", "app: x", "", CPU("1"));
    assert_int_equal(room_plan(r), 1);
    scene_pod(&r->s, "urgent", "", "", CPU("3") ", priority: 100");
    assert_true(room_plan(r) > 1); /* others are preempted */
    room_settle(r);
    (void)room_plan(r);
    same(r, 5);
}

/* Queues stay in force though an object they name is gone. */
static void base_keeps_queues_in_force(void **state)
{
    struct room *r = *state;
    scene_node(&r->s, "n1", "a", "");
    room_queue(r, "low", "{priority: -5}");
    room_queue(r, "above", "{}");
    room_queue(r, "below", "{parent: above, priority: 7}");
    (void)room_plan(r);
    tenants_drop(r->s.tenants, KIND_QUEUE, "above");
    (void)room_plan(r);
    room_queue(r, "low", "{priority: nonsense}"); /* rejected: the last good spec stays */
    room_settle(r);
    scene_pod(&r->s, "slow", "berth.dev/queue: low", "", CPU("3"));
    scene_pod(&r->s, "fast", "berth.dev/queue: below", "", CPU("3"));
    assert_true(room_plan(r) > 0);
    room_settle(r);
    (void)room_plan(r);
    same(r, 3);
}

static int room_setup_two(void **state)
{
    return room_setup_names(state, 2);
}

static const char *node_of(struct room *r, const char *pod)
{
    struct cache_pod_view found;
    return cache_pod_find(r->s.p, pod, &found) ? found.node : "nowhere";
}

static void named_pod(struct room *r, const char *name, const char *scheduler)
{
    CLEANUP(str) struct str yaml = {0};
    str_addf(&yaml, "{metadata: {name: %s, namespace: default}, spec: {schedulerName: %s, " CPU("1") "}}", name,
             scheduler);
    scene_put(&r->s, CACHE_POD, yaml.at);
}

/* Pods with two scheduler names, and a role of a job with the second one: the base contains the profile of each
 * name. */
static void base_keeps_profiles_of_names(void **state)
{
    struct room *r = *state;
    CLEANUP(str) struct str bytes = {0};
    scene_node(&r->s, "busy", "a", "");
    scene_node(&r->s, "idle", "a", "");
    scene_pod(&r->s, "old", "", "busy", CPU("1"));
    room_queue(r, "gpu", "{}");
    named_pod(r, "spread", "berth");
    named_pod(r, "packed", "berth-pack");
    named_pod(r, "foreign", "somebody");
    assert_int_equal(room_plan(r), 2);
    assert_string_equal(node_of(r, "default:spread"), "idle");
    assert_string_equal(node_of(r, "default:packed"), "busy");
    assert_string_equal(node_of(r, "default:foreign"), "nowhere");
    room_settle(r);
    kit_object(&bytes, CACHE_POD,
               "{metadata: {name: x, namespace: default}, spec: {schedulerName: berth-pack, " CPU("1") "}}");
    assert_true(cache_role_put(r->s.p, &(struct cache_job_role){.id = "default:train:worker",
                                                                .namespace = "default",
                                                                .owner = "job-1",
                                                                .pod = proto_reader(str_text(&bytes), bytes.len)}));
    assert_int_equal(room_plan(r), 2);
    assert_string_equal(node_of(r, "default:worker-0"), "busy");
    assert_string_equal(node_of(r, "default:worker-1"), "busy");
    same(r, 2);
}

/* ---- the command ------------------------------------------------------------------------------------------------ */

static int command(struct str *said, size_t len, char *const *words)
{
    char *text = NULL;
    size_t text_len = 0;
    FILE *out = open_memstream(&text, &text_len);
    int status = kube_replay_main((int)len, words, out);
    (void)fclose(out);
    str_clear(said);
    str_add_bytes(said, text, text_len);
    free(text);
    return status;
}
#define COMMAND(said, ...)                                                                                             \
    command(said, sizeof((char *[]){"replay", __VA_ARGS__}) / sizeof(char *), (char *[]){"replay", __VA_ARGS__})

static void command_line_and_output(void **state)
{
    struct room *r = *state;
    CLEANUP(str) struct str said = {0};
    scene_node(&r->s, "n1", "a", "");
    scene_pod(&r->s, "p", "", "", CPU("1"));
    (void)room_plan(r);
    (void)room_plan(r);
    room_settle(r);
    assert_int_equal(COMMAND(&said, r->dir), 0);
    assert_non_null(strstr(said.at, "2 plans recomputed: no differences."));
    assert_int_equal(COMMAND(&said, "--from", "2", r->dir, "-o", "json"), 0);
    assert_non_null(strstr(said.at, "\"plans\":1,\"different\":0"));
    assert_int_equal(COMMAND(&said, r->dir, "--to=2023-11-14"), 0);
    assert_non_null(strstr(said.at, "0 plans recomputed: no plans."));
    assert_int_equal(COMMAND(&said, r->dir, "--from=2023-11-14"), 0);
    assert_non_null(strstr(said.at, "2 plans"));
    assert_int_equal(COMMAND(&said, "--help"), 0);
    assert_non_null(strstr(said.at, "exit codes"));
    assert_int_equal(COMMAND(&said, "--from", "1"), 2);
    assert_int_equal(COMMAND(&said, r->dir, "--from", "yesterday"), 2);
    assert_int_equal(COMMAND(&said, r->dir, "-o", "yaml"), 2);
    assert_int_equal(COMMAND(&said, "/nonexistent"), 1);
}

static void foreign_journals_are_rejected(void **state)
{
    static const char *const records[] = {
        "{\"j\":2,\"kind\":\"POST /v1/jobs\",\"at\":1,\"changes\":[]}",
        "{\"j\":2,\"kind\":\"kube.base\",\"at\":1,\"changes\":[[\"nodes/x\",{}]],\"base\":1,\"n\":1}",
        "{\"j\":2,\"kind\":\"kube.base\",\"at\":1,\"changes\":[[\"base/1\",{\"version\":3}]],\"base\":1,\"n\":1}",
        "{\"j\":2,\"kind\":\"kube.base\",\"at\":1,\"changes\":[[\"base/"
        "1\",{\"version\":1,\"profile\":\"default\",\"schedulers\":[\"a\"]}],[\"wonders/1\",{}]],\"base\":1,\"n\":1}",
        "{\"j\":2,\"kind\":\"kube.base\",\"at\":1,\"changes\":[[\"base/"
        "1\",{\"version\":1,\"profile\":\"default\",\"schedulers\":[\"a\"]}],[\"pods/a:b\",{\"t\":\"12\",\"uid\":\"u\"}]],\"base\":1,\"n\":1}",
        "{\"j\":2,\"kind\":\"kube.base\",\"at\":1,\"changes\":[[\"base/"
        "1\",{\"version\":1,\"profile\":\"default\",\"schedulers\":[\"a\"]}],[\"nodes/a\",{\"pb\":\"!\"}]],\"base\":1,\"n\":1}",
        "{\"j\":2,\"kind\":\"kube.base\",\"at\":1,\"changes\":[[\"base/"
        "1\",{\"version\":2,\"profile\":\"default\",\"schedulers\":[\"a\"],\"profiles\":[\"absent\"]}]],\"base\":1,\"n\":1}",
        "{\"j\":2,\"kind\":\"kube.base\",\"at\":1,\"changes\":[[\"base/"
        "1\",{\"version\":2,\"profile\":\"default\",\"schedulers\":[\"a\"],\"profiles\":[]}]],\"base\":1,\"n\":1}",
    };
    static const char *const said[] = {
        "berth replay", "no base precedes it", "newer berth-kube", "unknown input", "template",
        "base64",       "unknown profile",     "unknown profile"};
    (void)state;
    for (size_t i = 0; i < ROWS(records); i++) {
        struct store *store = store_memory_new();
        struct kube_replay_result result;
        struct berth_err err = {0};
        assert_int_equal(store_submit(store,
                                      &(struct store_txn){
                                          .record = {records[i], strlen(records[i])}
        },
                                      NULL, NULL, NULL),
                         0);
        store_drain(store);
        struct journal *journal = journal_of_store(store);
        assert_true(kube_replay(journal, &(struct kube_replay_options){0}, &result, &err) < 0);
        if (!strstr(err.text, said[i]))
            fail_msg("row %zu says: %s", i, err.text);
        journal_close(journal);
        store_close(store);
    }
}

static int replay_record(const char *record, struct berth_err *err)
{
    struct store *store = store_memory_new();
    struct kube_replay_result result;
    assert_int_equal(store_submit(store,
                                  &(struct store_txn){
                                      .record = {record, strlen(record)}
    },
                                  NULL, NULL, NULL),
                     0);
    store_drain(store);
    struct journal *journal = journal_of_store(store);
    int rc = kube_replay(journal, &(struct kube_replay_options){0}, &result, err);
    journal_close(journal);
    store_close(store);
    return rc;
}

/* Damaged or forged files. */
static void forged_changes_are_rejected(void **state)
{
#define ROLE "[\"templates/01\",{\"pb\":\"\"}],[\"roles/n:j:r\",{\"t\":\"01\",\"namespace\":\"n\",\"job\":\"u\"}],"
#define RENEW(instances, places) "[\"renew\",{\"instances\":" instances ",\"places\":" places "}]"
#define TASK(name, numbers) "[\"tasks/n:j:r\",{\"node\":\"n1\",\"name\":\"" name "\"," numbers "}]"
    static const struct {
        const char *changes, *said;
    } rows[] = {
        {ROLE RENEW("0",                                                                                                       "0"),                                                               NULL},
        {ROLE "[\"roles/n:j\",{\"t\":\"01\",\"namespace\":\"n:j:and-more\",\"job\":\"u\"}]",
         "roles/n:j cannot be read: its name is invalid"                                                                                                    },
        {ROLE "[\"roles/n:j:r\",{\"t\":\"01\",\"namespace\":\"other\",\"job\":\"u\"}]",                                                                                                                    "its name is invalid"     },
        {ROLE "[\"roles/n:j:r\",{\"t\":\"01\",\"namespace\":\"n\"}]",                                                                                                                    "its name is invalid"                                                                                                                      },
        {ROLE TASK("a",                                                                                                                    "\"ordinal\":4294967295,\"attempt\":1,\"instance\":1"),
         "its 'ordinal' is missing or out of range"},
        {ROLE TASK("a",                                                                           "\"ordinal\":0,\"attempt\":-1,\"instance\":1"),                                                                                                                                             "its 'attempt'"},
        {ROLE TASK("a","\"ordinal\":0,\"attempt\":1"),"its 'instance'"},
        {ROLE TASK("a",                                                                                                        "\"ordinal\":0,\"attempt\":1,\"instance\":0"),                                                                                                                                                 "its instance is missing"},
        {ROLE TASK("j:r",                                                                                                                    "\"ordinal\":0,\"attempt\":1,\"instance\":1"),                                                                                                                                                                          "its name is invalid"},
        {ROLE "[\"task_ends/n:j:r\",{\"ordinal\":4294967295,\"instance\":1}]",                                                                                           "its 'ordinal'"            },
        {ROLE
         "[\"task_ends/n:j:r\",{\"ordinal\":0,\"instance\":7}],[\"task_ends/n:j:r\",{\"ordinal\":1,\"instance\":7}]","its instance is already used"},
        {ROLE "[\"task_ends/n:j:r\",{\"ordinal\":0,\"instance\":7}]," RENEW("6",                                                 "0"),
         "its number of instances is too low"},
        {RENEW("0", "1000000000000"),                                                                                  "its 'places'"},
        {RENEW("-1",                                               "0"),                                                             "its 'instances'"},
        {RENEW("0",                                                                                                                    "0") "," RENEW("0",                                                                                                                                                                              "0"), "it is only allowed in a base"},
        {"[\"pods/n:j:r\",{\"t\":\"01\",\"uid\":\"u\"}]",                                                                                                      "its name is invalid"                                                                                      },
        {"[\"pods/p\",{\"t\":\"01\",\"uid\":\"u\"}]",                                                                  "its name is invalid"                                                      },
        {"[\"pods/n:p\",{\"t\":\"01\"}]",                                                                                                            "its name is invalid"                                        },
        {"[\"pods/n:p\",{\"t\":\"01\",\"uid\":\"n:j:r\"}]",                                                                                      "its name is invalid"                                                                                                                                                       },
        {"[\"pods/n:p\",[]]","it is not an object"},
        {"[\"promote/x\",{}]",                              "its name is invalid"                                         },
        {"[\"give_back/1\",{}]","its 'not_before'"             },
        {"[\"tenants/nodes/a\",{}]",          "its name is invalid"},
        {"[\"tenants/queues/\",{}]",                                                                                                      "its name is invalid"                                                                                                                                                                                                  },
        {"[\"tenant_past/queues/a\",7]",                                                                  "it is not an object"                                                                                          },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(str) struct str record = {0};
        struct berth_err err = {0};
        str_addf(
            &record,
            "{\"j\":2,\"kind\":\"kube.base\",\"at\":1,\"changes\":[[\"base/1\",{\"version\":1,\"profile\":\"default\","
            "\"schedulers\":[\"a\"]}],%s],\"base\":1,\"n\":1}",
            rows[i].changes);
        int rc = replay_record(record.at, &err);
        bool said = rows[i].said && strstr(err.text, rows[i].said) && strncmp(err.text, "record 1: ", 10) == 0;
        if (rows[i].said ? rc != -EBADMSG || !said : rc != 0)
            fail_msg("row %zu: %d, %s", i, rc, err.text);
    }
#undef ROLE
#undef RENEW
#undef TASK
}

static void plans_without_time_are_rejected(void **state)
{
    struct berth_err err = {0};
    (void)state;
    assert_int_equal(replay_record("{\"j\":2,\"kind\":\"kube.base\",\"at\":1,\"changes\":[[\"base/1\",{\"version\":1,"
                                   "\"profile\":\"default\",\"schedulers\":[\"a\"]}]],\"base\":1,\"n\":1,\"cycle\":"
                                   "{\"n\":1,\"now\":-7}}",
                                   &err),
                     -EBADMSG);
    assert_non_null(strstr(err.text, "the time of its plan is out of range"));
}

/* The daemon's replay rejects berth-kube's journal. */
static void daemon_replay_rejects_kube_journal(void **state)
{
    static const char record[] = "{\"j\":2,\"kind\":\"kube.plan\",\"at\":1,\"changes\":[],\"cycle\":{\"n\":1}}";
    struct store *store = store_memory_new();
    struct replay_result result;
    struct berth_err err = {0};
    (void)state;
    assert_int_equal(store_submit(store,
                                  &(struct store_txn){
                                      .record = {record, strlen(record)}
    },
                                  NULL, NULL, NULL),
                     0);
    store_drain(store);
    assert_int_equal(replay_run(store, &(struct replay_options){0}, &result, &err), -EBADMSG);
    assert_non_null(strstr(err.text, "berth-kube replay"));
    store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(base_keeps_chosen_volumes, room_setup, room_teardown),
        cmocka_unit_test_setup_teardown(base_keeps_volumes_of_tasks, room_setup, room_teardown),
        cmocka_unit_test_setup_teardown(volume_of_two_pods_replays_in_order, room_setup, room_teardown),
        cmocka_unit_test_setup_teardown(volume_of_two_pods_replays_in_another_order, room_setup, room_teardown),
        cmocka_unit_test_setup_teardown(replay_knows_unused_attachments, room_setup, room_teardown),
        cmocka_unit_test_setup_teardown(base_keeps_excluded_nodes, room_setup, room_teardown),
        cmocka_unit_test_setup_teardown(gangs_and_gates, room_setup, room_teardown),
        cmocka_unit_test_setup_teardown(base_keeps_queues_in_force, room_setup, room_teardown),
        cmocka_unit_test_setup_teardown(base_keeps_profiles_of_names, room_setup_two, room_teardown),
        cmocka_unit_test_setup_teardown(command_line_and_output, room_setup, room_teardown),
        cmocka_unit_test(foreign_journals_are_rejected),
        cmocka_unit_test(forged_changes_are_rejected),
        cmocka_unit_test(plans_without_time_are_rejected),
        cmocka_unit_test(daemon_replay_rejects_kube_journal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
