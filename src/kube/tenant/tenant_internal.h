/* tenant_internal.h - internals of the tenants; included only by tenant*.c. */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "control/sched/plan_policy.h"
#include "control/state/change.h"
#include "kube/tenant/tenant_input.h"

/* What running work has spent of one total of a quota in the period. */
struct tenant_total {
    char *resource;
    int64_t limit, since_ns, runs; /* amount x seconds */
};

/* Past usage, beside the usage records in the state (KIND_FACT, KIND_SPENT). */
struct tenant_past_usage {
    json_t *said;           /* last usage in its status, ours or another process's; NULL: none */
    json_t *recalled;       /* usage from its status that is not applied yet; NULL: none */
    int64_t all, all_at_ns; /* decayed ended usage of all work below it, as of all_at_ns; for display */
    uint64_t version;       /* grows with the usage records */
    bool unapplied, booked; /* not in the cluster yet; not reported to the listener yet */
    /* Running work, as last summed up. */
    bool summing;
    int64_t at_ns; /* time of the sum */
    int64_t own_runs, all_runs;
    VEC(struct tenant_total) totals;
};

/* One object as last put. */
struct tenant {
    enum kind kind;
    char *name; /* NULL: a free slot */
    json_t *spec;
    json_t *in_force; /* last accepted version, this or an earlier one; NULL: none, not in the state */
    json_t *recalled; /* accepted before this process started; NULL: none */
    char *why;        /* why it is not accepted; NULL: it is */
    struct tenant_past_usage past;
};

/* A namespace that a group lists; the group owns both texts. */
struct group_namespace {
    const char *namespace, *group;
};

/* An object that must be put into the cache's cluster. */
struct unapplied_object {
    enum kind kind;
    char *name;
};

struct tenants {
    void (*changed)(void *ctx);
    void *ctx;
    struct state *state;
    uint64_t revision;
    VEC(struct tenant) at;
    VEC(uint32_t) free;
    struct map by_name;
    VEC(struct unapplied_object) unapplied;
    VEC(struct group_namespace) group_namespaces; /* by namespace, then by group */
    bool group_namespaces_old;
    bool unsettled; /* something changed since rejected objects were checked */
    bool lost;      /* an object went that others may name */
    bool claimed;
    tenant_listener *listener; /* NULL: none */
    void *listener_ctx;
    /* Past usage (tenant_history.c). */
    struct plan_policy costs; /* charges of resources; only its order is used */
    int64_t (*clock)(void *ctx);
    void *clock_ctx;
    struct change booking; /* work ended since the usage records were last updated */
    struct arena booking_arena;
    bool books_open;
    bool recalls;                 /* some object may still have `recalled` set */
    VEC(uint32_t) past_unapplied; /* indices of `at`; some may be gone or done */
};

/* In tenant.c: puts the spec in force even if the rules reject it. */
void tenant_force(struct tenants *t, enum kind kind, const char *name, const json_t *spec);
uint32_t tenant_find(const struct tenants *t, enum kind kind, const char *name); /* MAP_NONE */
/* Puts a document into the state; NULL removes it. */
int tenant_state(struct tenants *t, enum kind kind, const char *id, const json_t *doc, struct berth_err *err);
void tenant_report_input(struct tenants *t, enum tenant_op op, enum kind kind, const char *name, const json_t *spec);

/* tenant_history.c */
struct usage_row;
bool tenant_has_past(enum kind kind);
bool tenant_has_totals(const struct object *o); /* true if it may have totals */
/* "user/ann", and the id of its usage document, "usage/user/ann". */
struct tenant_keys {
    char quota[OBJECT_KEY_MAX], use[OBJECT_KEY_MAX];
};
struct tenant_keys tenant_keys(enum kind kind, const char *name);
const struct berth_order *tenant_order(const struct tenants *t); /* charges of resources */
/* Converts running work to the daemon's usage row; texts are those of the run. */
struct usage_row tenant_row(const struct tenants *t, const struct tenant_run *run, int64_t end_ns);
/* Calls `visit` for each object the row counts for, once: its user, its group, its queue and the queues above; `own`:
 * this object's account is charged. */
typedef void tenant_payer(struct tenants *t, uint32_t tenant, const struct usage_row *row, bool own);
void tenant_payers(struct tenants *t, const struct usage_row *row, tenant_payer *visit);
/* tenant_bookings returns the open bookings; tenant_bookings_apply applies them. */
struct change *tenant_bookings(struct tenants *t);
void tenant_bookings_apply(struct tenants *t);
void tenant_past_init(struct tenants *t);
void tenant_past_done(struct tenants *t);
/* Removes the usage records of an object that is dropped. */
void tenant_past_drop(struct tenants *t, struct tenant *e);
/* Returns its usage records as an input; NULL: none. A new reference. */
json_t *tenant_past_doc(const struct tenants *t, enum kind kind, const char *name);
void tenant_past_set(struct tenants *t, enum kind kind, const char *name, const json_t *doc);
/* Puts all usage into a new cluster, besides the usage in quotas. */
void tenant_past_apply_all(struct tenants *t, struct berth_cluster *cluster);

/* In tenant_doc.c: converts a spec to a document of the daemon; a new reference; NULL if the spec is not an object. */
json_t *tenant_doc(enum kind kind, const char *name, const json_t *spec);
/* Checks the document against the state. -EINVAL, or -ENOENT if it names an object that does not exist; the message
 * uses the words of the custom resource. */
int tenant_check(struct state *s, enum kind kind, const char *name, const json_t *doc, struct berth_err *err);
/* Returns the i-th GPU resource name of nodes; NULL past the end. */
const char *tenant_gpu_at(size_t i);

/* tenant_usage.c */
void tenant_past_clear(struct tenant *e);
/* Has the usage records restored from the object's last status. */
void tenant_mark_usage_restore(struct tenants *t, uint32_t tenant);
/* Restores usage records from statuses. An object not in force yet waits, because its totals are unknown. */
void tenant_restore_usage(struct tenants *t, tenant_runs *runs, void *of);
