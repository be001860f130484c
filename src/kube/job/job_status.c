/* job_status.c - the status of a job as JSON. */
#include <string.h>

#include "kube/client/clock.h"
#include "kube/job/job_internal.h"

static const json_t *condition_find(const json_t *status, const char *type)
{
    const json_t *list = json_object_get(status, "conditions");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        const char *name = json_string_value(json_object_get(one, "type"));
        if (name && strcmp(name, type) == 0)
            return one;
    }
    return NULL;
}

bool job_condition(const json_t *status, const char *type)
{
    const char *value = json_string_value(json_object_get(condition_find(status, type), "status"));
    return value && strcmp(value, "True") == 0;
}

static const char *moment(int64_t now_ns, char buf[static TIMESTAMP_MAX])
{
    return timestamp_text(now_ns - now_ns % SECOND_NS, buf);
}

/* Adds a condition; lastTransitionTime is kept while its value stays the same. */
static void condition_add(const struct job_entry *j, json_t *list, const char *type, bool value, const char *reason,
                          const char *text, int64_t now_ns)
{
    char buf[TIMESTAMP_MAX];
    const json_t *was = condition_find(j->status, type);
    const char *at = json_string_value(json_object_get(was, "lastTransitionTime"));
    if (!at || job_condition(j->status, type) != value)
        at = moment(now_ns, buf);
    (void)json_array_append_new(
        list, json_pack("{s:s,s:s,s:s,s:s,s:s,s:I}", "type", type, "status", value ? "True" : "False", "reason", reason,
                        "message", text, "lastTransitionTime", at, "observedGeneration", (json_int_t)j->generation));
}

/* Reports whether every role has the tasks it needs to start. */
static bool is_scheduled(const struct job_entry *j)
{
    for (size_t r = 0; r < j->roles.len; r++) {
        const struct job_role *role = &j->roles.at[r];
        uint32_t min = j->spec.gang && j->spec.roles[r].min ? j->spec.roles[r].min : role->len;
        if (role->live + role->done < min)
            return false;
    }
    return true;
}

/* Appends why the job is waiting, in one sentence. */
static void why_waiting(const struct job_entry *j, int64_t now_ns, struct str *to)
{
    char buf[TIMESTAMP_MAX];
    if (j->refused)
        str_add(to, j->refused);
    else if (j->spec.suspend)
        str_add(to, "The job is suspended.");
    else if (j->pause_ns > now_ns && j->pause_ns > j->spec.begin_ns)
        str_addf(to, "A pod failed; the job is paused until %s.", moment(j->pause_ns, buf));
    else if (j->spec.begin_ns > now_ns)
        str_addf(to, "The job starts no earlier than %s.", moment(j->spec.begin_ns, buf));
    else
        str_add(to, j->waits ? j->waits : "The job waits in its queue.");
}

static json_t *conditions(const struct job_entry *j, const char *why, int64_t now_ns)
{
    json_t *list = json_array();
    if (j->refused)
        condition_add(j, list, "Accepted", false, "Refused", j->refused, now_ns);
    else if (j->dry_run_generation == j->generation && !j->dry_runs)
        condition_add(j, list, "Accepted", true, "Accepted", "The job is accepted.", now_ns);
    if (j->known && j->end == JOB_UNFINISHED) {
        bool scheduled = is_scheduled(j);
        condition_add(j, list, "Scheduled", scheduled, scheduled ? "Placed" : "Waiting",
                      scheduled ? "The tasks are placed." : why, now_ns);
    } else if (j->known && condition_find(j->status, "Scheduled")) {
        condition_add(j, list, "Scheduled", job_condition(j->status, "Scheduled"), "Ended", "The job has ended.",
                      now_ns);
    }
    if (j->end == JOB_COMPLETE)
        condition_add(j, list, "Complete", true, j->end_reason, j->end_text, now_ns);
    if (j->end == JOB_FAILED)
        condition_add(j, list, "Failed", true, j->end_reason, j->end_text, now_ns);
    return list;
}

static const char *phase(const struct job_entry *j)
{
    if (j->end != JOB_UNFINISHED)
        return j->end == JOB_COMPLETE ? "Succeeded" : "Failed";
    if (j->live)
        return "Running";
    return j->spec.suspend ? "Suspended" : "Pending";
}

/* Sets a time once (`now`: it happens now); an existing value stays. */
static void time_set(const struct job_entry *j, json_t *status, const char *key, bool now, int64_t now_ns)
{
    char buf[TIMESTAMP_MAX];
    const char *was = json_string_value(json_object_get(j->status, key));
    if (was || now)
        (void)json_object_set_new(status, key, json_string(was ? was : moment(now_ns, buf)));
}

void job_indexes_add(const struct job_entry *j, struct str *to)
{
    for (size_t r = 0; r < j->roles.len; r++) {
        const struct job_role *role = &j->roles.at[r];
        bool first = true;
        for (uint32_t t = 0; t < role->len && role->done; t++) {
            uint32_t begin = t;
            if (!role->tasks[t].done)
                continue;
            while (t + 1 < role->len && role->tasks[t + 1].done)
                t++;
            if (first)
                str_addf(to, "%s%s:", to->len ? ";" : "", j->spec.roles[r].name);
            str_addf(to, t > begin ? "%s%u-%u" : "%s%u", first ? "" : ",", begin, t);
            first = false;
        }
    }
}

static const char *number_read(const char *at, uint32_t *ret)
{
    uint32_t number = 0;
    const char *begin = at;
    for (; *at >= '0' && *at <= '9' && number <= KUBE_TASKS_MAX; at++)
        number = number * 10 + (uint32_t)(*at - '0');
    *ret = number;
    return at == begin || number > KUBE_TASKS_MAX ? NULL : at;
}

/* Parses ranges in ascending order; stops at the first error. */
static const char *ranges_each(const char *at, const char *role, void (*each)(void *ctx, const char *, uint32_t),
                               void *ctx)
{
    uint32_t from, to, least = 0;
    do {
        at = number_read(at + 1, &from);
        if (!at || from < least)
            return "";
        to = from;
        if (*at == '-')
            at = number_read(at + 1, &to);
        for (uint32_t i = from; at && i <= to; i++)
            each(ctx, role, i);
        least = to + 1;
    } while (at && *at == ',');
    return at ? at : "";
}

void job_indexes_each(const char *text, void (*each)(void *ctx, const char *role, uint32_t ordinal), void *ctx)
{
    for (size_t roles = 0; roles < KUBE_ROLES_MAX; roles++) {
        CLEANUP(str) struct str role = {0};
        size_t len = strcspn(text, ":;");
        if (!len || text[len] != ':')
            return;
        str_add_bytes(&role, text, len);
        text = ranges_each(text + len, role.at, each, ctx);
        if (*text != ';')
            return;
        text++;
    }
}

static void count_set(json_t *status, const char *key, uint32_t count)
{
    (void)json_object_set_new(status, key, json_integer(count));
}

json_t *job_status(const struct job_entry *j, int64_t now_ns)
{
    CLEANUP(str) struct str why = {0};
    json_t *status = json_object();
    uint32_t all = j->known ? kube_job_tasks(&j->spec) : 0, live = 0;
    for (size_t r = 0; r < j->roles.len; r++)
        live += j->roles.at[r].live;
    why_waiting(j, now_ns, &why);
    bool waits = j->end == JOB_UNFINISHED && all > live + j->done;
    (void)json_object_set_new(status, "phase", json_string(phase(j)));
    count_set(status, "pending", waits ? all - live - j->done : 0);
    count_set(status, "running", live);
    count_set(status, "succeeded", j->done);
    count_set(status, "failed", j->failed);
    count_set(status, "restarts", j->restarts);
    if (j->end == JOB_UNFINISHED && j->done) {
        CLEANUP(str) struct str indexes = {0};
        job_indexes_add(j, &indexes);
        (void)json_object_set_new(status, "completedIndexes", json_string(indexes.at));
    }
    time_set(j, status, "startTime", j->live || j->done || j->failed, now_ns);
    time_set(j, status, "completionTime", j->end != JOB_UNFINISHED, now_ns);
    if (j->end != JOB_UNFINISHED)
        (void)json_object_set_new(status, "reason", json_string(j->end_text));
    else if (j->refused || waits)
        (void)json_object_set_new(status, "reason", json_string(why.at));
    (void)json_object_set_new(status, "observedGeneration", json_integer(j->generation));
    (void)json_object_set_new(status, "conditions", conditions(j, why.at, now_ns));
    return status;
}
