/* kind.h - the kinds of object the daemon keeps, in one table: name, place in the store and in the API, grammar of ids.
 *
 * A stored document is one JSON object with at least "v" (its schema version). Its key in the store is PREFIX/ID.
 *
 * To add a kind: a member here (in order of dependence: each kind may refer to those before it), a row in kind.c, what
 * state.c makes of it, and its routes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum kind {
    KIND_SETTING, /* system settings, one document per section */
    KIND_SPENT,   /* what was spent of a quota's totals: "user/ID", "group/ID", "queue/ID" */
    KIND_GROUP,
    KIND_ROLE,
    KIND_USER,
    KIND_TOKEN,
    KIND_RESOURCE, /* definitions of cumulative resources */
    KIND_PROFILE,  /* filters and scores */
    KIND_POLICY,   /* how jobs that wait are ordered */
    KIND_DOMAIN,   /* nodes that belong together; no node is in two */
    KIND_QUEUE,
    KIND_PREDICTION, /* how long jobs run: OWNER/NAME, and OWNER for all of somebody's */
    KIND_NODE,
    KIND_WINDOW, /* nodes kept for somebody, or nobody, for a while */
    KIND_VOLUME,
    KIND_SECRET, /* sealed; id NAME.OWNER */
    KIND_APP,    /* a service; id NAME.OWNER */
    KIND_JOB,    /* id: a number that only grows */
    KIND_VM,     /* id NAME.OWNER */
    KIND_CRON,   /* a schedule that makes jobs; id NAME.OWNER */
    KIND_SPEC, /* a workload as an instance was placed from it, when that is no longer the present one: WORKLOAD/GENERATION */
    KIND_INSTANCE,     /* id: a number that only grows */
    KIND_LAST,         /* how instances of a workload ended that are gone: its id */
    KIND_USAGE_RECORD, /* what an instance has used that is over; id: a number that only grows */
    KIND_NOTICE,       /* somebody is to be told of a job; gone when that is done; id: a number that only grows */
    KIND_FACT,         /* what plans leave to be remembered */
    KIND_LEDGER,  /* per node: rewritten by every commit that places something there; guards against other schedulers.
                     LEDGER_QUOTAS: by every commit after which committed instances may count for more, or elsewhere */
    KIND_COUNTER, /* last number given out, per kind */
    KIND_REPLY,   /* to a request with an idempotency key: USER/KEY */
    /* Hashes of the state rest on these numbers, and old journals have them: what comes later comes last. */
    KIND_OPTASK, /* an operation on nodes; its id is its key */
    KIND_OPSTEP, /* how one stands on a node: NODE/OPTASK */
    KINDS
};

enum { SCHEMA_VERSION = 1 }; /* of every stored document; upgrade.c brings older ones up to it */

/* The id of that ledger; no node has it. */
#define LEDGER_QUOTAS "quota/counts"

enum id_grammar {
    ID_LABEL,  /* a DNS label: lower-case letters, digits, '-', 1 to 63; no reserved word; stored folded */
    ID_OWNED,  /* LABEL.LABEL: name and owner */
    ID_NUMBER, /* decimal, without leading zeros */
    ID_FREE,   /* made by the daemon itself, or of a grammar of its own */
};

struct kind_info {
    const char *name;   /* "job" */
    const char *plural; /* "jobs": prefix in the store, collection in the API */
    enum id_grammar grammar;
    bool owned; /* belongs to a user; tenants see only theirs */
    bool shown; /* has a collection in the API and may stand in a manifest */
};
extern const struct kind_info kinds[KINDS];

/* KINDS: no such kind. Takes singular, plural and the usual short forms ("no", "svc", "services"). */
enum kind kind_find(const char *word);
static inline bool kind_is_workload(enum kind k)
{
    return k == KIND_APP || k == KIND_JOB || k == KIND_VM;
}

/* Is it in the journal? Secrets are not, nor what no decision depends on. */
bool kind_journalled(enum kind k);
/* Do records have its documents? Those of the journalled ones, and what is told of ends and use. */
bool kind_recorded(enum kind k);

/* "PREFIX/ID" in the caller's buffer. The id has been checked. */
enum { OBJECT_KEY_MAX = 512 };
const char *object_key(enum kind kind, const char *id, char buf[static OBJECT_KEY_MAX]);
/* The kind and id of a store key; KINDS for one that is not of an object. */
enum kind object_key_split(const char *key, const char **ret_id);

/* One validator for the ids of users, groups, devices, apps, queues. Folds upper case into the caller's buffer; -EINVAL
 * with what is wrong with it, in words. Reserved words stand in one table in id.c. */
enum { ID_MAX = 63, ID_OWNED_MAX = 2 * ID_MAX + 1 };
int id_fold(const char *what, const char *text, char ret[static ID_MAX + 1], struct berth_err *err);
bool id_reserved(const char *folded);
