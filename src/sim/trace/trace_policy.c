/* trace_policy.c - orders and kinds of backfilling by name. */
#include "sim/trace/trace_policy.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

static const struct policy_order {
    struct sim_named is;
    const char *ranking;
    const char *after; /* the ranking of jobs after the reservations; NULL: the same */
} orders[] = {
    {{"fcfs", "first come, first served"},                                             "fifo", NULL },
    {{"sjf", "shortest predicted job first"},                                          "sjf",  NULL },
    {{"sjbf", "first come, first served; backfills the shortest predicted job first"}, "fifo", "sjf"},
    {{"f1", "log10(time) x processors + 870 x log10(submission), the lowest"},         "f1",   NULL },
};
enum { ORDERS = sizeof orders / sizeof *orders };

static const struct backfill {
    struct sim_named is;
    uint32_t reservations;
    bool strict;
    bool until_limit;
    uint32_t alike;
    const char *ranking; /* the ranking of backfilled jobs; NULL: that of the order */
} backfills[] = {
    {{"none", "no backfilling"},                                                             0,      true,  false, 0, NULL},
    {{"easy", "jobs that do not delay the first pending job"},                               1,      false, false, 0, NULL},
    {{"berth", "easy in each part of the cluster; running jobs may use all requested time"},
     100,                                                                                            false,
     true,                                                                                                         1,
     "berth"                                                                                                              },
    {{"conservative", "jobs that delay no earlier job"},                                     100000, false, false, 0, NULL},
    {{"usual", "jobs that delay none of the first 100 pending jobs"},                        100,    false, false, 0, NULL},
    {{"greedy", "all jobs that fit"},                                                        0,      false, false, 0, NULL},
};
enum { BACKFILLS = sizeof backfills / sizeof *backfills };

struct sim_named sim_order_at(size_t i)
{
    return i < ORDERS ? orders[i].is : (struct sim_named){0};
}

struct sim_named sim_backfill_at(size_t i)
{
    return i < BACKFILLS ? backfills[i].is : (struct sim_named){0};
}

static int unknown(const char *what, const char *name, const struct str *known, struct berth_err *err)
{
    return err_set(err, EINVAL, "there is no %s \"%s\"; there are %s", what, name, str_text(known));
}

static void known_add(struct str *known, const char *name)
{
    str_addf(known, "%s%s", known->len ? ", " : "", name);
}

int sim_policy_order(const char *name, struct berth_policy *p, struct berth_err *err)
{
    CLEANUP(str) struct str known = {0};
    const char *ranking;
    for (size_t i = 0; i < ORDERS; i++) {
        known_add(&known, orders[i].is.name);
        if (strcmp(orders[i].is.name, name) != 0)
            continue;
        p->order.ranking.name = orders[i].ranking;
        p->backfill.ranking.name = orders[i].after;
        return 0;
    }
    for (size_t i = 0; (ranking = berth_ranking_at(i, NULL)); i++) {
        known_add(&known, ranking);
        if (strcmp(ranking, name) != 0)
            continue;
        p->order.ranking.name = ranking;
        return 0;
    }
    return unknown("order", name, &known, err);
}

int sim_policy_backfill(const char *name, struct berth_policy *p, struct berth_err *err)
{
    CLEANUP(str) struct str known = {0};
    for (size_t i = 0; i < BACKFILLS; i++) {
        known_add(&known, backfills[i].is.name);
        if (strcmp(backfills[i].is.name, name) != 0)
            continue;
        p->backfill.reservations = backfills[i].reservations;
        p->backfill.strict = backfills[i].strict;
        p->backfill.until_limit = backfills[i].until_limit;
        p->backfill.alike = backfills[i].alike;
        if (backfills[i].ranking)
            p->backfill.ranking.name = backfills[i].ranking;
        return 0;
    }
    return unknown("way of backfilling", name, &known, err);
}

int sim_policy_predictor(const char *name, const struct sim_predictor **ret, struct berth_err *err)
{
    CLEANUP(str) struct str known = {0};
    const struct sim_predictor *p = sim_predictor_find(name);
    if (p) {
        *ret = p;
        return 0;
    }
    for (size_t i = 0; (p = sim_predictor_at(i)); i++)
        known_add(&known, p->name);
    return unknown("predictor", name, &known, err);
}
