/* session.h - sessions between users and running instances: logs, commands (exec) and signals.
 *
 * A session (struct errand) connects a client of the daemon with the agent of a node. It lives in memory only, on one
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
    RELAY_ERRANDS_MAX = 1000,
    RELAY_USER_MAX = 64,            /* sessions of one user */
    RELAY_PIECE_MAX = 64 * 1024,    /* bytes of one request */
    RELAY_BACKLOG_MAX = 128 * 1024, /* bytes waiting for a reader; with more, the agent waits too */
    RELAY_CURSOR_MAX = 100,         /* bytes of a log cursor, which is opaque except to agents */
};
#define RELAY_AWAY_NS (INT64_C(60) * 1000000000)
#define RELAY_FIRST_NS (INT64_C(2) * 1000000000)   /* a log starts then even without output of the agent */
#define RELAY_SIGNAL_NS (INT64_C(20) * 1000000000) /* timeout of the agent's answer */

struct relay;
struct relay *relay_new(struct control *control);
void relay_free(struct relay *r);
/* Ends sessions that have lost their client or their agent. */
void relay_pump(struct relay *r);
/* Ends sessions with an expired timeout. */
void relay_tick(struct relay *r, int64_t steady_ns);
/* Ends all sessions and answers all waiting requests. Called after watch_hub_stop. */
void relay_stop(struct relay *r);
/* Number of open sessions. */
size_t relay_len(const struct relay *r);

/* Verbs for agents. */
call_run relay_attach, relay_bring;
/* Verbs for users. */
call_run relay_instance_logs, relay_app_logs, relay_job_logs, relay_vm_logs, relay_optask_logs;
call_run relay_exec, relay_signal;
call_run relay_listen, relay_input, relay_resize, relay_close;

extern const struct key_table exec_keys, signal_keys, resize_keys;
