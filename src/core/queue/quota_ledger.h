/* quota_ledger.h - quota usage of committed instances alone, and whether a commit would exceed a limit.
 *
 * The usage that the cluster counts (core/model/quota.c) includes what plans assume. A ledger has one row for each
 * committed instance that has not ended, and its own usage, counted by the same rules; so a commit can be checked
 * against what is durable, whether other commits succeed or fail. To try a commit, the caller puts the new rows, calls
 * quota_ledger_exceeds, and puts the former rows back.
 *
 * Rows refer to classes, names and quotas of one cluster; the caller puts them again when that cluster is replaced. The
 * usage is counted when a limit is first checked, and again after the quota tree has changed; between these moments it
 * is updated with each row.
 */
#pragma once

#include "core/model/cluster.h"

struct quota_ledger;

struct quota_row {
    uint64_t id; /* of the instance; 0: no row */
    uint64_t replaces;
    sym workload;
    uint32_t class;
    enum berth_state state; /* never BERTH_ENDED */
    bool fresh;             /* put by the commit that is being tried */
};

struct quota_ledger *quota_ledger_new(void);
void quota_ledger_free(struct quota_ledger *l);

/* Replaces the row of the instance by `now`, or removes the row (NULL), and returns the former row. O(1), plus the rows
 * of the workload if one of them replaces the instance. */
struct quota_row quota_ledger_put(struct quota_ledger *l, const struct berth_cluster *c, uint64_t id,
                                  const struct quota_row *now);
/* Returns the row of an instance; a row with id 0 if there is none. */
struct quota_row quota_ledger_row(const struct quota_ledger *l, uint64_t id);
/* Call when a workload's quotas may have changed or the workload was removed. O(rows of the workload) if its quotas
 * changed. */
void quota_ledger_claim(struct quota_ledger *l, const struct berth_cluster *c, const char *workload);
/* Returns whether the workload has rows. */
bool quota_ledger_has(const struct quota_ledger *l, const struct berth_cluster *c, const char *workload);
/* Returns whether rows count against the quota in this slot. O(workloads that have rows). */
bool quota_ledger_counts(const struct quota_ledger *l, const struct berth_cluster *c, uint32_t quota);
/* Returns the number of rows that take over from this instance. */
size_t quota_ledger_followers(const struct quota_ledger *l, uint64_t id);

/* A limit that is exceeded. */
struct quota_excess {
    const char *quota, *resource;
    int64_t held, limit;
};
/* Returns whether the instance counts against a limit that is exceeded: by what is held now, or by what will be held
 * once all stops are done. */
bool quota_ledger_exceeds(struct quota_ledger *l, const struct berth_cluster *c, uint64_t id, struct quota_excess *ret);
/* Compares the usage with a recount from the rows. -EBADMSG if they differ. */
int quota_ledger_audit(struct quota_ledger *l, const struct berth_cluster *c, struct berth_err *err);
