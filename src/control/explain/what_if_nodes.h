/* what_if_nodes.h - hypothetical nodes for a forecast: added or removed.
 *
 * For requests such as "four more like n1" or "two fewer with the label rack=r3". An added node is a copy of a node
 * without its state; a removed node is drained, the nodes with the fewest instances first. All changes are drafts:
 * nothing of it changes the state.
 */
#pragma once

#include "control/explain/forecast.h"
#include "wire/text/keys.h"

enum { WHAT_IF_NODES_MAX = 500, WHAT_IF_LISTED_MAX = 32 };

struct what_if_node {
    const char *like, *label; /* exactly one is set; label is KEY or KEY=VALUE */
    int32_t count;            /* negative: removed */
};
extern const struct object_kind what_if_node_kind;

struct what_if_nodes {
    json_t *docs; /* owned: documents of the drafts */
    struct forecast_draft *drafts;
    size_t drafts_len, added;
};

/* Makes the drafts for `spec`, in the arena. -ENOENT: no such node; -EINVAL: fewer ready nodes than are to be removed,
 * or more than WHAT_IF_NODES_MAX in total. On failure *ret is empty. */
int what_if_nodes(struct request *c, const struct what_if_node *spec, size_t len, struct arena *arena,
                  struct what_if_nodes *ret);
void what_if_nodes_done(struct what_if_nodes *n);
