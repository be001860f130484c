/* policy.c - policies: how the jobs of a queue are ordered. */
#include <errno.h>
#include <string.h>

#include "control/kind/queue.h"
#include "control/sched/plan_policy.h"
#include "wire/text/words.h"

static const char *candidate(const void *ctx, size_t i)
{
    const struct state *s = ctx;
    size_t len, built = 0;
    while (berth_ranking_at(built, NULL))
        built++;
    const struct object *const *made = state_list(s, KIND_POLICY, &len);
    return i < built ? berth_ranking_at(i, NULL) : i - built < len ? made[i - built]->id : NULL;
}

int policy_check_exists(struct request *c, const char *key, const char *name)
{
    char quoted[QUOTE_MAX];
    if (change_guard(&c->change, KIND_POLICY, name) || plan_policy_built_in(name))
        return 0;
    const char *guess = suggest(name, candidate, c->state);
    return err_set(&c->err, EINVAL, "%s: there is no policy %s%s%s%s see 'berth policy list'", key, quote(name, quoted),
                   guess ? "; did you mean " : "", guess ? guess : "", guess ? "?" : ";");
}

static const char *ranking_candidate(const void *ctx, size_t i)
{
    (void)ctx;
    return berth_ranking_at(i, NULL);
}

static const char *factor_candidate(const void *ctx, size_t i)
{
    (void)ctx;
    return berth_factor_at(i, NULL);
}

static int check_name_exists(struct request *c, const char *what, const char *(*names)(const void *ctx, size_t i),
                             const char *name)
{
    char quoted[QUOTE_MAX];
    const char *known;
    for (size_t i = 0; (known = names(NULL, i)); i++)
        if (strcmp(known, name) == 0)
            return 0;
    const char *guess = suggest(name, names, NULL);
    return err_set(&c->err, EINVAL, "there is no %s %s%s%s%s", what, quote(name, quoted),
                   guess ? "; did you mean " : "", guess ? guess : "", guess ? "?" : "");
}

static int names_check(struct request *c, const struct policy_doc *d)
{
    if (!d->formula && check_name_exists(c, "ranking", ranking_candidate, d->ranking) < 0)
        return err_prefix(&c->err, "ranking");
    for (size_t i = 0; i < d->weights_len; i++)
        if (check_name_exists(c, "factor", factor_candidate, d->weights[i].score) < 0)
            return err_prefix(&c->err, "weights");
    return 0;
}

static int check(struct request *c, const struct crud *k, const char *id, const json_t *old, const json_t *doc)
{
    struct policy_doc d;
    (void)k;
    (void)id;
    (void)old;
    int rc = policy_doc_read(doc, &c->arena, &d, &c->err);
    if (rc == 0)
        rc = names_check(c, &d);
    return rc < 0 ? rc : plan_policy_check(&d, &c->err);
}

static int on_delete(struct request *c, const struct crud *k, const char *id, const json_t *old, const json_t *next)
{
    size_t len;
    (void)k;
    (void)old;
    if (next || plan_policy_built_in(id)) /* a built-in policy of this name remains */
        return 0;
    const json_t *settings = change_read(&c->change, KIND_SETTING, "system");
    const char *used = json_string_value(json_object_get(settings, "policy"));
    const char *before = json_string_value(json_object_get(settings, "backfill_policy"));
    if ((used && strcmp(used, id) == 0) || (before && strcmp(before, id) == 0))
        return err_set(&c->err, EBUSY, "policy %s is in use; set another in /v1/system/settings first", id);
    const struct object *const *queues = state_list(c->state, KIND_QUEUE, &len);
    for (size_t i = 0; i < len; i++)
        if (queues[i]->queue->policy && strcmp(queues[i]->queue->policy, id) == 0 &&
            change_guard(&c->change, KIND_QUEUE, queues[i]->id))
            return err_set(&c->err, EBUSY, "queue %s uses policy %s; set another first", queues[i]->id, id);
    return 0;
}

const struct crud policy_crud = {
    .kind = KIND_POLICY,
    .make = PERMIT_SYSTEM,
    .change = PERMIT_SYSTEM,
    .check = check,
    .leaving = on_delete,
};
