/* journal_test.c - recorded inputs suffice to make every plan again; modifications are found; failing disks; no
 * secrets.
 */
#include "kube/journal/journal_kit_test.h"

#include <signal.h>
#include <sys/resource.h>

#include "base/base64.h"
#include "journal/scan.h"
#include "journal/segment.h"
#include "kube/journal/journal_ops.h"
#include "store/store.h"

/* ---- a random workload ------------------------------------------------------------------------------------------ */

struct dice {
    uint64_t at;
};

static uint32_t roll(struct dice *d, uint32_t sides)
{
    d->at = d->at * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(d->at >> 33) % sides;
}

static void pod_bind(struct room *r, unsigned number, const char *node, uint32_t cpu, int priority, bool leaves)
{
    CLEANUP(str) struct str yaml = {0};
    str_addf(&yaml,
             "{metadata: {name: p%u, namespace: default, uid: uid-p%u, creationTimestamp: 100%s, labels: {app: a%u}}, "
             "spec: {schedulerName: berth, nodeName: \"%s\", priority: %d, " CPU("%u") "}}",
             number, number, leaves ? ", deletionTimestamp: 5" : "", number % 3, node, priority, cpu);
    scene_put(&r->s, CACHE_POD, yaml.at);
}

static void task_bind(struct room *r, const char *name, uint32_t ordinal, const char *node)
{
    CLEANUP(str) struct str yaml = {0};
    str_addf(&yaml,
             "{metadata: {name: %s, namespace: default, uid: uid-%s, creationTimestamp: 100, "
             "labels: {berth.dev/job: train, berth.dev/role: w, berth.dev/index: \"%u\", berth.dev/attempt: \"1\"}, "
             "ownerReferences: [{kind: Job, uid: job-1, apiVersion: berth.dev/v1, controller: true}]}, "
             "spec: {schedulerName: berth, nodeName: %s, " CPU("1") "}}",
             name, name, ordinal, node);
    scene_put(&r->s, CACHE_POD, yaml.at);
}

static void pod_go(struct room *r, unsigned number)
{
    CLEANUP(str) struct str yaml = {0};
    str_addf(&yaml, "{metadata: {name: p%u, namespace: default}}", number);
    scene_drop(&r->s, CACHE_POD, yaml.at);
}

/* The API server confirms decisions, rejects them, or delays them. */
static void bindings_come(struct room *r, struct dice *d, const uint32_t *cpus)
{
    char id[64];
    for (unsigned i = 0; i < 40; i++) {
        struct cache_pod_view pod;
        (void)snprintf(id, sizeof id, "default:p%u", i);
        if (!cache_pod_find(r->s.p, id, &pod) || !pod.instance || roll(d, 3) == 0)
            continue;
        char node[64];
        (void)snprintf(node, sizeof node, "%s", pod.node);
        if (!pod.bound && roll(d, 5) == 0)
            cache_forget_pod(r->s.p, pod.instance, r->now_ns + INT64_C(2000000000));
        else if (pod.bound && pod.stopping)
            pod_go(r, i);
        else if (!pod.bound)
            pod_bind(r, i, node, cpus[i], (int)(i % 3) * 10, false);
    }
    for (unsigned i = 0; i < 2; i++) {
        struct cache_pod_view pod;
        char name[16], node[64];
        (void)snprintf(name, sizeof name, "w-%u", i);
        (void)snprintf(id, sizeof id, "default:%s", name);
        if (!cache_pod_find(r->s.p, id, &pod) || pod.bound || roll(d, 2) == 0)
            continue;
        (void)snprintf(node, sizeof node, "%s", pod.node);
        if (roll(d, 4) == 0)
            cache_forget_pod(r->s.p, pod.instance, 0);
        else
            task_bind(r, name, i, node);
    }
}

static void others_change(struct room *r, struct dice *d)
{
    char name[16];
    (void)snprintf(name, sizeof name, "n%u", roll(d, 6));
    switch (roll(d, 7)) {
    case 0: scene_node(&r->s, name, roll(d, 2) ? "a" : "b", roll(d, 4) ? "" : "unschedulable: true"); break;
    case 1: {
        CLEANUP(str) struct str yaml = {0};
        str_addf(&yaml, "{metadata: {name: %s}}", name);
        scene_drop(&r->s, CACHE_NODE, yaml.at);
        break;
    }
    case 2: room_queue(r, "gpu", roll(d, 2) ? "{}" : "{maxTime: 1h}"); break;
    case 3: room_queue(r, "lab", "{parent: gpu}"); break;
    case 4: tenants_drop(r->s.tenants, KIND_QUEUE, "gpu"); break;
    case 5: room_role(r, "w", CPU("1")); break;
    default:
        r->begin_ns = roll(d, 2) ? 0 : r->now_ns + INT64_C(5000000000);
        cache_role_changed(r->s.p, "default:train:w");
        break;
    }
}

static void life(struct room *r, uint64_t seed, unsigned turns)
{
    struct dice d = {seed};
    uint32_t cpus[40];
    for (unsigned i = 0; i < 40; i++)
        cpus[i] = 1 + roll(&d, 3);
    for (unsigned i = 0; i < 4; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "n%u", i);
        scene_node(&r->s, name, i % 2 ? "a" : "b", "");
    }
    for (unsigned t = 0; t < turns; t++) {
        for (uint32_t i = roll(&d, 4); i > 0; i--) {
            unsigned number = roll(&d, 40);
            char id[64];
            struct cache_pod_view pod;
            (void)snprintf(id, sizeof id, "default:p%u", number);
            if (!cache_pod_find(r->s.p, id, &pod))
                pod_bind(r, number, "", cpus[number], (int)(number % 3) * 10, false);
            else if (pod.bound && roll(&d, 2)) {
                char node[64];
                (void)snprintf(node, sizeof node, "%s", pod.node);
                pod_bind(r, number, node, cpus[number], (int)(number % 3) * 10, true);
            }
        }
        if (roll(&d, 2))
            pod_go(r, roll(&d, 40));
        if (roll(&d, 2))
            others_change(r, &d);
        (void)room_plan(r);
        bindings_come(r, &d, cpus);
    }
}

/* ---- replay ----------------------------------------------------------------------------------------------------- */

static void every_plan_is_replayed(void **state)
{
    struct room *r = *state;
    struct room_difference found = {0};
    life(r, 1, 200);
    struct kube_replay_result result = room_replay(r, &found);
    room_same(&result, &found, 1);
    assert_int_equal(result.plans, 200);
    assert_int_equal(result.bases, 1);
    assert_int_equal(result.skipped + result.gaps, 0);
    assert_true(result.inputs > 500);
}

/* Plans after a base are reproduced whatever was in progress when it was written. */
static void replay_starts_at_any_base(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 15; seed++) {
        void *at = NULL;
        struct room_difference found = {0};
        (void)room_setup(&at);
        struct room *r = at;
        for (unsigned i = 0; i < 10; i++) {
            life(r, seed * 100 + i, 12);
            room_settle(r); /* the next plan begins with a base */
        }
        struct kube_replay_result result = room_replay(r, &found);
        room_same(&result, &found, seed);
        assert_int_equal(result.plans, 120);
        assert_int_equal(result.bases, 10);
        (void)room_teardown(&at);
    }
}

/* A pod is created for a job that is deleted before the watch shows the pod; then a base is written; then the pod
 * appears. */
static void unseen_pod_of_deleted_job_is_replayed(void **state)
{
    struct room *r = *state;
    struct room_difference found = {0};
    scene_node(&r->s, "n1", "a", "");
    room_queue(r, "gpu", "{}");
    room_role(r, "w", CPU("1"));
    assert_int_equal(room_plan(r), 2);
    cache_role_drop(r->s.p, "default:train:w");
    room_settle(r);
    (void)room_plan(r);
    task_bind(r, "w-0", 0, "n1");
    for (unsigned i = 0; i < 3; i++)
        (void)room_plan(r);
    struct kube_replay_result result = room_replay(r, &found);
    room_same(&result, &found, 0);
    assert_int_equal(result.bases, 2);
}

/* A base that is due by size waits until such a pod is seen, but not forever. */
static void a_base_waits_for_unseen_pods(void **state)
{
    unsigned waits[2] = {0};
    (void)state;
    for (unsigned seen = 0; seen < 2; seen++) {
        void *at = NULL;
        struct room_difference found = {0};
        (void)room_setup(&at);
        struct room *r = at;
        kube_journal_free(r->journal);
        r->config.segment_bytes = 5000;
        r->journal = kube_journal_new(&r->config);
        scene_node(&r->s, "n1", "a", "");
        room_queue(r, "gpu", "{}");
        room_role(r, "w", CPU("1"));
        assert_int_equal(room_plan(r), 2);
        cache_role_drop(r->s.p, "default:train:w");
        assert_true(cache_has_orphans(r->s.p));
        for (unsigned i = 10; kube_journal_stats(r->journal).bases < 2; i++, waits[seen]++) {
            pod_bind(r, i, "", 1, 0, false);
            (void)room_plan(r);
            if (seen && i == 10)
                for (unsigned k = 0; k < 2; k++)
                    task_bind(r, k ? "w-1" : "w-0", k, "n1");
        }
        assert_false(cache_has_orphans(r->s.p)); /* seen, or given back */
        struct kube_replay_result result = room_replay(r, &found);
        room_same(&result, &found, seen);
        (void)room_teardown(&at);
    }
    assert_true(waits[0] > waits[1] * 3 / 2); /* delayed until twice the size */
}

/* ---- modified journals ------------------------------------------------------------------------------------------ */

/* Copies an export with one record modified, and repairs the hash chain. */
struct forgery {
    FILE *to;
    const char *from, *by;
    uint64_t chain;
    size_t changed;
    bool drop; /* removes the record instead */
};

static int forge(void *ctx, const struct store_record *record)
{
    struct forgery *f = ctx;
    CLEANUP(str) struct str text = {0}, line = {0};
    const char *at = record->record.at, *end = at + record->record.len;
    const char *hit = f->changed ? NULL : memmem(at, record->record.len, f->from, strlen(f->from));
    if (hit && f->drop) {
        f->changed++;
        return 0;
    }
    str_add_bytes(&text, at, (size_t)((hit ? hit : end) - at));
    if (hit) {
        str_add(&text, f->by);
        str_add_bytes(&text, hit + strlen(f->from), (size_t)(end - hit) - strlen(f->from));
        f->changed++;
    }
    struct store_record made = *record;
    made.record = (struct bytes){text.at, text.len};
    if (f->drop && f->changed) {
        f->chain = record->chain;
        made.chain = record->chain;
    } else {
        made.chain = f->chain = store_chain(f->chain, made.seq, made.revision, made.record);
    }
    segment_line_write(&line, &made);
    (void)fwrite(line.at, 1, line.len, f->to);
    return 0;
}

static struct kube_replay_result replay_forged(struct room *r, struct forgery *f, struct room_difference *found)
{
    char path[300];
    const char *file = path;
    CLEANUP(journal) struct journal *journal = NULL;
    room_settle(r);
    (void)snprintf(path, sizeof path, "%s/forged.json", r->dir);
    f->to = fopen(path, "w");
    assert_non_null(f->to);
    assert_int_equal(journal_open(&(struct journal_sources){.data = r->dir}, &journal, NULL), 0);
    assert_int_equal(journal_read(journal, &(struct journal_range){.bare = true},
                                  &(struct journal_visitor){.record = forge, .ctx = f}, NULL),
                     0);
    (void)fclose(f->to);
    return room_replay_of(&(struct journal_sources){.files = &file, .files_len = 1}, found);
}

static void three_pods(struct room *r)
{
    scene_node(&r->s, "n1", "a", "");
    (void)room_plan(r);
    for (unsigned i = 0; i < 3; i++) {
        pod_bind(r, i, "", 1, 0, false);
        (void)room_plan(r);
        pod_bind(r, i, "n1", 1, 0, false);
    }
    (void)room_plan(r);
}

static void modified_input_is_detected(void **state)
{
    struct room *r = *state;
    struct room_difference found = {0};
    struct forgery f = {.from = "\"node\":\"n1\",\"instance\":2", .by = "\"node\":\"n1\",\"instance\":7"};
    three_pods(r);
    struct kube_replay_result result = replay_forged(r, &f, &found);
    assert_int_equal(f.changed, 1);
    assert_true(result.different > 0);
    assert_non_null(strstr(found.input, "first 'assume'"));
    assert_non_null(strstr(found.input, "assume/default:p1"));
}

static void modified_plan_is_detected(void **state)
{
    struct room *r = *state;
    struct room_difference found = {0};
    struct forgery f = {.from = ",\"seed\":0,", .by = ",\"seed\":0,\"plan\":\"0123456789abcdef\","};
    three_pods(r);
    struct kube_replay_result result = replay_forged(r, &f, &found);
    assert_int_equal(f.changed, 1);
    assert_int_equal(result.different, 1);
    assert_string_equal(found.input, "");
}

/* Plans that depend on a missing record are not made; those after the next base are. */
static void a_missing_record_is_a_gap(void **state)
{
    struct room *r = *state;
    struct room_difference found = {0};
    struct forgery f = {.from = "assume/default:p1", .drop = true};
    three_pods(r);
    room_settle(r);
    (void)room_plan(r);
    struct kube_replay_result result = replay_forged(r, &f, &found);
    assert_int_equal(f.changed, 1);
    assert_int_equal(result.different, 0);
    assert_int_equal(result.gaps, 1);
    assert_int_equal(result.plans + result.skipped, 6 - 1); /* one plan went with the record */
    assert_true(result.skipped > 0);
    assert_int_equal(result.bases, 2);
}

/* ---- disks ------------------------------------------------------------------------------------------------------ */

static void pump(struct room *r, unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++)
        (void)loop_once(r->loop, INT64_C(20000000), NULL);
}

/* Simulates a full disk: files cannot grow any more. */
static void full_disk_switches_the_journal_off(void **state)
{
    struct room *r = *state;
    struct room_difference found = {0};
    struct rlimit before, none;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, SIG_IGN);
    three_pods(r);
    pump(r, 10);
    assert_true(kube_journal_stats(r->journal).on);
    none = (struct rlimit){.rlim_cur = 4096, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    for (unsigned i = 100; kube_journal_stats(r->journal).on; i++) { /* however long the disk takes to fail */
        pod_bind(r, i, "", 1, 0, false);
        (void)room_plan(r);
        pump(r, 2);
    }
    struct kube_journal_stats stats = kube_journal_stats(r->journal);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_false(stats.on);
    assert_string_not_equal(stats.trouble, "");
    assert_int_equal(stats.gaps, 1);
    scene_node(&r->s, "n2", "b", "");
    pod_bind(r, 31, "", 1, 0, false);
    assert_true(room_plan(r) > 0); /* scheduling continues */
    assert_false(kube_journal_stats(r->journal).on);
    r->now_ns = INT64_MAX / 2; /* later than every pause */
    while (*kube_journal_stats(r->journal).trouble) {
        (void)room_plan(r);
        pump(r, 3);
    }
    assert_true(kube_journal_stats(r->journal).on);
    assert_string_equal(kube_journal_stats(r->journal).trouble, "");
    (void)room_plan(r);
    struct kube_replay_result result = room_replay(r, &found);
    assert_int_equal(result.different, 0);
    assert_int_equal(result.bases, 2);
    assert_true(result.gaps > 0);
}

/* If the folder cannot be created, nothing is recorded and all else continues; when it can be, recording starts. */
static void missing_folder_is_retried(void **state)
{
    struct room *r = *state;
    char dir[300], file[300];
    (void)snprintf(file, sizeof file, "%s/file", r->dir);
    (void)snprintf(dir, sizeof dir, "%s/file/journal", r->dir);
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    (void)fclose(f);
    kube_journal_free(r->journal);
    r->config.dir = dir;
    r->journal = kube_journal_new(&r->config);
    r->now_ns = INT64_MAX / 2;
    three_pods(r);
    assert_false(kube_journal_stats(r->journal).on);
    assert_non_null(strstr(kube_journal_stats(r->journal).trouble, "file"));
    assert_int_equal(unlink(file), 0);
    assert_int_equal(mkdir(file, 0700), 0);
    (void)room_plan(r);
    assert_true(kube_journal_stats(r->journal).on);
}

/* A base larger than the limit of queued bytes is written, and so are the records after it. */
static void large_base_is_written(void **state)
{
    enum { OBJECTS = 52, LABEL_BYTES = 1 << 20 }; /* 69 MiB in base64 */
    struct room *r = *state;
    struct room_difference found = {0};
    char *label = mem_zalloc(LABEL_BYTES + 1), name[16];
    memset(label, 'a', LABEL_BYTES);
    for (unsigned i = 0; i < OBJECTS; i++) {
        CLEANUP(str) struct str bytes = {0};
        (void)snprintf(name, sizeof name, "space-%u", i);
        size_t meta = proto_begin(&bytes, 1);
        proto_add_text(&bytes, 1, name);
        size_t labels = proto_begin(&bytes, 11);
        proto_add_text(&bytes, 1, "l");
        proto_add_text(&bytes, 2, label);
        proto_end(&bytes, labels);
        proto_end(&bytes, meta);
        cache_object_put(r->s.p, CACHE_NAMESPACE,
                         &(struct kube_object){
                             .namespace = "", .name = name, .uid = name, .raw = proto_reader(bytes.at, bytes.len)});
    }
    mem_free(label);
    three_pods(r);
    struct kube_journal_stats stats = kube_journal_stats(r->journal);
    assert_string_equal(stats.trouble, "");
    assert_true(stats.on);
    assert_int_equal(stats.gaps, 0);
    struct kube_replay_result result = room_replay(r, &found);
    room_same(&result, &found, 0);
    assert_int_equal(result.plans, 5);
    assert_int_equal(result.bases, 1);
    assert_int_equal(result.skipped + result.gaps, 0);
    assert_true(kube_journal_stats(r->journal).bytes > OBJECTS * (size_t)LABEL_BYTES);
}

/* ---- claims ----------------------------------------------------------------------------------------------------- */

/* A process that only admits jobs writes no base, while jobs come and go. */
static void claims_of_deleted_jobs_are_removed(void **state)
{
    struct room *r = *state;
    char name[16], id[64];
    size_t most = 0;
    room_role(r, "stays", CPU("1"));
    for (unsigned i = 0; i < 1000; i++) {
        (void)snprintf(name, sizeof name, "r%u", i);
        (void)snprintf(id, sizeof id, "default:train:%s", name);
        room_role(r, name, CPU("1"));
        (void)cache_cluster(r->s.p);
        cache_role_drop(r->s.p, id);
        size_t now = kube_journal_stats(r->journal).claims;
        most = now > most ? now : most;
    }
    assert_in_range(most, 1, 100);
    (void)room_plan(r);
    assert_int_equal(kube_journal_stats(r->journal).claims, 1); /* the job that stays */
}

/* ---- segments --------------------------------------------------------------------------------------------------- */

static void segments_are_sealed_and_removed(void **state)
{
    struct room *r = *state;
    struct room_difference found = {0};
    kube_journal_free(r->journal);
    r->config.segment_bytes = 20000;
    r->config.keep_bytes = 30000; /* packed; a base comes every 80,000 unpacked bytes */
    r->journal = kube_journal_new(&r->config);
    for (unsigned i = 0; kube_journal_stats(r->journal).segments < 16; i++) { /* however long each takes */
        life(r, 500 + i, 12);
        pump(r, 3);
    }
    struct kube_journal_stats stats = kube_journal_stats(r->journal);
    assert_true(stats.bases > 2);
    room_settle(r);
    CLEANUP(journal) struct journal *journal = NULL;
    assert_int_equal(journal_open(&(struct journal_sources){.data = r->dir}, &journal, NULL), 0);
    const struct shelf *shelf = journal_shelf(journal);
    assert_true(shelf->items.len > 0);
    assert_true(shelf->items.at[0].segment.number > 1); /* the first one was removed */
    struct kube_replay_result result = room_replay(r, &found);
    room_same(&result, &found, 500);
    assert_true(result.bases > 0);
    assert_true(result.plans > 10);
}

/* ---- secrets ---------------------------------------------------------------------------------------------------- */

#define CANARY "hunter2-of-the-pods"

static int hidden(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)at;
    static char bytes[1 << 20];
    FILE *f = type == FTW_F ? fopen(path, "r") : NULL;
    if (!f)
        return 0;
    size_t len = fread(bytes, 1, sizeof bytes, f);
    (void)fclose(f);
    return memmem(bytes, len, CANARY, strlen(CANARY)) ? 1 : 0;
}

/* Reports whether the text occurs in a record, also within objects in base64. */
static int hidden_record(void *ctx, const struct store_record *record)
{
    struct bytes changes = {0}, one = {0}, key = {0}, doc = {0}, pb = {0};
    const char *at = NULL;
    (void)ctx;
    assert_true(scan_array(record->record, "changes", &changes));
    while (scan_next(changes, &at, &one)) {
        CLEANUP(str) struct str text = {0}, bytes = {0};
        const char *in = NULL;
        assert_true(scan_next(one, &in, &key) && scan_next(one, &in, &doc));
        if (!scan_member(doc, "pb", &pb) || !scan_text(pb, &text))
            continue;
        assert_true(str_add_base64_bytes(&bytes, str_text(&text), text.len));
        if (memmem(str_text(&bytes), bytes.len, CANARY, strlen(CANARY)))
            return 1;
    }
    return 0;
}

static void journal_contains_no_secrets(void **state)
{
    struct room *r = *state;
    CLEANUP(journal) struct journal *journal = NULL;
    scene_node(&r->s, "n1", "a", "");
    scene_put(&r->s, CACHE_POD,
              "{metadata: {name: p, namespace: default, annotations: {example.com/token: " CANARY
              "}}, spec: {schedulerName: berth, containers: [{name: c, env: [{name: PASSWORD, value: " CANARY
              "}], resources: {requests: {cpu: 1}}}]}}");
    (void)room_plan(r);
    room_settle(r);
    (void)room_plan(r);
    room_settle(r);
    assert_int_equal(nftw(r->dir, hidden, 16, FTW_PHYS), 0);
    assert_int_equal(journal_open(&(struct journal_sources){.data = r->dir}, &journal, NULL), 0);
    assert_int_equal(journal_read(journal, &(struct journal_range){.bare = true},
                                  &(struct journal_visitor){.record = hidden_record}, NULL),
                     0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_plan_is_replayed, room_setup, room_teardown),
        cmocka_unit_test(replay_starts_at_any_base),
        cmocka_unit_test_setup_teardown(unseen_pod_of_deleted_job_is_replayed, room_setup, room_teardown),
        cmocka_unit_test(a_base_waits_for_unseen_pods),
        cmocka_unit_test_setup_teardown(modified_input_is_detected, room_setup, room_teardown),
        cmocka_unit_test_setup_teardown(modified_plan_is_detected, room_setup, room_teardown),
        cmocka_unit_test_setup_teardown(a_missing_record_is_a_gap, room_setup, room_teardown),
        cmocka_unit_test_setup_teardown(full_disk_switches_the_journal_off, room_setup, room_teardown),
        cmocka_unit_test_setup_teardown(missing_folder_is_retried, room_setup, room_teardown),
        cmocka_unit_test_setup_teardown(large_base_is_written, room_setup, room_teardown),
        cmocka_unit_test_setup_teardown(claims_of_deleted_jobs_are_removed, room_setup, room_teardown),
        cmocka_unit_test_setup_teardown(segments_are_sealed_and_removed, room_setup, room_teardown),
        cmocka_unit_test_setup_teardown(journal_contains_no_secrets, room_setup, room_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
