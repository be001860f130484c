#include "control/explain/status.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/vec.h"
#include "control/control_parts.h"
#include "control/explain/forecast.h"
#include "control/explain/holders.h"
#include "control/explain/queue_view.h"
#include "control/job/job.h"
#include "control/job/outcome.h"
#include "control/job/predict.h"
#include "control/node/last_end.h"
#include "control/node/node.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"

struct pod_counts {
    size_t placed, running, ready, ended, starting, stopping;
};

static struct pod_counts count(const struct object *work)
{
    struct pod_counts n = {0};
    for (size_t i = 0; i < work->work->instances_len; i++) {
        const struct instance_view *v = work->work->instances[i]->instance;
        n.ready += v->ready;
        n.placed += v->state != BERTH_STOPPING && v->state != BERTH_ENDED;
        n.starting += v->state == BERTH_ASSIGNED || v->state == BERTH_STARTING || v->state == BERTH_RESERVED;
        n.running += v->state == BERTH_RUNNING;
        n.stopping += v->state == BERTH_STOPPING;
        n.ended += v->state == BERTH_ENDED;
    }
    return n;
}

static bool pauses(const struct state *s, const struct object *work, int64_t now_ns)
{
    uint64_t failures;
    return state_backoff_end_ns(s, work->id, &failures) > now_ns;
}

/* All placed instances are stopping, and their replacements wait for that. */
static bool waits_for_stop(const struct pod_counts *n)
{
    return n->stopping && n->placed == 0;
}

static const char *word_for(const struct state *s, const struct object *work, const struct pod_counts *n,
                            int64_t now_ns)
{
    const struct work_view *v = work->work;
    if (work->kind == KIND_JOB && v->replicas && n->ended >= v->replicas && !v->failed && !v->cancelled)
        return "ended";
    if (v->cancelled || v->ended)
        return n->placed + n->stopping ? "stopping" : "ended";
    if (v->failed)
        return n->placed + n->stopping ? "stopping" : "failed";
    if (!state_work_should_run(s, work)) {
        if (n->placed + n->stopping)
            return "stopping";
        if (v->waits && !v->held)
            return "waiting";
        return v->held ? work->kind == KIND_JOB ? "held" : "stopped" : "suspended";
    }
    if (n->placed + n->ended < v->replicas)
        return pauses(s, work, now_ns) ? "backing-off"
               : n->running            ? "partial"
               : waits_for_stop(n)     ? "stopping"
               : v->begin_ns > now_ns  ? "waiting"
                                       : "pending";
    return n->starting ? "starting" : "running";
}

const char *work_state_word(const struct state *s, const struct object *work, int64_t now_ns)
{
    struct pod_counts n = count(work);
    return word_for(s, work, &n, now_ns);
}

/* Returns the time of the last transition of the condition "Scheduled": since every plan left pods over, or since the
 * last pod was placed. Plans before the daemon's start are unknown; then the time is that of the workload's creation or
 * of its last placement. */
static int64_t scheduled_since_ns(const struct request *c, const struct object *work, bool waits)
{
    int64_t plan_ns = waits ? scheduler_pending_since_ns(control_scheduler(c->control), work->id) : 0;
    int64_t since_ns = work->work->created_ns;
    if (waits && work->work->begin_ns > since_ns && work->work->begin_ns <= c->now_ns)
        since_ns = work->work->begin_ns;
    for (size_t i = 0; i < work->work->instances_len; i++) {
        int64_t placed_ns = work->work->instances[i]->instance->placed_ns;
        since_ns = placed_ns > since_ns ? placed_ns : since_ns;
    }
    return plan_ns ? plan_ns : since_ns;
}

/* Adds the condition "Scheduled": true, or false with the counts per reason of the last plan. */
static void add_condition(const struct request *c, const struct object *work, const struct pod_counts *n,
                          json_t *status)
{
    struct berth_pending p;
    char since[TIMESTAMP_MAX];
    struct scheduler *scheduler = control_scheduler(c->control);
    bool waits = state_work_should_run(c->state, work) && n->placed + n->ended < work->work->replicas &&
                 scheduler_pending(scheduler, work->id, &p);
    json_t *condition = json_pack("{s:s, s:b, s:s}", "type", "Scheduled", "status", !waits, "since",
                                  timestamp_text(scheduled_since_ns(c, work, waits), since));
    if (waits) {
        (void)json_object_set_new(status, "pending", json_integer((json_int_t)p.ordinals_len));
        if (p.reasons_len) {
            (void)json_object_set_new(status, "reason", json_string(p.reasons[0].reason));
            (void)json_object_set_new(condition, "reason", json_string(p.reasons[0].reason));
            (void)json_object_set_new(condition, "message", json_string(p.reasons[0].text));
        }
        (void)json_object_set_new(condition, "counts", reasons_json(&p));
    } else if (state_work_should_run(c->state, work) && n->placed + n->ended < work->work->replicas &&
               waits_for_stop(n)) {
        (void)json_object_set_new(status, "reason", json_string("stopping"));
        (void)json_object_set_new(status, "help", json_string("a new pod starts when the stopping pods have ended"));
    }
    if (!work->work->waits && !work->work->held && work->work->begin_ns > c->now_ns) {
        char text[80], begin[TIMESTAMP_MAX];
        (void)snprintf(text, sizeof text, "does not start before %s", timestamp_text(work->work->begin_ns, begin));
        (void)json_object_set_new(status, "reason", json_string("begin"));
        (void)json_object_set_new(status, "help", json_string(text));
    }
    if (work->work->waits && !work->work->held) {
        struct arena arena;
        const char *text;
        arena_init(&arena);
        (void)job_wait(c->control->jobs, work, &arena, &text);
        (void)json_object_set_new(status, "reason", json_string("after"));
        (void)json_object_set_new(status, "help", json_string(text));
        arena_done(&arena);
    }
    (void)json_object_set_new(status, "conditions", json_pack("[o]", condition));
}

static json_t *instances_json(const struct object *work)
{
    enum { SHOWN_MAX = 1000 };
    json_t *list = json_array();
    for (size_t i = 0; i < work->work->instances_len && i < SHOWN_MAX; i++) {
        const struct instance_view *v = work->work->instances[i]->instance;
        json_t *one =
            json_pack("{s:I, s:I, s:s, s:s, s:b}", "id", (json_int_t)v->number, "ordinal", (json_int_t)v->ordinal,
                      "node", v->node, "state", berth_state_name(v->state), "ready", v->ready);
        if (v->progress >= 0)
            (void)json_object_set_new(one, "progress", json_integer(v->progress));
        if (v->state == BERTH_ENDED)
            (void)json_object_set_new(one, "outcome", json_string(work_outcome_name(outcome_of_instance(v))));
        (void)json_array_append_new(list, one);
    }
    return list;
}

/* Adds the mean progress of the pods, finished pods counting as complete. Omitted if no pod reports progress. */
static void add_progress(const struct object *work, json_t *status)
{
    int64_t sum = 0;
    bool said = false;
    for (size_t i = 0; i < work->work->instances_len; i++) {
        const struct instance_view *v = work->work->instances[i]->instance;
        bool done = v->state == BERTH_ENDED;
        said = said || v->progress >= 0 || done;
        if (v->state != BERTH_STOPPING)
            sum += done ? 1000 : v->progress > 0 ? v->progress : 0;
    }
    if (said && work->work->replicas) {
        int64_t mean = sum / (int64_t)work->work->replicas;
        (void)json_object_set_new(status, "progress", json_integer(mean < 1000 ? mean : 1000));
    }
}

/* Adds the first reported activity, and limits that a node does not enforce. */
static void add_words(const struct request *c, const struct object *work, json_t *status)
{
    const char *note = "", *unenforced = "";
    for (size_t i = 0; i < work->work->instances_len && !(*note && *unenforced); i++) {
        const struct instance_view *v = work->work->instances[i]->instance;
        note = *note || v->state == BERTH_ENDED ? note : v->note;
        unenforced = *unenforced || v->state == BERTH_ENDED ? unenforced : v->unenforced;
    }
    if (*note)
        (void)json_object_set_new(status, "note", json_string(note));
    if (*unenforced)
        (void)json_object_set_new(status, "unenforced", json_string(unenforced));
    json_t *last = last_end_show(c->state, work->id);
    if (last)
        (void)json_object_set_new(status, "last", last);
}

/* Adds the expected end of the last running task of a job. */
static void add_end(const struct request *c, const struct object *work, json_t *status)
{
    int64_t end_ns = 0;
    bool guess = false;
    char text[TIMESTAMP_MAX];
    struct holder_times times = {0};
    for (size_t i = 0; i < work->work->instances_len; i++) {
        const struct object *o = work->work->instances[i];
        if (o->instance->state != BERTH_RUNNING)
            continue;
        if (!times.estimate_ns)
            times = holder_times(c, work);
        bool one_guess;
        int64_t one_ns = holder_end_ns(c, &times, o, &one_guess);
        guess = one_ns > end_ns ? one_guess : guess;
        end_ns = one_ns > end_ns ? one_ns : end_ns;
    }
    if (end_ns && end_ns != BERTH_NEVER_NS) {
        (void)json_object_set_new(status, "until", json_string(timestamp_text(end_ns, text)));
        if (guess)
            (void)json_object_set_new(status, "until_guess", json_true());
    }
}

json_t *work_status(const struct request *c, const struct object *work)
{
    struct pod_counts n = count(work);
    json_t *status = json_pack("{s:s, s:I, s:I, s:I, s:I, s:I}", "state", word_for(c->state, work, &n, c->now_ns),
                               "replicas", (json_int_t)work->work->replicas, "placed", (json_int_t)n.placed, "running",
                               (json_int_t)n.running, "ready", (json_int_t)n.ready, "ended", (json_int_t)n.ended);
    enum work_outcome outcome = outcome_of_work(work);
    if (outcome)
        (void)json_object_set_new(status, "outcome", json_string(work_outcome_name(outcome)));
    add_condition(c, work, &n, status);
    add_progress(work, status);
    add_words(c, work, status);
    if (work->kind == KIND_JOB)
        add_end(c, work, status);
    json_t *predicted = work->kind == KIND_JOB ? predict_show(c->state, work) : NULL;
    if (predicted)
        (void)json_object_set_new(status, "predicted", predicted);
    (void)json_object_set_new(status, "instances", instances_json(work));
    return status;
}

/* ---- explanation ------------------------------------------------------------------------------------------------ */

enum { LINES_MAX = 50 };

static void add_line(json_t *lines, struct str *text)
{
    (void)json_array_append_new(lines, json_string(str_text(text)));
    str_clear(text);
}

/* Refers to the log if the pod has run. */
static void hint_at_log(const json_t *last, const char *id, struct str *text)
{
    const json_t *exit = json_object_get(json_array_get(last, 0), "exit");
    if (exit && json_integer_value(exit) >= 0)
        str_addf(text, " See 'berth logs %s'.", id);
}

/* Explains the end of the latest pod. */
static void why_ended(const struct request *c, const struct object *work, json_t *lines)
{
    CLEANUP(str) struct str text = {0};
    CLEANUP(json) json_t *last = last_end_show(c->state, work->id);
    const json_t *one = json_array_get(last, 0);
    const char *node = json_string_value(json_object_get(one, "node"));
    const char *error = json_string_value(json_object_get(one, "error"));
    if (node && error) {
        str_addf(&text, "Last failure, on node %s: %s.", node, error);
        hint_at_log(last, work->id, &text);
    } else {
        str_add(&text, "See 'berth events' for the cause.");
    }
    add_line(lines, &text);
}

/* Adds changes that help, according to a plan. */
static void why_advice(const struct forecast_run *run, json_t *lines)
{
    CLEANUP(str) struct str text = {0};
    for (size_t i = 0; run && i < run->advice_len; i++) {
        str_addf(&text, "Suggestion: %s", run->advice[i].text);
        add_line(lines, &text);
    }
}

static void why_waits(struct request *c, const struct object *work, const struct pod_counts *n,
                      const struct forecast_run *run, json_t *lines)
{
    CLEANUP(str) struct str text = {0};
    struct berth_pending p;
    uint64_t failures;
    int64_t again_ns = state_backoff_end_ns(c->state, work->id, &failures);
    if (again_ns > c->now_ns) {
        char times[40] = "once";
        if (failures > 1)
            (void)snprintf(times, sizeof times, "%" PRIu64 " times in a row", failures);
        str_addf(&text, "Failed %s; the next attempt is in %" PRId64 " s.", times,
                 (again_ns - c->now_ns) / 1000000000 + 1);
        add_line(lines, &text);
        why_ended(c, work, lines);
        return;
    }
    if (work->work->begin_ns > c->now_ns) {
        char begin[TIMESTAMP_MAX];
        str_addf(&text, "Start time: not before %s.", timestamp_text(work->work->begin_ns, begin));
        add_line(lines, &text);
        return;
    }
    if (!scheduler_pending(control_scheduler(c->control), work->id, &p)) {
        str_add(&text, n->stopping ? "A new pod starts when the stopping pods have ended."
                                   : "Not yet considered by the scheduler; wait for the next plan.");
        add_line(lines, &text);
        return;
    }
    str_addf(&text, "%zu of %" PRIu32 " pods are pending:", p.ordinals_len, work->work->replicas);
    add_line(lines, &text);
    for (size_t i = 0; i < p.reasons_len; i++) {
        const struct berth_reason *r = &p.reasons[i];
        str_addf(&text, "  %s", r->text);
        if (r->only && r->only < r->nodes)
            str_addf(&text, " (for %" PRIu64 " of them this is the only reason)", r->only);
        add_line(lines, &text);
    }
    why_advice(run, lines);
}

static void why_failed(const struct request *c, const struct object *work, struct str *text)
{
    CLEANUP(json) json_t *doc = object_doc(work);
    CLEANUP(json) json_t *last = last_end_show(c->state, work->id);
    const char *error = json_string_value(json_object_get(doc, "error"));
    str_addf(text, "Failed, no further attempts: %s.", error ? error : "no reason given");
    hint_at_log(last, work->id, text);
    if (work->kind != KIND_JOB)
        str_addf(text, " Start it again with 'berth %s start %s'.", kinds[work->kind].name, work->id);
}

static void why_cancelled(const struct object *work, struct str *text)
{
    CLEANUP(json) json_t *doc = object_doc(work);
    const char *error = json_string_value(json_object_get(doc, "error"));
    str_add(text, work->work->outcome == OUTCOME_PREEMPTED ? "Preempted" : "Cancelled");
    str_addf(text, "%s%s.", error ? ": " : "", error ? error : "");
}

/* Names the job that the workload waits for. */
static void why_after(struct request *c, const struct object *work, struct str *text)
{
    const char *why = "";
    (void)job_wait(c->control->jobs, work, &c->arena, &why);
    str_addf(text, "It %s.", *why ? why : "waits for other jobs");
}

/* Adds the error of the health check, if it has reported one. */
static void why_unready(const struct object *work, const struct object *instance, struct str *text)
{
    CLEANUP(json) json_t *doc = object_doc(instance);
    const char *error = json_string_value(json_object_get(doc, "error"));
    const struct instance_view *v = instance->instance;
    CLEANUP(json) json_t *spec = object_doc(work);
    const char *silent = json_object_get(spec, "health") ? "its health check has not succeeded yet"
                                                         : "its port does not accept connections yet";
    str_addf(text, "Pod %" PRIu32 " runs on node %s and is not ready: %s.", v->ordinal, v->node,
             error && *error ? error : silent);
}

void why_work(struct request *c, const struct object *work, const struct forecast_run *run, json_t *lines)
{
    CLEANUP(str) struct str text = {0};
    struct pod_counts n = count(work);
    const struct object *owner = state_find(c->state, KIND_USER, work->owner);
    if (work->work->cancelled)
        why_cancelled(work, &text);
    else if (work->work->failed)
        why_failed(c, work, &text);
    else if (work->work->ended && work->kind == KIND_JOB)
        str_add(&text, "Completed successfully.");
    else if (work->work->ended)
        str_addf(&text, "Ended by itself; start it again with 'berth %s start %s'.", kinds[work->kind].name, work->id);
    else if (owner && owner->user->disabled)
        str_addf(&text, "The owner %s is disabled; enable the user with 'berth user enable %s'.", owner->id, owner->id);
    else if (work->work->held && work->kind == KIND_JOB)
        str_addf(&text, "Held; release it with 'berth job release %s'.", work->id);
    else if (work->work->waits)
        why_after(c, work, &text);
    else if (work->work->held)
        str_addf(&text, "Stopped; start it with 'berth %s start %s'.", kinds[work->kind].name, work->id);
    if (text.len) {
        add_line(lines, &text);
        return;
    }
    if (n.placed + n.ended < work->work->replicas)
        why_waits(c, work, &n, run, lines);
    for (size_t i = 0; i < work->work->instances_len && json_array_size(lines) < LINES_MAX; i++) {
        const struct instance_view *v = work->work->instances[i]->instance;
        if (v->state == BERTH_ENDED || (v->state == BERTH_RUNNING && v->ready))
            continue;
        if (v->state == BERTH_RUNNING) {
            why_unready(work, work->work->instances[i], &text);
            add_line(lines, &text);
            continue;
        }
        str_addf(&text, "Pod %" PRIu32 " is %s on node %s.", v->ordinal, berth_state_name(v->state), v->node);
        if (v->state == BERTH_ASSIGNED)
            str_add(&text, " Its agent has not reported it yet.");
        add_line(lines, &text);
    }
    if (json_array_size(lines) == 0) {
        str_addf(&text, "Healthy: %zu running, %zu ready, %zu ended of %" PRIu32 ".", n.running, n.ready, n.ended,
                 work->work->replicas);
        add_line(lines, &text);
    }
}

static void why_node(struct request *c, const struct object *node, json_t *lines)
{
    static const char *const sentences[] = {
        [BERTH_NODE_READY] = "Ready; accepts new work.",
        [BERTH_NODE_JOINING] = "Joining: the agent has not reported yet.",
        [BERTH_NODE_CORDONED] = "Cordoned: existing instances keep running; no new work is placed here.",
        [BERTH_NODE_DRAINING] = "Draining: instances are moving to other nodes.",
        [BERTH_NODE_LOST] = "Lost: the agent does not report. Check that it runs and reaches the daemon.",
    };
    CLEANUP(str) struct str text = {0};
    str_add(&text, sentences[node->node->state]);
    add_line(lines, &text);
    size_t instances = node_instances(node->node);
    str_addf(&text, "%zu instance%s on this node.", instances, instances == 1 ? " is" : "s are");
    add_line(lines, &text);
    if (scheduler_status(control_scheduler(c->control)).alarm) {
        str_add(&text, "More than a third of all nodes are lost, so no instances are replaced.");
        add_line(lines, &text);
    }
}

/* Requests advice by further plans if the last plan left pods over. *ret NULL: no advice. Returns true if the answer is
 * deferred. */
static bool advice_request(struct request *c, const struct object *work, const struct forecast_run **ret)
{
    struct berth_pending p;
    const struct forecast_case as_it_is = {0};
    *ret = NULL;
    if (!scheduler_pending(control_scheduler(c->control), work->id, &p))
        return false;
    const struct forecast_spec run_spec = {
        .cases = &as_it_is, .cases_len = 1, .subject = work->id, .advise = true, .plan_only = true};
    return forecast_request(c, &run_spec, ret) == 0 && !*ret; /* an error only omits the advice */
}

int why_run(struct request *c)
{
    const struct forecast_run *run = NULL;
    enum kind kind = kind_find(c->args[0]);
    bool fits = kind_is_workload(kind) || kind == KIND_NODE;
    const struct object *o =
        fits ? request_object(c, kind, c->args[1], kind == KIND_NODE ? PERMIT_CLUSTER : PERMIT_READ) : NULL;
    if (!fits)
        return err_set(&c->err, ENOENT, "'%s' cannot be explained; expected an app, job, vm or node", c->args[0]);
    if (!o)
        return -c->err.code;
    if (kind != KIND_NODE && advice_request(c, o, &run))
        return 0;
    json_t *lines = json_array();
    if (kind == KIND_NODE)
        why_node(c, o, lines);
    else
        why_work(c, o, run, lines);
    c->answer.body = json_pack("{s:s, s:s, s:o}", "kind", kinds[kind].name, "id", o->id, "lines", lines);
    if (kind != KIND_NODE)
        (void)json_object_set_new(c->answer.body, "status", work_status(c, o));
    (void)json_object_set_new(c->answer.body, "events", events_list(c->control->events, c, o->id, 10));
    return 0;
}
