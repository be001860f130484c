#include "control/sched/migration.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "control/api/crud.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"

static const char prefix[] = "migration/";

/* ---- running migrations ----------------------------------------------------------------------------------------- */

/* Reads the fact of an instance's migration. Returns false if there is none. */
static bool fact_of(const struct state *s, const char *instance, struct arena *arena, struct berth_fact *ret)
{
    struct doc_meta meta;
    const struct object *o = state_find(s, KIND_FACT, arena_fmt(arena, "%s%s", prefix, instance));
    if (!o)
        return false;
    CLEANUP(json) json_t *doc = object_doc(o);
    if (fact_doc_read(doc, arena, &meta, ret, NULL) < 0)
        return false;
    /* the text belonged to the document, which is freed here */
    ret->key = arena_strdup(arena, ret->key ? ret->key : "");
    return true;
}

const struct object *migration_successor(const struct state *s, const struct object *old)
{
    const struct object *work = state_find_work(s, old->instance->workload);
    for (size_t i = 0; work && i < work->work->instances_len; i++) {
        const struct object *o = work->work->instances[i];
        if (o == old || o->instance->ordinal != old->instance->ordinal)
            continue;
        CLEANUP(json) json_t *doc = object_doc(o);
        if ((uint64_t)json_integer_value(json_object_get(doc, "replaces")) == old->instance->number)
            return o;
    }
    return NULL;
}

struct migration_phase {
    const char *name;
    int progress; /* percent */
};

static struct migration_phase phase_of(const struct berth_fact *fact, const struct object *old,
                                       const struct object *heir)
{
    enum berth_migration_phase phase = berth_migration_phase(fact->value);
    bool begun = heir && heir->instance->state != BERTH_RESERVED && heir->instance->state != BERTH_ASSIGNED;

    if (phase == BERTH_MIGRATION_UNDONE)
        return (struct migration_phase){"undone", 100};
    if (phase == BERTH_MIGRATION_STOPPING || old->instance->state == BERTH_STOPPING)
        return (struct migration_phase){"stopping", 90};
    if (heir && heir->instance->ready)
        return (struct migration_phase){"switching", 75};
    if (heir)
        return (struct migration_phase){"starting", begun ? 50 : 25};
    return (struct migration_phase){"waiting", 0};
}

static json_t *migration_json(struct request *c, const struct object *old, const struct berth_fact *fact)
{
    const struct object *heir = migration_successor(c->state, old);
    struct migration_phase phase = phase_of(fact, old, heir);
    const char *to = heir ? heir->instance->node : fact->key;
    enum berth_cause cause = berth_migration_cause(fact->value);
    char since[TIMESTAMP_MAX];
    json_t *item =
        json_pack("{s:I, s:s, s:i, s:s, s:s, s:s, s:s, s:i}", "id", (json_int_t)old->instance->number, "workload",
                  old->instance->workload, "ordinal", (int)old->instance->ordinal, "from", old->instance->node, "phase",
                  phase.name, "cause", berth_cause_name(cause == BERTH_CAUSE_PENDING ? BERTH_CAUSE_DRAINED : cause),
                  "since", timestamp_text(fact->at_ns, since), "progress", phase.progress);
    if (to && *to)
        (void)json_object_set_new(item, "to", json_string(to));
    if (heir)
        (void)json_object_set_new(item, "instance", json_integer((json_int_t)heir->instance->number));
    return item;
}

int migration_list(struct request *c)
{
    size_t len;
    const struct object *const *facts = state_list(c->state, KIND_FACT, &len);
    json_t *items = json_array();

    for (size_t i = 0; i < len; i++) {
        struct berth_fact fact;
        if (strncmp(facts[i]->id, prefix, sizeof prefix - 1) != 0)
            continue;
        const char *instance = facts[i]->id + sizeof prefix - 1;
        const struct object *old = state_find(c->state, KIND_INSTANCE, instance);
        if (old && request_may_see(c, old) && fact_of(c->state, instance, &c->arena, &fact))
            (void)json_array_append_new(items, migration_json(c, old, &fact));
    }
    c->answer.body = json_pack("{s:o}", "items", items);
    c->answer.revision = state_revision(c->state);
    return 0;
}

/* ---- request a migration ---------------------------------------------------------------------------------------- */

struct migrate_args {
    const char *to;
};

static const struct key migrate_rows[] = {
    KEY("to", "text", "the target node; default: any other node", text_read, .at = offsetof(struct migrate_args, to)),
};
KEY_TABLE(migrate_keys, "migrate", migrate_rows);

static int target_of(struct request *c, const struct object *old, const char **ret)
{
    struct migrate_args asked = {0};
    struct reader r;
    reader_init(&r, &c->arena, &c->err);
    int rc = table_read(&r, c->body, &migrate_keys, &asked);
    *ret = "";
    if (rc < 0 || !asked.to || !*asked.to)
        return rc;
    const struct object *node = request_object(c, KIND_NODE, asked.to, PERMIT_CLUSTER);
    if (!node)
        return -c->err.code;
    if (strcmp(node->id, old->instance->node) == 0)
        return err_set(&c->err, EBUSY, "instance %s is already on %s", old->id, node->id);
    *ret = node->id;
    return 0;
}

/* Checks that the instance can be moved: a second instance of its pod may run beside it for a while. */
static int check_movable(struct request *c, const struct object *old)
{
    const struct object *work = state_find_work(c->state, old->instance->workload);
    enum berth_state state = old->instance->state;
    struct berth_fact fact;

    if (!work || work->kind != KIND_APP)
        return err_set(&c->err, EBUSY, "instance %s does not belong to an app; only apps can migrate", old->id);
    if (*work->work->gang)
        return err_set(&c->err, EBUSY, "instance %s belongs to a gang; gangs cannot migrate", old->id);
    if (!state_work_should_run(c->state, work))
        return err_set(&c->err, EBUSY, "%s is stopped", work->id);
    if (state != BERTH_ASSIGNED && state != BERTH_STARTING && state != BERTH_RUNNING)
        return err_set(&c->err, EBUSY, "instance %s is %s", old->id, berth_state_name(state));
    if (fact_of(c->state, old->id, &c->arena, &fact) && berth_migration_phase(fact.value) != BERTH_MIGRATION_UNDONE)
        return err_set(&c->err, EALREADY, "instance %s is already migrating; see GET /v1/migrations", old->id);
    return 0;
}

static void fact_put(struct request *c, const struct object *old, enum berth_migration_phase phase,
                     enum berth_cause cause, const char *to)
{
    struct berth_fact fact = {.kind = BERTH_FACT_MIGRATION,
                              .subject = old->instance->number,
                              .key = to,
                              .value = berth_migration_value(phase, cause),
                              .at_ns = c->now_ns};
    change_put(&c->change, KIND_FACT, arena_fmt(&c->arena, "%s%s", prefix, old->id), fact_doc_make(&fact));
}

int instance_migrate(struct request *c)
{
    const char *to;
    const struct object *old = request_object(c, KIND_INSTANCE, c->args[0], PERMIT_MANAGE);
    if (!old)
        return -c->err.code;
    int rc = target_of(c, old, &to);
    if (rc == 0)
        rc = check_movable(c, old);
    if (rc < 0)
        return rc;
    crud_name(c, KIND_INSTANCE, old->id, "migrate");
    fact_put(c, old, BERTH_MIGRATION_REQUESTED, BERTH_CAUSE_MANUAL, to);
    return crud_answer(c, KIND_INSTANCE, old->id, false);
}

/* ---- undo a migration ------------------------------------------------------------------------------------------- */

static int check_undoable(struct request *c, const struct object *old, const struct berth_fact *fact)
{
    const struct object *node = state_find(c->state, KIND_NODE, old->instance->node);
    enum berth_cause cause = berth_migration_cause(fact->value);

    if (berth_migration_phase(fact->value) == BERTH_MIGRATION_STOPPING || old->instance->state == BERTH_STOPPING)
        return err_set(&c->err, EBUSY,
                       "instance %s has been replaced and is stopping; migrate the new instance "
                       "back instead",
                       old->id);
    if (cause == BERTH_CAUSE_OVER_CAPACITY)
        return err_set(&c->err, EBUSY, "node %s has more allocated than allocatable; its instances must move",
                       old->instance->node);
    if (cause == BERTH_CAUSE_MANUAL || cause == BERTH_CAUSE_MOVED)
        return 0;
    if (node && node->node->state == BERTH_NODE_DRAINING)
        return err_set(&c->err, EBUSY, "node %s is being drained; enable it to keep the remaining instances", node->id);
    return err_set(&c->err, EBUSY, "%s has changed; its pods are being replaced one by one", old->instance->workload);
}

int migration_undo(struct request *c)
{
    struct berth_fact fact;
    const struct object *old = request_object(c, KIND_INSTANCE, c->args[0], PERMIT_MANAGE);
    if (!old)
        return -c->err.code;
    if (!fact_of(c->state, old->id, &c->arena, &fact) || berth_migration_phase(fact.value) == BERTH_MIGRATION_UNDONE)
        return err_set(&c->err, EBUSY, "instance %s is not migrating", old->id);
    int rc = check_undoable(c, old, &fact);
    if (rc < 0)
        return rc;
    crud_name(c, KIND_INSTANCE, old->id, "migration.undo");
    fact_put(c, old, BERTH_MIGRATION_UNDONE, berth_migration_cause(fact.value), "");
    return crud_answer(c, KIND_INSTANCE, old->id, false);
}
