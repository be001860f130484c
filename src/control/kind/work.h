/* work.h - common rules of apps, jobs and VMs when they are written. crud.h describes how; work.c has the rules.
 *
 * A workload's document is what its owner requested. Each change is a new generation. While instances of an earlier
 * generation exist, that version is kept (KIND_SPEC), so that it is known what they were placed from.
 */
#pragma once

#include "control/api/crud.h"

/* Checks the finished document: its syntax, the core's rules, and everything it refers to. (work_rules.c) */
int work_check(struct request *c, const struct crud *k, const char *id, const json_t *old, const json_t *doc);

/* Fills in missing requests and a missing memory limit from the settings; an existing workload only keeps what it had.
 * (work_defaults.c) */
void work_defaults(struct request *c, const json_t *old, json_t *doc);
/* Checks a value of the setting default_requests. */
int work_defaults_check(const char *text, struct arena *arena, struct berth_err *err);

/* Keeps the present document as that of its generation, if instances of it exist or are assumed. (work_spec.c) */
void work_keep_spec(struct request *c, const char *id, const json_t *doc);
/* Returns the first generation of a new workload: above those that remain of an earlier workload of that name. */
uint64_t work_first_generation(struct request *c, const char *id);
/* Ends the pause after failures, because a user has changed, started or restarted the workload. */
void work_clear_failures(struct request *c, const char *id);

/* For struct crud: IDs and owners of all kinds named NAME.OWNER. The group is the owner's present one. (work.c) */
int owned_identify(struct request *c, const struct crud *k, const char *arg, json_t *doc, const char **ret_id);
int owned_belongs(struct request *c, const struct crud *k, const char *id, const json_t *doc, const char **ret_owner,
                  const char **ret_group);
int owned_join_group(struct request *c, json_t *doc);
/* Keeps a key that cannot be changed; -EINVAL if the new document changes it. */
int owned_key_keep(struct request *c, const char *key, const json_t *old, json_t *doc);

/* Returns -EBUSY for a job that was cancelled, has failed or has succeeded. (job_verbs.c) */
int job_refuse_finished(struct request *c, const char *id, const json_t *doc);

/* Returns -EACCES for system services, which are only changed through /v1/system/services. */
int work_refuse_system(struct request *c, const char *id, const json_t *doc);

/* Opens the workload that the path names, applies an edit and runs all checks. */
int work_edit(struct request *c, const struct crud *k, const char *verb, crud_edit_fn *edit, const void *arg);

/* Edits for work_edit, also of system services. (work_verbs.c) */
crud_edit_fn work_start, work_stop, work_restart, work_scale;
extern const struct key_table scale_keys;
crud_edit_fn work_put_map, work_patch_map; /* arg: the key, "settings" or "install" */

/* Puts the settings as the app reads them, with defaults filled in, into the answer. */
int work_show_settings(struct request *c, const json_t *doc);
request_verb app_get_settings, app_get_install;
