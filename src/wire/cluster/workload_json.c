/* workload_json.c - workloads of the cluster file: their own keys and, inline, the keys of their shape. */
#include <assert.h>

#include "wire/doc/objects.h"

static const struct enum_word kind_words[] = {
    {"service", BERTH_SERVICE},
    {"job",     BERTH_JOB    },
    {"vm",      BERTH_VM     },
    {NULL,      0            },
};

static const struct enum_word on_lost_words[] = {
    {"default", BERTH_LOST_DEFAULT},
    {"replace", BERTH_LOST_REPLACE},
    {"fence",   BERTH_LOST_FENCE  },
    {"wait",    BERTH_LOST_WAIT   },
    {NULL,      0                 },
};

static const struct enum_word on_drain_words[] = {
    {"default", BERTH_DRAIN_DEFAULT},
    {"move",    BERTH_DRAIN_MOVE   },
    {"wait",    BERTH_DRAIN_WAIT   },
    {"stop",    BERTH_DRAIN_STOP   },
    {NULL,      0                  },
};

static int gang_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    if (!json_is_boolean(value))
        return text_read(r, key, value, object);
    ((struct workload_entry *)object)->gang_alone = json_is_true(value);
    return 0;
}

#define AT(field) offsetof(struct workload_entry, field)
static const struct key workload_rows[] = {
    KEY("id", "text", "the name; required", text_read, .at = AT(workload.id)),
    KEY("count", "whole number", "makes this many equal workloads, ID-1, ID-2, ...", u32_read, .at = AT(count)),
    KEY("kind", "`service`, `job` or `vm`", "default: `service`", word_read, .at = AT(workload.kind),
        .arg = kind_words),
    KEY("replicas", "whole number", "number of pods, or of tasks of a job; default: 1", u32_read,
        .at = AT(workload.replicas)),
    KEY("priority", "whole number", "workloads with higher priority come first", i32_read, .at = AT(workload.priority)),
    KEY("created", "time", "among equal priorities the earlier comes first, then the lower id", time_read,
        .at = AT(workload.created_ns)),
    KEY("suspended", "true or false", "keep the specification, run no pods", bool_read, .at = AT(workload.suspended)),
    KEY("begin", "time", "nothing is placed before this time; default: at once", time_read,
        .at = AT(workload.begin_ns)),
    KEY("min_available", "whole number",
        "minimum ready pods during voluntary disruptions; default: all but one, "
        "and 1 of 1",
        u32_read, .at = AT(workload.min_available)),
    KEY("on_lost", "`default`, `replace`, `fence` or `wait`",
        "for a lost node: replace at once, after a fence, or wait", word_read, .at = AT(workload.on_lost),
        .arg = on_lost_words),
    KEY("on_drain", "`default`, `move`, `wait` or `stop`",
        "for a drained node: move, wait for the end of the pod, or stop it", word_read, .at = AT(workload.on_drain),
        .arg = on_drain_words),
    KEY("fence", "duration", "time after which a disconnected agent stops the pods; default: 10m", duration_read,
        .at = AT(workload.fence_ns)),
    KEY("gang", "text or true", "workloads of one gang are placed together or not at all; `true`: this one alone",
        gang_read, .at = AT(workload.gang)),
    KEY("gang_min", "whole number", "minimum tasks of this workload that must be placed; default: all", u32_read,
        .at = AT(workload.gang_min)),
    KEY("labels", "{key: text}", "labels for `spread`, `near` and `apart`", labels_read, .at = AT(workload.labels),
        .len_at = AT(workload.labels_len)),
};
#undef AT
KEY_TABLE(workload_keys, "workload", workload_rows);

int workload_parts_read(struct reader *r, const json_t *value, struct workload_entry *entry,
                        const struct object_part *more, size_t more_len)
{
    r->labels = NULL;
    r->labels_len = 0;

    /* The shape's keys may refer to the labels, so the labels are read first. */
    const json_t *labels = json_object_get(value, "labels");
    if (json_is_object(labels)) {
        static const struct key into = {.at = offsetof(struct reader, labels),
                                        .len_at = offsetof(struct reader, labels_len)};
        int rc = labels_read(r, &into, labels, r);
        if (rc < 0)
            return in_member(r, "labels", rc);
    }
    enum { PARTS_MAX = 6 };
    struct object_part parts[PARTS_MAX] = {
        {&workload_keys, entry                 },
        {&shape_keys,    &entry->workload.shape}
    };
    assert(more_len <= PARTS_MAX - 2);
    for (size_t i = 0; i < more_len; i++)
        parts[2 + i] = more[i];
    return object_read(r, value, parts, 2 + more_len);
}

int workload_entry_read(struct reader *r, const json_t *value, struct workload_entry *ret)
{
    struct workload_entry entry = {.workload.replicas = 1, .count = NO_COUNT};
    int rc = workload_parts_read(r, value, &entry, NULL, 0);
    if (rc < 0)
        return rc;
    if (!entry.workload.id || !*entry.workload.id)
        return missing(r, "id");
    *ret = entry;
    return 0;
}
