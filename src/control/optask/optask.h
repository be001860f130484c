/* optask.h - OpTasks: operations on nodes (KIND_OPTASK), and their state on each node (KIND_OPSTEP).
 *
 * An OpTask is a script with a key, which is its ID. Repeated requests with the same key and content are one OpTask;
 * other content under the same key is rejected. Its steps, one per node, are created with it, or, with `init`, when a
 * node joins. A loop starts a limited number of steps at a time, and stops when too many have failed. A running step is
 * in its node's configuration (node_config.c) until the agent has reported how it ended. Which script failed and was
 * undone meanwhile is handled by the agent (agent/optask/optask.h), because undoing must not depend on this daemon.
 *
 * optask.c: rules and verbs; optask_loop.c: which steps start; optask_drain.c: nodes that are drained first;
 * optask_index.h: which steps the loop checks; optask_report.c: agents' reports, released nodes; optask_config.c:
 * configuration for agents.
 */
#pragma once

#include "control/api/crud.h"
#include "wire/doc/optask_doc.h"

struct optask_loop;
struct optask_loop *optasks_new(struct control *control);
void optasks_free(struct optask_loop *o);
/* Handles a changed, new or deleted object; the state knows the change already. */
void optasks_event(struct optask_loop *o, enum kind kind, const char *id);
/* Starts the steps that may start; at most one transaction is in progress. */
void optasks_step(struct optask_loop *o);

/* Returns "NODE/OPTASK", in the arena. */
const char *opstep_id(struct arena *arena, const char *node, const char *optask);
/* Returns the steps on a node, ordered by OpTask. Valid until the next change. O(log of all steps). */
const struct object *const *opsteps_of_node(const struct state *s, const char *node, size_t *ret_len);
/* Returns whether the step is in progress: neither pending nor ended. */
static inline bool opstep_active(enum opstep_state state)
{
    return state == OPSTEP_DRAINING || state == OPSTEP_RUNNING || state == OPSTEP_UNDOING;
}
/* Returns whether the step has failed, even if it was undone or is to be. Only a retry clears that. */
static inline bool opstep_failed(const struct opstep_view *v)
{
    return v->state == OPSTEP_FAILED || (v->fault != OPFAULT_NONE && (v->undo || v->state == OPSTEP_UNDONE));
}
/* Returns whether the agent's configuration contains the step. */
static inline bool opstep_listed(const struct opstep_view *v)
{
    return v->state == OPSTEP_RUNNING || v->state == OPSTEP_UNDOING;
}
void opstep_move(json_t *step, enum opstep_state to, int64_t now_ns);
/* Removes fault, error and exit code of the last attempt. */
void opstep_clear_fault(json_t *step);

/* Drains the node; the step waits until it is empty. */
void opstep_drain(struct change *c, const struct object *step, int64_t now_ns);
/* For a step with a mark: restores the node's previous state, now or when the node is back, unless another step needs
 * the node drained. */
void opstep_restore_node(struct change *c, const struct object *step, int64_t now_ns);
/* Removes the marks of a node whose state an administrator has set: no state is restored later. */
void opsteps_unmark(struct change *c, const char *node);

/* Returns whether a joining node has to wait for an OpTask. */
bool opsteps_block_join(const struct state *s, const char *node);

/* Returns the unfinished steps for a node's status: [{"optask", "state"}]; NULL: none. A new reference. */
json_t *opsteps_show(const struct state *s, const char *node);

/* Creates the steps of OpTasks with `init` for a joining node. `node` is its document as it will be written. */
int optasks_join(struct request *c, const char *id, const json_t *node);
/* Deletes the steps of a released node. */
void opsteps_release(struct request *c, const char *node);

/* Writes the member "optasks" of a node_config: steps to run or to undo; writes nothing if there are none. */
struct json_out;
void optasks_config_write(struct json_out *o, const struct state *s, const char *node);
/* Returns a hash; as long as it is unchanged, optasks_config_write writes the same. */
uint64_t optasks_config_mark(const struct state *s, const char *node);

request_verb optask_create, optask_retry, optask_undo, optask_report, optask_of_node;
