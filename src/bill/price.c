#include "bill/price.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "wire/text/decimal.h"
#include "wire/text/document.h"
#include "wire/text/keys.h"

enum { THOUSAND = 1000, PRICES_MAX = 1024 };

/* ---- numbers ---------------------------------------------------------------------------------------------------- */

/* Parses a number with a limited number of decimals, not below 0. */
static int scaled(struct reader *r, const json_t *value, int64_t scale, int64_t *ret)
{
    char buf[DECIMAL_TEXT_MAX];
    struct decimal d;
    bool exact = true;
    int64_t n = 0;
    const char *text = json_is_string(value)   ? json_string_value(value)
                       : json_is_number(value) ? decimal_text(value, buf)
                                               : NULL;
    if (!text || decimal_read(text, &d) < 0 || *d.rest || d.negative)
        return expected(r, "a number of 0 or more like 0.05", value);
    if (decimal_scale(&d, (uint64_t)scale, &n, &exact) < 0 || !exact)
        return err_set(r->err, EINVAL, "%s has too many digits; at most %d after the point are counted", text,
                       scale == MONEY_ONE ? 6 : 3);
    *ret = n;
    return 0;
}

static int money_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    return scaled(r, value, MONEY_ONE, key_field(key, object));
}

/* Parses {name: number}; arg: the scale. */
static int price_map_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    const int64_t *scale = key->arg;
    const char *name;
    json_t *member;
    size_t len = 0;
    if (!json_is_object(value) || json_object_size(value) > PRICES_MAX)
        return expected(r, "an object like {cpu: 0.02, gpu: 1.5}", value);
    struct price *list = ARENA_ARRAY(r->arena, struct price, json_object_size(value));
    json_object_foreach((json_t *)value, name, member)
    {
        list[len].name = name;
        int rc = scaled(r, member, *scale, &list[len++].amount);
        if (rc < 0)
            return in_member(r, name, rc);
    }
    list_set(key, object, list, len);
    return 0;
}

/* ---- budgets ---------------------------------------------------------------------------------------------------- */

static int floor_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    if (!json_is_object(value) || json_object_size(value) == 0)
        return expected(r, "limits like {gpu: 0}", value);
    return raw_read(r, key, value, object);
}

#define AT(field) offsetof(struct spending_budget, field)
static const struct key budget_rows[] = {
    KEY("user", "text", "whose; or", text_read, .at = AT(user)),
    KEY("group", "text", "of all its users together", text_read, .at = AT(group)),
    KEY("amount", "number", "for a month; must be given", money_read, .at = AT(amount)),
    KEY("floor", "{resource: amount}", "limits that hold when it is spent; `{pods: 0}` if not given", floor_read,
        .at = AT(floor)),
};
#undef AT
static KEY_TABLE(budget_keys, "budget", budget_rows);

static int budget_finish(struct reader *r, void *item)
{
    const struct spending_budget *b = item;
    if (!b->user == !b->group)
        return err_set(r->err, EINVAL, "a budget is of a user or of a group; give one of them");
    return b->amount < 0 ? missing(r, "amount") : 0;
}

static const struct object_kind budget_kind = {.table = &budget_keys,
                                               .size = sizeof(struct spending_budget),
                                               .initial = &(const struct spending_budget){.amount = -1},
                                               .finish = budget_finish};

/* ---- the file --------------------------------------------------------------------------------------------------- */

static const int64_t money_scale = MONEY_ONE, times_scale = THOUSAND;

#define AT(field) offsetof(struct prices, field)
#define LIST(field) .at = AT(field), .len_at = AT(field##_len)
static const struct key price_rows[] = {
    KEY("currency", "text", "printed beside every sum; must be given", text_read, .at = AT(currency)),
    KEY("prices", "{resource: number}", "of an hour of a core, a GiB of memory, a GPU, or one of another resource",
        price_map_read, LIST(resources), .arg = &money_scale),
    KEY("queues", "{queue: number}", "times which what ran from a queue costs; 1 if not given", price_map_read,
        LIST(queues), .arg = &times_scale),
    KEY("free", "list of outcomes", "`lost`, `failed`, ...: what ended so costs nothing", texts_read, LIST(free)),
    KEY("budgets", "list of {`user` or `group`, `amount`, `floor`}", "what may be spent in a month", objects_read,
        LIST(budgets), .arg = &budget_kind),
};
#undef LIST
#undef AT
static KEY_TABLE(price_keys, "prices", price_rows);

static int from_doc(json_t *doc, const char *name, struct prices *ret, struct berth_err *err)
{
    struct berth_err own = {0};
    struct prices p = {.doc = doc};
    struct reader r;
    arena_init(&p.arena);
    reader_init(&r, &p.arena, err ? err : &own);
    int rc = table_read(&r, doc, &price_keys, &p);
    if (rc == 0 && (!p.currency || !*p.currency))
        rc = missing(&r, "currency");
    if (rc == 0 && p.resources_len == 0)
        rc = missing(&r, "prices");
    if (rc < 0) {
        prices_done(&p);
        return err_prefix(err, "%s", name);
    }
    *ret = p;
    return 0;
}

int prices_read(const char *path, struct prices *ret, struct berth_err *err)
{
    json_t *doc = NULL;
    int rc = document_read(path, &doc, err);
    return rc < 0 ? rc : from_doc(doc, path, ret, err);
}

int prices_parse(const char *text, const char *name, struct prices *ret, struct berth_err *err)
{
    json_t *doc = NULL;
    int rc = document_parse(text, strlen(text), name, &doc, err);
    return rc < 0 ? rc : from_doc(doc, name, ret, err);
}

void prices_done(struct prices *p)
{
    json_decref(p->doc);
    arena_done(&p->arena);
    *p = (struct prices){0};
}

/* ---- computing money -------------------------------------------------------------------------------------------- */

static int64_t price_find(const struct price *list, size_t len, const char *name, int64_t fallback)
{
    for (size_t i = 0; i < len; i++)
        if (strcmp(list[i].name, name) == 0)
            return list[i].amount;
    return fallback;
}

int64_t prices_of(const struct prices *p, const char *resource, const char *queue, int64_t hours)
{
    const __int128 whole = (__int128)HOURS_ONE * THOUSAND, most = whole * INT64_MAX;
    __int128 money = (__int128)hours * price_find(p->resources, p->resources_len, resource, 0);
    int64_t times = price_find(p->queues, p->queues_len, queue, THOUSAND);
    if (times && money > most / times)
        return INT64_MAX;
    return (int64_t)((money * times + whole / 2) / whole);
}

int64_t money_add(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

bool prices_outcome_free(const struct prices *p, const char *outcome)
{
    for (size_t i = 0; i < p->free_len; i++)
        if (strcmp(p->free[i], outcome) == 0)
            return true;
    return false;
}

const char *money_text(int64_t money, char buf[static MONEY_TEXT_MAX])
{
    int64_t whole = money / MONEY_ONE, rest = money % MONEY_ONE;
    int len = snprintf(buf, MONEY_TEXT_MAX, "%" PRId64 ".%06" PRId64, whole, rest < 0 ? -rest : rest);
    while (len > 3 && buf[len - 1] == '0' && buf[len - 3] != '.')
        buf[--len] = 0;
    return buf;
}
