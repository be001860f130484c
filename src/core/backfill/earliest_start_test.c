/* earliest_start_test.c - random clusters: the first reservation is as early as an exhaustive search finds one, no
 * later job delays another one, and an applied plan leaves nothing to do.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/scene/waiting_test.h"

enum { JOBS_MAX = 16, NODES_MAX = 5, DEVICES_MAX = 3 };

struct world {
    struct scene s;
    struct job jobs[JOBS_MAX];
    char ids[JOBS_MAX][8];
    uint32_t jobs_len, nodes;
    int64_t cpu[NODES_MAX];
    uint32_t devices[NODES_MAX];
    struct berth_window window;
    bool roles; /* some jobs are roles of one gang */
};

static const char *const node_names[NODES_MAX] = {"a", "b", "c", "d", "e"};

/* ---- random clusters -------------------------------------------------------------------------------------------- */

static void make_nodes(struct world *w, uint64_t *seed)
{
    static const struct berth_gpu gpus[DEVICES_MAX] = {
        {"A", 80},
        {"A", 80},
        {"A", 80}
    };
    w->nodes = 1 + scene_random_below(seed, NODES_MAX);
    for (uint32_t i = 0; i < w->nodes; i++) {
        w->cpu[i] = 1000 * (1 + scene_random_below(seed, 3));
        w->devices[i] = scene_random_below(seed, DEVICES_MAX + 1);
        scene_put_node(
            &w->s,
            (struct berth_node){.id = node_names[i], HAS(w->cpu[i], 100000), .gpus = gpus, .gpus_len = w->devices[i]});
    }
}

static void make_jobs(struct world *w, uint64_t *seed)
{
    w->jobs_len = 4 + scene_random_below(seed, JOBS_MAX - 4);
    for (uint32_t i = 0; i < w->jobs_len; i++) {
        snprintf(w->ids[i], sizeof w->ids[i], "j%02u", i);
        w->jobs[i] = (struct job){.id = w->ids[i],
                                  .pods = scene_random_below(seed, 3) ? 0 : 1 + scene_random_below(seed, 4),
                                  .cpu = 100 * (1 + scene_random_below(seed, 10)),
                                  .seconds = 10 * (1 + scene_random_below(seed, 20)),
                                  .gpus = scene_random_below(seed, 3) ? 0 : 1 + scene_random_below(seed, 2)};
        if (w->jobs[i].gpus == 1 && scene_random_below(seed, 2))
            w->jobs[i].milli = 250 * (1 + scene_random_below(seed, 3));
        if (w->roles && i && scene_random_below(seed, 3) == 0) {
            w->jobs[i].pods += w->jobs[i].pods == 0;
            w->jobs[i].gang = w->jobs[i - 1].gang ? w->jobs[i - 1].gang : w->ids[i - 1];
        }
        put_job(&w->s, w->jobs[i]);
    }
}

/* Reserves some nodes for a window that no workload may use. */
static void make_window(struct world *w, uint64_t *seed)
{
    int64_t start = scene_random_below(seed, 600), len = 1 + scene_random_below(seed, 300);
    w->window = (struct berth_window){.id = "w",
                                      .start_ns = START_NS + start * SCENE_SECOND_NS,
                                      .end_ns = START_NS + (start + len) * SCENE_SECOND_NS,
                                      .nodes = node_names,
                                      .nodes_len = 1 + scene_random_below(seed, w->nodes)};
    w->s.policy.windows = &w->window;
    w->s.policy.windows_len = 1;
}

static void world_make(struct world *w, uint64_t *seed)
{
    *w = (struct world){.s = stage(0, 1 + scene_random_below(seed, 12)), .roles = scene_random_below(seed, 4) == 0};
    make_nodes(w, seed);
    make_jobs(w, seed);
    if (scene_random_below(seed, 3) == 0)
        make_window(w, seed);
    if (scene_random_below(seed, 3) == 0)
        scene_put(&w->s, (struct berth_workload){.id = "web",
                                                 .replicas = 1 + scene_random_below(seed, 3),
                                                 .created_ns = scene_random_below(seed, 2) ? 0 : INT64_MAX,
                                                 .shape = {NEEDS(100 * (1 + scene_random_below(seed, 6)), 10)}});
}

/* Advances the time: some running instances end, some are stopped, and stopping ones are removed. */
static void advance_time(struct scene *s, uint64_t *seed)
{
    s->now_ns += (int64_t)(1 + scene_random_below(seed, 150)) * SCENE_SECOND_NS;
    for (uint32_t i = 0; i < s->c->instances.len; i++) {
        struct instance in = *cluster_instance(s->c, i);
        const struct workload *w = in.id ? cluster_workload(s->c, in.workload.v) : NULL;
        if (!w || w->kind != BERTH_JOB || in.state == BERTH_ENDED || in.state == BERTH_RESERVED)
            continue;
        if (in.state == BERTH_STOPPING) {
            scene_remove(s, in.id);
            continue;
        }
        enum berth_state to = scene_random_below(seed, 3) == 0    ? BERTH_ENDED
                              : scene_random_below(seed, 12) == 0 ? BERTH_STOPPING
                                                                  : BERTH_RUNNING;
        if (to != BERTH_RUNNING)
            scene_report(s, in.id, to, false);
    }
}

/* ---- exhaustive search ------------------------------------------------------------------------------------------ */

static const struct job *job_of(const struct world *w, const char *id)
{
    for (uint32_t i = 0; i < w->jobs_len; i++)
        if (strcmp(w->ids[i], id) == 0)
            return &w->jobs[i];
    return NULL;
}

/* Services never end; the estimate of a job is doubled until its end is after now. */
static int64_t end_of(const struct world *w, const struct instance *in)
{
    const struct job *j = job_of(w, intern_text(&w->s.c->names, cluster_workload(w->s.c, in->workload.v)->id));
    int64_t end, seconds = j ? j->seconds : 0;
    if (!j)
        return BERTH_NEVER_NS;
    while ((end = in->since_ns + seconds * SCENE_SECOND_NS) <= w->s.now_ns)
        seconds *= 2;
    return end;
}

static uint32_t fits_on(const struct world *w, const struct job *j, uint32_t node, int64_t at)
{
    int64_t cpu = w->cpu[node];
    int32_t milli[DEVICES_MAX] = {1000, 1000, 1000}, need = j->milli ? (int32_t)j->milli : 1000;
    uint32_t found = 0;
    int64_t end = at + j->seconds * SCENE_SECOND_NS;

    if (node < w->window.nodes_len && at < w->window.end_ns && end > w->window.start_ns)
        return 0;
    for (uint32_t i = 0; i < w->s.c->instances.len; i++) {
        const struct instance *in = cluster_instance(w->s.c, i);
        if (in->id == 0 || in->state == BERTH_ENDED || in->state == BERTH_STOPPING || end_of(w, in) <= at ||
            strcmp(intern_text(&w->s.c->names, in->node_id), node_names[node]) != 0)
            continue;
        const struct class *k = cluster_class(w->s.c, in->class);
        cpu -= class_need(k, RESOURCE_CPU);
        for (uint32_t d = 0; d < DEVICES_MAX; d++)
            milli[d] -= in->gpus >> d & 1 ? (int32_t)k->gpu.milli : 0;
    }
    for (uint32_t d = 0; d < w->devices[node] && d < DEVICES_MAX; d++)
        found += milli[d] < need ? 0 : (uint32_t)(milli[d] / need);
    uint32_t fits = cpu < j->cpu ? 0 : (uint32_t)(cpu / j->cpu);
    if (!j->gpus)
        return fits;
    return fits < found / j->gpus ? fits : found / j->gpus;
}

/* Returns the first moment at which there is room for all pods; 0: never, or at once. */
static int64_t exhaustive_search(const struct world *w, const struct job *j, uint32_t pods)
{
    int64_t best = BERTH_NEVER_NS;
    for (uint32_t i = 0; i < w->s.c->instances.len + 2; i++) {
        const struct instance *in = i < w->s.c->instances.len ? cluster_instance(w->s.c, i) : NULL;
        uint32_t fits = 0;
        if (in && (in->id == 0 || in->state == BERTH_ENDED || in->state == BERTH_STOPPING))
            continue;
        int64_t at = in ? end_of(w, in) : i == w->s.c->instances.len ? w->s.now_ns : w->window.end_ns;
        if (at >= best || at < w->s.now_ns)
            continue;
        for (uint32_t n = 0; n < w->nodes; n++)
            fits += fits_on(w, j, n, at);
        if (fits >= pods)
            best = at;
    }
    return best == BERTH_NEVER_NS || best == w->s.now_ns ? 0 : best;
}

static void check_first(struct world *w)
{
    if (berth_plan_pendings(w->s.p) == 0)
        return;
    struct berth_pending first = berth_plan_pending(w->s.p, 0);
    const struct job *j = job_of(w, first.workload);
    uint32_t at = cluster_workload(w->s.c, cluster_workload_find(w->s.c, first.workload))->first;
    if (!j)
        return; /* a service may wait for ever */
    for (; at != NONE; at = cluster_instance(w->s.c, at)->next_of_workload)
        if (cluster_instance(w->s.c, at)->state != BERTH_ENDED)
            return; /* the job waits for its own pods */
    int64_t want = exhaustive_search(w, j, j->pods ? (uint32_t)first.ordinals_len : 1);
    int64_t start = berth_plan_queue_position(w->s.p, 0).start_ns;
    if (start != want)
        fail_msg("%s is to start at %lld, but could at %lld", first.workload, (long long)start, (long long)want);
}

/* ---- properties ------------------------------------------------------------------------------------------------- */

static size_t starts_of(struct scene *s, int64_t starts[], char names[][8])
{
    size_t len = berth_plan_pendings(s->p);
    for (size_t i = 0; i < len; i++) {
        starts[i] = berth_plan_queue_position(s->p, i).start_ns;
        snprintf(names[i], 8, "%s", berth_plan_pending_name(s->p, i));
    }
    return len;
}

/* A later demand delays no reservation: without the demands that follow it, each one starts at the same moment. */
static void check_no_delays(struct world *w)
{
    struct scene *s = &w->s;
    int64_t starts[JOBS_MAX + 1] = {0}, now[JOBS_MAX + 1] = {0};
    char names[JOBS_MAX + 1][8], left[JOBS_MAX + 1][8];
    scene_plan(s);
    size_t len = starts_of(s, starts, names);
    for (uint32_t i = w->jobs_len; i-- > 0;) {
        if (cluster_workload(s->c, cluster_workload_find(s->c, w->ids[i]))->first != NONE)
            continue;
        scene_check(s, berth_workload_remove(s->c, w->ids[i], &s->err));
        scene_plan(s);
        size_t n = starts_of(s, now, left);
        for (size_t k = 0, at = 0; k < n; k++) {
            if (strcmp(left[k], w->ids[i]) > 0)
                continue; /* comes after it */
            while (at < len && strcmp(names[at], left[k]) != 0)
                at++;
            assert_true(at < len); /* the same demands wait, in the same order */
            assert_int_equal(now[k], starts[at]);
        }
    }
}

static void random_clusters_keep_reservations(void **state)
{
    (void)state;
    uint64_t seed = scene_seed();
    for (int round = 0; round < 300; round++) {
        struct world w;
        world_make(&w, &seed);
        for (int day = 0; day < 4; day++) {
            char text[SCENE_TEXT_MAX];
            scene_plan(&w.s);
            scene_text(&w.s, text);
            step(&w.s, text);
            if (!w.roles)
                check_first(&w);
            advance_time(&w.s, &seed);
        }
        if (!w.roles)
            check_no_delays(&w);
        scene_cleanup(&w.s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_clusters_keep_reservations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
