#include "kube/journal/replay.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "control/journal/batch_record.h"
#include "journal/reader.h"
#include "journal/record.h"
#include "journal/scan.h"
#include "kube/journal/replay_ops.h"
#include "kube/sched/plan_choice.h"

enum { KEYS_MAX = 1000, KEYS_SHOWN = 5 };

/* An input since the last plan, to name those that may differ. */
struct replay_key {
    enum journal_word word;
    char *key;
};

struct kube_replay {
    const struct kube_replay_options *o;
    struct kube_replay_result *result;
    struct replay_state now;
    bool known;       /* all records since the base are present */
    uint64_t base, n; /* of the last record */
    VEC(struct replay_key) keys;
    struct str text;
    uint64_t from_seq; /* of the first pass: the last base before the requested range */
    struct berth_err *err;
};

/* ---- inputs ----------------------------------------------------------------------------------------------------- */

static void keys_clear(struct kube_replay *r)
{
    for (size_t i = 0; i < r->keys.len; i++)
        mem_free(r->keys.at[i].key);
    r->keys.len = 0;
}

static int changes_take(struct kube_replay *r, struct bytes record)
{
    struct bytes changes, one;
    const char *at = NULL;
    int rc = 0;
    if (!scan_array(record, "changes", &changes))
        return err_set(r->err, EBADMSG, "a record has no changes");
    while (rc == 0 && scan_next(changes, &at, &one)) {
        enum journal_word word = WORDS;
        rc = replay_state_apply(&r->now, one, &word, r->err);
        r->result->inputs++;
        if (rc == 0 && r->keys.len < KEYS_MAX)
            vec_push(&r->keys, ((struct replay_key){word, mem_strdup(str_text(&r->now.text))}));
    }
    return rc;
}

/* Finds the kinds of input that differ, and names those inputs that came since the last plan. Afterwards continues from
 * the recorded hash. */
static void inputs_compare(struct kube_replay *r, struct bytes cycle)
{
    struct bytes hashes;
    str_clear(&r->text);
    if (!scan_member(cycle, "kinds", &hashes))
        return;
    for (unsigned w = 0; w < WORDS; w++) {
        uint64_t recorded = scan_hex(hashes, journal_words[w], r->now.hashes.at[w]);
        size_t shown = 0;
        if (recorded == r->now.hashes.at[w])
            continue;
        r->now.hashes.at[w] = recorded;
        if (r->text.len)
            continue;
        str_addf(&r->text, "inputs differ, first '%s'; changes since the previous plan:", journal_words[w]);
        for (size_t i = 0; i < r->keys.len; i++)
            if (r->keys.at[i].word == w && shown++ < KEYS_SHOWN)
                str_addf(&r->text, " %s", r->keys.at[i].key);
        if (shown == 0)
            str_add(&r->text, " none, so a change is missing");
        else if (shown > KEYS_SHOWN)
            str_addf(&r->text, " and %zu more", shown - KEYS_SHOWN);
    }
    if (!r->text.len && r->now.odd[0])
        str_add(&r->text, r->now.odd);
    r->now.odd[0] = 0;
}

/* ---- plans ------------------------------------------------------------------------------------------------------ */

static bool is_requested(const struct kube_replay *r, uint64_t n, int64_t now_ns)
{
    const struct kube_replay_options *o = r->o;
    return n >= o->from_plan && (!o->to_plan || n <= o->to_plan) && now_ns >= o->from_ns &&
           (!o->to_ns || now_ns <= o->to_ns);
}

static void differs(struct kube_replay *r, struct kube_replay_difference *d, struct bytes cycle,
                    const struct berth_plan *plan)
{
    struct bytes actions = {0};
    json_t *recorded = scan_member(cycle, "actions", &actions) ? json_loadb(actions.at, actions.len, 0, NULL) : NULL;
    json_t *replayed = batch_actions_of(plan);
    r->result->different++;
    d->input = str_text(&r->text);
    d->actions = recorded;
    d->actions_replayed = replayed;
    if (r->o->differs)
        r->o->differs(r->o->ctx, d);
    json_decref(recorded);
    json_decref(replayed);
}

static int plan_make(struct kube_replay *r, const struct store_record *record, struct bytes cycle)
{
    struct kube_replay_difference d = {.plan = scan_u64(cycle, "n", 0),
                                       .record = record->seq,
                                       .now_ns = scan_i64(cycle, "now", 0),
                                       .recorded = scan_hex(cycle, "plan", 0)};
    if (d.now_ns < 0 || d.now_ns > REPLAY_MOMENT_MAX)
        return err_set(r->err, EBADMSG, "the time of its plan is out of range");
    struct berth_cluster *cluster = cache_cluster(r->now.cache);
    struct plan_policy policy;
    struct kube_choice choice;
    kube_policy_read(&r->now.policy, r->now.tenants, &policy);
    int rc = kube_choose(cluster, d.now_ns, &policy.policy, &choice, r->err);
    if (rc == 0) {
        d.replayed = berth_plan_hash(choice.plan);
        inputs_compare(r, cycle);
        if (is_requested(r, d.plan, d.now_ns)) {
            r->result->plans++;
            if (d.replayed != d.recorded || r->text.len)
                differs(r, &d, cycle, choice.plan);
        }
        kube_remember(cluster, choice.plan);
        kube_choice_done(&choice);
    }
    plan_policy_done(&policy);
    keys_clear(r);
    return rc;
}

/* ---- records ---------------------------------------------------------------------------------------------------- */

/* After missing records, everything up to the next base is unknown. */
static void mark_unknown(struct kube_replay *r)
{
    r->result->gaps += r->known;
    r->known = false;
    keys_clear(r);
}

static int on_record(void *ctx, const struct store_record *record)
{
    struct kube_replay *r = ctx;
    struct bytes cycle;
    uint64_t base = scan_u64(record->record, "base", 0), n = scan_u64(record->record, "n", 0);
    bool plan = scan_member(record->record, "cycle", &cycle);
    r->result->records++;
    if (!journal_kind_has_prefix(record->record, JOURNAL_KUBE))
        return err_set(r->err, EBADMSG,
                       "record %" PRIu64 " is not from berth-kube; for a journal of berthd use 'berth replay'",
                       record->seq);
    if (n == 1 && journal_kind_has_prefix(record->record, "kube.base")) {
        keys_clear(r);
        r->known = true;
        r->result->bases++;
    } else if (!r->known || base != r->base || n != r->n + 1) {
        mark_unknown(r);
    }
    r->base = base;
    r->n = n;
    if (!r->known) {
        r->result->skipped += plan && is_requested(r, scan_u64(cycle, "n", 0), scan_i64(cycle, "now", 0));
        return 0;
    }
    int rc = changes_take(r, record->record);
    if (rc == 0 && plan)
        rc = plan_make(r, record, cycle);
    if (rc < 0)
        return err_prefix(r->err, "record %" PRIu64, record->seq);
    return 0;
}

/* Detects records that were never written, or are gone with their segments. */
static int on_start(void *ctx, const struct journal_break *b)
{
    struct kube_replay *r = ctx;
    if (b->before && b->first != b->before + 1)
        mark_unknown(r);
    return 0;
}

static int find_record(void *ctx, const struct store_record *record)
{
    struct kube_replay *r = ctx;
    if (journal_kind_has_prefix(record->record, "kube.base") && scan_u64(record->record, "n", 0) == 1 &&
        (r->from_seq == 0 || journal_record_ns(record) <= r->o->from_ns))
        r->from_seq = record->seq;
    return 0;
}

int kube_replay(struct journal *journal, const struct kube_replay_options *options, struct kube_replay_result *ret,
                struct berth_err *err)
{
    struct kube_replay r = {.o = options, .result = ret, .err = err};
    int rc = 0;
    /* A record is written soon after the time of its plan. */
    int64_t until_ns = options->to_ns ? options->to_ns + 3600 * INT64_C(1000000000) : 0;
    *ret = (struct kube_replay_result){0};
    if (options->from_ns)
        rc = journal_read(journal, &(struct journal_range){.bare = true},
                          &(struct journal_visitor){.record = find_record, .ctx = &r}, err);
    if (rc == 0)
        rc = journal_read(journal, &(struct journal_range){.from_seq = r.from_seq, .to_ns = until_ns, .bare = true},
                          &(struct journal_visitor){.start = on_start, .record = on_record, .ctx = &r}, err);
    replay_state_done(&r.now);
    keys_clear(&r);
    vec_done(&r.keys);
    str_done(&r.text);
    return rc;
}
