/* request.h - one request on its way through the daemon: routed, authenticated, permitted, run, committed, answered.
 *
 * Knows no socket: berthd hands requests in, and so do the simulator and tests. A verb is a function of (state, request)
 * that fills a change and an answer; it is run again if the change meets a conflict, so it must have no other effect.
 *
 * To add a route: a row in the table of its area (routes_*.c), which is also its help, its permission and its line in
 * /openapi.json; and its verb.
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

struct request {
    const char *method, *path;
    const char *token;           /* of "Authorization: Bearer"; NULL: none */
    const char *peer;            /* common name of a verified client certificate; NULL: none */
    const char *peer_serial;     /* its number in hex; NULL: whoever hands the request in vouches for it */
    int64_t peer_until_ns;       /* where a number is given: when it ends, even if that is over */
    const char *idempotency_key; /* NULL: none */
    const char *if_match;        /* a revision; NULL: none */
    const char *accept;
    const char *remote; /* address, for the audit and rate limits */
    const char *body;
    size_t body_len;
    const char *(*query)(const void *from, const char *name); /* NULL: not given */
    const void *query_from;
};

struct answer {
    int status;               /* 200 unless the verb says otherwise */
    json_t *body;             /* owned; NULL: none, or text */
    json_t *warnings;         /* owned; of call_warn, shown in the body as "warnings". NULL: none */
    struct str text;          /* instead of a body */
    const char *content_type; /* of text */
    uint64_t revision;        /* of the commit, or read at; 0: none */
    int64_t retry_after_s;
    char etag[48];         /* hash of the content, of what is derived; "": none */
    struct stream *stream; /* instead: an answer without an end (control/watch/watch.h) */
    const char *file;      /* instead: a file to be sent and then removed */
};

enum { ROUTE_ARGS_MAX = 2 };

enum route_flag {
    ROUTE_CHANGES = 1, /* takes ?dry_run, an idempotency key and If-Match; is audited */
    ROUTE_STREAMS = 2, /* takes ?watch */
    ROUTE_RAW = 4,     /* the body is not JSON for the verb to see parsed */
    ROUTE_BESIDE = 16, /* takes long and looks at nothing but the store's files: runs on another thread */
    ROUTE_LATE = 32,   /* a certificate that is over will do, if not for long: to get another */
    ROUTE_HEAVY = 64,  /* costs much: a caller has few of them under way (lists and dry runs are so without it) */
    ROUTE_WAKES = 8,   /* the scheduling loop looks at once, even if nothing was written */
    ROUTE_PROBE = 128, /* a health probe: without a rate limit, so that a flood never makes berthd look dead */
};

struct call;
typedef int call_run(struct call *c);

struct route {
    const char *method, *path; /* "/v1/jobs/{id}/hold" */
    enum permission need;
    uint32_t body_max; /* bytes; 0: no body */
    unsigned flags;
    call_run *run;
    const char *summary;          /* "Hold a job" */
    const struct key_table *body; /* what the body may hold, for /openapi.json; NULL: see docs */
    const char *query;            /* names it takes, "limit,after,owner" */
};

struct call {
    struct control *control;
    struct state *state;
    const struct request *request;
    const struct route *route;
    struct caller caller;
    const char *args[ROUTE_ARGS_MAX]; /* {id}s of the path, decoded, not yet checked */
    const json_t *body;               /* an object, unless ROUTE_RAW; empty where none was sent */
    bool dry_run;
    bool judge_later; /* quotas are looked at when the whole change is known (control/tenant/admission.h) */
    int64_t now_ns;
    struct arena arena;
    struct change change;
    struct answer answer;
    struct berth_err err;
    /* The verb's, if it sets it: told once when its change is durable. For what is kept in memory only. */
    void (*durable)(struct call *c, void *ctx);
    void *durable_ctx;
    struct cap_claim *claims; /* what the change adds for each owner (control/tenant/cap.h) */
    size_t claims_len;
    bool claims_held;          /* and counted, until it is done */
    struct call_event *events; /* control/explain/event.h; the newest first */
    /* The answer comes later: set by a verb, or by its `durable`, that has handed the call to somebody who calls
     * call_answer exactly once, also when the control stops. Request and arena live until then, texts of the caller do
     * not. */
    bool later;
    /* The verb has done a part of its work, keeps it in `progress`, and is run again after others had their turn. For verbs that
     * only read. `progress_free` frees what is left of it when the call ends. */
    bool unfinished;
    void *progress;
    void (*progress_free)(void *progress);
};

/* A verb returns 0, or a negative errno with text in c->err, which becomes a status:
 *   EINVAL 400  EACCES 403  ENOENT 404  EEXIST, EBUSY, EAGAIN, EALREADY 409  ESTALE 410  E2BIG 413  EDQUOT 429  ENOSPC, EIO 503
 * or sets c->answer.status itself.  */

/* Answers a call that was left for later: with c->answer as it is or, if rc is negative, with the error in c->err. The
 * call is gone afterwards. (handle.c) */
void call_answer(struct call *c, int rc);
/* Runs the verb of a call that was left for later once more, as if it had just come. (handle.c) */
void call_again(struct call *c);
/* The account that pays for the call (fair_queue.h), while the call is under way. (handle.c) */
struct fair_account *call_account(struct call *c);
/* For `durable`: what was written stays, but the answer becomes the error in c->err. (handle.c) */
void call_refuse(struct call *c, int rc);

/* Adds a sentence to the answer of a verb that goes on all the same: the caller has probably not meant this. */
void call_warn(struct call *c, const char *text);

const char *call_query(const struct call *c, const char *name);
/* A whole number of the query, within bounds; `fallback` where it is absent. -EINVAL otherwise. */
int call_query_number(struct call *c, const char *name, uint64_t min, uint64_t max, uint64_t fallback, uint64_t *ret);

/* The object an argument names, if the caller may do `need` with it; NULL with c->err set otherwise: -ENOENT, in the same
 * words as for one that is not there, when the caller may not even see it; -EACCES when it may see but not do. For kinds
 * with owners NAME alone means the caller's own. Reads and guards it through the change. */
const struct object *call_object(struct call *c, enum kind kind, const char *arg, enum permission need);
/* May the caller see this object in a list? */
bool call_sees(const struct call *c, const struct object *o);

/* Every route, in the order of the reference. */
struct route_table {
    const char *area, *about;
    const struct route *routes;
    const size_t *len;
};
extern const struct route_table route_tables[];
extern const size_t route_tables_len;
/* NULL: 404, or, with *ret_known, 405. Arguments are copied to the arena. */
const struct route *route_find(const char *method, const char *path, struct arena *arena,
                               const char *ret_args[static ROUTE_ARGS_MAX], bool *ret_known);
