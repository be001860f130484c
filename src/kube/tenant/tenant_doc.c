/* tenant_doc.c - converts the spec of a custom resource to a document of the daemon, and checks it. */
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "control/kind/queue.h"
#include "control/sched/plan_policy.h"
#include "kube/tenant/tenant_internal.h"
#include "wire/text/document.h"

/* Keys with different names. */
static const struct {
    const char *here, *there;
} keys[] = {
    {"priorityClass", "priority_class"},
    {"timeLimit",     "time_limit"    },
    {"maxTime",       "max_time"      },
};

const char *tenant_gpu_at(size_t i)
{
    static const char *const names[] = {"nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe"};
    return i < sizeof names / sizeof *names ? names[i] : NULL;
}

/* ---- the document ----------------------------------------------------------------------------------------------- */

static const char *key_in_cache_doc(const char *key)
{
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i].here, key) == 0)
            return keys[i].there;
    return key;
}

/* Pods request GPUs by vendor resource, so an amount of "gpu" applies to each of these. */
static void gpus_add(json_t *amounts)
{
    const json_t *gpu = json_object_get(amounts, "gpu");
    for (size_t i = 0; json_is_integer(gpu) && tenant_gpu_at(i); i++)
        if (!json_object_get(amounts, tenant_gpu_at(i)))
            (void)json_object_set_new(amounts, tenant_gpu_at(i), json_integer(json_integer_value(gpu)));
}

/* Converts a whole number given as text. */
static void gpu_number(json_t *amounts)
{
    int64_t n;
    const char *text = json_string_value(json_object_get(amounts, "gpu"));
    if (text && str_parse_i64(text, &n))
        (void)json_object_set_new(amounts, "gpu", json_integer(n));
}

static bool total_named(const json_t *totals, const char *resource)
{
    size_t i;
    json_t *one;
    json_array_foreach(totals, i, one)
    {
        const char *text = json_string_value(json_object_get(one, "resource"));
        if (text && strcmp(text, resource) == 0)
            return true;
    }
    return false;
}

/* The same for totals. */
static void totals_add(json_t *totals)
{
    size_t i, len = json_array_size(totals);
    for (i = 0; i < len; i++) {
        const json_t *one = json_array_get(totals, i);
        const char *resource = json_string_value(json_object_get(one, "resource"));
        for (size_t k = 0; resource && strcmp(resource, "gpu") == 0 && tenant_gpu_at(k); k++) {
            if (total_named(totals, tenant_gpu_at(k)))
                continue;
            json_t *more = json_deep_copy(one);
            (void)json_object_set_new(more, "resource", json_string(tenant_gpu_at(k)));
            (void)json_array_append_new(totals, more);
        }
    }
}

static json_t *quota_doc(const json_t *quota)
{
    static const char *const parts[] = {"limits", "guarantees", "admitted"};
    json_t *doc = json_deep_copy(quota);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        json_t *amounts = json_object_get(doc, parts[i]);
        gpu_number(amounts);
        gpus_add(amounts);
    }
    totals_add(json_object_get(doc, "totals"));
    return doc;
}

json_t *tenant_doc(enum kind kind, const char *name, const json_t *spec)
{
    json_t *doc = json_pack("{s:i, s:s}", "v", SCHEMA_VERSION, "id", name);
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)spec, key, value)
    {
        if ((kind == KIND_GROUP && strcmp(key, "namespaces") == 0) || (kind == KIND_USER && strcmp(key, "names") == 0))
            continue; /* kept separately: the daemon has no such key */
        json_t *copy = strcmp(key, "quota") == 0 ? quota_doc(value) : json_deep_copy(value);
        (void)json_object_set_new(doc, key_in_cache_doc(key), copy);
    }
    return doc;
}

/* ---- named objects ---------------------------------------------------------------------------------------------- */

struct tenant_namer {
    struct state *s;
    struct berth_err *err;
};

static int absent(struct tenant_namer *n, const char *key, enum kind kind, const char *name)
{
    return err_set(n->err, ENOENT, "%s: %s %.80s does not exist; create it or remove it here", key, kinds[kind].name,
                   name);
}

static int names_check(struct tenant_namer *n, const json_t *doc, const char *key, enum kind kind)
{
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(doc, key), i, one)
    {
        const char *name = json_string_value(one);
        if (name && !state_find(n->s, kind, name))
            return absent(n, key, kind, name);
    }
    return 0;
}

static int name_check(struct tenant_namer *n, const json_t *doc, const char *key, enum kind kind)
{
    const char *name = json_string_value(json_object_get(doc, key));
    return name && *name && !state_find(n->s, kind, name) ? absent(n, key, kind, name) : 0;
}

static int policy_name_check(struct tenant_namer *n, const json_t *doc)
{
    const char *name = json_string_value(json_object_get(doc, "policy"));
    return name && plan_policy_built_in(name) ? 0 : name_check(n, doc, "policy", KIND_POLICY);
}

/* Checks names first, so that errors use the words of the custom resource; the checks below use those of the daemon's
 * command line. */
static int all_names_check(struct tenant_namer *n, enum kind kind, const json_t *doc)
{
    if (kind == KIND_USER)
        return name_check(n, doc, "group", KIND_GROUP);
    if (kind != KIND_QUEUE)
        return 0;
    int rc = name_check(n, doc, "parent", KIND_QUEUE);
    rc = rc < 0 ? rc : names_check(n, doc, "users", KIND_USER);
    rc = rc < 0 ? rc : names_check(n, doc, "groups", KIND_GROUP);
    rc = rc < 0 ? rc : names_check(n, doc, "domains", KIND_DOMAIN);
    return rc < 0 ? rc : policy_name_check(n, doc);
}

/* ---- the daemon's own rules ------------------------------------------------------------------------------------- */

static int rules_check(struct request *c, enum kind kind, const char *name, const json_t *doc)
{
    struct group_doc group;
    struct user_doc user;
    int rc;
    switch (kind) {
    case KIND_QUEUE: return queue_crud.check(c, &queue_crud, name, NULL, doc);
    case KIND_POLICY: return policy_crud.check(c, &policy_crud, name, NULL, doc);
    /* The domain is its own previous version: it may list nodes that do not exist yet. */
    case KIND_DOMAIN: return domain_crud.check(c, &domain_crud, name, doc, doc);
    case KIND_GROUP:
        rc = group_doc_read(doc, &c->arena, &group, &c->err);
        return rc < 0 ? rc : quota_check_group(c, name, &group);
    case KIND_USER:
        rc = user_doc_read(doc, &c->arena, &user, &c->err);
        return rc < 0 ? rc : quota_check_user(c, name, doc);
    default: return err_set(&c->err, EINVAL, "unsupported kind");
    }
}

/* Replaces the daemon's keys by those of the custom resource. */
static void reword(struct berth_err *err)
{
    CLEANUP(str) struct str text = {0};
    for (const char *at = err->text; *at;) {
        size_t k = 0, count = sizeof keys / sizeof *keys;
        while (k < count && strncmp(at, keys[k].there, strlen(keys[k].there)) != 0)
            k++;
        if (k < count)
            str_add(&text, keys[k].here);
        else
            str_add_char(&text, *at);
        at += k < count ? strlen(keys[k].there) : 1;
    }
    (void)err_set(err, err->code, "%s", str_text(&text));
}

int tenant_check(struct state *s, enum kind kind, const char *name, const json_t *doc, struct berth_err *err)
{
    char folded[ID_MAX + 1];
    struct tenant_namer n = {s, err};
    struct request c = {.state = s};
    /* reserved names are not used in Kubernetes, so they are allowed */
    int rc = id_reserved(name) ? 0 : id_fold("metadata.name", name, folded, err);
    if (rc == 0)
        rc = all_names_check(&n, kind, doc);
    if (rc < 0)
        return rc;
    arena_init(&c.arena);
    change_init(&c.change, s, &c.arena);
    rc = rules_check(&c, kind, name, doc);
    change_done(&c.change);
    arena_done(&c.arena);
    if (rc < 0) {
        *err = c.err;
        reword(err);
    }
    return rc;
}
