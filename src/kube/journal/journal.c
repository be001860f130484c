#include "kube/journal/journal.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/epoll.h>

#include "control/journal/batch_record.h"
#include "journal/record.h"
#include "kube/client/clock.h"
#include "kube/journal/journal_claims.h"
#include "kube/journal/journal_ops.h"
#include "kube/journal/journal_seal.h"
#include "net/loop.h"
#include "store/store.h"

#define SECOND_NS INT64_C(1000000000)
#define LATER_NS (SECOND_NS / 10) /* maximum delay of writing inputs between plans */
#define RETRY_NS (5 * SECOND_NS)  /* after a failure; doubles */
#define RETRY_NS_MAX (300 * SECOND_NS)
#define BASE_NS (24 * 3600 * SECOND_NS) /* maximum time between two bases */
enum { ACTIONS_BYTES = 4 << 20 };       /* of a plan; a record may have 8 MiB */
enum { REASONS_MAX = 100 };             /* pending workloads whose reasons are recorded per record */
enum { RECORD_BYTES = 1 << 20, SEGMENT_BYTES = 16 << 20, BASES_APART = 4 };
enum { UNDER_WAY_MAX = 64 << 20 }; /* queued bytes, besides those of a base, whose size is not limited */
enum { SUBMITTED_MAX = 32 << 20 }; /* of these, bytes handed to the store; the rest is queued here */

enum journal_state {
    CLOSED,
    PROBING,  /* after a gap: a small record tests whether writing works again */
    OPEN,     /* a base must follow */
    RECORDING /* every input is written */
};

/* A record being written to the disk. */
struct record_write {
    struct kube_journal *j;
    struct record_write *next; /* next queued record */
    struct str record;         /* of a queued record */
    size_t len;
    uint64_t failure_count;
    bool in_base;
    bool ends_base; /* last record of a base */
};

struct kube_journal {
    struct kube_journal_config c;
    enum journal_state journal_state;
    struct store *store;
    struct loop_source *fd, *timer;
    struct kube_sealer *sealer;
    struct journal_ops ops;
    struct str changes; /* of the present record; empty: none */
    struct str record, text;
    bool in_base;
    uint64_t base, n;           /* number of the base; of the last record since */
    uint64_t base_bytes, bytes; /* size of the base; bytes written since */
    int64_t base_ns;
    size_t under_way;                  /* bytes not on the disk yet */
    size_t base_under_way;             /* of these, bytes of a base */
    size_t handed;                     /* of these, bytes handed to the store */
    struct record_write *first, *last; /* queue of the others */
    size_t reasons_recorded;           /* reasons recorded since the last record */
    uint64_t failure_count; /* number of failures: results of records submitted before the last one are ignored */
    int64_t retry_ns, pause_ns;
    int64_t gap_ns; /* since when nothing is recorded; 0: recording, or never started */
    char trouble[BERTH_ERR_TEXT_MAX];
    struct journal_claims claims;
    struct kube_journal_stats stats;
};

/* ---- trouble ---------------------------------------------------------------------------------------------------- */

static void record_drop(struct kube_journal *j)
{
    str_clear(&j->changes);
    j->reasons_recorded = 0;
    loop_timer_set(j->timer, INT64_MAX);
}

static void writing_free(struct record_write *w)
{
    w->j->under_way -= w->len;
    w->j->base_under_way -= w->in_base ? w->len : 0;
    str_done(&w->record);
    mem_free(w);
}

static struct record_write *waiting_pop(struct kube_journal *j)
{
    struct record_write *w = j->first;
    j->first = w->next;
    if (!j->first)
        j->last = NULL;
    return w;
}

/* Stops recording until the next base. */
static void fail(struct kube_journal *j, enum journal_state journal_state, const char *text)
{
    int64_t now_ns = kube_wall_ns();
    bool first = !j->gap_ns;
    record_drop(j);
    while (j->first)
        writing_free(waiting_pop(j));
    j->journal_state = journal_state;
    j->failure_count++;
    if (first) {
        j->gap_ns = now_ns;
        j->stats.gaps++;
    }
    j->pause_ns = j->pause_ns ? j->pause_ns * 2 : RETRY_NS;
    if (j->pause_ns > RETRY_NS_MAX)
        j->pause_ns = RETRY_NS_MAX;
    j->retry_ns = now_ns + j->pause_ns;
    (void)snprintf(j->trouble, sizeof j->trouble, "%s", text);
    log_write(j->c.log, now_ns, LEVEL_ERROR, "journal.failed", LOG_TEXT("text", text),
              LOG_TEXT("consequence", "scheduling continues, but decisions are not recorded"));
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

static void gap_end(struct kube_journal *j)
{
    if (j->gap_ns)
        log_write(j->c.log, kube_wall_ns(), LEVEL_INFO, "journal.again",
                  LOG_TEXT("text", "decisions are recorded again after a gap"));
    j->gap_ns = j->pause_ns = 0;
    j->trouble[0] = 0;
}

static void waiting_submit(struct kube_journal *j);

static void on_written(void *ctx, const struct store_result *r)
{
    struct record_write *w = ctx;
    struct kube_journal *j = w->j;
    j->handed -= w->len;
    if (r->rc == 0) {
        j->stats.records++;
        j->stats.bytes += w->len;
        kube_sealer_note(j->sealer, w->len);
    }
    if (w->failure_count == j->failure_count && r->rc < 0)
        fail(j, PROBING, r->text ? r->text : "the journal could not be written");
    else if (w->failure_count == j->failure_count && j->journal_state == PROBING)
        j->journal_state = OPEN;
    else if (w->failure_count == j->failure_count && w->ends_base)
        gap_end(j);
    writing_free(w);
    waiting_submit(j);
}

static void submit(struct kube_journal *j, struct record_write *w, const struct str *record)
{
    struct berth_err err = {0};
    const struct store_txn txn = {
        .record = {record->at, record->len}
    };
    int rc = store_submit(j->store, &txn, on_written, w, &err);
    if (rc == 0) {
        j->handed += w->len;
        str_done(&w->record);
        return;
    }
    writing_free(w);
    fail(j, rc == -ENOBUFS ? PROBING : CLOSED, err.text);
}

static bool has_room(const struct kube_journal *j, const struct record_write *w)
{
    return j->handed == 0 || j->handed + w->len <= SUBMITTED_MAX;
}

static void waiting_submit(struct kube_journal *j)
{
    while (j->first && has_room(j, j->first)) {
        struct record_write *w = waiting_pop(j);
        submit(j, w, &w->record);
    }
}

/* Hands the record to the store, or queues it. */
static void record_send(struct kube_journal *j, bool ends_base)
{
    struct record_write *w = mem_zalloc(sizeof *w);
    *w = (struct record_write){.j = j,
                               .len = j->record.len,
                               .failure_count = j->failure_count,
                               .in_base = j->in_base || ends_base,
                               .ends_base = ends_base};
    j->bytes += w->len;
    j->under_way += w->len;
    j->base_under_way += w->in_base ? w->len : 0;
    if (!j->first && has_room(j, w)) {
        submit(j, w, &j->record);
    } else {
        w->record = j->record;
        j->record = (struct str){0};
        *(j->last ? &j->last->next : &j->first) = w;
        j->last = w;
    }
    if (j->journal_state == RECORDING && j->under_way - j->base_under_way > UNDER_WAY_MAX)
        fail(j, PROBING, "the disk of the journal is too slow: more than 64 MiB are waiting to be written");
}

/* Completes the record of the present changes; `more`: further members of its JSON object, without braces. */
static void record_end(struct kube_journal *j, const char *kind, const char *more, bool ends_base)
{
    str_clear(&j->record);
    journal_begin(&j->record, &(struct journal_head){.kind = kind, .at_ns = kube_wall_ns(), .who = j->c.identity});
    str_add_bytes(&j->record, str_text(&j->changes), j->changes.len);
    str_clear(&j->text);
    str_addf(&j->text, "{\"base\":%" PRIu64 ",\"n\":%" PRIu64 "%s", j->base, ++j->n, *more ? "," : "");
    str_add(&j->text, more);
    str_add_char(&j->text, '}');
    journal_end(&j->record, j->text.at, j->text.len);
    record_drop(j);
    record_send(j, ends_base);
}

static void changes_end(struct kube_journal *j)
{
    if (j->in_base)
        (void)store_pump(j->store); /* the loop cannot pump before the base is complete; a failure drops all changes */
    if (j->changes.len)
        record_end(j, j->in_base ? "kube.base" : "kube.inputs", "", false);
}

static struct str *changes_begin(struct kube_journal *j)
{
    if (!j->changes.len && !j->in_base)
        loop_timer_set(j->timer, loop_now_ns(j->c.loop) + LATER_NS);
    return &j->changes;
}

static void changes_flush_if_large(struct kube_journal *j)
{
    if (j->changes.len > RECORD_BYTES)
        changes_end(j);
}

static void on_later(void *ctx)
{
    struct kube_journal *j = ctx;
    if (j->journal_state == RECORDING)
        changes_end(j);
}

static void on_readable(void *ctx, uint32_t events)
{
    struct kube_journal *j = ctx;
    (void)events;
    (void)store_pump(j->store);
}

/* ---- listeners -------------------------------------------------------------------------------------------------- */

void kube_journal_input(void *ctx, const struct cache_change *in)
{
    struct kube_journal *j = ctx;
    if (j->journal_state != RECORDING || (in->op == CACHE_OP_REPORTED && j->reasons_recorded++ >= REASONS_MAX))
        return;
    journal_input_write(&j->ops, in, changes_begin(j));
    changes_flush_if_large(j);
}

void kube_journal_tenant(void *ctx, const struct tenant_input *in)
{
    struct kube_journal *j = ctx;
    if (j->journal_state != RECORDING)
        return;
    journal_tenant_write(&j->ops, in, changes_begin(j));
    changes_flush_if_large(j);
}

static void claim_write(struct kube_journal *j, const char *role, const char *text)
{
    journal_change_write(&j->ops, WORD_ROLE_CLAIMS, role, text, strlen(text), changes_begin(j));
    changes_flush_if_large(j);
}

/* Claims are kept even while nothing is written, because a base contains all of them. */
void kube_journal_claim(void *ctx, const char *role, const struct job_claim *claim)
{
    struct kube_journal *j = ctx;
    str_clear(&j->text);
    journal_claim_text(claim, &j->text);
    if (journal_claims_put(&j->claims, j->c.cache, role, j->text.at) && j->journal_state == RECORDING)
        claim_write(j, role, j->text.at);
}

/* Removes the claims of gone roles and writes the others. */
static void claims_write(struct kube_journal *j)
{
    journal_claims_trim(&j->claims, j->c.cache);
    for (size_t i = 0; i < j->claims.all.len && j->journal_state == RECORDING; i++)
        claim_write(j, j->claims.all.at[i].role, j->claims.all.at[i].text);
}

/* ---- a base ----------------------------------------------------------------------------------------------------- */

static void texts_write(struct str *to, const char *key, const char *const *texts, size_t len)
{
    str_addf(to, ",\"%s\":[", key);
    for (size_t i = 0; i < len; i++) {
        str_add(to, i ? "," : "");
        str_add_json(to, texts[i]);
    }
    str_add_char(to, ']');
}

/* Version 2 if there are several profiles, so that an older replay rejects the base. */
static int base_version(const struct kube_journal *j)
{
    for (size_t i = 0; j->c.profiles && i < j->c.schedulers_len; i++)
        if (j->c.profiles[i][0])
            return 2;
    return 1;
}

static void base_head_write(struct kube_journal *j, int64_t now_ns)
{
    CLEANUP(str) struct str doc = {0};
    char id[24];
    int version = base_version(j);
    str_addf(&doc, "{\"version\":%d,\"berth\":\"%s\",\"now\":%" PRId64 ",\"profile\":", version, berth_version(),
             now_ns);
    str_add_json(&doc, j->c.profile);
    texts_write(&doc, "schedulers", j->c.schedulers, j->c.schedulers_len);
    if (version > 1)
        texts_write(&doc, "profiles", j->c.profiles, j->c.schedulers_len);
    if (j->gap_ns) {
        str_addf(&doc, ",\"gap_since\":%" PRId64 ",\"gap\":", j->gap_ns);
        str_add_json(&doc, j->trouble);
    }
    str_add_char(&doc, '}');
    journal_change_write(&j->ops, WORD_BASE, str_u64(j->base, id), doc.at, doc.len, changes_begin(j));
}

/* Writes a base, numbered by its time. Returns true if the cache has a new cluster, even if writing failed. */
static bool base_write(struct kube_journal *j, int64_t now_ns)
{
    changes_end(j);
    if (j->journal_state == CLOSED || j->journal_state == PROBING)
        return false; /* a failure happened meanwhile */
    journal_ops_clear(&j->ops);
    j->journal_state = RECORDING;
    j->base = (uint64_t)now_ns;
    j->n = 0;
    j->bytes = 0;
    j->in_base = true;
    base_head_write(j, now_ns);
    if (j->c.tenants)
        tenants_dump(j->c.tenants, kube_journal_tenant, j);
    claims_write(j);
    cache_dump_changes(j->c.cache, kube_journal_input, j);
    j->in_base = false;
    if (j->journal_state != RECORDING)
        return true;
    record_end(j, "kube.base", "\"complete\":true", true);
    j->base_bytes = j->bytes;
    j->base_ns = now_ns;
    j->stats.bases++;
    return true;
}

/* Reports whether a base is due. While there are orphans, which a base must leave out, it is delayed, but not
 * forever. */
static bool base_due(const struct kube_journal *j, int64_t now_ns)
{
    uint64_t segment = j->c.segment_bytes ? j->c.segment_bytes : SEGMENT_BYTES;
    uint64_t bytes = BASES_APART * (j->base_bytes > segment ? j->base_bytes : segment);
    int64_t passed_ns = now_ns - j->base_ns;
    if (j->journal_state != RECORDING || j->bytes <= j->base_bytes || (j->bytes < bytes && passed_ns < BASE_NS))
        return j->journal_state == OPEN;
    return !cache_has_orphans(j->c.cache) || j->bytes >= 2 * bytes || passed_ns >= 2 * BASE_NS;
}

/* ---- the store -------------------------------------------------------------------------------------------------- */

static void store_end(struct kube_journal *j)
{
    if (!j->store)
        return;
    if (j->journal_state == RECORDING)
        changes_end(j);
    record_drop(j);
    store_drain(j->store); /* including the queue here */
    kube_sealer_free(j->sealer);
    j->sealer = NULL;
    loop_source_free(j->fd);
    j->fd = NULL;
    store_close(j->store);
    j->store = NULL;
    j->journal_state = CLOSED;
}

static void store_begin(struct kube_journal *j)
{
    struct berth_err err = {0};
    int rc = store_sqlite_open(j->c.dir, &(struct store_options){.create = true}, &j->store, &err);
    if (rc == 0)
        rc = loop_watch_fd(j->c.loop, store_fd(j->store), EPOLLIN, on_readable, j, &j->fd, &err);
    if (rc < 0) {
        store_close(j->store);
        j->store = NULL;
        fail(j, CLOSED, err.text);
        return;
    }
    j->sealer = kube_sealer_new(&(struct kube_sealer_config){
        .loop = j->c.loop,
        .log = j->c.log,
        .store = j->store,
        .dir = j->c.dir,
        .export_dir = j->c.export_dir,
        .keep_ns = j->c.keep_ns,
        .keep_bytes = j->c.keep_bytes,
        .segment_bytes = j->c.segment_bytes ? j->c.segment_bytes : SEGMENT_BYTES,
    });
    j->journal_state = OPEN;
}

/* Writes a small record to test whether writing works again. */
static void probe_write(struct kube_journal *j)
{
    j->retry_ns = kube_wall_ns() + (j->pause_ns ? j->pause_ns : RETRY_NS);
    j->base = j->n = 0;
    CLEANUP(str) struct str more = {0};
    str_addf(&more, "\"since\":%" PRId64 ",\"why\":", j->gap_ns);
    str_add_json(&more, j->trouble);
    record_end(j, "kube.gap", more.at, false);
}

bool kube_journal_prepare(struct kube_journal *j, int64_t now_ns)
{
    bool renewed = false;
    if (j->journal_state == CLOSED && now_ns >= j->retry_ns) {
        store_end(j);
        store_begin(j);
    } else if (j->journal_state == PROBING && now_ns >= j->retry_ns && j->under_way == 0) {
        probe_write(j);
    }
    if (base_due(j, now_ns))
        renewed = base_write(j, now_ns);
    kube_sealer_step(j->sealer, now_ns);
    return renewed;
}

/* ---- plans ------------------------------------------------------------------------------------------------------ */

/* Writes as many actions as a record has room for; the hash covers all. */
static void actions_write(const struct berth_plan *plan, struct str *to)
{
    size_t len = berth_plan_actions(plan), i = 0;
    str_add(to, ",\"actions\":[");
    for (; i < len && to->len < ACTIONS_BYTES; i++) {
        const struct berth_action a = berth_plan_action(plan, i);
        batch_action_write(
            &(struct batch_action){a.op, a.cause, a.workload, a.node, a.ordinal, a.instance, a.score, a.rival}, to);
    }
    str_add_char(to, ']');
    if (i < len)
        str_addf(to, ",\"actions_more\":%zu", len - i);
}

void kube_journal_plan(struct kube_journal *j, int64_t now_ns, const struct berth_plan *plan)
{
    if (j->journal_state != RECORDING)
        return;
    CLEANUP(str) struct str more = {0};
    j->stats.plans++;
    str_addf(&more,
             "\"cycle\":{\"n\":%" PRIu64 ",\"unit\":0,\"of\":1,\"revision\":0,\"now\":%" PRId64
             ",\"seed\":0,\"plan\":\"%016" PRIx64 "\",\"profile\":",
             j->stats.plans, now_ns, berth_plan_hash(plan));
    str_add_json(&more, j->c.profile);
    str_add_char(&more, ',');
    journal_hashes_write(&j->ops.hashes, &more);
    actions_write(plan, &more);
    str_add_char(&more, '}');
    record_end(j, "kube.plan", more.at, false);
}

/* ---- interface -------------------------------------------------------------------------------------------------- */

struct kube_journal *kube_journal_new(const struct kube_journal_config *config)
{
    struct kube_journal *j = mem_zalloc(sizeof *j);
    j->c = *config;
    j->timer = loop_timer_new(config->loop, on_later, j);
    if (config->tenants)
        tenants_listen(config->tenants, kube_journal_tenant, j);
    return j;
}

void kube_journal_close(struct kube_journal *j)
{
    store_end(j);
    j->retry_ns = 0;
}

void kube_journal_free(struct kube_journal *j)
{
    if (!j)
        return;
    store_end(j);
    if (j->c.tenants)
        tenants_listen(j->c.tenants, NULL, NULL);
    loop_source_free(j->timer);
    journal_ops_done(&j->ops);
    str_done(&j->changes);
    str_done(&j->record);
    str_done(&j->text);
    journal_claims_done(&j->claims);
    mem_free(j);
}

struct kube_journal_stats kube_journal_stats(const struct kube_journal *j)
{
    struct kube_journal_stats stats = j->stats;
    stats.on = j->journal_state == RECORDING;
    stats.trouble = j->trouble;
    stats.segments = kube_sealer_segments(j->sealer);
    stats.claims = j->claims.all.len;
    return stats;
}
