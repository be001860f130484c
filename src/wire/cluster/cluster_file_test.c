/* cluster_file_test.c - whole files: errors name their place, valid files become clusters, the reference is complete.
 */
#include "wire/cluster/cluster_file.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "wire/text/document.h"

/* A row of a table that is too wide for columns. */
#define ROW(...)                                                                                                       \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }

static int parse(const char *yaml, struct cluster_file *ret, struct berth_err *err)
{
    CLEANUP(json) json_t *doc = NULL;
    int rc = document_parse(yaml, strlen(yaml), "f", &doc, err);
    return rc < 0 ? rc : cluster_file_parse(doc, NULL, NULL, ret, err);
}

static const struct {
    const char *yaml, *want;
} mistakes[] = {
    ROW("just text", "expected an object, found \"just text\""),
    ROW("[]", "expected an object, found a list"),
    ROW("nodse: []", "unknown key \"nodse\"; did you mean \"nodes\"?"),
    ROW("qwertz: []", "unknown key \"qwertz\""),
    ROW("version: 2", "version: 2 is not supported; expected version 1"),
    ROW("version: one", "version: expected a whole number, found \"one\""),
    ROW("now: soon", "now: expected a time like 2026-03-01T12:00:00Z or a number of seconds, found \"soon\""),
    ROW("seed: -1", "seed: expected a whole number from 0 to 9223372036854775807, found -1"),
    ROW("seed: '18446744073709551616'",
        "seed: expected a whole number from 0 to 2^64-1, found \"18446744073709551616\""),
    ROW("nodes: {a: b}", "nodes: expected a list, found an object"),
    ROW("nodes: [a]", "nodes[0]: expected an object, found \"a\""),
    ROW("nodes: [{zone: a}]", "nodes[0]: id: missing"),
    ROW("nodes: [{id: ''}]", "nodes[0] \"\": id: missing"),
    ROW("nodes: [{id: a, stat: ready}]", "nodes[0] \"a\": unknown key \"stat\"; did you mean \"state\"?"),
    ROW("nodes: [{id: a, state: redy}]",
        "nodes[0] \"a\": state: expected one of ready, joining, cordoned, draining, lost, found \"redy\""),
    ROW("nodes: [{id: a, allocatable: {cpu: lots}}]",
        "nodes[0] \"a\": allocatable: cpu: expected an amount like 2, 1.5 or 500m, found \"lots\""),
    ROW("nodes: [{id: a, allocatable: [1]}]",
        "nodes[0] \"a\": allocatable: expected an object like {cpu: 2, memory: 4Gi}, found a list"),
    ROW("nodes: [{id: a, labels: {version: 1.5}}]",
        "nodes[0] \"a\": labels: version: expected text (put quotes around it), found 1.5"),
    ROW("nodes: [{id: a, taints: [{key: k}]}]", "nodes[0] \"a\": taints[0]: effect: missing"),
    ROW("nodes: [{id: a, taints: ['k:NoShedule']}]",
        "nodes[0] \"a\": taints[0]: expected one of NoSchedule, PreferNoSchedule, NoExecute, found \"NoShedule\""),
    ROW("nodes: [{id: a, taints: [':NoSchedule']}]",
        "nodes[0] \"a\": taints[0]: expected a taint like \"key=value:NoSchedule\", found \":NoSchedule\""),
    ROW("nodes: [{id: a, gpus: {count: 65}}]", "nodes[0] \"a\": gpus: more than 64 devices"),
    ROW("nodes: [{id: a, gpus: [{count: 4294967295}, {count: 4294967295}]}]",
        "nodes[0] \"a\": gpus: more than 64 devices"),
    ROW("nodes: [{id: a, gpus: [{}, {modle: x}]}]",
        "nodes[0] \"a\": gpus[1]: unknown key \"modle\"; did you mean \"model\"?"),
    ROW("nodes: [{id: a, ports: [0x10000]}]",
        "nodes[0] \"a\": ports[0]: expected a whole number from 0 to 65535, found 65536"),
    ROW("nodes: [{id: a, ports: ['90-80']}]",
        "nodes[0] \"a\": ports[0]: expected a port like 8080, \"53/udp\" or \"9000-9009\", found \"90-80\""),
    ROW("nodes: [{id: a, ports: ['80/tpc']}]",
        "nodes[0] \"a\": ports[0]: expected one of tcp, udp, sctp, found \"tpc\""),
    ROW("nodes: [{id: a}, {id: b}, {id: a}]", "nodes[2] \"a\": the id is already used by nodes[0]"),
    ROW("nodes: [{id: a, count: 3}, {id: a-2}]", "nodes[1] \"a-2\": the id is already used by nodes[0]"),
    ROW("nodes: [{id: a, count: 2000000}]", "nodes[0]: count: more than 1048576 nodes in all"),
    ROW("nodes: [{id: a, allocatable: {cpu: -1}}]",
        "nodes[0] \"a\": allocatable: cpu: expected an amount of 0 or more, found -1"),
    ROW("volumes: [{id: v, shared: 1}]", "volumes[0] \"v\": shared: expected true or false, found 1"),
    ROW("volumes: [{id: v}, {id: v}]", "volumes[1] \"v\": the id is already used by volumes[0]"),
    ROW("resources: [{name: r, period: ever}]",
        "resources[0] \"r\": period: expected a duration like 30s, 10m, 2h or 30d, found \"ever\""),
    ROW("resources: [{}]", "resources[0]: name: missing"),
    ROW("workloads: [{id: a}, {id: web, replicas: three}]",
        "workloads[1] \"web\": replicas: expected a whole number, found \"three\""),
    ROW("workloads: [{id: 7, replicas: 1.5}]", "workloads[0] 7: replicas: expected a whole number, found 1.5"),
    ROW("workloads: [{id: web, replicas: 4294967296}]",
        "workloads[0] \"web\": replicas: expected a whole number from 0 to 4294967295, found 4294967296"),
    ROW("workloads: [{id: web, requests: {memory: 4GB}}]",
        "workloads[0] \"web\": requests: memory: \"4GB\" has an unknown unit; expected k, M, G, T, P, Ki, Mi, Gi, Ti "
        "or Pi"),
    ROW("workloads: [{id: web, limits: {memory: -4Gi}}]",
        "workloads[0] \"web\": limits: memory: expected an amount of 0 or more, found \"-4Gi\""),
    ROW("workloads: [{id: web, gpu: {share: 1.5}}]",
        "workloads[0] \"web\": gpu: share: expected a share of one GPU, above 0 and at most 1, found 1.5"),
    ROW("workloads: [{id: web, gpu: {model: a, models: [b]}}]",
        "workloads[0] \"web\": gpu: models: give either model or models"),
    ROW("workloads: [{id: web, limits: {io: {amount: 1, weight: 3}}}]",
        "workloads[0] \"web\": limits: io: give either an amount or a weight"),
    ROW("workloads: [{id: web, require: ssd}]",
        "workloads[0] \"web\": require: expected conditions like {disk: ssd}, found \"ssd\""),
    ROW("workloads: [{id: web, require: {disk: }}]",
        "workloads[0] \"web\": require: disk: expected a value; {exists: true} asks for any"),
    ROW("workloads: [{id: web, require: {any: [{a: b}, {disk: [x, {}]}]}}]",
        "workloads[0] \"web\": require[1]: disk[1]: expected text, found an object"),
    ROW("workloads: [{id: web, require: [{key: a}, {op: In}]}]", "workloads[0] \"web\": require[1]: key: missing"),
    ROW("workloads: [{id: web, require: {gen: {gr: 3}}}]",
        "workloads[0] \"web\": require: gen: unknown key \"gr\"; did you mean \"gt\"?"),
    ROW("workloads: [{id: web, prefer: [{weight: 3}]}]", "workloads[0] \"web\": prefer[0]: select: missing"),
    ROW("workloads: [{id: web, spread: zone}]",
        "workloads[0] \"web\": spread: select: missing, and the workload has no labels to use instead"),
    ROW("workloads: [{id: web, apart: [{}]}]", "workloads[0] \"web\": apart[0]: topology: missing"),
    ROW("workloads: [{id: web, labels: [x]}]",
        "workloads[0] \"web\": labels: expected an object like {disk: ssd}, found a list"),
    ROW("workloads: [{id: web, volumes: [v]}]", "workload \"web\": volume \"v\" is unknown"),
    ROW("workloads: [{id: web, count: 17000000}]", "workloads[0]: count: more than 16777216 workloads in all"),
    ROW("instances: [{pod: web/0}]", "instances[0]: id: missing"),
    ROW("instances: [{id: 1, node: n}]", "instances[0] 1: pod: missing"),
    ROW("instances: [{id: 1, pod: web/0}]", "instances[0] 1: node: missing"),
    ROW("instances: [{id: 1, pod: web, node: n}]", "instances[0] 1: pod: expected WORKLOAD/ORDINAL, like web/0"),
    ROW("instances: [{id: 1, pod: web/-1, node: n}]", "instances[0] 1: pod: expected WORKLOAD/ORDINAL, like web/0"),
    ROW("instances: [{id: 1, pod: web/1, ordinal: 1, node: n}]",
        "instances[0] 1: give either pod, or workload and ordinal"),
    ROW("instances: [{id: 1, pod: web/0, node: n}]", "instance \"1\": node \"n\" is unknown"),
    ROW("instances: [{id: 1, pod: w/0, node: n, gpus: [64]}]",
        "instances[0] 1: gpus[0]: expected the number of a device, from 0 to 63, found 64"),
    ROW("instances: [{id: 1, pod: w/0, node: n, usage: {cpu: {usde: 1}}}]",
        "instances[0] 1: usage: cpu: unknown key \"usde\"; did you mean \"used\"?"),
    ROW("instances: [{id: 1, pod: w/0, node: n, waits: [1, x]}]",
        "instances[0] 1: waits[1]: expected a whole number from 0 to 2^64-1, found \"x\""),
    ROW("nodes: [{id: n}]\ninstances: [{id: 1, pod: w/0, node: n}, {id: 1, pod: w/1, node: n}]",
        "instances[1] \"1\": the id is already used by instances[0]"),
    ROW("facts: [{subject: 3}]", "facts[0]: kind: missing"),
    ROW("profiles: [{name: p, filters: [resuorces]}]",
        "profiles[0] \"p\": filters[0]: there is no filter \"resuorces\"; did you mean \"resources\"?"),
    ROW("profiles: [{name: p, scores: {nonsense: 1}}]", "profiles[0] \"p\": scores: there is no score \"nonsense\""),
    ROW("profiles: [{name: p}, {name: p}]", "profiles[1] \"p\": the name is already used by profiles[0]"),
};

static void errors_name_the_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        struct berth_err err = {0};
        struct cluster_file file = {.seed = 77};
        int rc = parse(mistakes[i].yaml, &file, &err);
        if (rc >= 0 || rc != -err.code || strncmp(err.text, mistakes[i].want, strlen(mistakes[i].want)) != 0)
            fail_msg("%s\n gave %d %s\n want %s", mistakes[i].yaml, rc, err.text, mistakes[i].want);
        if (file.seed != 77 || file.cluster)
            fail_msg("%s: the output was touched", mistakes[i].yaml);
        assert_int_equal(parse(mistakes[i].yaml, &file, NULL) < 0, 1);
    }
}

/* A hostile name neither overflows nor garbles the message. */
static void long_names_are_cut(void **state)
{
    (void)state;
    CLEANUP(str) struct str s = {0};
    str_add(&s, "workloads:\n- id: \"");
    for (int i = 0; i < 5000; i++)
        str_add(&s, "\xc3\xbc\\n");
    str_add(&s, "\"\n  replicas: \"");
    for (int i = 0; i < 5000; i++)
        str_add(&s, "\xc3\xbc\\e");
    str_add(&s, "\"\n");
    struct berth_err err;
    struct cluster_file file = {0};
    assert_true(parse(s.at, &file, &err) < 0);
    assert_true(str_utf8_valid(err.text, strlen(err.text)));
    assert_non_null(strstr(err.text, "replicas: expected a whole number"));
    assert_null(strchr(err.text, '\n'));
}

static struct berth_plan_stats planned(const struct cluster_file *f)
{
    struct berth_err err = {0};
    if (berth_audit(f->cluster, &err) < 0)
        fail_msg("%s", err.text);
    struct berth_snapshot *snapshot = berth_freeze(f->cluster, f->now_ns, f->seed);
    struct berth_policy policy = {.profile = f->profiles};
    struct berth_plan *plan = NULL;
    if (berth_plan_make(snapshot, &policy, &plan, &err) < 0)
        fail_msg("%s", err.text);
    struct berth_plan_stats stats = berth_plan_stats(plan);
    berth_plan_free(plan);
    berth_snapshot_free(snapshot);
    return stats;
}

static void json_and_yaml_make_the_same_cluster(void **state)
{
    (void)state;
    static const char *const files[] = {
        "version: 1\nnow: 1970-01-01T00:00:05Z\nseed: 9\n"
        "nodes: [{id: n, count: 3, allocatable: {cpu: 2, memory: 4Gi}}]\n"
        "workloads: [{id: w, count: 2, replicas: 4, requests: {cpu: 1, memory: 1Gi}}]\n"
        "instances: [{id: 5, pod: w-1/0, node: n-2}]\n",
        "{\"version\": 1, \"now\": 5, \"seed\": \"9\", \"nodes\": [{\"id\": \"n\", \"count\": 3, \"allocatable\": "
        "{\"cpu\": \"2000m\", \"memory\": 4294967296}}], \"workloads\": [{\"id\": \"w\", \"count\": 2, \"replicas\": 4, "
        "\"requests\": {\"cpu\": 1, \"memory\": \"1024Mi\"}}], \"instances\": [{\"id\": 5, \"workload\": \"w-1\", "
        "\"ordinal\": 0, \"node\": \"n-2\"}]}",
    };
    for (size_t i = 0; i < 2; i++) {
        struct cluster_file f = {0};
        struct berth_err err;
        if (parse(files[i], &f, &err) < 0)
            fail_msg("%s", err.text);
        assert_int_equal(f.now_ns, 5000000000);
        assert_int_equal(f.seed, 9);
        struct berth_plan_stats stats = planned(&f);
        assert_int_equal(stats.placed, 5); /* six cores, one used, eight pods of one core */
        assert_int_equal(stats.unplaced, 2);
        cluster_file_done(&f);
    }
}

static void a_gang_of_one_workload_is_named_by_its_id(void **state)
{
    (void)state;
    struct cluster_file f = {0};
    struct berth_err err;
    if (parse("nodes: [{id: n, count: 3, allocatable: {cpu: 1}}]\n"
              "workloads: [{id: g, count: 2, kind: job, replicas: 2, gang: true, requests: {cpu: 1}}]\n",
              &f, &err) < 0)
        fail_msg("%s", err.text);
    /* Two gangs of two on three nodes: as a single gang none could start. */
    assert_int_equal(planned(&f).placed, 2);
    cluster_file_done(&f);
}

static void profiles_outlive_the_document(void **state)
{
    (void)state;
    struct cluster_file f = {0};
    struct berth_err err;
    const char *score = berth_score_at(0, NULL), *filter = berth_filter_at(0, NULL);
    CLEANUP(str) struct str s = {0};
    str_addf(&s,
             "profiles: [{name: mine, filters: [%s], scores: {%s: 3}, resources: [memory]}, {name: other, steps: 50}]",
             filter, score);
    if (parse(s.at, &f, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(f.profiles_len, 2);
    const struct berth_profile *p = cluster_file_profile(&f, "mine");
    if (p != f.profiles || !p) {
        fail_msg("the first profile is not found by its name");
        return;
    }
    assert_int_equal(p->steps, 0);
    assert_int_equal(f.profiles[1].steps, 50);
    assert_string_equal(p->filters[0], filter);
    assert_string_equal(p->scores[0].score, score);
    assert_int_equal(p->scores[0].weight, 3);
    assert_string_equal(p->resources[0], "memory");
    assert_ptr_equal(cluster_file_profile(&f, "default"), berth_profile_find("default"));
    assert_null(cluster_file_profile(&f, "nobody's"));
    (void)planned(&f);
    cluster_file_done(&f);
}

static void progress_note(void *ctx, size_t done, size_t total)
{
    size_t *last = ctx;
    assert_true(done > *last && done <= total);
    assert_int_equal(total, 5003);
    *last = done;
}

static void progress_reaches_the_end(void **state)
{
    (void)state;
    const char *yaml = "nodes: [{id: n, count: 5000}, {id: m}]\nworkloads: [{id: w}]\n"
                       "instances: [{id: 1, pod: w/0, node: m}]\n";
    CLEANUP(json) json_t *doc = NULL;
    struct cluster_file f = {0};
    size_t last = 0;
    assert_int_equal(document_parse(yaml, strlen(yaml), "f", &doc, NULL), 0);
    assert_int_equal(cluster_file_parse(doc, progress_note, &last, &f, NULL), 0);
    assert_int_equal(last, 5003);
    cluster_file_done(&f);
    cluster_file_done(&f); /* a second call has no effect */
}

/* ---- the repository's own files ---------------------------------------------------------------------------------- */

static const char *source_root(void)
{
    const char *root = getenv("BERTH_SOURCE");
    if (!root) {
        print_message("skip: BERTH_SOURCE does not say where the source tree is\n");
        skip();
    }
    return root;
}

static void examples_are_valid(void **state)
{
    (void)state;
    static const char *const names[] = {"lab", "home", "zones"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        CLEANUP(str) struct str path = {0};
        str_addf(&path, "%s/examples/%s.yaml", source_root(), names[i]);
        struct cluster_file f = {0};
        struct berth_err err;
        if (cluster_file_read(path.at, NULL, NULL, &f, &err) < 0)
            fail_msg("%s", err.text);
        assert_true(planned(&f).placed > 0);
        cluster_file_done(&f);
    }
    struct cluster_file f = {0};
    struct berth_err err;
    assert_int_equal(cluster_file_read("/nowhere/x.yaml", NULL, NULL, &f, &err), -ENOENT);
}

static char *file_text(const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file)
        fail_msg("cannot open %s", path);
    struct str s = {0};
    char buf[4096];
    for (size_t n; (n = fread(buf, 1, sizeof buf, file));)
        str_add_bytes(&s, buf, n);
    fclose(file);
    return str_take(&s);
}

/* Every row of every table is in the reference, word for word. */
static void reference_is_complete(void **state)
{
    (void)state;
    CLEANUP(str) struct str path = {0};
    str_addf(&path, "%s/docs/cluster-file.md", source_root());
    CLEANUP(mem) char *reference = file_text(path.at);
    char *printed = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&printed, &len);
    cluster_file_keys_print(to);
    fclose(to);
    char *rest = printed;
    for (char *line; (line = strsep(&rest, "\n"));)
        if (!strstr(reference, line))
            fail_msg("docs/cluster-file.md lacks: %s", line);
    free(printed);
}

/* Blocks marked ```yaml or ```json are whole files. */
static void examples_of_the_reference_are_valid(void **state)
{
    (void)state;
    CLEANUP(str) struct str path = {0};
    str_addf(&path, "%s/docs/cluster-file.md", source_root());
    CLEANUP(mem) char *reference = file_text(path.at);
    int found = 0;
    for (char *at = reference; (at = strstr(at, "\n```")); at++) {
        if (strncmp(at, "\n```yaml\n", 9) != 0 && strncmp(at, "\n```json\n", 9) != 0)
            continue;
        char *from = at + 9, *to = strstr(from, "\n```");
        assert_non_null(to);
        CLEANUP(str) struct str block = {0};
        str_add_bytes(&block, from, (size_t)(to - from));
        struct cluster_file f = {0};
        struct berth_err err;
        if (parse(block.at, &f, &err) < 0)
            fail_msg("%s\n%s", block.at, err.text);
        (void)planned(&f);
        cluster_file_done(&f);
        found++;
        at = to;
    }
    assert_true(found >= 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_name_the_place),
        cmocka_unit_test(long_names_are_cut),
        cmocka_unit_test(json_and_yaml_make_the_same_cluster),
        cmocka_unit_test(a_gang_of_one_workload_is_named_by_its_id),
        cmocka_unit_test(profiles_outlive_the_document),
        cmocka_unit_test(progress_reaches_the_end),
        cmocka_unit_test(examples_are_valid),
        cmocka_unit_test(reference_is_complete),
        cmocka_unit_test(examples_of_the_reference_are_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
