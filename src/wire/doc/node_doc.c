/* node_doc.c - documents of nodes, volumes, resources and profiles: the keys of the cluster file and those of the
 * daemon.
 */
#include <errno.h>
#include <string.h>

#include "wire/doc/objects.h"

#define AT(field) offsetof(struct node_doc, field)
static const struct key agent_rows[] = {
    KEY("address", "text", "address at which instances are reachable; default: the id", line_read, .at = AT(address)),
    KEY("disabled", "true or false", "disabled by an administrator; enable it with `enable`", bool_read,
        .at = AT(disabled)),
    KEY("was", "state", "state before the node was lost; set by the daemon", line_read, .at = AT(was)),
    KEY("epoch", "whole number", "epoch of the agent that reported last; set by the daemon", counter_read,
        .at = AT(epoch)),
    KEY("seq", "whole number", "number of the last report that changed something; set by the daemon", counter_read,
        .at = AT(seq)),
    KEY("joined", "whole number", "serial in the certificates of its agent since it joined; set by the daemon",
        counter_read, .at = AT(joined)),
    KEY("probed", "object", "resources of the machine, as reported by the agent; set by the daemon", tree_read,
        .at = AT(probed)),
    KEY("ceiling", "{resource: amount}",
        "upper limit of `allocatable`: as set, or as probed at joining; set by the daemon", tree_read,
        .at = AT(ceiling)),
};
#undef AT
static KEY_TABLE(agent_keys, "agent", agent_rows);

static const struct enum_word volume_words[] = {
    {"local", VOLUME_LOCAL},
    {"bind",  VOLUME_BIND },
    {"tmpfs", VOLUME_TMPFS},
    {NULL,    0           },
};

#define AT(field) offsetof(struct volume_doc, field)
static const struct key owned_rows[] = {
    KEY("owner", "user", "default: the caller", line_read, .at = AT(owner)),
    KEY("group", "group", "group of the owner; set by the daemon", line_read, .at = AT(group)),
    KEY("type", "`local`, `bind` or `tmpfs`",
        "a folder on the node of first use; an existing folder of the node; memory. Default: `local`", word_read,
        .at = AT(type), .arg = volume_words),
    KEY("path", "path", "for `bind`: the folder; needs the permission `nodes: all`", absolute_read, .at = AT(path)),
    KEY("size", "amount", "size of a `tmpfs`", quantity_read, .at = AT(size_bytes), .arg = "memory"),
};
#undef AT
static KEY_TABLE(owned_keys, "owned", owned_rows);

const struct key_table *const node_tables[] = {&node_keys, &agent_keys, &meta_keys, &created_keys, NULL};
const struct key_table *const volume_tables[] = {&volume_keys, &owned_keys, &meta_keys, &created_keys, NULL};
const struct key_table *const resource_tables[] = {&resource_keys, &identity_keys, &meta_keys, &created_keys, NULL};
const struct key_table *const profile_tables[] = {&profile_keys, &identity_keys, &meta_keys, &created_keys, NULL};

/* Returns whether the agent reports this device as healthy. A device with a uuid is healthy if the report lists it
 * without "unhealthy". Other devices are matched by position, and are healthy if the report has no list of GPUs. */
static bool gpu_is_healthy(const json_t *list, const char *uuid, size_t device)
{
    const json_t *said = NULL, *one;
    size_t i;
    json_array_foreach(list, i, one)
    {
        const char *name = json_string_value(json_object_get(one, "uuid"));
        if (uuid ? name && strcmp(name, uuid) == 0 : i == device)
            said = one;
    }
    return said ? !json_object_get(said, "unhealthy") : !uuid && !json_is_array(list);
}

/* Derives the health of the GPUs from the agent's report; it is not stored separately. */
static void gpus_health_apply(struct arena *arena, const struct node_doc *d, struct berth_node *node)
{
    const json_t *list = json_object_get(d->probed, "gpus");
    if (!d->probed || !node->gpus_len)
        return;
    struct berth_gpu *gpus = arena_dup(arena, node->gpus, node->gpus_len * sizeof *gpus);
    for (size_t i = 0; i < node->gpus_len; i++)
        gpus[i].unhealthy = gpus[i].unhealthy || !gpu_is_healthy(list, d->gpu_uuids[i], i);
    node->gpus = gpus;
}

int node_doc_read(const json_t *doc, struct arena *arena, struct node_doc *ret, struct berth_err *err)
{
    struct berth_err own = {0};
    struct reader r;
    reader_init(&r, arena, err ? err : &own);
    struct node_doc d = {0};
    struct node_entry entry = {.count = NO_COUNT};
    const struct object_part parts[] = {
        {&node_keys,    &entry },
        {&agent_keys,   &d     },
        {&meta_keys,    &d.meta},
        {&created_keys, &d.meta},
    };
    int rc = object_read(&r, doc, parts, sizeof parts / sizeof *parts);
    if (rc == 0)
        rc = meta_finish(&r, &d.meta, entry.node.id);
    if (rc < 0)
        return rc;
    if (entry.count != NO_COUNT)
        return err_set(err, EINVAL, "count: is only for cluster files; add nodes one by one");
    d.gpu_uuids = entry.gpu_uuids;
    gpus_health_apply(arena, &d, &entry.node);
    d.node = entry.node;
    *ret = d;
    return 0;
}

int volume_doc_read(const json_t *doc, struct arena *arena, struct volume_doc *ret, struct berth_err *err)
{
    struct berth_err own = {0};
    struct reader r;
    reader_init(&r, arena, err ? err : &own);
    struct volume_doc d = {0};
    const struct object_part parts[] = {
        {&volume_keys,  &d.volume},
        {&owned_keys,   &d       },
        {&meta_keys,    &d.meta  },
        {&created_keys, &d.meta  },
    };
    int rc = object_read(&r, doc, parts, sizeof parts / sizeof *parts);
    if (rc == 0)
        rc = meta_finish(&r, &d.meta, d.volume.id);
    if (rc < 0)
        return rc;
    if ((d.type == VOLUME_BIND) != (d.path != NULL))
        return err_set(r.err, EINVAL, d.path ? "path: is only for volumes of type bind" : "path: missing");
    if ((d.type == VOLUME_TMPFS) != (d.size_bytes > 0))
        return err_set(r.err, EINVAL, d.size_bytes ? "size: is only for volumes of type tmpfs" : "size: missing");
    *ret = d;
    return 0;
}

/* Reads an object with a name; the id is the default of the name. */
static int named_read(struct reader *r, const json_t *doc, const struct key_table *table, void *object,
                      const char **name, struct doc_meta *meta)
{
    const struct object_part parts[] = {
        {table,          object},
        {&identity_keys, meta  },
        {&meta_keys,     meta  },
        {&created_keys,  meta  },
    };
    int rc = object_read(r, doc, parts, sizeof parts / sizeof *parts);
    if (rc == 0)
        rc = meta_finish(r, meta, meta->id ? meta->id : *name);
    if (rc == 0 && (!*name || !**name))
        *name = meta->id;
    return rc;
}

int resource_doc_read(const json_t *doc, struct arena *arena, struct doc_meta *ret_meta, struct berth_resource *ret,
                      struct berth_err *err)
{
    struct berth_err own = {0};
    struct reader r;
    reader_init(&r, arena, err ? err : &own);
    struct doc_meta meta = {0};
    struct berth_resource resource = {0};
    int rc = named_read(&r, doc, &resource_keys, &resource, &resource.name, &meta);
    if (rc < 0)
        return rc;
    *ret_meta = meta;
    *ret = resource;
    return 0;
}

int profile_doc_read(const json_t *doc, struct arena *arena, struct doc_meta *ret_meta, struct berth_profile *ret,
                     struct berth_err *err)
{
    struct berth_err own = {0};
    struct reader r;
    reader_init(&r, arena, err ? err : &own);
    r.copy_text = true; /* plans use the profile after the document is freed */
    struct doc_meta meta = {0};
    struct berth_profile profile = {0};
    int rc = named_read(&r, doc, &profile_keys, &profile, &profile.name, &meta);
    if (rc < 0)
        return rc;
    *ret_meta = meta;
    *ret = profile;
    return 0;
}
