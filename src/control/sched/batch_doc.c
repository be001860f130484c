#include "control/sched/batch_doc.h"

#include <string.h>

#include "base/str.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"

void instance_doc_set_state(json_t *doc, const char *state, int64_t now_ns)
{
    char since[TIMESTAMP_MAX];
    (void)json_object_set_new(doc, "state", json_string(state));
    (void)json_object_set_new(doc, "since", json_string(timestamp_text(now_ns, since)));
    (void)json_object_del(doc, "waits");
}

json_t *instance_doc_with_limit(const json_t *doc, const char *resource, int64_t limit, int64_t now_ns,
                                struct arena *arena)
{
    struct instance_doc d;
    if (instance_doc_read(doc, arena, &d, NULL) < 0)
        return NULL;
    struct berth_usage *usage = ARENA_ARRAY(arena, struct berth_usage, d.instance.usage_len);
    for (size_t i = 0; i < d.instance.usage_len; i++) {
        usage[i] = d.instance.usage[i];
        if (strcmp(usage[i].resource, resource) == 0) {
            usage[i].limit = limit;
            usage[i].limit_since_ns = now_ns;
        }
    }
    d.instance.usage = usage;
    return instance_doc_make(&d);
}

bool volume_doc_needs_pin(const json_t *doc, const char *node, struct arena *arena)
{
    struct volume_doc v;
    return doc && volume_doc_read(doc, arena, &v, NULL) == 0 && v.type == VOLUME_LOCAL && !v.volume.shared &&
           !(v.volume.driver && *v.volume.driver) && !(v.volume.node && strcmp(v.volume.node, node) == 0);
}

bool reservation_victims_stop(struct change *change, const json_t *reservation)
{
    size_t i;
    json_t *id;
    char text[24];
    json_array_foreach(json_object_get(reservation, "waits"), i, id)
    {
        const json_t *doc = change_read(change, KIND_INSTANCE, str_u64((uint64_t)json_integer_value(id), text));
        const char *state = json_string_value(json_object_get(doc, "state"));
        if (doc && (!state || strcmp(state, "stopping") != 0))
            return false;
    }
    return true;
}
