/* plugin_lookup.h - looks up the object of a given name at the API server, and explains as much as the user may read.
 */
#pragma once

#include "base/arena.h"
#include "base/str.h"
#include "kube/kubectl/plugin_load.h"

struct plugin_query {
    struct plugin_link link;
    const char *namespace;
    struct kube_profiles profiles; /* scheduler names of Berth */
    struct arena arena;
};

/* `name` is NAME, pod/NAME or job/NAME: a bare name is a pod, else a job. A failure may have text, too: what the object
 * itself shows if the user may read nothing else. -ENOENT suggests a similar name. */
int plugin_query_why(struct plugin_query *a, const char *name, struct str *to, struct berth_err *err);

/* Return the member object.a.b, and its text ("" if it is no text). */
static inline const json_t *plugin_part(const json_t *object, const char *a, const char *b)
{
    return json_object_get(json_object_get(object, a), b);
}
static inline const char *plugin_text(const json_t *object, const char *a, const char *b)
{
    const char *text = json_string_value(plugin_part(object, a, b));
    return text ? text : "";
}

/* Explains the pod from its object alone, as in `kubectl get -o json`. True: nothing else can be said, because the pod
 * has ended, has scheduling gates or belongs to another scheduler. */
bool plugin_pod_from_object(struct plugin_query *a, const json_t *pod, int64_t now_ns, struct str *to);
/* Appends the condition that its scheduler wrote last. */
void plugin_pod_condition(const json_t *pod, struct str *to);
