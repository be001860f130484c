/* admission.h - admission of a workload when it is created or changed: the rules of its queue, and its quotas. */
#pragma once

#include "control/api/crud.h"
#include "wire/doc/api.h"

/* Returns whether the queue exists (or is the default one) and is open to this user of this group. */
bool queue_open(const struct state *s, const char *queue, const char *user, const char *group);
/* Checks a workload. -EINVAL: the queue does not exist, or does not offer the requested terms. -EACCES: the queue is
 * closed to the owner, or a quota or cap would be exceeded; the error tells which one, its use, and what would be
 * accepted. */
int admit_check(struct request *c, enum kind kind, const char *id, const json_t *old, const json_t *doc,
                const struct work_doc *d);
/* For a call with quota_check_deferred: checks the quotas of all workloads that the change writes, each one together
 * with those before it. Each workload is told to the cluster once, instead of once for each of the others. */
int admit_all(struct request *c);
/* Returns -EACCES and describes a verdict that is not ok: the quota, its use, and what would be accepted. `kind` is the
 * word for the workload. For a user's quota the error refers to the managers of the group. */
int admit_refuse(const struct berth_admission_result *v, const char *kind, const char *group, struct arena *arena,
                 struct berth_err *err);
