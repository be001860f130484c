/* request.h - one API request inside the daemon: routed, authenticated, authorized, run, committed and answered.
 *
 * This module does not know sockets: berthd, the simulator and the tests submit requests. A verb is a function of
 * (state, request) that fills a change and an answer. The daemon runs the verb again when the change meets a conflict,
 * so a verb must have no other effect.
 *
 * To add a route: add a row to the table of its area (routes_*.c) and write its verb. The row is also the help text of
 * the route, its permission and its entry in /openapi.json.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "control/api/permit.h"
#include "control/state/change.h"
#include "wire/text/keys.h"

struct control;
struct fair_account;
struct stream;

struct request_input {
    const char *method, *path;
    const char *token; /* bearer token of the Authorization header; NULL: none */
    const char *peer;  /* common name of a verified client certificate; NULL: none */
    /* serial number of the certificate, hex; NULL: the submitter has checked the certificate */
    const char *peer_serial;
    int64_t peer_until_ns;       /* expiry of the certificate, may be past; used only with a serial number */
    const char *idempotency_key; /* NULL: none */
    const char *if_match;        /* a revision; NULL: none */
    const char *accept;
    const char *remote; /* client address, for the audit and rate limits */
    const char *body;
    size_t body_len;
    const char *(*query)(const void *from, const char *name); /* returns NULL for an absent parameter */
    const void *query_from;
};

struct answer {
    int status;               /* 200 unless the verb sets another */
    json_t *body;             /* owned; NULL: no body, or a text body */
    json_t *warnings;         /* owned; set by request_warn, added to the body as "warnings". NULL: none */
    struct str text;          /* instead of a body */
    const char *content_type; /* of text */
    uint64_t revision;        /* revision of the commit, or of the state that was read; 0: none */
    int64_t retry_after_s;
    char etag[48];         /* content hash of a derived document; "": none */
    struct stream *stream; /* instead of a body: an endless answer (control/watch/watch.h) */
    const char *file;      /* instead of a body: a file that is sent and then removed */
};

enum { ROUTE_ARGS_MAX = 2 };

enum route_flag {
    ROUTE_CHANGES = 1,     /* accepts ?dry_run, an idempotency key and If-Match; is audited */
    ROUTE_STREAMS = 2,     /* accepts ?watch */
    ROUTE_RAW = 4,         /* the body is not parsed as JSON before the verb runs */
    ROUTE_WORKER = 16,     /* slow, reads only files of the store: runs on a worker thread */
    ROUTE_EXPIRED_OK = 32, /* accepts a recently expired certificate, so that an agent can renew it */
    ROUTE_HEAVY = 64,      /* expensive: limited per caller at a time (lists and dry runs always are) */
    ROUTE_SCHEDULES = 8,   /* triggers a scheduling cycle at once, even if the verb writes nothing */
    /* a health probe: exempt from the rate limit, so that a flood of requests cannot make berthd look dead */
    ROUTE_PROBE = 128,
};

struct request;
typedef int request_verb(struct request *c);

struct route {
    const char *method, *path; /* "/v1/jobs/{id}/hold" */
    enum permission need;
    uint32_t body_max; /* bytes; 0: no body */
    unsigned flags;
    request_verb *run;
    const char *summary;          /* "Hold a job" */
    const struct key_table *body; /* accepted keys of the body, for /openapi.json; NULL: see docs */
    const char *query;            /* accepted query parameters, "limit,after,owner" */
};

struct request {
    struct control *control;
    struct state *state;
    const struct request_input *input;
    const struct route *route;
    struct caller caller;
    const char *args[ROUTE_ARGS_MAX]; /* {id}s of the path, decoded, not validated yet */
    const json_t *body;               /* an object, unless ROUTE_RAW; empty if the client sent none */
    bool dry_run;
    bool quota_check_deferred; /* quotas are checked once the whole change is known (control/tenant/admission.h) */
    int64_t now_ns;
    struct arena arena;
    struct change change;
    struct answer answer;
    struct berth_err err;
    /* Optional callback of the verb, called once when the change is durable. Only for updates of in-memory state. */
    void (*durable)(struct request *c, void *ctx);
    void *durable_ctx;
    struct cap_claim *claims; /* quota use that the change adds for each owner (control/tenant/cap.h) */
    size_t claims_len;
    bool claims_held;             /* `claims` are counted in the cap book until the request is done */
    struct request_event *events; /* control/explain/event.h; newest first */
    /* The answer is deferred. A verb, or its `durable`, sets this after it has handed the request to a module that
     * calls request_answer exactly once, also when the control stops. Request and arena live until then; texts of
     * `caller` do not. */
    bool later;
    /* The verb has done a part of its work, keeps its progress in `progress`, and runs again after the turns of other
     * accounts. Only for read-only verbs. `progress_free` frees what is left of `progress` when the request ends. */
    bool unfinished;
    void *progress;
    void (*progress_free)(void *progress);
};

/* A verb returns 0, or a negative errno with text in c->err, which becomes a status:
 *
 *     EINVAL 400  EACCES 403  ENOENT 404  EEXIST, EBUSY, EAGAIN, EALREADY 409  ESTALE 410
 *     E2BIG 413  EDQUOT 429  ENOSPC, EIO 503
 *
 * A verb may also set c->answer.status itself.
 */

/* Answers a deferred request: with c->answer or, if rc is negative, with the error in c->err. Frees the request.
 * (handle.c) */
void request_answer(struct request *c, int rc);
/* Runs the verb of a deferred request once more, as if the request had just arrived. (handle.c) */
void request_rerun(struct request *c);
/* Returns the account that is charged for the request (fair_queue.h), while the request runs. (handle.c) */
struct fair_account *request_account(struct request *c);
/* For `durable`: keeps the committed change, but replaces the answer with the error in c->err. (handle.c) */
void request_refuse(struct request *c, int rc);

/* Adds a warning to the answer of a verb that succeeds: the request is valid, but probably not what the caller
 * meant. */
void request_warn(struct request *c, const char *text);

const char *request_query(const struct request *c, const char *name);
/* Parses a whole number of the query within bounds; uses `fallback` if the parameter is absent. Returns -EINVAL
 * otherwise. */
int request_query_number(struct request *c, const char *name, uint64_t min, uint64_t max, uint64_t fallback,
                         uint64_t *ret);

/* Returns the object that an argument names, if the caller has permission `need` on the object. Otherwise returns NULL
 * with c->err set: -ENOENT, with the text of a missing object, if the caller may not even see the object; -EACCES if
 * the caller may see the object but lacks `need`. For kinds with owners, NAME alone means an object of the caller.
 * Reads and guards the object through the change. */
const struct object *request_object(struct request *c, enum kind kind, const char *arg, enum permission need);
/* Tells whether a list shows this object to the caller. */
bool request_may_see(const struct request *c, const struct object *o);

/* All routes, in the order of the API reference. */
struct route_table {
    const char *area, *about;
    const struct route *routes;
    const size_t *len;
};
extern const struct route_table route_tables[];
extern const size_t route_tables_len;
/* Finds a route. NULL: the answer is 404 or, with *ret_known, 405. Copies the arguments to the arena. */
const struct route *route_find(const char *method, const char *path, struct arena *arena,
                               const char *ret_args[static ROUTE_ARGS_MAX], bool *ret_known);
