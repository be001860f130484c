#include "control/explain/holders.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "control/control_parts.h"
#include "control/state/sync.h"
#include "control/system/settings_table.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"
#include "wire/text/moment.h"
#include "wire/text/words.h"

enum { RECORDS_MAX = 200000, SHOWN_MAX = 1000, NODES_MAX = 1000, NODES_DEFAULT = 250, PAGE_MAX = 2000 };
#define SECOND_NS INT64_C(1000000000)
#define HOUR_NS (3600 * SECOND_NS)

bool holder_show(const struct request *c, const char *owner, const char *group, json_t *to)
{
    bool sees = permit(&c->caller, PERMIT_READ, owner, group);
    struct arena arena;
    arena_init(&arena);
    const char *quoted = sees ? "user" : system_setting_text(c->state, SETTING_HOLDER_SHOWN, &arena);
    if (strcmp(quoted, "nobody") != 0 && *group)
        (void)json_object_set_new(to, "group", json_string(group));
    if (strcmp(quoted, "user") == 0 && *owner)
        (void)json_object_set_new(to, "owner", json_string(owner));
    arena_done(&arena);
    return sees;
}

/* ---- expected ends ---------------------------------------------------------------------------------------------- */

struct holder_times holder_times(const struct request *c, const struct object *work)
{
    struct arena arena;
    struct work_doc d;
    if (!work || work->kind != KIND_JOB)
        return (struct holder_times){0};
    arena_init(&arena);
    CLEANUP(json) json_t *doc = object_doc(work);
    struct holder_times t = {0};
    if (work_doc_read(doc, &arena, &d, NULL) == 0) {
        struct berth_workload w = {0};
        sync_times(c->state, &d, &w);
        t = (struct holder_times){.estimate_ns = w.estimate_ns, .limit_ns = w.limit_ns, .guess = w.predicted};
    }
    arena_done(&arena);
    if (!t.estimate_ns && t.limit_ns) {
        t.estimate_ns = t.limit_ns;
    } else if (!t.estimate_ns) {
        int64_t default_s = system_setting_number(c->state, SETTING_ESTIMATE_S);
        t.estimate_ns = default_s ? default_s * SECOND_NS : HOUR_NS;
        t.guess = true;
    }
    return t;
}

int64_t holder_end_ns(const struct request *c, const struct holder_times *t, const struct object *instance,
                      bool *ret_guess)
{
    const struct instance_view *v = instance->instance;
    int64_t start_ns = v->started_ns ? v->started_ns : v->since_ns, estimate_ns = t->estimate_ns;
    *ret_guess = t->guess;
    if (!estimate_ns)
        return BERTH_NEVER_NS;
    if (estimate_ns <= c->now_ns - start_ns)
        *ret_guess = true; /* the run time beyond an estimate is a guess */
    while (estimate_ns <= c->now_ns - start_ns)
        estimate_ns *= 2;
    if (t->limit_ns && estimate_ns >= t->limit_ns) {
        estimate_ns = t->limit_ns;
        *ret_guess = false;
    }
    return start_ns + estimate_ns < c->now_ns ? c->now_ns : start_ns + estimate_ns;
}

/* ---- one holder ------------------------------------------------------------------------------------------------- */

static json_t *devices_json(uint64_t gpus)
{
    json_t *list = json_array();
    for (unsigned i = 0; i < BERTH_NODE_GPUS_MAX; i++)
        if (gpus >> i & 1)
            (void)json_array_append_new(list, json_sprintf("gpu%u", i));
    return list;
}

static void time_set(json_t *to, const char *key, int64_t ns)
{
    char text[TIMESTAMP_MAX];
    if (ns > 0 && ns != BERTH_NEVER_NS)
        (void)json_object_set_new(to, key, json_string(timestamp_text(ns, text)));
}

static uint64_t gpus_of(const struct object *instance, struct arena *arena)
{
    struct instance_doc d;
    CLEANUP(json) json_t *doc = object_doc(instance);
    return instance_doc_read(doc, arena, &d, NULL) == 0 ? d.instance.gpus : 0;
}

json_t *holder_json(const struct request *c, const struct object *instance)
{
    const struct instance_view *v = instance->instance;
    struct arena arena;
    json_t *item = json_pack("{s:s, s:s}", "node", v->node, "state", berth_state_name(v->state));
    const struct object *work = state_find_work(c->state, v->workload);
    arena_init(&arena);
    uint64_t gpus = gpus_of(instance, &arena);
    arena_done(&arena);
    if (gpus)
        (void)json_object_set_new(item, "devices", devices_json(gpus));
    if (holder_show(c, instance->owner, instance->group, item)) {
        (void)json_object_set_new(item, "workload", json_string(v->workload));
        (void)json_object_set_new(item, "instance", json_integer((json_int_t)v->number));
        (void)json_object_set_new(item, "ordinal", json_integer(v->ordinal));
        if (work)
            (void)json_object_set_new(item, "kind", json_string(kinds[work->kind].name));
        if (work && *work->work->name)
            (void)json_object_set_new(item, "name", json_string(work->work->name));
    }
    time_set(item, "since", v->started_ns ? v->started_ns : v->since_ns);
    struct holder_times times = holder_times(c, work);
    bool guess;
    int64_t end_ns = holder_end_ns(c, &times, instance, &guess);
    time_set(item, "until", end_ns);
    if (guess && end_ns != BERTH_NEVER_NS)
        (void)json_object_set_new(item, "until_guess", json_true());
    return item;
}

/* ---- the past --------------------------------------------------------------------------------------------------- */

struct holders_query {
    const char *node;
    int device; /* -1: all devices */
    int64_t at_ns;
    bool past;
};

static bool device_fits(const struct holders_query *a, uint64_t gpus)
{
    return a->device < 0 || gpus >> a->device & 1;
}

static int64_t moment_of(const json_t *doc, const char *key)
{
    int64_t ns = 0;
    return timestamp_parse(json_object_get(doc, key), &ns, NULL) == 0 ? ns : 0;
}

static uint64_t devices_of(const json_t *doc)
{
    uint64_t gpus = 0;
    size_t i;
    json_t *device;
    json_array_foreach(json_object_get(doc, "gpus"), i, device)
    {
        json_int_t n = json_integer_value(device);
        if (n >= 0 && n < BERTH_NODE_GPUS_MAX)
            gpus |= (uint64_t)1 << n;
    }
    return gpus;
}

/* Tells whether the instance still exists. Its usage records are skipped then: present_add lists the instance. */
static bool instance_exists(const struct request *c, const json_t *doc)
{
    char id[24];
    const struct object *o = state_find(c->state, KIND_INSTANCE,
                                        str_u64((uint64_t)json_integer_value(json_object_get(doc, "instance")), id));
    return o && o->instance->state != BERTH_ENDED;
}

static void record_add(struct request *c, const struct holders_query *a, const struct object *record, json_t *items)
{
    CLEANUP(json) json_t *doc = object_doc(record);
    const char *node = json_string_value(json_object_get(doc, "node"));
    const char *workload = json_string_value(json_object_get(doc, "workload"));
    uint64_t gpus = devices_of(doc);
    int64_t start_ns = moment_of(doc, "start"), end_ns = moment_of(doc, "end"), began_ns = moment_of(doc, "began");
    if (!node || strcmp(node, a->node) != 0 || start_ns > a->at_ns || end_ns <= a->at_ns || !device_fits(a, gpus) ||
        instance_exists(c, doc))
        return;
    json_t *item = json_pack("{s:s, s:s}", "node", node, "state", "ended");
    if (gpus)
        (void)json_object_set_new(item, "devices", devices_json(gpus));
    if (holder_show(c, record->owner, record->group, item) && workload) {
        static const char *const told[] = {"kind", "name", "instance", "ordinal"};
        (void)json_object_set_new(item, "workload", json_string(workload));
        for (size_t i = 0; i < sizeof told / sizeof *told; i++)
            if (json_object_get(doc, told[i]))
                (void)json_object_set(item, told[i], json_object_get(doc, told[i]));
    }
    time_set(item, "since", began_ns ? began_ns : start_ns);
    time_set(item, "until", end_ns);
    (void)json_array_append_new(items, item);
}

/* Newest first: recent times are asked for most often. */
static bool past_add(struct request *c, const struct holders_query *a, json_t *items)
{
    size_t len;
    const struct object *const *records = state_list(c->state, KIND_USAGE_RECORD, &len);
    for (size_t i = len; i-- > 0;) {
        const struct usage_view *v = records[i]->usage;
        if (len - i > RECORDS_MAX)
            return false;
        if (v->start_ns <= a->at_ns && v->end_ns > a->at_ns &&
            memmem(records[i]->doc.at, records[i]->doc.len, a->node, strlen(a->node)))
            record_add(c, a, records[i], items);
    }
    return true;
}

/* ---- the route -------------------------------------------------------------------------------------------------- */

static int device_split(struct request *c, const char *text, struct holders_query *ret)
{
    const char *slash = strrchr(text, '/');
    int64_t n;
    char quoted[QUOTE_MAX];
    if (!slash || strncmp(slash + 1, "gpu", 3) != 0 || !str_parse_i64(slash + 4, &n) || n < 0 ||
        n >= BERTH_NODE_GPUS_MAX)
        return err_set(&c->err, EINVAL, "device: expected NODE/gpuN, not %s", quote(text, quoted));
    ret->node = arena_strndup(&c->arena, text, (size_t)(slash - text));
    ret->device = (int)n;
    return 0;
}

static int holders_query_read(struct request *c, struct holders_query *ret)
{
    const char *node = request_query(c, "node"), *device = request_query(c, "device"), *at = request_query(c, "at");
    *ret = (struct holders_query){.node = node, .device = -1, .at_ns = c->now_ns};
    if (!node == !device)
        return err_set(&c->err, EINVAL, "give either node=NODE or device=NODE/gpuN");
    int rc = device ? device_split(c, device, ret) : 0;
    if (rc == 0 && at) {
        rc = timestamp_parse_text(at, &ret->at_ns, &c->err);
        ret->past = true;
    }
    if (rc == 0 && ret->at_ns > c->now_ns)
        return err_set(&c->err, EINVAL, "at: expected a time in the past");
    return rc;
}

/* Adds the existing instances that hold part of the node now or, for a past time, held it then; up to `max` items. */
static void present_add(struct request *c, const struct holders_query *a, const struct object *node, size_t max,
                        json_t *items)
{
    for (size_t i = 0; i < node->node->instances_len && json_array_size(items) < max; i++) {
        const struct object *o = node->node->instances[i];
        const struct instance_view *v = o->instance;
        int64_t since_ns = v->started_ns ? v->started_ns : v->since_ns;
        if (v->state == BERTH_ENDED || v->state == BERTH_RESERVED || (a->past && since_ns > a->at_ns))
            continue;
        if (device_fits(a, a->device < 0 ? 0 : gpus_of(o, &c->arena)))
            (void)json_array_append_new(items, holder_json(c, o));
    }
}

/* Lists the holders of all nodes in pages, ordered by node id. */
static int holders_all(struct request *c)
{
    const struct holders_query a = {.device = -1, .at_ns = c->now_ns};
    const char *after = request_query(c, "after");
    char at[TIMESTAMP_MAX];
    uint64_t limit = 0;
    size_t len;
    if (request_query(c, "node") || request_query(c, "device") || request_query(c, "at"))
        return err_set(&c->err, EINVAL, "all=true lists all nodes at present: leave out node, device and at");
    int rc = request_query_number(c, "limit", 1, NODES_MAX, NODES_DEFAULT, &limit);
    if (rc < 0)
        return rc;
    const struct object *const *nodes = state_list(c->state, KIND_NODE, &len);
    size_t i = 0;
    while (after && i < len && strcmp(nodes[i]->id, after) <= 0)
        i++;
    json_t *items = json_array();
    for (; i < len && limit > 0 && json_array_size(items) < PAGE_MAX;
         i++, limit--) /* bounded, because other requests wait meanwhile */
        present_add(c, &a, nodes[i], SIZE_MAX, items);
    c->answer.body = json_pack("{s:s, s:o, s:I}", "at", timestamp_text(a.at_ns, at), "items", items, "revision",
                               (json_int_t)state_revision(c->state));
    if (i < len)
        (void)json_object_set_new(c->answer.body, "continue", json_string(nodes[i - 1]->id));
    return 0;
}

int holders_run(struct request *c)
{
    struct holders_query a;
    char at[TIMESTAMP_MAX];
    const char *all = request_query(c, "all");
    if (all && strcmp(all, "true") == 0)
        return holders_all(c);
    int rc = holders_query_read(c, &a);
    if (rc < 0)
        return rc;
    const struct object *node = request_object(c, KIND_NODE, a.node, PERMIT_CLUSTER);
    if (!node)
        return -c->err.code;
    a.node = node->id;
    json_t *items = json_array();
    bool whole = !a.past || past_add(c, &a, items);
    present_add(c, &a, node, SHOWN_MAX, items);
    c->answer.body = json_pack("{s:s, s:s, s:o}", "node", node->id, "at", timestamp_text(a.at_ns, at), "items", items);
    if (a.device >= 0)
        (void)json_object_set_new(c->answer.body, "device", json_sprintf("gpu%d", a.device));
    if (!whole)
        (void)json_object_set_new(c->answer.body, "incomplete", json_true());
    return 0;
}
