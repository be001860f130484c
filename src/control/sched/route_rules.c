/* route_rules.c - rules that choose a job's queue: at submission, and later, when the job has waited or its owner has
 * used much. There is one ordered list (KIND_SETTING "routes"); the first matching rule applies.
 */
#include "control/sched/route_rules.h"

#include <errno.h>
#include <string.h>

#include "control/control_parts.h"
#include "control/state/commit.h"
#include "control/state/sync.h"
#include "control/system/settings_table.h"
#include "control/tenant/admission.h"
#include "wire/text/document.h"
#include "wire/text/words.h"

#define SECOND_NS INT64_C(1000000000)
enum { ROUTE_EVERY_S = 10, JOBS_CHECKED_MAX = 20000, READS_MAX = 500, MOVES_MAX = 100 };

static bool moves(const struct route_rule *r)
{
    return r->waited_ns || r->used >= 0;
}

static bool is(const char *wanted, const char *found)
{
    return !wanted || !*wanted || strcmp(wanted, found ? found : "") == 0;
}

/* ---- match a rule ----------------------------------------------------------------------------------------------- */

/* Returns the core hours that the user has consumed lately, decayed as for fair shares. */
static int64_t used_hours(const struct state *s, const char *owner, int64_t now_ns)
{
    char key[OBJECT_KEY_MAX];
    struct arena arena;
    struct doc_meta meta;
    struct berth_fact fact = {.kind = BERTH_FACT_USAGE, .key = key};
    int64_t hours = 0;
    (void)snprintf(key, sizeof key, "user/%s", owner);
    arena_init(&arena);
    const struct object *o = state_find(s, KIND_FACT, fact_doc_id(&fact, &arena));
    CLEANUP(json) json_t *doc = o ? object_doc(o) : NULL;
    if (doc && fact_doc_read(doc, &arena, &meta, &fact, NULL) == 0)
        hours = berth_usage_decay(fact.value, fact.at_ns, now_ns,
                                  system_setting_number(s, SETTING_HALF_LIFE_S) * SECOND_NS) /
                (1000 * 3600);
    arena_done(&arena);
    return hours;
}

/* Matches the conditions that the job's view answers; the others need the document. */
static bool matches_view(const struct state *s, const struct route_rule *r, const struct object *job, int64_t now_ns)
{
    const struct work_view *v = job->work;
    return is(r->user, v->owner) && is(r->group, v->group) && is(r->queue, v->queue) &&
           (r->pods_min < 0 || v->replicas >= r->pods_min) && (r->pods_max < 0 || v->replicas <= r->pods_max) &&
           (!r->waited_ns || now_ns - v->created_ns >= r->waited_ns) &&
           (r->used < 0 || used_hours(s, v->owner, now_ns) >= r->used);
}

static bool matches_doc(const struct route_rule *r, const struct work_doc *d, const char *queue)
{
    const struct job_terms *j = &d->job;
    int64_t pods = d->workload.replicas, gpus = pods * d->workload.shape.gpu.count;
    return is(r->user, d->owner) && is(r->group, d->group) && is(r->queue, queue) && is(r->class_name, j->class_name) &&
           is(r->type, j->type) && is(r->network, j->network) && (r->pods_min < 0 || pods >= r->pods_min) &&
           (r->pods_max < 0 || pods <= r->pods_max) && (r->gpus_min < 0 || gpus >= r->gpus_min) &&
           (r->gpus_max < 0 || gpus <= r->gpus_max);
}

static bool routes_read(const struct state *s, struct arena *arena, json_t **ret_doc, struct routes_doc *ret)
{
    const struct object *o = state_find(s, KIND_SETTING, ROUTES_ID);
    *ret_doc = o ? object_doc(o) : NULL;
    return *ret_doc && routes_doc_read(*ret_doc, arena, ret, NULL) == 0;
}

/* ---- at submission ---------------------------------------------------------------------------------------------- */

int route_new(struct request *c, const char *id, json_t *doc)
{
    struct routes_doc routes;
    struct work_doc d;
    const json_t *stored = change_read(&c->change, KIND_SETTING, ROUTES_ID);
    if (!stored || json_object_get(doc, "queue") || routes_doc_read(stored, &c->arena, &routes, NULL) < 0)
        return 0;
    CLEANUP(json) json_t *draft = json_copy(doc);
    (void)json_object_set_new(draft, "id", json_string(id));
    if (work_doc_read(draft, &c->arena, &d, NULL) < 0)
        return 0; /* the submission check reports the error */
    for (size_t i = 0; i < routes.rules_len; i++) {
        const struct route_rule *r = &routes.rules[i];
        if (moves(r) || !matches_doc(r, &d, "") || !queue_open(c->state, r->to, d.owner, d.group))
            continue;
        (void)json_object_set_new(doc, "queue", json_string(r->to));
        return 0;
    }
    return 0;
}

/* ---- move waiting jobs ------------------------------------------------------------------------------------------ */

static bool waits(const struct object *job)
{
    const struct work_view *v = job->work;
    return v->instances_len == 0 && !v->held && !v->cancelled && !v->failed && !v->ended;
}

/* Returns the queue to which a waiting job moves; NULL: the job stays. */
static const char *target(const struct state *s, const struct routes_doc *routes, const struct object *job,
                          int64_t now_ns, size_t *reads)
{
    CLEANUP(json) json_t *doc = NULL;
    struct arena arena;
    struct work_doc d;
    const char *to = NULL;
    arena_init(&arena);
    for (size_t i = 0; i < routes->rules_len && !to; i++) {
        const struct route_rule *r = &routes->rules[i];
        if (!moves(r))
            continue;
        *reads += r->used >= 0;
        if (!matches_view(s, r, job, now_ns))
            continue;
        if (!doc) {
            ++*reads;
            doc = object_doc(job);
            if (work_doc_read(doc, &arena, &d, NULL) < 0)
                break;
        }
        if (matches_doc(r, &d, job->work->queue) && queue_open(s, r->to, job->owner, job->group))
            to = r->to;
    }
    arena_done(&arena);
    return to && strcmp(to, job->work->queue) != 0 ? to : NULL;
}

static void move_committed(void *ctx, const struct store_result *result)
{
    (void)ctx;
    (void)result; /* after a conflict the next periodic step moves the job */
}

static void event_add_moved(struct control *c, const struct object *job, const char *to)
{
    CLEANUP(str) struct str text = {0};
    str_addf(&text, "moved from queue %s to %s by a routing rule (/v1/routes)", job->work->queue, to);
    struct object_event event = {.type = "Moved",
                                 .kind = KIND_JOB,
                                 .id = job->id,
                                 .owner = job->owner,
                                 .group = job->group,
                                 .message = str_text(&text)};
    events_add(c->events, c->now_ns, &event);
}

static void move_waiting_jobs(struct control *c, const struct routes_doc *routes, struct change *change)
{
    size_t len, done = 0, reads = 0, looked = 0;
    const struct object *const *jobs = state_list(c->state, KIND_JOB, &len);
    for (; looked < len && looked < JOBS_CHECKED_MAX && reads < READS_MAX && done < MOVES_MAX; looked++) {
        const struct object *job = jobs[(c->routed + looked) % len];
        const char *to = waits(job) ? target(c->state, routes, job, c->now_ns, &reads) : NULL;
        if (!to)
            continue;
        (void)change_guard(change, KIND_QUEUE, to);
        (void)json_object_set_new(change_edit(change, KIND_JOB, job->id), "queue", json_string(to));
        event_add_moved(c, job, to);
        done++;
    }
    c->routed = len ? (c->routed + looked) % len : 0;
}

void routes_step(struct control *c, int64_t steady_ns)
{
    struct arena arena;
    struct routes_doc routes;
    struct berth_err err;
    bool any = false;
    if (steady_ns < c->route_next_ns)
        return;
    c->route_next_ns = steady_ns + ROUTE_EVERY_S * SECOND_NS;
    arena_init(&arena);
    CLEANUP(json) json_t *doc = NULL;
    if (routes_read(c->state, &arena, &doc, &routes))
        for (size_t i = 0; i < routes.rules_len; i++)
            any = any || moves(&routes.rules[i]);
    if (any) {
        struct change change;
        struct commit_note note = {.who = "berth", .verb = "route"};
        change_init(&change, c->state, &arena);
        move_waiting_jobs(c, &routes, &change);
        if (commit_submit(c, &change, &note, move_committed, NULL, &err) < 0)
            log_write(c->env.log, c->now_ns, LEVEL_WARN, "route.failed", LOG_TEXT("text", err.text));
        change_done(&change);
    }
    arena_done(&arena);
}

/* ---- edit the rules --------------------------------------------------------------------------------------------- */

static const char *queue_candidate(const void *ctx, size_t i)
{
    size_t len;
    const struct object *const *queues = state_list(ctx, KIND_QUEUE, &len);
    return i < len ? queues[i]->id : NULL;
}

int queue_check_exists(struct request *c, const char *key, const char *queue)
{
    char quoted[QUOTE_MAX];
    if (change_guard(&c->change, KIND_QUEUE, queue) || strcmp(queue, QUEUE_DEFAULT) == 0)
        return 0;
    const char *guess = suggest(queue, queue_candidate, c->state);
    return err_set(&c->err, EINVAL, "%s: there is no queue %s%s%s%s see 'berth queues'", key, quote(queue, quoted),
                   guess ? "; did you mean " : "", guess ? guess : "", guess ? "?" : ";");
}

/* Returns whether a job that leaves a queue by a rule could come back to it. From each reached queue, follows every
 * rule that moves jobs out of it, up to a rule that keeps all jobs in the queue. */
static bool has_cycle(const struct routes_doc *d, const char *from)
{
    const char *reached[ROUTES_MAX + 1] = {from};
    size_t len = 1;
    for (size_t at = 0; at < len; at++)
        for (size_t i = 0; i < d->rules_len; i++) {
            const struct route_rule *r = &d->rules[i];
            bool everywhere = !r->queue || !*r->queue, known = false;
            if (!moves(r) || !is(r->queue, reached[at]))
                continue;
            if (strcmp(r->to, reached[at]) == 0 && everywhere)
                break;
            if (strcmp(r->to, reached[at]) == 0)
                continue;
            if (strcmp(r->to, from) == 0)
                return true;
            for (size_t k = 0; k < len; k++)
                known = known || strcmp(reached[k], r->to) == 0;
            if (!known)
                reached[len++] = r->to;
        }
    return false;
}

static int rules_check(struct request *c, const struct routes_doc *d)
{
    for (size_t i = 0; i < d->rules_len; i++) {
        const struct route_rule *r = &d->rules[i];
        int rc = queue_check_exists(c, "queue", r->to);
        if (rc == 0 && r->queue && *r->queue)
            rc = queue_check_exists(c, "when: queue", r->queue);
        if (rc == 0 && r->queue && *r->queue && !moves(r))
            rc = err_set(&c->err, EINVAL,
                         "when: queue: rules do not apply to jobs that name their queue; add waited or used to "
                         "move such jobs later");
        if (rc == 0 && moves(r) && has_cycle(d, r->to))
            rc = err_set(&c->err, EINVAL, "queue: the rules form a loop from %s back to it", r->to);
        if (rc < 0)
            return err_prefix(&c->err, "rules[%zu]", i);
    }
    return 0;
}

bool routes_use_queue(struct request *c, const char *queue)
{
    struct routes_doc d;
    const json_t *doc = change_read(&c->change, KIND_SETTING, ROUTES_ID);
    if (!doc || routes_doc_read(doc, &c->arena, &d, NULL) < 0)
        return false;
    for (size_t i = 0; i < d.rules_len; i++)
        if (strcmp(d.rules[i].to, queue) == 0 || (d.rules[i].queue && strcmp(d.rules[i].queue, queue) == 0))
            return true;
    return false;
}

int routes_get(struct request *c)
{
    const json_t *doc = change_read(&c->change, KIND_SETTING, ROUTES_ID);
    json_t *rules = json_object_get(doc, "rules");
    c->answer.body = json_pack("{s:o}", "rules", rules ? json_deep_copy(rules) : json_array());
    c->answer.revision = state_revision(c->state);
    return 0;
}

int routes_put(struct request *c)
{
    struct routes_doc d;
    CLEANUP(json) json_t *next = json_deep_copy(c->body);
    if (!permit(&c->caller, PERMIT_SYSTEM, "", ""))
        return err_set(&c->err, EACCES, "role %s may not change the system", c->caller.role);
    doc_strip(next);
    int rc = routes_doc_read(next, &c->arena, &d, &c->err);
    if (rc == 0)
        rc = rules_check(c, &d);
    if (rc < 0)
        return rc;
    c->change.verb = "system.routes";
    c->change.subject = "settings/" ROUTES_ID;
    (void)change_read(&c->change, KIND_SETTING, ROUTES_ID);
    c->answer.body = json_deep_copy(next);
    change_put(&c->change, KIND_SETTING, ROUTES_ID, take_ptr(&next));
    return 0;
}
