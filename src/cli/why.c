#include "cli/why.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "cli/fold.h"
#include "cli/peek.h"
#include "cli/pods.h"
#include "cli/show.h"
#include "cli/suggest.h"

enum { NOTE_MAX = 160, RANGES_MAX = 48 };

/* What is asked about: a workload, or one pod of it. */
struct target {
    const char *workload;
    uint32_t ordinal;
    bool all;   /* every pod */
    bool known; /* the workload is in the cluster; else only instances of it are left */
    struct peek_workload facts;
};

struct why {
    const struct plan_view *view;
    const struct berth_cluster *cluster;
    const struct berth_profile *profile;
    struct target target;
    uint64_t told; /* actions and pending pods so far */
};

static const char *op_sentence(enum berth_op op)
{
    static const char *const sentences[] = {
        [BERTH_PLACE] = "is placed on",       [BERTH_RESERVE] = "gets a reserved place on",
        [BERTH_PROMOTE] = "may now start on", [BERTH_STOP] = "stops on",
        [BERTH_LOSE] = "counts as ended on",  [BERTH_ADJUST] = "gets another limit on",
    };
    return sentences[op];
}

static const char *cause_sentence(enum berth_cause cause)
{
    static const char *const sentences[] = {
        [BERTH_CAUSE_PENDING] = "it had no instance",
        [BERTH_CAUSE_REMOVED] = "its workload is gone",
        [BERTH_CAUSE_SUSPENDED] = "its workload is suspended",
        [BERTH_CAUSE_SCALED] = "its workload asks for fewer pods",
        [BERTH_CAUSE_LOST] = "its node was lost",
        [BERTH_CAUSE_DRAINED] = "its node is being drained",
        [BERTH_CAUSE_MOVED] = "it is moved",
        [BERTH_CAUSE_BROKEN] = "its gang lost a task",
        [BERTH_CAUSE_INFEASIBLE] = "its reserved place fits no longer",
        [BERTH_CAUSE_BUSY] = "its use is near the limit",
        [BERTH_CAUSE_IDLE] = "its use is far below the limit",
    };
    return sentences[cause];
}

static bool matches(const struct target *target, const char *workload, uint32_t ordinal)
{
    return strcmp(workload, target->workload) == 0 && (target->all || ordinal == target->ordinal);
}

static void has_instance(void *ctx, const struct peek_instance *instance)
{
    (void)instance;
    *(bool *)ctx = true;
}

static bool workload_exists(struct target *target, const struct berth_cluster *cluster, const char *id)
{
    bool left_over = false;

    target->workload = id;
    target->known = peek_workload_find(cluster, id, &target->facts);
    if (!target->known)
        peek_instances(cluster, id, has_instance, &left_over);
    return target->known || left_over;
}

static int name_unknown(const struct why *why, const char *name, const char *workload)
{
    struct suggest near;
    struct peek_workload w;
    char list[3 * (BERTH_NAME_MAX + 8)] = "";
    size_t at = 0;

    suggest_init(&near, workload);
    for (size_t i = 0; peek_workload_at(why->cluster, i, &w); i++) {
        if (*w.id)
            suggest_offer(&near, w.id);
    }
    for (size_t i = 0; i < near.len; i++)
        at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", i ? ", " : "", near.at[i]);
    if (near.len)
        return cli_fail(why->view->cli, EXIT_FAILED, "no workload '%s'; did you mean %s?", name, list);
    return cli_fail(why->view->cli, EXIT_FAILED, "no workload '%s'; POD is WORKLOAD or WORKLOAD/ORDINAL", name);
}

/* `text` has room for the name; it is cut where a workload's name ends. */
static int target_find(struct why *why, const char *name, char *text)
{
    struct target *target = &why->target;
    size_t len;

    strcpy(text, name);
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

static void row_print(const struct why *why, const struct fold *fold, const struct fold_row *row)
{
    const struct cli *cli = why->view->cli;
    const struct berth_action *action = &row->first;
    char ranges[RANGES_MAX], note[NOTE_MAX], gpus[64], text[1024];

    ranges_print(fold->ordinals.at + row->ordinals_at, row->pods, ranges, sizeof ranges);
    action_note(action, note, sizeof note);
    fprintf(cli->out, "%s%s/%s%s ", cli_paint(cli, COLOR_BOLD), action->workload, ranges, cli_paint(cli, COLOR_NONE));
    size_t at = (size_t)snprintf(text, sizeof text, "%s %s: %s", op_sentence(action->op), action->node,
                                 cause_sentence(action->cause));
    if (*note && at < sizeof text)
        at += (size_t)snprintf(text + at, sizeof text - at, "; %s", note);
    if (row->pods == 1 && action->gpus && at < sizeof text)
        snprintf(text + at, sizeof text - at, "; it holds GPU %s", bits_print(action->gpus, gpus, sizeof gpus));
    else if (row->gpus && at < sizeof text)
        snprintf(text + at, sizeof text - at, "; %s GPUs held", show_count(row->gpus).text);
    cli_wrap(cli, text, 4, strlen(action->workload) + strlen(ranges) + 2);
}

/* Returns whether something was placed. */
static bool actions_print(struct why *why)
{
    size_t len = berth_plan_actions(why->view->plan);
    bool placed = false;
    struct fold fold;

    fold_init(&fold, FOLD_NODE);
    for (size_t i = 0; i < len; i++) {
        struct berth_action action = berth_plan_action(why->view->plan, i);
        if (!matches(&why->target, action.workload, action.ordinal))
            continue;
        fold_add(&fold, &action);
        placed |= action.op == BERTH_PLACE || action.op == BERTH_RESERVE;
        why->told++;
    }
    fold_end(&fold);
    for (size_t i = 0; i < fold.rows.len; i++)
        row_print(why, &fold, &fold.rows.at[i]);
    fold_done(&fold);
    return placed;
}

static void profile_print(const struct why *why)
{
    const struct berth_profile *profile = why->profile ? why->profile : berth_profile_at(0);
    char text[1024];
    size_t at = (size_t)snprintf(text, sizeof text,
                                 "Of the nodes that passed every filter it scored highest when its turn came. Profile "
                                 "'%s', by weight: ",
                                 profile->name);

    for (size_t i = 0; i < profile->scores_len && at < sizeof text; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s %" PRId32, i ? ", " : "", profile->scores[i].score,
                               profile->scores[i].weight);
    fputs("  ", why->view->cli->out);
    cli_wrap(why->view->cli, text, 2, 2);
}

static void pending_print(struct why *why)
{
    const struct cli *cli = why->view->cli;
    size_t len = berth_plan_pendings(why->view->plan);

    for (size_t i = 0; i < len; i++) {
        struct berth_pending pending = berth_plan_pending(why->view->plan, i);
        char ranges[RANGES_MAX];
        size_t count = 0;
        if (strcmp(pending.workload, why->target.workload) != 0)
            continue;
        for (size_t j = 0; j < pending.ordinals_len; j++)
            count += matches(&why->target, pending.workload, pending.ordinals[j]);
        if (count == 0)
            continue;
        why->told += count;
        if (why->target.all)
            ranges_print(pending.ordinals, pending.ordinals_len, ranges, sizeof ranges);
        else
            ranges_print(&why->target.ordinal, 1, ranges, sizeof ranges);
        fprintf(cli->out, "%s%s/%s%s %s pending:\n", cli_paint(cli, COLOR_BOLD), pending.workload, ranges,
                cli_paint(cli, COLOR_NONE), count == 1 ? "is" : "are");
        plan_view_reasons(why->view, &pending, true);
    }
}

static void instance_print(void *ctx, const struct peek_instance *instance)
{
    struct why *why = ctx;

    if (!matches(&why->target, why->target.workload, instance->ordinal))
        return;
    fprintf(why->view->cli->out, "%s/%" PRIu32 " stays as it is: %s on %s (#%" PRIu64 ").\n", why->target.workload,
            instance->ordinal, berth_state_name(instance->state), instance->node, instance->id);
    why->told++;
}

static void nothing_print(const struct why *why)
{
    const struct target *target = &why->target;
    FILE *out = why->view->cli->out;

    if (target->known && target->facts.suspended)
        fprintf(out, "%s is suspended: it gets no instances until that is lifted.\n", target->workload);
    else if (target->known && target->facts.replicas == 0)
        fprintf(out, "%s asks for no pods: its replicas are 0.\n", target->workload);
    else if (target->known && !target->all && target->ordinal >= target->facts.replicas)
        fprintf(out, "%s has %" PRIu32 " pod%s, numbered from 0: there is no %s/%" PRIu32 ".\n", target->workload,
                target->facts.replicas, plural(target->facts.replicas), target->workload, target->ordinal);
    else
        fprintf(out, "The plan does nothing about it.\n");
}

int why_print(const struct plan_view *view, const struct berth_cluster *cluster, const struct berth_profile *profile,
              const char *name)
{
    struct why why = {.view = view, .cluster = cluster, .profile = profile};
    CLEANUP(mem) char *text = mem_alloc(strlen(name) + 1);

    int rc = target_find(&why, name, text);
    if (rc != EXIT_OK)
        return rc;
    if (actions_print(&why))
        profile_print(&why);
    pending_print(&why);
    if (why.told == 0)
        peek_instances(cluster, why.target.workload, instance_print, &why);
    if (why.told == 0)
        nothing_print(&why);
    return EXIT_OK;
}
