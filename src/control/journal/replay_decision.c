#include "control/journal/replay_decision.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include "control/control_parts.h"
#include "control/journal/replay.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"

enum { ACTIONS_SHOWN_MAX = 100, ACTIONS_COMPARED_MAX = 2000 };
#define SECOND_NS INT64_C(1000000000)

/* Owned by the worker while it runs; the loop may only set `enough`. */
struct redecision {
    struct control *control;
    char *dir;               /* folder of the segments; NULL: none */
    struct request *request; /* the waiting request; NULL: none */
    bool running;
    atomic_bool stop_requested;
    uint64_t record, trimmed, upto;
    int64_t moment_ns, start_ns, took_ns;
    json_t *differences;
    struct replay_result result;
    struct berth_err err;
    int rc;
};

struct redecision *redecision_new(struct control *control, const char *dir)
{
    struct redecision *r = mem_zalloc(sizeof *r);
    r->control = control;
    r->dir = dir ? mem_strdup(dir) : NULL;
    return r;
}

void redecision_free(struct redecision *r)
{
    if (!r)
        return;
    json_decref(r->differences);
    mem_free(r->dir);
    mem_free(r);
}

void redecision_stop(struct redecision *r)
{
    struct request *c = take_ptr(&r->request);
    atomic_store(&r->stop_requested, true);
    if (!c)
        return;
    (void)err_set(&c->err, ENOSPC, "berthd is stopping; try again soon");
    request_answer(c, -ENOSPC);
}

/* ---- a record --------------------------------------------------------------------------------------------------- */

struct record_search {
    uint64_t seq, revision;
    json_t *record;
};

static int collect_record(void *ctx, const struct store_record *r)
{
    struct record_search *l = ctx;
    if (r->seq == l->seq) {
        l->record = json_loadb(r->record.at, r->record.len, 0, NULL);
        l->revision = r->revision;
    }
    return 1;
}

/* Returns a new reference to the record that the path names, or NULL with an error. */
static json_t *record_of(struct request *c, struct record_search *l)
{
    struct store *store = control_store(c->control);
    int64_t seq;
    if (!str_parse_i64(c->args[0], &seq) || seq < 1) {
        (void)err_set(&c->err, EINVAL, "expected the number of a record, as GET /v1/audit lists them");
        return NULL;
    }
    *l = (struct record_search){.seq = (uint64_t)seq};
    if (l->seq <= store_log_trimmed(store)) {
        (void)err_set(&c->err, ESTALE,
                      "record %" PRIu64
                      " is in the journal's segments; on the host of berthd, use: berth journal show --data DIR",
                      l->seq);
        return NULL;
    }
    if (l->seq <= store_log_last(store) && store_log(store, l->seq, collect_record, l, &c->err) < 0)
        return NULL;
    if (!l->record)
        (void)err_set(&c->err, ENOENT, "no record %" PRIu64 "; the last one is %" PRIu64, l->seq,
                      store_log_last(store));
    return l->record;
}

int audit_one(struct request *c)
{
    struct record_search l;
    json_t *record = record_of(c, &l);
    char at[TIMESTAMP_MAX];
    if (!record)
        return -c->err.code;
    json_t *keys = json_array();
    const json_t *changes = json_object_get(record, "changes");
    for (size_t i = 0; i < json_array_size(changes); i++)
        (void)json_array_append(keys, json_array_get(json_array_get(changes, i), 0));
    (void)json_object_set_new(record, "changes", keys);
    (void)json_object_set_new(record, "seq", json_integer((json_int_t)l.seq));
    (void)json_object_set_new(record, "revision", json_integer((json_int_t)l.revision));
    (void)json_object_set_new(record, "at",
                              json_string(timestamp_text(json_integer_value(json_object_get(record, "at")), at)));
    c->answer.body = record;
    return 0;
}

/* ---- on the worker ---------------------------------------------------------------------------------------------- */

static bool stop_requested(void *ctx)
{
    struct redecision *r = ctx;
    const struct control_env *env = &r->control->env;
    return atomic_load(&r->stop_requested) || env->steady_ns(env->ctx) - r->start_ns > REDECIDE_S * SECOND_NS;
}

/* Returns the actions of `list` that `other` lacks. Each one is searched for from the beginning of `other`. */
static json_t *only_in(const json_t *list, const json_t *other)
{
    json_t *only = json_array();
    size_t len = json_array_size(list) < ACTIONS_COMPARED_MAX ? json_array_size(list) : ACTIONS_COMPARED_MAX;
    for (size_t i = 0; i < len && json_array_size(only) < ACTIONS_SHOWN_MAX; i++)
        if (!replay_action_in(other, json_array_get(list, i)))
            (void)json_array_append(only, json_array_get(list, i));
    return only;
}

static json_t *hash_json(uint64_t hash)
{
    return json_sprintf("%016" PRIx64, hash);
}

static void differs(void *ctx, const struct replay_difference *d)
{
    struct redecision *r = ctx;
    json_t *told = json_pack("{s:s, s:o, s:o, s:s}", "what", d->what, "recorded", hash_json(d->recorded), "replayed",
                             hash_json(d->replayed), "input", d->input);
    if (d->actions) {
        (void)json_object_set_new(told, "only_recorded", only_in(d->actions, d->actions_replayed));
        (void)json_object_set_new(told, "only_replayed", only_in(d->actions_replayed, d->actions));
    }
    (void)json_array_append_new(r->differences, told);
}

static void work(void *ctx)
{
    struct redecision *r = ctx;
    CLEANUP(journal) struct journal *journal = NULL;
    struct replay_options options = {
        .record = r->record, .from_ns = r->moment_ns, .stop = stop_requested, .differs = differs, .ctx = r};
    r->rc = journal_concurrent(control_store(r->control), r->dir, r->trimmed, r->upto, &journal, &r->err);
    if (r->rc == 0)
        r->rc = replay_journal(journal, &options, &r->result, &r->err);
    r->took_ns = r->control->env.steady_ns(r->control->env.ctx) - r->start_ns;
}

/* ---- the request ------------------------------------------------------------------------------------------------ */

/* Fills in the answer of the waiting request. */
static int outcome(struct redecision *r, struct request *c)
{
    json_t *differences = take_ptr(&r->differences);
    bool same = r->result.different == 0;
    if (r->rc == 0 && r->result.cycles) {
        c->answer.body = json_pack("{s:I, s:b, s:o, s:I, s:f}", "record", (json_int_t)r->record, "same", (int)same,
                                   "differences", differences, "changes", (json_int_t)r->result.changes, "seconds",
                                   (double)r->took_ns / (double)SECOND_NS);
        return 0;
    }
    json_decref(differences);
    if (r->rc == -ETIME)
        return err_set(&c->err, EIO,
                       "the decision could not be repeated within %d seconds; on the host of berthd, use: berth replay",
                       REDECIDE_S);
    if (r->rc < 0)
        return err_set(&c->err, EIO, "%s", r->err.text);
    return err_set(&c->err, ESTALE, "the state on which this decision is based is no longer in the journal");
}

static void on_redecision_done(void *ctx)
{
    struct redecision *r = ctx;
    struct request *c = take_ptr(&r->request);
    r->running = false;
    if (c)
        request_answer(c, outcome(r, c));
}

int audit_replay(struct request *c)
{
    struct redecision *r = c->control->redecide;
    const struct control_env *env = &c->control->env;
    struct record_search l;
    if (r->running)
        return err_set(&c->err, EDQUOT, "another decision is being repeated; try again later");
    CLEANUP(json) json_t *record = record_of(c, &l);
    const json_t *cycle = json_object_get(record, "cycle");
    if (!record)
        return -c->err.code;
    if (!cycle)
        return err_set(&c->err, EINVAL, "record %" PRIu64 " is not a decision", l.seq);
    json_decref(r->differences);
    *r = (struct redecision){.control = r->control,
                             .dir = r->dir,
                             .running = true,
                             .record = l.seq,
                             .trimmed = store_log_trimmed(control_store(c->control)),
                             .upto = store_log_last(control_store(c->control)),
                             .moment_ns = json_integer_value(json_object_get(cycle, "now")),
                             .start_ns = env->steady_ns(env->ctx),
                             .differences = json_array()};
    (env->run_slow ? env->run_slow : env->run)(env->ctx, work, on_redecision_done, r);
    if (!r->running) /* the environment ran the work synchronously */
        return outcome(r, c);
    r->request = c;
    c->later = true;
    return 0;
}
