/* routes_usage.c - routes of resource usage: single records and totals. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/vec.h"
#include "control/api/page.h"
#include "control/api/routes.h"
#include "control/tenant/share_view.h"
#include "control/tenant/usage.h"
#include "wire/doc/api.h"
#include "wire/text/moment.h"

enum { RECORDS_MAX = 1000, ROWS_MAX = 100000 };

#define GIB ((double)((int64_t)1 << 30))

/* ---- records ---------------------------------------------------------------------------------------------------- */

static bool is_visible(const struct request *c, const struct object *record)
{
    return permit(&c->caller, PERMIT_READ, record->owner, record->group);
}

/* The filters of a query, parsed once because there are many records. */
struct usage_filter {
    const char *user, *group, *queue; /* NULL: no filter */
};

static struct usage_filter usage_filter(const struct request *c)
{
    return (struct usage_filter){request_query(c, "user"), request_query(c, "group"), request_query(c, "queue")};
}

static bool is(const char *want, const char *value)
{
    return !want || strcmp(want, value) == 0;
}

static bool record_matches(const struct request *c, const struct usage_filter *want, const struct object *record)
{
    return is(want->user, record->owner) && is(want->group, record->group) && is_visible(c, record);
}

/* Returns the number before the last `count` records that match the filters and that the caller may see. */
static uint64_t tail_start(const struct request *c, const struct usage_filter *want, const struct object *const *list,
                           size_t len, uint64_t count)
{
    size_t at = len;
    while (at && count)
        count -= record_matches(c, want, list[--at]);
    return len ? usage_number(list[at]) - 1 : 0;
}

int usage_list(struct request *c)
{
    size_t len;
    uint64_t after = 0, limit = 0, tail = 0;
    const struct object *const *list = state_list(c->state, KIND_USAGE_RECORD, &len);
    int rc = request_query_number(c, "after", 0, INT64_MAX, 0, &after);
    if (rc == 0)
        rc = request_query_number(c, "limit", 1, RECORDS_MAX, RECORDS_MAX, &limit);
    if (rc == 0)
        rc = request_query_number(c, "tail", 1, RECORDS_MAX, 0, &tail);
    if (rc < 0)
        return rc;
    const struct usage_filter want = usage_filter(c);
    const bool all = permit(&c->caller, PERMIT_READ, "", "");
    if (tail)
        after = tail_start(c, &want, list, len, tail);
    struct list_page page = {.items = json_array()};
    size_t i = usage_first_after(list, len, after);
    uint64_t last = after;
    for (; i < len && json_array_size(page.items) < limit; last = usage_number(list[i++])) {
        if (!record_matches(c, &want, list[i]))
            continue;
        json_t *doc = object_doc(list[i]);
        (void)json_object_del(doc, "v");
        if (!all)
            (void)json_object_del(doc, "beside"); /* names of the workloads of other users */
        (void)json_object_set_new(doc, "id", json_integer((json_int_t)usage_number(list[i])));
        if (!page_add(&page, doc, list[i]->doc.len))
            break;
    }
    c->answer.revision = state_revision(c->state);
    /* `after` continues the list, even if no record of this page is visible to the caller. */
    c->answer.body =
        json_pack("{s:o, s:I, s:b, s:I, s:I}", "items", page.items, "after", (json_int_t)last, "more", i < len, "first",
                  (json_int_t)(len ? usage_number(list[0]) : 0), "revision", (json_int_t)c->answer.revision);
    return 0;
}

/* ---- totals ----------------------------------------------------------------------------------------------------- */

enum { BY_USER = 1, BY_GROUP = 2, BY_QUEUE = 4, BY_NAME = 8, BY_OUTCOME = 16, BY_WORDS = 5 };
static const struct {
    const char *word;
    unsigned bit;
} by_words[BY_WORDS] = {
    {"user",    BY_USER   },
    {"group",   BY_GROUP  },
    {"queue",   BY_QUEUE  },
    {"name",    BY_NAME   },
    {"outcome", BY_OUTCOME},
};

struct usage_sum {
    const char *user, *group, *queue, *name, *outcome; /* NULL: totals are not grouped by this */
    double seconds, cpu, gpu, memory;                  /* hours, except `seconds` */
    uint64_t ends;
};

struct usage_sums {
    struct request *c;
    unsigned by;
    int64_t from_ns, to_ns;
    VEC(struct usage_sum) rows;
    struct map map;
    struct usage_sum total;
};

static bool same_text(const char *a, const char *b)
{
    return (!a && !b) || (a && b && strcmp(a, b) == 0);
}

static bool same_sum(const void *ctx, uint32_t at, const void *key)
{
    const struct usage_sum *x = &((const struct usage_sums *)ctx)->rows.at[at], *y = key;
    return same_text(x->user, y->user) && same_text(x->group, y->group) && same_text(x->queue, y->queue) &&
           same_text(x->name, y->name) && same_text(x->outcome, y->outcome);
}

static uint64_t sum_hash(const struct usage_sum *s)
{
    const char *texts[BY_WORDS] = {s->user, s->group, s->queue, s->name, s->outcome};
    uint64_t hash = 0;
    for (size_t i = 0; i < BY_WORDS; i++)
        hash = hash_pair(hash, texts[i] ? hash_bytes(texts[i], strlen(texts[i]), i) : i);
    return hash;
}

static struct usage_sum *sum_of(struct usage_sums *s, const struct object *record)
{
    const struct usage_view *v = record->usage;
    struct usage_sum key = {.user = s->by & BY_USER ? record->owner : NULL,
                            .group = s->by & BY_GROUP ? record->group : NULL,
                            .queue = s->by & BY_QUEUE ? v->queue : NULL,
                            .name = s->by & BY_NAME ? v->name : NULL,
                            .outcome = s->by & BY_OUTCOME ? v->outcome : NULL};
    uint32_t at = map_find(&s->map, sum_hash(&key), same_sum, s, &key);
    if (at != MAP_NONE)
        return &s->rows.at[at];
    if (s->rows.len >= ROWS_MAX)
        return NULL;
    map_add(&s->map, sum_hash(&key), (uint32_t)s->rows.len);
    vec_push(&s->rows, key);
    return &s->rows.at[s->rows.len - 1];
}

static void sum_add(struct usage_sum *to, const struct usage_view *v, double seconds, bool ends)
{
    double hours = seconds / 3600;
    to->seconds += seconds;
    to->cpu += hours * (double)v->cpu / 1000;
    to->gpu += hours * (double)v->gpu / BERTH_GPU_MILLI;
    to->memory += hours * (double)v->memory / GIB;
    to->ends += ends;
}

static void add_record(struct usage_sums *s, const struct object *record)
{
    const struct usage_view *v = record->usage;
    int64_t from_ns = v->start_ns > s->from_ns ? v->start_ns : s->from_ns;
    int64_t to_ns = v->end_ns < s->to_ns ? v->end_ns : s->to_ns;
    bool ends = v->end_ns >= s->from_ns && v->end_ns < s->to_ns && v->last;
    if (to_ns < from_ns || (to_ns == from_ns && !ends))
        return;
    struct usage_sum *sum = sum_of(s, record);
    double seconds = (double)(to_ns - from_ns) / 1e9;
    if (sum)
        sum_add(sum, v, seconds, ends);
    sum_add(&s->total, v, seconds, ends);
}

static json_t *sum_show(const struct usage_sum *s)
{
    json_t *doc = json_object();
    const char *texts[BY_WORDS] = {s->user, s->group, s->queue, s->name, s->outcome};
    for (size_t i = 0; i < BY_WORDS; i++)
        if (texts[i])
            (void)json_object_set_new(doc, by_words[i].word, json_string(texts[i]));
    (void)json_object_set_new(doc, "core_hours", json_real(s->cpu));
    (void)json_object_set_new(doc, "gpu_hours", json_real(s->gpu));
    (void)json_object_set_new(doc, "memory_gib_hours", json_real(s->memory));
    (void)json_object_set_new(doc, "instance_hours", json_real(s->seconds / 3600));
    (void)json_object_set_new(doc, "ended", json_integer((json_int_t)s->ends));
    return doc;
}

static int text_compare(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "");
}

static int sum_compare(const void *a, const void *b)
{
    const struct usage_sum *x = a, *y = b;
    int order = text_compare(x->group, y->group);
    if (order == 0)
        order = text_compare(x->user, y->user);
    if (order == 0)
        order = text_compare(x->queue, y->queue);
    if (order == 0)
        order = text_compare(x->name, y->name);
    return order ? order : text_compare(x->outcome, y->outcome);
}

static int moment_of(struct request *c, const char *name, int64_t fallback_ns, int64_t *ret_ns)
{
    const char *text = request_query(c, name);
    *ret_ns = fallback_ns;
    int rc = text ? timestamp_parse_text(text, ret_ns, &c->err) : 0;
    return rc < 0 ? err_prefix(&c->err, "%s", name) : 0;
}

/* Parses a list such as "user,queue". */
static int by_of(struct request *c, unsigned *ret)
{
    const char *text = request_query(c, "by");
    unsigned by = 0;
    for (const char *at = text ? text : "user,group"; *at;) {
        size_t len = strcspn(at, ","), i = 0;
        while (i < BY_WORDS && (strlen(by_words[i].word) != len || strncmp(by_words[i].word, at, len) != 0))
            i++;
        if (i == BY_WORDS)
            return err_set(&c->err, EINVAL, "by: expected user, group, queue, name or outcome, separated by commas");
        by |= by_words[i].bit;
        at += len + (at[len] == ',');
    }
    *ret = by;
    return 0;
}

int usage_get(struct request *c)
{
    size_t len;
    struct usage_sums s = {.c = c};
    char from[TIMESTAMP_MAX], to[TIMESTAMP_MAX];
    int rc = moment_of(c, "from", 0, &s.from_ns);
    if (rc == 0)
        rc = moment_of(c, "to", c->now_ns, &s.to_ns);
    if (rc == 0 && s.to_ns < s.from_ns)
        rc = err_set(&c->err, EINVAL, "to: is before `from`");
    if (rc == 0)
        rc = by_of(c, &s.by);
    if (rc < 0)
        return rc;
    const struct object *const *list = state_list(c->state, KIND_USAGE_RECORD, &len);
    const struct usage_filter want = usage_filter(c);
    for (size_t i = 0; i < len; i++)
        if (is(want.user, list[i]->owner) && is(want.group, list[i]->group) && is(want.queue, list[i]->usage->queue) &&
            is_visible(c, list[i]))
            add_record(&s, list[i]);
    if (s.rows.len)
        qsort(s.rows.at, s.rows.len, sizeof *s.rows.at, sum_compare);
    json_t *items = json_array();
    for (size_t i = 0; i < s.rows.len; i++)
        (void)json_array_append_new(items, sum_show(&s.rows.at[i]));
    c->answer.revision = state_revision(c->state);
    c->answer.body =
        json_pack("{s:o, s:o, s:s, s:s, s:I, s:I}", "items", items, "total", sum_show(&s.total), "from",
                  timestamp_text(s.from_ns, from), "to", timestamp_text(s.to_ns, to), "first",
                  (json_int_t)(len ? usage_number(list[0]) : 0), "revision", (json_int_t)c->answer.revision);
    vec_done(&s.rows);
    map_done(&s.map);
    return 0;
}

const struct route usage_routes[] = {
    ROUTE("GET", "/v1/usage", PERMIT_READ, 0, ROUTE_HEAVY, usage_get, "Summarise the usage of ended instances",
          .query = "user,group,queue,from,to,by"),
    ROUTE("GET", "/v1/usage_records", PERMIT_READ, 0, ROUTE_HEAVY, usage_list,
          "List the usage of ended instances in the order of their ends", .query = "after,limit,tail,user,group"),
    ROUTE("GET", "/v1/shares", PERMIT_READ, 0, ROUTE_HEAVY, shares_run, "List the past usage and fair share of users"),
    ROUTE("GET", "/v1/prices", PERMIT_CLUSTER, 0, 0, prices_run, "Read the prices"),
};
const size_t usage_routes_len = sizeof usage_routes / sizeof *usage_routes;
