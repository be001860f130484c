/* queue.h - queues, policies, windows and domains: their rules, as parts of crud.h; quotas of users and groups.
 *
 * The rules hold wherever one is written: by its routes or in a transaction. What is named must be there, and what is named
 * by others cannot go.
 */
#pragma once

#include "control/api/crud.h"
#include "wire/doc/queue_doc.h"

enum { QUEUE_DEPTH_MAX = 6 }; /* levels of queues; the core has two more */

/* A policy that may be named: built in, or made. -EINVAL with the nearest. (policy.c) */
int policy_known(struct call *c, const char *key, const char *name);

/* ---- quotas (quota.c) ---- */

/* May a user have this quota? Is it well-formed, and are all users of its group together within the group's? */
int quota_check_user(struct call *c, const char *id, const json_t *doc);
/* The same of a group: its users together must stay within it. */
int quota_check_group(struct call *c, const char *id, const struct group_doc *d);
/* Is it well-formed for the core? */
int quota_check(struct call *c, const char *id, const struct quota_doc *d);
/* {"use": {resource: {"held", "asked", "limit", ...}}} of a quota, for `status`; NULL: it has none of what is listed. */
json_t *quota_use_show(const struct call *c, const char *id, const struct quota_doc *d);
/* Somebody whom a queue, or a window that is not over, names cannot go: -EBUSY. */
int people_named(struct call *c, enum kind kind, const char *id);
/* Names of users and groups that must be there; they are guarded. */
int people_check(struct call *c, const char *const *users, size_t users_len, const char *const *groups,
                 size_t groups_len);
