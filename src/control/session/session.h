/* session.h - sessions between users and running instances: logs, commands (exec) and signals.
 *
 * A session connects a client of the daemon with the agent of a node. It lives in memory only, on one
 * thread, and knows neither sockets nor the content. The agent learns of a session from its stream (GET
 * /v1/nodes/{id}/calls). The agent sends output as requests (POST .../calls/{call}), which the daemon forwards to the
 * client that opened the session. docs/node-config.md defines the lines.
 *
 * Everything is bounded: sessions of one user and in total, bytes that wait for a reader or an agent (a request that
 * brings more is answered only when there is room, so nothing is stored twice and nothing is dropped), and the time
 * that a reader or an agent may be disconnected. A session ends when its client disconnects, and when its agent
 * reconnects: an agent drops its sessions with the connection, because lines and output in transit may be lost.
 *
 * session.c: sessions and agents; session_agent.c: the routes of agents; session_user.c: the routes of users.
 */
#pragma once

#include "control/api/request.h"

enum {
    SESSIONS_MAX = 1000,
    SESSIONS_USER_MAX = 64,           /* sessions of one user */
    SESSION_BODY_MAX = 64 * 1024,     /* bytes of one request */
    SESSION_BACKLOG_MAX = 128 * 1024, /* bytes waiting for a reader; with more, the agent waits too */
    SESSION_CURSOR_MAX = 100,         /* bytes of a log cursor, which is opaque except to agents */
};
#define SESSION_AWAY_NS (INT64_C(60) * 1000000000)
#define SESSION_FIRST_OUTPUT_NS (INT64_C(2) * 1000000000) /* a log starts then even without output of the agent */
#define SESSION_SIGNAL_NS (INT64_C(20) * 1000000000)      /* timeout of the agent's answer */

struct session_hub;
struct session_hub *session_hub_new(struct control *control);
void session_hub_free(struct session_hub *r);
/* Ends sessions that have lost their client or their agent. */
void session_hub_pump(struct session_hub *r);
/* Ends sessions with an expired timeout. */
void session_hub_tick(struct session_hub *r, int64_t steady_ns);
/* Ends all sessions and answers all waiting requests. Called after watch_hub_stop. */
void session_hub_stop(struct session_hub *r);
/* Number of open sessions. */
size_t session_hub_len(const struct session_hub *r);

/* Verbs for agents. */
request_verb session_agent_stream, session_agent_output;
/* Verbs for users. */
request_verb session_instance_logs, session_app_logs, session_job_logs, session_vm_logs, session_optask_logs;
request_verb session_exec, session_signal;
request_verb session_output, session_input, session_resize, session_delete;

extern const struct key_table exec_keys, signal_keys, resize_keys;
