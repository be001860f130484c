/* quota_ledger.h - what counts against quotas by committed documents alone, and whether a commit would exceed a
 * limit.
 *
 * The books of a cluster (quota.c) include whatever plans assume. A ledger has a row for each committed instance
 * that has not ended, and books of its own, counted by the same rules; so a commit can be checked against what is
 * durable, whatever becomes of other commits. A caller that tries a commit puts its rows, looks at
 * quota_ledger_exceeds, and puts the former rows back.
 *
 * Rows name classes, names and quotas of one cluster, and are put again when that cluster is replaced. Books are
 * counted when a limit is first looked at, and again after the tree of quotas has changed; in between they follow
 * each row.
 */
#pragma once

#include "core/model/cluster.h"

struct quota_ledger;

struct quota_row {
    uint64_t id; /* of the instance; 0: there is none */
    uint64_t replaces;
    sym workload;
    uint32_t class;
    enum berth_state state; /* never BERTH_ENDED */
    bool fresh;             /* put by the commit that is tried */
};

struct quota_ledger *quota_ledger_new(void);
void quota_ledger_free(struct quota_ledger *l);

/* Replaces the row of the instance by `now`, or removes it (NULL), and returns the former one. O(1), but for
 * followers. */
struct quota_row quota_ledger_put(struct quota_ledger *l, const struct berth_cluster *c, uint64_t id,
                                  const struct quota_row *now);
/* The row of an instance; its id is 0 if there is none. */
struct quota_row quota_ledger_row(const struct quota_ledger *l, uint64_t id);
/* The workload may count against other quotas than before, or be gone. O(its rows) if so. */
void quota_ledger_claim(struct quota_ledger *l, const struct berth_cluster *c, const char *workload);
/* Has the workload rows? */
bool quota_ledger_has(const struct quota_ledger *l, const struct berth_cluster *c, const char *workload);
/* Do rows count against the quota, by its slot? O(workloads that have rows). */
bool quota_ledger_counts(const struct quota_ledger *l, const struct berth_cluster *c, uint32_t quota);
/* How many rows take over from this instance. */
size_t quota_ledger_followers(const struct quota_ledger *l, uint64_t id);

/* A limit that does not hold. */
struct quota_excess {
    const char *quota, *resource;
    int64_t held, limit;
};
/* Does the instance count against a limit that is exceeded now? Of what is held at once, or of what is promised. */
bool quota_ledger_exceeds(struct quota_ledger *l, const struct berth_cluster *c, uint64_t id, struct quota_excess *ret);
/* Compares all books with a recount from the rows. */
int quota_ledger_audit(struct quota_ledger *l, const struct berth_cluster *c, struct berth_err *err);
