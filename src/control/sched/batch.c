#include "control/sched/batch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/plant.h"
#include "base/str.h"
#include "control/job/job.h"
#include "control/kind/queue.h"
#include "control/sched/batch_doc.h"
#include "control/sched/batch_group.h"
#include "control/sched/batch_parts.h"
#include "control/sched/batch_reasons.h"
#include "control/state/commit.h"
#include "control/tenant/usage.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"

static void batch_free(struct batch *u)
{
    for (size_t i = 0; i < u->steps.len; i++)
        json_decref(u->steps.at[i].doc);
    vec_done(&u->steps);
    str_done(&u->basis.assumed);
    str_done(&u->reasons);
    arena_done(&u->arena);
    mem_free(u);
}

struct batches *batches_new(struct control *control, void (*idle)(void *ctx), void *ctx)
{
    struct batches *u = mem_zalloc(sizeof *u);
    u->control = control;
    u->idle = idle;
    u->ctx = ctx;
    return u;
}

void batches_free(struct batches *u)
{
    if (!u)
        return;
    while (u->first) {
        struct batch *next = u->first->next;
        batch_free(u->first);
        u->first = next;
    }
    vec_done(&u->own);
    str_done(&u->failures.text);
    mem_free(u);
}

size_t batches_len(const struct batches *u)
{
    return u->len;
}

uint64_t batches_rolled_back(const struct batches *u)
{
    return u->returned + state_assumption_losses(u->control->state);
}

enum batches_failure batches_failure(struct batches *u)
{
    enum batches_failure failure = u->troubled ? BATCHES_STORE_FAILED : u->failed ? BATCHES_CONFLICT : BATCHES_OK;
    u->failed = u->troubled = false;
    return failure;
}

/* ---- batches of a plan ------------------------------------------------------------------------------------------ */

static struct batch *batch_new(struct batches *u, const struct batch_basis *basis)
{
    struct batch *batch = mem_zalloc(sizeof *batch);
    batch->batches = u;
    batch->dropped = state_assumption_losses(u->control->state);
    batch->basis = *basis;
    batch->basis.assumed = (struct str){0};
    arena_init(&batch->arena);
    batch->basis.profile = arena_strdup(&batch->arena, basis->profile);
    if (u->last)
        u->last->next = batch;
    else
        u->first = batch;
    u->last = batch;
    u->len++;
    return batch;
}

static void advance(struct batches *u);

static struct batch_groups *groups_read(const struct batches *u, const struct berth_plan *plan)
{
    struct batch_groups *g = batch_groups_new(u->control->state);
    for (const struct batch *batch = u->first; batch; batch = batch->next)
        for (size_t i = 0; i < batch->steps.len; i++)
            if (!batch->steps.at[i].fact && batch->steps.at[i].op == BERTH_RESERVE)
                batch_groups_reserved(g, batch->steps.at[i].node);
    batch_groups_read(g, plan);
    return g;
}

size_t batches_add(struct batches *u, struct berth_plan *plan, struct batch_basis *basis)
{
    struct batch *open = NULL, *first = NULL;
    VEC(struct batch *) groups = {0}; /* by group number */
    struct batch_groups *together = groups_read(u, plan);
    size_t made = 0, old = 0, freed = 0; /* freed: the last batch that frees resources */

    /* A queued batch depends on the freeze of its own plan, and the first batch in the queue on the earliest freeze.
     * Older own revisions are no longer needed. */
    uint64_t earliest = u->first ? u->first->basis.revision : basis->revision;
    while (old < u->own.len && u->own.at[old] <= earliest)
        old++;
    if (old) {
        memmove(u->own.at, u->own.at + old, (u->own.len - old) * sizeof *u->own.at);
        u->own.len -= old;
    }

    for (size_t i = 0; i < berth_plan_actions(plan); i++) {
        struct berth_action a = berth_plan_action(plan, i);
        uint64_t number = batch_group_of(together, &a);
        while (groups.len <= number)
            vec_push(&groups, NULL);
        struct batch *batch = groups.at[number];
        bool goes = a.op == BERTH_STOP || a.op == BERTH_LOSE;
        if (!number && !goes && open && open->number < freed)
            open = NULL; /* the action may use resources that a later batch frees */
        if (!batch && (number || !open || open->steps.len >= BATCH_ACTIONS_MAX)) {
            batch = batch_new(u, basis);
            batch->number = ++made;
            first = first ? first : batch;
            if (number) {
                groups.at[number] = batch;
                batch->whole = true;
            } else {
                open = batch;
            }
        }
        batch = batch ? batch : open;
        batch_assume(batch, &a);
        if (batch->frees && batch->number > freed)
            freed = batch->number;
    }
    for (size_t i = 0; i < berth_plan_facts(plan); i++) {
        struct berth_fact fact = berth_plan_fact(plan, i);
        if (!first) {
            first = batch_new(u, basis);
            first->number = ++made;
        }
        batch_assume_fact(first, &fact);
    }
    if (first) { /* stored once in the journal for all batches of the plan: the text may be long */
        batch_reasons_write(plan, &first->reasons);
        first->basis.assumed = basis->assumed;
        basis->assumed = (struct str){0};
    }
    for (struct batch *batch = first; batch; batch = batch->next)
        batch->of = made;
    vec_done(&groups);
    batch_groups_free(together);
    advance(u);
    return made;
}

void batches_assumed(const struct batches *u, struct str *to)
{
    bool some = false;
    str_add_char(to, '[');
    for (const struct batch *batch = u->first; batch; batch = batch->next)
        for (size_t i = 0; i < batch->steps.len; i++) {
            const struct batch_step *s = &batch->steps.at[i];
            char number[24];
            if (!state_is_assumed(u->control->state, s->fact ? KIND_FACT : KIND_INSTANCE,
                                  s->fact ? s->fact : str_u64(s->instance, number)))
                continue; /* another writer has changed the object: the batch will be in conflict */
            json_t *tree = s->fact ? fact_doc_make(&s->remembered) : json_incref(s->doc);
            char *doc = tree ? json_dumps(tree, JSON_COMPACT) : NULL;
            json_decref(tree);
            str_addf(to, "%s[\"%s\",", some ? "," : "", s->fact ? "fact" : berth_op_name(s->op));
            if (s->fact)
                str_add_json(to, s->fact);
            else
                str_addf(to, "%" PRIu64, s->instance);
            str_addf(to, ",%" PRId64 ",%s]", batch->basis.now_ns, doc ? doc : "null");
            free(doc);
            some = true;
        }
    str_add_char(to, ']');
}

/* ---- commit to the store ---------------------------------------------------------------------------------------- */

static void roll_back_later(struct batches *u);

/* Rolls back one step of the first batch. */
static void step_drop(struct batch *u, struct batch_step *s)
{
    roll_back_later(u->batches);
    batch_step_roll_back(u, s);
    json_decref(s->doc);
    metric_add(u->batches->control->metrics, METRIC_UNITS_CONFLICT, 0, 1);
}

/* Rolls back the marked steps, last first, and removes them from the batch. */
static void omitted_drop(struct batch *u)
{
    size_t kept = 0;
    for (size_t i = u->steps.len; i-- > 0;)
        if (u->steps.at[i].omitted)
            step_drop(u, &u->steps.at[i]);
    for (size_t i = 0; i < u->steps.len; i++)
        if (!u->steps.at[i].omitted)
            u->steps.at[kept++] = u->steps.at[i];
    u->steps.len = kept;
}

/* Leaves out the pods of jobs that have ended. */
static void omit_ended_jobs(struct batch *u)
{
    if (!PLANTED(OVER_PLACED) && batch_mark_ended(u) > 0)
        omitted_drop(u);
}

/* Builds either the steps that place instances or the others. Returns false if the batch must be rolled back. In a
 * batch of independent steps, marks the steps that cannot be built instead. */
static bool steps_build(struct batch *u, struct change *change, struct batch_quota_trial *trial, bool take)
{
    for (size_t i = 0; i < u->steps.len; i++) {
        struct batch_step *s = &u->steps.at[i];
        size_t tried = trial->tried.len;
        if (batch_step_places(s) != take)
            continue;
        s->omitted = !batch_quota_try(u, trial, s) || !batch_step_build(u, change, s);
        if (s->omitted && u->whole)
            return false;
        if (s->omitted)
            batch_quota_undo(u, trial, tried);
    }
    return true;
}

/* Builds the steps that free resources first, because the others may use them. */
static bool batch_build(struct batch *u, struct change *change)
{
    struct batch_quota_trial trial = {0};
    bool numbers = false;
    omit_ended_jobs(u);
    bool ok = steps_build(u, change, &trial, false) && steps_build(u, change, &trial, true);
    if (ok && trial.takes)
        (void)change_guard(change, KIND_LEDGER, LEDGER_QUOTAS);
    batch_quota_undo(u, &trial, 0);
    vec_done(&trial.tried);
    if (!ok)
        return false;
    omitted_drop(u);
    for (size_t i = 0; i < u->steps.len; i++)
        numbers = numbers || (batch_step_places(&u->steps.at[i]) && u->steps.at[i].op != BERTH_PROMOTE);
    if (numbers) {
        json_int_t last = (json_int_t)state_last_number(change->state, KIND_INSTANCE);
        change_put_unguarded(change, KIND_COUNTER, kinds[KIND_INSTANCE].plural, json_pack("{s:I}", "last", last));
    }
    return u->steps.len > 0;
}

static void batch_roll_back(struct batch *u)
{
    for (size_t i = u->steps.len; i-- > 0;)
        batch_step_roll_back(u, &u->steps.at[i]);
    u->batches->failed = true;
    batch_failure_note(&u->batches->failures, u->basis.cycle, u->number);
    metric_add(u->batches->control->metrics, METRIC_UNITS_CONFLICT, 0, 1);
}

static void batch_pop(struct batches *u)
{
    struct batch *batch = u->first;
    u->first = batch->next;
    if (!u->first)
        u->last = NULL;
    u->len--;
    batch_free(batch);
}

/* Called when a step of the first batch fails. Rolls back the batches that depend on it: those of later plans, and the
 * later ones of its own plan if they may use the resources it frees. Rolls back in reverse order, so that each replaced
 * instance finds its resources free again. The plan being made is repeated, because it depends on the step, too. */
static void roll_back_later(struct batches *u)
{
    VEC(struct batch *) later = {0};
    struct batch *kept = u->first;
    while (!u->first->frees && kept->next && kept->next->basis.cycle == u->first->basis.cycle)
        kept = kept->next;
    for (struct batch *batch = kept->next; batch; batch = batch->next)
        vec_push(&later, batch);
    kept->next = NULL;
    u->last = kept;
    while (later.len) {
        struct batch *batch = later.at[--later.len];
        batch_roll_back(batch);
        batch_free(batch);
        u->len--;
    }
    vec_done(&later);
    u->returned++;
}

/* Drops the first batch, which has not been written to the journal. Data that is recorded once per plan moves to the
 * next batch. */
static void drop_first(struct batches *u)
{
    struct batch *batch = u->first, *next = batch->next;
    if (next && next->basis.cycle == batch->basis.cycle && batch->basis.assumed.len) {
        next->basis.assumed = batch->basis.assumed;
        batch->basis.assumed = (struct str){0};
    }
    if (next && next->basis.cycle == batch->basis.cycle && batch->reasons.len) {
        next->reasons = batch->reasons;
        batch->reasons = (struct str){0};
    }
    batch_pop(u);
}

static void roll_back_first(struct batches *u)
{
    roll_back_later(u);
    batch_roll_back(u->first);
    drop_first(u);
}

static void count_placed(struct batch *u)
{
    struct control *c = u->batches->control;
    int64_t now_ns = control_now_ns(c);
    for (size_t i = 0; i < u->steps.len; i++) {
        const struct batch_step *s = &u->steps.at[i];
        if (s->fact)
            continue;
        metric_add(c->metrics, METRIC_ACTIONS, s->op, 1);
        if (s->op == BERTH_STOP && s->cause == BERTH_CAUSE_PREEMPTED)
            job_event_preempted(c, s->workload, s->ordinal, s->node, batch_stopped_for(u, s->instance));
        const struct object *work = s->op == BERTH_PLACE ? state_find_work(c->state, s->workload) : NULL;
        if (work && work->work->created_ns)
            metric_observe(c->metrics, METRIC_PLACE_SECONDS, now_ns - work->work->created_ns);
    }
}

/* Returns whether the batch is still assumed in the cluster. */
static bool is_assumed(const struct batch *u)
{
    return u->dropped == state_assumption_losses(u->batches->control->state);
}

static bool has_fact(const struct batch *u, const char *fact)
{
    for (size_t i = 0; i < u->steps.len; i++)
        if (u->steps.at[i].fact && strcmp(u->steps.at[i].fact, fact) == 0)
            return true;
    return false;
}

/* Settles the facts that are still assumed: the commit did not write them because their documents were equal already. A
 * fact that a later batch assumes too stays assumed, and is listed in the next plan's basis. */
static void facts_settle(struct batch *u)
{
    struct state *s = u->batches->control->state;
    for (size_t i = 0; i < u->steps.len; i++) {
        const char *fact = u->steps.at[i].fact;
        if (!fact || !state_is_assumed(s, KIND_FACT, fact))
            continue;
        const struct batch *later = u->next;
        while (later && !has_fact(later, fact))
            later = later->next;
        if (!later)
            state_fact_settle(s, fact);
    }
}

static void batch_committed(void *ctx, const struct store_result *result)
{
    struct batch *batch = ctx;
    struct batches *u = batch->batches;
    struct control *c = u->control;
    u->submitted = false;
    metric_add(c->metrics, METRIC_COMMITS, result->rc == 0 ? 0 : result->rc == -EAGAIN ? 1 : 2, 1);
    if (result->rc == 0) {
        if (is_assumed(batch)) /* otherwise later plans do not know of the commit */
            vec_push(&u->own, result->revision);
        facts_settle(batch);
        count_placed(batch);
    } else {
        log_write(c->env.log, c->now_ns, LEVEL_WARN, "unit.failed", LOG_NUMBER("cycle", (int64_t)batch->basis.cycle),
                  LOG_NUMBER("unit", (int64_t)batch->number), LOG_NUMBER("actions", (int64_t)batch->steps.len),
                  LOG_TEXT("text", result->rc == -EAGAIN ? "an object that it depends on has changed" : result->text));
        u->troubled = u->troubled || result->rc != -EAGAIN;
        roll_back_first(u);
    }
    if (result->rc == 0)
        batch_pop(u);
    advance(u);
    if (!u->first)
        u->idle(u->ctx);
}

/* Appends the decision's part of the journal record. */
static void cycle_write(struct batch *u, struct str *to)
{
    const struct batch_basis *b = &u->basis;
    batch_basis_write(b, u->number, u->of, to);
    str_add(to, ",\"actions\":[");
    for (size_t i = 0; i < u->steps.len; i++) {
        const struct batch_step *s = &u->steps.at[i];
        struct batch_action a = {s->op, s->cause, s->workload, s->node, s->ordinal, s->instance, s->score, s->rival};
        if (!s->fact)
            batch_action_write(&a, to);
    }
    str_add_char(to, ']');
    batch_failures_write(&u->batches->failures, to);
    if (b->assumed.len) {
        str_add(to, ",\"assumed\":");
        str_add_bytes(to, b->assumed.at, b->assumed.len);
    }
    if (u->reasons.len) { /* the reasons cover the whole plan */
        batch_kinds_write(b, to);
        str_add(to, ",\"pending\":");
        str_add_bytes(to, u->reasons.at, u->reasons.len);
    }
    str_add(to, "}}");
}

static bool batch_submit(struct batch *u)
{
    struct control *c = u->batches->control;
    struct change change;
    CLEANUP(str) struct str extra = {0};
    struct berth_err err;
    change_init(&change, c->state, &u->arena);
    int rc = batch_build(u, &change) ? 0 : -EAGAIN;
    if (rc == 0) {
        cycle_write(u, &extra);
        struct commit_note note = {
            .who = "berth", .verb = "unit", .extra = {extra.at, extra.len}
        };
        rc = commit_submit(c, &change, &note, batch_committed, u, &err);
        if (rc < 0) {
            u->batches->troubled = true;
            log_write(c->env.log, c->now_ns, LEVEL_ERROR, "unit.refused", LOG_TEXT("text", err.text));
        }
    }
    change_done(&change);
    return rc > 0;
}

/* Submits the first batch unless a commit is in progress. Rolls back batches that cannot be submitted. */
static void advance(struct batches *u)
{
    while (u->first && !u->submitted) {
        if (u->first->steps.len && !u->first->broken && is_assumed(u->first) && batch_submit(u->first)) {
            u->submitted = true;
            return;
        }
        if (u->first->steps.len)
            roll_back_first(u);
        else
            drop_first(u);
    }
}
