/* node_volume.c - volumes, resources, profiles and instances as objects. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "control/job/outcome.h"
#include "control/node/node.h"
#include "control/tenant/cap.h"
#include "core/model/cluster.h"
#include "core/model/resource_names.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"

static const char *member(const json_t *doc, const char *key)
{
    return json_string_value(json_object_get(doc, key));
}

/* ---- volumes ---------------------------------------------------------------------------------------------------- */

static int volume_belongs(struct request *c, const struct crud *k, const char *id, const json_t *doc,
                          const char **ret_owner, const char **ret_group)
{
    char folded[ID_MAX + 1];
    const json_t *given = json_object_get(doc, "owner");
    (void)k;
    (void)id;
    if (given && !json_is_string(given))
        return err_set(&c->err, EINVAL, "owner: expected the id of a user");
    if (given) {
        int rc = id_fold("owner", json_string_value(given), folded, &c->err);
        if (rc < 0)
            return rc;
    }
    *ret_owner = arena_strdup(&c->arena, given ? folded : c->caller.user);
    const char *group = member(change_read(&c->change, KIND_USER, *ret_owner), "group");
    *ret_group = group ? group : "";
    return 0;
}

/* Accepts `kind` as the volume's type, as for resources in a cluster file. */
static int volume_normalise(struct request *c, const struct crud *k, json_t *body)
{
    const char *word = json_string_value(json_object_get(body, "kind"));
    (void)c;
    if (word && kind_find(word) != k->kind && !json_object_get(body, "type"))
        (void)json_object_set_new(body, "type", json_string(word));
    (void)json_object_del(body, "kind");
    return 0;
}

static int volume_prepare(struct request *c, const struct crud *k, const char *id, const json_t *old, json_t *doc)
{
    const char *owner = "", *group = "";
    int rc = volume_belongs(c, k, id, old && !json_object_get(doc, "owner") ? old : doc, &owner, &group);
    if (rc < 0)
        return rc;
    if (old && member(old, "owner") && strcmp(member(old, "owner"), owner) != 0)
        return err_set(&c->err, EINVAL, "owner: cannot be changed; delete it and create another");
    if (!change_read(&c->change, KIND_USER, owner))
        return err_set(&c->err, EINVAL, "owner: there is no user %.80s", owner);
    (void)json_object_set_new(doc, "owner", json_string(owner));
    (void)json_object_del(doc, "group");
    if (*group)
        (void)json_object_set_new(doc, "group", json_string(group));
    return 0;
}

/* A mounted volume's type, path and size cannot change, and only some users may create a volume that is a folder of a
 * node. */
static int volume_check(struct request *c, const struct crud *k, const char *id, const json_t *old, const json_t *doc)
{
    static const char *const what[] = {"type", "path", "size"};
    struct volume_doc d;
    bool same = old != NULL;
    (void)k;
    int rc = volume_doc_read(doc, &c->arena, &d, &c->err);
    if (rc == 0)
        rc = describe_volume(state_cluster(c->state), &d.volume, &c->err);
    if (rc == 0)
        rc = cap_names_check(c, d.volume.driver && *d.volume.driver);
    if (rc == 0 && !c->dry_run)
        resource_names_of_volume(state_cluster(c->state), &d.volume);
    for (size_t i = 0; same && i < sizeof what / sizeof *what; i++) {
        const json_t *was = json_object_get(old, what[i]), *is = json_object_get(doc, what[i]);
        same = was ? is && json_equal(was, is) : !is;
    }
    if (rc < 0 || same)
        return rc;
    if (d.type == VOLUME_BIND && !permit(&c->caller, PERMIT_NODES, "", ""))
        return err_set(&c->err, EACCES, "path: folders of a node need the permission 'nodes: all'");
    const char *user = old ? volume_mounted_by(c, id) : NULL;
    return user ? err_set(&c->err, EBUSY, "volume %s is mounted by %s; its type, path and size cannot be changed", id,
                          user)
                : 0;
}

static bool is_text(const json_t *value, const char *text)
{
    return json_is_string(value) && strcmp(json_string_value(value), text) == 0;
}

/* A single entry needs no brackets. */
static bool mounts(const json_t *doc, const char *id)
{
    const json_t *volumes = json_object_get(doc, "volumes"), *mounted = json_object_get(doc, "mounts");
    bool found = is_text(volumes, id) || is_text(json_object_get(mounted, "volume"), id);
    for (size_t i = 0; i < json_array_size(volumes) && !found; i++)
        found = is_text(json_array_get(volumes, i), id);
    for (size_t i = 0; i < json_array_size(mounted) && !found; i++)
        found = is_text(json_object_get(json_array_get(mounted, i), "volume"), id);
    return found;
}

/* Searches the text first: most workloads do not mention the name. */
static bool object_mounts(const struct object *o, const char *id)
{
    if (!memmem(o->doc.at, o->doc.len, id, strlen(id)))
        return false;
    CLEANUP(json) json_t *doc = object_doc(o);
    return mounts(doc, id);
}

static const struct change_item *in_change(const struct request *c, enum kind kind, const char *id)
{
    for (size_t i = 0; i < c->change.items.len; i++)
        if (c->change.items.at[i].kind == kind && strcmp(c->change.items.at[i].id, id) == 0)
            return &c->change.items.at[i];
    return NULL;
}

const char *volume_mounted_by(struct request *c, const char *id)
{
    static const enum kind users[] = {KIND_APP, KIND_JOB, KIND_VM, KIND_SPEC};
    for (size_t k = 0; k < sizeof users / sizeof *users; k++) {
        size_t len = 0;
        const struct object *const *list = state_list(c->state, users[k], &len);
        for (size_t i = 0; i < len; i++)
            if (!in_change(c, users[k], list[i]->id) && object_mounts(list[i], id))
                return list[i]->id;
    }
    for (size_t i = 0; i < c->change.items.len; i++) {
        const struct change_item *item = &c->change.items.at[i];
        if ((kind_is_workload(item->kind) || item->kind == KIND_SPEC) && item->doc && mounts(item->doc, id))
            return item->id;
    }
    return NULL;
}

/* A workload that mounts a volume guards its revision, so no mount can begin while the volume is deleted. */
static int volume_leaving(struct request *c, const struct crud *k, const char *id, const json_t *old,
                          const json_t *next)
{
    (void)k;
    (void)old;
    const char *user = next ? NULL : volume_mounted_by(c, id);
    return user ? err_set(&c->err, EBUSY, "volume %s is mounted by %s; change or delete that workload first", id, user)
                : 0;
}

/* a volume stays on the node with its data */
static const char *const volume_keep[] = {"owner", "group", "node", NULL};

const struct crud volume_crud = {
    .kind = KIND_VOLUME,
    .make = PERMIT_SUBMIT,
    .change = PERMIT_MANAGE,
    .normalise = volume_normalise,
    .belongs = volume_belongs,
    .prepare = volume_prepare,
    .check = volume_check,
    .leaving = volume_leaving,
    .keep = volume_keep,
};

/* ---- resources and profiles: objects identified by their name --------------------------------------------------- */

static int named_prepare(struct request *c, const struct crud *k, const char *id, const json_t *old, json_t *doc)
{
    const json_t *name = json_object_get(doc, "name");
    (void)k;
    (void)old;
    if (name && (!json_is_string(name) || strcasecmp(json_string_value(name), id) != 0))
        return err_set(&c->err, EINVAL, "name: expected %s, the id", id);
    (void)json_object_set_new(doc, "name", json_string(id));
    return 0;
}

static int resource_check(struct request *c, const struct crud *k, const char *id, const json_t *old, const json_t *doc)
{
    struct doc_meta meta;
    struct berth_resource resource;
    (void)k;
    (void)id;
    (void)old;
    int rc = resource_doc_read(doc, &c->arena, &meta, &resource, &c->err);
    if (rc == 0)
        rc = describe_resource(state_cluster(c->state), &resource, &c->err);
    if (rc == 0 && !c->dry_run)
        (void)cluster_resource_put(state_cluster(c->state), resource.name);
    return rc;
}

const struct crud resource_crud = {
    .kind = KIND_RESOURCE,
    .make = PERMIT_NODES,
    .change = PERMIT_NODES,
    .prepare = named_prepare,
    .check = resource_check,
};

/* Plans an empty cluster with the profile, so that a profile that plans would reject is rejected here. */
static int profile_try(struct request *c, const struct berth_profile *profile)
{
    struct berth_cluster *cluster = berth_cluster_new();
    struct berth_snapshot *snapshot = berth_freeze(cluster, 0, 0);
    struct berth_policy policy = {.profile = profile};
    struct berth_plan *plan = NULL;
    int rc = berth_plan_make(snapshot, &policy, &plan, &c->err);
    if (rc == 0)
        berth_plan_free(plan);
    berth_snapshot_free(snapshot);
    berth_cluster_free(cluster);
    return rc;
}

static int profile_check(struct request *c, const struct crud *k, const char *id, const json_t *old, const json_t *doc)
{
    struct doc_meta meta;
    struct berth_profile profile;
    (void)k;
    (void)id;
    (void)old;
    int rc = profile_doc_read(doc, &c->arena, &meta, &profile, &c->err);
    return rc < 0 ? rc : profile_try(c, &profile);
}

static int profile_leaving(struct request *c, const struct crud *k, const char *id, const json_t *old,
                           const json_t *next)
{
    (void)k;
    (void)old;
    const char *used = next ? NULL : member(change_read(&c->change, KIND_SETTING, "system"), "profile");
    if (used && strcmp(used, id) == 0)
        return err_set(&c->err, EBUSY, "profile %s is in use; set another in /v1/system/settings first", id);
    return 0;
}

const struct crud profile_crud = {
    .kind = KIND_PROFILE,
    .make = PERMIT_SYSTEM,
    .change = PERMIT_SYSTEM,
    .prepare = named_prepare,
    .check = profile_check,
    .leaving = profile_leaving,
};

/* ---- instances: created by plans, reported by agents, read-only for users --------------------------------------- */

static bool instance_pass(const struct request *c, const struct object *o)
{
    const char *state = request_query(c, "state"), *workload = request_query(c, "workload"),
               *node = request_query(c, "node");
    const struct instance_view *v = o->instance;
    return (!state || strcmp(state, berth_state_name(v->state)) == 0) &&
           (!workload || strcmp(workload, v->workload) == 0) && (!node || strcmp(node, v->node) == 0);
}

static void instance_show(const struct request *c, const struct object *o, json_t *doc)
{
    enum work_outcome outcome = outcome_of_instance(o->instance);
    (void)c;
    if (outcome)
        (void)json_object_set_new(doc, "outcome", json_string(work_outcome_name(outcome)));
}

const struct crud instance_crud = {
    .kind = KIND_INSTANCE,
    .make = PERMIT_SYSTEM, /* no route creates instances */
    .change = PERMIT_SYSTEM,
    .show = instance_show,
    .pass = instance_pass,
};
