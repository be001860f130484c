#include "control/explain/policy_trial.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "control/api/page.h"
#include "control/explain/queue_view.h"
#include "control/explain/what_if_nodes.h"
#include "formula/formula.h"
#include "wire/doc/api.h"
#include "wire/doc/queue_doc.h"
#include "wire/text/document.h"
#include "wire/text/words.h"

enum { PRESENT, TRIED, CASES, ROWS_MAX = 10000, ROWS_DEFAULT = 100 };

#define SECOND_NS INT64_C(1000000000)

struct policy_trial_query {
    const json_t *policy; /* a name, or a document; NULL: the present policy */
    const struct what_if_node *nodes;
    size_t nodes_len;
};

#define AT(field) offsetof(struct policy_trial_query, field)
static const struct key what_if_rows[] = {
    KEY("policy", "policy", "the name of a policy, or a policy itself; default: the present one", raw_read,
        .at = AT(policy)),
    KEY("nodes", "list of {`like`, `label`, `count`}", "nodes to add or remove", objects_read, .at = AT(nodes),
        .len_at = AT(nodes_len), .arg = &what_if_node_kind),
};
#undef AT
KEY_TABLE(what_if_keys, "what if", what_if_rows);

/* A ranking and nodes, with the memory that they refer to; lives as long as the run. */
struct policy_trial {
    struct arena arena;
    struct berth_ranking ranking; /* name NULL: the present ranking */
    struct formula *formula;
    struct what_if_nodes nodes;
};

static void trial_drop(void *keep)
{
    struct policy_trial *t = keep;
    formula_free(t->formula);
    what_if_nodes_done(&t->nodes);
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

/* Returns the document of a policy of this name: a new reference, or NULL with an error. */
static json_t *document(struct request *c, const char *name)
{
    char quoted[QUOTE_MAX];
    const struct object *o = state_find(c->state, KIND_POLICY, name);
    if (o)
        return object_doc(o);
    if (built_in(name))
        return json_pack("{s:s}", "ranking", name);
    (void)err_set(&c->err, ENOENT, "no policy %s; see 'berth policy list'", quote(name, quoted));
    return NULL;
}

static int trial_rank(struct request *c, struct policy_trial *t, const json_t *policy)
{
    const char *name = json_string_value(policy);
    CLEANUP(json) json_t *doc = name ? document(c, name) : json_deep_copy(policy);
    struct policy_doc d;
    if (!doc)
        return -c->err.code;
    if (!json_object_get(doc, "id"))
        /* a placeholder: the tried policy has no name yet */
        (void)json_object_set_new(doc, "id", json_string("draft"));
    int rc = policy_doc_read(doc, &t->arena, &d, &c->err);
    if (rc < 0)
        return rc;
    struct berth_weight *weights = ARENA_ARRAY(&t->arena, struct berth_weight, d.weights_len);
    for (size_t i = 0; i < d.weights_len; i++)
        weights[i] = (struct berth_weight){arena_strdup(&t->arena, d.weights[i].score), d.weights[i].weight};
    t->ranking = (struct berth_ranking){.name = arena_strdup(&t->arena, d.formula ? "formula" : d.ranking),
                                        .weights = weights,
                                        .weights_len = d.weights_len};
    if (!d.formula)
        return 0;
    rc = formula_new(d.formula, "formula", &t->formula, &c->err);
    if (rc == 0) {
        t->ranking.formula = formula_run;
        t->ranking.ctx = t->formula;
    }
    return rc;
}

static int trial_new(struct request *c, const struct policy_trial_query *query, struct policy_trial **ret)
{
    struct policy_trial *t = mem_zalloc(sizeof *t);
    arena_init(&t->arena);
    int rc = query->policy ? trial_rank(c, t, query->policy) : 0;
    if (rc == 0)
        rc = what_if_nodes(c, query->nodes, query->nodes_len, &t->arena, &t->nodes);
    if (rc < 0)
        trial_drop(t);
    else
        *ret = t;
    return rc;
}

/* Returns the start estimate of a workload in one of the plans. A workload that does not wait in the plan starts now.
 * False: no estimate. */
static bool start_of(const struct forecast_run *run, size_t which, const char *id, int64_t *ret)
{
    size_t at;
    *ret = run->now_ns;
    if (forecast_find(&run->plans[which], id, &at))
        *ret = forecast_start_beside(run, which, which == PRESENT ? TRIED : PRESENT, id);
    return *ret > 0 && *ret != BERTH_NEVER_NS;
}

/* Adds the present start estimate. */
static void was_set(const struct forecast_run *run, const char *id, json_t *row)
{
    char text[TIMESTAMP_MAX];
    int64_t start_ns;
    if (start_of(run, PRESENT, id, &start_ns))
        (void)json_object_set_new(row, "was_start", json_string(timestamp_text(start_ns, text)));
}

/* Adds a row of the tried order, with the workload's present position and its factors. Returns false if the page is
 * full. */
static bool row_add(const struct request *c, const struct forecast_run *run, size_t i, struct list_page *page)
{
    const struct forecast_plan *tried = &run->plans[TRIED], *present = &run->plans[PRESENT];
    json_t *row = queue_row(c, tried, i);
    size_t was;
    if (!row)
        return true;
    const char *id = berth_plan_pending_name(tried->plan, i);
    (void)json_object_set_new(row, "was",
                              forecast_find(present, id, &was) ? json_integer((json_int_t)was + 1) : json_null());
    was_set(run, id, row);
    row_show_factors(tried, i, row);
    return page_add(page, row, 0);
}

/* Adds a workload that would no longer wait. Returns false if the page is full. */
static bool add_started(const struct request *c, const struct forecast_run *run, size_t i, struct list_page *page)
{
    const struct forecast_plan *tried = &run->plans[TRIED], *present = &run->plans[PRESENT];
    size_t at;
    if (forecast_find(tried, berth_plan_pending_name(present->plan, i), &at))
        return true;
    json_t *row = queue_row(c, present, i);
    if (!row)
        return true;
    (void)json_object_set_new(row, "position", json_integer(0));
    (void)json_object_set_new(row, "was", json_integer((json_int_t)i + 1));
    was_set(run, berth_plan_pending_name(present->plan, i), row);
    (void)json_object_del(row, "start");
    (void)json_object_del(row, "end");
    (void)json_object_set_new(row, "now", json_true());
    return page_add(page, row, 0);
}

/* Compares the waits of the workloads with a start estimate in both plans, over all owners. */
static json_t *waits_json(const struct request *c, const struct forecast_run *run)
{
    double sum[CASES] = {0}, most[CASES] = {0};
    size_t count = 0;
    for (size_t which = 0; which < CASES; which++) {
        const struct berth_plan *plan = run->plans[which].plan;
        size_t len = berth_plan_pendings(plan);
        for (size_t i = 0; i < len && i < 2 * FORECAST_RESERVATIONS; i++) {
            const char *id = berth_plan_pending_name(plan, i);
            const struct object *work = state_find_work(c->state, id);
            int64_t start_ns[CASES];
            size_t at;
            if (!work || !forecast_find(&run->plans[which], id, &at) || at != i || /* counts each workload once */
                (which == TRIED && forecast_find(&run->plans[PRESENT], id, &at)) ||
                !start_of(run, PRESENT, id, &start_ns[PRESENT]) || !start_of(run, TRIED, id, &start_ns[TRIED]))
                continue;
            count++;
            for (size_t k = 0; k < CASES; k++) {
                double wait = (double)(start_ns[k] - work->work->created_ns) / (double)SECOND_NS;
                sum[k] += wait;
                most[k] = wait > most[k] ? wait : most[k];
            }
        }
    }
    double each = count ? (double)count : 1;
    return json_pack("{s:I, s:{s:f, s:f}, s:{s:f, s:f}}", "of", (json_int_t)count, "now", "mean_s", sum[PRESENT] / each,
                     "longest_s", most[PRESENT], "then", "mean_s", sum[TRIED] / each, "longest_s", most[TRIED]);
}

static json_t *nodes_json(const struct what_if_nodes *nodes)
{
    json_t *removed = json_array();
    for (size_t i = 0; i < nodes->drafts_len; i++)
        if (nodes->drafts[i].gone)
            (void)json_array_append_new(removed, json_string(nodes->drafts[i].id));
    return json_pack("{s:I, s:o}", "added", (json_int_t)nodes->added, "removed", removed);
}

static int try_case(struct request *c, const struct policy_trial_query *query)
{
    const struct forecast_run *run = NULL;
    struct policy_trial *trial = NULL;
    uint64_t limit;
    int rc = request_query_number(c, "limit", 1, ROWS_MAX, ROWS_DEFAULT, &limit);
    if (rc == 0)
        rc = trial_new(c, query, &trial);
    if (rc < 0 || !trial)
        return rc;
    struct forecast_case cases[CASES] = {
        [TRIED] = {.ranking = trial->ranking.name ? &trial->ranking : NULL,
                   .drafts = trial->nodes.drafts,
                   .drafts_len = trial->nodes.drafts_len}
    };
    struct forecast_spec run_spec = {.cases = cases, .cases_len = CASES, .keep = trial, .drop = trial_drop};
    rc = forecast_request(c, &run_spec, &run);
    if (rc < 0 || !run)
        return rc;
    for (size_t i = 0; i < CASES; i++)
        if (!run->plans[i].plan) {
            c->err = run->plans[i].err;
            return run->plans[i].rc < 0 ? run->plans[i].rc
                                        : err_set(&c->err, EDQUOT, "the plan took too long; try again");
        }
    struct list_page page = {.items = json_array()};
    bool room = true;
    size_t waits = berth_plan_pendings(run->plans[TRIED].plan), now = berth_plan_pendings(run->plans[PRESENT].plan);
    for (size_t i = 0; i < now && room && json_array_size(page.items) < limit; i++)
        room = add_started(c, run, i, &page);
    for (size_t i = 0; i < waits && room && json_array_size(page.items) < limit; i++)
        room = row_add(c, run, i, &page);
    const struct policy_trial *made = run->keep; /* belongs to the first call of this verb, if this is the second */
    c->answer.body = json_pack("{s:s*, s:o, s:I, s:o, s:o, s:o}", "ranking", made->ranking.name, "items", page.items,
                               "total", (json_int_t)waits, "forecast", forecast_label(run), "waits", waits_json(c, run),
                               "nodes", nodes_json(&made->nodes));
    return 0;
}

int policy_test(struct request *c)
{
    const json_t *named = json_object_get(c->body, "policy");
    if (named && (!json_is_string(named) || json_object_size(c->body) != 1))
        return err_set(&c->err, EINVAL, "policy: give either the name of a policy or the policy itself");
    return try_case(c, &(struct policy_trial_query){.policy = named ? named : c->body});
}

int what_if(struct request *c)
{
    struct policy_trial_query query = {0};
    struct reader r;
    reader_init(&r, &c->arena, &c->err);
    int rc = table_read(&r, c->body, &what_if_keys, &query);
    if (rc < 0)
        return rc;
    if (!query.policy && !query.nodes_len)
        return err_set(&c->err, EINVAL, "no change to try: give a policy, nodes, or both");
    if (query.policy && !json_is_string(query.policy) && !json_is_object(query.policy))
        return err_set(&c->err, EINVAL, "policy: give either the name of a policy or the policy itself");
    return try_case(c, &query);
}
