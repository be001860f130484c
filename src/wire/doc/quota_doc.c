/* quota_doc.c - quotas, and documents of groups, which have a quota. */
#include <errno.h>
#include <string.h>

#include "wire/doc/objects.h"
#include "wire/doc/queue_doc.h"
#include "wire/text/quantity.h"

#define SECOND_NS INT64_C(1000000000)

/* Rejects common misspellings of resource names. */
static int misspelling_check(struct reader *r, const char *resource)
{
    static const char *const misspellings[][2] = {
        {"gpus",  "gpu"   },
        {"cpus",  "cpu"   },
        {"cores", "cpu"   },
        {"mem",   "memory"},
        {"job",   "jobs"  },
        {"pod",   "pods"  }
    };

    for (size_t i = 0; i < sizeof misspellings / sizeof misspellings[0]; i++)
        if (strcmp(resource, misspellings[i][0]) == 0)
            return err_set(r->err, EINVAL, "there is no such resource; did you mean \"%s\"?", misspellings[i][1]);
    return 0;
}

/* Reads an amount; GPUs, whole or fractional, in thousandths. */
static int quota_amount(struct reader *r, const char *resource, const json_t *value, int64_t *ret)
{
    if (misspelling_check(r, resource) < 0)
        return -EINVAL;
    if (strcmp(resource, "gpu") != 0)
        return amount_of(r, resource, value, ret);
    int64_t milli = 0;
    int rc = ratio_parse(value, &milli, r->err);
    if (rc == 0 && milli < 0)
        return expected(r, "an amount of 0 or more", value);
    if (rc == 0)
        *ret = milli;
    return rc;
}

static int shares_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    if (!json_is_object(value))
        return expected(r, "an object like {cpu: 64, gpu: 8, jobs: 100}", value);
    struct berth_amount *at = ARENA_ARRAY(r->arena, struct berth_amount, json_object_size(value));
    size_t len = 0;
    const char *name;
    json_t *member;
    json_object_foreach((json_t *)value, name, member)
    {
        at[len].resource = text_keep(r, name);
        int rc = quota_amount(r, name, member, &at[len++].amount);
        if (rc < 0)
            return in_member(r, name, rc);
    }
    list_set(key, object, at, len);
    return 0;
}

/* ---- totals ----------------------------------------------------------------------------------------------------- */

int64_t quota_hour(const char *resource)
{
    int64_t unit = strcmp(resource, "gpu") == 0 || strcmp(resource, "cpu") == 0 ? 1000
                   : strcmp(resource, "memory") == 0                            ? (int64_t)1 << 30
                                                                                : 1;
    return unit * 3600;
}

struct total_entry {
    struct berth_total total;
    int64_t hours;
};

static int hours_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return expected(r, "a whole number of hours", value);
    return i64_read(r, key, value, object);
}

static int period_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    int64_t ns = 0;
    int rc = duration_read(r, &(struct key){0}, value, &ns);
    if (rc == 0 && ns < 60 * SECOND_NS)
        return expected(r, "a duration of at least a minute, like 30d", value);
    if (rc == 0)
        *(int64_t *)key_field(key, object) = ns;
    return rc;
}

#define AT(field) offsetof(struct total_entry, field)
static const struct key total_rows[] = {
    KEY("resource", "text", "required", line_read, .at = AT(total.resource)),
    KEY("hours", "whole number",
        "required: hours of a core, a GPU, a GiB of memory or a unit of another resource; 0: none", hours_read,
        .at = AT(hours)),
    KEY("period", "duration", "period after which the count restarts; default: never", period_read,
        .at = AT(total.period_ns)),
};
#undef AT
static KEY_TABLE(total_keys, "total", total_rows);

static int total_finish(struct reader *r, void *item)
{
    struct total_entry *t = item;
    if (!t->total.resource || !*t->total.resource)
        return missing(r, "resource");
    if (t->hours < 0)
        return missing(r, "hours");
    int64_t hour = quota_hour(t->total.resource);
    if (t->hours > BERTH_AMOUNT_MAX / hour)
        return err_set(r->err, EINVAL, "hours: at most %lld of %s can be counted", (long long)(BERTH_AMOUNT_MAX / hour),
                       t->total.resource);
    t->total.limit = t->hours * hour;
    return 0;
}

static const struct object_kind total_kind = {.table = &total_keys,
                                              .size = sizeof(struct total_entry),
                                              .initial = &(const struct total_entry){.hours = -1},
                                              .finish = total_finish};

static int totals_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    struct {
        const struct total_entry *at;
        size_t len;
    } read = {0};
    static const struct key list = {.at = 0, .len_at = sizeof(void *), .arg = &total_kind};
    int rc = objects_read(r, &list, value, &read);
    if (rc < 0)
        return rc;
    struct berth_total *totals = ARENA_ARRAY(r->arena, struct berth_total, read.len);
    for (size_t i = 0; i < read.len; i++) {
        totals[i] = read.at[i].total;
        for (size_t j = 0; j < i; j++)
            if (strcmp(totals[i].resource, totals[j].resource) == 0)
                return in_item(r, i, err_set(r->err, EINVAL, "a total of %s is listed already", totals[i].resource));
    }
    list_set(key, object, totals, read.len);
    return 0;
}

/* ---- the quota -------------------------------------------------------------------------------------------------- */

#define AT(field) offsetof(struct quota_doc, field)
#define LIST(field) .at = AT(field), .len_at = AT(field##_len)
static const struct key quota_rows[] = {
    KEY("limits", "{resource: amount}", "maximum at once; in addition to resources: `gpu`, `pods` and `jobs`",
        shares_read, LIST(limits)),
    KEY("guarantees", "{resource: amount}", "guaranteed; use beyond it is borrowed and reclaimed on demand",
        shares_read, LIST(guarantees)),
    KEY("admitted", "{resource: amount}", "maximum request of all pending and running work together", shares_read,
        LIST(admitted)),
    KEY("totals", "list of {`resource`, `hours`, `period`}", "maximum use in a period", totals_read, LIST(totals)),
};
#undef LIST
#undef AT
static KEY_TABLE(quota_keys, "quota", quota_rows);

int quota_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    return table_read(r, value, &quota_keys, key_field(key, object));
}

int quota_weight_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    if (!json_is_integer(value) || json_integer_value(value) < 1 || json_integer_value(value) > QUOTA_WEIGHT_MAX)
        return expected(r, "a whole number from 1 to 1000000", value);
    return u32_read(r, key, value, object);
}

const char *quota_amount_text(const char *resource, int64_t amount, struct arena *arena)
{
    char buf[QUANTITY_TEXT_MAX];
    const char *as = strcmp(resource, "gpu") == 0 ? "cpu" : resource; /* both are counted in thousandths */
    return arena_fmt(arena, "%s %s", quantity_print(as, amount, buf), resource);
}

/* ---- groups ----------------------------------------------------------------------------------------------------- */

static int level_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) > 100)
        return expected(r, "a whole number from 0 to 100", value);
    return i32_read(r, key, value, object);
}

#define AT(field) offsetof(struct group_doc, field)
static const struct key group_rows[] = {
    KEY("level", "0 to 100", "level, for policies that rank groups", level_read, .at = AT(level)),
    KEY("weight", "1 to 1000000", "weight among groups; default: 1", quota_weight_read, .at = AT(weight)),
    KEY("quota", "{`limits`, `guarantees`, `admitted`, `totals`}", "quota of all users of the group", quota_read,
        .at = AT(quota)),
};
#undef AT
static KEY_TABLE(group_keys, "group", group_rows);

const struct key_table *const group_tables[] = {&group_keys, &identity_keys, &meta_keys, &created_keys, NULL};

int group_doc_read(const json_t *doc, struct arena *arena, struct group_doc *ret, struct berth_err *err)
{
    struct group_doc d = {0};
    int rc = document_fill(doc, arena, &group_keys, &d, &d.meta, err);
    if (rc == 0)
        *ret = d;
    return rc;
}
