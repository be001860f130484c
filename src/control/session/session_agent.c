/* session_agent.c - the routes of agents: the stream that announces sessions, and the output of sessions. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "control/api/crud.h"
#include "control/control_parts.h"
#include "control/session/session_parts.h"
#include "wire/text/words.h"

/* Returns the node that an argument names, if the caller is its agent; NULL otherwise. */
static const struct object *own_node(struct request *c)
{
    const char *id;
    if (crud_id(c, KIND_NODE, c->args[0], &id) < 0)
        return NULL;
    const struct object *node = state_find(c->state, KIND_NODE, id);
    return node && permit(&c->caller, PERMIT_REPORT, node->id, "") ? node : NULL;
}

/* Ends the agent's previous connection and its sessions, which the agent has dropped with that connection. */
static void agent_replace(struct agent_connection *a, uint64_t epoch)
{
    static const char replaced[] = "{\"type\":\"end\",\"code\":\"replaced\"}\n";
    for (struct session *e = a->session_hub->sessions; e; e = e->next) {
        if (e->agent != a || e->why)
            continue;
        e->why = epoch != a->epoch ? "the agent of the node was restarted" : "the connection to the node broke";
        e->again = true;
    }
    a->epoch = epoch;
    if (a->up)
        stream_write(a->stream, replaced, sizeof replaced - 1);
    if (a->up) /* the stream may have ended during the write */
        stream_finish(a->stream);
    a->up = false;
}

int session_agent_stream(struct request *c)
{
    const struct object *node = own_node(c);
    uint64_t epoch;
    if (!node)
        return crud_not_found(c, KIND_NODE, c->args[0]);
    if (!request_query(c, "epoch"))
        return err_set(&c->err, EINVAL, "epoch: expected the number by which the agent reports");
    int rc = request_query_number(c, "epoch", 1, INT64_MAX, 0, &epoch);
    if (rc < 0)
        return rc;
    struct agent_connection *a = agent_get(c->control->session_hub, node->id);
    uint64_t known = a->epoch > node->node->epoch ? a->epoch : node->node->epoch;
    if (epoch < known)
        return err_set(&c->err, EAGAIN, "node %s: epoch %" PRIu64 " is already known; a newer agent is running",
                       node->id, known);
    if (a->stream && !a->up)
        return err_set(&c->err, EBUSY, "node %s: another connection of its agent is being opened", node->id);
    struct stream *stream = NULL;
    rc = stream_feed_open(c, &agent_feed, a, &stream);
    if (rc < 0)
        return rc;
    agent_replace(a, epoch);
    a->stream = stream;
    return 0;
}

/* The same text for every cause: an agent learns nothing about the sessions of other agents. */
static int session_missing(struct request *c)
{
    char quoted[QUOTE_MAX];
    return err_set(&c->err, ENOENT, "no client is connected to call %s", quote(c->args[1], quoted));
}

int session_agent_output(struct request *c)
{
    const struct object *node = own_node(c);
    struct session *e = session_find(c->control->session_hub, c->args[1]);
    if (!node || !e || strcmp(e->agent->node, node->id) != 0)
        return session_missing(c);
    const char *stream = request_query(c, "stream"), *end = request_query(c, "end");
    bool ends = end && strcmp(end, "true") == 0;
    if (!ends && (!stream || (strcmp(stream, "out") != 0 && strcmp(stream, "err") != 0)))
        return err_set(&c->err, EINVAL, "stream: expected out or err, unless end is true");
    struct request *earlier = take_ptr(&e->agent_request);
    if (earlier) /* its sender has given up waiting */
        request_answer(earlier, err_set(&earlier->err, EBUSY,
                                        "another input arrived before this one was processed; send one "
                                        "at a time"));
    if (session_has_room(e))
        return session_output_forward(e, c);
    e->agent_request = c;
    c->later = true;
    return 0;
}
