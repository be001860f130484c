#include "control/explain/queue_view.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "control/api/page.h"
#include "control/explain/holders.h"
#include "control/system/settings_table.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"
#include "wire/text/quantity.h"

enum { ROWS_MAX = 10000, ROWS_DEFAULT = 100 };
#define SECOND_NS INT64_C(1000000000)

const char *entitlement_name(enum berth_entitlement e)
{
    static const char *const names[] = {
        [BERTH_SPARE] = "spare", [BERTH_BORROWED] = "borrowed", [BERTH_GUARANTEED] = "by-right"};
    return names[e];
}

/* ---- parts ------------------------------------------------------------------------------------------------------ */

static void time_set(json_t *to, const char *key, int64_t ns)
{
    char text[TIMESTAMP_MAX];
    if (ns > 0 && ns != BERTH_NEVER_NS)
        (void)json_object_set_new(to, key, json_string(timestamp_text(ns, text)));
}

void queue_position_show(const struct berth_queue_position *s, bool guess, json_t *to)
{
    (void)json_object_set_new(to, "position", json_integer(s->position));
    (void)json_object_set_new(to, "tier", json_string(entitlement_name(s->entitlement)));
    (void)json_object_set_new(to, "priority", json_integer(s->priority));
    (void)json_object_set_new(to, "queue", json_string(s->queue && *s->queue ? s->queue : "default"));
    (void)json_object_set_new(to, "ranking", json_string(s->ranking));
    (void)json_object_set_new(to, "key", json_integer(s->key));
    if (s->waited)
        (void)json_object_set_new(to, "overdue", json_true());
    time_set(to, "start", s->start_ns);
    time_set(to, "end", s->start_ns ? s->end_ns : 0);
    if (s->start_ns && guess)
        (void)json_object_set_new(to, "start_guess", json_true());
    if (s->start_ns && s->node && *s->node) {
        (void)json_object_set_new(to, "node", json_string(s->node));
        (void)json_object_set_new(to, "nodes", json_integer(s->nodes));
    }
}

json_t *factors_json(const struct berth_queue_position *s)
{
    json_t *list = json_array();
    const char *text, *name;
    for (size_t i = 0; i < s->factors_len && (name = berth_factor_at(i, &text)); i++) {
        double value = (double)s->factors[i] / 1000000;
        (void)json_array_append_new(list,
                                    json_pack("{s:s, s:s, s:f, s:i, s:f}", "name", name, "text", text, "value", value,
                                              "weight", (int)s->weights[i], "product", value * s->weights[i]));
    }
    return list;
}

json_t *terms_json(const struct berth_queue_position *s)
{
    json_t *list = json_array();
    for (size_t i = 0; i < s->terms_len; i++) {
        const struct berth_rank_term *t = &s->terms[i];
        (void)json_array_append_new(list,
                                    json_pack("{s:s, s:s, s:f, s:f, s:f}", "name", t->name, "text", t->sentence,
                                              "value", t->value, "weight", t->weight, "product", t->value * t->weight));
    }
    return list;
}

json_t *reasons_json(const struct berth_pending *p)
{
    json_t *list = json_array();
    for (size_t i = 0; i < p->reasons_len; i++) {
        const struct berth_reason *r = &p->reasons[i];
        (void)json_array_append_new(list, json_pack("{s:s, s:s, s:I, s:I, s:s}", "reason", r->reason, "what", r->what,
                                                    "nodes", (json_int_t)r->nodes, "only", (json_int_t)r->only, "text",
                                                    r->text));
    }
    return list;
}

json_t *requests_json(const struct object *work)
{
    struct arena arena;
    struct work_doc d;
    char text[QUANTITY_TEXT_MAX];
    json_t *asked = json_pack("{s:I}", "pods", (json_int_t)work->work->replicas);
    CLEANUP(json) json_t *doc = object_doc(work);
    arena_init(&arena);
    if (work_doc_read(doc, &arena, &d, NULL) == 0) {
        const struct berth_shape *shape = &d.workload.shape;
        for (size_t i = 0; i < shape->requests_len; i++)
            (void)json_object_set_new(
                asked, shape->requests[i].resource,
                json_string(quantity_print(shape->requests[i].resource, shape->requests[i].amount, text)));
        if (shape->gpu.count && (shape->gpu.milli == 0 || shape->gpu.milli == BERTH_GPU_MILLI))
            (void)json_object_set_new(asked, "gpu", json_integer(shape->gpu.count));
        else if (shape->gpu.count)
            (void)json_object_set_new(asked, "gpu", json_real((double)shape->gpu.milli / BERTH_GPU_MILLI));
    }
    arena_done(&arena);
    return asked;
}

json_t *forecast_label(const struct forecast_run *run)
{
    char at[TIMESTAMP_MAX];
    return json_pack("{s:I, s:s}", "revision", (json_int_t)run->revision, "at", timestamp_text(run->now_ns, at));
}

/* ---- rows ------------------------------------------------------------------------------------------------------- */

static int64_t waited_s(const struct request *c, const struct object *work)
{
    int64_t waited_ns = c->now_ns - work->work->created_ns;
    return waited_ns > 0 ? waited_ns / SECOND_NS : 0;
}

/* Adds the details that only permitted callers see: name, requests, reasons. */
static void row_fill(const struct request *c, const struct forecast_plan *p, size_t i, const struct object *work,
                     json_t *row)
{
    struct berth_pending pending = berth_plan_pending(p->plan, i);
    (void)json_object_set_new(row, "kind", json_string(kinds[work->kind].name));
    (void)json_object_set_new(row, "id", json_string(work->id));
    if (*work->work->name)
        (void)json_object_set_new(row, "name", json_string(work->work->name));
    (void)json_object_set_new(row, "asked", requests_json(work));
    (void)json_object_set_new(row, "pending", json_integer((json_int_t)pending.ordinals_len));
    time_set(row, "created", work->work->created_ns);
    (void)json_object_set_new(row, "waited_s", json_integer(waited_s(c, work)));
    if (pending.reasons_len) {
        (void)json_object_set_new(row, "reason", json_string(pending.reasons[0].reason));
        (void)json_object_set_new(row, "what", json_string(pending.reasons[0].what));
        (void)json_object_set_new(row, "text", json_string(pending.reasons[0].text));
    }
}

json_t *queue_row(const struct request *c, const struct forecast_plan *p, size_t i)
{
    const struct object *work = state_find_work(c->state, berth_plan_pending_name(p->plan, i));
    if (!work)
        return NULL;
    bool guess;
    struct berth_queue_position s = forecast_queue_position(p, i, &guess);
    json_t *row = json_object();
    queue_position_show(&s, guess, row);
    if (holder_show(c, work->owner, work->group, row)) {
        row_fill(c, p, i, work, row);
    } else {
        static const char *const hidden[] = {"key", "node", "nodes", "priority"};
        for (size_t k = 0; k < sizeof hidden / sizeof *hidden; k++)
            (void)json_object_del(row, hidden[k]);
    }
    return row;
}

void row_show_factors(const struct forecast_plan *p, size_t i, json_t *row)
{
    if (!json_object_get(row, "id"))
        return;
    struct berth_queue_position s = berth_plan_queue_position(p->plan, i);
    (void)json_object_set_new(row, "factors", factors_json(&s));
    (void)json_object_set_new(row, "terms", terms_json(&s));
}

static bool matches_filter(const json_t *row, const char *key, const char *value)
{
    const char *is = json_string_value(json_object_get(row, key));
    return !value || (is && strcmp(is, value) == 0);
}

/* Filters workloads before their rows are made, because most may belong to other users. */
static bool matches_filters(const struct request *c, const char *id, const char *queue, const char *user,
                            bool users_shown)
{
    const struct object *work = queue || user ? state_find_work(c->state, id) : NULL;
    if (!work)
        return !queue && !user;
    const char *in = *work->work->queue ? work->work->queue : "default";
    return (!queue || strcmp(in, queue) == 0) &&
           (!user || (strcmp(work->owner, user) == 0 &&
                      (users_shown || permit(&c->caller, PERMIT_READ, work->owner, work->group))));
}

static int seconds_compare(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Statistics over all waiting workloads that the caller may see. */
static json_t *waits_json(struct request *c, const struct forecast_plan *p, size_t len)
{
    int64_t *waits = arena_column(&c->arena, len + 1, sizeof *waits);
    size_t seen = 0;
    for (size_t i = 0; i < len; i++) {
        const struct object *work = state_find_work(c->state, berth_plan_pending_name(p->plan, i));
        if (work && permit(&c->caller, PERMIT_READ, work->owner, work->group))
            waits[seen++] = waited_s(c, work);
    }
    qsort(waits, seen, sizeof *waits, seconds_compare);
    return json_pack("{s:I, s:I, s:I}", "count", (json_int_t)seen, "median_s", (json_int_t)(seen ? waits[seen / 2] : 0),
                     "longest_s", (json_int_t)(seen ? waits[seen - 1] : 0));
}

int queue_run(struct request *c)
{
    const struct forecast_run *run = NULL;
    uint64_t limit, first = 0;
    int rc = request_query_number(c, "limit", 1, ROWS_MAX, ROWS_DEFAULT, &limit);
    if (rc == 0)
        rc = request_query_number(c, "after", 0, INT64_MAX, 0, &first);
    if (rc == 0)
        rc = forecast_request(c, &(struct forecast_spec){0}, &run);
    if (rc < 0 || !run)
        return rc;
    const struct forecast_plan *p = &run->plans[0];
    size_t len = berth_plan_pendings(p->plan);
    struct list_page page = {.items = json_array()};
    const char *queue = request_query(c, "queue"), *user = request_query(c, "user"),
               *factors = request_query(c, "factors");
    bool users_shown = strcmp(system_setting_text(c->state, SETTING_HOLDER_SHOWN, &c->arena), "user") == 0;
    size_t i = first < len ? (size_t)first : len;
    for (; i < len && json_array_size(page.items) < limit; i++) {
        if (!matches_filters(c, berth_plan_pending_name(p->plan, i), queue, user, users_shown))
            continue;
        json_t *row = queue_row(c, p, i);
        bool shown = row && matches_filter(row, "queue", queue) && matches_filter(row, "owner", user);
        if (shown && factors && strcmp(factors, "true") == 0)
            row_show_factors(p, i, row);
        if (!shown)
            json_decref(row);
        else if (!page_add(&page, row, 0))
            break;
    }
    c->answer.body =
        json_pack("{s:o, s:I, s:o}", "items", page.items, "total", (json_int_t)len, "forecast", forecast_label(run));
    if (i < len) /* a position in the order of the plan, as text like every `continue` */
        (void)json_object_set_new(c->answer.body, "continue", json_string(arena_fmt(&c->arena, "%zu", i)));
    const char *waits = request_query(c, "waits");
    if (waits && strcmp(waits, "true") == 0)
        (void)json_object_set_new(c->answer.body, "waits", waits_json(c, p, len));
    return 0;
}
