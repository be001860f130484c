#include "control/tenant/usage.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/plant.h"
#include "control/job/predict.h"
#include "control/node/node.h"
#include "control/state/sync.h"
#include "control/system/settings_table.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"
#include "wire/text/moment.h"
#include "wire/text/quantity.h"

#define SECOND_NS INT64_C(1000000000)
enum { CUT_AT_ONCE = 500 };

/* ---- records ---------------------------------------------------------------------------------------------------- */

static void put_text(json_t *doc, const char *key, const char *text)
{
    if (text && *text)
        (void)json_object_set_new(doc, key, json_string(text));
}

static void put_time(json_t *doc, const char *key, int64_t ns)
{
    char text[TIMESTAMP_MAX];
    (void)json_object_set_new(doc, key, json_string(timestamp_text(ns, text)));
}

/* Returns the requested resources, whether the instance used them or not. */
static json_t *requested_resources(const struct berth_shape *shape)
{
    char text[QUANTITY_TEXT_MAX];
    json_t *all = json_object();
    for (size_t i = 0; i < shape->requests_len; i++)
        (void)json_object_set_new(
            all, shape->requests[i].resource,
            json_string(quantity_print(shape->requests[i].resource, shape->requests[i].amount, text)));
    int64_t milli = (int64_t)shape->gpu.count * (shape->gpu.milli ? shape->gpu.milli : BERTH_GPU_MILLI);
    if (milli) /* thousandths of a GPU, written like cores */
        (void)json_object_set_new(all, "gpu", json_string(quantity_print("cpu", milli, text)));
    return all;
}

/* Returns the start of the run, or of its part without a record; 0: the instance never ran. */
static int64_t began_ns(const struct instance_view *v, const struct usage_end *end)
{
    if (v->started_ns)
        return v->counted_ns > v->started_ns ? v->counted_ns : v->started_ns;
    bool ran = end->exit_reported || strcmp(end->outcome, "ended") == 0;
    return ran && v->state != BERTH_RESERVED ? v->since_ns : 0;
}

/* Returns the time limit of the tasks: the job's, or the queue's. */
static int64_t limit_in_force(const struct state *s, const struct work_doc *d)
{
    const char *queue = d->job.queue && *d->job.queue ? d->job.queue : QUEUE_DEFAULT;
    return d->job.time_limit_ns ? d->job.time_limit_ns : queue_terms(s, queue).time_limit_ns;
}

static json_t *record_make(const struct change *c, const struct object *instance, const json_t *doc,
                           const struct usage_end *end, int64_t start_ns)
{
    const struct instance_view *v = instance->instance;
    struct work_doc d = {0};
    CLEANUP(json) json_t *work = instance_work_doc(c->state, instance);
    const struct object *of = state_find_work(c->state, v->workload);
    bool known = work && work_doc_read(work, c->arena, &d, NULL) == 0;
    json_t *record =
        json_pack("{s:I, s:s, s:s, s:I, s:s, s:s, s:f}", "instance", (json_int_t)v->number, "kind",
                  of ? kinds[of->kind].name : "", "workload", v->workload, "ordinal", (json_int_t)v->ordinal, "node",
                  v->node, "outcome", end->outcome, "seconds", (double)(end->at_ns - start_ns) / 1e9);
    assert(record);
    put_text(record, "owner", instance->owner);
    put_text(record, "group", instance->group);
    put_time(record, "start", start_ns);
    if (v->started_ns && v->started_ns < start_ns)
        put_time(record, "began", v->started_ns);
    put_time(record, "end", end->at_ns);
    if (end->exit_reported)
        (void)json_object_set_new(record, "exit", json_integer(end->exit));
    if (!known)
        return record;
    put_text(record, "name", d.name);
    put_text(record, "class", d.job.class_name);
    if (d.job.class_name && *d.job.class_name)
        (void)json_object_set_new(record, "beside",
                                  predict_neighbour_classes(c->state, instance, start_ns, end->at_ns));
    if (of && of->kind == KIND_JOB)
        put_text(record, "queue", d.job.queue && *d.job.queue ? d.job.queue : "default");
    if (d.job.estimate_ns)
        (void)json_object_set_new(record, "estimate", json_real((double)d.job.estimate_ns / 1e9));
    int64_t limit_ns = of && of->kind == KIND_JOB ? limit_in_force(c->state, &d) : 0;
    if (limit_ns)
        (void)json_object_set_new(record, "limit", json_real((double)limit_ns / 1e9));
    if (work_tasks(&d) > 1)
        (void)json_object_set_new(record, "tasks", json_integer(work_tasks(&d)));
    (void)json_object_set_new(record, "resources", requested_resources(&d.workload.shape));
    const json_t *gpus = json_object_get(doc, "gpus"), *peak = json_object_get(doc, "peak");
    if (gpus)
        (void)json_object_set_new(record, "gpus", json_deep_copy(gpus));
    if (peak)
        (void)json_object_set_new(record, "used", json_deep_copy(peak));
    return record;
}

const char *usage_outcome(const char *word)
{
    static const char *const words[] = {"ended", "failed", "stopped", "lost", "removed", USAGE_RUNNING};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i], word) == 0)
            return words[i];
    return "";
}

void usage_note(struct change *c, const struct object *instance, const json_t *doc, const struct usage_end *end)
{
    char number[24];
    int64_t start_ns = began_ns(instance->instance, end);
    if (!start_ns || PLANTED(USAGE_UNTOLD))
        return;
    struct usage_end at = *end;
    at.at_ns = end->at_ns > start_ns ? end->at_ns : start_ns;
    const char *id = str_u64(state_next_number(c->state, KIND_USAGE_RECORD), number);
    change_put(c, KIND_USAGE_RECORD, id, record_make(c, instance, doc, &at, start_ns));
}

void usage_note_removed(struct change *c, const struct object *instance, const char *outcome, int64_t now_ns)
{
    const struct object *node = state_find(c->state, KIND_NODE, instance->instance->node);
    CLEANUP(json) json_t *doc = object_doc(instance);
    /* What happened after the node's last report is unknown and is not charged. */
    bool lost = node && node->node->state == BERTH_NODE_LOST && node->node->since_ns < now_ns;
    struct usage_end end = {.outcome = outcome, .at_ns = lost ? node->node->since_ns : now_ns};
    if (instance->instance->state != BERTH_ENDED) /* an ended instance was counted when it ended */
        usage_note(c, instance, doc, &end);
}

void usage_cut(struct change *c, int64_t now_ns)
{
    size_t len, cut = 0;
    const struct object *const *list = state_list(c->state, KIND_INSTANCE, &len);
    int64_t every_ns = system_setting_number(c->state, SETTING_USAGE_CUT_S) * SECOND_NS;
    struct usage_end end = {.outcome = USAGE_RUNNING, .at_ns = now_ns};
    for (size_t i = 0; i < len && cut < CUT_AT_ONCE; i++) {
        const struct instance_view *v = list[i]->instance;
        int64_t from_ns = began_ns(v, &end);
        if (v->state == BERTH_ENDED || !from_ns || now_ns - from_ns < every_ns)
            continue;
        json_t *doc = change_edit(c, KIND_INSTANCE, list[i]->id);
        usage_note(c, list[i], doc, &end);
        put_time(doc, "counted", now_ns);
        cut++;
    }
}

/* ---- reading records -------------------------------------------------------------------------------------------- */

static const char *text_of_key(const json_t *doc, const char *key)
{
    const char *text = json_string_value(json_object_get(doc, key));
    return text ? text : "";
}

static int amounts_of(const json_t *doc, struct usage_row *row, struct berth_err *err)
{
    const char *resource;
    json_t *value;
    json_object_foreach(json_object_get(doc, "resources"), resource, value)
    {
        struct berth_amount *a = &row->amounts[row->amounts_len];
        if (row->amounts_len == USAGE_RESOURCES_MAX - 1)
            break;
        int rc = strcmp(resource, "gpu") == 0 ? ratio_parse(value, &a->amount, err)
                                              : quantity_parse(resource, value, &a->amount, err);
        if (rc < 0)
            return err_prefix(err, "resources.%s", resource);
        a->resource = resource;
        row->amounts_len++;
    }
    row->amounts[row->amounts_len++] = (struct berth_amount){"pods", 1};
    return 0;
}

/* Rounds to whole nanoseconds: the written value was one. */
static int64_t nanoseconds_of(const json_t *seconds)
{
    double s = json_number_value(seconds);
    return s > 0 && s < 9e9 ? (int64_t)(s * 1e9 + 0.5) : 0;
}

static uint32_t tasks_of(const json_t *tasks)
{
    json_int_t n = json_integer_value(tasks);
    return n > 1 && n <= BERTH_REPLICAS_MAX ? (uint32_t)n : 1;
}

int usage_row_read(const json_t *doc, struct usage_row *ret, struct berth_err *err)
{
    struct usage_row row = {
        .kind = text_of_key(doc, "kind"),
        .workload = text_of_key(doc, "workload"),
        .name = text_of_key(doc, "name"),
        .owner = text_of_key(doc, "owner"),
        .group = text_of_key(doc, "group"),
        .queue = text_of_key(doc, "queue"),
        .node = text_of_key(doc, "node"),
        .outcome = text_of_key(doc, "outcome"),
        .class_name = text_of_key(doc, "class"),
        .estimate_ns = (int64_t)(json_number_value(json_object_get(doc, "estimate")) * 1e9),
        .limit_ns = nanoseconds_of(json_object_get(doc, "limit")),
        .ordinal = (uint32_t)json_integer_value(json_object_get(doc, "ordinal")),
        .tasks = tasks_of(json_object_get(doc, "tasks")),
    };
    const json_t *start = json_object_get(doc, "start"), *end = json_object_get(doc, "end");
    if (!start || !end)
        return err_set(err, EBADMSG, "a usage record without start and end");
    const json_t *began = json_object_get(doc, "began");
    int rc = timestamp_parse(start, &row.start_ns, err);
    row.began_ns = row.start_ns;
    if (rc == 0 && began)
        rc = timestamp_parse(began, &row.began_ns, err);
    if (rc == 0)
        rc = timestamp_parse(end, &row.end_ns, err);
    if (rc == 0)
        rc = amounts_of(doc, &row, err);
    if (rc < 0)
        return rc;
    const json_t *memory = json_object_get(json_object_get(doc, "used"), "memory");
    if (memory && quantity_parse("memory", memory, &row.memory_peak, NULL) < 0)
        row.memory_peak = 0;
    *ret = row;
    return 0;
}

int64_t usage_row_amount(const struct usage_row *row, const char *resource)
{
    for (size_t i = 0; i < row->amounts_len; i++)
        if (strcmp(row->amounts[i].resource, resource) == 0)
            return row->amounts[i].amount;
    return 0;
}

bool usage_spent(const struct state *s, const char *quota, const char *resource, int64_t *ret_spent,
                 int64_t *ret_since_ns)
{
    const struct object *o = state_find(s, KIND_SPENT, quota);
    CLEANUP(json) json_t *doc = o ? object_doc(o) : NULL;
    const json_t *one = json_object_get(doc, resource), *since = json_object_get(one, "since");
    int64_t since_ns = 0;
    if (!one || (since && timestamp_parse(since, &since_ns, NULL) < 0))
        return false;
    *ret_spent = json_integer_value(json_object_get(one, "spent"));
    *ret_since_ns = since_ns;
    return true;
}
