#include "control/journal/batch_record.h"

#include <inttypes.h>

#include "base/plant.h"
#include "base/str.h"

static void add_number(struct str *to, int64_t number)
{
    char buf[24];
    str_add_char(to, ',');
    if (number < 0)
        str_add_char(to, '-');
    str_add(to, str_u64(number < 0 ? -(uint64_t)number : (uint64_t)number, buf));
}

/* Avoids printf, because it runs for each placed pod. */
void batch_action_write(const struct batch_action *a, struct str *to)
{
    if (str_text(to)[to->len - 1] == ']')
        str_add_char(to, ',');
    str_add(to, "[\"");
    str_add(to, berth_op_name(a->op));
    str_add(to, "\",");
    str_add_json(to, a->workload);
    add_number(to, a->ordinal);
    str_add_char(to, ',');
    str_add_json(to, a->node ? a->node : "");
    add_number(to, (int64_t)a->instance);
    str_add(to, ",\"");
    str_add(to, berth_cause_name(a->cause));
    str_add_char(to, '"');
    if (a->op == BERTH_PLACE || a->op == BERTH_RESERVE) {
        add_number(to, a->score);
        add_number(to, a->rival);
    }
    str_add_char(to, ']');
}

json_t *batch_actions_of(const struct berth_plan *plan)
{
    CLEANUP(str) struct str text = {0};
    str_add_char(&text, '[');
    for (size_t i = 0; i < berth_plan_actions(plan); i++) {
        struct berth_action a = berth_plan_action(plan, i);
        batch_action_write(
            &(struct batch_action){a.op, a.cause, a.workload, a.node, a.ordinal, a.instance, a.score, a.rival}, &text);
    }
    str_add_char(&text, ']');
    return json_loadb(text.at, text.len, 0, NULL);
}

void batch_basis_write(const struct batch_basis *b, size_t unit, size_t of, struct str *to)
{
    str_addf(to,
             "{\"cycle\":{\"n\":%" PRIu64 ",\"unit\":%zu,\"of\":%zu,\"revision\":%" PRIu64 ",\"state\":\"%016" PRIx64
             "\",\"now\":%" PRId64 ",\"seed\":%" PRIu64 ",\"plan\":\"%016" PRIx64 "\",\"profile\":",
             b->cycle, unit, of, b->revision, b->state_hash,
             b->now_ns + PLANTED(MOMENT_UNTOLD) * INT64_C(3600000000000), b->seed, b->plan_hash);
    str_add_json(to, b->profile);
}

void batch_failure_note(struct batch_failures *f, uint64_t cycle, size_t unit)
{
    enum { KEPT_MAX = 16 };
    if (f->len >= KEPT_MAX) {
        f->more++;
        return;
    }
    str_addf(&f->text, "%s[%" PRIu64 ",%zu]", f->len++ ? "," : "", cycle, unit);
}

void batch_failures_write(struct batch_failures *f, struct str *to)
{
    if (f->len == 0)
        return;
    str_addf(to, ",\"given_back\":[%s]", str_text(&f->text));
    if (f->more)
        str_addf(to, ",\"given_back_more\":%zu", f->more);
    str_clear(&f->text);
    f->len = f->more = 0;
}

void batch_kinds_write(const struct batch_basis *b, struct str *to)
{
    bool some = false;
    str_add(to, ",\"kinds\":{");
    for (unsigned k = 0; k < KINDS; k++)
        if (b->kinds[k]) {
            str_addf(to, "%s\"%s\":\"%08" PRIx32 "\"", some ? "," : "", kinds[k].plural, b->kinds[k]);
            some = true;
        }
    str_add_char(to, '}');
}
