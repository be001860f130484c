/* what_if_nodes.h - nodes that are not there, and nodes taken away, for a forecast.
 *
 * "Four more like n1", "two fewer with the label rack=r3": what is added is a copy of a node without its history; what is taken
 * away is drained, those that hold the fewest instances first. Drafts alone: nothing of it reaches the state.
 */
#pragma once

#include "control/explain/forecast.h"
#include "wire/text/keys.h"

enum { WHAT_IF_NODES_MAX = 500, WHAT_IF_LISTED_MAX = 32 };

struct what_if_node {
    const char *like, *label; /* exactly one; label is KEY or KEY=VALUE */
    int32_t count;            /* below 0: taken away */
};
extern const struct object_kind what_if_node_kind;

struct what_if_nodes {
    json_t *docs; /* owned: what the drafts say */
    struct forecast_draft *drafts;
    size_t drafts_len, added;
};

/* Drafts for all of `asked`, in the arena. -ENOENT: there is no such node; -EINVAL: fewer are ready than are to go, or more than
 * WHAT_IF_NODES_MAX in all. On failure *ret is empty. */
int what_if_nodes(struct call *c, const struct what_if_node *asked, size_t len, struct arena *arena,
                  struct what_if_nodes *ret);
void what_if_nodes_done(struct what_if_nodes *n);
