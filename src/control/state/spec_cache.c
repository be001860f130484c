/* spec_cache.c - caches the parsed documents that every plan, and every update of a workload in the cluster, reads. */
#include <assert.h>
#include <errno.h>

#include "base/mem.h"
#include "control/state/spec_cache.h"
#include "control/state/state_parts.h"
#include "formula/formula.h"

struct cached_spec {
    unsigned refs;
    struct arena arena;
    json_t *json; /* the texts of the parsed document point into it */
    union {
        struct group_doc group;
        struct queue_doc queue;
        struct policy_doc policy;
        struct window_doc window;
        struct domain_doc domain;
        struct optask_doc optask;
    };
    struct formula *formula; /* of a policy */
    bool tried, taken, failed;
    struct berth_err err; /* why the formula does not compile */
};

struct cached_spec *cached_spec_ref(const struct object *o)
{
    struct cached_spec *k = ((const struct state_entry *)o)->cached_spec;
    k->refs++;
    return k;
}

void cached_spec_unref(struct cached_spec *k)
{
    if (!k || --k->refs > 0)
        return;
    json_decref(k->json);
    formula_free(k->formula);
    arena_done(&k->arena);
    mem_free(k);
}

void cached_spec_drop(struct state_entry *e)
{
    cached_spec_unref(e->cached_spec);
    e->cached_spec = NULL;
}

static int cached_spec_read(struct cached_spec *k, struct object *o)
{
    switch (o->kind) {
    case KIND_GROUP: o->group_doc = &k->group; return group_doc_read(k->json, &k->arena, &k->group, NULL);
    case KIND_QUEUE: o->queue = &k->queue; return queue_doc_read(k->json, &k->arena, &k->queue, NULL);
    case KIND_POLICY: o->policy = &k->policy; return policy_doc_read(k->json, &k->arena, &k->policy, NULL);
    case KIND_WINDOW: o->window = &k->window; return window_doc_read(k->json, &k->arena, &k->window, NULL);
    case KIND_DOMAIN: o->domain = &k->domain; return domain_doc_read(k->json, &k->arena, &k->domain, NULL);
    case KIND_OPTASK: o->optask = &k->optask; return optask_doc_read(k->json, &k->arena, &k->optask, NULL);
    default: return -EINVAL;
    }
}

void cached_spec_set(struct state_entry *e, const json_t *doc)
{
    cached_spec_drop(e);
    struct cached_spec *k = mem_zalloc(sizeof *k);
    k->refs = 1;
    arena_init(&k->arena);
    k->json = json_incref((json_t *)doc);
    int rc = cached_spec_read(k, &e->object);
    assert(rc == 0); /* doc_parse has parsed the document before */
    (void)rc;
    e->cached_spec = k;
}

/* ---- formulas --------------------------------------------------------------------------------------------------- */

struct formula *cached_formula_acquire(struct cached_spec *k, struct berth_err *err)
{
    if (k->taken) {
        (void)err_set(err, EBUSY, "the formula is in use");
        return NULL;
    }
    if (!k->tried && formula_new(k->policy.formula, k->policy.meta.id, &k->formula, &k->err) < 0)
        k->formula = NULL;
    k->tried = true;
    if (!k->formula)
        *err = k->err;
    k->taken = k->formula;
    return k->formula;
}

void cached_formula_release(struct cached_spec *k)
{
    k->taken = false;
}

bool cached_formula_first_failure(struct cached_spec *k)
{
    bool first = !k->failed;
    k->failed = true;
    return first;
}
