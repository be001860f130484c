#include "control/state/state.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/plant.h"
#include "base/str.h"
#include "control/job/predict.h"
#include "control/sched/plan_policy.h"
#include "control/state/state_parts.h"
#include "control/state/sync.h"
#include "control/tenant/cap.h"
#include "core/queue/quota_ledger.h"

/* ---- lookup ----------------------------------------------------------------------------------------------------- */

struct entry_key {
    enum kind kind;
    const char *id;
};

static uint64_t key_hash(enum kind kind, const char *id)
{
    return hash_bytes(id, strlen(id), kind + 1u);
}

static bool same_entry(const void *ctx, uint32_t slot, const void *key)
{
    const struct state *s = ctx;
    const struct entry_key *k = key;
    const struct object *o = &s->slots.at[slot]->object;
    return o->kind == k->kind && strcmp(o->id, k->id) == 0;
}

struct state_entry *state_entry(const struct state *s, enum kind kind, const char *id)
{
    struct entry_key key = {kind, id};
    uint32_t slot = map_find(&s->map, key_hash(kind, id), same_entry, s, &key);
    return slot == MAP_NONE ? NULL : s->slots.at[slot];
}

const struct object *state_find(const struct state *s, enum kind kind, const char *id)
{
    const struct state_entry *e = state_entry(s, kind, id);
    return e ? &e->object : NULL;
}

const struct object *state_find_work(const struct state *s, const char *id)
{
    static const enum kind order[] = {KIND_JOB, KIND_APP, KIND_VM};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        const struct object *o = state_find(s, order[i], id);
        if (o)
            return o;
    }
    return NULL;
}

/* ---- tables ----------------------------------------------------------------------------------------------------- */

/* Numbers have no leading zeros, so the shorter id is the smaller number. */
static int id_compare(enum kind kind, const char *a, const char *b)
{
    if (kinds[kind].grammar == ID_NUMBER) {
        size_t a_len = strlen(a), b_len = strlen(b);
        if (a_len != b_len)
            return a_len < b_len ? -1 : 1;
    }
    return strcmp(a, b);
}

static int object_compare(const void *a, const void *b)
{
    const struct object *x = *(struct object *const *)a, *y = *(struct object *const *)b;
    return id_compare(x->kind, x->id, y->id);
}

static void table_sort(struct object_table *t)
{
    if (t->unsorted && t->len)
        qsort(t->at, t->len, sizeof(struct object *), object_compare);
    t->unsorted = false;
}

/* Returns the position of the id, or the position where it would be inserted. */
static size_t table_position(const struct object_table *t, const struct object *o)
{
    size_t low = 0, high = t->len;
    if (high && object_compare(&t->at[high - 1], &o) < 0)
        return high; /* a new highest number */
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (object_compare(&t->at[mid], &o) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static void table_add(struct object_table *t, struct object *o, bool loading)
{
    if (t->skipped && t->len == t->cap) {
        size_t skipped = t->skipped;
        t->at -= skipped;
        t->cap += skipped;
        t->skipped = 0;
        memmove(t->at, t->at + skipped, t->len * sizeof(struct object *));
        if (skipped < t->len / 4) /* reserves room so that the next shift is far away */
            vec_reserve(t, t->cap + 1);
    }
    vec_reserve(t, t->len + 1);
    size_t at = loading ? t->len : table_position(t, o);
    memmove(t->at + at + 1, t->at + at, (t->len - at) * sizeof(struct object *));
    t->at[at] = o;
    t->len++;
    t->unsorted = t->unsorted || loading;
}

static void table_drop(struct object_table *t, const struct object *o)
{
    table_sort(t);
    size_t at = table_position(t, o);
    assert(at < t->len && t->at[at] == o);
    t->len--;
    if (at == 0) { /* the lowest number */
        t->at++;
        t->cap--;
        t->skipped++;
        return;
    }
    memmove(t->at + at, t->at + at + 1, (t->len - at) * sizeof(struct object *));
}

const struct object *const *state_list(const struct state *s, enum kind kind, size_t *ret_len)
{
    const struct object_table *t = &s->tables[kind];
    assert(!t->unsorted); /* sorted by state_load */
    *ret_len = t->len;
    return (const struct object *const *)t->at;
}

/* ---- entries ---------------------------------------------------------------------------------------------------- */

/* Hashes one object with its key and document. The hash of the state is the sum over all objects, independent of their
 * order. */
static uint64_t object_hash(const struct object *o)
{
    if (!kind_journalled(o->kind))
        return 0;
    return hash_pair(hash_pair(key_hash(o->kind, o->id), o->revision), hash_bytes(o->doc.at, o->doc.len, 0));
}

static struct state_entry *entry_add(struct state *s, enum kind kind, const char *id)
{
    struct state_entry *e = mem_zalloc(sizeof *e);
    e->object = (struct object){.kind = kind, .id = mem_strdup(id), .owner = "", .group = ""};
    if (s->free_slots.len)
        e->slot = s->free_slots.at[--s->free_slots.len];
    else {
        e->slot = (uint32_t)s->slots.len;
        vec_push(&s->slots, NULL);
    }
    s->slots.at[e->slot] = e;
    map_add(&s->map, key_hash(kind, id), e->slot);
    table_add(&s->tables[kind], &e->object, s->loading);
    return e;
}

static void entry_free(struct state_entry *e)
{
    view_drop(e);
    mem_free((void *)e->object.doc.at);
    mem_free((char *)e->object.id);
    mem_free(e);
}

static void entry_drop(struct state *s, struct state_entry *e)
{
    map_drop(&s->map, key_hash(e->object.kind, e->object.id), e->slot);
    table_drop(&s->tables[e->object.kind], &e->object);
    s->slots.at[e->slot] = NULL;
    vec_push(&s->free_slots, e->slot);
    entry_free(e);
}

json_t *object_doc(const struct object *o)
{
    json_t *doc = json_loadb(o->doc.at, o->doc.len, 0, NULL);
    assert(doc); /* the document was parsed when it arrived */
    return doc;
}

uint64_t state_last_number(const struct state *s, enum kind kind)
{
    return s->last_number[kind];
}

uint64_t state_next_number(struct state *s, enum kind kind)
{
    return ++s->last_number[kind];
}

static void number_track(struct state *s, enum kind kind, uint64_t n)
{
    if (n > s->last_number[kind])
        s->last_number[kind] = n;
}

/* Tracks the highest number: numbers in use, and the last assigned one from the counter. */
static void numbers_track(struct state *s, const struct object *o, const json_t *doc)
{
    int64_t n;
    if (kinds[o->kind].grammar == ID_NUMBER && str_parse_i64(o->id, &n) && n > 0)
        number_track(s, o->kind, (uint64_t)n);
    if (o->kind == KIND_COUNTER && !PLANTED(IDS_AGAIN))
        for (unsigned k = 0; k < KINDS; k++)
            if (strcmp(o->id, kinds[k].plural) == 0)
                number_track(s, (enum kind)k, (uint64_t)json_integer_value(json_object_get(doc, "last")));
}

/* ---- changes ---------------------------------------------------------------------------------------------------- */

int object_sync(struct state *s, struct berth_cluster *cluster, const struct object *o, struct berth_err *err)
{
    struct parsed_doc parsed;
    struct arena_mark mark = arena_mark(&s->scratch);
    json_t *doc = object_doc(o);
    int rc = doc_parse(o->kind, doc, &s->scratch, &parsed, err);
    if (rc == 0)
        rc = sync_put(s, cluster, o, &parsed, &s->scratch, err);
    json_decref(doc);
    arena_rewind(&s->scratch, mark);
    return rc;
}

/* Returns the workload whose id is the part of `text` before `end`. */
static const struct object *work_before(const struct state *s, const char *text, const char *end)
{
    char id[OBJECT_KEY_MAX];
    if (!end || (size_t)(end - text) >= sizeof id)
        return NULL;
    memcpy(id, text, (size_t)(end - text));
    id[end - text] = 0;
    return state_find_work(s, id);
}

static int backoff_changed(struct state *s, const char *fact, struct berth_err *err)
{
    static const char prefix[] = "since/";
    if (strncmp(fact, prefix, sizeof prefix - 1) != 0)
        return 0;
    const struct object *work = state_find_work(s, fact + sizeof prefix - 1);
    return work ? object_sync(s, s->cluster, work, err) : 0;
}

/* Tells whether the job has a prediction by name, and so does not depend on the prediction for all jobs of its
 * owner. */
static bool predicted_by_name(const struct state *s, const struct object *job)
{
    char id[OBJECT_KEY_MAX];
    const struct object *o =
        *job->work->name ? state_find(s, KIND_PREDICTION, predict_id(job->owner, job->work->name, id)) : NULL;
    return o && o->prediction->version;
}

/* Updates jobs after a change of a prediction. A prediction for an owner, for jobs of one name, or for all users is the
 * estimate of jobs without one; a prediction for a class is their slowdown next to other jobs. */
static int prediction_changed(struct state *s, const char *id, struct berth_err *err)
{
    char of[OBJECT_KEY_MAX];
    size_t owner_len = strcspn(id, "/");
    bool class = strncmp(id, PREDICT_CLASS "/", sizeof PREDICT_CLASS) == 0, all = strcmp(id, PREDICT_ALL) == 0;
    for (size_t i = 0; i < s->tables[KIND_JOB].len; i++) {
        const struct object *job = s->tables[KIND_JOB].at[i];
        if (job->work->finished_ns || /* an unfinished job may have running tasks with an expected end */
            (class ? !memmem(job->doc.at, job->doc.len, "\"class\"", 7)
             : all ? memmem(job->doc.at, job->doc.len, "\"estimate\":", 11) != NULL
                   : strncmp(job->owner, id, owner_len) != 0 || job->owner[owner_len] ||
                         (id[owner_len] ? strcmp(predict_id(job->owner, job->work->name, of), id) != 0
                                        : predicted_by_name(s, job))))
            continue;
        int rc = object_sync(s, s->cluster, job, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Updates a user, a group or a queue after a change of the spent total of its quota. */
static int quota_spent_changed(struct state *s, const char *id, struct berth_err *err)
{
    char word[OBJECT_KEY_MAX];
    size_t len = strcspn(id, "/");
    (void)snprintf(word, sizeof word, "%.*s", (int)len, id);
    enum kind kind = kind_find(word);
    const struct object *of = kind != KINDS && id[len] ? state_find(s, kind, id + len + 1) : NULL;
    return of ? object_sync(s, s->cluster, of, err) : 0;
}

static uint64_t version_of(const struct state_entry *e)
{
    return e && e->object.kind == KIND_PREDICTION ? e->view.prediction.version : 0;
}

/* Stores the document in the entry; cannot fail. */
static void entry_write(struct state *s, struct state_entry *e, const struct parsed_doc *parsed, const json_t *doc,
                        const struct store_event *event)
{
    char *text = mem_alloc(event->value.len + 1);
    memcpy(text, event->value.at, event->value.len);
    text[event->value.len] = 0;
    if (e->object.doc.at) {
        s->hashes[e->object.kind] -= object_hash(&e->object);
        cap_book_count(s->caps, &e->object, -1);
    }
    mem_free((void *)e->object.doc.at);
    e->object.doc = (struct bytes){text, event->value.len};
    e->object.revision = event->revision;
    e->object.created = event->created;
    s->hashes[e->object.kind] += object_hash(&e->object);
    view_set(s, e, parsed, doc);
    cap_book_count(s->caps, &e->object, 1);
    numbers_track(s, &e->object, doc);
    links_make(s, e);
    if (e->object.kind == KIND_FACT)
        state_fact_settle(s, e->object.id);
}

/* An assumption about an instance survives documents that do not confirm it. */
static int project_doc(struct state *s, const struct object *o, const struct parsed_doc *parsed, struct berth_err *err)
{
    struct parsed_doc p = *parsed;
    struct berth_instance *i = &p.instance.instance;
    const struct assumed_change *a = o->kind == KIND_INSTANCE ? assumed_find(s, i->id) : NULL;
    if (a && !assumed_confirms(a, i)) {
        if (a->gone)
            return 0;
        i->state = a->state;
        i->since_ns = a->since_ns;
        i->waits_len = 0;
    }
    return sync_put(s, s->cluster, o, &p, &s->scratch, err);
}

/* Updates the ledger from the document, regardless of assumptions. An instance that is assumed removed is not in the
 * cluster and keeps its class. */
static void ledger_put(struct state *s, const struct berth_instance *i)
{
    uint32_t slot = cluster_instance_find(s->cluster, i->id);
    struct quota_row row = quota_ledger_row(s->ledger, i->id);
    bool there = i->state != BERTH_ENDED && (slot != NONE || row.id);
    row.id = i->id;
    row.replaces = i->replaces;
    row.state = i->state;
    if (slot != NONE) {
        const struct instance *known = cluster_instance(s->cluster, slot);
        row.class = known->class.v;
        row.workload = cluster_workload(s->cluster, known->workload.v)->id;
    }
    (void)quota_ledger_put(s->ledger, s->cluster, i->id, there ? &row : NULL);
}

/* Updates dependent objects: pods become outdated, or cease to be, when their workload changes; a back-off begins or
 * ends. */
static int update_dependents(struct state *s, const struct object *o, struct berth_err *err)
{
    if (s->loading)
        return 0;
    const struct object *work = NULL;
    if (kind_is_workload(o->kind))
        work = o;
    else if (o->kind == KIND_SPEC)
        work = work_before(s, o->id, strrchr(o->id, '/'));
    int rc = 0;
    for (size_t i = 0; work && i < work->work->instances_len && rc == 0; i++) {
        struct object *of = work->work->instances[i];
        /* An assumed instance keeps its assumed version until a commit. */
        if (of->instance->generation != work->work->generation && !assumed_find(s, of->instance->number))
            rc = object_sync(s, s->cluster, of, err);
        if (strcmp(of->group, work->group) != 0)
            view_owner(s, (struct state_entry *)of);
    }
    if (o->kind == KIND_FACT)
        rc = backoff_changed(s, o->id, err);
    return rc;
}

static int apply_doc(struct state *s, enum kind kind, const char *id, const json_t *doc,
                     const struct store_event *event, struct berth_err *err)
{
    struct parsed_doc parsed;
    int rc = doc_parse(kind, doc, &s->scratch, &parsed, err);
    if (rc < 0)
        return rc;
    struct state_entry *e = state_entry(s, kind, id);
    struct dependents_before was = dependents_before(e);
    uint64_t version = version_of(e);
    const struct object unknown = {.kind = kind, .id = id, .owner = "", .group = ""};
    const struct object *o = e ? &e->object : &unknown;
    rc = project_doc(s, o, &parsed, err);
    if (rc == -EBUSY && s->assumed.len) { /* the document needs ports or devices that an assumed instance holds */
        assumed_drop_all(s);
        rc = project_doc(s, o, &parsed, err);
    }
    if (rc < 0)
        return rc;
    const struct assumed_change *a = kind == KIND_INSTANCE ? assumed_find(s, parsed.instance.instance.id) : NULL;
    if (a && assumed_confirms(a, &parsed.instance.instance))
        assumed_settle(s, a->id);
    if (!e)
        e = entry_add(s, kind, id);
    entry_write(s, e, &parsed, doc, event);
    if (kind == KIND_INSTANCE)
        ledger_put(s, &parsed.instance.instance);
    else if (kind_is_workload(kind))
        quota_ledger_claim(s->ledger, s->cluster, id);
    if (version_of(e) != version && !s->loading && (rc = prediction_changed(s, id, err)) < 0)
        return rc;
    if (kind == KIND_SPENT && !s->loading && (rc = quota_spent_changed(s, id, err)) < 0)
        return rc;
    rc = sync_dependents(s, kind, id, &was, &e->object, err);
    return rc < 0 ? rc : update_dependents(s, &e->object, err);
}

static int apply_put(struct state *s, enum kind kind, const char *id, const struct store_event *event,
                     struct berth_err *err)
{
    json_error_t where;
    json_t *doc = json_loadb(event->value.at, event->value.len, 0, &where);
    int rc;
    if (!json_is_object(doc))
        rc = err_set(err, EBADMSG, "the document is not a JSON object: %s", doc ? "another value" : where.text);
    else {
        struct arena_mark mark = arena_mark(&s->scratch);
        rc = apply_doc(s, kind, id, doc, event, err);
        arena_rewind(&s->scratch, mark);
    }
    json_decref(doc);
    return rc;
}

static int apply_removal(struct state *s, enum kind kind, const char *id, struct berth_err *err)
{
    struct state_entry *e = state_entry(s, kind, id);
    if (!e)
        return 0;
    if (kind == KIND_FACT)
        state_fact_settle(s, id);
    int rc = sync_remove(s, s->cluster, e, err);
    if (rc < 0)
        return rc;
    s->hashes[kind] -= object_hash(&e->object);
    cap_book_count(s->caps, &e->object, -1);
    if (kind == KIND_INSTANCE) {
        assumed_settle(s, e->view.instance.number);
        (void)quota_ledger_put(s->ledger, s->cluster, e->view.instance.number, NULL);
    } else if (kind_is_workload(kind)) {
        quota_ledger_claim(s->ledger, s->cluster, id);
    }
    for (size_t i = 0; kind == KIND_NODE && i < s->assumed.len; i++)
        if (s->assumed.at[i].node == e)
            s->assumed.at[i].node = NULL;
    links_drop(s, e);
    char *was = mem_strdup(id);
    struct dependents_before order = dependents_before(e);
    entry_drop(s, e);
    rc = sync_dependents(s, kind, was, &order, NULL, err);
    if (rc == 0 && kind == KIND_FACT)
        rc = backoff_changed(s, was, err);
    else if (rc == 0 && kind == KIND_PREDICTION)
        rc = prediction_changed(s, was, err);
    else if (rc == 0 && kind == KIND_SPENT)
        rc = quota_spent_changed(s, was, err);
    mem_free(was);
    return rc;
}

int state_apply(struct state *s, const struct store_event *event, struct berth_err *err)
{
    const char *id;
    enum kind kind = object_key_split(event->key, &id);
    if (kind == KINDS) {
        s->revision = event->revision;
        return err_set(err, EBADMSG, "the key %s has an unknown kind", event->key);
    }
    int rc = event->gone ? apply_removal(s, kind, id, err) : apply_put(s, kind, id, event, err);
    if (rc < 0)
        (void)err_prefix(err, "%s", event->key);
    s->revision = event->revision;
    return rc;
}

uint64_t state_revision(const struct state *s)
{
    return s->revision;
}

uint64_t state_hash(const struct state *s)
{
    uint64_t sum = 0;
    for (unsigned k = 0; k < KINDS; k++)
        sum += s->hashes[k];
    return sum;
}

uint64_t state_hash_of(const struct state *s, enum kind kind)
{
    return s->hashes[kind];
}

/* ---- loading ---------------------------------------------------------------------------------------------------- */

struct state_load {
    struct state *state;
    struct berth_err *err;
};

static int load_entry(void *ctx, const struct store_entry *entry)
{
    struct state_load *l = ctx;
    struct store_event event = {
        .key = entry->key, .value = entry->value, .created = entry->created, .revision = entry->revision};
    uint64_t revision = l->state->revision;
    int rc = state_apply(l->state, &event, l->err);
    if (revision > l->state->revision)
        l->state->revision = revision;
    return rc;
}

static int store_range_all(void *ctx, const char *prefix, store_visit *visit, void *visit_ctx, struct berth_err *err)
{
    return store_range(ctx, prefix, 0, visit, visit_ctx, err);
}

int state_load(struct store *store, struct state **ret, struct berth_err *err)
{
    struct state *s = NULL;
    int rc = state_load_from(store_range_all, store, 0, &s, err);
    if (rc < 0)
        return rc;
    s->revision = store_revision(store);
    *ret = s;
    return 0;
}

int state_load_from(state_range *range, void *ctx, uint64_t revision, struct state **ret, struct berth_err *err)
{
    struct state *s = mem_zalloc(sizeof *s);
    struct state_load l = {.state = s, .err = err};
    s->cluster = berth_cluster_new();
    s->caps = cap_book_new();
    s->ledger = quota_ledger_new();
    arena_init(&s->scratch);
    s->loading = true;
    int rc = 0;
    /* In order of kinds: objects may refer to objects of earlier kinds. */
    for (unsigned k = 0; k < KINDS && rc == 0; k++) {
        char prefix[OBJECT_KEY_MAX];
        (void)object_key((enum kind)k, "", prefix);
        rc = range(ctx, prefix, load_entry, &l, err);
        table_sort(&s->tables[k]);
    }
    s->loading = false;
    /* Workloads were loaded before the facts about their failures. */
    for (size_t i = 0; i < s->tables[KIND_FACT].len && rc == 0; i++)
        rc = backoff_changed(s, s->tables[KIND_FACT].at[i]->id, err);
    if (rc < 0) {
        state_free(s);
        return rc;
    }
    s->revision = revision;
    *ret = s;
    return 0;
}

void state_free(struct state *s)
{
    if (!s)
        return;
    berth_cluster_free(s->cluster);
    quota_ledger_free(s->ledger);
    for (size_t i = 0; i < s->slots.len; i++)
        if (s->slots.at[i])
            entry_free(s->slots.at[i]);
    for (unsigned k = 0; k < KINDS; k++)
        mem_free(s->tables[k].at ? s->tables[k].at - s->tables[k].skipped : NULL);
    arena_done(&s->scratch);
    cap_book_free(s->caps);
    vec_done(&s->slots);
    vec_done(&s->free_slots);
    assumed_done(s);
    map_done(&s->map);
    mem_free(s);
}

/* ---- the cluster ------------------------------------------------------------------------------------------------ */

struct berth_cluster *state_cluster(struct state *s)
{
    return s->cluster;
}

struct cap_book *state_caps(const struct state *s)
{
    return s->caps;
}

struct quota_ledger *state_ledger(struct state *s)
{
    return s->ledger;
}

/* Makes the ledger of a cluster that has just been built from the documents. */
static struct quota_ledger *ledger_make(const struct state *s)
{
    struct quota_ledger *made = quota_ledger_new();
    for (size_t i = 0; i < s->tables[KIND_INSTANCE].len; i++) {
        uint64_t id = s->tables[KIND_INSTANCE].at[i]->instance->number;
        uint32_t slot = cluster_instance_find(s->cluster, id);
        const struct instance *known = slot == NONE ? NULL : cluster_instance(s->cluster, slot);
        if (!known || known->state == BERTH_ENDED)
            continue;
        struct quota_row row = {.id = id,
                                .replaces = known->replaces,
                                .workload = cluster_workload(s->cluster, known->workload.v)->id,
                                .class = known->class.v,
                                .state = known->state};
        (void)quota_ledger_put(made, s->cluster, id, &row);
    }
    return made;
}

/* Builds a cluster from the documents alone. */
static int cluster_make(struct state *s, struct berth_cluster **ret, struct berth_err *err)
{
    struct berth_cluster *made = berth_cluster_new();
    int rc = 0;
    for (unsigned k = 0; k < KINDS && rc == 0; k++)
        for (size_t i = 0; i < s->tables[k].len && rc == 0; i++)
            rc = object_sync(s, made, s->tables[k].at[i], err);
    if (rc < 0) {
        berth_cluster_free(made);
        return rc;
    }
    *ret = made;
    return 0;
}

int state_rebuild(struct state *s, struct berth_err *err)
{
    struct berth_cluster *made;
    int rc = cluster_make(s, &made, err);
    if (rc < 0)
        return rc;
    berth_cluster_free(s->cluster);
    s->cluster = made;
    assumed_done(s);
    quota_ledger_free(s->ledger);
    s->ledger = ledger_make(s);
    return 0;
}

static int cluster_hash(struct berth_cluster *cluster, const struct berth_policy *policy, uint64_t *ret,
                        struct berth_err *err)
{
    struct berth_snapshot *snapshot = berth_freeze(cluster, 0, 0);
    struct berth_plan *plan;
    int rc = berth_plan_make(snapshot, policy, &plan, err);
    if (rc == 0) {
        *ret = berth_plan_hash(plan);
        berth_plan_free(plan);
    }
    berth_snapshot_free(snapshot);
    return rc;
}

int state_audit(struct state *s, struct berth_err *err)
{
    int rc = berth_audit(s->cluster, err);
    if (rc == 0)
        rc = quota_ledger_audit(s->ledger, s->cluster, err);
    if (rc < 0 || s->assumed.len || s->assumed_facts.len) /* assumptions are in no document yet */
        return rc;
    struct berth_cluster *made;
    rc = cluster_make(s, &made, err);
    if (rc < 0)
        return rc;
    uint64_t kept = 0, fresh = 0;
    struct plan_policy p;
    plan_policy_read(s, &p); /* so that queues, levels and domains affect the plan */
    rc = cluster_hash(s->cluster, &p.policy, &kept, err);
    if (rc == 0)
        rc = cluster_hash(made, &p.policy, &fresh, err);
    plan_policy_done(&p);
    berth_cluster_free(made);
    if (rc == 0 && kept != fresh)
        rc = err_set(err, EBADMSG,
                     "the cluster in memory and the cluster built from the documents give different "
                     "plans");
    return rc;
}

bool state_work_should_run(const struct state *s, const struct object *work)
{
    const struct object *owner = state_find(s, KIND_USER, work->owner);
    return !work->work->held && !work->work->waits && !(owner && owner->user->disabled);
}
