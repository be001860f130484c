#include "kube/journal/replay_ops.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/base64.h"
#include "base/hash.h"
#include "control/kind/kind.h"

/* A change being applied. */
struct replay_change {
    struct replay_state *r;
    enum journal_word word;
    const char *id;
    const json_t *doc;
    struct berth_err *err;
};

static int bad_record(const struct replay_change *t, const char *what)
{
    return err_set(t->err, EBADMSG, "%s/%.80s cannot be read: %s", journal_words[t->word], t->id, what);
}

static const char *text_of(const json_t *doc, const char *key)
{
    const char *text = json_string_value(json_object_get(doc, key));
    return text ? text : "";
}

static int64_t number_of(const json_t *doc, const char *key)
{
    return json_integer_value(json_object_get(doc, key));
}

/* ---- templates -------------------------------------------------------------------------------------------------- */

static bool template_same(const void *ctx, uint32_t value, const void *key)
{
    return ((const struct replay_state *)ctx)->templates.at[value].hash == *(const uint64_t *)key;
}

static bool bytes_of(const json_t *doc, struct str *to)
{
    const json_t *pb = json_object_get(doc, "pb");
    return json_is_string(pb) && str_add_base64_bytes(to, json_string_value(pb), json_string_length(pb));
}

static int template_take(const struct replay_change *t)
{
    struct replay_template template = {.hash = strtoull(t->id, NULL, 16)};
    if (!bytes_of(t->doc, &template.bytes)) {
        str_done(&template.bytes);
        return bad_record(t, "its bytes are not base64");
    }
    map_add(&t->r->templates_by_hash, template.hash, (uint32_t)t->r->templates.len);
    vec_push(&t->r->templates, template);
    return 0;
}

static bool template_find(const struct replay_change *t, struct proto_reader *ret)
{
    uint64_t hash = strtoull(text_of(t->doc, "t"), NULL, 16);
    uint32_t i = map_find(&t->r->templates_by_hash, hash, template_same, t->r, &hash);
    if (i == MAP_NONE)
        return false;
    const struct str *bytes = &t->r->templates.at[i].bytes;
    *ret = proto_reader(str_text(bytes), bytes->len);
    return true;
}

/* ---- inputs of the cache ---------------------------------------------------------------------------------------- */

static void input_take(const struct replay_change *t, const struct cache_change *in)
{
    struct replay_state *r = t->r;
    if (!cache_change_apply(r->cache, in, r->base) && !r->odd[0])
        (void)snprintf(r->odd, sizeof r->odd, "%s/%.200s differs from what was recorded", journal_words[t->word],
                       t->id);
}

static int object_take(const struct replay_change *t)
{
    const char *colon = strchr(t->id, ':');
    CLEANUP(str) struct str namespace = {0}, bytes = {0};
    bool gone = json_is_null(t->doc) || json_object_get(t->doc, "gone");
    if (colon)
        str_add_bytes(&namespace, t->id, (size_t)(colon - t->id));
    const struct kube_object o = {.namespace = str_text(&namespace),
                                  .name = colon ? colon + 1 : t->id,
                                  .uid = text_of(t->doc, gone ? "gone" : "uid"),
                                  .version = (uint64_t)number_of(t->doc, "version")};
    struct cache_change in = {
        .op = gone ? CACHE_OP_DROP : CACHE_OP_PUT,
        .kind = (enum cache_kind)t->word,
        .object = &o,
        .created_ns = number_of(t->doc, "created"),
        .deleted_ns = number_of(t->doc, "deleted"),
        .bound_ns = number_of(t->doc, "bound"),
        .owner = text_of(t->doc, "job"),
        .node = {text_of(t->doc, "node"), strlen(text_of(t->doc, "node"))},
        .instance = (uint64_t)number_of(t->doc, "instance")
    };
    in.known = !gone && in.kind == CACHE_POD && !json_object_get(t->doc, "t");
    if (!gone && in.kind == CACHE_POD && !in.known && !template_find(t, &in.kept))
        return bad_record(t, "its template is not there");
    if (!gone && in.kind != CACHE_POD) {
        if (!bytes_of(t->doc, &bytes))
            return bad_record(t, "its bytes are not base64");
        in.kept = proto_reader(str_text(&bytes), bytes.len);
    }
    input_take(t, &in);
    struct cache_pod_view pod;
    if (t->r->base && in.node.len && !in.instance && in.kind == CACHE_POD &&
        cache_pod_find(t->r->cache, strlen(t->id) > BERTH_NAME_MAX ? o.uid : t->id, &pod) && pod.instance)
        return bad_record(t, "its instance is missing");
    return 0;
}

static int role_take(const struct replay_change *t)
{
    struct cache_change in = {.op = json_is_null(t->doc) ? CACHE_OP_ROLE_DROP : CACHE_OP_ROLE_PUT,
                              .id = t->id,
                              .namespace = text_of(t->doc, "namespace"),
                              .owner = text_of(t->doc, "job")};
    if (in.op == CACHE_OP_ROLE_PUT && !template_find(t, &in.kept))
        return bad_record(t, "its template is not there");
    input_take(t, &in);
    return 0;
}

static int place_take(const struct replay_change *t)
{
    VEC(uint64_t) waits = {0};
    size_t i;
    const json_t *one;
    json_array_foreach(json_object_get(t->doc, "waits"), i, one) vec_push(&waits, (uint64_t)json_integer_value(one));
    input_take(t, &(struct cache_change){
                      .op = t->word == WORD_TASKS ? CACHE_OP_TASK_ASSUME : CACHE_OP_ASSUME,
                      .id = t->id,
                      .name = text_of(t->doc, "name"),
                      .node = {text_of(t->doc, "node"), strlen(text_of(t->doc, "node"))},
                      .ordinal = (uint32_t)number_of(t->doc, "ordinal"),
                      .attempt = (uint32_t)number_of(t->doc, "attempt"),
                      .instance = (uint64_t)number_of(t->doc, "instance"),
                      .gpus = (uint64_t)number_of(t->doc, "gpus"),
                      .waits = waits.at,
                      .waits_len = waits.len
    });
    vec_done(&waits);
    return 0;
}

static int resources_apply(const struct replay_change *t)
{
    VEC(const char *) nodes = {0};
    size_t i;
    const json_t *one;
    json_array_foreach(json_object_get(t->doc, "not_on"), i, one) if (json_is_string(one))
        vec_push(&nodes, json_string_value(one));
    input_take(t, &(struct cache_change){.op = CACHE_OP_BACKOFF,
                                         .id = t->id,
                                         .failures = (uint32_t)number_of(t->doc, "failures"),
                                         .moment_ns = number_of(t->doc, "not_before"),
                                         .nodes = nodes.at,
                                         .nodes_len = nodes.len});
    vec_done(&nodes);
    return 0;
}

static const char *text_at(const json_t *list, size_t i)
{
    const char *text = json_string_value(json_array_get(list, i));
    return text ? text : "";
}

static int volumes_apply(const struct replay_change *t)
{
    VEC(struct cache_claim_volume) volumes = {0};
    size_t i;
    const json_t *v;
    json_array_foreach(json_object_get(t->doc, "volumes"), i, v)
        vec_push(&volumes, ((struct cache_claim_volume){text_at(v, 0), text_at(v, 1), text_at(v, 2), text_at(v, 3),
                                                        json_is_true(json_array_get(v, 4))}));
    input_take(t, &(struct cache_change){
                      .op = CACHE_OP_VOLUMES, .id = t->id, .volumes = volumes.at, .volumes_len = volumes.len});
    vec_done(&volumes);
    return 0;
}

static int simple_take(const struct replay_change *t)
{
    static const enum cache_op ops[WORDS] = {
        [WORD_SETTLE] = CACHE_OP_SETTLE,
        [WORD_PROMOTE] = CACHE_OP_PROMOTE,
        [WORD_FORGET] = CACHE_OP_FORGET,
        [WORD_STOPPING] = CACHE_OP_STOPPING,
        [WORD_REPORTED] = CACHE_OP_REPORTED,
        [WORD_ROLE_CHANGED] = CACHE_OP_ROLE_CHANGED,
        [WORD_TASK_ENDS] = CACHE_OP_TASK_SUCCEEDED,
        [WORD_TASKS_RERUN] = CACHE_OP_TASKS_RERUN,
        [WORD_RENEW] = CACHE_OP_IMAGE_END,
    };
    struct cache_change in = {.op = ops[t->word],
                              .id = t->id,
                              .instance = strtoull(t->id, NULL, 10),
                              .moment_ns = number_of(t->doc, "not_before"),
                              .stopping = json_is_true(json_object_get(t->doc, "on")),
                              .ordinal = (uint32_t)number_of(t->doc, "ordinal"),
                              .places = (size_t)number_of(t->doc, "places")};
    if (in.op == CACHE_OP_TASK_SUCCEEDED)
        in.instance = (uint64_t)number_of(t->doc, "instance");
    else if (in.op == CACHE_OP_IMAGE_END)
        in.instance = (uint64_t)number_of(t->doc, "instances");
    else if (in.op == CACHE_OP_SETTLE || in.op == CACHE_OP_ROLE_CHANGED || in.op == CACHE_OP_TASKS_RERUN)
        in.instance = 0;
    input_take(t, &in);
    if (in.op == CACHE_OP_IMAGE_END) {
        t->r->base = false;
        replay_numbers_clear(&t->r->numbers);
    }
    return 0;
}

/* ---- tenants ---------------------------------------------------------------------------------------------------- */

static int tenant_take(const struct replay_change *t)
{
    static const enum tenant_op ops[WORDS] = {
        [WORD_TENANTS] = TENANT_PUT,
        [WORD_TENANT_DROP] = TENANT_DROP,
        [WORD_TENANT_RECALL] = TENANT_RECALL,
        [WORD_TENANT_RECHECK] = TENANT_RECHECK,
        [WORD_TENANT_FORCE] = TENANT_FORCE,
        [WORD_TENANT_USAGE] = TENANT_USAGE,
        [WORD_TENANT_CLAIMED] = TENANT_CLAIMED,
    };
    const char *slash = strchr(t->id, '/');
    struct tenant_input in = {.op = ops[t->word], .name = slash ? slash + 1 : "", .spec = t->doc};
    unsigned kind = 0;
    while (slash && kind < KINDS &&
           (strlen(kinds[kind].plural) != (size_t)(slash - t->id) ||
            strncmp(kinds[kind].plural, t->id, (size_t)(slash - t->id)) != 0))
        kind++;
    if (kind == KINDS)
        return bad_record(t, "unknown kind");
    in.kind = (enum kind)kind;
    tenants_input_apply(t->r->tenants, &in);
    return 0;
}

static bool claim_same(const void *ctx, uint32_t value, const void *key)
{
    return strcmp(((const struct replay_state *)ctx)->claims.at[value].role, key) == 0;
}

static int claim_take(const struct replay_change *t)
{
    struct replay_state *r = t->r;
    uint64_t hash = hash_bytes(t->id, strlen(t->id), 0);
    uint32_t i = map_find(&r->claims_by_role, hash, claim_same, r, t->id);
    if (i == MAP_NONE) {
        i = (uint32_t)r->claims.len;
        vec_push(&r->claims, ((struct replay_claim){mem_strdup(t->id), NULL}));
        map_add(&r->claims_by_role, hash, i);
    }
    json_decref(r->claims.at[i].doc);
    r->claims.at[i].doc = json_incref((json_t *)(uintptr_t)t->doc);
    return 0;
}

static const char *claim_apply(const json_t *doc, struct tenants *tenants, struct arena *arena,
                               struct berth_workload *w)
{
    const json_t *times = json_object_get(doc, "times"), *flags = json_object_get(doc, "flags");
    const json_t *attributes = json_object_get(doc, "attributes");
    size_t len = json_array_size(attributes);
    struct berth_label *labels = ARENA_ARRAY(arena, struct berth_label, len);
    int64_t ns[6];
    bool on[4];
    for (size_t i = 0; i < 6; i++)
        ns[i] = json_integer_value(json_array_get(times, i));
    for (size_t i = 0; i < 4; i++)
        on[i] = json_integer_value(json_array_get(flags, i)) != 0;
    for (size_t i = 0; i < len; i++)
        labels[i] =
            (struct berth_label){text_at(json_array_get(attributes, i), 0), text_at(json_array_get(attributes, i), 1)};
    const struct job_claim claim = {.namespace = text_of(doc, "namespace"),
                                    .name = text_of(doc, "name"),
                                    .user = json_string_value(json_object_get(doc, "user")),
                                    .queue = json_string_value(json_object_get(doc, "queue")),
                                    .type = json_string_value(json_object_get(doc, "type")),
                                    .class_name = json_string_value(json_object_get(doc, "class")),
                                    .network = json_string_value(json_object_get(doc, "network")),
                                    .attributes = labels,
                                    .attributes_len = len,
                                    .parameters = number_of(doc, "parameters"),
                                    .tasks = (uint32_t)number_of(doc, "tasks"),
                                    .min = (uint32_t)number_of(doc, "min"),
                                    .priority = (int32_t)number_of(doc, "priority"),
                                    .created_ns = ns[0],
                                    .begin_ns = ns[1],
                                    .deadline_ns = ns[2],
                                    .limit_ns = ns[3],
                                    .estimate_ns = ns[4],
                                    .min_run_ns = ns[5],
                                    .suspended = on[0],
                                    .gang = on[1],
                                    .unpreemptible = on[2],
                                    .never_preempts = on[3]};
    return job_claim_apply(&claim, tenants, arena, w);
}

static const char *on_claim(void *ctx, const char *role, struct arena *arena, struct berth_workload *w)
{
    struct replay_state *r = ctx;
    uint32_t i = map_find(&r->claims_by_role, hash_bytes(role, strlen(role), 0), claim_same, r, role);
    if (i == MAP_NONE || !json_is_object(r->claims.at[i].doc))
        return JOB_CLAIM_GONE;
    return claim_apply(r->claims.at[i].doc, r->tenants, arena, w);
}

/* Tasks are not reported to jobs: the record contains what followed. */
static void on_task(void *ctx, const struct cache_task_view *task)
{
    (void)ctx;
    (void)task;
}

/* ---- a base ----------------------------------------------------------------------------------------------------- */

static void clear(struct replay_state *r)
{
    cache_free(r->cache);
    tenants_free(r->tenants);
    for (size_t i = 0; i < r->schedulers_len; i++) {
        mem_free(r->schedulers[i]);
        mem_free(r->profiles[i]);
    }
    mem_free(r->schedulers);
    mem_free(r->profiles);
    for (size_t i = 0; i < r->templates.len; i++)
        str_done(&r->templates.at[i].bytes);
    for (size_t i = 0; i < r->claims.len; i++) {
        mem_free(r->claims.at[i].role);
        json_decref(r->claims.at[i].doc);
    }
    vec_done(&r->templates);
    vec_done(&r->claims);
    replay_numbers_clear(&r->numbers);
    map_done(&r->templates_by_hash);
    map_done(&r->claims_by_role);
    struct str text = r->text, bytes = r->bytes;
    *r = (struct replay_state){.text = text, .bytes = bytes};
}

void replay_state_done(struct replay_state *r)
{
    clear(r);
    str_done(&r->text);
    str_done(&r->bytes);
}

/* Version 1 has one profile for all names. */
static bool are_profiles_known(const json_t *profiles, size_t schedulers_len)
{
    for (size_t i = 0; i < json_array_size(profiles); i++)
        if (text_at(profiles, i)[0] && !berth_profile_find(text_at(profiles, i)))
            return false;
    return !profiles || json_array_size(profiles) == schedulers_len;
}

static int base_take(const struct replay_change *t)
{
    struct replay_state *r = t->r;
    const json_t *names = json_object_get(t->doc, "schedulers"), *profiles = json_object_get(t->doc, "profiles");
    const struct berth_profile *profile = berth_profile_find(text_of(t->doc, "profile"));
    if (number_of(t->doc, "version") != 1 && number_of(t->doc, "version") != 2)
        return err_set(t->err, ENOTSUP, "this journal was written by a newer berth-kube; use that one to replay it");
    if (!profile || !are_profiles_known(profiles, json_array_size(names)))
        return bad_record(t, "unknown profile");
    if (json_array_size(names) == 0)
        return bad_record(t, "it has no scheduler names");
    clear(r);
    r->schedulers_len = json_array_size(names);
    r->schedulers = mem_array(r->schedulers_len, sizeof *r->schedulers);
    r->profiles = mem_array(r->schedulers_len, sizeof *r->profiles);
    for (size_t i = 0; i < r->schedulers_len; i++) {
        r->schedulers[i] = mem_strdup(text_at(names, i));
        r->profiles[i] = mem_strdup(profiles ? text_at(profiles, i) : "");
    }
    kube_policy_init(&r->policy, profile, (const char *const *)r->profiles, r->schedulers_len);
    r->tenants = tenants_new(NULL, NULL);
    r->cache = cache_new(&(struct cache_config){.tenants = r->tenants,
                                                .schedulers = (const char *const *)r->schedulers,
                                                .schedulers_len = r->schedulers_len,
                                                .profiles = (const char *const *)r->profiles,
                                                .claim = on_claim,
                                                .task = on_task,
                                                .ctx = r});
    r->base = true;
    return 0;
}

/* ---- changes ---------------------------------------------------------------------------------------------------- */

static int take(const struct replay_change *t)
{
    struct berth_err why = {0};
    if (replay_validate_change(t->word, t->id, t->doc, t->r->base, &t->r->numbers, &why) < 0)
        return bad_record(t, why.text);
    switch ((int)t->word) {
    case WORD_BASE: return base_take(t);
    case WORD_TEMPLATES: return template_take(t);
    case WORD_ROLES: return role_take(t);
    case WORD_ROLE_CLAIMS: return claim_take(t);
    case WORD_ASSUME:
    case WORD_TASKS: return place_take(t);
    case WORD_BACKOFF: return resources_apply(t);
    case WORD_CLAIM_VOLUMES: return volumes_apply(t);
    default: break;
    }
    if (t->word < WORD_SETTLE)
        return object_take(t);
    return t->word >= WORD_TENANTS ? tenant_take(t) : simple_take(t);
}

static enum journal_word word_of(const char *key, const char **ret_id)
{
    size_t len = strcspn(key, "/");
    for (unsigned w = 0; w < WORDS; w++)
        if (strlen(journal_words[w]) == len && memcmp(journal_words[w], key, len) == 0) {
            *ret_id = key[len] ? key + len + 1 : "";
            return (enum journal_word)w;
        }
    return WORDS;
}

int replay_state_apply(struct replay_state *r, struct bytes change, enum journal_word *ret_word, struct berth_err *err)
{
    struct bytes key, doc;
    const char *at = NULL, *id;
    str_clear(&r->text);
    if (!scan_next(change, &at, &key) || !scan_text(key, &r->text) || !scan_next(change, &at, &doc))
        return err_set(err, EBADMSG, "a change must be a key and a document");
    enum journal_word word = word_of(str_text(&r->text), &id);
    if (word == WORDS)
        return err_set(err, EBADMSG, "unknown input '%.80s'", str_text(&r->text));
    json_t *tree = json_loadb(doc.at, doc.len, JSON_DECODE_ANY, NULL);
    const struct replay_change t = {r, word, id, tree, err};
    int rc = !tree                            ? bad_record(&t, "it is not JSON")
             : word != WORD_BASE && !r->cache ? bad_record(&t, "no base precedes it")
                                              : take(&t);
    json_decref(tree);
    journal_hash_add(&r->hashes, word, change.at, change.len);
    *ret_word = word;
    return rc;
}
