/* queue.h - rules of queues, policies, windows and domains, as parts of crud.h; quotas of users and groups.
 *
 * The rules apply however an object is written: by its routes or in a transaction. Objects that a document names must
 * exist, and an object that others name cannot be deleted.
 */
#pragma once

#include "control/api/crud.h"
#include "wire/doc/queue_doc.h"

enum { QUEUE_DEPTH_MAX = 6 }; /* levels of queues; the core has two more */

/* Checks that a policy of this name is built in or stored. -EINVAL with the most similar name. (policy.c) */
int policy_check_exists(struct request *c, const char *key, const char *name);

/* ---- quotas (quota.c) ---- */

/* Checks a user's quota: it is well-formed, and the quotas of all users of the group together stay within the
 * group's. */
int quota_check_user(struct request *c, const char *id, const json_t *doc);
/* Checks a group's quota: the quotas of its users together must stay within it. */
int quota_check_group(struct request *c, const char *id, const struct group_doc *d);
/* Checks that the core accepts the quota. */
int quota_check(struct request *c, const char *id, const struct quota_doc *d);
/* Returns {"use": {resource: {"held", "asked", "limit", ...}}} of a quota for `status`; NULL: the quota is empty. */
json_t *quota_use_show(const struct request *c, const char *id, const struct quota_doc *d);
/* Returns -EBUSY if a queue, or a window that is not over, names the user or group, which then cannot be deleted. */
int users_groups_check_unused(struct request *c, enum kind kind, const char *id);
/* Checks that these users and groups exist, and guards them. */
int users_groups_check(struct request *c, const char *const *users, size_t users_len, const char *const *groups,
                       size_t groups_len);
