#include "kube/kubectl/plugin_lookup.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/vec.h"
#include "kube/client/clock.h"
#include "kube/kubectl/plugin_job.h"
#include "kube/kubectl/plugin_why.h"
#include "wire/text/moment.h"
#include "wire/text/words.h"

/* ---- the pod's object ------------------------------------------------------------------------------------------- */

static bool is_ours(const struct plugin_query *a, const char *scheduler)
{
    for (size_t i = 0; i < a->profiles.len; i++)
        if (strcmp(a->profiles.names[i], scheduler) == 0)
            return true;
    return false;
}

void plugin_pod_condition(const json_t *pod, struct str *to)
{
    const json_t *conditions = plugin_part(pod, "status", "conditions");
    for (size_t i = 0; i < json_array_size(conditions); i++) {
        const json_t *one = json_array_get(conditions, i);
        const char *type = json_string_value(json_object_get(one, "type"));
        const char *status = json_string_value(json_object_get(one, "status"));
        const char *message = json_string_value(json_object_get(one, "message"));
        if (type && status && message && strcmp(type, "PodScheduled") == 0 && strcmp(status, "False") == 0)
            str_addf(to, "PodScheduled condition: %s\n", message);
    }
}

static void gates_print(const json_t *gates, struct str *to)
{
    str_add(to, "It has scheduling gates (");
    for (size_t i = 0; i < json_array_size(gates); i++) {
        const char *name = json_string_value(json_object_get(json_array_get(gates, i), "name"));
        str_addf(to, "%s%s", i ? ", " : "", name ? name : "");
    }
    str_add(to, "): it is not placed until they are removed.\n");
}

bool plugin_pod_from_object(struct plugin_query *a, const json_t *pod, int64_t now_ns, struct str *to)
{
    const char *node = plugin_text(pod, "spec", "nodeName"), *phase = plugin_text(pod, "status", "phase");
    const char *scheduler = plugin_text(pod, "spec", "schedulerName");
    const json_t *gates = plugin_part(pod, "spec", "schedulingGates");
    bool over = strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0;
    int64_t created_ns = now_ns;
    (void)timestamp_parse_text(plugin_text(pod, "metadata", "creationTimestamp"), &created_ns, NULL);
    str_addf(to, "pod %s/%s ", plugin_text(pod, "metadata", "namespace"), plugin_text(pod, "metadata", "name"));
    if (over)
        str_addf(to, "has ended: %s", phase);
    else if (*node)
        str_addf(to, "is on %s: %s", node, *phase ? phase : "Pending");
    else
        str_add(to, "is pending");
    str_addf(to, "; %s old, priority %" JSON_INTEGER_FORMAT ".\n", plugin_age(&a->arena, now_ns - created_ns),
             json_integer_value(plugin_part(pod, "spec", "priority")));
    if (over)
        return true;
    if (!is_ours(a, scheduler)) {
        str_addf(to, "Its schedulerName is %s, which is not a Berth scheduler%s.\n", scheduler,
                 *node ? "; Berth cannot explain its placement" : "; Berth does not place it");
        plugin_pod_condition(pod, to);
        return true;
    }
    if (!*node && json_array_size(gates)) {
        gates_print(gates, to);
        return true;
    }
    return false;
}

/* ---- with limited permissions ----------------------------------------------------------------------------------- */

static const char *event_time(const json_t *event)
{
    static const char *const keys[] = {"lastTimestamp", "eventTime"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *text = json_string_value(json_object_get(event, keys[i]));
        if (text)
            return text;
    }
    return plugin_text(event, "metadata", "creationTimestamp");
}

/* Prints the last scheduling event. Times in RFC 3339 of one zone compare as texts. */
static void event_print(struct plugin_query *a, const char *name, struct str *to)
{
    CLEANUP(str) struct str path = {0};
    json_t *list = NULL;
    const json_t *last = NULL;
    str_addf(&path, "/api/v1/namespaces/%s/events?fieldSelector=involvedObject.name%%3D%s", a->namespace, name);
    if (plugin_get(&a->link, path.at, &list, NULL) < 0)
        return;
    const json_t *items = json_object_get(list, "items");
    for (size_t i = 0; i < json_array_size(items); i++) {
        const json_t *one = json_array_get(items, i);
        const char *reason = json_string_value(json_object_get(one, "reason"));
        bool placing = reason && (strcmp(reason, "FailedScheduling") == 0 || strcmp(reason, "Scheduled") == 0 ||
                                  strcmp(reason, "Preempted") == 0);
        if (placing && (!last || strcmp(event_time(one), event_time(last)) >= 0))
            last = one;
    }
    const char *message = json_string_value(json_object_get(last, "message"));
    if (message)
        str_addf(to, "Last scheduling event: %s\n", message);
    json_decref(list);
}

/* ---- suggestions ------------------------------------------------------------------------------------------------ */

struct name_list {
    VEC(const char *) at;
};

static const char *candidate(const void *ctx, size_t i)
{
    const struct name_list *n = ctx;
    return i < n->at.len ? n->at.at[i] : NULL;
}

static void names_add(struct plugin_query *a, const char *path, struct name_list *to)
{
    json_t *list = NULL;
    if (plugin_get(&a->link, path, &list, NULL) < 0)
        return;
    const json_t *items = json_object_get(list, "items");
    for (size_t i = 0; i < json_array_size(items); i++)
        vec_push(&to->at, arena_strdup(&a->arena, plugin_text(json_array_get(items, i), "metadata", "name")));
    json_decref(list);
}

static int unknown(struct plugin_query *a, const char *kind, const char *name, struct berth_err *err)
{
    CLEANUP(str) struct str pods = {0}, jobs = {0};
    struct name_list names = {0};
    str_addf(&pods, "/api/v1/namespaces/%s/pods?limit=5000", a->namespace);
    str_addf(&jobs, "/apis/berth.dev/v1/namespaces/%s/jobs?limit=5000", a->namespace);
    if (strcmp(kind, "job") != 0)
        names_add(a, pods.at, &names);
    if (strcmp(kind, "pod") != 0)
        names_add(a, jobs.at, &names);
    const char *similar = suggest(name, candidate, &names);
    if (similar)
        (void)err_set(err, ENOENT, "no %s '%s' in namespace %s; did you mean '%s'?", kind, name, a->namespace, similar);
    else
        (void)err_set(err, ENOENT, "no %s '%s' in namespace %s; use -n to choose another namespace", kind, name,
                      a->namespace);
    vec_done(&names.at);
    return -ENOENT;
}

/* ---- pods ------------------------------------------------------------------------------------------------------- */

static int pod_explain(struct plugin_query *a, const json_t *pod, struct plugin_loaded *loaded, struct str *to,
                       struct berth_err *err)
{
    struct plugin_view v;
    struct cache_workload holder;
    CLEANUP(str) struct str id = {0};
    struct cache *cache = plugin_loaded_cache(loaded);
    int rc = plugin_view_init(&v, cache, plugin_loaded_tenants(loaded), &a->profiles, kube_wall_ns(), err);
    if (rc < 0)
        return rc;
    str_addf(&id, "%s:%s", plugin_text(pod, "metadata", "namespace"), plugin_text(pod, "metadata", "name"));
    const char *workload = id.len > BERTH_NAME_MAX ? plugin_text(pod, "metadata", "uid") : id.at;
    if (!cache_workload(cache, workload, &holder))
        str_add(to, "The pod changed during the query; run the command again.\n");
    else if (*holder.node)
        plugin_why_placed(&v, &holder, to);
    else
        plugin_why_pending(&v, &holder, to);
    plugin_view_done(&v);
    return 0;
}

static int pod_why(struct plugin_query *a, const json_t *pod, struct str *to, struct berth_err *err)
{
    struct plugin_loaded *loaded;
    if (plugin_pod_from_object(a, pod, kube_wall_ns(), to))
        return 0;
    int rc = plugin_load(&a->link, &a->profiles, true, &loaded, err);
    if (rc == -EACCES) { /* explain from the pod's object alone */
        plugin_pod_condition(pod, to);
        event_print(a, plugin_text(pod, "metadata", "name"), to);
    }
    if (rc < 0)
        return rc;
    rc = pod_explain(a, pod, loaded, to, err);
    plugin_loaded_free(loaded);
    return rc;
}

/* ---- names ------------------------------------------------------------------------------------------------------ */

/* Reports whether the name is a DNS name, which needs no encoding in a path. */
static bool name_plain(const char *name)
{
    return *name && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789.-") == strlen(name);
}

static int rights(int rc, const char *verb, const char *what, const struct plugin_query *a, struct berth_err *err)
{
    if (rc != -EACCES)
        return rc;
    return err_set(err, EACCES,
                   "your user may not %s %s in namespace %s (%.*s); ask an administrator for the role berth-viewer",
                   verb, what, a->namespace, 200, err->text);
}

int plugin_query_why(struct plugin_query *a, const char *name, struct str *to, struct berth_err *err)
{
    CLEANUP(str) struct str path = {0};
    const char *slash = strchr(name, '/'), *bare = slash ? slash + 1 : name;
    bool job = slash && (strncmp(name, "job", 3) == 0 || strncmp(name, "bjob", 4) == 0);
    bool pod = slash && (strncmp(name, "pod", 3) == 0 || strncmp(name, "po/", 3) == 0);
    json_t *object = NULL;
    if (!name_plain(bare) || !name_plain(a->namespace) || (slash && !job && !pod))
        return err_set(err, EINVAL, "'%s' is not the name of a pod or job; expected NAME, pod/NAME or job/NAME", name);
    if (!job) {
        str_addf(&path, "/api/v1/namespaces/%s/pods/%s", a->namespace, bare);
        int rc = plugin_get(&a->link, path.at, &object, err);
        if (rc == 0) {
            rc = pod_why(a, object, to, err);
            json_decref(object);
            return rc;
        }
        if (rc != -ENOENT)
            return rights(rc, "get", "pods", a, err);
    }
    if (pod)
        return unknown(a, "pod", bare, err);
    str_clear(&path);
    str_addf(&path, "/apis/berth.dev/v1/namespaces/%s/jobs/%s", a->namespace, bare);
    int rc = plugin_get(&a->link, path.at, &object, err);
    if (rc == -ENOENT || (rc == -EACCES && !job))
        return unknown(a, job ? "job" : "pod or job", bare, err);
    if (rc < 0)
        return rights(rc, "get", "jobs of berth.dev", a, err);
    rc = plugin_job_why(a, object, to, err);
    json_decref(object);
    return rc;
}
