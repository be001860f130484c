/* node_status.h - the present status of nodes: use, conditions. In memory only.
 *
 * Every heartbeat has the status. No decision depends on it, and a restarted daemon receives it again within seconds.
 * Each node's configuration is cached beside it, so that neither a heartbeat nor a change of one instance writes the
 * whole configuration anew.
 */
#pragma once

#include "base/str.h"
#include "control/state/state.h"
#include "control/watch/derived.h"
#include "wire/doc/api.h"

struct control;
struct node_statuses;
struct node_statuses *node_statuses_new(void);
void node_statuses_free(struct node_statuses *l);

/* Updates the status by a report; values that the report does not contain stay. */
void node_statuses_report(struct node_statuses *l, const struct object *node, const struct report_doc *said,
                          int64_t now_ns);
/* Adds `usage`, `conditions` and `heard` to a status if the node has reported. */
void node_statuses_show(const struct node_statuses *l, const struct object *node, json_t *status);
/* Returns the current node_config; valid until the state changes. */
const struct node_config *node_statuses_config(struct node_statuses *l, const struct state *s,
                                               const struct object *node);
/* Submits a journal record of nodes' use, as [node, {resource: percent}] in steps of a tenth of capacity. It lists the
 * nodes whose use has changed by a step since their last record; without any there is no record. */
void node_statuses_journal(struct control *c);
/* Writes berth_node_used{node,resource} and berth_node_conditions{node} of the existing nodes. */
void node_statuses_metrics(const struct node_statuses *l, const struct state *s, struct str *to);
