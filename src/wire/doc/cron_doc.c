/* cron_doc.c - documents of schedules that submit jobs. */
#include <errno.h>
#include <string.h>

#include "wire/doc/objects.h"

enum { CRON_KEEP_DEFAULT = 10, CRON_KEEP_MAX = 1000 };

static const struct enum_word overlap_words[] = {
    {"allow",   CRON_ALLOW  },
    {"skip",    CRON_SKIP   },
    {"replace", CRON_REPLACE},
    {NULL,      0           },
};

static int keep_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) > CRON_KEEP_MAX)
        return expected(r, "a whole number from 0 to 1000", value);
    return u32_read(r, key, value, object);
}

#define AT(field) offsetof(struct cron_doc, field)
static const struct key cron_rows[] = {
    KEY("name", "text", "first part of the id", line_read, .at = AT(name)),
    KEY("owner", "user", "default: the caller", line_read, .at = AT(owner)),
    KEY("group", "group", "group of the owner; set by the daemon", line_read, .at = AT(group)),
    KEY("schedule", "text",
        "minute, hour, day, month and weekday, UTC, like `30 3 * * mon-fri`; or `@hourly`, `@daily`, "
        "`@weekly`, `@monthly`, `@yearly`",
        line_read, .at = AT(schedule)),
    KEY("job", "a job", "specification of the job to create", tree_read, .at = AT(job)),
    KEY("suspended", "true or false", "create no jobs; missed times are not made up", bool_read, .at = AT(suspended)),
    KEY("keep", "0 to 1000", "number of finished jobs to keep; older ones are deleted. Default: 10", keep_read,
        .at = AT(keep)),
    KEY("overlap", "`allow`, `skip` or `replace`",
        "while the previous job is unfinished: start another; start none; cancel the previous one. Default: `allow`",
        word_read, .at = AT(overlap), .arg = overlap_words),
    KEY("last", "time", "time up to which the schedule has been processed; set by the daemon", time_read,
        .at = AT(last_ns)),
    KEY("jobs", "list of numbers", "ids of its kept jobs; set by the daemon", raw_read, .at = AT(jobs)),
    KEY("error", "text", "why the last job could not be created; set by the daemon", message_read, .at = AT(error)),
};
#undef AT
static KEY_TABLE(cron_keys, "cron", cron_rows);
const struct key_table *const cron_tables[] = {&cron_keys, &identity_keys, &meta_keys, &created_keys, NULL};

int cron_doc_read(const json_t *doc, struct arena *arena, struct cron_doc *ret, struct berth_err *err)
{
    struct berth_err own = {0};
    struct reader r;
    reader_init(&r, arena, err ? err : &own);
    struct cron_doc d = {.keep = CRON_KEEP_DEFAULT};
    const struct object_part parts[] = {
        {&cron_keys,     &d     },
        {&identity_keys, &d.meta},
        {&meta_keys,     &d.meta},
        {&created_keys,  &d.meta},
    };
    int rc = object_read(&r, doc, parts, sizeof parts / sizeof *parts);
    if (rc == 0)
        rc = meta_finish(&r, &d.meta, d.meta.id);
    if (rc == 0 && (!d.schedule || !*d.schedule))
        rc = missing(&r, "schedule");
    if (rc == 0 && !d.job)
        rc = missing(&r, "job");
    if (rc == 0 && d.jobs && !json_is_array(d.jobs))
        rc = in_member(&r, "jobs", expected(&r, "a list", d.jobs));
    if (rc == 0)
        *ret = d;
    return rc;
}
