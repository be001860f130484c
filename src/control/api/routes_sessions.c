/* routes_sessions.c - the routes of sessions (logs, shells, signals), for users and for agents. */
#include "control/api/routes.h"
#include "control/session/session.h"

enum { EXEC_BODY_MAX = 64 * 1024, SMALL_BODY_MAX = 4096 };

#define READ PERMIT_READ, 0
#define AGENT PERMIT_REPORT
#define MANAGE PERMIT_MANAGE
const struct route sessions_routes[] = {
    ROUTE("GET", "/v1/instances/{id}/logs", READ, 0, session_instance_logs, "Read the log of an instance",
          .query = "tail,follow,node,lines,cursor"),
    ROUTE("GET", "/v1/apps/{id}/logs", READ, 0, session_app_logs,
          "Read the log of a pod of an app, or of its "
          "previous instance",
          .query = "ordinal,tail,follow,previous,lines,cursor"),
    ROUTE("GET", "/v1/jobs/{id}/logs", READ, 0, session_job_logs,
          "Read the log of a pod of a job, or of its "
          "previous instance",
          .query = "ordinal,tail,follow,previous,lines,cursor"),
    ROUTE("GET", "/v1/vms/{id}/logs", READ, 0, session_vm_logs,
          "Read the console log of a vm, or of its previous "
          "instance",
          .query = "ordinal,tail,follow,previous,lines,cursor"),
    ROUTE("POST", "/v1/instances/{id}/exec", MANAGE, EXEC_BODY_MAX, ROUTE_CHANGES, session_exec,
          "Run a command beside an instance", .body = &exec_keys),
    ROUTE("POST", "/v1/instances/{id}/signal", MANAGE, SMALL_BODY_MAX, ROUTE_CHANGES, session_signal,
          "Send an instance a signal", .body = &signal_keys),
    ROUTE("GET", "/v1/calls/{id}", MANAGE, 0, 0, session_output, "Read the output and the exit code of a command"),
    ROUTE("DELETE", "/v1/calls/{id}", MANAGE, 0, 0, session_delete, "End a command"),
    ROUTE("POST", "/v1/calls/{id}/input", MANAGE, SESSION_BODY_MAX, ROUTE_RAW, session_input, "Send input to a command",
          .query = "eof"),
    ROUTE("POST", "/v1/calls/{id}/resize", MANAGE, SMALL_BODY_MAX, 0, session_resize,
          "Resize the terminal of a command", .body = &resize_keys),
    ROUTE("GET", "/v1/nodes/{id}/calls", AGENT, 0, 0, session_agent_stream, "Stream of sessions for an agent",
          .query = "epoch"),
    ROUTE("POST", "/v1/nodes/{id}/calls/{call}", AGENT, SESSION_BODY_MAX, ROUTE_RAW, session_agent_output,
          "Output of a session, from the agent", .query = "stream,end,exit,cursor,gap"),
};
const size_t sessions_routes_len = sizeof sessions_routes / sizeof *sessions_routes;
