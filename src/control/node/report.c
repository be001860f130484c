/* report.c - applies agents' reports about their node to its instances.
 *
 * A report describes the present state, so a repeated or late report must not undo what is known since: epochs and
 * sequence numbers only grow. Unchanged values are not written; such a report only renews the node's lease.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "base/plant.h"
#include "base/str.h"
#include "control/control_parts.h"
#include "control/job/job.h"
#include "control/job/outcome.h"
#include "control/node/cumulative_use.h"
#include "control/node/last_end.h"
#include "control/node/node.h"
#include "control/node/transition.h"
#include "control/optask/optask.h"
#include "control/tenant/usage.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"
#include "wire/text/quantity.h"

struct report_handler {
    struct request *c;
    const char *node;
    struct report_doc said;
    json_t *unknown; /* instances that must not be on the node */
};

/* A newer agent has reported for this node; the agent that receives this error must exit. */
static int refuse_superseded(struct report_handler *r, uint64_t known)
{
    metric_add(r->c->control->metrics, METRIC_REPORTS, 1, 1);
    return err_set(&r->c->err, EALREADY, "node %s: epoch %" PRIu64 " is already known; the report is ignored", r->node,
                   known);
}

static int refuse_stale(struct report_handler *r, const char *what, uint64_t known)
{
    metric_add(r->c->control->metrics, METRIC_REPORTS, 1, 1);
    return err_set(&r->c->err, EAGAIN, "node %s: %s %" PRIu64 " is already known; the report is ignored", r->node, what,
                   known);
}

static int check_order(struct report_handler *r, const json_t *node)
{
    uint64_t known = (uint64_t)json_integer_value(json_object_get(node, "epoch")), epoch = 0, seq = 0;
    uint64_t durable = (uint64_t)json_integer_value(json_object_get(node, "seq"));
    if (PLANTED(REPORT_STALE))
        return 0;
    if (r->said.epoch < known)
        return refuse_superseded(r, known);
    if (r->said.epoch == known && r->said.seq <= durable)
        return refuse_stale(r, "report", durable);
    if (!control_last_report(r->c->control, r->node, &epoch, &seq))
        return 0;
    if (r->said.epoch < epoch)
        return refuse_superseded(r, epoch);
    return r->said.epoch == epoch && r->said.seq <= seq ? refuse_stale(r, "report", seq) : 0;
}

static void set_since(const struct report_handler *r, json_t *doc, const char *state)
{
    char now[TIMESTAMP_MAX];
    (void)json_object_set_new(doc, "state", json_string(state));
    (void)json_object_set_new(doc, "since", json_string(timestamp_text(r->c->now_ns, now)));
}

/* ---- use -------------------------------------------------------------------------------------------------------- */

/* Only resources that the workload requests may become names in the cluster: an agent cannot fill it with others. */
static bool check_usage_names(struct report_handler *r, const struct object *instance, const json_t *present,
                              const char *resource)
{
    if (strcmp(resource, "cpu") == 0 || strcmp(resource, "memory") == 0 || json_object_get(present, resource))
        return true;
    CLEANUP(json) json_t *held = object_doc(instance);
    if (strcmp(resource, "gpu-memory") == 0 || strcmp(resource, "gpu-milli") == 0)
        return json_object_get(held, "gpus") != NULL;
    CLEANUP(json) json_t *doc = instance_work_doc(r->c->state, instance);
    return json_object_get(json_object_get(doc, "requests"), resource) ||
           json_object_get(json_object_get(doc, "limits"), resource);
}

/* Ignores differences of up to a tenth: reports are frequent, and each written one is a new revision. */
static bool usage_differs(const char *resource, const json_t *present, int64_t used)
{
    int64_t was = 0;
    const json_t *text = json_object_get(present, "used");
    if (!text || quantity_parse(resource, text, &was, NULL) < 0)
        return true;
    int64_t apart = used > was ? used - was : was - used;
    return apart > was / 10;
}

/* Records the highest use, with the precision of recorded use. */
static void note_peak(json_t *doc, const char *resource, int64_t used)
{
    char amount[QUANTITY_TEXT_MAX];
    json_t *all = json_object_get(doc, "peak");
    int64_t was = -1;
    if (all && json_object_get(all, resource))
        (void)quantity_parse(resource, json_object_get(all, resource), &was, NULL);
    if (used <= was)
        return;
    if (!all)
        (void)json_object_set_new(doc, "peak", all = json_object());
    (void)json_object_set_new(all, resource, json_string(quantity_print(resource, used, amount)));
}

static void report_usage(struct report_handler *r, const struct object *instance, const struct report_item *item,
                         json_t *doc)
{
    char now[TIMESTAMP_MAX], amount[QUANTITY_TEXT_MAX];
    json_t *all = json_object_get(doc, "usage");
    for (size_t i = 0; i < item->usage_len; i++) {
        const char *resource = item->usage[i].resource;
        int64_t used = item->usage[i].amount;
        json_t *one = json_object_get(all, resource);
        if (used > BERTH_AMOUNT_MAX || !check_usage_names(r, instance, all, resource) ||
            !usage_differs(resource, one, used))
            continue;
        if (!all)
            (void)json_object_set_new(doc, "usage", all = json_object());
        if (!one)
            (void)json_object_set_new(all, resource, one = json_object());
        (void)json_object_set_new(one, "used", json_string(quantity_print(resource, used, amount)));
        (void)json_object_set_new(one, "since", json_string(timestamp_text(r->c->now_ns, now)));
        note_peak(doc, resource, used);
    }
}

/* ---- one instance ----------------------------------------------------------------------------------------------- */

static void report_ports(const struct report_item *item, json_t *doc)
{
    if (item->ports_len == 0)
        return;
    json_t *ports = json_array();
    for (size_t i = 0; i < item->ports_len; i++)
        (void)json_array_append_new(
            ports, json_pack("{s:s, s:i}", "endpoint", item->ports[i].endpoint, "port", item->ports[i].port));
    (void)json_object_set_new(doc, "ports", ports);
}

static void add_report_event(struct report_handler *r, const struct object *o, const char *type,
                             const struct report_item *item)
{
    const struct object *work = state_find_work(r->c->state, o->instance->workload);
    const char *text = item->error && *item->error ? item->error : strcmp(type, "Failed") == 0 ? "no reason given" : "";
    struct object_event event = {
        .type = type,
        .kind = work ? work->kind : KIND_INSTANCE,
        .id = work ? work->id : o->id,
        .owner = o->owner,
        .group = o->group,
        .message = arena_fmt(&r->c->arena, "instance %s on %s%s%s", o->id, r->node, *text ? ": " : "", text),
    };
    events_later(r->c, &event);
}

/* A workload whose pods fail waits before the next try, each time longer, until one of them is ready. A job's failures
 * are counted until its end. Returns the number of failures. */
static int64_t note_failure(struct report_handler *r, const char *workload)
{
    enum { FAILURES_MAX = 10000 };
    const char *id = arena_fmt(&r->c->arena, "since/%s", workload);
    json_int_t failures = json_integer_value(json_object_get(change_read(&r->c->change, KIND_FACT, id), "value")) + 1;
    struct berth_fact fact = {.kind = BERTH_FACT_SINCE,
                              .key = workload,
                              .value = failures < FAILURES_MAX ? failures : FAILURES_MAX,
                              .at_ns = r->c->now_ns};
    change_put(&r->c->change, KIND_FACT, id, fact_doc_make(&fact));
    return fact.value;
}

static void note_health(struct report_handler *r, const char *workload)
{
    const char *id = arena_fmt(&r->c->arena, "since/%s", workload);
    const struct object *work = state_find_work(r->c->state, workload);
    if (work && work->kind == KIND_JOB)
        return;
    if (state_find(r->c->state, KIND_FACT, id))
        change_delete(&r->c->change, KIND_FACT, id);
}

static const char *failure_text(const struct report_handler *r, const struct report_item *item)
{
    return item->error && *item->error ? item->error
           : item->words.exit_reported ? arena_fmt(&r->c->arena, "exit code %d", item->words.exit)
                                       : "no reason given";
}

static enum work_outcome failure_outcome(const struct report_item *item)
{
    return item->words.oom_killed ? OUTCOME_OUT_OF_MEMORY : OUTCOME_FAILED;
}

/* Marks a workload as ended, so that no new instance is placed. */
static void finish_work(struct report_handler *r, const struct object *work, bool failed,
                        const struct report_item *item)
{
    json_t *doc = change_edit(&r->c->change, work->kind, work->id);
    if (!doc || json_is_true(json_object_get(doc, "failed")) || json_is_true(json_object_get(doc, "cancelled")))
        return;
    outcome_put(doc, failed ? "failed" : "ended", failed ? failure_outcome(item) : OUTCOME_SUCCEEDED,
                failed ? failure_text(r, item) : NULL);
}

static int64_t failures_of(struct report_handler *r, const char *workload)
{
    const char *id = arena_fmt(&r->c->arena, "since/%s", workload);
    return json_integer_value(json_object_get(change_read(&r->c->change, KIND_FACT, id), "value"));
}

/* Returns whether an array task may not be retried. Its failure then affects neither the other tasks nor the pause. */
static bool task_is_final(struct report_handler *r, const struct object *work, const struct work_doc *d)
{
    int64_t retries = d->run.restart_policy == RESTART_NEVER || !d->job.requeue ? 0
                      : d->run.retries >= 0                                     ? d->run.retries
                                                                                : RETRIES_DEFAULT;
    return work->kind == KIND_JOB && d->job.array.count && failures_of(r, work->id) >= retries;
}

/* Applies the restart policy to an instance that has ended on its own. Services are restarted by default. A job fails
 * when the retries of all its tasks together are used up; in an array only the task fails. Returns true if an array
 * task has failed for good. */
static bool end_of_run(struct report_handler *r, const struct object *o, const struct report_item *item)
{
    struct work_doc d = {0};
    const struct object *work = state_find_work(r->c->state, o->instance->workload);
    CLEANUP(json) json_t *doc = work ? object_doc(work) : NULL;
    bool readable = doc && work_doc_read(doc, &r->c->arena, &d, NULL) == 0;
    if (readable && task_is_final(r, work, &d))
        return true;
    int64_t failures = note_failure(r, o->instance->workload);
    if (!readable)
        return false;
    bool never = d.run.restart_policy == RESTART_NEVER, well = item->state == REPORT_ENDED;
    if (work->kind == KIND_JOB) {
        int64_t retries = never || !d.job.requeue ? 0 : d.run.retries >= 0 ? d.run.retries : RETRIES_DEFAULT;
        if (failures > retries)
            finish_work(r, work, true, item);
    } else if (never || (well && d.run.restart_policy == RESTART_ON_FAILURE)) {
        finish_work(r, work, !well, item);
    }
    return false;
}

/* Records the use of the ended instance. */
static void note_use(struct report_handler *r, const struct object *o, const struct report_item *item,
                     const json_t *doc)
{
    static const char *const outcomes[] = {
        [REPORT_ENDED] = "ended", [REPORT_FAILED] = "failed", [REPORT_STOPPED] = "stopped"};
    struct usage_end end = {.outcome = outcomes[item->state],
                            .at_ns = r->c->now_ns,
                            .exit_reported = item->words.exit_reported,
                            .exit = item->words.exit};
    usage_note(&r->c->change, o, doc, &end);
}

/* Handles the end of an instance: the record of a finished task is kept, anything else is deleted and frees its
 * resources. */
static void instance_ended(struct report_handler *r, const struct object *o, const struct report_item *item)
{
    /* the instance was told to stop */
    bool asked = item->state == REPORT_STOPPED || o->instance->state == BERTH_STOPPING;
    if (asked)
        add_report_event(r, o, "Stopped", item);
    else if (item->state == REPORT_FAILED || (item->error && *item->error))
        add_report_event(r, o, "Failed", item);
    else if (item->state == REPORT_ENDED)
        add_report_event(r, o, "Ended", item);
    bool final = o->instance->failed; /* stopped at its time limit */
    if (!asked)
        final = end_of_run(r, o, item);
    CLEANUP(json) json_t *was = object_doc(o);
    CLEANUP(json) json_t *doc = json_deep_copy(was);
    report_usage(r, o, item, doc);
    cumulative_use_note(r->c, r->node, was, doc);
    note_use(r, o, item, doc);
    last_end_note(r->c, o, item);
    if (final) {
        instance_details_put(doc, &item->words);
        const char *said = json_string_value(json_object_get(doc, "error"));
        job_note_task_failed(&r->c->change, o, doc, o->instance->outcome ? o->instance->outcome : failure_outcome(item),
                             o->instance->failed && said ? said : failure_text(r, item), r->c->now_ns);
    } else if (!PLANTED(REPORT_KEEPS_FAILED))
        change_delete(&r->c->change, KIND_INSTANCE, o->id);
}

/* ---- further details -------------------------------------------------------------------------------------------- */

/* Steps of one percent suffice, because each written step is a new revision. */
static bool progress_differs(const json_t *doc, int32_t progress)
{
    enum { STEP = 10, WHOLE = 1000 };
    const json_t *known = json_object_get(doc, "progress");
    json_int_t was = json_integer_value(known), apart = progress > was ? progress - was : was - progress;
    return !known || apart >= STEP || (progress == WHOLE && was != WHOLE);
}

/* A report describes an instance completely: what it does not mention is removed. Only the progress stays. */
static void report_words(const struct report_item *item, json_t *doc)
{
    static const char *const now[] = {"note", "unenforced", "over", "foreign_port"};
    struct instance_details words = item->words;
    if (words.progress_reported && !progress_differs(doc, words.progress))
        words.progress_reported = false;
    for (size_t i = 0; i < sizeof now / sizeof *now; i++)
        (void)json_object_del(doc, now[i]);
    instance_details_put(doc, &words);
}

/* Returns the workload whose block contains the port, if the node has an instance of it; NULL: none. */
static const struct object *port_holder(const struct report_handler *r, int32_t port)
{
    static const enum kind holders[] = {KIND_APP, KIND_JOB, KIND_VM};
    int32_t index = port < PORT_BASE ? -1 : (port - PORT_BASE) / PORT_BLOCK;
    for (size_t k = 0; index >= 0 && k < sizeof holders / sizeof *holders; k++) {
        size_t len;
        const struct object *const *list = state_list(r->c->state, holders[k], &len);
        for (size_t i = 0; i < len; i++) {
            const struct work_view *w = list[i]->work;
            for (size_t j = 0; w->port_index == index && j < w->instances_len; j++)
                if (strcmp(w->instances[j]->instance->node, r->node) == 0)
                    return list[i];
        }
    }
    return NULL;
}

/* Notifies both workloads. Neither learns which the other one is: they may belong to different tenants. */
static void add_foreign_port_events(struct report_handler *r, const struct object *o, int32_t port)
{
    const struct object *works[] = {state_find_work(r->c->state, o->instance->workload), port_holder(r, port)};
    const char *const texts[] = {
        arena_fmt(&r->c->arena, "instance %s on %s claims port %d, which is reserved for another app", o->id, r->node,
                  port),
        arena_fmt(&r->c->arena, "another workload on %s claims port %d, which is reserved for this one", r->node, port),
    };
    for (size_t i = 0; i < 2; i++)
        if (works[i] && works[0] != works[1])
            events_later(r->c, &(struct object_event){.type = "PortConflict",
                                                      .kind = works[i]->kind,
                                                      .id = works[i]->id,
                                                      .owner = works[i]->owner,
                                                      .group = works[i]->group,
                                                      .message = texts[i]});
}

static enum berth_state reported_state(enum report_state said)
{
    switch (said) {
    case REPORT_STARTING: return BERTH_STARTING;
    case REPORT_RUNNING: return BERTH_RUNNING;
    case REPORT_STOPPING: return BERTH_STOPPING;
    default: return BERTH_ENDED;
    }
}

static void report_state(struct report_handler *r, const struct object *o, const struct report_item *item, json_t *doc)
{
    enum berth_state from = o->instance->state, to = reported_state(item->state);
    if (!instance_transition_ok(from, to)) /* told to stop, and still running: no news */
        to = from;
    if (to != from)
        set_since(r, doc, berth_state_name(to));
    if (to == BERTH_RUNNING && !o->instance->started_ns)
        (void)json_object_set(doc, "started", json_object_get(doc, "since"));
    (void)json_object_set_new(doc, "ready", json_boolean(to == BERTH_RUNNING && item->ready));
    /* An instance that was ready before does not end the failure pause of the workload. */
    if ((to == BERTH_RUNNING && item->ready && !o->instance->ready) || to == BERTH_ENDED)
        note_health(r, o->instance->workload);
    if (item->error && *item->error)
        (void)json_object_set_new(doc, "error", json_string(item->error));
    else if (to == BERTH_RUNNING)
        (void)json_object_del(doc, "error");
}

static int report_item(struct report_handler *r, const struct report_item *item)
{
    char number[24];
    const struct object *o = state_find(r->c->state, KIND_INSTANCE, str_u64(item->id, number));
    bool finished = item->state >= REPORT_ENDED;
    if (!o || (strcmp(o->instance->node, r->node) != 0 && !PLANTED(REPORT_FOREIGN)) ||
        o->instance->state == BERTH_RESERVED || (o->instance->state == BERTH_ENDED && !finished)) {
        (void)json_array_append_new(r->unknown, json_integer((json_int_t)item->id));
        return 0;
    }
    if (o->instance->state == BERTH_ENDED)
        return 0;
    CLEANUP(json) json_t *was = object_doc(o);
    CLEANUP(json) json_t *doc = json_deep_copy(was);
    uint64_t epoch = (uint64_t)json_integer_value(json_object_get(was, "epoch"));
    if (epoch == r->said.epoch && o->instance->report_seq >= r->said.seq)
        return refuse_stale(r, "report", o->instance->report_seq);

    const struct object *work = state_find_work(r->c->state, o->instance->workload);
    bool done = item->state == REPORT_ENDED && work && work->kind == KIND_JOB;
    if (finished && !done) {
        instance_ended(r, o, item);
        return 0;
    }
    report_state(r, o, item, doc);
    report_ports(item, doc);
    report_usage(r, o, item, doc);
    cumulative_use_note(r->c, r->node, was, doc);
    report_words(item, doc);
    int32_t port = item->words.foreign_port;
    if (port && json_integer_value(json_object_get(was, "foreign_port")) != port)
        add_foreign_port_events(r, o, port);
    if (finished)
        note_use(r, o, item, doc);
    if (json_equal(was, doc))
        return 0;
    (void)json_object_set_new(doc, "epoch", json_integer((json_int_t)r->said.epoch));
    (void)json_object_set_new(doc, "seq", json_integer((json_int_t)r->said.seq));
    change_put(&r->c->change, KIND_INSTANCE, o->id, take_ptr(&doc));
    return 0;
}

/* ---- the node --------------------------------------------------------------------------------------------------- */

/* A lost node returns to its previous state; a joining node becomes ready unless an OpTask has to be done first. */
static void report_node(struct report_handler *r, const json_t *present)
{
    uint64_t epoch = (uint64_t)json_integer_value(json_object_get(present, "epoch"));
    const char *state = json_string_value(json_object_get(present, "state"));
    const char *was = json_string_value(json_object_get(present, "was"));
    enum berth_node_state now = BERTH_NODE_READY, back = BERTH_NODE_READY;
    if (state)
        (void)node_state_find(state, &now);
    if (was)
        (void)node_state_find(was, &back);
    bool waits = opsteps_block_join(r->c->state, r->node);
    if (back == BERTH_NODE_LOST || (back == BERTH_NODE_JOINING && !waits))
        back = BERTH_NODE_READY;
    bool returns = now == BERTH_NODE_LOST || (now == BERTH_NODE_JOINING && !waits);
    if (epoch == r->said.epoch && !returns)
        return;
    json_t *doc = change_edit(&r->c->change, KIND_NODE, r->node);
    if (!PLANTED(REPORT_EPOCH) || !epoch)
        (void)json_object_set_new(doc, "epoch", json_integer((json_int_t)r->said.epoch));
    (void)json_object_set_new(doc, "seq", json_integer((json_int_t)r->said.seq));
    if (returns) {
        set_since(r, doc, berth_node_state_name(back));
        (void)json_object_del(doc, "was");
    }
}

static void answer(struct report_handler *r, const struct object *node)
{
    struct control *control = r->c->control;
    r->c->answer.body =
        json_pack("{s:s, s:O, s:I}", "config", node_statuses_config(control->lives, r->c->state, node)->hash, "unknown",
                  r->unknown, "lease_ns", (json_int_t)control->in_force.lease_ns);
}

struct written_report {
    const char *node;
    uint64_t epoch, seq;
};

static void report_durable(struct request *c, void *ctx)
{
    const struct written_report *w = ctx;
    uint64_t epoch = 0, seq = 0;
    bool later = control_last_report(c->control, w->node, &epoch, &seq) &&
                 (epoch > w->epoch || (epoch == w->epoch && seq >= w->seq));
    if (!later) /* a later report may have been handled first */
        control_note_report(c->control, w->node, w->epoch, w->seq);
}

/* Renews the lease. A report that writes is recorded with the previous sequence number until its commit is durable,
 * because it is handled again after a conflict. */
static void lease_renew(struct report_handler *r)
{
    struct request *c = r->c;
    bool writes = !change_empty(&c->change);
    if (c->dry_run)
        return;
    control_note_report(c->control, r->node, r->said.epoch, writes ? r->said.seq - 1 : r->said.seq);
    node_statuses_report(c->control->lives, state_find(c->state, KIND_NODE, r->node), &r->said, c->now_ns);
    metric_add(c->control->metrics, METRIC_REPORTS, 0, 1);
    if (!writes)
        return;
    struct written_report w = {r->node, r->said.epoch, r->said.seq};
    c->durable = report_durable;
    c->durable_ctx = arena_dup(&c->arena, &w, sizeof w);
}

int node_report(struct request *c)
{
    struct report_handler r = {.c = c};
    int rc = crud_id(c, KIND_NODE, c->args[0], &r.node);
    if (rc < 0 || !state_find(c->state, KIND_NODE, r.node) || !permit(&c->caller, PERMIT_REPORT, r.node, ""))
        return crud_not_found(c, KIND_NODE, c->args[0]);
    rc = report_doc_read(c->body, &c->arena, &r.said, &c->err);
    if (rc < 0)
        return rc;
    const json_t *node = change_read(&c->change, KIND_NODE, r.node);
    rc = check_order(&r, node);
    if (rc < 0)
        return rc;
    crud_name(c, KIND_NODE, r.node, "report");
    CLEANUP(json) json_t *unknown = json_array();
    r.unknown = unknown;
    for (size_t i = 0; rc == 0 && i < r.said.items_len; i++)
        rc = report_item(&r, &r.said.items[i]);
    if (rc < 0)
        return rc;
    report_node(&r, node);
    if (r.said.probed)
        rc = node_probed(c, r.node, r.said.probed);
    if (rc < 0)
        return rc;
    answer(&r, state_find(c->state, KIND_NODE, r.node));
    lease_renew(&r);
    return 0;
}
