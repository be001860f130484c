/* queue_doc.h - documents of what orders and bounds work: quotas, queues, policies, windows, domains, rules of routing.
 *
 * Beside api.h, by the same rules. Amounts of quotas are as berth.h counts them: `gpu` in thousandths of one, though people
 * write whole ones. Whether what is named exists is the daemon's to say.
 */
#pragma once

#include "wire/doc/api.h"

enum { QUOTA_WEIGHT_MAX = 1000000, QUEUE_LIST_MAX = 1024, ROUTES_MAX = 64, FORMULA_BYTES_MAX = 16 * 1024 };

struct group_doc {
    struct doc_meta meta;
    int32_t level;
    uint32_t weight; /* 0: 1 */
    struct quota_doc quota;
};

struct queue_doc {
    struct doc_meta meta;
    const char *parent, *policy;
    int32_t priority, priority_class;
    uint32_t weight;
    bool share; /* guaranteed is its weight's share */
    struct quota_doc quota;
    const char *const *users, *const *groups, *const *domains; /* empty: all */
    size_t users_len, groups_len, domains_len;
    int64_t time_limit_ns, max_time_ns; /* 0: none */
};

struct policy_doc {
    struct doc_meta meta;
    const char *ranking;                /* of berth_ranking_at, or "formula" */
    const struct berth_weight *weights; /* of factors by name */
    size_t weights_len;
    const char *formula;
};

struct window_doc {
    struct doc_meta meta;
    int64_t start_ns, end_ns;
    const char *const *nodes;
    size_t nodes_len;
    const struct berth_term *require;
    size_t require_len;
    const char *const *users, *const *groups;
    size_t users_len, groups_len;
    bool maintenance;
    const char *note;
};

struct domain_doc {
    struct doc_meta meta;
    const char *const *nodes; /* by hand, or */
    size_t nodes_len;
    const struct berth_term *require; /* by label */
    size_t require_len;
    const struct berth_amount *keep; /* free */
    size_t keep_len;
};

/* When a rule is for a job: all that is said holds. -1 and 0: not said. */
struct route_rule {
    const char *group, *user, *queue, *class_name, *type, *network;
    int64_t gpus_min, gpus_max, pods_min, pods_max; /* of all its pods; -1: not said */
    int64_t waited_ns;                              /* at least; 0: not said */
    int64_t used;                                   /* by its owner at least, in hours of a core; -1: not said */
    const char *to;
};

struct routes_doc {
    int64_t version;
    const struct route_rule *rules;
    size_t rules_len;
};

int group_doc_read(const json_t *doc, struct arena *arena, struct group_doc *ret, struct berth_err *err);
int queue_doc_read(const json_t *doc, struct arena *arena, struct queue_doc *ret, struct berth_err *err);
/* Names of rankings and factors are known, and weights and a formula are where they belong; that is not compiled. */
int policy_doc_read(const json_t *doc, struct arena *arena, struct policy_doc *ret, struct berth_err *err);
int window_doc_read(const json_t *doc, struct arena *arena, struct window_doc *ret, struct berth_err *err);
int domain_doc_read(const json_t *doc, struct arena *arena, struct domain_doc *ret, struct berth_err *err);
int routes_doc_read(const json_t *doc, struct arena *arena, struct routes_doc *ret, struct berth_err *err);

/* "8 gpu", "500m cpu": an amount of a quota as people write it. */
const char *quota_amount_text(const char *resource, int64_t amount, struct arena *arena);
/* One hour of one unit of the resource as totals count it: a core, a GPU, a GiB of memory, one of the others. */
int64_t quota_hour(const char *resource);

extern const struct key_table *const queue_tables[], *const policy_tables[], *const window_tables[],
                                                                                 *const domain_tables[];
extern const struct key_table routes_keys;

/* For tables of several files. */
key_read quota_read;        /* struct quota_doc field */
key_read quota_weight_read; /* uint32_t field */
key_read queue_names_read;  /* a bounded list of texts */
