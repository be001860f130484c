/* job_claim.h - the properties of a job's role beside its shape (user, queue, times, priority), and how they are put
 * into the role's workload.
 *
 * A value type, so that a claim can be recorded and applied again (kube/journal/journal.h).
 */
#pragma once

#include "kube/tenant/tenant.h"

struct job_claim {
    const char *namespace, *name;                           /* namespace and name of the job */
    const char *user, *queue, *type, *class_name, *network; /* "" or NULL: none */
    const struct berth_label *attributes;
    size_t attributes_len;
    int64_t parameters;
    uint32_t tasks, min;
    int32_t priority; /* overrides the priority of its pods */
    int64_t created_ns, begin_ns, deadline_ns, limit_ns, estimate_ns, min_run_ns;
    bool suspended, gang, unpreemptible, never_preempts;
};

/* Why a role without a job is not placed. */
#define JOB_CLAIM_GONE "its job was deleted"

/* Applies the claim to the workload. Returns why the role may not be placed now, in the arena, or NULL. */
const char *job_claim_apply(const struct job_claim *c, struct tenants *tenants, struct arena *arena,
                            struct berth_workload *w);
