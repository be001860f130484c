/* work.h - what apps, jobs and vms have in common when they are written. See crud.h for how; work.c has the rules.
 *
 * A workload's document is what its owner asked for. Each change of it is a new generation; as long as instances of an
 * earlier one are there, that one is kept beside it (KIND_SPEC), so that it is known what they were placed from.
 */
#pragma once

#include "control/api/crud.h"

/* Is the finished document right: by itself, for the core, and with all it refers to? (work_rules.c) */
int work_check(struct call *c, const struct crud *k, const char *id, const json_t *old, const json_t *doc);

/* Fills in requests and the limit of memory where nothing is said of them, by the settings; of work that is there already
 * only what it had. (work_defaults.c) */
void work_defaults(struct call *c, const json_t *old, json_t *doc);
/* Is a text one that the setting default_requests may have? */
int work_defaults_check(const char *text, struct arena *arena, struct berth_err *err);

/* Keeps the present document as that of its generation, if instances of it are there or under way. (work_spec.c) */
void work_keep_spec(struct call *c, const char *id, const json_t *doc);
/* The generation of a new workload: above that of everything that is left of an earlier one of that name. */
uint64_t work_first_generation(struct call *c, const char *id);
/* Whoever changes, starts or restarts what failed need not wait for the next try. */
void work_forgive(struct call *c, const char *id);

/* Of whatever belongs to a user and is called NAME.OWNER; for struct crud. The owner's group is that of this moment. (work.c) */
int owned_identify(struct call *c, const struct crud *k, const char *arg, json_t *doc, const char **ret_id);
int owned_belongs(struct call *c, const struct crud *k, const char *id, const json_t *doc, const char **ret_owner,
                  const char **ret_group);
int owned_join_group(struct call *c, json_t *doc);
/* A key that cannot be changed: it stays, or -EINVAL. */
int owned_same(struct call *c, const char *key, const json_t *old, json_t *doc);

/* A job that was cancelled, has failed or has ended is over: -EBUSY. (job_verbs.c) */
int job_refuse_over(struct call *c, const char *id, const json_t *doc);

/* System services are changed through /v1/system/services only: -EACCES. */
int work_refuse_system(struct call *c, const char *id, const json_t *doc);

/* Opens the workload that the path names for a verb, and takes an edit of it through all checks. */
int work_edit(struct call *c, const struct crud *k, const char *verb, crud_edit_fn *edit, const void *arg);

/* Edits for work_edit, also of system services. (work_verbs.c) */
crud_edit_fn work_start, work_stop, work_restart, work_scale;
extern const struct key_table scale_keys;
crud_edit_fn work_put_map, work_patch_map; /* arg: the key, "settings" or "install" */

/* The settings as the app reads them, defaults filled in, into the answer. */
int work_show_settings(struct call *c, const json_t *doc);
call_run app_get_settings, app_get_install;
