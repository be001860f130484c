/* state_view.c - extracts the values that the daemon reads often from a document when it arrives. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "control/job/past_runs.h"
#include "control/job/predict.h"
#include "control/state/state_parts.h"
#include "control/state/sync.h"

int doc_parse(enum kind kind, const json_t *doc, struct arena *arena, struct parsed_doc *ret, struct berth_err *err)
{
    *ret = (struct parsed_doc){0};
    switch (kind) {
    case KIND_APP:
    case KIND_JOB:
    case KIND_VM:
    case KIND_SPEC: return work_doc_read(doc, arena, &ret->work, err);
    case KIND_NODE: return node_doc_read(doc, arena, &ret->node, err);
    case KIND_USER: return user_doc_read(doc, arena, &ret->user, err);
    case KIND_TOKEN: return token_doc_read(doc, arena, &ret->token, err);
    case KIND_ROLE: return role_doc_read(doc, arena, &ret->role, err);
    case KIND_GROUP: return group_doc_read(doc, arena, &ret->group, err);
    case KIND_QUEUE: return queue_doc_read(doc, arena, &ret->queue, err);
    case KIND_POLICY: return policy_doc_read(doc, arena, &ret->policy, err);
    case KIND_WINDOW: return window_doc_read(doc, arena, &ret->window, err);
    case KIND_DOMAIN: return domain_doc_read(doc, arena, &ret->domain, err);
    case KIND_OPTASK: return optask_doc_read(doc, arena, &ret->optask, err);
    case KIND_OPSTEP: return opstep_doc_read(doc, arena, &ret->opstep, err);
    case KIND_INSTANCE: return instance_doc_read(doc, arena, &ret->instance, err);
    case KIND_VOLUME: return volume_doc_read(doc, arena, &ret->volume, err);
    case KIND_SECRET: return secret_doc_read(doc, arena, &ret->secret, err);
    case KIND_CRON: return cron_doc_read(doc, arena, &ret->cron, err);
    case KIND_RESOURCE: return resource_doc_read(doc, arena, &ret->meta, &ret->resource, err);
    case KIND_FACT: return fact_doc_read(doc, arena, &ret->meta, &ret->fact, err);
    case KIND_USAGE_RECORD: return usage_row_read(doc, &ret->usage, err);
    case KIND_PREDICTION: return predict_read(doc, arena, &ret->prediction, err);
    case KIND_PROFILE: {
        struct berth_profile profile;
        return profile_doc_read(doc, arena, &ret->meta, &profile, err);
    }
    default: return 0; /* parsed where it is used */
    }
}

void view_drop(struct state_entry *e)
{
    for (size_t i = 0; i < e->kept_len; i++)
        mem_free(e->kept[i]);
    e->kept_len = 0;
    mem_free(e->owner);
    mem_free(e->group);
    mem_free(e->domain);
    cached_spec_drop(e);
    if (kind_is_workload(e->object.kind))
        mem_free(e->view.work.instances);
    if (e->object.kind == KIND_NODE)
        mem_free(e->view.node.instances);
}

static const char *entry_own_text(struct state_entry *e, const char *text)
{
    if (!text || !*text)
        return "";
    assert(e->kept_len < KEPT_MAX);
    return e->kept[e->kept_len++] = mem_strdup(text);
}

/* Joins the texts: "cpu, memory". */
static const char *entry_own_list(struct state_entry *e, const char *const *texts, size_t len)
{
    CLEANUP(str) struct str text = {0};
    for (size_t i = 0; i < len; i++)
        str_addf(&text, "%s%s", i ? ", " : "", texts[i]);
    return entry_own_text(e, str_text(&text));
}

static const struct past_runs *entry_own_past_runs(struct state_entry *e, const struct past_runs *past_runs)
{
    if (!past_runs)
        return NULL;
    struct past_runs *kept = mem_alloc(sizeof *kept);
    *kept = *past_runs;
    assert(e->kept_len < KEPT_MAX);
    e->kept[e->kept_len++] = (char *)kept;
    return kept;
}

static const char *member(const json_t *doc, const char *key)
{
    return json_string_value(json_object_get(doc, key));
}

/* Documents of earlier versions have only the flags. */
static enum work_outcome outcome_read(const struct work_view *v, enum work_outcome said)
{
    if (!v->cancelled && !v->failed && !v->ended)
        return OUTCOME_NONE;
    return said ? said : v->cancelled ? OUTCOME_CANCELLED : v->failed ? OUTCOME_FAILED : OUTCOME_SUCCEEDED;
}

static void view_work(struct state_entry *e, const struct work_doc *d, const json_t *doc)
{
    struct work_view *v = &e->view.work;
    struct object *o = &e->object;
    o->work = v;
    v->name = entry_own_text(e, d->name);
    o->owner = v->owner = entry_own_text(e, d->owner);
    o->group = v->group = entry_own_text(e, d->group);
    v->gang = entry_own_text(e, d->workload.gang);
    v->queue = o->kind != KIND_JOB             ? ""
               : d->job.queue && *d->job.queue ? entry_own_text(e, d->job.queue)
                                               : QUEUE_DEFAULT;
    v->generation = d->meta.generation;
    v->replicas = d->workload.replicas;
    v->cancelled = json_is_true(json_object_get(doc, "cancelled"));
    v->failed = d->failed;
    v->ended = d->ended;
    v->outcome = outcome_read(v, d->outcome);
    v->held = d->hold || d->stopped || v->cancelled || v->failed || v->ended;
    v->system = d->system;
    v->created_ns = d->meta.created_ns;
    v->port_index = d->port_index;
    const struct job_terms *t = &d->job;
    int64_t need_ns = t->estimate_ns ? t->estimate_ns : t->time_limit_ns;
    v->waits = t->waits;
    v->array = t->array.count > 0;
    v->least = t->min ? t->min : v->replicas;
    v->of = t->of;
    v->limit_ns = t->time_limit_ns;
    v->size = work_size(d);
    v->started_ns = t->started_ns;
    v->finished_ns = t->finished_ns;
    v->begin_ns = o->kind == KIND_JOB ? d->workload.begin_ns : 0;
    v->begin_by_ns = t->deadline_ns ? t->deadline_ns - need_ns : 0;
    v->cron = entry_own_text(e, t->cron);
}

static void view_token(struct state_entry *e, const struct token_doc *d)
{
    struct token_view *v = &e->view.token;
    e->object.token = v;
    v->user = entry_own_text(e, d->user);
    v->node = entry_own_text(e, d->node);
    v->role = entry_own_text(e, d->role);
    v->expires_ns = d->expires_ns;
    memset(v->hash, 0, sizeof v->hash);
    for (size_t i = 0; d->hash && i < sizeof v->hash && d->hash[2 * i] && d->hash[2 * i + 1]; i++) {
        unsigned byte;
        char two[3] = {d->hash[2 * i], d->hash[2 * i + 1], 0};
        v->hash[i] = sscanf(two, "%2x", &byte) == 1 ? (unsigned char)byte : 0;
    }
    e->object.owner = v->user;
}

/* An instance has the owner of its workload, even if the workload has been deleted. */
void view_owner(struct state *s, struct state_entry *e)
{
    const struct instance_view *v = &e->view.instance;
    const struct object *of = state_find_work(s, v->workload);
    if (!of)
        of = state_spec(s, v->workload, v->generation);
    mem_free(e->owner);
    mem_free(e->group);
    e->object.owner = e->owner = mem_strdup(of ? of->owner : "");
    e->object.group = e->group = mem_strdup(of ? of->group : "");
}

static void view_instance(struct state *s, struct state_entry *e, const struct instance_doc *d)
{
    struct instance_view *v = &e->view.instance;
    const struct berth_instance *i = &d->instance;
    e->object.instance = v;
    v->number = i->id;
    v->workload = entry_own_text(e, i->workload);
    v->node = entry_own_text(e, i->node);
    v->ordinal = i->ordinal;
    v->state = i->state;
    v->ready = i->ready;
    v->since_ns = i->since_ns;
    if (!v->placed_ns) /* first document of the instance since the daemon's start */
        v->placed_ns = d->started_ns && d->started_ns < i->since_ns ? d->started_ns : i->since_ns;
    v->generation = d->generation;
    v->report_seq = d->seq;
    v->started_ns = d->started_ns;
    v->counted_ns = d->counted_ns;
    v->failed = d->failed;
    v->outcome = d->outcome;
    v->progress = d->words.progress_reported ? d->words.progress : -1;
    v->note = entry_own_text(e, d->words.note);
    v->unenforced = entry_own_list(e, d->words.unenforced, d->words.unenforced_len);
    view_owner(s, e);
}

void view_domain(struct state *s, struct state_entry *e, const struct berth_node *node)
{
    /* copied first: the result may be e->domain itself */
    char *domain = mem_strdup(node_domain(s, e->object.id, node));
    mem_free(e->domain);
    e->view.node.domain = e->domain = domain;
}

static void view_usage(struct state_entry *e, const struct usage_row *row)
{
    e->object.usage = &e->view.usage;
    e->object.owner = entry_own_text(e, row->owner);
    e->object.group = entry_own_text(e, row->group);
    e->view.usage = (struct usage_view){
        .queue = entry_own_text(e, row->queue),
        .name = entry_own_text(e, row->name),
        .outcome = usage_outcome(row->outcome),
        .start_ns = row->start_ns,
        .end_ns = row->end_ns,
        .cpu = usage_row_amount(row, "cpu"),
        .gpu = usage_row_amount(row, "gpu"),
        .memory = usage_row_amount(row, "memory"),
        .last = strcmp(row->outcome, USAGE_RUNNING) != 0,
    };
}

static void view_opstep(struct state_entry *e, const struct opstep_doc *d)
{
    e->object.opstep = &e->view.opstep;
    e->view.opstep = (struct opstep_view){
        .optask = entry_own_text(e, d->optask),
        .node = entry_own_text(e, d->node),
        .attempt = d->attempt,
        .state = (enum opstep_state)d->state,
        .fault = (enum opstep_fault)d->fault,
        .undo = d->undo,
        .init = d->init,
        .drained = d->drained,
        .excused = d->excused,
        .since_ns = d->since_ns,
    };
}

void view_set(struct state *s, struct state_entry *e, const struct parsed_doc *p, const json_t *doc)
{
    char *old[KEPT_MAX];
    size_t old_len = e->kept_len;
    memcpy(old, e->kept, sizeof old);
    e->kept_len = 0;

    switch (e->object.kind) {
    case KIND_APP:
    case KIND_JOB:
    case KIND_VM:
    case KIND_SPEC: view_work(e, &p->work, doc); break;
    case KIND_TOKEN: view_token(e, &p->token); break;
    case KIND_INSTANCE: view_instance(s, e, &p->instance); break;
    case KIND_NODE:
        e->object.node = &e->view.node;
        e->view.node.state = p->node.node.state;
        e->view.node.since_ns = p->node.node.since_ns;
        e->view.node.epoch = p->node.epoch;
        e->view.node.joined = p->node.joined;
        view_domain(s, e, &p->node.node);
        break;
    case KIND_USER:
        e->object.user = &e->view.user;
        e->view.user.group = entry_own_text(e, p->user.group);
        e->view.user.role = entry_own_text(e, p->user.role);
        e->view.user.disabled = p->user.disabled;
        e->view.user.level = p->user.level;
        e->view.user.account = p->user.account;
        e->view.user.uid = p->user.uid;
        e->object.owner = e->object.id;
        e->object.group = e->view.user.group;
        break;
    case KIND_VOLUME:
    case KIND_SECRET:
    case KIND_CRON:
    case KIND_NOTIFICATION:
        e->object.owner = entry_own_text(e, member(doc, "owner"));
        e->object.group = entry_own_text(e, member(doc, "group"));
        break;
    case KIND_GROUP:
        e->object.group = e->object.id;
        cached_spec_set(e, doc);
        break;
    case KIND_QUEUE:
    case KIND_POLICY:
    case KIND_WINDOW:
    case KIND_OPTASK:
    case KIND_DOMAIN: cached_spec_set(e, doc); break;
    case KIND_OPSTEP: view_opstep(e, &p->opstep); break;
    case KIND_USAGE_RECORD: view_usage(e, &p->usage); break;
    case KIND_PREDICTION:
        e->object.prediction = &e->view.prediction;
        e->view.prediction = p->prediction;
        e->view.prediction.past_runs = entry_own_past_runs(e, p->prediction.past_runs);
        break;
    case KIND_FACT:
        e->view.fact.value = p->fact.value;
        e->view.fact.at_ns = p->fact.at_ns;
        break;
    default: break;
    }
    for (size_t i = 0; i < old_len; i++)
        mem_free(old[i]);
}

/* ---- links between instances, nodes and workloads --------------------------------------------------------------- */

struct view_list {
    struct object ***at;
    size_t *len, *cap;
};

static struct view_list view_list_of(struct state_entry *e)
{
    if (e->object.kind == KIND_NODE)
        return (struct view_list){&e->view.node.instances, &e->view.node.instances_len, &e->view.node.instances_cap};
    return (struct view_list){&e->view.work.instances, &e->view.work.instances_len, &e->view.work.instances_cap};
}

static size_t view_list_position(const struct view_list *l, uint64_t number)
{
    size_t low = 0, high = *l->len;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if ((*l->at)[mid]->instance->number < number)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static void view_list_add(struct state_entry *e, struct object *instance)
{
    struct view_list l = view_list_of(e);
    if (*l.len == *l.cap) {
        *l.cap = *l.cap ? *l.cap * 2 : 4;
        *l.at = mem_resize(*l.at, *l.cap, sizeof **l.at);
    }
    size_t at = view_list_position(&l, instance->instance->number);
    memmove(*l.at + at + 1, *l.at + at, (*l.len - at) * sizeof **l.at);
    (*l.at)[at] = instance;
    ++*l.len;
}

static void view_list_drop(struct state_entry *e, const struct object *instance)
{
    struct view_list l = view_list_of(e);
    size_t at = view_list_position(&l, instance->instance->number);
    assert(at < *l.len && (*l.at)[at] == instance);
    memmove(*l.at + at, *l.at + at + 1, (*l.len - at - 1) * sizeof **l.at);
    --*l.len;
}

static void instance_link(struct state *s, struct state_entry *e)
{
    const struct object *work = state_find_work(s, e->view.instance.workload);
    e->of_work = work ? state_entry(s, work->kind, work->id) : NULL;
    e->on_node = state_entry(s, KIND_NODE, e->view.instance.node);
    if (e->of_work)
        view_list_add(e->of_work, &e->object);
    if (e->on_node)
        view_list_add(e->on_node, &e->object);
    s->orphans += !e->of_work || !e->on_node;
}

static void instance_unlink(struct state *s, struct state_entry *e)
{
    s->orphans -= !e->of_work || !e->on_node;
    if (e->of_work)
        view_list_drop(e->of_work, &e->object);
    if (e->on_node)
        view_list_drop(e->on_node, &e->object);
    e->of_work = e->on_node = NULL;
}

void links_make(struct state *s, struct state_entry *e)
{
    enum kind kind = e->object.kind;
    if (kind == KIND_INSTANCE) {
        if (e->linked)
            instance_unlink(s, e);
        instance_link(s, e);
        e->linked = true;
    } else if (s->orphans && (kind == KIND_NODE || kind_is_workload(kind)) && !e->linked) {
        /* An object was created again under a name that instances still refer to. Finished tasks outlive their nodes,
         * so this search runs often and rarely finds an instance. */
        for (size_t i = 0; i < s->tables[KIND_INSTANCE].len; i++) {
            struct state_entry *of = (struct state_entry *)s->tables[KIND_INSTANCE].at[i];
            const struct instance_view *v = &of->view.instance;
            if ((of->of_work && of->on_node) || strcmp(kind == KIND_NODE ? v->node : v->workload, e->object.id) != 0)
                continue;
            instance_unlink(s, of);
            instance_link(s, of);
        }
    }
    e->linked = true;
}

void links_drop(struct state *s, struct state_entry *e)
{
    if (e->object.kind == KIND_INSTANCE) {
        instance_unlink(s, e);
        return;
    }
    if (e->object.kind != KIND_NODE && !kind_is_workload(e->object.kind))
        return;
    struct view_list l = view_list_of(e);
    for (size_t i = 0; i < *l.len; i++) {
        struct state_entry *of = (struct state_entry *)(*l.at)[i];
        s->orphans += of->of_work && of->on_node;
        if (of->of_work == e)
            of->of_work = NULL;
        if (of->on_node == e)
            of->on_node = NULL;
    }
    *l.len = 0;
}
