/* node_status.h - what nodes say of themselves at present: use, conditions. In memory only.
 *
 * It comes with every heartbeat, no decision depends on it, and a daemon that starts hears it again within seconds. Beside
 * it stands each node's configuration, so that neither a heartbeat nor a change of one instance makes all of it anew.
 */
#pragma once

#include "base/str.h"
#include "control/state/state.h"
#include "control/watch/derived.h"
#include "wire/doc/api.h"

struct control;
struct node_lives;
struct node_lives *node_lives_new(void);
void node_lives_free(struct node_lives *l);

/* A report has come; what it does not say of the node stays as it was. */
void node_lives_hear(struct node_lives *l, const struct object *node, const struct report_doc *said, int64_t now_ns);
/* Adds `usage`, `conditions` and `heard` to a status, where something was heard. */
void node_lives_show(const struct node_lives *l, const struct object *node, json_t *status);
/* node_config as it is now, until the state changes. */
const struct node_config *node_lives_config(struct node_lives *l, const struct state *s, const struct object *node);
/* For the journal: what nodes use, in steps of a tenth of what they have, as [node, {resource: per cent}]. Submits a
 * record with the nodes of which that has changed by a step since it was recorded last, if there are any. */
void node_lives_write(struct control *c);
/* berth_node_used{node,resource} and berth_node_conditions{node} of those that are there. */
void node_lives_metrics(const struct node_lives *l, const struct state *s, struct str *to);
