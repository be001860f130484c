#include "kube/journal/journal_ops.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/base64.h"
#include "base/hash.h"
#include "control/kind/kind.h"

const char *const journal_words[WORDS] = {
    [CACHE_NAMESPACE] = "namespaces",
    [CACHE_NODE] = "nodes",
    [CACHE_STORAGE_CLASS] = "storageclasses",
    [CACHE_CSI_NODE] = "csinodes",
    [CACHE_CSI_DRIVER] = "csidrivers",
    [CACHE_STORAGE_CAPACITY] = "capacities",
    [CACHE_ATTACHMENT] = "attachments",
    [CACHE_VOLUME] = "volumes",
    [CACHE_CLAIM] = "claims",
    [CACHE_BUDGET] = "budgets",
    [CACHE_LIMIT_RANGE] = "limitranges",
    [CACHE_RUNTIME_CLASS] = "runtimeclasses",
    [CACHE_POD] = "pods",
    [CACHE_POD_GROUP] = "podgroups",
    [WORD_SETTLE] = "settle",
    [WORD_ASSUME] = "assume",
    [WORD_PROMOTE] = "promote",
    [WORD_FORGET] = "give_back",
    [WORD_STOPPING] = "stopping",
    [WORD_REPORTED] = "told",
    [WORD_ROLES] = "roles",
    [WORD_ROLE_CHANGED] = "role_changed",
    [WORD_TASKS] = "tasks",
    [WORD_TASK_ENDS] = "task_ends",
    [WORD_TASKS_RERUN] = "tasks_again",
    [WORD_BACKOFF] = "held",
    [WORD_CLAIM_VOLUMES] = "taken",
    [WORD_RENEW] = "renew",
    [WORD_TEMPLATES] = "templates",
    [WORD_ROLE_CLAIMS] = "role_claims",
    [WORD_TENANTS] = "tenants",
    [WORD_TENANT_DROP] = "tenant_drop",
    [WORD_TENANT_RECALL] = "tenant_recall",
    [WORD_TENANT_RECHECK] = "tenant_judge",
    [WORD_TENANT_USAGE] = "tenant_past",
    [WORD_TENANT_FORCE] = "tenant_force",
    [WORD_TENANT_CLAIMED] = "tenant_claimed",
    [WORD_BASE] = "base",
};

/* ---- hashes ----------------------------------------------------------------------------------------------------- */

void journal_hash_add(struct journal_hashes *h, enum journal_word word, const char *change, size_t len)
{
    h->at[word] = hash_bytes(change, len, h->at[word]);
    h->changed[word] = true;
}

void journal_hashes_write(struct journal_hashes *h, struct str *to)
{
    bool some = false;
    str_add(to, "\"kinds\":{");
    for (unsigned w = 0; w < WORDS; w++)
        if (h->changed[w]) {
            str_addf(to, "%s\"%s\":\"%016" PRIx64 "\"", some ? "," : "", journal_words[w], h->at[w]);
            h->changed[w] = false;
            some = true;
        }
    str_add_char(to, '}');
}

void journal_ops_clear(struct journal_ops *o)
{
    o->templates.len = 0;
    map_done(&o->by_hash);
    o->by_hash = (struct map){0};
    o->hashes = (struct journal_hashes){0};
}

void journal_ops_done(struct journal_ops *o)
{
    journal_ops_clear(o);
    vec_done(&o->templates);
    str_done(&o->key);
}

/* ---- changes ---------------------------------------------------------------------------------------------------- */

static void add_u64(struct str *to, const char *lead, uint64_t number)
{
    char buf[24];
    str_add(to, lead);
    str_add(to, str_u64(number, buf));
}

static void add_i64(struct str *to, const char *lead, int64_t number)
{
    str_add(to, lead);
    if (number < 0)
        str_addf(to, "%" PRId64, number);
    else
        add_u64(to, "", (uint64_t)number);
}

static void add_text(struct str *to, const char *lead, const char *text)
{
    str_add(to, lead);
    str_add_json(to, text);
}

/* Begins a change: ["word/id", */
static size_t change_begin(struct journal_ops *o, enum journal_word word, const char *id, struct str *to)
{
    if (to->len && to->at[to->len - 1] == ']')
        str_add_char(to, ',');
    size_t begun = to->len;
    str_clear(&o->key);
    str_add(&o->key, journal_words[word]);
    if (*id) {
        str_add_char(&o->key, '/');
        str_add(&o->key, id);
    }
    str_add_char(to, '[');
    str_add_json(to, o->key.at);
    str_add_char(to, ',');
    return begun;
}

static void change_end(struct journal_ops *o, enum journal_word word, size_t begun, struct str *to)
{
    str_add_char(to, ']');
    journal_hash_add(&o->hashes, word, to->at + begun, to->len - begun);
}

void journal_change_write(struct journal_ops *o, enum journal_word word, const char *id, const char *doc, size_t len,
                          struct str *to)
{
    size_t begun = change_begin(o, word, id, to);
    str_add_bytes(to, doc, len);
    change_end(o, word, begun, to);
}

static void bare(struct journal_ops *o, enum journal_word word, const char *id, struct str *to)
{
    journal_change_write(o, word, id, "{}", 2, to);
}

/* ---- objects ---------------------------------------------------------------------------------------------------- */

static bool template_same(const void *ctx, uint32_t value, const void *key)
{
    return ((const struct journal_ops *)ctx)->templates.at[value] == *(const uint64_t *)key;
}

static void add_base64(struct str *to, struct proto_reader bytes)
{
    str_add(to, "{\"pb\":\"");
    if (bytes.at)
        str_add_base64(to, bytes.at, (size_t)(bytes.end - bytes.at));
    str_add(to, "\"}");
}

/* Returns the template's hash; writes the template first if it is new. */
static uint64_t template_write(struct journal_ops *o, struct proto_reader kept, struct str *to)
{
    uint64_t hash = hash_bytes(kept.at, (size_t)(kept.end - kept.at), 0);
    char id[24];
    if (map_find(&o->by_hash, hash, template_same, o, &hash) != MAP_NONE)
        return hash;
    map_add(&o->by_hash, hash, (uint32_t)o->templates.len);
    vec_push(&o->templates, hash);
    (void)snprintf(id, sizeof id, "%016" PRIx64, hash);
    size_t begun = change_begin(o, WORD_TEMPLATES, id, to);
    add_base64(to, kept);
    change_end(o, WORD_TEMPLATES, begun, to);
    return hash;
}

static void add_hex(struct str *to, const char *lead, uint64_t number)
{
    char text[17];
    for (int i = 15; i >= 0; i--, number >>= 4)
        text[i] = "0123456789abcdef"[number & 15];
    str_add(to, lead);
    str_add_bytes(to, text, 16);
}

static void pod_write(const struct cache_change *in, uint64_t template, struct str *to)
{
    if (in->known) {
        str_add(to, "{\"node\":");
        str_add_json_bytes(to, in->node.at, in->node.len);
        if (in->bound_ns)
            add_i64(to, ",\"bound\":", in->bound_ns);
        str_add_char(to, '}');
        return;
    }
    add_hex(to, "{\"t\":\"", template);
    add_text(to, "\",\"uid\":", in->object->uid);
    add_u64(to, ",\"version\":", in->object->version % 1000000000);
    add_i64(to, ",\"created\":", in->created_ns);
    if (in->deleted_ns)
        add_i64(to, ",\"deleted\":", in->deleted_ns);
    if (in->bound_ns)
        add_i64(to, ",\"bound\":", in->bound_ns);
    if (in->node.len) {
        str_add(to, ",\"node\":");
        str_add_json_bytes(to, in->node.at, in->node.len);
    }
    if (*in->owner)
        add_text(to, ",\"job\":", in->owner);
    if (in->instance)
        add_u64(to, ",\"instance\":", in->instance);
    str_add_char(to, '}');
}

static void object_write(struct journal_ops *o, const struct cache_change *in, struct str *to)
{
    enum journal_word word = (enum journal_word)in->kind;
    CLEANUP(str) struct str id = {0};
    bool pod = in->kind == CACHE_POD, gone = in->op == CACHE_OP_DROP;
    uint64_t template = pod && !gone && !in->known ? template_write(o, in->kept, to) : 0;
    if (*in->object->namespace) {
        str_add(&id, in->object->namespace);
        str_add_char(&id, ':');
    }
    str_add(&id, in->object->name);
    size_t begun = change_begin(o, word, id.at, to);
    if (gone && pod && id.len > BERTH_NAME_MAX)
        add_text(to, "{\"gone\":", in->object->uid); /* the uid suffices to identify it */
    else if (gone)
        str_add(to, "null");
    else if (pod)
        pod_write(in, template, to);
    else
        add_base64(to, in->kept);
    if (gone && pod && id.len > BERTH_NAME_MAX)
        str_add_char(to, '}');
    change_end(o, word, begun, to);
}

/* ---- decisions and roles ---------------------------------------------------------------------------------------- */

static void role_write(struct journal_ops *o, const struct cache_change *in, struct str *to)
{
    uint64_t template = template_write(o, in->kept, to);
    size_t begun = change_begin(o, WORD_ROLES, in->id, to);
    add_hex(to, "{\"t\":\"", template);
    add_text(to, "\",\"namespace\":", in->namespace);
    add_text(to, ",\"job\":", in->owner);
    str_add_char(to, '}');
    change_end(o, WORD_ROLES, begun, to);
}

static void place_write(struct journal_ops *o, enum journal_word word, const struct cache_change *in, struct str *to)
{
    size_t begun = change_begin(o, word, in->id, to);
    str_add(to, "{\"node\":");
    str_add_json_bytes(to, in->node.at, in->node.len);
    add_u64(to, ",\"instance\":", in->instance);
    if (in->gpus)
        add_u64(to, ",\"gpus\":", in->gpus);
    if (word == WORD_TASKS) {
        add_text(to, ",\"name\":", in->name);
        add_u64(to, ",\"ordinal\":", in->ordinal);
        add_u64(to, ",\"attempt\":", in->attempt);
    }
    for (size_t i = 0; i < in->waits_len; i++)
        add_u64(to, i ? "," : ",\"waits\":[", in->waits[i]);
    str_add(to, in->waits_len ? "]}" : "}");
    change_end(o, word, begun, to);
}

static void held_write(struct journal_ops *o, const struct cache_change *in, struct str *to)
{
    size_t begun = change_begin(o, WORD_BACKOFF, in->id, to);
    add_u64(to, "{\"failures\":", in->failures);
    add_i64(to, ",\"not_before\":", in->moment_ns);
    for (size_t i = 0; i < in->nodes_len; i++)
        add_text(to, i ? "," : ",\"not_on\":[", in->nodes[i]);
    str_add(to, in->nodes_len ? "]}" : "}");
    change_end(o, WORD_BACKOFF, begun, to);
}

static void taken_write(struct journal_ops *o, const struct cache_change *in, struct str *to)
{
    size_t begun = change_begin(o, WORD_CLAIM_VOLUMES, in->id, to);
    for (size_t i = 0; i < in->volumes_len; i++) {
        const struct cache_claim_volume *v = &in->volumes[i];
        add_text(to, i ? ",[" : "{\"volumes\":[[", v->claim_namespace);
        add_text(to, ",", v->claim);
        add_text(to, ",", v->claim_uid);
        add_text(to, ",", v->volume);
        str_add(to, v->joined ? ",true]" : "]");
    }
    str_add(to, "]}");
    change_end(o, WORD_CLAIM_VOLUMES, begun, to);
}

/* Writes an input about an instance, identified by its number. */
static void instance_write(struct journal_ops *o, enum journal_word word, const struct cache_change *in, struct str *to)
{
    char id[24];
    size_t begun = change_begin(o, word, str_u64(in->instance, id), to);
    if (word == WORD_FORGET)
        add_i64(to, "{\"not_before\":", in->moment_ns);
    else if (word == WORD_STOPPING)
        str_add(to, in->stopping ? "{\"on\":true" : "{\"on\":false");
    else
        str_add_char(to, '{');
    str_add_char(to, '}');
    change_end(o, word, begun, to);
}

static void told_write(struct journal_ops *o, const struct cache_change *in, struct str *to)
{
    size_t begun = change_begin(o, WORD_REPORTED, in->id, to);
    add_text(to, "{\"text\":", in->text);
    str_add_char(to, '}');
    change_end(o, WORD_REPORTED, begun, to);
}

static void task_end_write(struct journal_ops *o, const struct cache_change *in, struct str *to)
{
    size_t begun = change_begin(o, WORD_TASK_ENDS, in->id, to);
    add_u64(to, "{\"ordinal\":", in->ordinal);
    add_u64(to, ",\"instance\":", in->instance);
    str_add_char(to, '}');
    change_end(o, WORD_TASK_ENDS, begun, to);
}

static void renew_write(struct journal_ops *o, const struct cache_change *in, struct str *to)
{
    size_t begun = change_begin(o, WORD_RENEW, "", to);
    add_u64(to, "{\"instances\":", in->instance);
    add_u64(to, ",\"places\":", in->places);
    str_add_char(to, '}');
    change_end(o, WORD_RENEW, begun, to);
}

void journal_input_write(struct journal_ops *o, const struct cache_change *in, struct str *to)
{
    switch (in->op) {
    case CACHE_OP_PUT:
    case CACHE_OP_DROP: object_write(o, in, to); break;
    case CACHE_OP_SETTLE: bare(o, WORD_SETTLE, "", to); break;
    case CACHE_OP_ASSUME: place_write(o, WORD_ASSUME, in, to); break;
    case CACHE_OP_PROMOTE: instance_write(o, WORD_PROMOTE, in, to); break;
    case CACHE_OP_FORGET: instance_write(o, WORD_FORGET, in, to); break;
    case CACHE_OP_STOPPING: instance_write(o, WORD_STOPPING, in, to); break;
    case CACHE_OP_REPORTED: told_write(o, in, to); break;
    case CACHE_OP_ROLE_PUT: role_write(o, in, to); break;
    case CACHE_OP_ROLE_DROP: journal_change_write(o, WORD_ROLES, in->id, "null", 4, to); break;
    case CACHE_OP_ROLE_CHANGED: bare(o, WORD_ROLE_CHANGED, in->id, to); break;
    case CACHE_OP_TASK_ASSUME: place_write(o, WORD_TASKS, in, to); break;
    case CACHE_OP_TASK_SUCCEEDED: task_end_write(o, in, to); break;
    case CACHE_OP_TASKS_RERUN: bare(o, WORD_TASKS_RERUN, in->id, to); break;
    case CACHE_OP_BACKOFF: held_write(o, in, to); break;
    case CACHE_OP_VOLUMES: taken_write(o, in, to); break;
    case CACHE_OP_IMAGE_END: renew_write(o, in, to); break;
    case CACHE_OPS: break;
    }
}

/* ---- tenants and claims ----------------------------------------------------------------------------------------- */

void journal_tenant_write(struct journal_ops *o, const struct tenant_input *in, struct str *to)
{
    static const enum journal_word words[TENANT_OPS] = {
        [TENANT_PUT] = WORD_TENANTS,
        [TENANT_DROP] = WORD_TENANT_DROP,
        [TENANT_RECALL] = WORD_TENANT_RECALL,
        [TENANT_RECHECK] = WORD_TENANT_RECHECK,
        [TENANT_FORCE] = WORD_TENANT_FORCE,
        [TENANT_USAGE] = WORD_TENANT_USAGE,
        [TENANT_CLAIMED] = WORD_TENANT_CLAIMED,
    };
    CLEANUP(str) struct str id = {0};
    if (*in->name)
        str_addf(&id, "%s/%s", kinds[in->kind].plural, in->name);
    char *text = in->spec ? json_dumps(in->spec, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY) : NULL;
    const char *doc = text ? text : "{}";
    journal_change_write(o, words[in->op], str_text(&id), doc, strlen(doc), to);
    free(text);
}

void journal_claim_text(const struct job_claim *c, struct str *to)
{
    if (!c) {
        str_add(to, "null");
        return;
    }
    const struct {
        const char *lead, *text;
    } texts[] = {
        {"{\"namespace\":", c->namespace },
        {",\"name\":",      c->name      },
        {",\"user\":",      c->user      },
        {",\"queue\":",     c->queue     },
        {",\"type\":",      c->type      },
        {",\"class\":",     c->class_name},
        {",\"network\":",   c->network   },
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].text)
            add_text(to, texts[i].lead, texts[i].text);
    str_addf(to,
             ",\"tasks\":%" PRIu32 ",\"min\":%" PRIu32 ",\"priority\":%" PRId32 ",\"parameters\":%" PRId64
             ",\"times\":[%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64
             "],\"flags\":[%d,%d,%d,%d],\"attributes\":[",
             c->tasks, c->min, c->priority, c->parameters, c->created_ns, c->begin_ns, c->deadline_ns, c->limit_ns,
             c->estimate_ns, c->min_run_ns, c->suspended, c->gang, c->unpreemptible, c->never_preempts);
    for (size_t i = 0; i < c->attributes_len; i++) {
        add_text(to, i ? ",[" : "[", c->attributes[i].key);
        add_text(to, ",", c->attributes[i].value);
        str_add_char(to, ']');
    }
    str_add(to, "]}");
}
