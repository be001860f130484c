/* kind.h - the kinds of object that the daemon stores, in one table: name, prefix in the store and API, grammar of IDs.
 *
 * A stored document is one JSON object with at least "v" (its schema version). Its key in the store is PREFIX/ID.
 *
 * To add a kind: a member here (ordered by dependence: each kind may refer to those before it), a row in kind.c, its
 * handling in state.c, and its routes.
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
    KIND_POLICY,   /* how waiting jobs are ordered */
    KIND_DOMAIN,   /* nodes that belong together; a node is in at most one domain */
    KIND_QUEUE,
    KIND_PREDICTION, /* how long jobs run: OWNER/NAME, and OWNER for all jobs of an owner */
    KIND_NODE,
    KIND_WINDOW, /* nodes reserved for some users, or for maintenance, for a time */
    KIND_VOLUME,
    KIND_SECRET,       /* sealed; ID NAME.OWNER */
    KIND_APP,          /* a service; ID NAME.OWNER */
    KIND_JOB,          /* ID: a number that only grows */
    KIND_VM,           /* ID NAME.OWNER */
    KIND_CRON,         /* a schedule that creates jobs; ID NAME.OWNER */
    KIND_SPEC,         /* an earlier version of a workload from which instances were placed: WORKLOAD/GENERATION */
    KIND_INSTANCE,     /* ID: a number that only grows */
    KIND_LAST_END,     /* how deleted instances of a workload ended; ID of the workload */
    KIND_USAGE_RECORD, /* what an ended instance has used; ID: a number that only grows */
    KIND_NOTIFICATION, /* a notification about a job, deleted after delivery; ID: a number that only grows */
    KIND_FACT,         /* what plans remember */
    /* per node: written by every commit that places an instance there, as a guard against other schedulers.
     * LEDGER_QUOTAS: written by every commit after which committed instances may count for more, or for other quotas */
    KIND_LEDGER,
    KIND_COUNTER, /* last number given out, per kind */
    KIND_REPLY,   /* answer to a request with an idempotency key: USER/KEY */
    /* The state's hashes depend on these numbers, and old journals contain them: new kinds go to the end. */
    KIND_OPTASK, /* an operation on nodes; its ID is its key */
    KIND_OPSTEP, /* its state on one node: NODE/OPTASK */
    KINDS
};

enum { SCHEMA_VERSION = 1 }; /* of every stored document; upgrade.c converts older ones */

/* ID of the quota ledger; no node has this name. */
#define LEDGER_QUOTAS "quota/counts"

enum id_grammar {
    /* a DNS label: lower-case letters, digits, '-', 1 to 63 characters; no reserved word; stored in lower case */
    ID_LABEL,
    ID_OWNED,  /* LABEL.LABEL: name and owner */
    ID_NUMBER, /* decimal, without leading zeros */
    ID_FREE,   /* made by the daemon, or with a grammar of its own */
};

struct kind_info {
    const char *name;   /* "job" */
    const char *plural; /* "jobs": prefix in the store, collection in the API */
    enum id_grammar grammar;
    bool owned; /* belongs to a user; tenants see only their own */
    bool shown; /* has a collection in the API and may be in a manifest */
};
extern const struct kind_info kinds[KINDS];

/* Finds a kind by its singular, plural or usual short form ("no", "svc", "services"); KINDS: no such kind. */
enum kind kind_find(const char *word);
static inline bool kind_is_workload(enum kind k)
{
    return k == KIND_APP || k == KIND_JOB || k == KIND_VM;
}

/* Returns whether the journal contains this kind. Secrets are left out, and kinds on which no decision depends. */
bool kind_journalled(enum kind k);
/* Returns whether journal records contain documents of this kind: all journalled kinds, and records of ends and use. */
bool kind_recorded(enum kind k);

/* Writes "PREFIX/ID" to the caller's buffer. The ID has been checked. */
enum { OBJECT_KEY_MAX = 512 };
const char *object_key(enum kind kind, const char *id, char buf[static OBJECT_KEY_MAX]);
/* Returns the kind and the ID of a store key; KINDS: not the key of an object. */
enum kind object_key_split(const char *key, const char **ret_id);

/* Validates the IDs of users, groups, devices, apps and queues. Writes the ID in lower case to the caller's buffer;
 * -EINVAL with an explanation. The reserved words are in one table in id.c. */
enum { ID_MAX = 63, ID_OWNED_MAX = 2 * ID_MAX + 1 };
int id_fold(const char *what, const char *text, char ret[static ID_MAX + 1], struct berth_err *err);
bool id_reserved(const char *folded);
