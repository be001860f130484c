/* rlscheduler.c - the order of events in the simulator of the paper. */
#include "sim/protocol/rlscheduler.h"

#include <errno.h>
#include <string.h>

#include "sim/trace/trace_engine.h"

struct rlscheduler_run {
    const struct sim_setup *s;
    struct sim_engine e;
    void *memory; /* of the predictor */
    struct berth_policy choose, fill;
    struct berth_window window;
    VEC(uint32_t) running; /* in order of their starts */
    size_t arrived;
    uint32_t selected, seen;
    int64_t start_ns; /* earliest start of the selected job */
};

static int64_t end_of(const struct rlscheduler_run *r, uint32_t job)
{
    return r->e.out->at[job].start_ns + r->s->trace->jobs[job].run_ns;
}

static void note_started(struct rlscheduler_run *r)
{
    for (size_t i = 0; i < r->e.started.len; i++) {
        uint32_t job = r->e.started.at[i];
        r->e.out->at[job].end_ns = end_of(r, job);
        vec_push(&r->running, job);
    }
}

/* Remembers the first pending job, which is the selected one. */
static void look(void *ctx, struct berth_plan *plan)
{
    struct rlscheduler_run *r = ctx;
    r->seen = SIM_NO_JOB;
    if (berth_plan_pendings(plan) == 0)
        return;
    r->seen = sim_engine_job(&r->e, berth_plan_pending_name(plan, 0));
    if (r->seen != r->selected)
        r->start_ns = berth_plan_queue_position(plan, 0).start_ns;
}

/* Starts jobs in order, up to the first that does not fit, which is selected. */
static int choose(struct rlscheduler_run *r, int64_t now_ns, struct berth_err *err)
{
    int rc = sim_engine_plan(&r->e, &r->choose, now_ns, look, r, err);
    if (rc)
        return rc;
    note_started(r);
    if (r->seen == r->selected)
        return 0;
    r->selected = r->seen;
    if (r->selected == SIM_NO_JOB)
        return 0;
    if (r->start_ns <= now_ns)
        return err_set(err, EINVAL, "job %lld can never start: it requests more than the machine has",
                       (long long)r->s->trace->jobs[r->selected].id);
    return sim_engine_change(&r->e, r->selected, r->e.jobs[r->selected].predicted_ns, 1, err);
}

/* Backfills jobs that fit and end before the start of the selected job, not exactly at that time. */
static int fill(struct rlscheduler_run *r, int64_t now_ns, struct berth_err *err)
{
    r->window.start_ns = r->start_ns - 1; /* without the additional 1 ns of submit */
    if (r->window.start_ns <= now_ns)
        return 0;
    int rc = sim_engine_plan(&r->e, &r->fill, now_ns, NULL, NULL, err);
    if (rc == 0)
        note_started(r);
    return rc;
}

/* Submits the next job. Expected run times are 1 ns longer, because a job whose end at this moment is not processed yet
 * still runs. */
static int submit(struct rlscheduler_run *r, struct berth_err *err)
{
    uint32_t job = (uint32_t)r->arrived++;
    const struct sim_job *j = &r->s->trace->jobs[job];
    int64_t predicted = r->s->predictor->predict(r->memory, j, j->submit_ns);
    if (j->request_ns > 0 && predicted > j->request_ns)
        predicted = j->request_ns;
    return sim_engine_submit(&r->e, job, predicted < INT64_MAX ? predicted + 1 : 0, 0, err);
}

static int end(struct rlscheduler_run *r, size_t at, int64_t now_ns, struct berth_err *err)
{
    uint32_t job = r->running.at[at];
    memmove(&r->running.at[at], &r->running.at[at + 1], (--r->running.len - at) * sizeof *r->running.at);
    if (r->s->predictor->ended)
        r->s->predictor->ended(r->memory, &r->s->trace->jobs[job], now_ns);
    return sim_engine_end(&r->e, job, err);
}

static int step(struct rlscheduler_run *r, int64_t *now_ns, struct berth_err *err)
{
    const struct sim_trace *t = r->s->trace;
    size_t first = 0;
    for (size_t i = 1; i < r->running.len; i++)
        if (end_of(r, r->running.at[i]) < end_of(r, r->running.at[first]))
            first = i;
    int64_t ends = r->running.len ? end_of(r, r->running.at[first]) : INT64_MAX;
    bool comes = r->arrived < t->len && t->jobs[r->arrived].submit_ns <= ends;
    *now_ns = comes ? t->jobs[r->arrived].submit_ns : ends;
    int rc = comes ? submit(r, err) : end(r, first, ends, err);
    if (rc == 0 && r->e.waiting)
        rc = choose(r, *now_ns, err);
    if (rc == 0 && r->selected != SIM_NO_JOB && r->e.waiting > 1 && r->s->policy->backfill.reservations)
        rc = fill(r, *now_ns, err);
    return rc;
}

/* Makes two policies of one: for selection, and for backfilling. */
static void policies(struct rlscheduler_run *r)
{
    const char *const *node = &r->s->nodes[0].id;
    r->choose = r->fill = *r->s->policy;
    r->choose.backfill.reservations = 1;
    r->choose.backfill.strict = true;
    r->window = (struct berth_window){.id = "chosen", .end_ns = BERTH_NEVER_NS, .nodes = node, .nodes_len = 1};
    r->fill.windows = &r->window;
    r->fill.windows_len = 1;
    r->fill.backfill.reservations = 0;
    r->fill.order.ranking = r->s->policy->backfill.ranking;
}

int sim_rlscheduler_run(const struct sim_setup *s, struct sim_outcomes *ret, struct berth_err *err)
{
    struct rlscheduler_run r = {.s = s, .selected = SIM_NO_JOB, .seen = SIM_NO_JOB};
    struct sim_outcomes out = {0};
    int64_t now = 0;
    int rc = sim_engine_init(&r.e, s, &out, err);
    if (rc)
        return rc;
    policies(&r);
    r.memory = s->predictor->begin ? s->predictor->begin(s->trace) : NULL;
    while (rc == 0 && (r.arrived < s->trace->len || r.running.len))
        rc = step(&r, &now, err);
    if (s->predictor->end)
        s->predictor->end(r.memory);
    sim_engine_done(&r.e);
    vec_done(&r.running);
    if (rc)
        sim_outcomes_done(&out);
    else
        *ret = out;
    return rc;
}
