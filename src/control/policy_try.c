#include "control/policy_try.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "control/queue_view.h"
#include "formula/formula.h"
#include "wire/document.h"
#include "wire/queue_doc.h"
#include "wire/words.h"

enum { PRESENT, TRIED, CASES, ROWS_MAX = 10000, ROWS_DEFAULT = 100 };

/* A ranking with what it points to, for as long as a plan is made by it. */
struct trial {
    struct arena arena;
    struct berth_ranking ranking;
    struct formula *formula;
};

static void trial_drop(void *keep)
{
    struct trial *t = keep;
    formula_free(t->formula);
    arena_done(&t->arena);
    mem_free(t);
}

static bool built_in(const char *name)
{
    const char *known;
    for (size_t i = 0; (known = berth_ranking_at(i, NULL)); i++)
        if (strcmp(known, name) == 0)
            return true;
    return false;
}

/* The document of the policy that is asked about: a new reference, NULL with an error. */
static json_t *document(struct call *c)
{
    const json_t *named = json_object_get(c->body, "policy");
    const char *name = json_string_value(named);
    char shown[QUOTE_MAX];
    if (!named)
        return json_deep_copy(c->body);
    if (!name || json_object_size(c->body) != 1) {
        (void)err_set(&c->err, EINVAL, "policy: give either the name of a policy, or one as it would be written");
        return NULL;
    }
    const struct object *o = state_find(c->state, KIND_POLICY, name);
    if (o)
        return object_doc(o);
    if (built_in(name))
        return json_pack("{s:s}", "ranking", name);
    (void)err_set(&c->err, ENOENT, "no policy %s; 'berth policy list' lists those there are", quote(name, shown));
    return NULL;
}

static int trial_new(struct call *c, struct trial **ret)
{
    CLEANUP(json) json_t *doc = document(c);
    struct policy_doc d;
    if (!doc)
        return -c->err.code;
    struct trial *t = mem_zalloc(sizeof *t);
    arena_init(&t->arena);
    json_t *kept = json_deep_copy(doc); /* texts of what is read are the document's */
    if (!json_object_get(kept, "id"))
        (void)json_object_set_new(kept, "id", json_string("draft")); /* whatever it will be called */
    int rc = policy_doc_read(kept, &t->arena, &d, &c->err);
    if (rc == 0) {
        struct berth_weight *weights = ARENA_ARRAY(&t->arena, struct berth_weight, d.weights_len);
        for (size_t i = 0; i < d.weights_len; i++)
            weights[i] = (struct berth_weight){arena_strdup(&t->arena, d.weights[i].score), d.weights[i].weight};
        t->ranking = (struct berth_ranking){.name = arena_strdup(&t->arena, d.formula ? "formula" : d.ranking),
                                            .weights = weights,
                                            .weights_len = d.weights_len};
    }
    if (rc == 0 && d.formula)
        rc = formula_new(d.formula, "formula", &t->formula, &c->err);
    if (rc == 0 && d.formula) {
        t->ranking.formula = formula_run;
        t->ranking.ctx = t->formula;
    }
    json_decref(kept);
    if (rc < 0)
        trial_drop(t);
    else
        *ret = t;
    return rc;
}

/* A row of the tried order, with where it stands now, and what its key is made of. */
static void row_add(const struct call *c, const struct forecast_run *run, size_t i, json_t *items)
{
    const struct forecast_plan *tried = &run->plans[TRIED], *present = &run->plans[PRESENT];
    json_t *row = queue_row(c, tried, i);
    size_t was;
    if (!row)
        return;
    const char *id = berth_plan_pending_name(tried->plan, i);
    (void)json_object_set_new(row, "was",
                              forecast_find(present, id, &was) ? json_integer((json_int_t)was + 1) : json_null());
    if (json_object_get(row, "id")) {
        struct berth_standing s = berth_plan_standing(tried->plan, i);
        (void)json_object_set_new(row, "factors", factors_json(&s));
    }
    (void)json_array_append_new(items, row);
}

/* What would no longer wait. */
static void started_add(const struct call *c, const struct forecast_run *run, size_t i, json_t *items)
{
    const struct forecast_plan *tried = &run->plans[TRIED], *present = &run->plans[PRESENT];
    size_t at;
    if (forecast_find(tried, berth_plan_pending_name(present->plan, i), &at))
        return;
    json_t *row = queue_row(c, present, i);
    if (!row)
        return;
    (void)json_object_set_new(row, "position", json_integer(0));
    (void)json_object_set_new(row, "was", json_integer((json_int_t)i + 1));
    (void)json_object_del(row, "start");
    (void)json_object_del(row, "end");
    (void)json_object_set_new(row, "now", json_true());
    (void)json_array_append_new(items, row);
}

int policy_try(struct call *c)
{
    const struct forecast_run *run = NULL;
    struct trial *trial = NULL;
    uint64_t limit;
    int rc = call_query_number(c, "limit", 1, ROWS_MAX, ROWS_DEFAULT, &limit);
    if (rc == 0)
        rc = trial_new(c, &trial);
    if (rc < 0 || !trial)
        return rc;
    const char *name = arena_strdup(&c->arena, trial->ranking.name);
    struct forecast_case cases[CASES] = {[TRIED] = {.ranking = &trial->ranking}};
    struct forecast_wish wish = {.cases = cases, .cases_len = CASES, .keep = trial, .drop = trial_drop};
    rc = forecast_ask(c, &wish, &run);
    if (rc < 0 || !run)
        return rc;
    for (size_t i = 0; i < CASES; i++)
        if (!run->plans[i].plan) {
            c->err = run->plans[i].err;
            return run->plans[i].rc < 0 ? run->plans[i].rc
                                        : err_set(&c->err, EDQUOT, "there was no time to plan; try again");
        }
    json_t *items = json_array();
    size_t waits = berth_plan_pendings(run->plans[TRIED].plan), now = berth_plan_pendings(run->plans[PRESENT].plan);
    for (size_t i = 0; i < now && json_array_size(items) < limit; i++)
        started_add(c, run, i, items);
    for (size_t i = 0; i < waits && json_array_size(items) < limit; i++)
        row_add(c, run, i, items);
    c->answer.body = json_pack("{s:s, s:o, s:I, s:o}", "ranking", name, "items", items, "total", (json_int_t)waits,
                               "forecast", forecast_label(run));
    return 0;
}
