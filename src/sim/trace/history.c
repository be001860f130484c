/* history.c - extracts jobs and nodes from the records of a journal. */
#include "sim/trace/history.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "control/kind/kind.h"
#include "journal/docset.h"
#include "journal/record.h"
#include "journal/scan.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"

/* ---- exclusions ------------------------------------------------------------------------------------------------- */

static const char *const drop_words[] = {"user", "group", "queue", "name", "node"};
enum { DROP_WORDS = sizeof drop_words / sizeof *drop_words };

int sim_exclusion_parse(const char *text, struct sim_exclusion *ret, char buf[static 256], struct berth_err *err)
{
    const char *equals = strchr(text, '=');
    (void)snprintf(buf, 256, "%s", text);
    if (equals && strlen(text) < 256)
        for (size_t i = 0; i < DROP_WORDS; i++)
            if (strlen(drop_words[i]) == (size_t)(equals - text) &&
                strncmp(drop_words[i], text, strlen(drop_words[i])) == 0) {
                *ret = (struct sim_exclusion){drop_words[i], buf + (equals - text) + 1};
                return 0;
            }
    return err_set(err, EINVAL,
                   "\"%s\": expected user=, group=, queue=, name= or node= and what it must be, like user=ann", text);
}

static bool is_dropped(const struct sim_history_options *o, const char *what, const char *value)
{
    for (size_t i = 0; i < o->drops_len; i++)
        if (strcmp(o->drops[i].what, what) == 0 && strcmp(o->drops[i].value, value ? value : "") == 0)
            return true;
    return false;
}

/* ---- records ---------------------------------------------------------------------------------------------------- */

/* Collects nodes as they are at the end, and the last document of each job and instance, including deleted ones. */
struct history_reader {
    const struct sim_history_options *o;
    struct berth_err *err;
    struct docset nodes, work;
    int64_t last_ns;
};

static bool is_node(const char *key)
{
    const char *id;
    return object_key_split(key, &id) == KIND_NODE;
}

static bool is_work(const char *key)
{
    const char *id;
    enum kind kind = object_key_split(key, &id);
    return kind == KIND_JOB || kind == KIND_INSTANCE;
}

static int document(void *ctx, const char *key, uint64_t revision, struct bytes doc)
{
    struct history_reader *r = ctx;
    docset_put(&r->nodes, key, revision, doc);
    docset_put(&r->work, key, revision, doc);
    return 0;
}

static int record(void *ctx, const struct store_record *record)
{
    struct history_reader *r = ctx;
    struct bytes changes = {0}, change, key, doc;
    CLEANUP(str) struct str text = {0};
    const char *at = NULL;
    if (journal_kind_has_prefix(record->record, JOURNAL_KUBE))
        return err_set(r->err, EBADMSG, "this is a journal of berth-kube, which cannot be played on; give a daemon's");
    int rc = docset_record(&r->nodes, record, r->err);
    if (rc || !scan_member(record->record, "changes", &changes))
        return rc;
    while (scan_next(changes, &at, &change)) {
        const char *in = NULL;
        str_clear(&text);
        if (scan_next(change, &in, &key) && scan_text(key, &text) && scan_next(change, &in, &doc) && doc.len > 0 &&
            *(const char *)doc.at == '{')
            docset_put(&r->work, str_text(&text), record->revision, doc);
    }
    int64_t now_ns = journal_record_ns(record);
    r->last_ns = now_ns > r->last_ns ? now_ns : r->last_ns;
    return 0;
}

static void progress(void *ctx, uint64_t done, uint64_t total)
{
    struct history_reader *r = ctx;
    if (r->o->progress)
        r->o->progress(r->o->ctx, done, total);
}

/* ---- nodes ------------------------------------------------------------------------------------------------------ */

static json_t *doc_of(const struct docset_document *d)
{
    return json_loadb(d->text, d->len, 0, NULL);
}

static void nodes_take(struct history_reader *r, struct sim_history *h)
{
    docset_sort(&r->nodes);
    h->docs = json_array();
    for (size_t i = 0; i < r->nodes.list.len; i++) {
        struct node_doc d;
        json_t *doc = doc_of(&r->nodes.list.at[i]);
        if (!doc || json_array_append_new(h->docs, doc) != 0 || node_doc_read(doc, &h->fleet.arena, &d, NULL) < 0 ||
            is_dropped(r->o, "node", d.meta.id))
            continue;
        d.node.id = arena_strdup(&h->fleet.arena, d.meta.id);
        d.node.state = BERTH_NODE_READY;
        d.node.used_len = 0; /* the use at that time does not apply to a simulation */
        vec_push(&h->fleet.nodes, d.node);
    }
}

static uint32_t node_find(const struct sim_history *h, const char *id)
{
    size_t low = 0, high = h->fleet.nodes.len; /* the nodes are sorted */
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = strcmp(h->fleet.nodes.at[middle].id, id);
        if (order == 0)
            return (uint32_t)middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return UINT32_MAX;
}

/* ---- instances -------------------------------------------------------------------------------------------------- */

struct history_task {
    uint64_t job;
    uint32_t ordinal, node;
    int64_t start_ns, end_ns; /* 0: no start, or no end, is recorded */
};

typedef VEC(struct history_task) task_list;

static int by_job(const void *a, const void *b)
{
    const struct history_task *x = a, *y = b;
    if (x->job != y->job)
        return x->job < y->job ? -1 : 1;
    if (x->ordinal != y->ordinal)
        return x->ordinal < y->ordinal ? -1 : 1;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static void task_take(const struct docset_document *from, const struct sim_history *h, struct arena *scratch,
                      task_list *tasks)
{
    CLEANUP(json) json_t *doc = doc_of(from);
    struct instance_doc d;
    if (!doc || instance_doc_read(doc, scratch, &d, NULL) < 0)
        return;
    bool ran = d.instance.state == BERTH_RUNNING || d.instance.state == BERTH_ENDED;
    struct history_task task = {
        .job = strtoull(d.instance.workload, NULL, 10),
        .ordinal = d.instance.ordinal,
        .node = d.instance.node ? node_find(h, d.instance.node) : UINT32_MAX,
        .start_ns = d.started_ns ? d.started_ns
                    : ran        ? d.instance.since_ns
                                 : 0,
        .end_ns = d.instance.state == BERTH_ENDED ? d.instance.since_ns : 0,
    };
    if (task.start_ns)
        vec_push(tasks, task);
}

/* Keeps the last attempt of each ordinal. */
static void tasks_keep_last(task_list *tasks)
{
    size_t kept = 0;
    if (tasks->len)
        qsort(tasks->at, tasks->len, sizeof *tasks->at, by_job);
    for (size_t i = 0; i < tasks->len; i++) {
        bool again =
            kept && tasks->at[kept - 1].job == tasks->at[i].job && tasks->at[kept - 1].ordinal == tasks->at[i].ordinal;
        kept -= again;
        tasks->at[kept++] = tasks->at[i];
    }
    tasks->len = kept;
}

static size_t tasks_find(const task_list *tasks, uint64_t job)
{
    size_t low = 0, high = tasks->len;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (tasks->at[middle].job < job)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---- jobs ------------------------------------------------------------------------------------------------------- */

struct history_build {
    struct history_reader *r;
    struct sim_history *h;
    task_list tasks;
    VEC(struct sim_history_run) runs; /* in order of insertion; until sorting, a job's id is its index here */
    VEC(int64_t) ids;
};

static int64_t request_of(const struct berth_shape *shape, const char *resource)
{
    for (size_t i = 0; i < shape->requests_len; i++)
        if (strcmp(shape->requests[i].resource, resource) == 0)
            return shape->requests[i].amount;
    return 0;
}

static void job_add(struct history_build *t, const struct work_doc *d, uint32_t tasks, int64_t start_ns, int64_t end_ns,
                    size_t from, size_t len)
{
    struct sim_history *h = t->h;
    struct sim_history_run run = {start_ns, end_ns, h->places.len, len};
    const struct berth_shape *shape = &d->workload.shape;
    if (end_ns <= start_ns) {
        h->running += end_ns == 0;
        run.end_ns = end_ns == 0 && t->r->last_ns > start_ns ? t->r->last_ns : start_ns + 1;
    }
    for (size_t i = from; i < from + len; i++) {
        const struct history_task *task = &t->tasks.at[i];
        bool ended = task->end_ns && task->end_ns < run.end_ns;
        struct sim_history_task place = {task->node, task->start_ns, ended ? task->end_ns : run.end_ns};
        if (place.start_ns > place.end_ns)
            place.start_ns = place.end_ns;
        vec_push(&h->places, place);
    }
    struct sim_job job = {
        .id = (int64_t)t->runs.len,
        .submit_ns = d->meta.created_ns < start_ns ? d->meta.created_ns : start_ns,
        .run_ns = run.end_ns - run.start_ns,
        .request_ns = d->job.estimate_ns ? d->job.estimate_ns : d->job.time_limit_ns,
        .user = intern_put(&h->trace.words, d->owner),
        .group = intern_put(&h->trace.words, d->group),
        .name = intern_put(&h->trace.words, d->name),
        .queue = intern_put(&h->trace.words, d->job.queue),
        .priority = d->workload.priority,
        .tasks = tasks ? tasks : 1,
        .tasks_min = tasks > 1 ? d->workload.gang_min : 0,
        .cpu_milli = request_of(shape, "cpu"),
        .memory_bytes = request_of(shape, "memory"),
        .gpus = shape->gpu.count,
        .gpu_milli = shape->gpu.count == 1 ? shape->gpu.milli % BERTH_GPU_MILLI : 0,
    };
    sim_trace_add(&h->trace, &job);
    vec_push(&t->runs, run);
    vec_push(&t->ids, (int64_t)strtoll(d->meta.id, NULL, 10));
}

static void job_take(struct history_build *t, const struct docset_document *from, struct arena *scratch)
{
    CLEANUP(json) json_t *doc = doc_of(from);
    struct work_doc d;
    if (!doc || work_doc_read(doc, scratch, &d, NULL) < 0)
        return;
    if (is_dropped(t->r->o, "user", d.owner) || is_dropped(t->r->o, "group", d.group) ||
        is_dropped(t->r->o, "queue", d.job.queue) || is_dropped(t->r->o, "name", d.name) ||
        d.meta.created_ns < t->r->o->from_ns || (t->r->o->to_ns && d.meta.created_ns > t->r->o->to_ns)) {
        t->h->dropped++;
        return;
    }
    uint64_t id = strtoull(d.meta.id, NULL, 10);
    size_t first = tasks_find(&t->tasks, id), end = first;
    int64_t start_ns = d.job.started_ns, end_ns = d.job.finished_ns;
    while (end < t->tasks.len && t->tasks.at[end].job == id)
        end++;
    if (first == end && !start_ns) {
        t->h->unrun++;
        return;
    }
    bool together = (d.workload.gang && *d.workload.gang) || d.workload.replicas <= 1 || first == end;
    for (size_t i = first; i < end && !together; i++) {
        const struct history_task *task = &t->tasks.at[i];
        job_add(t, &d, 1, task->start_ns, task->end_ns ? task->end_ns : end_ns, i, 1);
    }
    for (size_t i = first; i < end && together; i++) {
        start_ns = !start_ns || t->tasks.at[i].start_ns < start_ns ? t->tasks.at[i].start_ns : start_ns;
        if (!d.job.finished_ns && t->tasks.at[i].end_ns > end_ns)
            end_ns = t->tasks.at[i].end_ns;
    }
    bool least = first == end && d.workload.gang_min; /* the actual number of tasks of the elastic job is unknown */
    if (together)
        job_add(t, &d, least ? d.workload.gang_min : d.workload.replicas, start_ns, end_ns, first, end - first);
}

/* Sorts jobs by submission, moves the runs with their jobs, and restores the ids. */
static void jobs_sort(struct history_build *t)
{
    struct sim_history *h = t->h;
    sim_trace_sort(&h->trace);
    h->runs = mem_zarray(h->trace.len + 1, sizeof *h->runs);
    for (size_t i = 0; i < h->trace.len && t->runs.len; i++) {
        size_t at = (size_t)h->trace.jobs[i].id;
        h->runs[i] = t->runs.at[at];
        h->trace.jobs[i].id = t->ids.at[at];
    }
}

static void jobs_take(struct history_reader *r, struct sim_history *h)
{
    struct history_build t = {.r = r, .h = h};
    struct arena scratch;
    docset_sort(&r->work);
    arena_init(&scratch);
    for (int jobs = 0; jobs < 2; jobs++) {
        for (size_t i = 0; i < r->work.list.len; i++) {
            const char *id;
            enum kind kind = object_key_split(r->work.list.at[i].key, &id);
            struct arena_mark mark = arena_mark(&scratch);
            if (!jobs && kind == KIND_INSTANCE)
                task_take(&r->work.list.at[i], h, &scratch, &t.tasks);
            if (jobs && kind == KIND_JOB)
                job_take(&t, &r->work.list.at[i], &scratch);
            arena_rewind(&scratch, mark);
        }
        if (!jobs)
            tasks_keep_last(&t.tasks);
    }
    jobs_sort(&t);
    arena_done(&scratch);
    vec_done(&t.tasks);
    vec_done(&t.runs);
    vec_done(&t.ids);
}

int sim_history_read(struct journal *j, const struct sim_history_options *o, struct sim_history *h,
                     struct berth_err *err)
{
    struct history_reader r = {.o = o, .err = err, .nodes = {.keeps = is_node}, .work = {.keeps = is_work}};
    struct journal_visitor visitor = {.document = document, .record = record, .progress = progress, .ctx = &r};
    struct journal_range all = {0};
    *h = (struct sim_history){0};
    sim_trace_init(&h->trace);
    sim_fleet_init(&h->fleet);
    int rc = journal_read(j, &all, &visitor, err);
    if (rc == 0) {
        nodes_take(&r, h);
        jobs_take(&r, h);
    }
    if (rc == 0 && h->trace.len == 0)
        rc = err_set(err, ENOENT, "the journal has no job that ran%s",
                     h->dropped ? " and is not left out" : "; there is nothing to play again");
    docset_done(&r.nodes);
    docset_done(&r.work);
    if (rc)
        sim_history_done(h);
    return rc;
}

void sim_history_done(struct sim_history *h)
{
    sim_trace_done(&h->trace);
    sim_fleet_done(&h->fleet);
    json_decref(h->docs);
    mem_free(h->runs);
    vec_done(&h->places);
    *h = (struct sim_history){0};
}
