/* job_claim.h - what a job says of one of its roles beside its shape, and how that becomes a part of the role's workload.
 *
 * A value of its own, so that it can be recorded and applied again (kube/journal/journal.h).
 */
#pragma once

#include "kube/tenant/tenant.h"

struct job_claim {
    const char *namespace, *name;                           /* of the job */
    const char *user, *queue, *type, *class_name, *network; /* "" or NULL: none */
    const struct berth_label *attributes;
    size_t attributes_len;
    int64_t parameters;
    uint32_t tasks, min;
    int32_t priority; /* above that of its pods */
    int64_t created_ns, begin_ns, deadline_ns, limit_ns, estimate_ns, min_run_ns;
    bool suspended, gang, unpreemptible, never_preempts;
};

/* Why a role of no job is not placed. */
#define JOB_CLAIM_GONE "its job is gone"

/* Returns why it may not be placed as things are, in the arena, or NULL. */
const char *job_claim_apply(const struct job_claim *c, struct tenants *tenants, struct arena *arena,
                            struct berth_workload *w);
