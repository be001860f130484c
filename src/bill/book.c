#include "bill/book.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"
#include "bill/price.h"
#include "wire/text/moment.h"
#include "wire/text/quantity.h"

#define SECOND_NS INT64_C(1000000000)

/* ---- months ----------------------------------------------------------------------------------------------------- */

const char *month_of(int64_t at_ns, char buf[static MONTH_MAX])
{
    struct tm tm = {0};
    time_t seconds = (time_t)(at_ns / SECOND_NS);
    (void)gmtime_r(&seconds, &tm);
    (void)snprintf(buf, MONTH_MAX, "%04u-%02u", (unsigned)(tm.tm_year + 1900) % 10000, (unsigned)(tm.tm_mon + 1) % 100);
    return buf;
}

bool month_valid(const char *text)
{
    static const char form[] = "dddd-dd";
    if (strlen(text) != sizeof form - 1)
        return false;
    for (size_t i = 0; form[i]; i++)
        if (form[i] == 'd' ? text[i] < '0' || text[i] > '9' : text[i] != form[i])
            return false;
    int month = (text[5] - '0') * 10 + text[6] - '0';
    return month >= 1 && month <= 12;
}

/* Returns the first moment of the next month. */
static int64_t month_end_ns(int64_t at_ns)
{
    struct tm tm = {0};
    time_t seconds = (time_t)(at_ns / SECOND_NS);
    (void)gmtime_r(&seconds, &tm);
    struct tm next = {.tm_year = tm.tm_year + (tm.tm_mon == 11), .tm_mon = (tm.tm_mon + 1) % 12, .tm_mday = 1};
    return (int64_t)timegm(&next) * SECOND_NS;
}

/* ---- rows ------------------------------------------------------------------------------------------------------- */

static void row_done(struct book_row *row)
{
    for (size_t i = 0; i < row->hours_len; i++)
        mem_free(row->hours[i].resource);
    mem_free(row->hours);
    mem_free(row->user);
    mem_free(row->group);
    mem_free(row->queue);
    mem_free(row->outcome);
}

void book_done(struct usage_book *b)
{
    for (size_t i = 0; i < b->rows_len; i++)
        row_done(&b->rows[i]);
    while (b->lowered_len)
        lowered_limit_drop(b, b->lowered[0].quota);
    mem_free(b->rows);
    mem_free(b->lowered);
    map_done(&b->map);
    *b = (struct usage_book){0};
}

struct book_row_key {
    const char *month, *user, *group, *queue, *outcome;
};

static bool same_row(const void *ctx, uint32_t at, const void *key)
{
    const struct book_row *row = &((const struct usage_book *)ctx)->rows[at];
    const struct book_row_key *k = key;
    return strcmp(row->month, k->month) == 0 && strcmp(row->user, k->user) == 0 && strcmp(row->group, k->group) == 0 &&
           strcmp(row->queue, k->queue) == 0 && strcmp(row->outcome, k->outcome) == 0;
}

static uint64_t key_hash(const struct book_row_key *k)
{
    const char *const texts[] = {k->month, k->user, k->group, k->queue, k->outcome};
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        hash = hash_pair(hash, hash_bytes(texts[i], strlen(texts[i]), i));
    return hash;
}

static int row_of(struct usage_book *b, const struct book_row_key *key, struct book_row **ret, struct berth_err *err)
{
    uint32_t at = map_find(&b->map, key_hash(key), same_row, b, key);
    if (at != MAP_NONE) {
        *ret = &b->rows[at];
        return 0;
    }
    if (b->rows_len >= BOOK_ROWS_MAX)
        return err_set(err, E2BIG, "the book has %d rows, the maximum; start a new file", BOOK_ROWS_MAX);
    if (b->rows_len == b->rows_cap) {
        b->rows_cap = b->rows_cap ? b->rows_cap * 2 : 64;
        b->rows = mem_resize(b->rows, b->rows_cap, sizeof *b->rows);
    }
    struct book_row *row = &b->rows[b->rows_len];
    *row = (struct book_row){.user = mem_strdup(key->user),
                             .group = mem_strdup(key->group),
                             .queue = mem_strdup(key->queue),
                             .outcome = mem_strdup(key->outcome)};
    (void)snprintf(row->month, sizeof row->month, "%s", key->month);
    map_add(&b->map, key_hash(key), (uint32_t)b->rows_len++);
    *ret = row;
    return 0;
}

int book_row_open(struct usage_book *b, const char *month, const char *user, const char *group, const char *queue,
                  const char *outcome, struct book_row **ret, struct berth_err *err)
{
    struct book_row_key key = {month, user, group, queue, outcome};
    return row_of(b, &key, ret, err);
}

int book_row_add(struct book_row *row, const char *resource, int64_t hours, struct berth_err *err)
{
    size_t at = 0;
    while (at < row->hours_len && strcmp(row->hours[at].resource, resource) < 0)
        at++;
    if (at == row->hours_len || strcmp(row->hours[at].resource, resource) != 0) {
        if (row->hours_len >= BOOK_RESOURCES_MAX)
            return err_set(err, E2BIG, "more than %d resources", BOOK_RESOURCES_MAX);
        row->hours = mem_resize(row->hours, row->hours_len + 1, sizeof *row->hours);
        memmove(row->hours + at + 1, row->hours + at, (row->hours_len - at) * sizeof *row->hours);
        row->hours[at] = (struct book_hours){mem_strdup(resource), 0};
        row->hours_len++;
    }
    if (__builtin_add_overflow(row->hours[at].hours, hours, &row->hours[at].hours))
        return err_set(err, ERANGE, "the hours of %s exceed the supported range", resource);
    return 0;
}

/* ---- records ---------------------------------------------------------------------------------------------------- */

static const char *text_at(const json_t *doc, const char *key)
{
    const char *text = json_string_value(json_object_get(doc, key));
    return text ? text : "";
}

/* Converts an amount to thousandths of the priced unit. */
static int units_of(const char *resource, const json_t *value, __int128 *ret, int64_t *ret_per, struct berth_err *err)
{
    int64_t amount = 0;
    bool gpu = strcmp(resource, "gpu") == 0, cpu = strcmp(resource, "cpu") == 0;
    int rc = gpu ? ratio_parse(value, &amount, err) : quantity_parse(resource, value, &amount, err);
    if (rc < 0)
        return err_prefix(err, "resources.%s", resource);
    *ret = amount;
    *ret_per = gpu || cpu ? 1000 : strcmp(resource, "memory") == 0 ? (int64_t)1 << 30 : 1;
    return 0;
}

/* Adds the part of a record that lies in one month. */
static int part_add(struct usage_book *b, const json_t *record, int64_t from_ns, int64_t to_ns, bool last,
                    struct berth_err *err)
{
    char month[MONTH_MAX];
    struct book_row_key key = {month_of(from_ns, month), text_at(record, "owner"), text_at(record, "group"),
                               text_at(record, "queue"), text_at(record, "outcome")};
    struct book_row *row = NULL;
    const char *resource;
    json_t *value;
    int rc = row_of(b, &key, &row, err);
    if (rc < 0)
        return rc;
    assert(row);
    row->ended += last && strcmp(key.outcome, "running") != 0;
    json_object_foreach(json_object_get(record, "resources"), resource, value)
    {
        __int128 amount = 0;
        int64_t per = 1;
        rc = units_of(resource, value, &amount, &per, err);
        if (rc < 0)
            return rc;
        __int128 hours = amount * (to_ns - from_ns) / ((__int128)per * 3600 * SECOND_NS / HOURS_ONE);
        rc = hours > INT64_MAX ? err_set(err, ERANGE, "the hours of %s exceed the supported range", resource)
                               : book_row_add(row, resource, (int64_t)hours, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int record_add(struct usage_book *b, const json_t *record, struct berth_err *err)
{
    const json_t *start = json_object_get(record, "start"), *end = json_object_get(record, "end");
    int64_t from_ns = 0, to_ns = 0;
    if (!start || !end)
        return err_set(err, EBADMSG, "usage record without start or end");
    int rc = timestamp_parse(start, &from_ns, err);
    if (rc == 0)
        rc = timestamp_parse(end, &to_ns, err);
    if (rc == 0 && to_ns < from_ns)
        rc = err_set(err, EBADMSG, "usage record that ends before it starts");
    while (rc == 0) {
        int64_t border_ns = month_end_ns(from_ns);
        bool last = to_ns <= border_ns;
        rc = part_add(b, record, from_ns, last ? to_ns : border_ns, last, err);
        if (last)
            break;
        from_ns = border_ns;
    }
    return rc;
}

int book_add_page(struct usage_book *b, const json_t *page, bool *ret_more, struct berth_err *err)
{
    size_t i;
    json_t *record;
    const json_t *items = json_object_get(page, "items"), *after = json_object_get(page, "after");
    if (!json_is_array(items) || !json_is_integer(after))
        return err_set(err, EBADMSG, "the server's response is not a page of usage records");
    uint64_t first = (uint64_t)json_integer_value(json_object_get(page, "first"));
    if (first > b->after + 1)
        b->missed += first - b->after - 1;
    json_array_foreach(items, i, record)
    {
        uint64_t id = (uint64_t)json_integer_value(json_object_get(record, "id"));
        if (id <= b->after)
            continue;
        int rc = record_add(b, record, err);
        if (rc < 0)
            return err_prefix(err, "record %" PRIu64, id);
        b->after = id;
    }
    if ((uint64_t)json_integer_value(after) > b->after)
        b->after = (uint64_t)json_integer_value(after);
    *ret_more = json_is_true(json_object_get(page, "more"));
    return 0;
}

/* ---- lowered limits --------------------------------------------------------------------------------------------- */

struct lowered_limit *lowered_limit_find(struct usage_book *b, const char *quota)
{
    for (size_t i = 0; i < b->lowered_len; i++)
        if (strcmp(b->lowered[i].quota, quota) == 0)
            return &b->lowered[i];
    return NULL;
}

struct lowered_limit *lowered_limit_add(struct usage_book *b, const char *quota, const char *month)
{
    if (b->lowered_len == b->lowered_cap) {
        b->lowered_cap = b->lowered_cap ? b->lowered_cap * 2 : 8;
        b->lowered = mem_resize(b->lowered, b->lowered_cap, sizeof *b->lowered);
    }
    struct lowered_limit *l = &b->lowered[b->lowered_len++];
    *l = (struct lowered_limit){.quota = mem_strdup(quota), .was = json_object(), .set = json_object()};
    (void)snprintf(l->month, sizeof l->month, "%s", month);
    return l;
}

void lowered_limit_drop(struct usage_book *b, const char *quota)
{
    struct lowered_limit *l = lowered_limit_find(b, quota);
    if (!l)
        return;
    mem_free(l->quota);
    json_decref(l->was);
    json_decref(l->set);
    *l = b->lowered[--b->lowered_len];
}
