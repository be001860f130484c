/* enforce.c - budgets: lowers limits when a budget is spent, and restores them in the next month. */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "bill/bill.h"
#include "wire/text/quantity.h"

struct enforcement {
    struct usage_book *book;
    const struct prices *prices;
    const struct bill_server *server;
    const char *path; /* file of the book */
    char month[MONTH_MAX];
    bool really;
    FILE *to;
    int rc; /* the first error */
    struct berth_err err;
};

static void failed(struct enforcement *e, const char *quota, const struct berth_err *err)
{
    (void)fprintf(e->to, "%s: %s\n", quota, err->text);
    if (e->rc == 0) {
        e->rc = -err->code;
        e->err = *err;
    }
}

/* Returns "/v1/groups/vision" for "group/vision". */
static void url_of(const char *quota, struct str *to)
{
    const char *slash = strchr(quota, '/');
    str_addf(to, "/v1/%.*ss/%s", slash ? (int)(slash - quota) : 0, quota, slash ? slash + 1 : "");
}

/* Reads the limits of a user or group, a new reference. */
static int limits_get(struct enforcement *e, const char *quota, json_t **ret, struct berth_err *err)
{
    CLEANUP(str) struct str url = {0};
    json_t *doc = NULL;
    url_of(quota, &url);
    int rc = e->server->get(e->server->ctx, str_text(&url), &doc, err);
    if (rc < 0)
        return rc;
    json_t *limits = json_object_get(json_object_get(doc, "quota"), "limits");
    *ret = limits ? json_incref(limits) : json_object();
    json_decref(doc);
    return 0;
}

static int limits_patch(struct enforcement *e, const char *quota, const json_t *limits, struct berth_err *err)
{
    CLEANUP(str) struct str url = {0};
    url_of(quota, &url);
    json_t *body = json_pack("{s:{s:O}}", "quota", "limits", limits);
    int rc = e->server->patch(e->server->ctx, str_text(&url), body, err);
    json_decref(body);
    return rc;
}

/* Compares amounts, which may be numbers or text. */
static bool same_amount(const json_t *a, const json_t *b)
{
    char x[64], y[64];
    const json_t *both[] = {a, b};
    char *texts[] = {x, y};
    for (size_t i = 0; i < 2; i++) {
        if (json_is_string(both[i]))
            (void)snprintf(texts[i], sizeof x, "%s", json_string_value(both[i]));
        else if (json_is_number(both[i]))
            (void)snprintf(texts[i], sizeof x, "%g", json_number_value(both[i]));
        else
            (void)snprintf(texts[i], sizeof x, "none");
    }
    return strcmp(x, y) == 0;
}

/* Returns whether the server answered with a refusal. */
static bool is_refusal(int rc)
{
    return rc == -EINVAL || rc == -EACCES || rc == -EPERM || rc == -ENOENT || rc == -EBUSY;
}

/* Sets again limits that still have their old value: an earlier request to lower them may have been lost. */
static void confirm(struct enforcement *e, const struct lowered_limit *l)
{
    struct berth_err err = {0};
    json_t *limits = NULL, *again = json_object(), *value;
    const char *resource;
    int rc = limits_get(e, l->quota, &limits, &err);
    json_object_foreach(l->set, resource,
                        value) if (rc == 0 &&
                                   same_amount(json_object_get(limits, resource), json_object_get(l->was, resource)) &&
                                   !same_amount(json_object_get(l->was, resource), value))(void)
        json_object_set(again, resource, value);
    if (rc == 0 && json_object_size(again) && e->really)
        rc = limits_patch(e, l->quota, again, &err);
    json_decref(again);
    json_decref(limits);
    if (rc < 0)
        failed(e, l->quota, &err);
}

static bool amount_read(const char *resource, const json_t *value, int64_t *ret)
{
    return value && (strcmp(resource, "gpu") == 0 ? ratio_parse(value, ret, NULL)
                                                  : quantity_parse(resource, value, ret, NULL)) == 0;
}

/* Returns the part of the floor that is below the present limits, a new reference; lower limits are kept. */
static json_t *lower_limits(const json_t *floor, const json_t *limits)
{
    json_t *set = json_object(), *value;
    const char *resource;
    json_object_foreach((json_t *)floor, resource, value)
    {
        int64_t was, becomes;
        if (amount_read(resource, json_object_get(limits, resource), &was) && amount_read(resource, value, &becomes) &&
            was <= becomes)
            continue;
        (void)json_object_set(set, resource, value);
    }
    return set;
}

static void lower(struct enforcement *e, const char *quota, const struct spending_budget *b, int64_t spent)
{
    struct berth_err err = {0};
    json_t *limits = NULL, *fallback = json_pack("{s:i}", "pods", 0), *set = NULL, *value;
    const char *resource;
    char of[MONEY_TEXT_MAX], money[MONEY_TEXT_MAX];
    int rc = limits_get(e, quota, &limits, &err);
    if (rc == 0)
        (void)fprintf(e->to, "%s: %s of %s %s spent in %s; its limits %s lowered\n", quota, money_text(spent, money),
                      money_text(b->amount, of), e->prices->currency, e->month, e->really ? "are" : "would be");
    if (rc == 0 && e->really) {
        struct lowered_limit *l = lowered_limit_add(e->book, quota, e->month);
        set = lower_limits(b->floor ? b->floor : fallback, limits);
        json_object_foreach(set, resource, value)
        {
            json_t *was = json_object_get(limits, resource);
            (void)json_object_set(l->was, resource, was ? was : json_null());
            (void)json_object_set(l->set, resource, value);
        }
        rc = e->path ? book_save(e->book, e->path, &err) : 0;
        if (rc == 0 && json_object_size(set))
            rc = limits_patch(e, quota, set, &err);
        if (rc < 0 &&
            is_refusal(rc)) { /* after other errors the limit may have been lowered: the next run confirms it */
            lowered_limit_drop(e->book, quota);
            if (e->path)
                (void)book_save(e->book, e->path, NULL);
        }
    }
    json_decref(set);
    json_decref(limits);
    json_decref(fallback);
    if (rc < 0)
        failed(e, quota, &err);
}

/* Restores limits that still have the lowered value. */
static void restore(struct enforcement *e, const char *quota)
{
    struct berth_err err = {0};
    struct lowered_limit *l = lowered_limit_find(e->book, quota);
    json_t *limits = NULL, *back = json_object(), *value;
    const char *resource;
    (void)fprintf(e->to, "%s: its limits %s restored\n", quota, e->really ? "are" : "would be");
    int rc = e->really ? limits_get(e, quota, &limits, &err) : 0;
    if (rc == -ENOENT) /* deleted: nothing to restore */
        rc = 0;
    json_object_foreach(l->set, resource, value)
    {
        if (!limits)
            break;
        if (same_amount(json_object_get(limits, resource), value))
            (void)json_object_set(back, resource, json_object_get(l->was, resource));
        else
            (void)fprintf(e->to, "%s: the limit of %s was changed meanwhile and is kept\n", quota, resource);
    }
    if (rc == 0 && json_object_size(back))
        rc = limits_patch(e, quota, back, &err);
    if (rc == 0 && e->really) {
        lowered_limit_drop(e->book, quota);
        rc = e->path ? book_save(e->book, e->path, &err) : 0;
    }
    json_decref(back);
    json_decref(limits);
    if (rc < 0)
        failed(e, quota, &err);
}

static int64_t spent_of(const struct enforcement *e, const struct spending_budget *b)
{
    struct bill_question q = {.by = BILL_BY_GROUP, .month = e->month, .user = b->user, .group = b->group};
    CLEANUP(bill) struct bill bill;
    bill_make(e->book, e->prices, &q, &bill);
    return bill.money;
}

static const struct spending_budget *budget_of(const struct prices *p, const char *quota)
{
    for (size_t i = 0; i < p->budgets_len; i++) {
        const struct spending_budget *b = &p->budgets[i];
        const char *prefix = b->user ? "user/" : "group/", *name = b->user ? b->user : b->group;
        if (strncmp(quota, prefix, strlen(prefix)) == 0 && strcmp(quota + strlen(prefix), name) == 0)
            return b;
    }
    return NULL;
}

/* Restores limits whose budget is no longer spent; each restore removes an entry of the list. */
static void restore_all(struct enforcement *e)
{
    for (size_t i = e->book->lowered_len; i-- > 0;) {
        const struct lowered_limit *l = &e->book->lowered[i];
        const struct spending_budget *b = budget_of(e->prices, l->quota);
        CLEANUP(mem) char *quota = mem_strdup(l->quota);
        if (!b || strcmp(l->month, e->month) != 0 || spent_of(e, b) < b->amount)
            restore(e, quota);
    }
}

int bill_enforce(struct usage_book *b, const struct prices *p, const struct bill_server *server, const char *path,
                 int64_t now_ns, bool really, FILE *to, struct berth_err *err)
{
    struct enforcement e = {.book = b, .prices = p, .server = server, .path = path, .really = really, .to = to};
    (void)month_of(now_ns, e.month);
    restore_all(&e);
    for (size_t i = 0; i < p->budgets_len; i++) {
        const struct spending_budget *budget = &p->budgets[i];
        CLEANUP(str) struct str quota = {0};
        str_addf(&quota, "%s/%s", budget->user ? "user" : "group", budget->user ? budget->user : budget->group);
        int64_t spent = spent_of(&e, budget);
        const struct lowered_limit *l = lowered_limit_find(b, str_text(&quota));
        if (l)
            confirm(&e, l);
        else if (spent >= budget->amount)
            lower(&e, str_text(&quota), budget, spent);
    }
    if (e.rc < 0)
        (void)err_set(err, -e.rc, "%s", e.err.text);
    return e.rc;
}
