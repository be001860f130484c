/* join_probed.c - resources of a machine as its agent reports them, and how much of them may be used.
 *
 * `probed` is the last report. `ceiling` is the maximum to be used: set by the administrator, or as the machine was
 * when it joined. `allocatable` is the smaller of the two, for each resource that the machine knows. So a machine that
 * shrinks has less at once, and a machine that grows, or lies, gains nothing. Nothing else in the document follows
 * later reports; join_gpus.c handles GPUs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "control/control.h"
#include "control/node/join.h"
#include "core/model/cluster.h"
#include "core/model/resource_names.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"
#include "wire/text/quantity.h"

enum { PROBED_BYTES_MAX = 64 * 1024, RESOURCES_MAX = 256 };

static const json_t *amounts_of(const json_t *probed)
{
    const json_t *amounts = json_object_get(probed, "allocatable");
    return json_is_object(amounts) ? amounts : NULL;
}

static bool amount_read(const char *resource, const json_t *value, int64_t *ret)
{
    return value && quantity_parse(resource, value, ret, NULL) == 0 && *ret >= 0 && *ret <= BERTH_AMOUNT_MAX;
}

/* Limits `allocatable` to the ceiling and the machine. */
static void allocatable_cut(json_t *doc)
{
    const json_t *has = amounts_of(json_object_get(doc, "probed"));
    json_t *ceiling = json_object_get(doc, "ceiling"), *may, *left;
    const char *resource;
    if (!has || !ceiling)
        return;
    left = json_object();
    json_object_foreach(ceiling, resource, may)
    {
        int64_t have, most;
        json_t *value = json_object_get(has, resource);
        bool less = amount_read(resource, value, &have) && amount_read(resource, may, &most) && have < most;
        (void)json_object_set_new(left, resource, json_copy(less ? value : may));
    }
    (void)json_object_set_new(doc, "allocatable", left);
}

/* Sets a missing ceiling: to the administrator's `allocatable`, else to `other`. */
static void ceiling_ensure(json_t *doc, const json_t *other)
{
    const json_t *set = json_object_get(doc, "allocatable");
    if (json_object_get(doc, "ceiling"))
        return;
    set = set ? set : other;
    (void)json_object_set_new(doc, "ceiling", set ? json_deep_copy(set) : json_object());
}

json_t *probed_grown(const json_t *doc)
{
    json_t *has = (json_t *)amounts_of(json_object_get(doc, "probed")), *value, *grown = NULL;
    const json_t *ceiling = json_object_get(doc, "ceiling");
    const char *resource;
    json_object_foreach(has, resource, value)
    {
        int64_t have, most = 0;
        const json_t *may = json_object_get(ceiling, resource);
        if (!amount_read(resource, value, &have) || (may && !amount_read(resource, may, &most)) || have <= most)
            continue;
        grown = grown ? grown : json_object();
        (void)json_object_set(grown, resource, value);
    }
    int64_t gpus = probed_gpus_grown(doc);
    if (gpus) {
        grown = grown ? grown : json_object();
        (void)json_object_set_new(grown, "gpu", json_integer(gpus));
    }
    return grown;
}

static bool same_member(const json_t *object, const char *key, const json_t *value)
{
    const json_t *member = json_object_get(object, key);
    return member && json_equal((json_t *)member, (json_t *)value);
}

/* Rejects amounts above the machine's: they would only raise the ceiling. An amount equal to the present ceiling is
 * accepted: it was declared before the join, or the machine once had more. */
static int within_machine(const json_t *old, const json_t *doc, struct berth_err *err)
{
    json_t *is = json_object_get(doc, "allocatable"), *value;
    const json_t *has = amounts_of(json_object_get(doc, "probed"));
    const char *resource;
    json_object_foreach(is, resource, value)
    {
        int64_t have, wants;
        char quoted[2][QUANTITY_TEXT_MAX];
        if (!amount_read(resource, json_object_get(has, resource), &have) || !amount_read(resource, value, &wants) ||
            wants <= have || same_member(json_object_get(old, "allocatable"), resource, value) ||
            same_member(json_object_get(old, "ceiling"), resource, value))
            continue;
        return err_set(err, EINVAL,
                       "allocatable: %s: %s is more than the %s that the machine has; use `overcommit` to allow more",
                       resource, quantity_print(resource, wants, quoted[0]), quantity_print(resource, have, quoted[1]));
    }
    return 0;
}

int probed_ceiling(const json_t *old, json_t *doc, struct berth_err *err)
{
    const json_t *was = json_object_get(old, "allocatable");
    json_t *is = json_object_get(doc, "allocatable");
    if (!json_object_get(doc, "probed") || (was && is && json_equal((json_t *)was, is)) || (!was && !is))
        return 0;
    int rc = within_machine(old, doc, err);
    if (rc < 0)
        return rc;
    (void)json_object_set_new(doc, "ceiling", is ? json_deep_copy(is) : json_object());
    if (is)
        allocatable_cut(doc);
    return 0;
}

/* ---- at the join ------------------------------------------------------------------------------------------------ */

static void take_labels(json_t *doc, const json_t *probed, bool replace)
{
    json_t *from = json_object_get(probed, "labels"), *to = json_object_get(doc, "labels"), *value;
    const char *key;
    if (!json_is_object(from) || (to && !json_is_object(to)))
        return;
    if (!to)
        (void)json_object_set_new(doc, "labels", to = json_object());
    json_object_foreach(from, key, value)
    {
        if (json_is_string(value) && (replace || !json_object_get(to, key)))
            (void)json_object_set(to, key, value);
    }
}

static void take_rest(json_t *doc, const json_t *probed, bool replace)
{
    static const char *const keys[] = {"arch", "runtimes", "address"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        json_t *value = json_object_get(probed, keys[i]);
        bool given = strcmp(keys[i], "address") == 0 && json_is_true(json_object_get(probed, "address_given"));
        if (value && !json_is_null(value) && (replace || given || !json_object_get(doc, keys[i])))
            (void)json_object_set_new(doc, keys[i], json_deep_copy(value));
    }
    probed_gpus_apply(doc, probed, replace);
    take_labels(doc, probed, replace);
}

void probed_apply(json_t *doc, const json_t *probed)
{
    (void)json_object_set_new(doc, "probed", json_deep_copy(probed));
    ceiling_ensure(doc, amounts_of(probed));
    allocatable_cut(doc);
    take_rest(doc, probed, false);
}

static int accept(struct request *c, const char *id, json_t *doc, const void *arg)
{
    json_t *probed = json_object_get(doc, "probed"), *has = (json_t *)amounts_of(probed), *value;
    const char *resource;
    (void)arg;
    if (!probed)
        return err_set(&c->err, EBUSY, "node %s has not reported its resources: no agent has joined for it", id);
    json_t *ceiling = json_object_get(doc, "ceiling");
    if (!ceiling)
        (void)json_object_set_new(doc, "ceiling", ceiling = json_object());
    json_object_foreach(has, resource, value)
    {
        (void)json_object_set(ceiling, resource, value);
    }
    allocatable_cut(doc);
    take_rest(doc, probed, true);
    return 0;
}

int node_accept(struct request *c)
{
    const char *id = NULL;
    int rc = crud_edit(c, &node_crud, PERMIT_NODES, accept, NULL);
    if (rc == 0)
        rc = crud_id(c, KIND_NODE, c->args[0], &id);
    if (rc < 0)
        return rc;
    crud_name(c, KIND_NODE, id, "accept");
    return crud_answer(c, KIND_NODE, id, false);
}

/* ---- reports ---------------------------------------------------------------------------------------------------- */

/* Sets resources that the machine once had and no longer reports to 0: the device was removed. */
static void removed_set_zero(const json_t *before, json_t *probed)
{
    json_t *had = (json_t *)amounts_of(before), *has = json_object_get(probed, "allocatable"), *value;
    const char *resource;
    json_object_foreach(had, resource, value)
    {
        (void)value;
        if (!json_object_get(has, resource))
            (void)json_object_set_new(has, resource, json_integer(0));
    }
}

int probed_check(const json_t *probed, struct berth_err *err)
{
    const json_t *has = json_object_get(probed, "allocatable");
    if (!json_is_object(probed))
        return err_set(err, EINVAL, "probed: expected an object");
    if (!json_is_object(has) || json_object_size(has) > RESOURCES_MAX)
        return err_set(err, EINVAL, "probed: allocatable: expected an object of at most %d resources", RESOURCES_MAX);
    char *text = json_dumps(probed, JSON_COMPACT);
    bool large = !text || strlen(text) > PROBED_BYTES_MAX;
    free(text);
    return large ? err_set(err, EINVAL, "probed: larger than %d bytes", PROBED_BYTES_MAX) : 0;
}

int node_probed(struct request *c, const char *node, const json_t *probed)
{
    struct node_doc read;
    struct berth_err why = {0};
    const json_t *old = change_read(&c->change, KIND_NODE, node);
    int rc = probed_check(probed, &c->err);
    if (rc < 0)
        return rc;
    if (!old)
        return 0;
    CLEANUP(json) json_t *doc = json_deep_copy(old);
    CLEANUP(json) json_t *said = json_deep_copy(probed);
    removed_set_zero(json_object_get(old, "probed"), said);
    (void)json_object_set_new(doc, "probed", take_ptr(&said));
    ceiling_ensure(doc, NULL);
    allocatable_cut(doc);
    if (json_equal(doc, (json_t *)old))
        return 0;
    rc = node_doc_read(doc, &c->arena, &read, &why);
    if (rc == 0)
        rc = describe_node(state_cluster(c->state), &read.node, &why);
    if (rc == 0) {
        resource_names_of_node(state_cluster(c->state), &read.node);
        change_put(&c->change, KIND_NODE, node, take_ptr(&doc));
    } else { /* the rest of the report counts: an unusual device must not make a node lost */
        const struct control_env *env = control_env(c->control);
        log_write(env->log, c->now_ns, LEVEL_WARN, "node.probed.unusable", LOG_TEXT("node", node),
                  LOG_TEXT("text", why.text));
    }
    return 0;
}
