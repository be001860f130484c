#include "control/replay.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/vec.h"
#include "control/plan_policy.h"
#include "journal/record.h"
#include "wire/api.h"

/* A decision to be made again. */
struct cycle {
    uint64_t n, revision, seed, state, plan;
    int64_t now_ns;
    char *profile;
    json_t *assumed; /* NULL: nothing was */
};

struct replay {
    const struct replay_options *options;
    struct berth_err *err;
    struct replay_result result;
    VEC(struct cycle) cycles; /* in order of revisions */
    size_t next;              /* to be made */
    struct state *state;
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

static int record_read(struct replay *r, const struct store_record *record, json_t **ret)
{
    json_error_t where;
    json_t *doc = json_loadb(record->record.at, record->record.len, 0, &where);
    if (!doc)
        return err_set(r->err, EBADMSG, "record %" PRIu64 ": %s", record->seq, where.text);
    if (json_integer_value(json_object_get(doc, "j")) != JOURNAL_VERSION) {
        json_decref(doc);
        return err_set(r->err, ENOTSUP, "record %" PRIu64 ": a version of the journal that is not known here",
                       record->seq);
    }
    *ret = doc;
    return 0;
}

/* ---- first pass: which decisions there were ------------------------------------------------------------------------ */

/* Numbers of cycles start anew with each daemon. */
static bool same_cycle(const struct cycle *a, const json_t *b)
{
    return a->n == number_member(b, "n") && a->revision == number_member(b, "revision") &&
           a->plan == hex_member(b, "plan");
}

static int collect(void *ctx, const struct store_record *record)
{
    struct replay *r = ctx;
    json_t *doc = NULL;
    int rc = record_read(r, record, &doc);
    if (rc < 0)
        return rc;
    const json_t *c = json_object_get(doc, "cycle");
    if (c && (r->cycles.len == 0 || !same_cycle(&r->cycles.at[r->cycles.len - 1], c))) {
        struct cycle cycle = {
            .n = number_member(c, "n"),
            .revision = number_member(c, "revision"),
            .seed = number_member(c, "seed"),
            .state = hex_member(c, "state"),
            .plan = hex_member(c, "plan"),
            .now_ns = json_integer_value(json_object_get(c, "now")),
            .profile = mem_strdup(json_string_value(json_object_get(c, "profile"))),
            .assumed = json_incref(json_object_get(c, "assumed")),
        };
        vec_push(&r->cycles, cycle);
    }
    r->result.records++;
    json_decref(doc);
    return 0;
}

/* ---- second pass --------------------------------------------------------------------------------------------------- */

/* What was on its way to the store when the plan was made: [op, id, now, document or null]. */
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
        (void)state_assume_gone(r->state, id, NULL);
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

static void give_back(struct replay *r, const json_t *item, struct arena *arena)
{
    const json_t *id = json_array_get(item, 1);
    char text[24];
    if (json_is_integer(id)) {
        state_restore(r->state, KIND_INSTANCE, str_u64((uint64_t)json_integer_value(id), text));
        return;
    }
    struct doc_meta meta;
    struct berth_fact fact;
    if (fact_doc_read(json_array_get(item, 3), arena, &meta, &fact, NULL) == 0) {
        fact.over = true;
        (void)state_assume_fact(r->state, &fact, NULL);
    }
    state_restore(r->state, KIND_FACT, json_string_value(id));
}

static void differ(struct replay *r, const struct cycle *c, const char *what, uint64_t recorded, uint64_t replayed)
{
    struct replay_difference d = {c->n, c->revision, what, recorded, replayed};
    r->result.different++;
    if (r->options->differs)
        r->options->differs(r->options->ctx, &d);
}

static int decide(struct replay *r, const struct cycle *c, struct arena *arena, uint64_t *ret)
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
        *ret = berth_plan_hash(plan);
        berth_plan_free(plan);
    }
    berth_snapshot_free(snapshot);
    plan_policy_done(&settings);
    json_decref(doc);
    return rc;
}

static int remake(struct replay *r, const struct cycle *c)
{
    const struct replay_options *o = r->options;
    if (c->n < o->from_cycle || (o->to_cycle && c->n > o->to_cycle))
        return 0;
    struct arena arena;
    size_t i;
    json_t *item;
    uint64_t hash = 0;
    arena_init(&arena);
    if (state_hash(r->state) != c->state)
        differ(r, c, "state", c->state, state_hash(r->state));
    json_array_foreach(c->assumed, i, item) assume(r, item, &arena);
    int rc = decide(r, c, &arena, &hash);
    if (rc == 0 && hash != c->plan)
        differ(r, c, "plan", c->plan, hash);
    for (i = json_array_size(c->assumed); i-- > 0;)
        give_back(r, json_array_get(c->assumed, i), &arena);
    r->result.cycles++;
    arena_done(&arena);
    return rc;
}

/* Makes every decision that rests on a revision before this one. */
static int remake_before(struct replay *r, uint64_t revision)
{
    int rc = 0;
    for (; rc == 0 && r->next < r->cycles.len && r->cycles.at[r->next].revision < revision; r->next++) {
        rc = remake(r, &r->cycles.at[r->next]);
        if (r->options->progress)
            r->options->progress(r->options->ctx, r->next + 1, r->cycles.len);
    }
    return rc;
}

static int change_apply(struct replay *r, const json_t *change, uint64_t revision)
{
    const char *key = json_string_value(json_array_get(change, 0)), *id;
    const json_t *doc = json_array_get(change, 1);
    if (!doc || !kind_journalled(object_key_split(key, &id)))
        return 0;
    char *text = json_is_object(doc) ? json_dumps(doc, JSON_COMPACT) : NULL;
    struct store_event event = {
        .key = key, .value = {text, text ? strlen(text) : 0},
             .gone = !text, .created = revision, .revision = revision
    };
    int rc = state_apply(r->state, &event, r->err);
    free(text);
    r->result.changes++;
    return rc;
}

static int apply(void *ctx, const struct store_record *record)
{
    struct replay *r = ctx;
    json_t *doc = NULL, *change;
    size_t i;
    int rc = record_read(r, record, &doc);
    if (rc < 0)
        return rc;
    const json_t *changes = json_object_get(doc, "changes");
    if (json_array_size(changes))
        rc = remake_before(r, record->revision);
    json_array_foreach(changes, i, change)
    {
        if (rc == 0)
            rc = change_apply(r, change, record->revision);
    }
    json_decref(doc);
    return rc;
}

int replay_run(struct store *store, const struct replay_options *options, struct replay_result *ret,
               struct berth_err *err)
{
    struct berth_err unheard;
    struct replay r = {.options = options, .err = err ? err : &unheard};
    struct store *empty = store_memory_new();
    int rc = state_load(empty, &r.state, err);
    if (rc == 0)
        rc = store_log(store, 1, collect, &r, err);
    if (rc == 0)
        rc = store_log(store, 1, apply, &r, err);
    if (rc == 0)
        rc = remake_before(&r, UINT64_MAX);
    if (rc == 0)
        *ret = r.result;
    for (size_t i = 0; i < r.cycles.len; i++) {
        mem_free(r.cycles.at[i].profile);
        json_decref(r.cycles.at[i].assumed);
    }
    vec_done(&r.cycles);
    state_free(r.state);
    store_close(empty);
    return rc;
}
