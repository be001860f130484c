/* work.c - apps, jobs and VMs as objects: owners, names, and members that are kept when they change. */
#include "control/kind/work.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "control/control_parts.h"
#include "control/explain/status.h"
#include "control/job/job.h"
#include "control/job/outcome.h"
#include "control/node/port.h"
#include "control/sched/route_rules.h"
#include "wire/text/document.h"
#include "wire/text/words.h"

static const char *member(const json_t *doc, const char *key)
{
    return json_string_value(json_object_get(doc, key));
}

int work_refuse_system(struct request *c, const char *id, const json_t *doc)
{
    if (!json_is_true(json_object_get(doc, "system")))
        return 0;
    return err_set(&c->err, EACCES, "%s is a service of the system; see /v1/system/services", id);
}

/* ---- alternative forms in requests ------------------------------------------------------------------------------ */

static int normalise(struct request *c, const struct crud *k, json_t *body)
{
    char quoted[QUOTE_MAX];
    const json_t *kind = json_object_get(body, "kind");
    json_t *resources = json_object_get(body, "resources");
    if (kind && !json_is_null(kind)) {
        const char *word = json_string_value(kind);
        if (!word || kind_find(word) != k->kind)
            return err_set(&c->err, EINVAL, "kind: %s is not of the collection %s", word ? quote(word, quoted) : "this",
                           kinds[k->kind].plural);
    }
    (void)json_object_del(body, "kind");
    if (resources && json_object_get(body, "requests"))
        return err_set(&c->err, EINVAL, "resources: is an alias of requests; give only one");
    if (resources) {
        (void)json_object_set(body, "requests", resources);
        (void)json_object_del(body, "resources");
    }
    return 0;
}

/* ---- names and owners ------------------------------------------------------------------------------------------- */

/* Gets the owner: the body's, else the caller. Writes it in lower case to the body. */
static int owner_of(struct request *c, json_t *doc, const char **ret_owner)
{
    char folded[ID_MAX + 1];
    const json_t *given = json_object_get(doc, "owner");
    const char *owner = json_string_value(given);
    if (given && !owner)
        return err_set(&c->err, EINVAL, "owner: expected the id of a user");
    if (!given && !c->caller.user[0])
        return err_set(&c->err, EINVAL, "owner: missing; an agent owns no objects");
    if (owner && strcasecmp(owner, "system") == 0)
        return err_set(&c->err, EACCES, "system services cannot be created; see /v1/system/services");
    if (owner) {
        int rc = id_fold("owner", owner, folded, &c->err);
        if (rc < 0)
            return rc;
    }
    *ret_owner = arena_strdup(&c->arena, owner ? folded : c->caller.user);
    (void)json_object_set_new(doc, "owner", json_string(*ret_owner));
    return 0;
}

/* A job's ID is a number; its name is only for display. */
/* Returns the number that would be given, also to the second job of a transaction. A dry run takes no number. */
static uint64_t probable_number(struct request *c, enum kind kind)
{
    const json_t *counter = change_read(&c->change, KIND_COUNTER, kinds[kind].plural);
    uint64_t last = state_last_number(c->state, kind),
             given = (uint64_t)json_integer_value(json_object_get(counter, "last"));
    return (given > last ? given : last) + 1;
}

static int identify_job(struct request *c, const struct crud *k, const char *arg, json_t *doc, const char **ret_id)
{
    char buf[24];
    const char *owner;
    (void)arg; /* a client cannot choose a number */
    if (json_object_get(doc, "id"))
        return err_set(&c->err, EINVAL, "id: is set by the daemon; leave it out");
    int rc = owner_of(c, doc, &owner);
    if (rc < 0)
        return rc;
    uint64_t number = c->dry_run ? probable_number(c, k->kind) : state_next_number(c->state, k->kind);
    change_put_unguarded(&c->change, KIND_COUNTER, kinds[k->kind].plural,
                         json_pack("{s:I}", "last", (json_int_t)number));
    *ret_id = arena_strdup(&c->arena, str_u64(number, buf));
    return 0;
}

/* Gets the name. NAME.OWNER in the path or in the body's `id` stands for the name and, if present, the owner. */
static int name_of(struct request *c, const char *arg, json_t *doc, const char **ret_name)
{
    const char *id = arg ? arg : member(doc, "id"), *name = member(doc, "name");
    const char *dot = id ? strchr(id, '.') : NULL;
    const char *head = dot ? arena_strndup(&c->arena, id, (size_t)(dot - id)) : id;
    char quoted[QUOTE_MAX];
    if (!head && !name)
        return err_set(&c->err, EINVAL, "name: missing");
    /* otherwise a later error would call the name different from an ID that looks the same */
    if (name && strchr(name, '.'))
        return err_set(&c->err, EINVAL, "name: %s may have only letters, digits and '-'", quote(name, quoted));
    if (head && name && strcasecmp(head, name) != 0)
        return err_set(&c->err, EINVAL, "name: %.80s does not match %.80s", name, id);
    if (dot && member(doc, "owner") && strcasecmp(dot + 1, member(doc, "owner")) != 0)
        return err_set(&c->err, EINVAL, "owner: %.80s does not match %.80s", member(doc, "owner"), id);
    if (dot)
        (void)json_object_set_new(doc, "owner", json_string(dot + 1));
    *ret_name = name ? name : head;
    return 0;
}

int owned_identify(struct request *c, const struct crud *k, const char *arg, json_t *doc, const char **ret_id)
{
    char folded[ID_MAX + 1];
    const char *name = NULL, *owner = NULL;
    (void)k;
    int rc = name_of(c, arg, doc, &name);
    if (rc == 0)
        rc = id_fold("name", name, folded, &c->err);
    if (rc == 0)
        rc = owner_of(c, doc, &owner);
    if (rc < 0)
        return rc;
    assert(name && owner);
    if (strcmp(name, folded) != 0 && !json_object_get(doc, "display"))
        (void)json_object_set_new(doc, "display", json_string(name));
    (void)json_object_set_new(doc, "name", json_string(folded));
    *ret_id = arena_fmt(&c->arena, "%s.%s", folded, owner);
    return 0;
}

/* Reading the user guards it: a user that is being deleted gets nothing new. */
int owned_belongs(struct request *c, const struct crud *k, const char *id, const json_t *doc, const char **ret_owner,
                  const char **ret_group)
{
    (void)k;
    (void)id;
    *ret_owner = member(doc, "owner");
    const char *group = member(change_read(&c->change, KIND_USER, *ret_owner), "group");
    *ret_group = group ? group : "";
    return 0;
}

/* ---- before the write ------------------------------------------------------------------------------------------- */

int owned_key_keep(struct request *c, const char *key, const json_t *old, json_t *doc)
{
    const char *was = member(old, key), *is = member(doc, key);
    if (json_object_get(doc, key) && (!is || !was || strcasecmp(was, is) != 0))
        return err_set(&c->err, EINVAL, "%s: cannot be changed; delete it and create another", key);
    if (was)
        (void)json_object_set_new(doc, key, json_string(was));
    return 0;
}

int owned_join_group(struct request *c, json_t *doc)
{
    const char *owner = member(doc, "owner");
    const json_t *user = change_read(&c->change, KIND_USER, owner);
    const char *group = member(user, "group");
    if (!user)
        return err_set(&c->err, EINVAL, "owner: there is no user %.80s", owner);
    if (group && *group)
        (void)json_object_set_new(doc, "group", json_string(group));
    else
        (void)json_object_del(doc, "group");
    return 0;
}

/* An app or VM with endpoints has a block of ports as long as it has endpoints. */
static int take_ports(struct request *c, json_t *doc)
{
    int32_t index = 0;
    const json_t *endpoints = json_object_get(doc, "endpoints"); /* a single endpoint needs no brackets */
    if (!endpoints || (json_is_array(endpoints) && json_array_size(endpoints) == 0)) {
        (void)json_object_del(doc, "index");
        return 0;
    }
    if (json_object_get(doc, "index"))
        return 0;
    int rc = port_index_take(&c->change, &index, &c->err);
    if (rc == 0)
        (void)json_object_set_new(doc, "index", json_integer(index));
    return rc;
}

/* Labels the pods, so that `spread: zone` refers to the workload's own pods only. */
static void name_pods(const char *id, json_t *doc)
{
    if (!json_object_get(doc, "labels"))
        (void)json_object_set_new(doc, "labels", json_pack("{s:s}", "workload", id));
}

static int prepare(struct request *c, const struct crud *k, const char *id, const json_t *old, json_t *doc)
{
    int rc = old ? work_refuse_system(c, id, old) : 0;
    if (rc == 0 && old && k->kind == KIND_JOB)
        rc = job_refuse_finished(c, id, old);
    if (rc == 0 && old && k->kind == KIND_JOB)
        rc = job_hold_check(c, old, doc);
    if (rc == 0 && old)
        rc = owned_key_keep(c, "owner", old, doc);
    if (rc == 0 && old && k->kind != KIND_JOB)
        rc = owned_key_keep(c, "name", old, doc);
    if (rc == 0)
        rc = owned_join_group(c, doc);
    if (rc == 0 && k->kind != KIND_JOB)
        rc = take_ports(c, doc);
    if (rc == 0 && !old && k->kind == KIND_JOB)
        rc = route_new(c, id, doc);
    if (rc == 0)
        name_pods(id, doc);
    if (rc == 0)
        work_defaults(c, old, doc);
    if (rc == 0 && !old)
        (void)json_object_set_new(doc, "generation", json_integer((json_int_t)work_first_generation(c, id)));
    return rc;
}

void work_clear_failures(struct request *c, const char *id)
{
    const char *fact = arena_fmt(&c->arena, "since/%s", id);
    if (change_guard(&c->change, KIND_FACT, fact))
        change_delete(&c->change, KIND_FACT, fact);
}

static int on_delete(struct request *c, const struct crud *k, const char *id, const json_t *old, const json_t *next)
{
    int rc = next ? 0 : work_refuse_system(c, id, old);
    if (rc < 0)
        return rc;
    if (!next || !json_equal(json_object_get(old, "generation"), json_object_get(next, "generation"))) {
        work_keep_spec(c, id, old);
        if (k->kind != KIND_JOB) /* failures of a job are counted until its end */
            work_clear_failures(c, id);
    }
    if (!next && k->kind == KIND_JOB)
        rc = jobs_before_delete(c->control->jobs, &c->change, id, &c->err);
    if (!next && change_guard(&c->change, KIND_LAST_END, id))
        change_delete(&c->change, KIND_LAST_END, id);
    return rc;
}

/* ---- display ---------------------------------------------------------------------------------------------------- */

static void show(const struct request *c, const struct object *o, json_t *doc)
{
    (void)json_object_set_new(doc, "status", work_status(c, o));
}

static bool pass(const struct request *c, const struct object *o)
{
    const char *state = request_query(c, "state");
    return !state || strcmp(state, work_state_word(c->state, o, c->now_ns)) == 0 ||
           (*state && strcmp(state, work_outcome_name(outcome_of_work(o))) == 0);
}

static const char *const keep[] = {"hold", "stopped", "group", NULL};

#define WORK(kind_, identify_)                                                                                         \
    {                                                                                                                  \
        .kind = kind_, .make = PERMIT_SUBMIT, .change = PERMIT_MANAGE, .normalise = normalise, .identify = identify_,  \
        .belongs = owned_belongs, .prepare = prepare, .check = work_check, .leaving = on_delete, .show = show,         \
        .pass = pass, .keep = keep                                                                                     \
    }
const struct crud app_crud = WORK(KIND_APP, owned_identify);
const struct crud job_crud = WORK(KIND_JOB, identify_job);
const struct crud vm_crud = WORK(KIND_VM, owned_identify);
