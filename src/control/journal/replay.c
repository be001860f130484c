#include "control/journal/replay.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/vec.h"
#include "control/journal/batch_record.h"
#include "control/journal/replay_input.h"
#include "control/sched/plan_policy.h"
#include "journal/docset.h"
#include "journal/record.h"
#include "journal/scan.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"

enum { BATCHES_AFTER = 1000 }; /* records to read after a decision's record, in search of its other commit batches */

/* A recorded decision. */
struct recorded_cycle {
    uint64_t n, revision, seed, state, plan;
    uint64_t record, record_last; /* records of its first and of its last known commit batch */
    int64_t now_ns;
    char *profile;
    json_t *assumed; /* NULL: no assumptions */
    json_t *kinds;   /* hashes by kind; NULL: not recorded */
    json_t *actions; /* of all its commit batches; NULL: not recorded */
};

struct replay {
    const struct replay_options *options;
    struct berth_err *err;
    struct replay_result result;
    VEC(struct recorded_cycle) cycles; /* sorted by revision */
    size_t next;                       /* next decision to repeat */
    struct state *state;               /* NULL: unavailable, or its documents are still being read */
    struct docset base;                /* documents that the state starts from */
    uint64_t base_revision;
    bool known; /* the state is available, or will be once `base` is complete */
    uint64_t to_seq;
    struct replay_touches touches;
};

static uint64_t hex_member(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? strtoull(text, NULL, 16) : 0;
}

static uint64_t number_member(const json_t *object, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(object, key));
}

static int stopped(struct replay *r)
{
    if (!r->options->stop || !r->options->stop(r->options->ctx))
        return 0;
    return err_set(r->err, ETIME, "repeating the decision took too long");
}

static int record_read(struct replay *r, const struct store_record *record, json_t **ret)
{
    json_error_t where;
    json_t *doc = json_loadb(record->record.at, record->record.len, 0, &where);
    if (!doc)
        return err_set(r->err, EBADMSG, "record %" PRIu64 ": %s", record->seq, where.text);
    if (json_integer_value(json_object_get(doc, "j")) > JOURNAL_VERSION) {
        json_decref(doc);
        return err_set(r->err, ENOTSUP, "record %" PRIu64 " was written by a newer version of the journal; upgrade",
                       record->seq);
    }
    *ret = doc;
    return 0;
}

/* ---- first pass: collects the decisions ------------------------------------------------------------------------- */

/* Compares more than the number, because each daemon starts the numbers of cycles anew. */
static bool same_cycle(const struct recorded_cycle *a, const json_t *b)
{
    return a->n == number_member(b, "n") && a->revision == number_member(b, "revision") &&
           a->plan == hex_member(b, "plan");
}

static void cycle_free(struct recorded_cycle *c)
{
    mem_free(c->profile);
    json_decref(c->assumed);
    json_decref(c->kinds);
    json_decref(c->actions);
}

static void collect_cycle(struct replay *r, const json_t *c, uint64_t record)
{
    if (r->cycles.len == 0 || !same_cycle(&r->cycles.at[r->cycles.len - 1], c)) {
        const char *profile = json_string_value(json_object_get(c, "profile"));
        struct recorded_cycle cycle = {
            .n = number_member(c, "n"),
            .revision = number_member(c, "revision"),
            .seed = number_member(c, "seed"),
            .state = hex_member(c, "state"),
            .plan = hex_member(c, "plan"),
            .record = record,
            .now_ns = json_integer_value(json_object_get(c, "now")),
            .profile = mem_strdup(profile ? profile : "default"),
            .assumed = json_incref(json_object_get(c, "assumed")),
            .kinds = json_incref(json_object_get(c, "kinds")),
        };
        vec_push(&r->cycles, cycle);
    }
    struct recorded_cycle *cycle = &r->cycles.at[r->cycles.len - 1];
    cycle->record_last = record;
    json_t *actions = json_object_get(c, "actions");
    if (!cycle->actions)
        cycle->actions = json_incref(actions);
    else if (actions)
        (void)json_array_extend(cycle->actions, actions);
}

static int collect(void *ctx, const struct store_record *record)
{
    struct replay *r = ctx;
    struct bytes ignored;
    int rc = stopped(r);
    if (rc < 0)
        return rc;
    r->result.records++;
    r->to_seq = record->seq;
    if (journal_kind_has_prefix(record->record, JOURNAL_KUBE))
        return err_set(r->err, EBADMSG, "this is a journal of berth-kube: use 'berth-kube replay'");
    if (!scan_member(record->record, "cycle", &ignored))
        return 0;
    json_t *doc = NULL;
    rc = record_read(r, record, &doc);
    if (rc == 0)
        collect_cycle(r, json_object_get(doc, "cycle"), record->seq);
    json_decref(doc);
    return rc;
}

static int collect_start(void *ctx, const struct journal_break *b)
{
    struct replay *r = ctx;
    r->result.gaps += b->before != 0 && b->first != b->before + 1;
    return 0;
}

/* ---- second pass: repeats the decisions ------------------------------------------------------------------------- */

/* Applies a recorded assumption, which was uncommitted when the plan was made: [op, id, now, document or null]. */
static void assume(struct replay *r, const json_t *item, struct arena *arena)
{
    const char *op = json_string_value(json_array_get(item, 0));
    const json_t *doc = json_array_get(item, 3);
    int64_t now_ns = json_integer_value(json_array_get(item, 2));
    char text[24];
    if (strcmp(op, "fact") == 0) {
        struct doc_meta meta;
        struct berth_fact fact;
        if (json_is_object(doc) && fact_doc_read(doc, arena, &meta, &fact, NULL) == 0)
            (void)state_assume_fact(r->state, &fact, NULL);
        return;
    }
    struct instance_doc d;
    if (json_is_object(doc)) {
        if (instance_doc_read(doc, arena, &d, NULL) == 0)
            (void)state_assume(r->state, &d.instance, NULL);
        return;
    }
    uint64_t id = (uint64_t)json_integer_value(json_array_get(item, 1));
    const struct object *o = state_find(r->state, KIND_INSTANCE, str_u64(id, text));
    bool gone = strcmp(op, berth_op_name(BERTH_LOSE)) == 0 ||
                (strcmp(op, berth_op_name(BERTH_STOP)) == 0 && o && o->instance->state == BERTH_RESERVED);
    if (gone) {
        (void)state_assume_removed(r->state, id, NULL);
        return;
    }
    if (!o || strcmp(op, berth_op_name(BERTH_ADJUST)) == 0)
        return;
    json_t *present = object_doc(o);
    if (instance_doc_read(present, arena, &d, NULL) == 0) {
        d.instance.state = strcmp(op, berth_op_name(BERTH_STOP)) == 0 ? BERTH_STOPPING : BERTH_ASSIGNED;
        d.instance.since_ns = now_ns;
        d.instance.waits_len = 0;
        (void)state_assume(r->state, &d.instance, NULL);
    }
    json_decref(present);
}

static void restore_assumption(struct replay *r, const json_t *item, struct arena *arena)
{
    const json_t *id = json_array_get(item, 1);
    char text[24];
    if (json_is_integer(id)) {
        state_revert(r->state, KIND_INSTANCE, str_u64((uint64_t)json_integer_value(id), text));
        return;
    }
    struct doc_meta meta;
    struct berth_fact fact;
    if (fact_doc_read(json_array_get(item, 3), arena, &meta, &fact, NULL) == 0) {
        fact.over = true;
        (void)state_assume_fact(r->state, &fact, NULL);
    }
    state_revert(r->state, KIND_FACT, json_string_value(id));
}

static void differ(struct replay *r, const struct recorded_cycle *c, struct replay_difference *d)
{
    d->cycle = c->n;
    d->revision = c->revision;
    d->record = c->record;
    d->now_ns = c->now_ns;
    r->result.different++;
    if (r->options->differs)
        r->options->differs(r->options->ctx, d);
}

static void differ_plan(struct replay *r, const struct recorded_cycle *c, const struct berth_plan *plan,
                        const char *input)
{
    CLEANUP(json) json_t *made = batch_actions_of(plan), *none = json_array();
    struct replay_difference d = {.what = "plan",
                                  .recorded = c->plan,
                                  .replayed = berth_plan_hash(plan),
                                  .input = input,
                                  .actions = c->actions ? c->actions : none,
                                  .actions_replayed = made};
    differ(r, c, &d);
}

static int decide(struct replay *r, const struct recorded_cycle *c, struct arena *arena, const char *input)
{
    struct doc_meta meta;
    struct berth_profile own;
    const struct object *stored = state_find(r->state, KIND_PROFILE, c->profile);
    json_t *doc = stored ? object_doc(stored) : NULL;
    struct plan_policy settings;
    plan_policy_read(r->state, &settings);
    struct berth_policy policy = settings.policy;
    policy.profile = berth_profile_find(c->profile);
    if (doc && profile_doc_read(doc, arena, &meta, &own, NULL) == 0)
        policy.profile = &own;
    struct berth_snapshot *snapshot = berth_freeze(state_cluster(r->state), c->now_ns, c->seed);
    struct berth_plan *plan;
    int rc = berth_plan_make(snapshot, &policy, &plan, r->err);
    if (rc == 0) {
        if (berth_plan_hash(plan) != c->plan)
            differ_plan(r, c, plan, input);
        berth_plan_free(plan);
    }
    berth_snapshot_free(snapshot);
    plan_policy_done(&settings);
    json_decref(doc);
    return rc;
}

static bool is_requested(const struct replay *r, const struct recorded_cycle *c)
{
    const struct replay_options *o = r->options;
    if (o->record)
        return c->record <= o->record && o->record <= c->record_last;
    return c->n >= o->from_cycle && (!o->to_cycle || c->n <= o->to_cycle) && c->now_ns >= o->from_ns &&
           (!o->to_ns || c->now_ns <= o->to_ns);
}

static int repeat_decision(struct replay *r, const struct recorded_cycle *c)
{
    if (!is_requested(r, c))
        return 0;
    if (!r->state || c->revision < r->base_revision) {
        r->result.skipped++;
        return 0;
    }
    struct arena arena;
    size_t i;
    json_t *item;
    CLEANUP(str) struct str input = {0};
    uint64_t hash = state_hash(r->state);
    arena_init(&arena);
    replay_inputs_compare(&r->touches, r->state, c->kinds, &input);
    if (hash != c->state) {
        struct replay_difference d = {
            .what = "state", .recorded = c->state, .replayed = hash, .input = str_text(&input)};
        differ(r, c, &d);
    }
    json_array_foreach(c->assumed, i, item) assume(r, item, &arena);
    int rc = decide(r, c, &arena, str_text(&input));
    for (i = json_array_size(c->assumed); i-- > 0;)
        restore_assumption(r, json_array_get(c->assumed, i), &arena);
    r->result.cycles++;
    arena_done(&arena);
    return rc;
}

/* Repeats every decision that was based on an earlier revision, or that was recorded up to a record. */
static int repeat_decisions_before(struct replay *r, uint64_t revision, uint64_t record)
{
    int rc = 0;
    for (; rc == 0 && r->next < r->cycles.len; r->next++) {
        const struct recorded_cycle *c = &r->cycles.at[r->next];
        if (c->revision >= revision && c->record > record)
            break;
        rc = repeat_decision(r, c);
        if (r->options->progress)
            r->options->progress(r->options->ctx, r->next + 1, r->cycles.len);
    }
    return rc;
}

static int change_apply(struct replay *r, const json_t *change, const struct store_record *record)
{
    const char *key = json_string_value(json_array_get(change, 0)), *id;
    const json_t *doc = json_array_get(change, 1);
    enum kind kind = key ? object_key_split(key, &id) : KINDS;
    if (!doc || !kind_journalled(kind))
        return 0;
    char *text = json_is_object(doc) ? json_dumps(doc, JSON_COMPACT) : NULL;
    struct store_event event = {
        .key = key,
        .value = {text, text ? strlen(text) : 0},
        .gone = !text,
        .created = record->revision,
        .revision = record->revision
    };
    int rc = state_apply(r->state, &event, r->err);
    replay_touch(&r->touches, kind, record->seq, key);
    free(text);
    r->result.changes++;
    return rc;
}

/* ---- initial state ---------------------------------------------------------------------------------------------- */

static int base_range(void *ctx, const char *prefix, store_visit *visit, void *visit_ctx, struct berth_err *err)
{
    const struct docset *base = ctx;
    size_t len = strlen(prefix);
    int rc = 0;
    (void)err;
    for (size_t i = 0; rc == 0 && i < base->list.len; i++) {
        const struct docset_document *d = &base->list.at[i];
        if (strncmp(d->key, prefix, len) != 0)
            continue;
        struct store_entry entry = {
            d->key, {d->text, d->len},
             d->revision, d->revision
        };
        rc = visit(visit_ctx, &entry);
    }
    return rc;
}

/* Builds the state once all its documents have been read. */
static int state_begin(struct replay *r)
{
    if (r->state || !r->known)
        return 0;
    docset_sort(&r->base);
    int rc = state_load_from(base_range, &r->base, r->base_revision, &r->state, r->err);
    docset_done(&r->base);
    return rc;
}

static int start(void *ctx, const struct journal_break *b)
{
    struct replay *r = ctx;
    int rc = state_begin(r);
    if (rc == 0 && b->before)
        rc = repeat_decisions_before(r, 0, b->before);
    state_free(r->state);
    r->state = NULL;
    r->known = b->start != JOURNAL_FROM_UNKNOWN;
    r->base_revision = b->revision;
    replay_touches_done(&r->touches);
    return rc;
}

static bool is_document_kept(const char *key)
{
    const char *id;
    return kind_journalled(object_key_split(key, &id));
}

static int document(void *ctx, const char *key, uint64_t revision, struct bytes doc)
{
    struct replay *r = ctx;
    docset_put(&r->base, key, revision, doc);
    if (revision > r->base_revision)
        r->base_revision = revision; /* an export does not contain the revision */
    return 0;
}

static int apply(void *ctx, const struct store_record *record)
{
    struct replay *r = ctx;
    json_t *doc = NULL, *change;
    size_t i;
    int rc = stopped(r);
    if (rc == 0)
        rc = state_begin(r);
    if (rc < 0 || !r->known)
        return rc;
    rc = record_read(r, record, &doc);
    if (rc < 0)
        return rc;
    const json_t *changes = json_object_get(doc, "changes");
    if (json_array_size(changes))
        rc = repeat_decisions_before(r, record->revision, 0);
    json_array_foreach(changes, i, change)
    {
        if (rc == 0)
            rc = change_apply(r, change, record);
    }
    json_decref(doc);
    return rc;
}

/* ---- comparison of actions -------------------------------------------------------------------------------------- */

static bool same_action(const json_t *a, const json_t *b)
{
    const char *op = json_string_value(json_array_get(a, 0));
    bool made = op && (strcmp(op, "place") == 0 || strcmp(op, "reserve") == 0);
    for (size_t i = 0; i < json_array_size(a); i++)
        if (!(made && (i == 4 || i > 5)) && !json_equal(json_array_get(a, i), json_array_get(b, i)))
            return false;
    return json_array_size(a) == json_array_size(b);
}

bool replay_action_in(const json_t *list, const json_t *action)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (same_action(json_array_get(list, i), action))
            return true;
    return false;
}

/* ---- both passes ------------------------------------------------------------------------------------------------ */

int replay_journal(struct journal *journal, const struct replay_options *options, struct replay_result *ret,
                   struct berth_err *err)
{
    struct berth_err unheard;
    struct replay *r = mem_zalloc(sizeof *r);
    *r = (struct replay){.options = options, .err = err ? err : &unheard, .base = {.keeps = is_document_kept}};
    /* A decision is recorded after its time, and depends on earlier records. */
    struct journal_range range = {.from_ns = options->from_ns,
                                  .to_seq = options->record ? options->record + BATCHES_AFTER : 0};
    struct journal_visitor first = {.start = collect_start, .record = collect, .ctx = r};
    struct journal_visitor second = {.start = start, .document = document, .record = apply, .ctx = r};
    int rc = journal_read(journal, &range, &first, r->err);
    range.to_seq = options->record ? options->record : r->to_seq;
    if (rc == 0)
        rc = journal_read(journal, &range, &second, r->err);
    if (rc == 0)
        rc = state_begin(r);
    if (rc == 0)
        rc = repeat_decisions_before(r, UINT64_MAX, 0);
    if (rc == 0)
        *ret = r->result;
    for (size_t i = 0; i < r->cycles.len; i++)
        cycle_free(&r->cycles.at[i]);
    vec_done(&r->cycles);
    docset_done(&r->base);
    replay_touches_done(&r->touches);
    state_free(r->state);
    mem_free(r);
    return rc;
}

int replay_run(struct store *store, const struct replay_options *options, struct replay_result *ret,
               struct berth_err *err)
{
    CLEANUP(journal) struct journal *journal = journal_of_store(store);
    return replay_journal(journal, options, ret, err);
}
