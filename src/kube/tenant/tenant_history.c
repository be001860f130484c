/* tenant_history.c - past usage of users, groups and queues: usage records as in the daemon, of work that ended here or
 * is taken over from status.
 */
#include <string.h>

#include "control/state/sync.h"
#include "control/tenant/usage.h"
#include "kube/tenant/tenant_internal.h"
#include "wire/doc/queue_doc.h"
#include "wire/text/document.h"

enum { QUEUES_MAX = 16 }; /* depth of the queue tree, which may contain a loop for a moment */

const struct berth_order *tenant_order(const struct tenants *t)
{
    return &t->costs.policy.order;
}

void tenant_past_init(struct tenants *t)
{
    plan_policy_read(t->state, &t->costs); /* charges never change */
}

static void books_close(struct tenants *t)
{
    if (!t->books_open)
        return;
    change_done(&t->booking);
    arena_done(&t->booking_arena);
    t->books_open = false;
}

void tenant_past_done(struct tenants *t)
{
    books_close(t);
    plan_policy_done(&t->costs);
    vec_done(&t->past_unapplied);
}

bool tenant_has_past(enum kind kind)
{
    return kind == KIND_USER || kind == KIND_GROUP || kind == KIND_QUEUE;
}

/* ---- usage records in the state --------------------------------------------------------------------------------- */

struct tenant_keys tenant_keys(enum kind kind, const char *name)
{
    struct tenant_keys k;
    (void)snprintf(k.quota, sizeof k.quota, "%s/%s", kinds[kind].name, name);
    (void)snprintf(k.use, sizeof k.use, "usage/%.*s", OBJECT_KEY_MAX - 8, k.quota);
    return k;
}

json_t *tenant_past_doc(const struct tenants *t, enum kind kind, const char *name)
{
    if (!tenant_has_past(kind))
        return NULL;
    struct tenant_keys k = tenant_keys(kind, name);
    const struct object *use = state_find(t->state, KIND_FACT, k.use);
    const struct object *spent = state_find(t->state, KIND_SPENT, k.quota);
    if (!use && !spent)
        return NULL;
    json_t *doc = json_object();
    if (use)
        (void)json_object_set_new(doc, "use", object_doc(use));
    if (spent)
        (void)json_object_set_new(doc, "spent", object_doc(spent));
    return doc;
}

bool tenant_has_totals(const struct object *o)
{
    return memmem(o->doc.at, o->doc.len, "\"totals\"", 8) != NULL;
}

/* Notes that the object's usage must be put into the cluster. No plan is requested: the work that ended has requested
 * one. */
static void past_mark_changed(struct tenants *t, uint32_t i)
{
    t->at.at[i].past.version++;
    if (!t->at.at[i].past.unapplied)
        vec_push(&t->past_unapplied, i);
    t->at.at[i].past.unapplied = true;
}

static void doc_set(struct tenants *t, enum kind kind, const char *id, const json_t *doc)
{
    struct berth_err err = {0};
    if (json_is_object(doc))
        (void)tenant_state(t, kind, id, doc, &err);
    else if (state_find(t->state, kind, id))
        (void)tenant_state(t, kind, id, NULL, &err);
}

void tenant_past_set(struct tenants *t, enum kind kind, const char *name, const json_t *doc)
{
    uint32_t i = tenant_has_past(kind) ? tenant_find(t, kind, name) : MAP_NONE;
    if (i == MAP_NONE)
        return;
    struct tenant_keys k = tenant_keys(kind, name);
    doc_set(t, KIND_FACT, k.use, json_object_get(doc, "use"));
    doc_set(t, KIND_SPENT, k.quota, json_object_get(doc, "spent"));
    past_mark_changed(t, i);
}

void tenant_past_drop(struct tenants *t, struct tenant *e)
{
    if (!tenant_has_past(e->kind))
        return;
    struct tenant_keys k = tenant_keys(e->kind, e->name);
    tenant_bookings_apply(t); /* a later object of this name must not inherit them */
    doc_set(t, KIND_FACT, k.use, NULL);
    doc_set(t, KIND_SPENT, k.quota, NULL);
}

/* ---- ended work ------------------------------------------------------------------------------------------------- */

struct change *tenant_bookings(struct tenants *t)
{
    if (!t->books_open) {
        arena_init(&t->booking_arena);
        change_init(&t->booking, t->state, &t->booking_arena);
    }
    t->books_open = true;
    return &t->booking;
}

struct usage_row tenant_row(const struct tenants *t, const struct tenant_run *run, int64_t end_ns)
{
    struct usage_row row = {.owner = run->user,
                            .group = run->group,
                            .queue = run->queue,
                            .start_ns = run->begin_ns,
                            .end_ns = end_ns > run->begin_ns ? end_ns : run->begin_ns,
                            .tasks = 1};
    const struct object *user = *run->user ? state_find(t->state, KIND_USER, run->user) : NULL;
    if (user && *user->user->group)
        row.group = user->user->group;
    for (size_t i = 0; i < run->amounts_len && row.amounts_len < USAGE_RESOURCES_MAX - 1; i++)
        if (run->amounts[i].amount > 0 &&
            strcmp(run->amounts[i].resource, "pods") != 0) /* amounts of 0 must not take the limited slots */
            row.amounts[row.amounts_len++] = run->amounts[i];
    row.amounts[row.amounts_len++] = (struct berth_amount){"pods", 1};
    return row;
}

static void payer_visit(struct tenants *t, enum kind kind, const char *name, const struct usage_row *row, bool own,
                        tenant_payer *visit)
{
    uint32_t i = *name && state_find(t->state, kind, name) ? tenant_find(t, kind, name) : MAP_NONE;
    if (i != MAP_NONE)
        visit(t, i, row, own);
}

void tenant_payers(struct tenants *t, const struct usage_row *row, tenant_payer *visit)
{
    const char *queue = row->queue;
    payer_visit(t, KIND_USER, row->owner, row, true, visit);
    payer_visit(t, KIND_GROUP, row->group, row, !*row->owner, visit);
    for (int depth = 0; queue && *queue && depth < QUEUES_MAX; depth++) {
        const struct object *o = state_find(t->state, KIND_QUEUE, queue);
        payer_visit(t, KIND_QUEUE, queue, row, depth == 0 && !*row->owner && !*row->group, visit);
        queue = o ? o->queue->parent : NULL;
    }
}

static void book_one(struct tenants *t, uint32_t tenant, const struct usage_row *row, bool own)
{
    struct tenant *e = &t->at.at[tenant];
    struct tenant_past_usage *p = &e->past;
    struct change *c = tenant_bookings(t);
    if (own) {
        struct tenant_keys k = tenant_keys(e->kind, e->name);
        usage_book_use(c, k.quota, row, tenant_order(t), row->end_ns);
    }
    int64_t all = berth_usage_decay(p->all, p->all_at_ns, row->end_ns, tenant_order(t)->half_life_ns) +
                  usage_row_weight(row, tenant_order(t), row->end_ns);
    p->all = all < BERTH_AMOUNT_MAX ? all : BERTH_AMOUNT_MAX;
    p->all_at_ns = row->end_ns;
    p->version++;
}

void tenants_record_usage(struct tenants *t, int64_t (*clock)(void *ctx), void *ctx)
{
    t->clock = clock;
    t->clock_ctx = ctx;
}

/* While another process leads, or none: the status written last includes this work as running, so its usage is taken
 * over again without it. */
static void restore_instead_of_booking(struct tenants *t, uint32_t tenant, const struct usage_row *row, bool own)
{
    (void)row;
    (void)own;
    tenant_mark_usage_restore(t, tenant);
}

void tenants_work_ended(struct tenants *t, const struct tenant_run *run)
{
    int64_t now_ns = t->clock ? t->clock(t->clock_ctx) : 0;
    struct usage_row row = tenant_row(t, run, now_ns);
    if (now_ns == 0) {
        tenant_payers(t, &row, restore_instead_of_booking);
        return;
    }
    tenant_payers(t, &row, book_one);
    usage_book_totals(tenant_bookings(t), &row, row.end_ns);
}

/* ---- applying bookings ------------------------------------------------------------------------------------------ */

/* Returns the tenant that a document belongs to. */
static uint32_t tenant_of(const struct tenants *t, const struct change_item *item)
{
    static const char use[] = "usage/";
    char word[OBJECT_KEY_MAX];
    const char *id = item->kind == KIND_FACT ? item->id + sizeof use - 1 : item->id;
    size_t len = strcspn(id, "/");
    (void)snprintf(word, sizeof word, "%.*s", (int)len, id);
    enum kind kind = kind_find(word);
    return kind != KINDS && id[len] ? tenant_find(t, kind, id + len + 1) : MAP_NONE;
}

void tenant_bookings_apply(struct tenants *t)
{
    struct berth_err err = {0};
    VEC(uint32_t) booked = {0};
    for (size_t i = 0; t->books_open && i < t->booking.items.len; i++) {
        const struct change_item *item = &t->booking.items.at[i];
        uint32_t tenant = item->write ? tenant_of(t, item) : MAP_NONE;
        if (tenant == MAP_NONE || tenant_state(t, item->kind, item->id, item->doc, &err) < 0)
            continue;
        if (!t->at.at[tenant].past.booked)
            vec_push(&booked, tenant);
        t->at.at[tenant].past.booked = true;
        past_mark_changed(t, tenant);
    }
    books_close(t);
    for (size_t i = 0; i < booked.len; i++) {
        struct tenant *e = &t->at.at[booked.at[i]];
        CLEANUP(json) json_t *doc = tenant_past_doc(t, e->kind, e->name);
        e->past.booked = false;
        tenant_report_input(t, TENANT_USAGE, e->kind, e->name, doc);
    }
    vec_done(&booked);
}

static void past_put_to_cluster(struct tenants *t, struct berth_cluster *cluster, const struct tenant *e)
{
    struct tenant_keys k = tenant_keys(e->kind, e->name);
    const struct object *use = state_find(t->state, KIND_FACT, k.use), *of = state_find(t->state, e->kind, e->name);
    if (use)
        (void)object_sync(t->state, cluster, use, NULL);
    if (of && tenant_has_totals(of))
        (void)object_sync(t->state, cluster, of, NULL);
}

void tenant_past_apply_all(struct tenants *t, struct berth_cluster *cluster)
{
    size_t len;
    const struct object *const *uses = state_list(t->state, KIND_FACT, &len);
    for (size_t i = 0; i < len; i++)
        (void)object_sync(t->state, cluster, uses[i], NULL);
}

bool tenants_apply_usage(struct tenants *t, struct berth_cluster *cluster, tenant_runs *runs, void *of)
{
    if (t->recalls)
        tenant_restore_usage(t, runs, of);
    tenant_bookings_apply(t);
    bool told = false;
    for (size_t i = 0; i < t->past_unapplied.len; i++) {
        struct tenant *e = &t->at.at[t->past_unapplied.at[i]];
        if (e->name && e->past.unapplied)
            past_put_to_cluster(t, cluster, e);
        told = told || (e->name && e->past.unapplied);
        e->past.unapplied = false;
    }
    t->past_unapplied.len = 0;
    return told;
}
