/* cluster_nodes.c - reads the nodes of a cluster file, entry by entry. */
#include "wire/cluster/cluster_nodes.h"

#include <inttypes.h>

#include "base/mem.h"
#include "wire/cluster/cluster_file.h"
#include "wire/doc/objects.h"
#include "wire/text/document.h"

static size_t nodes_of(const struct node_entry *entry)
{
    return entry->count == NO_COUNT ? 1 : entry->count;
}

/* The file was validated before, so entries are valid and within the limits. */
static int nodes_take(const json_t *list, struct cluster_nodes *n, struct berth_err *err)
{
    struct reader r;
    size_t len = json_array_size(list), total = 0, at = 0;
    struct node_entry *entries = ARENA_ARRAY(&n->arena, struct node_entry, len + 1);
    reader_init(&r, &n->arena, err);
    r.copy_text = true;
    for (size_t i = 0; i < len; i++) {
        int rc = node_entry_read(&r, json_array_get(list, i), &entries[i]);
        if (rc < 0)
            return rc;
        total += nodes_of(&entries[i]);
    }
    n->nodes = ARENA_ARRAY(&n->arena, struct berth_node, total + 1);
    n->nodes_len = total;
    for (size_t i = 0; i < len; i++)
        for (size_t k = 0; k < nodes_of(&entries[i]); k++, at++) {
            n->nodes[at] = entries[i].node;
            if (entries[i].count != NO_COUNT)
                n->nodes[at].id = arena_fmt(&n->arena, "%s-%zu", entries[i].node.id, k + 1);
        }
    return 0;
}

static int profiles_take(const json_t *list, struct cluster_nodes *n, struct berth_err *err)
{
    struct reader r;
    size_t len = json_array_size(list);
    struct berth_profile *profiles = ARENA_ARRAY(&n->arena, struct berth_profile, len + 1);
    reader_init(&r, &n->arena, err);
    r.copy_text = true;
    for (size_t i = 0; i < len; i++) {
        int rc = profile_entry_read(&r, json_array_get(list, i), &profiles[i]);
        if (rc < 0)
            return rc;
    }
    n->profiles = profiles;
    n->profiles_len = len;
    return 0;
}

int cluster_nodes_read(const char *path, struct cluster_nodes *ret, struct berth_err *err)
{
    CLEANUP(json) json_t *doc = NULL;
    struct cluster_file file = {0};
    struct cluster_nodes nodes = {0};
    int rc = document_read(path, &doc, err);
    if (rc == 0)
        rc = cluster_file_parse(doc, NULL, NULL, &file, err);
    if (rc < 0)
        return doc ? err_prefix(err, "%s", path) : rc;
    cluster_file_done(&file);
    arena_init(&nodes.arena);
    rc = nodes_take(json_object_get(doc, "nodes"), &nodes, err);
    if (rc == 0)
        rc = profiles_take(json_object_get(doc, "profiles"), &nodes, err);
    if (rc < 0)
        cluster_nodes_done(&nodes);
    else
        *ret = nodes;
    return rc;
}

void cluster_nodes_done(struct cluster_nodes *n)
{
    arena_done(&n->arena);
    *n = (struct cluster_nodes){0};
}
