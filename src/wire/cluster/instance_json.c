/* instance_json.c - instances and remembered facts of the cluster file. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "wire/doc/objects.h"

/* ---- usage ------------------------------------------------------------------------------------------------------- */

#define AT(field) offsetof(struct berth_usage, field)
static const struct key usage_rows[] = {
    KEY("used", "amount", "current use", quantity_read, .at = AT(used)),
    KEY("since", "time", "start time of the current level of use", time_read, .at = AT(used_since_ns)),
    KEY("limit", "amount", "the limit in force; default: that of the workload", quantity_read, .at = AT(limit)),
    KEY("limit_since", "time", "start time of the limit in force", time_read, .at = AT(limit_since_ns)),
};
#undef AT
KEY_TABLE(usage_keys, "usage", usage_rows);

static int usage_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    if (!json_is_object(value))
        return expected(r, "an object like {cpu: {used: 500m}}", value);
    struct berth_usage *usage = ARENA_ARRAY(r->arena, struct berth_usage, json_object_size(value));
    size_t len = 0;
    const char *name;
    json_t *member;
    json_object_foreach((json_t *)value, name, member)
    {
        usage[len].resource = r->resource = name;
        int rc = table_read(r, member, &usage_keys, &usage[len++]);
        if (rc < 0)
            return in_member(r, name, rc);
    }
    list_set(key, object, usage, len);
    return 0;
}

/* ---- instances --------------------------------------------------------------------------------------------------- */

static const struct enum_word state_words[] = {
    {"reserved", BERTH_RESERVED},
    {"assigned", BERTH_ASSIGNED},
    {"starting", BERTH_STARTING},
    {"running",  BERTH_RUNNING },
    {"stopping", BERTH_STOPPING},
    {"ended",    BERTH_ENDED   },
    {NULL,       0             },
};

static int devices_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    uint64_t bits = 0;
    if (!json_is_array(value))
        return expected(r, "a list of device numbers", value);
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *device = json_array_get(value, i);
        json_int_t number = json_integer_value(device);
        if (!json_is_integer(device) || number < 0 || number >= BERTH_NODE_GPUS_MAX)
            return in_item(r, i, expected(r, "the number of a device, from 0 to 63", device));
        bits |= (uint64_t)1 << number;
    }
    *(uint64_t *)key_field(key, object) = bits;
    return 0;
}

static int ids_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    static const struct key item = {0};
    if (!json_is_array(value))
        return expected(r, "a list of instance ids", value);
    size_t len = json_array_size(value);
    uint64_t *ids = ARENA_ARRAY(r->arena, uint64_t, len);
    for (size_t i = 0; i < len; i++) {
        int rc = u64_read(r, &item, json_array_get(value, i), &ids[i]);
        if (rc < 0)
            return in_item(r, i, rc);
    }
    list_set(key, object, ids, len);
    return 0;
}

static int placed_shape_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    struct berth_shape *shape = ARENA_NEW(r->arena, struct berth_shape);
    int rc = table_read(r, value, &shape_keys, shape);
    if (rc == 0)
        *(const struct berth_shape **)key_field(key, object) = shape;
    return rc;
}

#define AT(field) offsetof(struct instance_entry, field)
#define LIST(field) .at = AT(instance.field), .len_at = AT(instance.field##_len)
static const struct key instance_rows[] = {
    KEY("id", "whole number", "above 0, never used again; required", u64_read, .at = AT(instance.id)),
    KEY("pod", "text", "WORKLOAD/ORDINAL, like `web/0`", text_read, .at = AT(pod)),
    KEY("workload", "text", "instead of `pod`", text_read, .at = AT(instance.workload)),
    KEY("ordinal", "whole number", "instead of `pod`", u32_read, .at = AT(instance.ordinal)),
    KEY("node", "text", "the node; required", text_read, .at = AT(instance.node)),
    KEY("state", "`reserved`, `assigned`, `starting`, `running`, `stopping` or `ended`", "default: `running`",
        word_read, .at = AT(instance.state), .arg = state_words),
    KEY("ready", "true or false", "healthy; default: true while running", choice_read, .at = AT(ready)),
    KEY("found", "true or false",
        "placed by another scheduler: its ports and GPUs may also be allocated to other "
        "instances",
        bool_read, .at = AT(instance.found)),
    KEY("outdated", "true or false", "placed from an older specification: services replace it, a few at a time",
        bool_read, .at = AT(instance.outdated)),
    KEY("since", "time", "since when it has this state", time_read, .at = AT(instance.since_ns)),
    KEY("fence", "duration", "the grace time sent to its node, if longer than that of the workload", duration_read,
        .at = AT(instance.fence_ns)),
    KEY("gpus", "list of device numbers", "allocated GPUs of the node, counted from 0", devices_read,
        .at = AT(instance.gpus)),
    KEY("replaces", "whole number", "the instance that it replaces", u64_read, .at = AT(instance.replaces)),
    KEY("waits", "list of whole numbers", "if reserved: the instances that must stop first", ids_read, LIST(waits)),
    KEY("usage", "{resource: [usage](#usage)}", "as reported by its node", usage_read, LIST(usage)),
    KEY("shape", "keys of a [shape](#shape)", "the shape at placement; default: the current shape of the workload",
        placed_shape_read, .at = AT(instance.shape)),
};
#undef LIST
#undef AT
KEY_TABLE(instance_keys, "instance", instance_rows);

static int pod_split(struct reader *r, const char *pod, struct berth_instance *instance)
{
    const char *slash = strrchr(pod, '/');
    int64_t ordinal;
    if (!slash || slash == pod || slash[1] == '-' || !str_parse_i64(slash + 1, &ordinal) || ordinal > UINT32_MAX)
        return err_set(r->err, EINVAL, "pod: expected WORKLOAD/ORDINAL, like web/0");
    instance->workload = arena_strndup(r->arena, pod, (size_t)(slash - pod));
    instance->ordinal = (uint32_t)ordinal;
    return 0;
}

int instance_entry_finish(struct reader *r, const json_t *value, struct instance_entry *entry)
{
    struct berth_instance *instance = &entry->instance;
    int rc = 0;
    if (entry->pod && (instance->workload || json_object_get(value, "ordinal")))
        return err_set(r->err, EINVAL, "give either pod, or workload and ordinal");
    if (entry->pod && (rc = pod_split(r, entry->pod, instance)) < 0)
        return rc;
    if (!instance->id)
        return missing(r, "id");
    if (!instance->workload)
        return missing(r, "pod");
    if (!instance->node)
        return missing(r, "node");
    instance->ready = entry->ready >= 0 ? entry->ready : instance->state == BERTH_RUNNING;
    return 0;
}

int instance_entry_read(struct reader *r, const json_t *value, struct berth_instance *ret)
{
    struct instance_entry entry = {.instance.state = BERTH_RUNNING, .ready = -1};
    r->labels_len = 0; /* not known: the shape names its own selectors */
    int rc = table_read(r, value, &instance_keys, &entry);
    if (rc == 0)
        rc = instance_entry_finish(r, value, &entry);
    if (rc == 0)
        *ret = entry.instance;
    return rc;
}

/* ---- facts ------------------------------------------------------------------------------------------------------- */

static const struct enum_word fact_words[] = {
    {"usage",       BERTH_FACT_USAGE      },
    {"reservation", BERTH_FACT_RESERVATION},
    {"migration",   BERTH_FACT_MIGRATION  },
    {"since",       BERTH_FACT_SINCE      },
    {"ledger",      BERTH_FACT_LEDGER     },
    {"prediction",  BERTH_FACT_PREDICTION },
    {"policy",      BERTH_FACT_POLICY     },
    {"pressure",    BERTH_FACT_PRESSURE   },
    {NULL,          0                     },
};

#define AT(field) offsetof(struct berth_fact, field)
static const struct key fact_rows[] = {
    KEY("kind", "`usage`, `reservation`, `migration`, `since`, `ledger`, `prediction`, `policy` or `pressure`",
        "required", word_read, .at = AT(kind), .arg = fact_words),
    KEY("subject", "whole number", "the instance that the fact is about", u64_read, .at = AT(subject)),
    KEY("key", "text", "further subject of the fact", text_read, .at = AT(key)),
    KEY("value", "whole number", "the value", i64_read, .at = AT(value)),
    KEY("at", "time", "the time of the value", time_read, .at = AT(at_ns)),
    KEY("over", "true or false", "delete the fact", bool_read, .at = AT(over)),
};
#undef AT
KEY_TABLE(fact_keys, "fact", fact_rows);

int fact_entry_read(struct reader *r, const json_t *value, struct berth_fact *ret)
{
    struct berth_fact fact = {0};
    int rc = table_read(r, value, &fact_keys, &fact);
    if (rc < 0)
        return rc;
    if (!json_object_get(value, "kind"))
        return missing(r, "kind");
    *ret = fact;
    return 0;
}

const char *fact_kind_name(enum berth_fact_kind kind)
{
    for (const struct enum_word *w = fact_words; w->name; w++)
        if (w->value == kind)
            return w->name;
    return "unknown";
}
