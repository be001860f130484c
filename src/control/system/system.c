/* system.c - verbs for system settings and system services. */
#include "control/system/system.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "control/control_parts.h"
#include "control/job/notification.h"
#include "control/kind/queue.h"
#include "control/kind/work.h"
#include "control/node/join.h"
#include "control/sched/plan_policy.h"
#include "control/system/settings_table.h"
#include "control/tenant/cap.h"
#include "control/tenant/share_view.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"
#include "wire/text/words.h"

static int permitted(struct request *c)
{
    if (permit(&c->caller, PERMIT_SYSTEM, "", ""))
        return 0;
    return err_set(&c->err, EACCES, "role %s may not change the system", c->caller.role);
}

/* ---- settings ---------------------------------------------------------------------------------------------------- */

int system_get_settings(struct request *c)
{
    int rc = permitted(c);
    if (rc < 0)
        return rc;
    c->answer.body = request_query(c, "schema")
                         ? system_settings_schema(system_setting_number(c->state, SETTING_DEFAULTS))
                         : system_settings(c->state);
    c->answer.revision = state_revision(c->state);
    return 0;
}

/* Requires that the configured profile exists; the change guards it. */
static int check_profile_exists(struct request *c, const json_t *settings)
{
    char quoted[QUOTE_MAX];
    const char *name = json_string_value(json_object_get(settings, "profile"));
    if (!name || berth_profile_find(name) || change_read(&c->change, KIND_PROFILE, name))
        return 0;
    return err_set(&c->err, EINVAL, "profile: there is no profile %s; see 'berth profiles'", quote(name, quoted));
}

static int charges_check(struct request *c, const char *text)
{
    const struct berth_amount *charges;
    size_t len;
    int rc = charges_parse(text, &c->arena, &charges, &len, &c->err);
    return rc < 0 ? err_prefix(&c->err, "charges") : 0;
}

/* Settings are readable by many users and recorded in the journal: they may name secrets, but not contain them. */
static int reject_secrets(struct request *c, const json_t *settings)
{
    const char *secret = json_string_value(json_object_get(settings, "notify_secret")), *text;
    const char *smtp = json_string_value(json_object_get(settings, "smtp_url"));
    if (smtp && strchr(smtp, '@'))
        return err_set(&c->err, EINVAL,
                       "smtp_url: must not contain a name and password; if the server needs them, set a program "
                       "like msmtp as mail_command in berthd's configuration file");
    int rc = secret ? notification_secret(c->control, secret, &c->arena, &text, &c->err) : 0;
    return rc < 0 ? err_prefix(&c->err, "notify_secret") : 0;
}

/* A setting that names a program to run would give the permissions of berthd to every user who may change settings. */
static int reject_programs(struct request *c, json_t *settings)
{
    const json_t *command = json_object_get(settings, "mail_command");
    if (!command || json_is_null(command) || (json_is_string(command) && !*json_string_value(command))) {
        (void)json_object_del(settings, "mail_command"); /* an empty value, as shown by an earlier version */
        return 0;
    }
    return err_set(&c->err, EINVAL,
                   "mail_command: is not a setting of the cluster; set it as root on the host of berthd, in "
                   "/etc/berth/berthd.conf or the file of --config, as: mail_command = /usr/sbin/sendmail");
}

/* A command-line option of berthd overrides its setting: a different stored value would have no effect. */
static int reject_overridden(struct request *c, const json_t *settings)
{
    const struct control_options *o = &c->control->options;
    const struct {
        enum system_setting setting;
        const char *name, *option;
        bool given;
    } rows[] = {
        {SETTING_LEASE_S,        "lease_s",        "--lease",               o->lease_ns > 0      },
        {SETTING_AUDIT_EVERY,    "audit_every",    "--audit-every",         o->audit_every > 0   },
        {SETTING_REQUESTS_PER_S, "requests_per_s", "--requests-per-second", o->requests_per_s > 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const json_t *value = json_object_get(settings, rows[i].name);
        int64_t was = system_setting_number(c->state, rows[i].setting);
        if (rows[i].given && json_is_integer(value) && json_integer_value(value) != was)
            return err_set(&c->err, EBUSY,
                           "%s: berthd was started with %s, which overrides the setting; start berthd without it "
                           "to set it here",
                           rows[i].name, rows[i].option);
    }
    return 0;
}

/* Consumes the reference, also on failure. */
static int settings_write(struct request *c, json_t *settings)
{
    CLEANUP(json) json_t *next = settings;
    const json_t *present = json_object_get(change_read(&c->change, KIND_SETTING, SETTINGS_ID), "defaults");
    if (present && !json_object_get(next, "defaults")) /* `defaults` stays unless the request sets another */
        (void)json_object_set(next, "defaults", (json_t *)present);
    const json_t *defaults = json_object_get(next, "defaults");
    CLEANUP(json) json_t *schema = system_settings_schema(json_is_integer(defaults) ? json_integer_value(defaults) : 1);
    CLEANUP(json) json_t *filled = NULL;
    int rc = reject_programs(c, next);
    if (rc == 0)
        rc = settings_check(schema, next, &filled, &c->err);
    if (rc == 0)
        rc = check_profile_exists(c, next);
    const char *agents = json_string_value(json_object_get(next, "agent_addresses"));
    if (rc == 0 && agents)
        rc = agent_addresses_check(agents, &c->err);
    const char *allow = json_string_value(json_object_get(next, "notify_allow"));
    if (rc == 0 && allow)
        rc = notification_allow_check(allow, &c->err);
    const char *policy = json_string_value(json_object_get(next, "policy"));
    if (rc == 0 && policy)
        rc = policy_check_exists(c, "policy", policy);
    const char *before = json_string_value(json_object_get(next, "backfill_policy"));
    if (rc == 0 && before && *before)
        rc = policy_check_exists(c, "backfill_policy", before);
    const char *charges = json_string_value(json_object_get(next, "charges"));
    if (rc == 0 && charges)
        rc = charges_check(c, charges);
    const char *prices = json_string_value(json_object_get(next, "prices"));
    if (rc == 0 && prices && prices_check(prices, &c->err) < 0)
        rc = err_prefix(&c->err, "prices");
    const char *exceptions = json_string_value(json_object_get(next, "cap_exceptions"));
    if (rc == 0 && exceptions && cap_exceptions_check(exceptions, &c->arena, &c->err) < 0)
        rc = err_prefix(&c->err, "cap_exceptions");
    const char *requests = json_string_value(json_object_get(next, "default_requests"));
    if (rc == 0 && requests && work_defaults_check(requests, &c->arena, &c->err) < 0)
        rc = err_prefix(&c->err, "default_requests");
    if (rc == 0)
        rc = reject_secrets(c, next);
    if (rc == 0)
        rc = reject_overridden(c, next);
    if (rc < 0)
        return rc;
    c->change.verb = "system.settings";
    c->change.subject = "settings/" SETTINGS_ID;
    change_put(&c->change, KIND_SETTING, SETTINGS_ID, take_ptr(&next));
    c->answer.body = take_ptr(&filled);
    return 0;
}

int system_put_settings(struct request *c)
{
    int rc = permitted(c);
    return rc < 0 ? rc : settings_write(c, json_deep_copy(c->body));
}

int system_patch_settings(struct request *c)
{
    const char *name;
    json_t *value;
    int rc = permitted(c);
    if (rc < 0)
        return rc;
    const json_t *present = change_read(&c->change, KIND_SETTING, SETTINGS_ID);
    json_t *next = present ? json_deep_copy(present) : json_object();
    doc_strip(next);
    (void)json_object_del(next, "mail_command"); /* written by an earlier version; has no effect */
    json_object_foreach((json_t *)c->body, name, value)
    {
        if (json_is_null(value))
            (void)json_object_del(next, name);
        else
            (void)json_object_set(next, name, value);
    }
    return settings_write(c, next);
}

/* ---- services ---------------------------------------------------------------------------------------------------- */

/* Finds a system service by NAME or NAME.system. */
static const struct object *service(struct request *c, const char **ret_id)
{
    char name[ID_MAX + 1];
    const char *arg = c->args[0], *dot = strchr(arg, '.');
    const char *head = dot ? arena_strndup(&c->arena, arg, (size_t)(dot - arg)) : arg;
    const struct object *o = NULL;
    if (permitted(c) < 0)
        return NULL;
    if (id_fold("id", head, name, NULL) == 0 && (!dot || strcmp(dot, ".system") == 0))
        o = state_find(c->state, KIND_APP, *ret_id = arena_fmt(&c->arena, "%s.system", name));
    if (o && o->work->system)
        return o;
    char quoted[QUOTE_MAX];
    (void)err_set(&c->err, ENOENT, "no system service %s; see 'berth system services'", quote(arg, quoted));
    return NULL;
}

static int service_edit(struct request *c, const char *verb, crud_edit_fn *edit, const void *arg)
{
    const char *id = NULL;
    if (!service(c, &id))
        return -c->err.code;
    const json_t *old = change_read(&c->change, KIND_APP, id);
    CLEANUP(json) json_t *doc = json_deep_copy(old);
    int rc = edit(c, id, doc, arg);
    if (rc == 0)
        rc = crud_write(c, &app_crud, id, old, take_ptr(&doc));
    if (rc < 0)
        return rc;
    c->change.verb = arena_fmt(&c->arena, "service.%s", verb);
    c->change.subject = arena_fmt(&c->arena, "apps/%s", id);
    return crud_answer(c, KIND_APP, id, false);
}

static int disable(struct request *c, const char *id, json_t *doc, const void *arg)
{
    if (json_is_false(json_object_get(doc, "stoppable")))
        return err_set(&c->err, EBUSY, "%s cannot be disabled: the cluster needs it; restart it instead", id);
    return work_stop(c, id, doc, arg);
}

int system_list_services(struct request *c)
{
    size_t len = 0;
    int rc = permitted(c);
    if (rc < 0)
        return rc;
    const struct object *const *apps = state_list(c->state, KIND_APP, &len);
    json_t *items = json_array();
    for (size_t i = 0; i < len; i++)
        if (apps[i]->work->system)
            (void)json_array_append_new(items, crud_show_object(c, &app_crud, apps[i]));
    c->answer.revision = state_revision(c->state);
    c->answer.body = json_pack("{s:o, s:I}", "items", items, "revision", (json_int_t)c->answer.revision);
    return 0;
}

int system_get_service(struct request *c)
{
    const char *id = NULL;
    const struct object *o = service(c, &id);
    if (!o)
        return -c->err.code;
    c->answer.body = crud_show_object(c, &app_crud, o);
    c->answer.revision = state_revision(c->state);
    return 0;
}

int system_enable_service(struct request *c)
{
    return service_edit(c, "enable", work_start, NULL);
}

int system_disable_service(struct request *c)
{
    return service_edit(c, "disable", disable, NULL);
}

int system_restart_service(struct request *c)
{
    return service_edit(c, "restart", work_restart, NULL);
}

int system_put_service_settings(struct request *c)
{
    return service_edit(c, "settings", work_put_map, "settings");
}

int system_patch_service_settings(struct request *c)
{
    return service_edit(c, "settings", work_patch_map, "settings");
}

int system_get_service_settings(struct request *c)
{
    const char *id = NULL;
    if (!service(c, &id))
        return -c->err.code;
    return work_show_settings(c, change_read(&c->change, KIND_APP, id));
}
