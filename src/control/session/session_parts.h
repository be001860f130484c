/* session_parts.h - internals of sessions; only for session*.c. */
#pragma once

#include "base/vec.h"
#include "control/control.h"
#include "control/session/session.h"
#include "control/watch/watch.h"

enum { SESSION_ID_LEN = 16 };

enum session_verb { SESSION_LOGS, SESSION_EXEC, SESSION_SIGNAL };

/* A node's agent, kept while it is connected or while sessions wait for it. */
struct agent_connection {
    struct session_hub *session_hub;
    char *node;
    uint64_t epoch;
    struct stream *stream; /* NULL: disconnected */
    bool up;               /* the stream has started */
    int64_t away_ns;       /* steady clock: time of the disconnect */
    size_t sessions;
};

struct session {
    struct session_hub *session_hub;
    struct session *next, **link;
    char id[SESSION_ID_LEN + 1];
    enum session_verb verb;
    char *user; /* the user that opened the session */
    struct agent_connection *agent;
    struct stream *stream; /* the client's stream; NULL: not connected yet */
    struct request *asked; /* request that waits for the agent's first output (logs) or final answer (signals) */
    struct request *agent_request; /* the agent's request with output that waits for room */
    struct request *input;         /* the client's request with input that waits for room */
    /* `lines`: the log is sent as lines of JSON; `headed`: the first line, with the instance, was sent */
    bool lines, headed;
    uint64_t instance; /* source of the log; 0: an OpTask */
    bool eof;          /* end of input was sent */
    bool resized;      /* the new size is not sent yet */
    uint32_t rows, columns;
    const char *why;  /* reason of a pending end; NULL: none */
    bool again;       /* the reader of a log may resume at once */
    int64_t since_ns; /* steady clock: when the session was opened */
};

struct session_hub {
    struct control *control;
    VEC(struct agent_connection *) agents; /* sorted by node */
    struct session *sessions;
    size_t len;
    bool stopping;
};

/* ---- session.c ---- */

int64_t session_hub_now_ns(const struct session_hub *r);
/* Requests a call of session_hub_pump soon. */
void session_hub_wake(struct session_hub *r);
/* Returns NULL if no such agent is known. */
struct agent_connection *agent_find(const struct session_hub *r, const char *node);
/* Returns the agent of a node, creating the entry if needed. */
struct agent_connection *agent_get(struct session_hub *r, const char *node);
/* Returns NULL if there is no such session, or if its end is pending. */
struct session *session_find(const struct session_hub *r, const char *id);
/* Checks that the limits permit one more session of this user, and that the node's agent is connected. -EDQUOT, -ENOSPC
 * with c->err. */
int session_check(struct request *c, const char *user, const char *node);
/* Checks the limits, opens a session and tells the agent: `line` is a JSON object to which "call" is added. */
int session_open(struct request *c, enum session_verb verb, const char *id, const char *user, const char *node,
                 const json_t *line, struct session **ret);
/* Ends and frees the session; notifies the agent and all waiting requests. `why` NULL: the client has closed the
 * session. */
void session_close(struct session *e, const char *why);
/* Frees a session that has ended normally, without notifications. */
void session_free(struct session *e);
/* Sends a line about the session to its agent, which must have room. */
void session_send_to_agent(struct session *e, json_t *line);
/* Forwards a client's input to the agent and fills in the answer. Returns false if there is no room now. */
bool session_input_forward(struct session *e, struct request *c);
/* Sends what waits for the agent, as far as there is room. */
void session_flush(struct session *e);
/* Tells whether the client's stream has room for output of the agent. */
bool session_has_room(const struct session *e);
/* Forwards output of the agent to the client, and fills in the answer. Returns -EINVAL with the error of `brought`. May
 * free the session. */
int session_output_forward(struct session *e, struct request *agent_request);
/* Answers the request in `asked`. */
void session_answer(struct session *e, int rc);
/* Makes a random id that cannot be guessed. */
void session_id_make(const struct control *control, char ret[static SESSION_ID_LEN + 1]);

extern const struct stream_feed agent_feed, lines_feed, text_feed;
