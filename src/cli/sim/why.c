#include "cli/sim/why.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "berth.h"
#include "cli/job/pods.h"
#include "cli/lib/human.h"
#include "cli/lib/suggest.h"
#include "cli/sim/fold.h"

enum { NOTE_MAX = 160, RANGES_MAX = 48, STAYS_MAX = 10, ADVICE_MAX = 3, ADVICE_TRIES = 8 };

/* The subject of the question: a workload, or one of its pods. */
struct why_target {
    const char *workload;
    uint32_t ordinal;
    bool all;   /* every pod */
    bool known; /* the workload is in the cluster; otherwise only instances of it remain */
    struct berth_workload_view facts;
};

struct why_report {
    const struct plan_view *view;
    const struct berth_cluster *cluster;
    const struct berth_profile *profile;
    struct why_target target;
    VEC(uint64_t) mentioned; /* one bit per ordinal that has an action or is pending */
    size_t told_len;
    VEC(struct berth_instance_view) kept; /* instances that the plan keeps */
};

/* Returns the words after "is" or "are". */
static const char *op_words(enum berth_op op)
{
    static const char *const words[] = {
        [BERTH_PLACE] = "placed on", [BERTH_RESERVE] = "reserved on", [BERTH_PROMOTE] = "promoted to start on",
        [BERTH_STOP] = "stopped on", [BERTH_LOSE] = "marked lost on", [BERTH_ADJUST] = "resized on",
    };
    return words[op];
}

static const char *cause_words(enum berth_cause cause)
{
    static const char *const words[] = {
        [BERTH_CAUSE_PENDING] = "no instance yet",
        [BERTH_CAUSE_REMOVED] = "the workload was deleted",
        [BERTH_CAUSE_SUSPENDED] = "the workload is suspended",
        [BERTH_CAUSE_SCALED] = "fewer pods are requested",
        [BERTH_CAUSE_LOST] = "the node was lost",
        [BERTH_CAUSE_DRAINED] = "the node is being drained",
        [BERTH_CAUSE_MOVED] = "moved to another node",
        [BERTH_CAUSE_BROKEN] = "a task of the gang was lost",
        [BERTH_CAUSE_INFEASIBLE] = "the reservation no longer fits",
        [BERTH_CAUSE_BUSY] = "usage is near the limit",
        [BERTH_CAUSE_IDLE] = "usage is far below the limit",
        [BERTH_CAUSE_OUTDATED] = "its specification has changed",
    };
    return words[cause];
}

static bool matches(const struct why_target *target, const char *workload, uint32_t ordinal)
{
    return strcmp(workload, target->workload) == 0 && (target->all || ordinal == target->ordinal);
}

static void ordinal_mark(struct why_report *why, uint32_t ordinal)
{
    if (why->mentioned.len < bits_words((size_t)ordinal + 1))
        vec_resize(&why->mentioned, bits_words((size_t)ordinal + 1));
    bits_add(why->mentioned.at, ordinal);
    why->told_len++;
}

static void has_instance(void *ctx, const struct berth_instance_view *instance)
{
    (void)instance;
    *(bool *)ctx = true;
}

static bool workload_exists(struct why_target *target, const struct berth_cluster *cluster, const char *id)
{
    bool left_over = false;

    target->workload = id;
    target->known = berth_workload_find(cluster, id, &target->facts);
    if (!target->known)
        berth_instances(cluster, id, has_instance, &left_over);
    return target->known || left_over;
}

static int name_unknown(const struct why_report *why, const char *name, const char *workload)
{
    struct suggestions near;
    struct berth_workload_view w;
    char list[3 * (BERTH_NAME_MAX + 8)] = "";
    size_t at = 0;

    suggest_init(&near, workload);
    for (size_t i = 0; berth_workload_at(why->cluster, i, &w); i++) {
        if (*w.id)
            suggest_offer(&near, w.id);
    }
    for (size_t i = 0; i < near.len; i++)
        at += (size_t)snprintf(list + at, sizeof list - at, "%s'%s'", i ? ", " : "", near.at[i]);
    if (near.len)
        return cli_fail(why->view->cli, EXIT_FAILED, "no workload '%s'; did you mean %s?", name, list);
    return cli_fail(why->view->cli, EXIT_FAILED, "no workload '%s'; POD is WORKLOAD or WORKLOAD/ORDINAL", name);
}

/* `text` is a copy of the name; it is cut at the end of the workload's name. */
static int target_find(struct why_report *why, const char *name, char *text)
{
    struct why_target *target = &why->target;
    size_t len;

    target->all = true;
    if (workload_exists(target, why->cluster, text))
        return EXIT_OK;
    if (pod_split(name, &len, &target->ordinal)) {
        text[len] = '\0';
        target->all = false;
        if (!workload_exists(target, why->cluster, text))
            return name_unknown(why, name, text);
        return EXIT_OK;
    }
    return name_unknown(why, name, text);
}

static void row_print(const struct why_report *why, const struct fold *fold, const struct fold_row *row)
{
    const struct cli *cli = why->view->cli;
    const struct berth_action *action = &row->first;
    char ranges[RANGES_MAX], note[NOTE_MAX], gpus[64], text[1024];

    ranges_print(fold->ordinals.at + row->ordinals_at, row->pods, ranges, sizeof ranges);
    action_note(action, note, sizeof note);
    fprintf(cli->out, "%s%s/%s%s ", cli_paint(cli, COLOR_BOLD), action->workload, ranges, cli_paint(cli, COLOR_NONE));
    size_t at = (size_t)snprintf(text, sizeof text, "%s %s %s: %s", row->pods == 1 ? "is" : "are", op_words(action->op),
                                 action->node, cause_words(action->cause));
    if (*note && at < sizeof text)
        at += (size_t)snprintf(text + at, sizeof text - at, "; %s", note);
    if (row->pods == 1 && action->gpus && at < sizeof text)
        snprintf(text + at, sizeof text - at, "; it uses GPU%s %s", plural(row->gpus),
                 bits_print(action->gpus, gpus, sizeof gpus));
    else if (row->gpus && at < sizeof text)
        snprintf(text + at, sizeof text - at, "; they use %s GPU%s", show_count(row->gpus).text, plural(row->gpus));
    cli_wrap(cli, text, 4, strlen(action->workload) + strlen(ranges) + 2);
}

/* Returns the number of placed pods. */
static size_t actions_print(struct why_report *why)
{
    size_t len = berth_plan_actions(why->view->plan);
    size_t placed = 0;
    struct fold fold;

    fold_init(&fold, FOLD_NODE);
    for (size_t i = 0; i < len; i++) {
        struct berth_action action = berth_plan_action(why->view->plan, i);
        if (!matches(&why->target, action.workload, action.ordinal))
            continue;
        fold_add(&fold, &action);
        placed += action.op == BERTH_PLACE || action.op == BERTH_RESERVE;
        ordinal_mark(why, action.ordinal);
    }
    fold_end(&fold);
    for (size_t i = 0; i < fold.rows.len; i++)
        row_print(why, &fold, &fold.rows.at[i]);
    fold_done(&fold);
    return placed;
}

static void profile_print(const struct why_report *why, size_t placed)
{
    const struct berth_profile *profile = why->profile ? why->profile : berth_profile_at(0);
    char text[1024];
    size_t at = (size_t)snprintf(text, sizeof text,
                                 "Of the feasible nodes, %s had the highest score in %s placement attempt. "
                                 "Profile: %s; weights: ",
                                 placed == 1 ? "this node" : "each node", placed == 1 ? "the" : "its", profile->name);

    for (size_t i = 0; i < profile->scores_len && at < sizeof text; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s=%" PRId32, i ? ", " : "", profile->scores[i].score,
                               profile->scores[i].weight);
    fputs("  ", why->view->cli->out);
    cli_wrap(why->view->cli, text, 2, 2);
}

/* Prints changes that would let a later plan place more of the pods. */
static void advice_print(const struct why_report *why, size_t pending)
{
    const struct cli *cli = why->view->cli;
    const struct berth_policy policy = {.profile = why->profile};
    struct berth_advice advice[ADVICE_MAX];
    size_t len = berth_plan_advise(why->view->plan, &policy, pending, ADVICE_TRIES, advice, ADVICE_MAX);

    for (size_t i = 0; i < len; i++) {
        fprintf(cli->out, "    %sSuggestion:%s ", cli_paint(cli, COLOR_GREEN), cli_paint(cli, COLOR_NONE));
        cli_wrap(cli, advice[i].text, 6, 4 + strlen("Suggestion: "));
    }
}

static void pending_print(struct why_report *why)
{
    const struct cli *cli = why->view->cli;
    size_t len = berth_plan_pendings(why->view->plan);

    for (size_t i = 0; i < len; i++) {
        struct berth_pending pending = berth_plan_pending(why->view->plan, i);
        char ranges[RANGES_MAX];
        size_t count = 0;
        if (strcmp(pending.workload, why->target.workload) != 0)
            continue;
        for (size_t j = 0; j < pending.ordinals_len; j++) {
            if (matches(&why->target, pending.workload, pending.ordinals[j])) {
                ordinal_mark(why, pending.ordinals[j]);
                count++;
            }
        }
        if (count == 0)
            continue;
        if (why->target.all)
            ranges_print(pending.ordinals, pending.ordinals_len, ranges, sizeof ranges);
        else
            ranges_print(&why->target.ordinal, 1, ranges, sizeof ranges);
        fprintf(cli->out, "%s%s/%s%s %s pending:\n", cli_paint(cli, COLOR_BOLD), pending.workload, ranges,
                cli_paint(cli, COLOR_NONE), count == 1 ? "is" : "are");
        plan_view_reasons(why->view, &pending, true);
        advice_print(why, i);
    }
}

static void kept_instance_add(void *ctx, const struct berth_instance_view *instance)
{
    struct why_report *why = ctx;
    bool mentioned = instance->ordinal / 64 < why->mentioned.len && bits_has(why->mentioned.at, instance->ordinal);

    if (!mentioned && matches(&why->target, why->target.workload, instance->ordinal))
        vec_push(&why->kept, *instance);
}

static int instance_compare(const void *a, const void *b)
{
    const struct berth_instance_view *x = a, *y = b;

    return x->ordinal != y->ordinal ? (x->ordinal > y->ordinal) - (x->ordinal < y->ordinal)
                                    : (x->id > y->id) - (x->id < y->id);
}

static void kept_instances_print(struct why_report *why)
{
    FILE *out = why->view->cli->out;

    berth_instances(why->cluster, why->target.workload, kept_instance_add, why);
    if (why->kept.len)
        qsort(why->kept.at, why->kept.len, sizeof why->kept.at[0], instance_compare);
    for (size_t i = 0; i < why->kept.len && i < STAYS_MAX; i++) {
        const struct berth_instance_view *instance = &why->kept.at[i];
        fprintf(out, "%s/%" PRIu32 " is unchanged: %s on %s (#%" PRIu64 ")\n", why->target.workload, instance->ordinal,
                berth_state_name(instance->state), instance->node, instance->id);
    }
    if (why->kept.len > STAYS_MAX)
        fprintf(out, "... and %s more unchanged\n", show_count(why->kept.len - STAYS_MAX).text);
}

static int no_action_print(const struct why_report *why)
{
    const struct why_target *target = &why->target;
    FILE *out = why->view->cli->out;

    if (target->known && target->facts.suspended)
        fprintf(out, "%s is suspended: it has no instances until it is resumed.\n", target->workload);
    else if (target->known && target->facts.replicas == 0)
        fprintf(out, "%s has 0 replicas.\n", target->workload);
    else if (target->known && !target->all && target->ordinal >= target->facts.replicas)
        return cli_fail(why->view->cli, EXIT_FAILED, "no pod %s/%" PRIu32 ": %s has %" PRIu32 " pod%s, numbered from 0",
                        target->workload, target->ordinal, target->workload, target->facts.replicas,
                        plural(target->facts.replicas));
    else
        fprintf(out, "The plan has no action for this workload.\n");
    return EXIT_OK;
}

int why_print(const struct plan_view *view, const struct berth_cluster *cluster, const struct berth_profile *profile,
              const char *name)
{
    struct why_report why = {.view = view, .cluster = cluster, .profile = profile};
    CLEANUP(mem) char *text = mem_strdup(name);

    int rc = target_find(&why, name, text);
    if (rc != EXIT_OK)
        return rc;
    size_t placed = actions_print(&why);
    if (placed)
        profile_print(&why, placed);
    pending_print(&why);
    kept_instances_print(&why);
    if (why.told_len + why.kept.len == 0)
        rc = no_action_print(&why);
    vec_done(&why.mentioned);
    vec_done(&why.kept);
    return rc;
}
