/* admission.h - may this work be taken on? The rules of its queue, and its quotas, when it is made or changed. */
#pragma once

#include "control/api/crud.h"
#include "wire/doc/api.h"

/* Is the queue there (or the default one), and open to this user of this group? */
bool queue_open(const struct state *s, const char *queue, const char *user, const char *group);
/* -EINVAL for a queue that is not there, or terms that it does not have; -EACCES for one that is not for its owner, or a
 * quota or a cap that would be exceeded: which, what of it is used, and what would be accepted. */
int admit_check(struct call *c, enum kind kind, const char *id, const json_t *old, const json_t *doc,
                const struct work_doc *d);
/* The quotas of all workloads that the change writes, each after those before it, for a call with judge_later: so each is told
 * to the cluster once, and not once for each of the others. */
int admit_all(struct call *c);
/* -EACCES, in words, for a verdict that is not ok: of what quota, what is used, and what would be accepted. `kind` is what the work is called; where the quota
 * is a user's, the managers of the group are named. */
int admit_refuse(const struct berth_verdict *v, const char *kind, const char *group, struct arena *arena,
                 struct berth_err *err);
