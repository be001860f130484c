/* journal_kit_test.h - a fixture for tests: a cache with tenants and jobs, a journal of it in its own folder, and a
 * minimal scheduler.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "journal/reader.h"
#include "kube/journal/journal.h"
#include "kube/journal/replay.h"
#include "kube/sched/plan_choice.h"
#include "kube/sched/policy.h"
#include "net/loop.h"

/* journal/shelf.h and the cache's internals both define a shelf; the kit of objects needs neither. */
#include "kube/object/object_kit_test.h"

#define CPU(amount) "containers: [{name: c, resources: {requests: {cpu: " amount "}}}]"
#define TASKS_MAX 8

struct room {
    struct scene s; /* first member: callbacks get its address */
    struct loop *loop;
    struct log log;
    FILE *sink;
    struct kube_journal *journal;
    struct kube_journal_config config;
    struct kube_policy policy;
    char dir[256];
    int64_t now_ns;
    uint32_t tasks; /* of each role; 0: its job was deleted */
    int64_t begin_ns;
};

static inline void room_claim_fill(const struct room *r, struct job_claim *ret)
{
    *ret = (struct job_claim){.namespace = "default",
                              .name = "train",
                              .queue = "gpu",
                              .tasks = r->tasks,
                              .created_ns = 5,
                              .begin_ns = r->begin_ns,
                              .gang = true};
}

static inline const char *room_claim(void *ctx, const char *role, struct arena *arena, struct berth_workload *w)
{
    struct room *r = ctx;
    struct job_claim claim;
    room_claim_fill(r, &claim);
    kube_journal_claim(r->journal, role, r->tasks ? &claim : NULL);
    return r->tasks ? job_claim_apply(&claim, r->s.tenants, arena, w) : JOB_CLAIM_GONE;
}

static inline void room_task(void *ctx, const struct cache_task_view *task)
{
    (void)ctx;
    (void)task;
}

static inline void room_input(void *ctx, const struct cache_change *in)
{
    kube_journal_input(((struct room *)ctx)->journal, in);
}

/* Sets up a room with this many scheduler names; from the second on they have profiles of their own. */
static inline int room_setup_names(void **state, size_t names_len)
{
    static const char *const names[] = {"berth", "berth-pack"}, *const profiles[] = {"", "pack"};
    struct room *r = mem_zalloc(sizeof *r);
    const char *under = getenv("TMPDIR");
    (void)snprintf(r->dir, sizeof r->dir, "%s/berth-kube-journal-XXXXXX", under ? under : "/tmp");
    assert_non_null(mkdtemp(r->dir));
    assert_int_equal(loop_new(&r->loop, NULL), 0);
    r->sink = fopen("/dev/null", "w");
    r->log = (struct log){.out = r->sink, .level = LEVEL_ERROR};
    r->now_ns = INT64_C(1700000000000000000);
    r->tasks = 2;
    r->s.tenants = tenants_new(scene_changed, r);
    r->s.p = cache_new(&(struct cache_config){.schedulers = names,
                                              .schedulers_len = names_len,
                                              .profiles = profiles,
                                              .tenants = r->s.tenants,
                                              .changed = scene_changed,
                                              .trouble = scene_trouble,
                                              .ctx = r,
                                              .claim = room_claim,
                                              .task = room_task,
                                              .input = room_input});
    r->config = (struct kube_journal_config){.loop = r->loop,
                                             .log = &r->log,
                                             .dir = r->dir,
                                             .keep_ns = INT64_MAX / 2,
                                             .keep_bytes = UINT64_MAX,
                                             .cache = r->s.p,
                                             .tenants = r->s.tenants,
                                             .profile = "default",
                                             .schedulers = names,
                                             .schedulers_len = names_len,
                                             .profiles = profiles,
                                             .identity = "test"};
    r->journal = kube_journal_new(&r->config);
    kube_policy_init(&r->policy, berth_profile_find("default"), profiles, names_len);
    *state = r;
    return 0;
}

static inline int room_setup(void **state)
{
    return room_setup_names(state, 1);
}

static inline int room_remove(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

/* Finishes the journal for readers; the next plan begins with a base. */
static inline void room_settle(struct room *r)
{
    kube_journal_close(r->journal);
}

static inline int room_teardown(void **state)
{
    struct room *r = *state;
    kube_journal_free(r->journal);
    cache_free(r->s.p);
    tenants_free(r->s.tenants);
    str_done(&r->s.text);
    loop_free(r->loop);
    (void)fclose(r->sink);
    (void)nftw(r->dir, room_remove, 16, FTW_DEPTH | FTW_PHYS);
    mem_free(r);
    return 0;
}

static inline void room_carry_out(struct room *r, const struct berth_action *a)
{
    struct cache_pod_view pod;
    char name[300];
    bool role = cache_role_exists(r->s.p, a->workload);
    if (a->op == BERTH_STOP) {
        cache_set_stopping(r->s.p, a->instance, true);
    } else if (a->op == BERTH_PROMOTE) {
        (void)cache_promote_pod(r->s.p, a->instance);
    } else if (a->op != BERTH_PLACE && a->op != BERTH_RESERVE) {
        return;
    } else if (role) {
        (void)snprintf(name, sizeof name, "%s-%u", strrchr(a->workload, ':') + 1, a->ordinal);
        (void)cache_assume_task(r->s.p, &(struct cache_task_placement){.role = a->workload,
                                                                       .name = name,
                                                                       .ordinal = a->ordinal,
                                                                       .attempt = 1,
                                                                       .node = a->node,
                                                                       .gpus = a->gpus,
                                                                       .waits = a->waits,
                                                                       .waits_len = a->waits_len});
    } else if (cache_pod_find(r->s.p, a->workload, &pod)) {
        (void)cache_assume_pod(r->s.p, a->workload, a->node, a->gpus, a->waits, a->waits_len);
    }
}

/* Plans and carries out like kube/sched/scheduler.c. Returns the number of actions. */
static inline size_t room_plan(struct room *r)
{
    struct berth_err err = {0};
    struct kube_choice choice;
    struct plan_policy policy;
    r->now_ns += INT64_C(1000000000);
    struct berth_cluster *cluster = cache_cluster(r->s.p);
    if (kube_journal_prepare(r->journal, r->now_ns))
        cluster = cache_cluster(r->s.p);
    kube_policy_read(&r->policy, r->s.tenants, &policy);
    if (kube_choose(cluster, r->now_ns, &policy.policy, &choice, &err) < 0)
        fail_msg("%s", err.text);
    kube_journal_plan(r->journal, r->now_ns, choice.plan);
    size_t actions = berth_plan_actions(choice.plan);
    for (size_t i = 0; i < actions; i++) {
        const struct berth_action a = berth_plan_action(choice.plan, i);
        room_carry_out(r, &a);
    }
    kube_remember(cluster, choice.plan);
    kube_choice_done(&choice);
    plan_policy_done(&policy);
    (void)loop_once(r->loop, 0, NULL);
    return actions;
}

static inline void room_queue(struct room *r, const char *name, const char *spec)
{
    json_t *tree = kit_parse(spec);
    (void)tenants_put(r->s.tenants, KIND_QUEUE, name, tree, NULL);
    json_decref(tree);
}

/* Puts a role "default:train:NAME" whose pod has this spec. */
static inline void room_role(struct room *r, const char *name, const char *spec)
{
    CLEANUP(str) struct str yaml = {0}, bytes = {0}, id = {0};
    str_addf(&yaml, "{metadata: {name: x, namespace: default}, spec: {schedulerName: berth, %s}}", spec);
    kit_object(&bytes, CACHE_POD, yaml.at);
    str_addf(&id, "default:train:%s", name);
    assert_true(cache_role_put(r->s.p, &(struct cache_job_role){.id = id.at,
                                                                .namespace = "default",
                                                                .owner = "job-1",
                                                                .pod = proto_reader(str_text(&bytes), bytes.len)}));
}

struct room_difference {
    uint64_t count;
    char input[512], actions[2048], actions_replayed[2048];
};

static inline void room_differs(void *ctx, const struct kube_replay_difference *d)
{
    struct room_difference *found = ctx;
    if (found->count++)
        return;
    (void)snprintf(found->input, sizeof found->input, "%s", d->input);
    (void)json_dumpb(d->actions, found->actions, sizeof found->actions - 1, JSON_COMPACT);
    (void)json_dumpb(d->actions_replayed, found->actions_replayed, sizeof found->actions_replayed - 1, JSON_COMPACT);
}

static inline struct kube_replay_result room_replay_of(const struct journal_sources *sources,
                                                       struct room_difference *found)
{
    CLEANUP(journal) struct journal *journal = NULL;
    struct kube_replay_result result = {0};
    struct berth_err err = {0};
    const struct kube_replay_options o = {.differs = room_differs, .ctx = found};
    int rc = journal_open(sources, &journal, &err);
    if (rc == 0)
        rc = kube_replay(journal, &o, &result, &err);
    if (rc < 0)
        fail_msg("%s", err.text);
    return result;
}

static inline void room_same(const struct kube_replay_result *result, const struct room_difference *found,
                             uint64_t seed)
{
    if (result->different)
        fail_msg("seed %llu: %llu of %llu plans differ, the first: %s\n- %s\n+ %s", (unsigned long long)seed,
                 (unsigned long long)result->different, (unsigned long long)result->plans, found->input, found->actions,
                 found->actions_replayed);
}

static inline struct kube_replay_result room_replay(struct room *r, struct room_difference *found)
{
    room_settle(r);
    return room_replay_of(&(struct journal_sources){.data = r->dir}, found);
}
