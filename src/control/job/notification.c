/* notification.c - creates notifications and checks their recipients. */
#include "control/job/notification.h"

#include <errno.h>
#include <string.h>

#include "base/address.h"
#include "base/mem.h"
#include "control/api/request.h"
#include "control/control_parts.h"
#include "control/kind/secret.h"
#include "control/system/settings_table.h"
#include "wire/text/document.h"
#include "wire/text/words.h"

/* ---- addresses -------------------------------------------------------------------------------------------------- */

const char *notification_mail(const char *to)
{
    static const char prefix[] = "mailto:", bad[] = " \t\r\n,;<>()[]\\\"";
    const char *address = strncmp(to, prefix, sizeof prefix - 1) == 0 ? to + sizeof prefix - 1 : to;
    const char *at = strchr(address, '@');
    if (!at || at == address || !at[1] || strchr(at + 1, '@') || *address == '-' || strpbrk(address, bad) ||
        strstr(address, "://"))
        return NULL;
    return address;
}

int notification_secret(const struct control *c, const char *named, struct arena *arena, const char **ret,
                        struct berth_err *err)
{
    char quoted[QUOTE_MAX];
    const char *slash = strchr(named, '/');
    *ret = "";
    if (!*named)
        return 0;
    const char *id = slash ? arena_strndup(arena, named, (size_t)(slash - named)) : named;
    const struct object *o = slash ? state_find(c->state, KIND_SECRET, id) : NULL;
    CLEANUP(json) json_t *doc = o ? object_doc(o) : NULL, *data = NULL;
    int rc = doc ? secret_open(c, id, doc, &data, err) : 0;
    const char *text = json_string_value(json_object_get(data, slash ? slash + 1 : ""));
    if (rc == 0 && !text)
        rc = err_set(err, EINVAL, "there is no secret %s; expected NAME.OWNER/KEY; create one with 'berth secret set'",
                     quote(named, quoted));
    if (rc == 0)
        *ret = arena_strdup(arena, text);
    return rc;
}

/* Returns whether the URL starts with the prefix, followed by nothing, a path or a port. */
static bool url_has_prefix(const char *url, const char *start, size_t len)
{
    if (len == 0 || strncmp(url, start, len) != 0)
        return false;
    return start[len - 1] == '/' || !url[len] || strchr("/:?", url[len]);
}

/* Returns whether the entry, a prefix of the URL, names its host by address or as localhost. */
static bool names_address(const char *entry, size_t len)
{
    const char *host = memmem(entry, len, "://", 3);
    struct address_range range;
    if (!host)
        return false;
    host += 3;
    size_t rest = len - (size_t)(host - entry);
    bool six = rest && *host == '[';
    host += six;
    rest -= six;
    size_t host_len = 0;
    while (host_len < rest && !strchr(six ? "]" : "/:?", host[host_len]))
        host_len++;
    return address_range_parse(host, host_len, &range) ||
           (host_len == strlen("localhost") && strncmp(host, "localhost", host_len) == 0);
}

enum notification_allowed notification_url_allowed(const char *allow, const char *url)
{
    const char *host = strstr(url, "://");
    enum notification_allowed best = NOTIFICATION_REFUSED;
    if (!host || (strncmp(url, "https://", 8) != 0 && strncmp(url, "http://", 7) != 0))
        return NOTIFICATION_REFUSED;
    host += 3;
    if (!*host || strchr("/:?", *host) || strcspn(host, "@") < strcspn(host, "/?"))
        return NOTIFICATION_REFUSED; /* no host; or user information, which could be mistaken for the host */
    for (const char *at = allow; *at && best != NOTIFICATION_NAMED;) {
        size_t len = strcspn(at, ",");
        if (url_has_prefix(url, at, len))
            best = names_address(at, len) ? NOTIFICATION_NAMED : NOTIFICATION_ALLOWED;
        at += len + (at[len] == ',');
    }
    return best;
}

bool notification_address_allowed(const char *allow, const struct sockaddr *address)
{
    for (const char *at = allow; *at;) {
        size_t len = strcspn(at, ",");
        struct address_range range;
        if (address_range_parse(at, len, &range) && address_range_has(&range, address))
            return true;
        at += len + (at[len] == ',');
    }
    return false;
}

int notification_allow_check(const char *allow, struct berth_err *err)
{
    for (const char *at = allow; *at;) {
        size_t len = strcspn(at, ",");
        struct address_range range;
        if (strncmp(at, "https://", 8) != 0 && strncmp(at, "http://", 7) != 0 && !address_range_parse(at, len, &range))
            return err_set(err, EINVAL,
                           "notify_allow: '%.*s' is neither a URL prefix, like https://hooks.example.org/, nor an "
                           "address or a range, like 10.1.0.0/16",
                           (int)(len < 60 ? len : 60), at);
        at += len + (at[len] == ',');
    }
    return 0;
}

int notification_check(const struct request *c, const struct job_terms *terms, struct berth_err *err)
{
    const struct state *s = c->state;
    bool program = c->control && notifications_mail_command(c->control->notifications);
    struct arena arena;
    char quoted[QUOTE_MAX];
    int rc = 0;
    if (terms->notify_len == 0)
        return 0;
    arena_init(&arena);
    const char *allow = system_setting_text(s, SETTING_NOTIFY_ALLOW, &arena);
    bool mail = program || *system_setting_text(s, SETTING_SMTP_URL, &arena);
    for (size_t i = 0; rc == 0 && i < terms->notify_len; i++) {
        const char *to = terms->notify[i].to;
        bool url = strstr(to, "://") != NULL;
        if (url && notification_url_allowed(allow, to) == NOTIFICATION_REFUSED)
            rc = err_set(err, EINVAL, "notify[%zu]: to: %s is not allowed by the setting notify_allow", i,
                         quote(to, quoted));
        else if (!url && !notification_mail(to))
            rc = err_set(err, EINVAL, "notify[%zu]: to: %s is not an address like a@b.org", i, quote(to, quoted));
        else if (!url && !mail)
            rc = err_set(
                err, EINVAL,
                "notify[%zu]: to: mail is not configured; an administrator can set smtp_url, or mail_command in "
                "berthd's configuration file",
                i);
    }
    arena_done(&arena);
    return rc;
}

/* ---- creating notifications ------------------------------------------------------------------------------------- */

static bool room_for(const struct state *s, const char *owner)
{
    size_t len, own = 0;
    const struct object *const *list = state_list(s, KIND_NOTIFICATION, &len);
    for (size_t i = 0; i < len; i++)
        own += strcmp(list[i]->owner, owner) == 0;
    return len < NOTIFICATIONS_MAX && own < NOTIFICATIONS_USER_MAX;
}

static const char *event_name(unsigned told)
{
    return told == NOTIFY_STARTED  ? "started"
           : told == NOTIFY_ENDED  ? "ended"
           : told == NOTIFY_FAILED ? "failed"
                                   : "preempted";
}

static void notification_put(struct change *c, const struct object *job, const struct job_notify *to, unsigned told,
                             const char *reason, int64_t now_ns)
{
    char at[TIMESTAMP_MAX], number[24];
    const char *state = told == NOTIFY_STARTED ? "running" : told == NOTIFY_PREEMPTED ? "waiting" : event_name(told);
    json_t *doc = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "to", to->to, "event", event_name(told), "job",
                            job->id, "name", job->work->name, "owner", job->owner, "group", job->group, "state", state,
                            "at", timestamp_text(now_ns, at));
    if (!doc)
        return;
    if (reason && *reason)
        (void)json_object_set_new(doc, "reason", json_string(reason));
    change_put(c, KIND_NOTIFICATION, str_u64(state_next_number(c->state, KIND_NOTIFICATION), number), doc);
}

void notification_add(struct change *c, const struct object *job, unsigned told, const char *reason, int64_t now_ns)
{
    struct work_doc d;
    if (!memmem(job->doc.at, job->doc.len, "\"notify\"", 8) || !room_for(c->state, job->owner))
        return;
    CLEANUP(json) json_t *doc = object_doc(job);
    if (work_doc_read(doc, c->arena, &d, NULL) < 0)
        return;
    for (size_t i = 0; i < d.job.notify_len; i++)
        if (d.job.notify[i].on & told)
            notification_put(c, job, &d.job.notify[i], told, reason, now_ns);
}

void notification_scan(struct change *c, int64_t now_ns)
{
    size_t len = c->items.len; /* items that are added here are not jobs */
    for (size_t i = 0; i < len; i++) {
        const struct change_item item = c->items.at[i];
        const struct object *job =
            item.kind == KIND_JOB && item.write && item.doc ? state_find(c->state, KIND_JOB, item.id) : NULL;
        if (!job || !memmem(job->doc.at, job->doc.len, "\"notify\"", 8))
            continue;
        CLEANUP(json) json_t *old = object_doc(job);
        const json_t *doc = item.doc;
        if (json_object_get(doc, "started") && !json_object_get(old, "started"))
            notification_add(c, job, NOTIFY_STARTED, NULL, now_ns);
        if (!json_object_get(doc, "finished") || json_object_get(old, "finished"))
            continue;
        if (json_is_true(json_object_get(doc, "failed")))
            notification_add(c, job, NOTIFY_FAILED, json_string_value(json_object_get(doc, "error")), now_ns);
        else if (!json_is_true(json_object_get(doc, "cancelled")))
            notification_add(c, job, NOTIFY_ENDED, NULL, now_ns);
    }
}
