/* job_doc.c - keys of jobs only: time limits, deadlines, dependencies, arrays, notifications, preemption. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "wire/doc/objects.h"
#include "wire/text/moment.h"
#include "wire/text/words.h"

enum { URGENCY_MAX = 1000 };
#define SECOND_NS INT64_C(1000000000)
#define DAY_NS (86400 * SECOND_NS)
#define LONG_NS (3650 * DAY_NS)

/* ---- times ------------------------------------------------------------------------------------------------------- */

static int bounded_duration_read(struct reader *r, const struct key *key, const json_t *value, void *object,
                                 int64_t least_ns)
{
    int64_t ns = 0;
    int rc = duration_read(r, &(struct key){0}, value, &ns);
    if (rc == 0 && (ns < least_ns || ns > LONG_NS))
        return expected(r, least_ns ? "a duration from 1s to 3650d" : "a duration of at most 3650d", value);
    if (rc == 0)
        *(int64_t *)key_field(key, object) = ns;
    return rc;
}

static int length_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    return bounded_duration_read(r, key, value, object, SECOND_NS);
}

static int pause_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    return bounded_duration_read(r, key, value, object, 0);
}

static int urgency_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    json_int_t n = json_integer_value(value);
    if (!json_is_integer(value) || n < -URGENCY_MAX || n > URGENCY_MAX)
        return expected(r, "a whole number from -1000 to 1000", value);
    return i32_read(r, key, value, object);
}

/* ---- arrays ------------------------------------------------------------------------------------------------------ */

#define AT(field) offsetof(struct job_array, field)
static const struct key array_rows[] = {
    KEY("from", "whole number", "index of the first task; default: 0", u32_read, .at = AT(from)),
    KEY("to", "whole number", "maximum index of the last task; required", u32_read, .at = AT(to)),
    KEY("step", "whole number", "difference between indexes; default: 1", u32_read, .at = AT(step)),
    KEY("parallel", "whole number", "maximum concurrent tasks; default: all", u32_read, .at = AT(parallel)),
};
#undef AT
KEY_TABLE(array_keys, "array", array_rows);

/* Parses "0-99", "1-99:2" or "0-99%4". */
static bool array_text(const char *text, struct job_array *a)
{
    static const struct {
        char before;
        size_t at;
        bool must;
    } parts[] = {
        {0,   offsetof(struct job_array, from),     true },
        {'-', offsetof(struct job_array, to),       true },
        {':', offsetof(struct job_array, step),     false},
        {'%', offsetof(struct job_array, parallel), false},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        uint64_t n = 0;
        size_t digits = 0;
        if (parts[i].before && *text != parts[i].before) {
            if (parts[i].must)
                return false;
            continue;
        }
        text += parts[i].before != 0;
        for (; text[digits] >= '0' && text[digits] <= '9' && digits < 10; digits++)
            n = n * 10 + (uint64_t)(text[digits] - '0');
        if (digits == 0 || n > UINT32_MAX)
            return false;
        *(uint32_t *)((char *)a + parts[i].at) = (uint32_t)n;
        text += digits;
    }
    return !*text;
}

static int array_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    struct job_array a = {.step = 1, .to = UINT32_MAX};
    if (json_is_string(value)) {
        if (!array_text(json_string_value(value), &a))
            return expected(r, "indexes like \"0-99\", \"0-99:2\" or \"0-99%4\"", value);
    } else {
        int rc = table_read(r, value, &array_keys, &a);
        if (rc < 0)
            return rc;
        if (!json_object_get(value, "to"))
            return missing(r, "to");
    }
    if (a.to < a.from)
        return err_set(r->err, EINVAL, "to: %" PRIu32 " is before from, %" PRIu32, a.to, a.from);
    if (a.step == 0)
        return err_set(r->err, EINVAL, "step: must be at least 1");
    a.count = (a.to - a.from) / a.step;
    if (a.count >= ARRAY_TASKS_MAX)
        return err_set(r->err, EINVAL, "%" PRIu64 " tasks; at most %d are allowed", (uint64_t)a.count + 1,
                       ARRAY_TASKS_MAX);
    a.count++;
    *(struct job_array *)key_field(key, object) = a;
    return 0;
}

/* ---- dependencies ----------------------------------------------------------------------------------------------- */

static const struct enum_word when_words[] = {
    {"ok",      AFTER_OK     },
    {"started", AFTER_STARTED},
    {"failed",  AFTER_FAILED },
    {"ended",   AFTER_ENDED  },
    {NULL,      0            },
};

const char *after_when_name(enum after_when when)
{
    for (size_t i = 0; when_words[i].name; i++)
        if (when_words[i].value == when)
            return when_words[i].name;
    return "";
}

/* Reads a job number, as a number or as text. */
static int job_number_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    const char *text = NULL;
    int rc = text_of(r, value, &text);
    if (rc < 0)
        return rc;
    uint64_t n = 0;
    size_t len = strlen(text);
    for (size_t i = 0; i < len && len <= 18; i++) {
        if (text[i] < '0' || text[i] > '9')
            return expected(r, "the number of a job", value);
        n = n * 10 + (uint64_t)(text[i] - '0');
    }
    if (n == 0 || len > 18)
        return expected(r, "the number of a job", value);
    *(uint64_t *)key_field(key, object) = n;
    return 0;
}

#define AT(field) offsetof(struct job_after, field)
static const struct key after_rows[] = {
    KEY("job", "number", "number of the job; required", job_number_read, .at = AT(job)),
    KEY("when", "`ok`, `started`, `failed` or `ended`",
        "it succeeded; it started; it failed or was cancelled; it ended in any way. Default: `ok`", word_read,
        .at = AT(when), .arg = when_words),
};
static KEY_TABLE(after_keys, "after", after_rows);

static int after_short(struct reader *r, const json_t *value, void *item)
{
    static const struct key job = {.at = AT(job)};
    return job_number_read(r, &job, value, item);
}
#undef AT

static int after_finish(struct reader *r, void *item)
{
    return ((const struct job_after *)item)->job ? 0 : missing(r, "job");
}

static const struct object_kind after_kind = {.table = &after_keys,
                                              .size = sizeof(struct job_after),
                                              .read_short = after_short,
                                              .finish = after_finish};

static int after_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    if (json_array_size(value) > AFTER_MAX)
        return err_set(r->err, EINVAL, "%zu jobs; at most %d are allowed", json_array_size(value), AFTER_MAX);
    return objects_read(r, key, value, object);
}

/* ---- notifications ---------------------------------------------------------------------------------------------- */

static const struct enum_word event_words[] = {
    {"started",   NOTIFY_STARTED  },
    {"ended",     NOTIFY_ENDED    },
    {"failed",    NOTIFY_FAILED   },
    {"preempted", NOTIFY_PREEMPTED},
    {NULL,        0               },
};

static int events_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    unsigned all = 0;
    bool alone = json_is_string(value);
    if (!alone && !json_is_array(value))
        return expected(r, "a list of started, ended, failed and preempted", value);
    for (size_t i = 0; i < (alone ? 1 : json_array_size(value)); i++) {
        const json_t *one = alone ? value : json_array_get(value, i);
        unsigned bit = 0;
        if (!json_is_string(one))
            return in_item(r, i, expected(r, "started, ended, failed or preempted", one));
        int rc = word_find(r, event_words, json_string_value(one), &bit);
        if (rc < 0)
            return in_item(r, i, rc);
        all |= bit;
    }
    *(unsigned *)key_field(key, object) = all;
    return 0;
}

#define AT(field) offsetof(struct job_notify, field)
static const struct key notify_rows[] = {
    KEY("to", "text", "a mail address, or a URL to post to; required", line_read, .at = AT(to)),
    KEY("on", "list of `started`, `ended`, `failed`, `preempted`", "events; default: `ended` and `failed`", events_read,
        .at = AT(on)),
};
static KEY_TABLE(notify_keys, "notify", notify_rows);

static int notify_short(struct reader *r, const json_t *value, void *item)
{
    static const struct key to = {.at = AT(to)};
    return line_read(r, &to, value, item);
}
#undef AT

static int notify_finish(struct reader *r, void *item)
{
    struct job_notify *n = item;
    if (!n->to || !*n->to)
        return missing(r, "to");
    if (!strchr(n->to, '@') && strncmp(n->to, "http://", 7) != 0 && strncmp(n->to, "https://", 8) != 0)
        return err_set(r->err, EINVAL, "to: expected an address like a@b.org or a URL like https://b.org/hook");
    if (!n->on)
        n->on = NOTIFY_ENDED | NOTIFY_FAILED;
    return 0;
}

static const struct object_kind notify_kind = {.table = &notify_keys,
                                               .size = sizeof(struct job_notify),
                                               .read_short = notify_short,
                                               .finish = notify_finish};

static int notify_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    if (json_array_size(value) > NOTIFY_MAX)
        return err_set(r->err, EINVAL, "%zu addresses; at most %d are allowed", json_array_size(value), NOTIFY_MAX);
    return objects_read(r, key, value, object);
}

/* ---- preemption ------------------------------------------------------------------------------------------------- */

static const struct enum_word preempt_words[] = {
    {"requeue", PREEMPT_REQUEUE},
    {"cancel",  PREEMPT_CANCEL },
    {NULL,      0              },
};

#define AT(field) offsetof(struct job_checkpoint, field)
static const struct key checkpoint_rows[] = {
    KEY("signal", "text", "signal before the stop signal; default: `USR1`", signal_read, .at = AT(signal)),
    KEY("grace", "duration", "time until the stop signal; default: 60s", pause_read, .at = AT(grace_ns)),
};
#undef AT
KEY_TABLE(checkpoint_keys, "checkpoint", checkpoint_rows);

static int checkpoint_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    struct job_checkpoint c = {.signal = "USR1", .grace_ns = 60 * SECOND_NS};
    static const struct key signal = {.at = offsetof(struct job_checkpoint, signal)};
    int rc = json_is_string(value) ? signal_read(r, &signal, value, &c) : table_read(r, value, &checkpoint_keys, &c);
    if (rc == 0 && c.grace_ns > DAY_NS)
        return err_set(r->err, EINVAL, "grace: at most 24h are allowed");
    if (rc == 0)
        *(struct job_checkpoint *)key_field(key, object) = c;
    return rc;
}

/* ---- description of the job ------------------------------------------------------------------------------------- */

static int attributes_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    if (json_object_size(value) > ATTRIBUTES_MAX)
        return err_set(r->err, EINVAL, "%zu attributes; at most %d are allowed", json_object_size(value),
                       ATTRIBUTES_MAX);
    return labels_read(r, key, value, object);
}

/* Accepts large numbers of parameters such as "7e9". */
static int parameters_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    double n = json_is_integer(value) ? (double)json_integer_value(value) : json_real_value(value);
    if (!json_is_number(value) || n < 0 || n > (double)BERTH_AMOUNT_MAX)
        return expected(r, "a number of parameters like 7000000000", value);
    *(int64_t *)key_field(key, object) = json_is_integer(value) ? json_integer_value(value) : (int64_t)n;
    return 0;
}

#define AT(field) offsetof(struct job_terms, field)
#define LIST(field) .at = AT(field), .len_at = AT(field##_len)
static const struct key job_rows[] = {
    KEY("queue", "queue", "the queue; default: set by the routing rules, or `default`", line_read, .at = AT(queue)),
    KEY("time_limit", "duration", "a task that exceeds this run time is stopped and fails; default: no limit",
        length_read, .at = AT(time_limit_ns)),
    KEY("estimate", "duration", "expected run time of a task", length_read, .at = AT(estimate_ns)),
    KEY("deadline", "time", "latest end; a job that cannot meet it is not started, and fails", moment_read,
        .at = AT(deadline_ns)),
    KEY("urgency", "-1000 to 1000", "urgency, for policies that use it; default: 0", urgency_read, .at = AT(urgency)),
    KEY("preemptible", "true or false", "may be preempted; default: true", bool_read, .at = AT(preemptible)),
    KEY("preempts", "true or false", "may preempt other jobs; default: true", bool_read, .at = AT(preempts)),
    KEY("min_run", "duration", "minimum run time of a task before it may be preempted", pause_read,
        .at = AT(min_run_ns)),
    KEY("preempt", "`requeue` or `cancel`", "action after a preemption: requeue or cancel the job. Default: `requeue`",
        word_read, .at = AT(preempt), .arg = preempt_words),
    KEY("requeue", "true or false", "may run again after a failure, a lost node or a preemption; default: true",
        bool_read, .at = AT(requeue)),
    KEY("checkpoint", "{`signal`, `grace`}", "signal before a task is stopped, so that it can save its work",
        checkpoint_read, .at = AT(checkpoint)),
    KEY("array", "{`from`, `to`, `step`, `parallel`} or text like `0-99:2%4`",
        "an array of tasks, distinguished by their index (BERTH_ARRAY_INDEX)", array_read, .at = AT(array)),
    KEY("after", "list of {`job`, `when`} or numbers", "dependencies on other jobs", after_read, LIST(after),
        .arg = &after_kind),
    KEY("singleton", "true or false", "wait for all earlier jobs of the owner with the same name", bool_read,
        .at = AT(singleton)),
    KEY("min", "whole number", "minimum number of tasks to start; alias of `gang_min`", u32_read, .at = AT(min)),
    KEY("max", "whole number", "number of tasks; alias of `replicas`", u32_read, .at = AT(max)),
    KEY("role", "text", "role in a set of jobs that start together", line_read, .at = AT(role)),
    KEY("of", "number", "the first job of that set; set by the daemon", job_number_read, .at = AT(of)),
    KEY("type", "text", "type of work, like `train`", line_read, .at = AT(type)),
    KEY("class", "text", "type of program, like `llm`", line_read, .at = AT(class_name)),
    KEY("network", "text", "type of model, like `transformer`", line_read, .at = AT(network)),
    KEY("parameters", "number", "number of model parameters", parameters_read, .at = AT(parameters)),
    KEY("data", "list of texts", "input data: volumes, URLs, paths", texts_read, LIST(data)),
    KEY("attributes", "{key: text}", "additional attributes", attributes_read, LIST(attributes)),
    KEY("notify", "list of {`to`, `on`} or addresses", "notifications about the job", notify_read, LIST(notify),
        .arg = &notify_kind),
    KEY("interactive", "true or false", "interactive job", bool_read, .at = AT(interactive)),
    KEY("cron", "NAME.OWNER", "the schedule that created it; set by the daemon", line_read, .at = AT(cron)),
    KEY("attempt", "whole number", "number of requeues; set by the daemon", counter_read, .at = AT(attempt)),
    KEY("attained", "duration", "run time of earlier attempts; set by the daemon", duration_read,
        .at = AT(attained_ns)),
    KEY("met", "true or false", "all dependencies are met; set by the daemon", bool_read, .at = AT(met)),
    KEY("held_by", "text", "holder: `operator` if the owner cannot release the job; set by the daemon", line_read,
        .at = AT(held_by)),
    KEY("started", "time", "time of the first start of a task; set by the daemon", time_read, .at = AT(started_ns)),
    KEY("finished", "time", "time of the end; set by the daemon", time_read, .at = AT(finished_ns)),
};
#undef LIST
#undef AT
KEY_TABLE(job_keys, "job", job_rows);
const struct key_table *const job_tables[] = {&array_keys, &after_keys, &checkpoint_keys, &notify_keys, NULL};

bool job_key_is(const char *name)
{
    for (size_t i = 0; i < sizeof job_rows / sizeof *job_rows; i++)
        if (strcmp(job_rows[i].name, name) == 0)
            return true;
    return false;
}

const struct job_terms job_terms_initial = {.preemptible = true, .preempts = true, .requeue = true};

/* ---- the whole job ---------------------------------------------------------------------------------------------- */

static int array_alone(struct reader *r, const json_t *doc, const struct job_terms *t)
{
    const json_t *replicas = json_object_get(doc, "replicas");
    if (t->array.count == 0)
        return 0;
    if (json_is_integer(replicas) && json_integer_value(replicas) != (json_int_t)t->array.count)
        return err_set(r->err, EINVAL,
                       "replicas: %" JSON_INTEGER_FORMAT " does not match the array, which has %" PRIu32
                       "; leave it out",
                       json_integer_value(replicas), t->array.count);
    if (t->min || t->max)
        return err_set(r->err, EINVAL, "%s: not allowed with an array", t->min ? "min" : "max");
    return 0;
}

int job_finish(struct reader *r, const json_t *doc, struct job_terms *t, struct berth_workload *w)
{
    int rc = array_alone(r, doc, t);
    if (rc < 0)
        return rc;
    const json_t *replicas = json_object_get(doc, "replicas"), *least = json_object_get(doc, "gang_min");
    if (t->max && json_is_integer(replicas) && json_integer_value(replicas) != (json_int_t)t->max)
        return err_set(r->err, EINVAL, "max: is an alias of replicas; give only one");
    if (t->min && json_is_integer(least) && json_integer_value(least) != (json_int_t)t->min)
        return err_set(r->err, EINVAL, "min: is an alias of gang_min; give only one");
    if (t->array.count)
        w->replicas = t->array.count;
    if (t->max)
        w->replicas = t->max;
    t->waits = (t->after_len || t->singleton) && !t->met;
    w->suspended = w->suspended || t->waits;
    if (t->of && w->gang && *w->gang)
        return err_set(r->err, EINVAL, "gang: the jobs of a set always form a gang; leave it out");
    if (t->of)
        w->gang =
            /* cannot collide with a user's gang: those are OWNER/NAME, and ids have no ':' */
            arena_fmt(r->arena, "set:%" PRIu64, t->of);
    if (t->min) {
        if (t->min > w->replicas)
            return err_set(r->err, EINVAL, "min: %" PRIu32 " exceeds the number of tasks, %" PRIu32, t->min,
                           w->replicas);
        w->gang_min = t->min;
        if (!w->gang || !*w->gang)
            w->gang = w->id;
    }
    return 0;
}
