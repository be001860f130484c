/* verify.c - after each event, checks new transactions and records, then delivers answers, then checks all invariants.
 *
 * The journal is read through the store's public interface. Each record must be the next one, chained to the record
 * before it (16), and must list exactly the keys that its revision changed (26).
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "control/journal/replay.h"
#include "control/sched/scheduler.h"
#include "sim/cluster/request.h"

static void store_event_free(struct watched_event *h)
{
    mem_free(h->key);
    mem_free(h->value);
}

/* ---- transactions ----------------------------------------------------------------------------------------------- */

struct reading {
    struct sim_world *w;
    size_t at; /* index of the first event that is not checked yet */
};

static bool changed(const struct transaction *t, const char *key)
{
    for (size_t i = 0; i < t->len; i++) {
        const struct mirror_doc *s = t->changes[i].now ? t->changes[i].now : t->changes[i].old;
        char has[OBJECT_KEY_MAX];
        if (s && strcmp(object_key(s->kind, s->id, has), key) == 0)
            return true;
    }
    return false;
}

/* Checks that the record lists exactly the keys of the transaction. Deleting an absent key changes nothing. */
static void keys_verify(struct sim_world *w, const struct transaction *t)
{
    const json_t *changes = json_object_get(t->record, "changes");
    world_count_check(w, 26);
    for (size_t k = 0; k < json_array_size(changes); k++) {
        const json_t *told = json_array_get(changes, k);
        const char *key = json_string_value(json_array_get(told, 0));
        if (!json_is_null(json_array_get(told, 1)) && !changed(t, key ? key : ""))
            world_breach(w, 26, "the record of revision %" PRIu64 " tells of %s, which was not changed", t->revision,
                         key ? key : "nothing");
    }
    if (json_array_size(changes) < t->len)
        world_breach(w, 26, "revision %" PRIu64 " changed %zu keys, its record has %zu", t->revision, t->len,
                     json_array_size(changes));
    for (size_t i = 0; i < t->len; i++) {
        const struct mirror_doc *s = t->changes[i].now ? t->changes[i].now : t->changes[i].old;
        char key[OBJECT_KEY_MAX];
        bool told = false;
        if (!s)
            continue;
        (void)object_key(s->kind, s->id, key);
        for (size_t k = 0; k < json_array_size(changes) && !told; k++) {
            const char *has = json_string_value(json_array_get(json_array_get(changes, k), 0));
            told = has && strcmp(has, key) == 0;
        }
        if (!told)
            world_breach(w, 26, "revision %" PRIu64 " changed %s, of which its record says nothing", t->revision, key);
    }
}

static const char *member_text(const json_t *record, const char *key)
{
    const char *text = json_string_value(json_object_get(record, key));
    return text ? text : "";
}

static void change_print(const struct mirror_change *c, struct str *to)
{
    const struct mirror_doc *s = c->now ? c->now : c->old;
    if (!s || c->kind == KIND_LEDGER || c->kind == KIND_COUNTER)
        return;
    str_addf(to, " %s%s/%s", c->now ? "" : "-", kinds[c->kind].plural, s->id);
    if (c->kind == KIND_INSTANCE)
        str_addf(to, "(%s/%u on %s %s%s of %" PRIu64 ")", s->instance.instance.workload, s->instance.instance.ordinal,
                 s->instance.instance.node, berth_state_name(s->instance.instance.state),
                 s->instance.instance.ready ? " ready" : "", s->instance.generation);
    if (c->kind == KIND_NODE)
        str_addf(to, "(%s)", berth_node_state_name(s->node.node.state));
}

/* Writes one line of the trace per transaction. */
static void transaction_print(struct sim_world *w, const struct transaction *t)
{
    CLEANUP(str) struct str line = {0};
    str_addf(&line, "                      = %" PRIu64 " %s %s:", t->revision, t->who, t->verb);
    for (size_t i = 0; i < t->len; i++)
        change_print(&t->changes[i], &line);
    w->options->trace(w->options->ctx, line.at);
}

static void transaction_verify(struct sim_world *w, struct transaction *t)
{
    const char *remote = member_text(t->record, "remote");
    t->verb = member_text(t->record, "kind");
    t->who = member_text(t->record, "who");
    t->subject = member_text(t->record, "subject");
    if (*remote == 'r')
        t->asked = strtoull(remote + 1, NULL, 10);
    if (w->options->trace)
        transaction_print(w, t);
    if (!*t->verb || !*t->who)
        world_breach(w, 26, "revision %" PRIu64 " has a record that does not say who did what", t->revision);
    if (*remote)
        requests_record(w, t->asked, t->revision);
    if (strcmp(t->verb, "node.lost") == 0) {
        w->counts.lost_nodes++;
        agents_lost_check(w, strchr(t->subject, '/') ? strchr(t->subject, '/') + 1 : t->subject);
    }
    keys_verify(w, t);
    states_verify(w, t);
    placements_verify(w, t);
    quotas_verify(w, t);
    jobs_verify(w, t);
    instances_verify(w, t);
    guarantees_verify(w, t);
    watchers_expect(w, t);
    usage_records_verify(w, t);
    w->counts.transactions++;
    w->counts.checks++;
    world_mix(w, t->revision);
}

/* Applies the events of one revision to the mirror, and checks the revision. */
static void revision_take(struct reading *r, uint64_t revision, const json_t *record)
{
    struct sim_world *w = r->w;
    VEC(struct mirror_change) changes = {0};
    VEC(struct mirror_doc *) olds = {0};
    struct berth_err err;
    for (; r->at < w->heard.len && w->heard.at[r->at].revision == revision; r->at++) {
        const struct watched_event *h = &w->heard.at[r->at];
        struct store_event event = {
            .key = h->key, .value = {h->value, h->len},
                 .gone = h->gone, .created = h->created, .revision = revision
        };
        struct mirror_doc *old = NULL;
        const struct mirror_doc *now = NULL;
        const char *id;
        if (mirror_apply(&w->mirror, &event, &old, &now, &err) < 0) {
            world_breach(w, 7, "revision %" PRIu64 ": %s", revision, err.text);
            continue;
        }
        struct mirror_change change = {object_key_split(h->key, &id), old, now};
        vec_push(&changes, change);
        vec_push(&olds, old);
    }
    w->mirror.revision = revision;
    struct transaction t = {.revision = revision, .changes = changes.at, .len = changes.len, .record = record};
    transaction_verify(w, &t);
    for (size_t i = 0; i < olds.len; i++)
        mirror_doc_free(olds.at[i]);
    vec_done(&changes);
    vec_done(&olds);
}

/* ---- journal ---------------------------------------------------------------------------------------------------- */

static void record_check(struct sim_world *w, const struct store_record *record, uint64_t seq, uint64_t chain)
{
    uint64_t now =
        hash_bytes(record->record.at, record->record.len, hash_pair(hash_pair(chain, record->seq), record->revision));
    if (record->seq != seq + 1)
        world_breach(w, 16, "record %" PRIu64 " comes after record %" PRIu64, record->seq, seq);
    if (record->chain != now)
        world_breach(w, 16, "record %" PRIu64 " is not chained to the one before it", record->seq);
}

static int record_read(void *ctx, const struct store_record *record)
{
    struct reading *r = ctx;
    struct sim_world *w = r->w;
    record_check(w, record, w->log_seq, w->log_chain);
    w->log_seq = record->seq;
    w->log_chain = record->chain;
    if (record->revision != w->mirror.revision + 1)
        world_breach(w, 26, "revision %" PRIu64 " follows %" PRIu64 ": one has no record", record->revision,
                     w->mirror.revision);
    json_t *doc = json_loadb(record->record.at, record->record.len, 0, NULL);
    if (!doc)
        world_breach(w, 16, "record %" PRIu64 " is not JSON", record->seq);
    revision_take(r, record->revision, doc);
    json_decref(doc);
    return w->invariant ? 1 : 0;
}

static bool journal_settle(struct sim_world *w)
{
    struct reading r = {.w = w};
    struct berth_err err;
    bool some = w->heard.len > 0;
    if (!w->daemon.store)
        return false;
    int rc = store_log(w->daemon.store, w->log_seq + 1, record_read, &r, &err);
    if (rc < 0)
        world_breach(w, 16, "the log cannot be read: %s", err.text);
    if (rc == 0 && r.at < w->heard.len)
        world_breach(w, 26, "revision %" PRIu64 " changed %s without a record", w->heard.at[r.at].revision,
                     w->heard.at[r.at].key);
    for (size_t i = 0; i < w->heard.len; i++)
        store_event_free(&w->heard.at[i]);
    w->heard.len = 0;
    return some;
}

/* ---- log of the daemon ------------------------------------------------------------------------------------------ */

static void line_read(struct sim_world *w, const char *line)
{
    static const struct {
        const char *event;
        int invariant;
    } rows[] = {
        {"event=audit.breach",        4 },
        {"event=state.broken",        4 },
        {"event=rebuild.failed",      4 },
        {"event=plan.failed",         18},
        {"event=unit.refused",        12},
        {"event=node.lost.unwritten", 12},
    };
    w->counts.conflicts += strstr(line, "event=unit.failed") != NULL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strstr(line, rows[i].event))
            world_breach(w, rows[i].invariant, "the daemon itself says: %s", line);
    if (w->options->trace) {
        CLEANUP(str) struct str text = {0};
        str_addf(&text, "                      %s", line);
        w->options->trace(w->options->ctx, text.at);
    }
}

static void log_settle(struct sim_world *w)
{
    struct sim_daemon *d = &w->daemon;
    if (!d->log.out)
        return;
    (void)fflush(d->log.out);
    if (d->log_len == 0)
        return;
    char *rest = d->log_text, *line;
    while ((line = strsep(&rest, "\n")))
        if (*line)
            line_read(w, line);
    rewind(d->log.out); /* the old content is overwritten from the beginning */
    (void)fflush(d->log.out);
}

/* ---- all checks ------------------------------------------------------------------------------------------------- */

void world_settle(struct sim_world *w)
{
    if (w->options->sabotage && w->options->sabotage->after_event && w->daemon.store)
        w->options->sabotage->after_event(w->options->sabotage->ctx, w->daemon.store, w->event);
    do { /* no pump in between, so events and answers belong together */
        while ((journal_settle(w) || requests_settle(w)) && !w->invariant)
            continue;
        if (!w->invariant)
            watchers_check(w);
    } while (w->answered.len && !w->invariant);
    log_settle(w);
    if (w->invariant)
        return;
    states_check(w);
    agents_check(w);
    superseded_agents_check(w);
    unexplained_check(w);
}

static void differs(void *ctx, const struct replay_difference *d)
{
    world_breach(ctx, 15,
                 "cycle %" PRIu64 " at revision %" PRIu64 ": the %s is %016" PRIx64
                 " when it is made again, and was %016" PRIx64,
                 d->cycle, d->revision, d->what, d->replayed, d->recorded);
}

void verify_replay(struct sim_world *w)
{
    struct replay_options options = {.differs = differs, .ctx = w};
    struct replay_result result;
    struct berth_err err;
    if (replay_run(w->daemon.store, &options, &result, &err) < 0)
        world_breach(w, 15, "replay: %s", err.text);
    else
        w->counts.replayed += result.cycles;
    world_count_check(w, 15);
}

struct again {
    struct sim_world *w;
    uint64_t seq, chain;
};

static int record_again(void *ctx, const struct store_record *record)
{
    struct again *a = ctx;
    record_check(a->w, record, a->seq, a->chain);
    a->seq = record->seq;
    a->chain = record->chain;
    return a->w->invariant ? 1 : 0;
}

static int entry_check(void *ctx, const struct store_entry *entry)
{
    struct again *a = ctx;
    const char *id;
    enum kind kind = object_key_split(entry->key, &id);
    const struct mirror_doc *s = kind == KINDS ? NULL : mirror_find(&a->w->mirror, kind, id);
    if (!s || s->revision != entry->revision || s->len != entry->value.len ||
        memcmp(s->text, entry->value.at, s->len) != 0) {
        world_breach(a->w, 7, "after the crash %s is not what it was", entry->key);
        return 1;
    }
    a->seq++;
    return 0;
}

void verify_recovered(struct sim_world *w)
{
    struct again log = {.w = w}, keys = {.w = w};
    struct berth_err err;
    size_t known = 0;
    /* Reads the whole log while it is short, later at intervals that keep the cost proportional. All records were also
     * read once when they were written. */
    bool whole = w->log_seq > 2 * w->recovered_seq;
    if (!whole) {
        log.seq = w->recovered_seq;
        log.chain = w->recovered_chain;
    }
    if (store_log(w->daemon.store, log.seq + 1, record_again, &log, &err) < 0)
        world_breach(w, 16, "after the crash the log cannot be read: %s", err.text);
    if (log.seq != w->log_seq || log.chain != w->log_chain)
        world_breach(w, 7, "after the crash the log ends at record %" PRIu64 " instead of %" PRIu64, log.seq,
                     w->log_seq);
    if (store_range(w->daemon.store, "", 0, entry_check, &keys, &err) < 0)
        world_breach(w, 7, "after the crash the keys cannot be read: %s", err.text);
    for (unsigned k = 0; k < KINDS; k++)
        known += w->mirror.of[k].len;
    if (keys.seq != known)
        world_breach(w, 7, "after the crash there are %" PRIu64 " objects instead of %zu", keys.seq, known);
    world_count_check(w, 7);
    world_count_check(w, 16);
    if (whole && !w->invariant) { /* a complete check runs at the end */
        w->recovered_seq = w->log_seq;
        w->recovered_chain = w->log_chain;
        verify_replay(w);
    }
}

void verify_done(struct sim_world *w)
{
    for (size_t i = 0; i < w->heard.len; i++)
        store_event_free(&w->heard.at[i]);
    vec_done(&w->heard);
    mirror_done(&w->mirror);
}
