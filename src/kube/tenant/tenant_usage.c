/* tenant_usage.c - past usage for status, including running work; and usage records restored from a status. */
#include <string.h>

#include "base/str.h"
#include "control/tenant/usage.h"
#include "kube/tenant/tenant_internal.h"
#include "wire/doc/api.h"
#include "wire/doc/queue_doc.h"
#include "wire/text/document.h"
#include "wire/text/moment.h"

/* ---- running work ----------------------------------------------------------------------------------------------- */

static void totals_clear(struct tenant_past_usage *p)
{
    for (size_t i = 0; i < p->totals.len; i++)
        mem_free(p->totals.at[i].resource);
    p->totals.len = 0;
}

void tenant_past_clear(struct tenant *e)
{
    totals_clear(&e->past);
    vec_done(&e->past.totals);
    json_decref(e->past.recalled);
    json_decref(e->past.said);
    e->past = (struct tenant_past_usage){0};
}

/* Reads the totals of its quota in force. */
static void totals_read(const struct tenants *t, const struct tenant *e, struct tenant_past_usage *p)
{
    const struct object *o = state_find(t->state, e->kind, e->name);
    CLEANUP(json) json_t *doc = o && tenant_has_totals(o) ? object_doc(o) : NULL;
    size_t i;
    json_t *one;
    totals_clear(p);
    json_array_foreach(json_object_get(json_object_get(doc, "quota"), "totals"), i, one)
    {
        const char *resource = json_string_value(json_object_get(one, "resource"));
        const json_t *length = json_object_get(one, "period");
        int64_t period_ns = 0;
        if (!resource || (length && duration_parse(length, &period_ns, NULL) < 0))
            continue;
        json_int_t hours = json_integer_value(json_object_get(one, "hours"));
        vec_push(&p->totals, ((struct tenant_total){.resource = mem_strdup(resource),
                                                    .limit = hours * quota_hour(resource),
                                                    .since_ns = usage_period_start(p->at_ns, period_ns)}));
    }
}

static void sum_begin(const struct tenants *t, struct tenant *e, int64_t at_ns)
{
    e->past.summing = true;
    e->past.at_ns = at_ns;
    e->past.own_runs = e->past.all_runs = 0;
    totals_read(t, e, &e->past);
}

static int64_t add_capped(int64_t a, int64_t b)
{
    /* cannot overflow: each is at most a quarter of INT64_MAX */
    return a + b > BERTH_AMOUNT_MAX ? BERTH_AMOUNT_MAX : a + b;
}

static void sum_one(struct tenants *t, uint32_t tenant, const struct usage_row *row, bool own)
{
    struct tenant_past_usage *p = &t->at.at[tenant].past;
    if (!p->summing)
        return;
    struct usage_row until = *row;
    until.end_ns = p->at_ns;
    int64_t worth = usage_row_weight(&until, tenant_order(t), p->at_ns);
    p->all_runs = add_capped(p->all_runs, worth);
    p->own_runs = add_capped(p->own_runs, own ? worth : 0);
    for (size_t i = 0; i < p->totals.len; i++) {
        struct tenant_total *total = &p->totals.at[i];
        total->runs = add_capped(total->runs, usage_row_spent(&until, total->resource, total->since_ns));
    }
}

static void run_sum(void *ctx, const struct tenant_run *run)
{
    struct tenants *t = ctx;
    struct usage_row row = tenant_row(t, run, run->begin_ns);
    tenant_payers(t, &row, sum_one);
}

static void sums_end(struct tenants *t)
{
    for (size_t i = 0; i < t->at.len; i++)
        t->at.at[i].past.summing = false;
}

/* ---- usage from status ------------------------------------------------------------------------------------------ */

void tenants_usage_restore(struct tenants *t, enum kind kind, const char *name, const json_t *usage)
{
    uint32_t i = tenant_has_past(kind) && json_is_object(usage) ? tenant_find(t, kind, name) : MAP_NONE;
    if (i == MAP_NONE)
        return;
    json_decref(t->at.at[i].past.said);
    t->at.at[i].past.said = json_deep_copy(usage);
    tenant_mark_usage_restore(t, i);
    if (t->changed)
        t->changed(t->ctx);
}

void tenant_mark_usage_restore(struct tenants *t, uint32_t tenant)
{
    struct tenant_past_usage *p = &t->at.at[tenant].past;
    json_decref(p->recalled);
    p->recalled = json_incref(p->said);
    t->recalls = t->recalls || p->recalled;
}

static int64_t moment_of(const json_t *doc, const char *key)
{
    int64_t ns = 0;
    const json_t *text = json_object_get(doc, key);
    return text && timestamp_parse(text, &ns, NULL) == 0 ? ns : 0;
}

static int64_t number_of(const json_t *doc, const char *key)
{
    json_int_t n = json_integer_value(json_object_get(doc, key));
    return n < 0 ? 0 : n > BERTH_AMOUNT_MAX ? BERTH_AMOUNT_MAX : n;
}

static int64_t less(int64_t a, int64_t b)
{
    return a > b ? a - b : 0;
}

static const json_t *total_find(const json_t *totals, const char *resource)
{
    size_t i;
    const json_t *one;
    json_array_foreach(totals, i, one)
    {
        const char *text = json_string_value(json_object_get(one, "resource"));
        if (text && strcmp(text, resource) == 0)
            return one;
    }
    return NULL;
}

static json_t *spent_make(const struct tenant_past_usage *p)
{
    json_t *all = json_object();
    for (size_t i = 0; i < p->totals.len; i++) {
        const struct tenant_total *total = &p->totals.at[i];
        const json_t *was = total_find(json_object_get(p->recalled, "totals"), total->resource);
        char text[TIMESTAMP_MAX];
        if (!was || moment_of(was, "since") != total->since_ns)
            continue;
        json_t *one = json_pack("{s:I}", "spent", (json_int_t)less(number_of(was, "spent"), total->runs));
        if (total->since_ns)
            (void)json_object_set_new(one, "since", json_string(timestamp_text(total->since_ns, text)));
        (void)json_object_set_new(all, total->resource, one);
    }
    return all;
}

/* Restores usage records from the status, which includes running work up to its time: that part is subtracted. */
static void books_make(struct tenants *t, struct tenant *e)
{
    struct tenant_past_usage *p = &e->past;
    struct change *c = tenant_bookings(t);
    struct tenant_keys k = tenant_keys(e->kind, e->name);
    struct berth_fact fact = {.kind = BERTH_FACT_USAGE,
                              .key = k.quota,
                              .value = less(number_of(p->recalled, "own"), p->own_runs),
                              .at_ns = p->at_ns};
    p->all = less(number_of(p->recalled, "all"), p->all_runs);
    p->all_at_ns = p->at_ns;
    if (fact.value || state_find(t->state, KIND_FACT, k.use))
        change_put(c, KIND_FACT, k.use, fact_doc_make(&fact));
    json_t *spent = spent_make(p);
    if (json_object_size(spent) || state_find(t->state, KIND_SPENT, k.quota))
        change_put(c, KIND_SPENT, k.quota, spent);
    else
        json_decref(spent);
    json_decref(p->recalled);
    p->recalled = NULL;
}

void tenant_restore_usage(struct tenants *t, tenant_runs *runs, void *of)
{
    size_t taken = 0;
    for (size_t i = 0; i < t->at.len; i++) {
        struct tenant *e = &t->at.at[i];
        if (!e->name || !e->past.recalled || !state_find(t->state, e->kind, e->name))
            continue;
        sum_begin(t, e, moment_of(e->past.recalled, "at"));
        taken++;
    }
    if (taken == 0)
        return;
    runs(of, run_sum, t);
    t->recalls = false;
    for (size_t i = 0; i < t->at.len; i++) {
        if (t->at.at[i].past.summing)
            books_make(t, &t->at.at[i]);
        t->recalls = t->recalls || t->at.at[i].past.recalled;
    }
    sums_end(t);
}

/* ---- usage for status ------------------------------------------------------------------------------------------- */

void tenants_usage_sum(struct tenants *t, int64_t now_ns, tenant_runs *runs, void *of)
{
    if (t->recalls)
        tenant_restore_usage(t, runs, of);
    tenant_bookings_apply(t);
    for (size_t i = 0; i < t->at.len; i++)
        if (t->at.at[i].name && tenant_has_past(t->at.at[i].kind))
            sum_begin(t, &t->at.at[i], now_ns);
    runs(of, run_sum, t);
    sums_end(t);
}

uint64_t tenants_usage_version(const struct tenants *t, enum kind kind, const char *name)
{
    uint32_t i = tenant_find(t, kind, name);
    return i == MAP_NONE ? 0 : t->at.at[i].past.version;
}

/* Appends what was spent of a total, if anything, as JSON and as text for display. */
static void total_show(const struct tenants *t, const char *quota, const struct tenant_total *total, json_t *totals,
                       struct str *text)
{
    char buf[TIMESTAMP_MAX];
    int64_t spent = 0, since_ns = 0;
    if (!usage_spent(t->state, quota, total->resource, &spent, &since_ns) || since_ns != total->since_ns)
        spent = 0;
    spent = add_capped(spent, total->runs);
    if (!spent)
        return;
    json_t *one = json_pack("{s:s, s:I}", "resource", total->resource, "spent", (json_int_t)spent);
    if (total->since_ns)
        (void)json_object_set_new(one, "since", json_string(timestamp_text(total->since_ns, buf)));
    double hour = (double)quota_hour(total->resource);
    (void)json_array_append_new(totals, one);
    str_addf(text, "%s%.1f/%.0f %s", text->len ? ", " : "", (double)spent / hour, (double)total->limit / hour,
             total->resource);
}

static void use_read(const struct tenants *t, const char *id, int64_t *ret_value, int64_t *ret_at_ns)
{
    const struct object *o = state_find(t->state, KIND_FACT, id);
    CLEANUP(json) json_t *doc = o ? object_doc(o) : NULL;
    const json_t *at = json_object_get(doc, "at");
    *ret_value = json_integer_value(json_object_get(doc, "value"));
    *ret_at_ns = 0;
    if (at)
        (void)timestamp_parse(at, ret_at_ns, NULL);
}

json_t *tenants_usage(struct tenants *t, enum kind kind, const char *name)
{
    uint32_t i = tenant_has_past(kind) ? tenant_find(t, kind, name) : MAP_NONE;
    if (i == MAP_NONE || t->at.at[i].past.recalled || !state_find(t->state, kind, name))
        return NULL;
    struct tenant_past_usage *p = &t->at.at[i].past;
    struct tenant_keys k = tenant_keys(kind, name);
    int64_t own, own_at_ns, half_ns = tenant_order(t)->half_life_ns;
    char at[TIMESTAMP_MAX], units[32];
    CLEANUP(str) struct str text = {0};
    json_t *totals = json_array();
    for (size_t n = 0; n < p->totals.len; n++)
        total_show(t, k.quota, &p->totals.at[n], totals, &text);
    use_read(t, k.use, &own, &own_at_ns);
    own = add_capped(berth_usage_decay(own, own_at_ns, p->at_ns, half_ns), p->own_runs);
    int64_t all = add_capped(berth_usage_decay(p->all, p->all_at_ns, p->at_ns, half_ns), p->all_runs);
    (void)snprintf(units, sizeof units, "%.1f", (double)all / 3600e3);
    json_decref(p->said);
    p->said = json_pack("{s:s, s:s, s:I, s:I, s:o, s:s}", "at", timestamp_text(p->at_ns, at), "units", units, "own",
                        (json_int_t)own, "all", (json_int_t)all, "totals", totals, "spent", str_text(&text));
    return json_incref(p->said);
}
