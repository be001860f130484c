#include "kube/kubectl/plugin_job.h"

#include <inttypes.h>
#include <string.h>

#include "kube/client/clock.h"
#include "kube/kubectl/plugin_table.h"
#include "kube/kubectl/plugin_why.h"
#include "wire/text/moment.h"

static json_int_t number_of(const json_t *job, const char *key)
{
    return json_integer_value(plugin_part(job, "status", key));
}

/* Prints the message of a condition with this status. */
static void condition_print(const json_t *job, const char *type, const char *status, struct str *to)
{
    const json_t *conditions = plugin_part(job, "status", "conditions");
    for (size_t i = 0; i < json_array_size(conditions); i++) {
        const json_t *one = json_array_get(conditions, i);
        const char *is = json_string_value(json_object_get(one, "type"));
        const char *value = json_string_value(json_object_get(one, "status"));
        const char *message = json_string_value(json_object_get(one, "message"));
        if (is && value && message && strcmp(is, type) == 0 && strcmp(value, status) == 0)
            str_addf(to, "%s\n", message);
    }
}

void plugin_job_from_object(struct arena *arena, const json_t *job, int64_t now_ns, struct str *to)
{
    const char *phase = plugin_text(job, "status", "phase"), *reason = plugin_text(job, "status", "reason");
    const char *queue = plugin_text(job, "spec", "queue");
    int64_t created_ns = now_ns;
    (void)timestamp_parse_text(plugin_text(job, "metadata", "creationTimestamp"), &created_ns, NULL);
    str_addf(to, "job %s/%s is %s; %s old, queue %s.\n", plugin_text(job, "metadata", "namespace"),
             plugin_text(job, "metadata", "name"), *phase ? phase : "not processed by berth-kube yet",
             plugin_age(arena, now_ns - created_ns), *queue ? queue : "default");
    str_addf(to,
             "Tasks: %" JSON_INTEGER_FORMAT " pending, %" JSON_INTEGER_FORMAT " running, %" JSON_INTEGER_FORMAT
             " succeeded; %" JSON_INTEGER_FORMAT " pods failed, %" JSON_INTEGER_FORMAT " restarts.\n",
             number_of(job, "pending"), number_of(job, "running"), number_of(job, "succeeded"),
             number_of(job, "failed"), number_of(job, "restarts"));
    condition_print(job, "Accepted", "False", to);
    condition_print(job, "Failed", "True", to);
    if (*reason)
        str_addf(to, "Reason: %s\n", reason);
    if (!*phase)
        str_add(to, "If this persists, check that berth-kube is running.\n");
}

/* Prints its pods and their nodes. */
static void pods_print(struct plugin_query *a, const char *name, struct str *to)
{
    CLEANUP(str) struct str path = {0};
    struct plugin_table table = {0};
    json_t *list = NULL;
    str_addf(&path, "/api/v1/namespaces/%s/pods?labelSelector=berth.dev%%2Fjob%%3D%s", a->namespace, name);
    if (plugin_get(&a->link, path.at, &list, NULL) < 0)
        return;
    const json_t *items = json_object_get(list, "items");
    for (size_t i = 0; i < json_array_size(items); i++) {
        const json_t *pod = json_array_get(items, i);
        plugin_cell(&table, "  %s", plugin_text(pod, "metadata", "name"));
        plugin_cell(&table, "%s", plugin_text(pod, "spec", "nodeName"));
        plugin_cell(&table, "%s", plugin_text(pod, "status", "phase"));
        plugin_row(&table);
    }
    if (json_array_size(items))
        str_add(to, "\nPods ('kubectl berth why POD' explains the placement of each)\n");
    plugin_table_print(&table, false, to);
    json_decref(list);
}

/* Explains a role that is not completely placed in the plan. */
static void role_print(struct plugin_view *v, const char *id, const char *name, struct str *to)
{
    struct cache_workload role;
    struct berth_action action;
    if (!cache_workload(v->cache, id, &role) || (plugin_pending(v, id) == SIZE_MAX && !plugin_action(v, id, &action)))
        return;
    str_addf(to, "\nrole %s, priority %" PRId32 "\n", name, role.priority);
    plugin_why_pending(v, &role, to);
}

static int plan_print(struct plugin_query *a, const json_t *job, struct plugin_loaded *loaded, struct str *to,
                      struct berth_err *err)
{
    const json_t *roles = plugin_part(job, "spec", "roles");
    struct plugin_view v;
    struct cache *cache = plugin_loaded_cache(loaded);
    int rc = plugin_view_init(&v, cache, plugin_loaded_tenants(loaded), &a->profiles, kube_wall_ns(), err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < json_array_size(roles); i++) {
        const char *name = json_string_value(json_object_get(json_array_get(roles, i), "name"));
        name = name ? name : "task";
        const char *id = arena_fmt(&a->arena, "%s:%s:%s", plugin_text(job, "metadata", "namespace"),
                                   plugin_text(job, "metadata", "name"), name);
        if (cache_role_exists(cache, id))
            role_print(&v, id, name, to);
        else
            str_addf(to, "\nrole %s\n  No details: the API server rejects a dry run of its pods from your user.\n",
                     name);
    }
    plugin_view_done(&v);
    return 0;
}

int plugin_job_why(struct plugin_query *a, const json_t *job, struct str *to, struct berth_err *err)
{
    const char *phase = plugin_text(job, "status", "phase");
    struct plugin_loaded *loaded;
    int rc = 0;
    plugin_job_from_object(&a->arena, job, kube_wall_ns(), to);
    if (strcmp(phase, "Succeeded") != 0 && strcmp(phase, "Failed") != 0 && strcmp(phase, "Suspended") != 0) {
        rc = plugin_load(&a->link, &a->profiles, true, &loaded, err);
        if (rc == 0) {
            rc = plan_print(a, job, loaded, to, err);
            plugin_loaded_free(loaded);
        }
    }
    pods_print(a, plugin_text(job, "metadata", "name"), to);
    return rc;
}
