/* trace_run.c - processes the events of a trace in order. */
#include "sim/trace/trace_run.h"

#include "sim/trace/trace_engine.h"

enum { PROGRESS_EVERY = 256 };

/* The order at one moment; submissions are processed between the two. */
enum engine_event_kind { KIND_EXPIRY, KIND_END };

struct engine_event {
    int64_t at_ns;
    uint64_t order; /* order of insertion: the job that started first ends first */
    uint32_t job;
    enum engine_event_kind kind;
};

struct engine_run {
    const struct sim_setup *s;
    struct sim_engine e;
    void *memory; /* of the predictor */
    VEC(struct engine_event) heap;
    uint64_t order;
    struct due_events {
        uint64_t end, expiry; /* the valid events; others belong to a start that was undone */
    } * due;
    VEC(uint32_t) ending;  /* at this moment */
    VEC(uint32_t) waiting; /* may include jobs that have started; only kept for predictors that are asked again */
    size_t arrived, ended;
};

/* ---- heap of events --------------------------------------------------------------------------------------------- */

static bool is_before(const struct engine_event *a, const struct engine_event *b)
{
    if (a->at_ns != b->at_ns)
        return a->at_ns < b->at_ns;
    return a->kind != b->kind ? a->kind < b->kind : a->order < b->order;
}

static uint64_t event_add(struct engine_run *r, enum engine_event_kind kind, int64_t at_ns, uint32_t job)
{
    struct engine_event x = {at_ns, ++r->order, job, kind};
    vec_push(&r->heap, x);
    size_t i = r->heap.len - 1;
    for (; i > 0 && is_before(&x, &r->heap.at[(i - 1) / 2]); i = (i - 1) / 2)
        r->heap.at[i] = r->heap.at[(i - 1) / 2];
    r->heap.at[i] = x;
    return x.order;
}

static struct engine_event event_take(struct engine_run *r)
{
    struct engine_event first = r->heap.at[0], last = r->heap.at[--r->heap.len];
    size_t i = 0, len = r->heap.len;
    for (size_t child; (child = 2 * i + 1) < len; i = child) {
        child += child + 1 < len && is_before(&r->heap.at[child + 1], &r->heap.at[child]);
        if (!is_before(&r->heap.at[child], &last))
            break;
        r->heap.at[i] = r->heap.at[child];
    }
    r->heap.at[i] = last;
    return first;
}

/* ---- predictions ------------------------------------------------------------------------------------------------ */

static int64_t cut(const struct sim_job *j, int64_t predicted_ns)
{
    if (j->request_ns > 0 && predicted_ns > j->request_ns)
        predicted_ns = j->request_ns;
    if (predicted_ns == INT64_MAX)
        return 0;
    return predicted_ns > 1 ? predicted_ns : 1;
}

static void watch_expiry(struct engine_run *r, uint32_t job)
{
    int64_t predicted = r->e.jobs[job].predicted_ns;
    r->due[job].expiry = 0;
    if (predicted && predicted < r->s->trace->jobs[job].run_ns)
        r->due[job].expiry = event_add(r, KIND_EXPIRY, r->e.out->at[job].start_ns + predicted, job);
}

/* Extends the prediction of a running job. After its requested time the job is expected to run twice as long, as in the
 * planner. */
static int expire(struct engine_run *r, uint32_t job, struct berth_err *err)
{
    const struct sim_predictor *p = r->s->predictor;
    const struct sim_job *j = &r->s->trace->jobs[job];
    struct sim_task_list *l = &r->e.jobs[job];
    int64_t was = l->predicted_ns, grown = p->correct ? p->correct(r->memory, j, was, l->corrected) : INT64_MAX;
    l->corrected++;
    grown = cut(j, grown);
    int rc = sim_engine_change(&r->e, job, grown > was ? grown : 2 * was, 0, err);
    watch_expiry(r, job);
    return rc;
}

/* Predicts the waiting jobs of a user again, after one of the user's jobs has ended. */
static int predict_again(struct engine_run *r, sym user, int64_t now_ns, struct berth_err *err)
{
    size_t kept = 0;
    int rc = 0;
    for (size_t i = 0; i < r->waiting.len; i++) {
        uint32_t job = r->waiting.at[i];
        const struct sim_job *j = &r->s->trace->jobs[job];
        if (!r->e.jobs[job].waits)
            continue;
        r->waiting.at[kept++] = job;
        if (rc || j->user != user)
            continue;
        int64_t predicted = cut(j, r->s->predictor->predict(r->memory, j, now_ns));
        if (predicted != r->e.jobs[job].predicted_ns)
            rc = sim_engine_change(&r->e, job, predicted, 0, err);
    }
    r->waiting.len = kept;
    return rc;
}

/* ---- events ----------------------------------------------------------------------------------------------------- */

static int decide(struct engine_run *r, int64_t now_ns, struct berth_err *err)
{
    if (r->e.waiting == 0 && r->e.small == 0)
        return 0;
    int rc = sim_engine_plan(&r->e, r->s->policy, now_ns, NULL, NULL, err);
    for (size_t i = 0; i < r->e.stopped.len; i++)
        r->due[r->e.stopped.at[i]] = (struct due_events){0};
    for (size_t i = 0; rc == 0 && i < r->e.started.len; i++) {
        uint32_t job = r->e.started.at[i];
        if (r->e.jobs[job].waits)
            continue; /* the job was stopped again immediately */
        r->due[job].end = event_add(r, KIND_END, now_ns + r->s->trace->jobs[job].run_ns, job);
        watch_expiry(r, job);
    }
    return rc;
}

static int submit(struct engine_run *r, int64_t now_ns, struct berth_err *err)
{
    uint32_t job = (uint32_t)r->arrived++;
    const struct sim_job *j = &r->s->trace->jobs[job];
    int64_t predicted = r->s->predictor->predict(r->memory, j, now_ns);
    int rc = sim_engine_submit(&r->e, job, cut(j, predicted), 0, err);
    if (r->s->predictor->again)
        vec_push(&r->waiting, job);
    if (rc)
        return err_prefix(err, "job %lld", (long long)j->id);
    return decide(r, now_ns, err);
}

static int end(struct engine_run *r, uint32_t job, int64_t now_ns, struct berth_err *err)
{
    const struct sim_job *j = &r->s->trace->jobs[job];
    int rc = 0;
    if (r->due[job].end) /* its resources are not freed yet */
        rc = sim_engine_end(&r->e, job, err);
    r->due[job].end = 0;
    r->e.out->at[job].end_ns = now_ns;
    if (r->s->predictor->ended)
        r->s->predictor->ended(r->memory, j, now_ns);
    if (r->s->progress && ++r->ended % PROGRESS_EVERY == 0)
        r->s->progress(r->s->ctx, r->ended, r->s->trace->len);
    if (rc == 0 && r->s->predictor->again)
        rc = predict_again(r, j->user, now_ns, err);
    return rc ? rc : decide(r, now_ns, err);
}

/* Frees the resources of jobs that end now as predicted, before any submission. */
static int free_predicted_ends(struct engine_run *r, int64_t now_ns, struct berth_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < r->ending.len && rc == 0; i++) {
        uint32_t job = r->ending.at[i];
        int64_t predicted = r->e.jobs[job].predicted_ns;
        if (predicted == 0 || r->e.out->at[job].start_ns + predicted > now_ns)
            continue;
        rc = sim_engine_end(&r->e, job, err);
        r->due[job].end = 0;
    }
    return rc;
}

/* Corrects predictions, and collects the jobs that end. */
static int take_events(struct engine_run *r, int64_t now_ns, struct berth_err *err)
{
    int rc = 0;
    r->ending.len = 0;
    while (rc == 0 && r->heap.len && r->heap.at[0].at_ns == now_ns) {
        struct engine_event x = event_take(r);
        if (x.kind == KIND_EXPIRY && r->due[x.job].expiry == x.order)
            rc = expire(r, x.job, err);
        if (x.kind == KIND_END && r->due[x.job].end == x.order)
            vec_push(&r->ending, x.job);
    }
    return rc;
}

static void note_point(struct engine_run *r, int64_t now_ns)
{
    struct sim_outcomes *o = r->e.out;
    if (!r->s->points)
        return;
    if (o->points_len == o->points_cap) {
        o->points_cap = o->points_cap ? 2 * o->points_cap : 256;
        o->points = mem_resize(o->points, o->points_cap, sizeof *o->points);
    }
    o->points[o->points_len++] = (struct sim_queue_point){now_ns, r->e.waiting, r->e.running, r->e.held};
}

static int moment(struct engine_run *r, int64_t now_ns, struct berth_err *err)
{
    const struct sim_trace *t = r->s->trace;
    int rc = take_events(r, now_ns, err);
    if (rc == 0)
        rc = free_predicted_ends(r, now_ns, err);
    while (rc == 0 && r->arrived < t->len && t->jobs[r->arrived].submit_ns == now_ns)
        rc = submit(r, now_ns, err);
    for (size_t i = 0; i < r->ending.len && rc == 0; i++)
        rc = end(r, r->ending.at[i], now_ns, err);
    note_point(r, now_ns);
    if (rc == 0 && r->s->moment)
        r->s->moment(r->s->moment_ctx, r->e.cluster, now_ns);
    return rc;
}

static int go(struct engine_run *r, struct berth_err *err)
{
    const struct sim_trace *t = r->s->trace;
    int rc = 0;
    while (rc == 0 && (r->arrived < t->len || r->heap.len)) {
        int64_t now = r->arrived < t->len ? t->jobs[r->arrived].submit_ns : INT64_MAX;
        if (r->heap.len && r->heap.at[0].at_ns < now)
            now = r->heap.at[0].at_ns;
        rc = moment(r, now, err);
    }
    return rc;
}

int sim_trace_run(const struct sim_setup *s, struct sim_outcomes *ret, struct berth_err *err)
{
    struct engine_run r = {.s = s};
    struct sim_outcomes out = {0};
    int rc = sim_engine_init(&r.e, s, &out, err);
    if (rc)
        return rc;
    r.memory = s->predictor->begin ? s->predictor->begin(s->trace) : NULL;
    r.due = mem_zarray(s->trace->len + 1, sizeof *r.due);
    rc = go(&r, err);
    if (s->predictor->end)
        s->predictor->end(r.memory);
    sim_engine_done(&r.e);
    vec_done(&r.heap);
    vec_done(&r.ending);
    vec_done(&r.waiting);
    mem_free(r.due);
    if (rc)
        sim_outcomes_done(&out);
    else
        *ret = out;
    return rc;
}

void sim_machine_init(struct sim_machine *m, int64_t procs)
{
    *m = (struct sim_machine){
        .amount = {"cpu", procs * 1000}
    };
    m->node = (struct berth_node){.id = "machine", .allocatable = &m->amount, .allocatable_len = 1};
}
