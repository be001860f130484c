/* optask.h - OpTasks: operations on nodes (KIND_OPTASK), and how each stands on each node (KIND_OPSTEP).
 *
 * An OpTask is a script under a key, which is its id: the same key with the same content is one OpTask, whoever asks how
 * often, and another content under the key is refused. Its steps are made with it, one for each node; of one with `init`
 * when a node joins. A loop lets them begin, so many at a time, and stops where too many have failed. A step that is to run
 * is in its node's configuration (node_config.c) until the agent has said how it ended; which script failed and was undone
 * meanwhile is the agent's business (agent/optask/optask.h), since the way back must not need this daemon.
 *
 * optask.c: the rules and verbs; optask_loop.c: who begins; optask_drain.c: nodes that are emptied first;
 * optask_index.h: which steps are looked at; optask_report.c: what agents say, nodes that go; optask_config.c: what agents
 * are told.
 */
#pragma once

#include "control/api/crud.h"
#include "wire/doc/optask_doc.h"

struct optasks;
struct optasks *optasks_new(struct control *control);
void optasks_free(struct optasks *o);
/* This has changed, come or gone; the state knows it. */
void optasks_event(struct optasks *o, enum kind kind, const char *id);
/* Lets begin what may; at most one transaction is under way. */
void optasks_step(struct optasks *o);

/* "NODE/OPTASK", in the arena. */
const char *opstep_id(struct arena *arena, const char *node, const char *optask);
/* Those on a node, in order of OpTasks. Valid until the next change. O(log of all). */
const struct object *const *opsteps_of_node(const struct state *s, const char *node, size_t *ret_len);
/* Is it under way: neither waiting nor over? */
static inline bool opstep_active(enum opstep_state state)
{
    return state == OPSTEP_DRAINING || state == OPSTEP_RUNNING || state == OPSTEP_UNDOING;
}
/* Did it fail, even if that was undone or is to be? Only another try ends that. */
static inline bool opstep_failed(const struct opstep_view *v)
{
    return v->state == OPSTEP_FAILED || (v->fault != OPFAULT_NONE && (v->undo || v->state == OPSTEP_UNDONE));
}
/* Is the agent to be told of it? */
static inline bool opstep_listed(const struct opstep_view *v)
{
    return v->state == OPSTEP_RUNNING || v->state == OPSTEP_UNDOING;
}
void opstep_move(json_t *step, enum opstep_state to, int64_t now_ns);
/* Takes away how it ended: fault, error and exit code. */
void opstep_forgive(json_t *step);

/* The step waits for its node to be empty from here on. */
void opstep_drain(struct change *c, const struct object *step, int64_t now_ns);
/* Of a step with a mark: its node is what it was before, now or when it is back, unless another step needs it empty. */
void opstep_give_back(struct change *c, const struct object *step, int64_t now_ns);
/* An administrator says what the node is: nothing is given back later. */
void opsteps_unmark(struct change *c, const char *node);

/* Has a node that joins to wait for an OpTask? */
bool opsteps_hold(const struct state *s, const char *node);

/* What is not done of them, for a node's status: [{"optask", "state"}]; NULL: nothing. A new reference. */
json_t *opsteps_show(const struct state *s, const char *node);

/* A node joins: those with `init` that are for it. `node` is its document as it will be. */
int optasks_join(struct call *c, const char *id, const json_t *node);
/* A node goes, and with it what is known of OpTasks on it. */
void opsteps_release(struct call *c, const char *node);

/* "optasks": those that are to run on a node or to be undone, for its node_config; nothing where there are none. */
struct out;
void optasks_config_write(struct out *o, const struct state *s, const char *node);
/* As long as this is the same, so is what is written of them. */
uint64_t optasks_config_mark(const struct state *s, const char *node);

call_run optask_create, optask_retry, optask_undo, optask_report, optask_of_node;
