/* object_kit_test.h - objects of the API server from one line of YAML, encoded as protobuf; a cache fed with them,
 * planned and queried.
 *
 * Include <cmocka.h> and what it needs before this. Errors here fail the test, so does a field that is not in the
 * tables (object_table_test.h).
 */
#pragma once

#include <jansson.h>
#include <string.h>

#include "base/str.h"
#include "base/vec.h"
#include "kube/cache/cache.h"
#include "kube/client/proto.h"
#include "kube/object/object_table_test.h"
#include "kube/tenant/tenant.h"
#include "wire/text/yaml.h"

#define ROWS(rows) (sizeof(rows) / sizeof *(rows))

/* ---- YAML to protobuf ------------------------------------------------------------------------------------------- */

static inline const char *kit_text(const json_t *value, char buf[32])
{
    if (json_is_integer(value))
        return str_u64((uint64_t)json_integer_value(value), buf);
    if (json_is_real(value)) {
        (void)snprintf(buf, 32, "%g", json_real_value(value));
        return buf;
    }
    if (json_is_boolean(value))
        return json_is_true(value) ? "true" : "false";
    return json_is_string(value) ? json_string_value(value) : "";
}

static inline void kit_message(struct str *to, const struct kit_field *fields, const json_t *from, size_t *known);

static inline void kit_map(struct str *to, const struct kit_field *f, const json_t *from)
{
    const char *key;
    json_t *value;
    char buf[32];
    json_object_foreach((json_t *)(uintptr_t)from, key, value)
    {
        size_t entry = proto_begin(to, f->number);
        proto_add_text(to, 1, key);
        if (f->type == KIT_QUANTITIES) {
            size_t quantity = proto_begin(to, 2);
            proto_add_text(to, 1, kit_text(value, buf));
            proto_end(to, quantity);
        } else {
            proto_add_text(to, 2, kit_text(value, buf));
        }
        proto_end(to, entry);
    }
}

static inline void kit_one(struct str *to, const struct kit_field *f, const json_t *value)
{
    char buf[32];
    size_t begun, known = 0;
    switch (f->type) {
    case KIT_TEXT: proto_add_text(to, f->number, kit_text(value, buf)); break;
    case KIT_INT: proto_add_int(to, f->number, json_integer_value(value)); break;
    case KIT_BOOL: proto_add_int(to, f->number, json_is_true(value)); break;
    case KIT_TIME:
        begun = proto_begin(to, f->number);
        proto_add_int(to, 1, json_integer_value(value));
        proto_end(to, begun);
        break;
    case KIT_QUANTITY:
        begun = proto_begin(to, f->number);
        proto_add_text(to, 1, kit_text(value, buf));
        proto_end(to, begun);
        break;
    case KIT_TEXTS:
    case KIT_QUANTITIES: kit_map(to, f, value); break;
    case KIT_MESSAGE:
    case KIT_INLINE:
        begun = proto_begin(to, f->number);
        kit_message(to, f->of, value, &known);
        proto_end(to, begun);
        if (f->type == KIT_MESSAGE && known != json_object_size(value))
            fail_msg("a field in %s is not in the tables", f->name);
        break;
    }
}

static inline void kit_message(struct str *to, const struct kit_field *fields, const json_t *from, size_t *known)
{
    for (const struct kit_field *f = fields; f->name; f++) {
        if (f->type == KIT_INLINE) {
            size_t begun = proto_begin(to, f->number);
            kit_message(to, f->of, from, known);
            proto_end(to, begun);
            continue;
        }
        const json_t *value = json_object_get(from, f->name);
        if (!value)
            continue;
        ++*known;
        if (json_is_array(value))
            for (size_t i = 0; i < json_array_size(value); i++)
                kit_one(to, f, json_array_get(value, i));
        else
            kit_one(to, f, value);
    }
}

static inline json_t *kit_parse(const char *yaml)
{
    json_t *root = NULL;
    struct berth_err err = {0};
    if (yaml_parse(yaml, strlen(yaml), "kit", &root, &err) < 0)
        fail_msg("%s in: %s", err.text, yaml);
    return root;
}

/* Appends the object's bytes, without envelope. */
static inline void kit_object(struct str *to, enum cache_kind kind, const char *yaml)
{
    size_t known = 0;
    json_t *root = kit_parse(yaml);
    kit_message(to, kit_kinds[kind], root, &known);
    if (known != json_object_size(root))
        fail_msg("a field is not in the tables: %s", yaml);
    json_decref(root);
}

/* ---- a cluster fed with objects --------------------------------------------------------------------------------- */

struct scene {
    struct cache *p;
    struct tenants *tenants;
    unsigned changes;
    char trouble[512];
    struct str text; /* buffer of the returned texts */
};

static inline void scene_changed(void *ctx)
{
    ((struct scene *)ctx)->changes++;
}

static inline void scene_trouble(void *ctx, const char *text)
{
    (void)snprintf(((struct scene *)ctx)->trouble, 512, "%s", text);
}

static inline void scene_begin(struct scene *s)
{
    static const char *const names[] = {"berth"};
    *s = (struct scene){.tenants = tenants_new(scene_changed, s)};
    s->p = cache_new(&(struct cache_config){.schedulers = names,
                                            .schedulers_len = 1,
                                            .tenants = s->tenants,
                                            .changed = scene_changed,
                                            .trouble = scene_trouble,
                                            .ctx = s});
}

static inline void scene_cleanup(struct scene *s)
{
    cache_free(s->p);
    tenants_free(s->tenants);
    str_done(&s->text);
}

static inline const char *scene_meta(const json_t *root, const char *key)
{
    const char *text = json_string_value(json_object_get(json_object_get(root, "metadata"), key));
    return text ? text : "";
}

static inline void scene_tell(struct scene *s, enum cache_kind kind, const char *yaml, bool put)
{
    CLEANUP(str) struct str bytes = {0};
    json_t *root = kit_parse(yaml);
    char uid[300];
    kit_object(&bytes, kind, yaml);
    (void)snprintf(uid, sizeof uid, "uid-%s", scene_meta(root, "name"));
    const char *given = scene_meta(root, "uid");
    struct kube_object o = {.namespace = scene_meta(root, "namespace"),
                            .name = scene_meta(root, "name"),
                            .uid = *given ? given : uid,
                            .raw = proto_reader(str_text(&bytes), bytes.len)};
    if (put)
        cache_object_put(s->p, kind, &o);
    else
        cache_object_drop(s->p, kind, &o);
    json_decref(root);
}

static inline void scene_put(struct scene *s, enum cache_kind kind, const char *yaml)
{
    scene_tell(s, kind, yaml, true);
}

static inline void scene_drop(struct scene *s, enum cache_kind kind, const char *yaml)
{
    scene_tell(s, kind, yaml, false);
}

/* Puts a node with 4 cores, 8 Gi and 10 pods, a host name and a zone; `more` are fields of its spec. */
static inline void scene_node(struct scene *s, const char *name, const char *zone, const char *more)
{
    CLEANUP(str) struct str yaml = {0};
    str_addf(
        &yaml,
        "{metadata: {name: %s, labels: {kubernetes.io/hostname: %s, topology.kubernetes.io/zone: %s}}, spec: {%s}, "
        "status: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}}",
        name, name, zone, more);
    scene_put(s, CACHE_NODE, yaml.at);
}

/* Puts a pod of ours in "default"; `labels` and `spec` are YAML flow without braces. With a node, the pod is bound
 * there. */
static inline void scene_pod(struct scene *s, const char *name, const char *labels, const char *node, const char *spec)
{
    CLEANUP(str) struct str yaml = {0};
    str_addf(
        &yaml,
        "{metadata: {name: %s, namespace: default, uid: uid-%s, creationTimestamp: 100, labels: {%s}}, spec: {schedulerName: berth, "
        "nodeName: \"%s\"%s%s}}",
        name, name, labels, node, *spec ? ", " : "", spec);
    scene_put(s, CACHE_POD, yaml.at);
}

struct scene_plan {
    struct berth_snapshot *snapshot;
    struct berth_plan *plan;
    struct plan_policy policy;
};

static inline void scene_plan_cleanup(struct scene_plan *x)
{
    berth_plan_free(x->plan);
    berth_snapshot_free(x->snapshot);
    plan_policy_done(&x->policy);
}

static inline struct scene_plan scene_plan(struct scene *s)
{
    struct scene_plan x = {0};
    struct berth_err err = {0};
    struct berth_cluster *c = cache_cluster(s->p);
    if (tenants_in_use(s->tenants))
        tenants_policy(s->tenants, &x.policy);
    x.policy.policy.profile = berth_profile_find("default");
    x.policy.policy.preemption =
        (struct berth_preemption){.on = true, .services = true, .clears = true, .break_budgets = true};
    if (berth_audit(c, &err) < 0)
        fail_msg("%s", err.text);
    x.snapshot = berth_freeze(c, INT64_C(1000000000000), 0);
    if (berth_plan_make(x.snapshot, &x.policy.policy, &x.plan, &err) < 0)
        fail_msg("%s", err.text);
    return x;
}

/* Plans and returns the actions: "a->n1 b->n2 -c" ordered by name (-c: c is stopped), and "?d" for a pending pod. */
static inline const char *scene_says(struct scene *s)
{
    __attribute__((cleanup(scene_plan_cleanup))) struct scene_plan x = scene_plan(s);
    VEC(char *) words = {0};
    char buf[300];
    for (size_t i = 0; i < berth_plan_actions(x.plan); i++) {
        struct berth_action a = berth_plan_action(x.plan, i);
        const char *name = strchr(a.workload, ':') + 1;
        if (a.op == BERTH_STOP)
            (void)snprintf(buf, sizeof buf, "-%s", name);
        else
            (void)snprintf(buf, sizeof buf, "%s%s%s", name, a.op == BERTH_RESERVE ? "=>" : "->", a.node);
        vec_push(&words, mem_strdup(buf));
    }
    for (size_t i = 0; i < berth_plan_pendings(x.plan); i++) {
        (void)snprintf(buf, sizeof buf, "?%s", strchr(berth_plan_pending_name(x.plan, i), ':') + 1);
        vec_push(&words, mem_strdup(buf));
    }
    str_clear(&s->text);
    for (size_t done = 0; done < words.len; done++) {
        size_t least = words.len;
        for (size_t i = 0; i < words.len; i++)
            if (words.at[i] && (least == words.len || strcmp(words.at[i], words.at[least]) < 0))
                least = i;
        str_addf(&s->text, "%s%s", done ? " " : "", words.at[least]);
        mem_free(words.at[least]);
        words.at[least] = NULL;
    }
    vec_done(&words);
    return str_text(&s->text);
}

/* Plans and returns why the pod is pending; "" if it is not. */
static inline const char *scene_why(struct scene *s, const char *pod)
{
    __attribute__((cleanup(scene_plan_cleanup))) struct scene_plan x = scene_plan(s);
    str_clear(&s->text);
    for (size_t i = 0; i < berth_plan_pendings(x.plan); i++) {
        struct berth_pending pending = berth_plan_pending(x.plan, i);
        if (strcmp(strchr(pending.workload, ':') + 1, pod) == 0)
            cache_unschedulable_message(s->p, &pending, &s->text);
    }
    return str_text(&s->text);
}
