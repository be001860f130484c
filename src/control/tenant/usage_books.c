/* usage_books.c - the books that are kept from usage records: decayed use, spent totals, run time predictions. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "control/control_parts.h"
#include "control/job/past_runs.h"
#include "control/job/predict.h"
#include "control/sched/plan_policy.h"
#include "control/state/commit.h"
#include "control/system/settings_table.h"
#include "control/tenant/usage.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"
#include "wire/text/moment.h"

#define SECOND_NS INT64_C(1000000000)
#define BOOKED "usage_booked" /* KIND_COUNTER: the last booked record */

enum {
    RECORDS_AT_ONCE = 500,  /* in one transaction */
    PAUSE_MS = 100,         /* between two transactions: ends at about the same time are booked together */
    AGAIN_MS = 1000,        /* after a failed transaction */
    PARENTS_MAX = 16,       /* of a queue */
    EXPIRED_AT_ONCE = 1000, /* deletions per transaction: more than new records come */
};

struct usage_books {
    struct control *control;
    uint64_t booked, booking; /* last booked record; last record of the transaction in progress */
    int64_t next_ns;          /* steady time; nothing is written before */
    bool submitted, stopped;
};

uint64_t usage_booked(const struct state *s)
{
    const struct object *o = state_find(s, KIND_COUNTER, BOOKED);
    CLEANUP(json) json_t *doc = o ? object_doc(o) : NULL;
    return (uint64_t)json_integer_value(json_object_get(doc, "last"));
}

struct usage_books *usage_books_new(struct control *control)
{
    struct usage_books *b = mem_zalloc(sizeof *b);
    b->control = control;
    b->booked = usage_booked(control->state);
    return b;
}

void usage_books_free(struct usage_books *b)
{
    mem_free(b);
}

void usage_books_stop(struct usage_books *b)
{
    b->stopped = true;
}

/* ---- records in order ------------------------------------------------------------------------------------------- */

uint64_t usage_number(const struct object *record)
{
    int64_t n = 0;
    (void)str_parse_i64(record->id, &n);
    return (uint64_t)n;
}

size_t usage_first_after(const struct object *const *list, size_t len, uint64_t number)
{
    size_t low = 0, high = len;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (usage_number(list[mid]) <= number)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* ---- past use, for fair shares ---------------------------------------------------------------------------------- */

static int64_t add_capped(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) || sum > BERTH_AMOUNT_MAX ? BERTH_AMOUNT_MAX : sum;
}

int64_t usage_row_weight(const struct usage_row *row, const struct berth_order *order, int64_t at_ns)
{
    struct berth_shape shape = {0};
    struct berth_amount requests[USAGE_RESOURCES_MAX];
    for (size_t i = 0; i < row->amounts_len; i++) {
        const struct berth_amount *a = &row->amounts[i];
        if (strcmp(a->resource, "gpu") == 0)
            shape.gpu = a->amount % BERTH_GPU_MILLI
                            ? (struct berth_gpu_need){.count = 1, .milli = (uint32_t)a->amount}
                            : (struct berth_gpu_need){.count = (uint32_t)(a->amount / BERTH_GPU_MILLI)};
        else if (strcmp(a->resource, "pods") != 0)
            requests[shape.requests_len++] = *a;
    }
    shape.requests = requests;
    return berth_usage_add(berth_usage_rate(&shape, order), row->start_ns, row->end_ns, at_ns, order->half_life_ns);
}

void usage_book_use(struct change *c, const char *account, const struct usage_row *row, const struct berth_order *order,
                    int64_t now_ns)
{
    struct berth_fact fact = {.kind = BERTH_FACT_USAGE, .key = account, .at_ns = now_ns};
    const char *id = fact_doc_id(&fact, c->arena);
    const json_t *old = change_read(c, KIND_FACT, id), *at = json_object_get(old, "at");
    int64_t at_ns = now_ns;
    if (at)
        (void)timestamp_parse(at, &at_ns, NULL);
    int64_t was = json_integer_value(json_object_get(old, "value"));
    fact.value =
        add_capped(berth_usage_decay(was, at_ns, now_ns, order->half_life_ns), usage_row_weight(row, order, now_ns));
    change_put(c, KIND_FACT, id, fact_doc_make(&fact));
}

/* ---- spent totals ----------------------------------------------------------------------------------------------- */

int64_t usage_period_start(int64_t at_ns, int64_t period_ns)
{
    return period_ns > 0 ? at_ns - at_ns % period_ns : 0;
}

int64_t usage_row_spent(const struct usage_row *row, const char *resource, int64_t since_ns)
{
    int64_t amount = usage_row_amount(row, resource);
    int64_t from_ns = row->start_ns > since_ns ? row->start_ns : since_ns;
    if (row->end_ns <= from_ns || amount <= 0)
        return 0;
    __int128 product = (__int128)amount * (row->end_ns - from_ns) / SECOND_NS;
    return product > BERTH_AMOUNT_MAX ? BERTH_AMOUNT_MAX : (int64_t)product;
}

/* Books one total of a quota: {"resource", "hours", "period"}. */
static void book_total(struct change *c, const char *quota, const json_t *total, const struct usage_row *row,
                       int64_t now_ns)
{
    const char *resource = json_string_value(json_object_get(total, "resource"));
    const json_t *length = json_object_get(total, "period");
    int64_t period_ns = 0, was_ns = 0, spent = 0;
    char text[TIMESTAMP_MAX];
    if (!resource || (length && duration_parse(length, &period_ns, NULL) < 0))
        return;
    const json_t *one = json_object_get(change_read(c, KIND_SPENT, quota), resource);
    const json_t *since = json_object_get(one, "since");
    if (since)
        (void)timestamp_parse(since, &was_ns, NULL);
    int64_t since_ns = usage_period_start(now_ns, period_ns);
    if (one && was_ns == since_ns)
        spent = json_integer_value(json_object_get(one, "spent"));
    int64_t more = usage_row_spent(row, resource, since_ns);
    if (more == 0 && one && was_ns == since_ns)
        return;
    if (!change_read(c, KIND_SPENT, quota))
        change_put(c, KIND_SPENT, quota, json_object());
    json_t *next = json_pack("{s:I}", "spent", (json_int_t)add_capped(spent, more));
    if (since_ns)
        (void)json_object_set_new(next, "since", json_string(timestamp_text(since_ns, text)));
    (void)json_object_set_new(change_edit(c, KIND_SPENT, quota), resource, next);
}

static void book_quota(struct change *c, enum kind kind, const char *id, const struct usage_row *row, int64_t now_ns)
{
    char quota[OBJECT_KEY_MAX];
    size_t i;
    json_t *total;
    const struct object *o = *id ? state_find(c->state, kind, id) : NULL;
    if (!o || !memmem(o->doc.at, o->doc.len, "\"totals\"", 8))
        return;
    CLEANUP(json) json_t *doc = object_doc(o);
    (void)snprintf(quota, sizeof quota, "%s/%s", kinds[kind].name, id);
    json_array_foreach(json_object_get(json_object_get(doc, "quota"), "totals"), i, total)
        book_total(c, quota, total, row, now_ns);
}

/* Books the queue and its parents. */
static void book_queues(struct change *c, const struct usage_row *row, int64_t now_ns)
{
    enum kind kind = kind_find("queue");
    char id[ID_MAX + 1];
    (void)snprintf(id, sizeof id, "%s", row->queue);
    for (int depth = 0; kind != KINDS && *id && depth < PARENTS_MAX; depth++) {
        const struct object *o = state_find(c->state, kind, id);
        CLEANUP(json) json_t *doc = o ? object_doc(o) : NULL;
        const char *parent = json_string_value(json_object_get(doc, "parent"));
        book_quota(c, kind, id, row, now_ns);
        (void)snprintf(id, sizeof id, "%s", parent ? parent : "");
    }
}

void usage_book_totals(struct change *c, const struct usage_row *row, int64_t now_ns)
{
    book_quota(c, KIND_USER, row->owner, row, now_ns);
    book_quota(c, KIND_GROUP, row->group, row, now_ns);
    book_queues(c, row, now_ns);
}

/* ---- one transaction -------------------------------------------------------------------------------------------- */

/* Returns the size of the record's job, equal to work_size of that job. */
static int64_t size_of(const struct usage_row *row)
{
    int64_t milli = usage_row_amount(row, "gpu");
    return past_run_size(row->tasks, (uint32_t)((milli + BERTH_GPU_MILLI - 1) / BERTH_GPU_MILLI),
                         usage_row_amount(row, "cpu"));
}

static void book(struct change *c, const struct object *record, const struct berth_order *order, int64_t now_ns)
{
    struct usage_row row;
    CLEANUP(json) json_t *doc = object_doc(record);
    if (usage_row_read(doc, &row, NULL) < 0)
        return; /* written by an older or newer version: the record is kept but not booked */
    if (strcmp(row.outcome, USAGE_RUNNING) == 0)
        return; /* plans count running instances themselves; the whole run is booked at its end */
    row.start_ns = row.began_ns;
    if (*row.owner && state_find(c->state, KIND_USER, row.owner))
        usage_book_use(c, arena_fmt(c->arena, "user/%s", row.owner), &row, order, now_ns);
    usage_book_totals(c, &row, now_ns);
    int64_t ran_ns = row.end_ns - row.start_ns;
    bool by_limit = row.limit_ns && ran_ns >= row.limit_ns && strcmp(row.outcome, "stopped") == 0;
    if (strcmp(row.kind, "job") != 0 || (strcmp(row.outcome, "ended") != 0 && !by_limit))
        return;
    struct predict_run run = {.owner = row.owner,
                              .name = row.name,
                              .ran_ns = ran_ns,
                              .estimate_ns = row.estimate_ns,
                              .memory = row.memory_peak,
                              .at_ns = now_ns,
                              .limit_ns = row.limit_ns,
                              .size = size_of(&row),
                              .beside = row.ordinal > 0 && row.tasks > 1};
    if (*row.class_name && !by_limit)
        predict_learn_class(c, &run, row.class_name, json_object_get(doc, "beside"));
    predict_learn(c, &run);
}

static void booked(void *ctx, const struct store_result *result)
{
    struct usage_books *b = ctx;
    struct control *control = b->control;
    b->submitted = false;
    if (result->rc == 0) {
        b->booked = b->booking;
        return;
    }
    b->next_ns = control->env.steady_ns(control->env.ctx) + AGAIN_MS * (SECOND_NS / 1000);
    b->booked = usage_booked(control->state);
    log_write(control->env.log, control->now_ns, LEVEL_WARN, "usage.failed",
              LOG_TEXT("text", result->rc == -EAGAIN ? "an object that it depends on has changed" : result->text));
}

static void write_books(struct usage_books *b, const struct object *const *list, size_t len)
{
    struct control *control = b->control;
    struct arena arena;
    struct change change;
    struct plan_policy policy;
    struct berth_err err;
    int64_t now_ns = control_now_ns(control);
    arena_init(&arena);
    change_init(&change, control->state, &arena);
    plan_policy_read(control->state, &policy);
    for (size_t i = 0; i < len; i++)
        book(&change, list[i], &policy.policy.order, now_ns);
    plan_policy_done(&policy);
    b->booking = usage_number(list[len - 1]);
    usage_expire(&change, now_ns);
    (void)change_guard(&change, KIND_COUNTER, BOOKED);
    change_put(&change, KIND_COUNTER, BOOKED, json_pack("{s:I}", "last", (json_int_t)b->booking));
    struct commit_note note = {.who = "berth", .verb = "usage"};
    b->submitted = true;
    int rc = commit_submit(control, &change, &note, booked, b, &err);
    if (rc <= 0)
        b->submitted = false;
    if (rc < 0) {
        b->next_ns = control->env.steady_ns(control->env.ctx) + AGAIN_MS * (SECOND_NS / 1000);
        log_write(control->env.log, control->now_ns, LEVEL_WARN, "usage.failed", LOG_TEXT("text", err.text));
    }
    change_done(&change);
    arena_done(&arena);
}

int64_t usage_books_step(struct usage_books *b, int64_t steady_ns)
{
    size_t len;
    const struct object *const *list = state_list(b->control->state, KIND_USAGE_RECORD, &len);
    if (b->stopped || b->submitted || b->control->broken[0] || len == 0 || usage_number(list[len - 1]) <= b->booked)
        return INT64_MAX;
    if (steady_ns < b->next_ns)
        return b->next_ns;
    size_t first = usage_first_after(list, len, b->booked), n = len - first;
    b->next_ns = steady_ns + PAUSE_MS * (SECOND_NS / 1000);
    write_books(b, list + first, n < RECORDS_AT_ONCE ? n : RECORDS_AT_ONCE);
    return b->next_ns;
}

/* ---- deletion of records ---------------------------------------------------------------------------------------- */

void usage_expire(struct change *c, int64_t now_ns)
{
    size_t len, gone = 0;
    const struct object *const *list = state_list(c->state, KIND_USAGE_RECORD, &len);
    int64_t keep_ns = system_setting_number(c->state, SETTING_USAGE_KEEP_S) * SECOND_NS;
    size_t most = (size_t)system_setting_number(c->state, SETTING_USAGE_KEEP_RECORDS);
    uint64_t seen = usage_booked(c->state);
    struct usage_row row;
    for (; gone < len && gone < EXPIRED_AT_ONCE && usage_number(list[gone]) <= seen; gone++) {
        CLEANUP(json) json_t *doc = object_doc(list[gone]);
        bool old = usage_row_read(doc, &row, NULL) < 0 || now_ns - row.end_ns >= keep_ns;
        if (!old && len - gone <= most)
            break;
        change_delete(c, KIND_USAGE_RECORD, list[gone]->id);
    }
    if (gone) /* numbers go on even if all records are deleted */
        change_put_unguarded(c, KIND_COUNTER, kinds[KIND_USAGE_RECORD].plural,
                             json_pack("{s:I}", "last", (json_int_t)state_last_number(c->state, KIND_USAGE_RECORD)));
}

bool usage_book_needed(struct control *control, const struct object *o, struct arena *arena)
{
    static const char use[] = "usage/user/";
    const char *slash = strchr(o->id, '/');
    if (o->kind == KIND_PREDICTION)
        return predict_needed(control->state, o, control->now_ns);
    if (o->kind == KIND_FACT)
        return strncmp(o->id, use, sizeof use - 1) != 0 ||
               state_find(control->state, KIND_USER, o->id + sizeof use - 1);
    enum kind kind = slash ? kind_find(arena_strndup(arena, o->id, (size_t)(slash - o->id))) : KINDS;
    return kind != KINDS && state_find(control->state, kind, slash + 1);
}
