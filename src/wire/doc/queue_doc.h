/* queue_doc.h - documents of quotas, queues, policies, windows, domains and routing rules.
 *
 * Follows the rules of api.h. Quota amounts are counted as in berth.h: `gpu` in thousandths of a GPU, although
 * documents contain whole GPUs. The daemon checks that named objects exist.
 */
#pragma once

#include "wire/doc/api.h"

enum { QUOTA_WEIGHT_MAX = 1000000, QUEUE_LIST_MAX = 1024, ROUTES_MAX = 64, FORMULA_BYTES_MAX = 16 * 1024 };

struct group_doc {
    struct doc_meta meta;
    int32_t level;
    uint32_t weight; /* 0 means 1 */
    struct quota_doc quota;
};

struct queue_doc {
    struct doc_meta meta;
    const char *parent, *policy;
    int32_t priority, priority_class;
    uint32_t weight;
    bool share; /* the guarantee is the share by weight */
    struct quota_doc quota;
    const char *const *users, *const *groups, *const *domains; /* empty: all */
    size_t users_len, groups_len, domains_len;
    int64_t time_limit_ns, max_time_ns; /* 0: none */
};

struct policy_doc {
    struct doc_meta meta;
    const char *ranking;                /* a name from berth_ranking_at, or "formula" */
    const struct berth_weight *weights; /* weights of factors by name */
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
    const char *const *nodes; /* selected by name, or */
    size_t nodes_len;
    const struct berth_term *require; /* selected by labels */
    size_t require_len;
    const struct berth_amount *keep; /* amounts kept free */
    size_t keep_len;
};

/* Conditions of a routing rule; all given conditions must hold. */
struct route_rule {
    const char *group, *user, *queue, *class_name, *type, *network;
    int64_t gpus_min, gpus_max, pods_min, pods_max; /* totals over all pods of the job; -1: not given */
    int64_t waited_ns;                              /* least waiting time; 0: not given */
    int64_t used;                                   /* least usage of the owner, in core hours; -1: not given */
    const char *to;
};

struct routes_doc {
    int64_t version;
    const struct route_rule *rules;
    size_t rules_len;
};

int group_doc_read(const json_t *doc, struct arena *arena, struct group_doc *ret, struct berth_err *err);
int queue_doc_read(const json_t *doc, struct arena *arena, struct queue_doc *ret, struct berth_err *err);
/* Checks that rankings and factors exist, and that weights or a formula match the ranking. Does not compile the
 * formula. */
int policy_doc_read(const json_t *doc, struct arena *arena, struct policy_doc *ret, struct berth_err *err);
int window_doc_read(const json_t *doc, struct arena *arena, struct window_doc *ret, struct berth_err *err);
int domain_doc_read(const json_t *doc, struct arena *arena, struct domain_doc *ret, struct berth_err *err);
int routes_doc_read(const json_t *doc, struct arena *arena, struct routes_doc *ret, struct berth_err *err);

/* Returns an amount of a quota in readable form: "8 gpu", "500m cpu". */
const char *quota_amount_text(const char *resource, int64_t amount, struct arena *arena);
/* Returns how totals count one hour of one unit of the resource: a core, a GPU, a GiB of memory, or one unit. */
int64_t quota_hour(const char *resource);

extern const struct key_table *const queue_tables[], *const policy_tables[], *const window_tables[],
                                                                                 *const domain_tables[];
extern const struct key_table routes_keys;

/* Readers that several files use. */
key_read quota_read;        /* struct quota_doc field */
key_read quota_weight_read; /* uint32_t field */
key_read queue_names_read;  /* list of strings of limited length */
