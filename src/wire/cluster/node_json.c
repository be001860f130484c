/* node_json.c - nodes, volumes and resources of the cluster file. */
#include <errno.h>
#include <string.h>

#include "wire/doc/objects.h"
#include "wire/text/quantity.h"
#include "wire/text/words.h"

/* ---- GPUs -------------------------------------------------------------------------------------------------------- */

struct gpu_entry {
    struct berth_gpu gpu;
    const char *uuid; /* for agents; the model ignores it */
    uint32_t count;
};

#define AT(field) offsetof(struct gpu_entry, field)
static const struct key gpu_rows[] = {
    KEY("count", "whole number", "number of equal devices; default: 1", u32_read, .at = AT(count)),
    KEY("model", "text", "not case-sensitive", text_read, .at = AT(gpu.model)),
    KEY("memory", "amount", "memory of each device", quantity_read, .at = AT(gpu.memory_bytes), .arg = "memory"),
    KEY("unhealthy", "true or false", "unhealthy: current holders stay, no new placements", bool_read,
        .at = AT(gpu.unhealthy)),
    KEY("uuid", "text", "the driver's identifier of a single device", line_read, .at = AT(uuid)),
};
#undef AT
KEY_TABLE(gpu_keys, "gpus", gpu_rows);

static const struct gpu_entry gpu_initial = {.count = 1};
static const struct object_kind gpu_kind = {.table = &gpu_keys,
                                            .size = sizeof(struct gpu_entry),
                                            .initial = &gpu_initial};

struct gpu_list {
    const struct gpu_entry *at;
    size_t len;
};

/* Rejects a duplicate uuid: the same device would be allocated twice. */
static int uuid_check(struct reader *r, const struct gpu_entry *entries, size_t i)
{
    char quoted[QUOTE_MAX];
    const char *uuid = entries[i].uuid;
    if (!uuid)
        return 0;
    if (entries[i].count != 1)
        return in_item(r, i, err_set(r->err, EINVAL, "uuid: identifies one device; leave out the count"));
    for (size_t k = 0; k < i; k++)
        if (entries[k].uuid && strcmp(entries[k].uuid, uuid) == 0)
            return in_item(r, i, err_set(r->err, EINVAL, "uuid: %s is listed twice", quote(uuid, quoted)));
    return 0;
}

static int gpus_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    static const struct key into = {
        .at = offsetof(struct gpu_list, at), .len_at = offsetof(struct gpu_list, len), .arg = &gpu_kind};
    struct gpu_list entries = {0};
    int rc = objects_read(r, &into, value, &entries);
    if (rc < 0)
        return rc;

    uint64_t total = 0;
    for (size_t i = 0; i < entries.len; i++)
        total += entries.at[i].count;
    if (total > BERTH_NODE_GPUS_MAX)
        return err_set(r->err, ERANGE, "more than %d devices", BERTH_NODE_GPUS_MAX);
    struct berth_gpu *gpus = ARENA_ARRAY(r->arena, struct berth_gpu, total);
    const char **uuids = ARENA_ARRAY(r->arena, const char *, total);
    size_t device = 0;
    for (size_t i = 0; i < entries.len; i++) {
        rc = uuid_check(r, entries.at, i);
        if (rc < 0)
            return rc;
        for (uint32_t n = 0; n < entries.at[i].count; n++, device++) {
            gpus[device] = entries.at[i].gpu;
            uuids[device] = entries.at[i].uuid;
        }
    }
    list_set(key, object, gpus, total);
    ((struct node_entry *)object)->gpu_uuids = uuids;
    return 0;
}

/* ---- images ------------------------------------------------------------------------------------------------------ */

static const struct key image_rows[] = {
    KEY("name", "text", "the name that workloads use; required", text_read, .at = offsetof(struct berth_image, name)),
    KEY("size", "amount", "the size that need not be downloaded", quantity_read,
        .at = offsetof(struct berth_image, size_bytes), .arg = "storage"),
};
KEY_TABLE(image_keys, "image", image_rows);

static int image_finish(struct reader *r, void *item)
{
    return ((const struct berth_image *)item)->name ? 0 : missing(r, "name");
}

static int image_short(struct reader *r, const json_t *value, void *item)
{
    return text_of(r, value, &((struct berth_image *)item)->name);
}

static const struct object_kind image_kind = {.table = &image_keys,
                                              .size = sizeof(struct berth_image),
                                              .read_short = image_short,
                                              .finish = image_finish};

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

static const struct enum_word state_words[] = {
    {"ready",    BERTH_NODE_READY   },
    {"joining",  BERTH_NODE_JOINING },
    {"cordoned", BERTH_NODE_CORDONED},
    {"draining", BERTH_NODE_DRAINING},
    {"lost",     BERTH_NODE_LOST    },
    {NULL,       0                  },
};

#define AT(field) offsetof(struct node_entry, field)
#define LIST(field) .at = AT(node.field), .len_at = AT(node.field##_len)
static const struct key node_rows[] = {
    KEY("id", "text", "the name; required", text_read, .at = AT(node.id)),
    KEY("count", "whole number", "makes this many equal nodes, ID-1, ID-2, ...", u32_read, .at = AT(count)),
    KEY("state", "`ready`, `joining`, `cordoned`, `draining` or `lost`", "default: `ready`", word_read,
        .at = AT(node.state), .arg = state_words),
    KEY("since", "time", "since when it has this state", time_read, .at = AT(node.since_ns)),
    KEY("zone", "text", "failure domain: a building, a data centre", text_read, .at = AT(node.zone)),
    KEY("rack", "text", "failure domain: a rack, a room", text_read, .at = AT(node.rack)),
    KEY("domain", "text", "administrative domain, which workloads may name in `domains`", text_read,
        .at = AT(node.domain)),
    KEY("arch", "text", "processor architecture, like `amd64`", text_read, .at = AT(node.arch)),
    KEY("rank", "whole number", "among nodes with equal scores the lowest rank is chosen", u32_read,
        .at = AT(node.rank)),
    KEY("labels", "{key: text}", "labels for `require` and `prefer`", labels_read, LIST(labels)),
    KEY("taints", "list of [taint](#taint)", "repel pods that do not tolerate them", objects_read, LIST(taints),
        .arg = &taint_kind),
    KEY("allocatable", "{resource: amount}", "resources for pods: the total minus the needs of the system",
        amounts_read, LIST(allocatable)),
    KEY("overcommit", "{resource: ratio}", "ratio of allocatable that may be allocated; default: 1", ratios_read,
        LIST(overcommit)),
    KEY("consumed", "{resource: amount}", "consumed amounts of cumulative resources", amounts_read, LIST(consumed)),
    KEY("consumed_since", "time", "start time of that consumption", time_read, .at = AT(node.consumed_ns)),
    KEY("consumed_begun", "{resource: time}", "start times that differ for single resources", times_read,
        LIST(consumed_begun)),
    KEY("used", "{resource: amount}", "measured use of the whole machine; relevant for `cpu` and `memory`",
        amounts_read, LIST(used)),
    KEY("gpus", "list of [gpus](#gpus)", "GPUs, listed one by one or with a count", gpus_read, LIST(gpus)),
    KEY("runtimes", "list of texts", "supported runtimes, like `process`, `oci`, `vm`; default: all", texts_read,
        LIST(runtimes)),
    KEY("images", "list of [image](#image)", "container images that the node already has", objects_read, LIST(images),
        .arg = &image_kind),
    KEY("ports", "list of [port](#port)", "ports used by the system itself", objects_read, LIST(ports),
        .arg = &port_kind),
    KEY("page_size", "amount", "the only huge-page size of the node; default: any", quantity_read,
        .at = AT(node.page_size_bytes), .arg = "memory"),
};
#undef LIST
#undef AT
KEY_TABLE(node_keys, "node", node_rows);

int node_entry_read(struct reader *r, const json_t *value, struct node_entry *ret)
{
    struct node_entry entry = {.count = NO_COUNT};
    int rc = table_read(r, value, &node_keys, &entry);
    if (rc < 0)
        return rc;
    if (!entry.node.id || !*entry.node.id)
        return missing(r, "id");
    *ret = entry;
    return 0;
}

/* ---- resources --------------------------------------------------------------------------------------------------- */

static const struct enum_word kind_words[] = {
    {"instant",    BERTH_INSTANT   },
    {"cumulative", BERTH_CUMULATIVE},
    {NULL,         0               },
};

#define AT(field) offsetof(struct berth_resource, field)
static const struct key resource_rows[] = {
    KEY("name", "text", "required", text_read, .at = AT(name)),
    KEY("kind", "`instant` or `cumulative`",
        "freed at the end of a pod (`instant`), or used up (`cumulative`); "
        "default: `instant`",
        word_read, .at = AT(kind), .arg = kind_words),
    KEY("period", "duration", "period after which consumption restarts at zero; default: never", duration_read,
        .at = AT(period_ns)),
};
#undef AT
KEY_TABLE(resource_keys, "resource", resource_rows);

int resource_entry_read(struct reader *r, const json_t *value, struct berth_resource *ret)
{
    struct berth_resource resource = {0};
    int rc = table_read(r, value, &resource_keys, &resource);
    if (rc < 0)
        return rc;
    if (!resource.name || !*resource.name)
        return missing(r, "name");
    *ret = resource;
    return 0;
}

/* ---- volumes ----------------------------------------------------------------------------------------------------- */

#define AT(field) offsetof(struct berth_volume, field)
static const struct key volume_rows[] = {
    KEY("id", "text", "the name; required", text_read, .at = AT(id)),
    KEY("zone", "text", "zone in which the volume is accessible; default: everywhere", text_read, .at = AT(zone)),
    KEY("node", "text", "the only node on which the volume is accessible", text_read, .at = AT(node)),
    KEY("driver", "text", "counts against the node's resource `attach-DRIVER`", text_read, .at = AT(driver)),
    KEY("shared", "true or false", "can be mounted on several nodes at once", bool_read, .at = AT(shared)),
};
#undef AT
KEY_TABLE(volume_keys, "volume", volume_rows);

int volume_entry_read(struct reader *r, const json_t *value, struct berth_volume *ret)
{
    struct berth_volume volume = {0};
    int rc = table_read(r, value, &volume_keys, &volume);
    if (rc < 0)
        return rc;
    if (!volume.id || !*volume.id)
        return missing(r, "id");
    *ret = volume;
    return 0;
}
