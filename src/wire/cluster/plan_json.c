/* plan_json.c - prints a plan as JSON, piece by piece. */
#include "wire/cluster/plan_json.h"

#include <errno.h>
#include <inttypes.h>

#include "base/bits.h"
#include "base/mem.h"
#include "base/str.h"
#include "wire/doc/objects.h"

enum { FLUSH_BYTES = 64 * 1024 };

struct plan_writer {
    FILE *to;
    struct str text;
};

static void flush(struct plan_writer *w, size_t above)
{
    if (w->text.len <= above)
        return;
    /* the stream remembers errors; they are checked at the end */
    (void)fwrite(str_text(&w->text), 1, w->text.len, w->to);
    str_clear(&w->text);
}

/* Writes "key":, after a comma unless it is the first member. */
static void member(struct str *s, const char *key, bool first)
{
    str_addf(s, "%s\"%s\":", first ? "" : ",", key);
}

static void member_text(struct str *s, const char *key, const char *text)
{
    member(s, key, false);
    str_add_json(s, text ? text : "");
}

static void member_u64(struct str *s, const char *key, uint64_t value)
{
    member(s, key, false);
    str_addf(s, "%" PRIu64, value);
}

/* Writes WORKLOAD/ORDINAL. Digits need no escape, so the number is inserted before the closing quote. */
static void member_pod(struct str *s, bool first, const char *workload, uint32_t ordinal)
{
    member(s, "pod", first);
    str_add_json(s, workload);
    s->at[--s->len] = 0;
    str_addf(s, "/%" PRIu32 "\"", ordinal);
}

/* Writes seconds without loss of precision. */
static void seconds(struct str *s, int64_t ns)
{
    const int64_t second = 1000000000;
    uint64_t size = ns < 0 ? -(uint64_t)ns : (uint64_t)ns, part = size % (uint64_t)second;
    str_addf(s, "%s%" PRIu64, ns < 0 ? "-" : "", size / (uint64_t)second);
    if (part)
        str_addf(s, ".%09" PRIu64, part);
}

static void action_write(struct str *s, const struct berth_action *a)
{
    str_add(s, "{\"op\":");
    str_add_json(s, berth_op_name(a->op));
    member_pod(s, false, a->workload, a->ordinal);
    member_text(s, "node", a->node);
    member_text(s, "cause", berth_cause_name(a->cause));
    if (a->instance)
        member_u64(s, "instance", a->instance);
    if (a->replaces)
        member_u64(s, "replaces", a->replaces);
    if (a->gpus) {
        bool first = true;
        member(s, "gpus", false);
        BITS_EACH (device, a->gpus) {
            str_addf(s, "%s%" PRIu64, first ? "[" : ",", device);
            first = false;
        }
        str_add_char(s, ']');
    }
    if (a->waits_len) {
        member(s, "waits", false);
        for (size_t i = 0; i < a->waits_len; i++)
            str_addf(s, "%s%" PRIu64, i ? "," : "[", a->waits[i]);
        str_add_char(s, ']');
    }
    if (a->op == BERTH_ADJUST) {
        member_text(s, "resource", a->resource);
        member(s, "limit", false);
        str_addf(s, "%" PRId64, a->limit);
    }
    str_add_char(s, '}');
}

static void reason_write(struct str *s, const struct berth_reason *r)
{
    str_add(s, "{\"reason\":");
    str_add_json(s, r->reason);
    member_text(s, "what", r->what);
    member_u64(s, "nodes", r->nodes);
    member_u64(s, "only", r->only);
    member_text(s, "text", r->text);
    str_add_char(s, '}');
}

/* Writes one entry per pod; the pods of a workload share their reasons. */
static uint64_t pending_write(struct plan_writer *w, const struct berth_pending *p, bool first)
{
    CLEANUP(str) struct str why = {0};
    member(&why, "reasons", false);
    str_add_char(&why, '[');
    for (size_t i = 0; i < p->reasons_len; i++) {
        if (i)
            str_add_char(&why, ',');
        reason_write(&why, &p->reasons[i]);
    }
    str_add_char(&why, ']');
    str_add_char(&why, '}');

    for (size_t i = 0; i < p->ordinals_len; i++) {
        str_add(&w->text, first && i == 0 ? "{" : ",{");
        member_pod(&w->text, true, p->workload, p->ordinals[i]);
        str_add(&w->text, str_text(&why));
        flush(w, FLUSH_BYTES);
    }
    return p->ordinals_len;
}

static void fact_write(struct str *s, const struct berth_fact *f)
{
    str_add(s, "{\"kind\":");
    str_add_json(s, fact_kind_name(f->kind));
    if (f->subject)
        member_u64(s, "subject", f->subject);
    if (f->key && *f->key)
        member_text(s, "key", f->key);
    member(s, "value", false);
    str_addf(s, "%" PRId64, f->value);
    member(s, "at", false);
    seconds(s, f->at_ns);
    if (f->over)
        str_add(s, ",\"over\":true");
    str_add_char(s, '}');
}

static void summary_write(struct str *s, const struct berth_plan *plan, uint64_t pending)
{
    static const enum berth_op ops[] = {BERTH_PLACE, BERTH_RESERVE, BERTH_PROMOTE,
                                        BERTH_STOP,  BERTH_LOSE,    BERTH_ADJUST};
    uint64_t count[sizeof ops / sizeof *ops] = {0};
    for (size_t i = 0; i < berth_plan_actions(plan); i++)
        count[berth_plan_action(plan, i).op]++;
    str_addf(s, ",\"summary\":{\"placed\":%" PRIu64 ",\"pending\":%" PRIu64, count[BERTH_PLACE], pending);
    str_addf(s, ",\"reserved\":%" PRIu64 ",\"promoted\":%" PRIu64 ",\"stopped\":%" PRIu64 ",\"lost\":%" PRIu64,
             count[BERTH_RESERVE], count[BERTH_PROMOTE], count[BERTH_STOP], count[BERTH_LOSE]);
    str_addf(s, ",\"adjusted\":%" PRIu64 "}}\n", count[BERTH_ADJUST]);
}

static void tail_write(struct str *s, const struct berth_plan *plan, uint64_t pending)
{
    int64_t recheck = berth_plan_recheck_ns(plan);
    member(s, "recheck", false);
    if (recheck == BERTH_NEVER_NS)
        str_add(s, "null");
    else
        seconds(s, recheck);
    member(s, "alarm", false);
    str_add(s, berth_plan_alarm(plan) ? "true" : "false");
    str_addf(s, ",\"hash\":\"%016" PRIx64 "\"", berth_plan_hash(plan));
    summary_write(s, plan, pending);
}

int plan_json_write(struct berth_plan *plan, FILE *to)
{
    struct plan_writer w = {.to = to};
    uint64_t pending = 0;

    str_add(&w.text, "{\"actions\":[");
    for (size_t i = 0; i < berth_plan_actions(plan); i++) {
        struct berth_action action = berth_plan_action(plan, i);
        if (i)
            str_add_char(&w.text, ',');
        action_write(&w.text, &action);
        flush(&w, FLUSH_BYTES);
    }
    str_add(&w.text, "],\"pending\":[");
    for (size_t i = 0; i < berth_plan_pendings(plan); i++) {
        struct berth_pending p = berth_plan_pending(plan, i);
        pending += pending_write(&w, &p, pending == 0);
    }
    str_add(&w.text, "],\"facts\":[");
    for (size_t i = 0; i < berth_plan_facts(plan); i++) {
        struct berth_fact fact = berth_plan_fact(plan, i);
        if (i)
            str_add_char(&w.text, ',');
        fact_write(&w.text, &fact);
        flush(&w, FLUSH_BYTES);
    }
    str_add_char(&w.text, ']');
    tail_write(&w.text, plan, pending);
    flush(&w, 0);
    str_done(&w.text);
    if (ferror(to) || fflush(to) != 0)
        return -EIO;
    return 0;
}
