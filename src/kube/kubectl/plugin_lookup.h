/* plugin_lookup.h - a name that somebody asks about: looked up at the API server, and told of as far as the user may see. */
#pragma once

#include "base/arena.h"
#include "base/str.h"
#include "kube/kubectl/plugin_load.h"

struct plugin_ask {
    struct plugin_link link;
    const char *namespace;
    struct kube_profiles profiles; /* names that are Berth's */
    struct arena arena;
};

/* NAME, pod/NAME or job/NAME: a bare name is a pod, else a job. A failure may have text, too: what the object itself says where more may not be read.
 * -ENOENT names a similar one. */
int plugin_ask_why(struct plugin_ask *a, const char *name, struct str *to, struct berth_err *err);

/* object.a.b, and as a text; "" if it is none. */
static inline const json_t *plugin_part(const json_t *object, const char *a, const char *b)
{
    return json_object_get(json_object_get(object, a), b);
}
static inline const char *plugin_text(const json_t *object, const char *a, const char *b)
{
    const char *text = json_string_value(plugin_part(object, a, b));
    return text ? text : "";
}

/* What the pod's object alone says, as `kubectl get -o json` has it. True: that is all there is to say of it, because it has ended, is held up by gates or is
 * another scheduler's. */
bool plugin_pod_told(struct plugin_ask *a, const json_t *pod, int64_t now_ns, struct str *to);
/* What its scheduler last wrote on it. */
void plugin_pod_condition(const json_t *pod, struct str *to);
