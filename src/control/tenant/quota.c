/* quota.c - quotas: checks that users' quotas stay within those of their groups when quotas are written. */
#include <errno.h>
#include <string.h>

#include "control/kind/queue.h"
#include "control/state/sync.h"
#include "control/tenant/cap.h"
#include "control/tenant/usage.h"
#include "core/model/cluster.h"
#include "core/model/resource_names.h"
#include "wire/text/document.h"
#include "wire/text/quantity.h"

int quota_check(struct request *c, const char *id, const struct quota_doc *d)
{
    struct berth_quota q = quota_describe(c->state, id, d, &c->arena);
    int rc = describe_quota(state_cluster(c->state), &q, &c->err);
    if (rc == 0)
        rc = cap_names_check(c, resource_names_new_of_quota(state_cluster(c->state), &q));
    if (rc < 0)
        return err_prefix(&c->err, "quota");
    if (!c->dry_run)
        resource_names_of_quota(state_cluster(c->state), &q);
    return 0;
}

/* ---- sums ------------------------------------------------------------------------------------------------------- */

enum quota_part { LIMITS, GUARANTEES, ADMITTED, TOTALS, PARTS };
static const char *const part_names[PARTS] = {"limits", "guarantees", "admitted", "totals"};

static size_t part_len(const struct quota_doc *d, enum quota_part part)
{
    return part == LIMITS       ? d->limits_len
           : part == GUARANTEES ? d->guarantees_len
           : part == ADMITTED   ? d->admitted_len
                                : d->totals_len;
}

static struct berth_amount part_at(const struct quota_doc *d, enum quota_part part, size_t i)
{
    if (part == TOTALS)
        return (struct berth_amount){d->totals[i].resource, d->totals[i].limit};
    return part == LIMITS ? d->limits[i] : part == GUARANTEES ? d->guarantees[i] : d->admitted[i];
}

/* Returns what a quota grants of the resource; 0: the quota does not list it. */
static int64_t part_of(const struct quota_doc *d, enum quota_part part, const char *resource)
{
    for (size_t i = 0; i < part_len(d, part); i++)
        if (strcmp(part_at(d, part, i).resource, resource) == 0)
            return part_at(d, part, i).amount;
    return 0;
}

static const char *amount_text(struct request *c, enum quota_part part, const char *resource, int64_t amount)
{
    if (part != TOTALS)
        return quota_amount_text(resource, amount, &c->arena);
    return arena_fmt(&c->arena, "%lld %s hours", (long long)(amount / quota_hour(resource)), resource);
}

static int64_t period_of(const struct quota_doc *d, const char *resource)
{
    for (size_t i = 0; i < d->totals_len; i++)
        if (strcmp(d->totals[i].resource, resource) == 0)
            return d->totals[i].period_ns;
    return -1;
}

/* Sums of what all users of a group except one are granted of each resource in the group's quota, as the transaction
 * would leave them. Every write of a user changes the counter of users: a guard on that counter guards all users. */
struct group_sums {
    const struct quota_doc *group;
    int64_t *of[PARTS];
    const char *longer; /* a user with a total of another period than the group's */
};

static bool is_member(const json_t *doc, const char *group)
{
    const char *of = json_string_value(json_object_get(doc, "group"));
    return of && strcmp(of, group) == 0;
}

static void sums_add(struct request *c, struct group_sums *sums, const char *user, const json_t *doc)
{
    struct user_doc d;
    if (user_doc_read(doc, &c->arena, &d, NULL) < 0)
        return;
    for (enum quota_part p = LIMITS; p < PARTS; p++)
        for (size_t i = 0; i < part_len(sums->group, p); i++) {
            int64_t more = part_of(&d.quota, p, part_at(sums->group, p, i).resource);
            sums->of[p][i] = more > BERTH_AMOUNT_MAX - sums->of[p][i] ? BERTH_AMOUNT_MAX : sums->of[p][i] + more;
        }
    for (size_t i = 0; i < d.quota.totals_len; i++) {
        int64_t period = period_of(sums->group, d.quota.totals[i].resource);
        if (period >= 0 && period != d.quota.totals[i].period_ns)
            sums->longer = arena_strdup(&c->arena, user);
    }
}

static const struct change_item *written_user(const struct change *change, const char *user)
{
    for (size_t i = 0; i < change->items.len; i++)
        if (change->items.at[i].kind == KIND_USER && change->items.at[i].write &&
            strcmp(change->items.at[i].id, user) == 0)
            return &change->items.at[i];
    return NULL;
}

static struct group_sums sums_of(struct request *c, const char *group, const struct quota_doc *d, const char *but)
{
    struct group_sums sums = {.group = d};
    size_t len;
    const struct object *const *users = state_list(c->state, KIND_USER, &len);
    for (enum quota_part p = LIMITS; p < PARTS; p++) {
        sums.of[p] = ARENA_ARRAY(&c->arena, int64_t, part_len(d, p));
        for (size_t i = 0; i < part_len(d, p); i++)
            sums.of[p][i] = 0;
    }
    (void)change_guard(&c->change, KIND_COUNTER, kinds[KIND_USER].plural);
    for (size_t i = 0; i < len; i++) {
        if (strcmp(users[i]->group, group) != 0 || strcmp(users[i]->id, but) == 0 ||
            written_user(&c->change, users[i]->id))
            continue;
        CLEANUP(json) json_t *doc = object_doc(users[i]);
        if (json_object_get(doc, "quota"))
            sums_add(c, &sums, users[i]->id, doc);
    }
    for (size_t i = 0; i < c->change.items.len; i++) {
        const struct change_item *item = &c->change.items.at[i];
        if (item->kind == KIND_USER && item->write && is_member(item->doc, group) && strcmp(item->id, but) != 0)
            sums_add(c, &sums, item->id, item->doc);
    }
    return sums;
}

static int user_within(struct request *c, const char *id, const char *group, const struct quota_doc *of_group,
                       const struct quota_doc *d)
{
    struct group_sums sums = sums_of(c, group, of_group, id);
    for (enum quota_part p = LIMITS; p < PARTS; p++)
        for (size_t i = 0; i < part_len(of_group, p); i++) {
            struct berth_amount has = part_at(of_group, p, i);
            int64_t asked = part_of(d, p, has.resource), others = sums.of[p][i];
            int64_t left = has.amount > others ? has.amount - others : 0;
            if (asked <= left)
                continue;
            return err_set(&c->err, EINVAL,
                           "quota: %s: group %s has %s, of which its other users have %s; %s can have at most %s",
                           part_names[p], group, amount_text(c, p, has.resource, has.amount),
                           amount_text(c, p, has.resource, others), id, amount_text(c, p, has.resource, left));
        }
    for (size_t i = 0; i < d->totals_len; i++) {
        int64_t period = period_of(of_group, d->totals[i].resource);
        if (period >= 0 && period != d->totals[i].period_ns)
            return err_set(&c->err, EINVAL, "quota: totals: %s: group %s has another period; use the same",
                           d->totals[i].resource, group);
    }
    return 0;
}

int quota_check_user(struct request *c, const char *id, const json_t *doc)
{
    struct user_doc d;
    struct group_doc g;
    int rc = user_doc_read(doc, &c->arena, &d, &c->err);
    if (rc == 0)
        rc = quota_check(c, arena_fmt(&c->arena, "user/%s", id), &d.quota);
    const json_t *group = rc == 0 && d.group && *d.group ? change_read(&c->change, KIND_GROUP, d.group) : NULL;
    if (!group || group_doc_read(group, &c->arena, &g, NULL) < 0)
        return rc;
    return user_within(c, id, d.group, &g.quota, &d.quota);
}

int quota_check_group(struct request *c, const char *id, const struct group_doc *d)
{
    int rc = quota_check(c, arena_fmt(&c->arena, "group/%s", id), &d->quota);
    if (rc < 0)
        return rc;
    struct group_sums sums = sums_of(c, id, &d->quota, "");
    for (enum quota_part p = LIMITS; p < PARTS; p++)
        for (size_t i = 0; i < part_len(&d->quota, p); i++) {
            struct berth_amount has = part_at(&d->quota, p, i);
            if (sums.of[p][i] > has.amount)
                return err_set(&c->err, EINVAL,
                               "quota: %s: the users of group %s have %s together, which is more than %s; lower "
                               "the users' quotas first, or raise the quota of the group",
                               part_names[p], id, amount_text(c, p, has.resource, sums.of[p][i]),
                               amount_text(c, p, has.resource, has.amount));
        }
    if (sums.longer)
        return err_set(&c->err, EINVAL, "quota: totals: user %s has another period; use the same first", sums.longer);
    return 0;
}

/* ---- display ---------------------------------------------------------------------------------------------------- */

static json_t *amount_value(const char *resource, int64_t amount)
{
    char text[QUANTITY_TEXT_MAX];
    return json_string(quantity_print(strcmp(resource, "gpu") == 0 ? "cpu" : resource, amount, text));
}

static json_t *row_of(json_t *use, const struct request *c, const char *id, const char *resource)
{
    struct berth_quota_use held;
    json_t *row = json_object_get(use, resource);
    if (row)
        return row;
    (void)berth_quota_use(state_cluster(c->state), id, resource, &held);
    row =
        json_pack("{s:o, s:o}", "held", amount_value(resource, held.held), "asked", amount_value(resource, held.asked));
    (void)json_object_set_new(use, resource, row);
    return row;
}

json_t *quota_use_show(const struct request *c, const char *id, const struct quota_doc *d)
{
    static const char *const words[PARTS] = {"limit", "guaranteed", "admitted", "hours"};
    json_t *use = json_object();
    for (enum quota_part p = LIMITS; p < PARTS; p++)
        for (size_t i = 0; i < part_len(d, p); i++) {
            struct berth_amount a = part_at(d, p, i);
            int64_t spent, since_ns;
            json_t *row = row_of(use, c, id, a.resource);
            if (p != TOTALS) {
                (void)json_object_set_new(row, words[p], amount_value(a.resource, a.amount));
                continue;
            }
            if (!usage_spent(c->state, id, a.resource, &spent, &since_ns))
                spent = 0;
            (void)json_object_set_new(row, words[p], json_integer(a.amount / quota_hour(a.resource)));
            (void)json_object_set_new(row, "spent", json_integer(spent / quota_hour(a.resource)));
        }
    return use;
}

/* ---- names ------------------------------------------------------------------------------------------------------ */

int users_groups_check(struct request *c, const char *const *users, size_t users_len, const char *const *groups,
                       size_t groups_len)
{
    for (size_t i = 0; i < users_len; i++)
        if (!change_guard(&c->change, KIND_USER, users[i]))
            return err_set(&c->err, EINVAL, "users[%zu]: there is no user %.80s; see 'berth get users'", i, users[i]);
    for (size_t i = 0; i < groups_len; i++)
        if (!change_guard(&c->change, KIND_GROUP, groups[i]))
            return err_set(&c->err, EINVAL, "groups[%zu]: there is no group %.80s; see 'berth get groups'", i,
                           groups[i]);
    return 0;
}

static bool lists(const char *const *texts, size_t len, const char *text)
{
    for (size_t i = 0; i < len; i++)
        if (strcmp(texts[i], text) == 0)
            return true;
    return false;
}

int users_groups_check_unused(struct request *c, enum kind kind, const char *id)
{
    size_t len;
    bool user = kind == KIND_USER;
    const struct object *const *queues = state_list(c->state, KIND_QUEUE, &len);
    for (size_t i = 0; i < len; i++) {
        const struct queue_doc *d = queues[i]->queue;
        if (lists(user ? d->users : d->groups, user ? d->users_len : d->groups_len, id) &&
            change_guard(&c->change, KIND_QUEUE, queues[i]->id))
            return err_set(&c->err, EBUSY, "queue %s is open to %s %s; change the queue first", queues[i]->id,
                           kinds[kind].name, id);
    }
    const struct object *const *windows = state_list(c->state, KIND_WINDOW, &len);
    for (size_t i = 0; i < len; i++) {
        const struct window_doc *d = windows[i]->window;
        if (d->end_ns > c->now_ns && lists(user ? d->users : d->groups, user ? d->users_len : d->groups_len, id) &&
            change_guard(&c->change, KIND_WINDOW, windows[i]->id))
            return err_set(&c->err, EBUSY, "window %s is for %s %s; change the window first", windows[i]->id,
                           kinds[kind].name, id);
    }
    return 0;
}
