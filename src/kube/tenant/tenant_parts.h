/* tenant_parts.h - the inside of the tenants; for tenant*.c alone. */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "control/sched/plan_policy.h"
#include "control/state/change.h"
#include "kube/tenant/tenant_input.h"

/* Of a quota, as far as what runs has spent it in the period. */
struct tenant_total {
    char *resource;
    int64_t limit, since_ns, runs; /* amount x seconds */
};

/* What of past use is known beside the state, which has the books (KIND_FACT, KIND_SPENT). */
struct tenant_past {
    json_t *said;     /* by a status last, of ours or another's; NULL: nothing */
    json_t *recalled; /* as a status said; the books are made of it with the next look at what runs. NULL: no more */
    int64_t all, all_at_ns; /* decayed use by all that counts here and is over, as of then; for people */
    uint64_t version;       /* grows as the books do */
    bool untold, booked;    /* to the cluster; not heard of yet */
    /* Of what runs, as last summed up. */
    bool summing;
    int64_t at_ns; /* up to then */
    int64_t own_runs, all_runs;
    VEC(struct tenant_total) totals;
};

/* One object, as it was put last. */
struct tenant {
    enum kind kind;
    char *name; /* NULL: a free place */
    json_t *spec;
    json_t *in_force; /* the last that was accepted, this or one before it; NULL: none, and the state has none */
    json_t *recalled; /* that was accepted before we began; NULL: nobody said so */
    char *why;        /* it is not accepted; NULL: it is */
    struct tenant_past past;
};

/* A namespace that a group lists; both of the group's. */
struct tenant_place {
    const char *namespace, *group;
};

/* To be told to the cluster of the projection. */
struct untold {
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
    VEC(struct untold) untold;
    VEC(struct tenant_place) places; /* by namespace, then by group */
    bool places_old;
    bool unsettled; /* something changed since what was refused was judged */
    bool lost;      /* something went that others may name */
    bool claimed;
    tenant_listener *listener; /* NULL: none */
    void *listener_ctx;
    /* Past use (tenant_history.c). */
    struct plan_policy costs; /* what use costs; its order alone counts */
    int64_t (*clock)(void *ctx);
    void *clock_ctx;
    struct change booking; /* what ended since the books were last looked at */
    struct arena booking_arena;
    bool books_open;
    bool recalls;              /* some past may still be recalled */
    VEC(uint32_t) past_untold; /* of `at`; some may be gone, or told */
};

/* tenant.c: in force, whatever the rules say. */
void tenant_force(struct tenants *t, enum kind kind, const char *name, const json_t *spec);
uint32_t tenant_find(const struct tenants *t, enum kind kind, const char *name); /* MAP_NONE */
/* A document of the state; NULL: it goes. */
int tenant_state(struct tenants *t, enum kind kind, const char *id, const json_t *doc, struct berth_err *err);
void tenant_hear(struct tenants *t, enum tenant_op op, enum kind kind, const char *name, const json_t *spec);

/* tenant_history.c */
struct usage_row;
bool tenant_has_past(enum kind kind);
bool tenant_has_totals(const struct object *o); /* or may have */
/* "user/ann", and of the document of its decayed use "usage/user/ann". */
struct tenant_keys {
    char quota[OBJECT_KEY_MAX], use[OBJECT_KEY_MAX];
};
struct tenant_keys tenant_keys(enum kind kind, const char *name);
const struct berth_order *tenant_order(const struct tenants *t); /* what use costs */
/* A run as the daemon has it; texts are the run's. */
struct usage_row tenant_row(const struct tenants *t, const struct tenant_run *run, int64_t end_ns);
/* Objects that it counts for, each once: its user, its group, its queue and those above; `own`: it is the one whose account it is. */
typedef void tenant_payer(struct tenants *t, uint32_t tenant, const struct usage_row *row, bool own);
void tenant_payers(struct tenants *t, const struct usage_row *row, tenant_payer *visit);
/* What is to be booked; and it takes effect. */
struct change *tenant_books(struct tenants *t);
void tenant_books_apply(struct tenants *t);
void tenant_past_init(struct tenants *t);
void tenant_past_done(struct tenants *t);
/* The books of one that is dropped go, too. */
void tenant_past_drop(struct tenants *t, struct tenant *e);
/* Its books, as an input; NULL: it has none. A new reference. */
json_t *tenant_past_doc(const struct tenants *t, enum kind kind, const char *name);
void tenant_past_set(struct tenants *t, enum kind kind, const char *name, const json_t *doc);
/* To a new cluster, beside what quotas say of it. */
void tenant_past_tell_all(struct tenants *t, struct berth_cluster *cluster);

/* tenant_doc.c: the document of the daemon's that a spec stands for, a new reference; NULL for what is not an object. */
json_t *tenant_doc(enum kind kind, const char *name, const json_t *spec);
/* May it be in force beside what is in the state? -EINVAL, or -ENOENT for the name of what is not there, in the words of the custom resource. */
int tenant_check(struct state *s, enum kind kind, const char *name, const json_t *doc, struct berth_err *err);
/* What GPUs are called as resources of nodes; NULL past the end. */
const char *tenant_gpu_at(size_t i);

/* tenant_usage.c */
void tenant_past_clear(struct tenant *e);
/* The books are to be made again of what its status said last. */
void tenant_recall(struct tenants *t, uint32_t tenant);
/* Makes books of what statuses said. One that is not in force yet waits: nobody knows its totals. */
void tenant_recall_take(struct tenants *t, tenant_runs *runs, void *of);
