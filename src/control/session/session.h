/* session.h - people talk to what runs: logs, shells and signals go through the daemon to a node's agent and back.
 *
 * An errand is one of these. It lives in memory only, on one thread, and knows neither sockets nor what is said: the
 * agent hears of it by its stream (GET /v1/nodes/{id}/calls), its words come back as requests (POST .../calls/{call}), and
 * go to whoever opened it. docs/node-config.md, "Errands", has the lines.
 *
 * Everything is bounded: errands of one user and in all, bytes that wait for a reader or an agent (a request that brings
 * more is answered only when there is room, so nothing is kept twice and nothing is dropped), and the time that a reader
 * or an agent may be away. An errand ends when its listener goes, and when its agent connects anew: with the
 * connection an agent drops what it was at, since lines and pieces on their way may be lost.
 *
 * session.c: errands and agents; session_agent.c: the agents' routes; session_user.c: everybody else's.
 */
#pragma once

#include "control/api/request.h"

enum {
    RELAY_ERRANDS_MAX = 1000,
    RELAY_USER_MAX = 64,            /* of one user */
    RELAY_PIECE_MAX = 64 * 1024,    /* bytes of one request */
    RELAY_BACKLOG_MAX = 128 * 1024, /* bytes that wait for a reader before its agent waits too */
    RELAY_CURSOR_MAX = 100,         /* bytes of a log's cursor, which only agents understand */
};
#define RELAY_AWAY_NS (INT64_C(60) * 1000000000)
#define RELAY_FIRST_NS (INT64_C(2) * 1000000000)   /* a log begins then, even if the agent has said nothing yet */
#define RELAY_SIGNAL_NS (INT64_C(20) * 1000000000) /* the agent must have answered by then */

struct relay;
struct relay *relay_new(struct control *control);
void relay_free(struct relay *r);
/* Ends what has lost its listener or its agent. */
void relay_pump(struct relay *r);
/* The same for what waits too long. */
void relay_tick(struct relay *r, int64_t steady_ns);
/* Ends everything and answers all that waits. After watch_hub_stop. */
void relay_stop(struct relay *r);
/* Errands under way. */
size_t relay_len(const struct relay *r);

/* Of agents. */
call_run relay_attach, relay_bring;
/* Of everybody else. */
call_run relay_instance_logs, relay_app_logs, relay_job_logs, relay_vm_logs, relay_optask_logs;
call_run relay_exec, relay_signal;
call_run relay_listen, relay_input, relay_resize, relay_close;

extern const struct key_table exec_keys, signal_keys, resize_keys;
