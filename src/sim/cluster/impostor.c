/* impostor.c - forged reports under an agent's name. Each must be rejected or must change nothing, for different
 * reasons: an old agent, a repeated number, another node, instances of another node, impossible states.
 */
#include <inttypes.h>
#include <stdio.h>

#include "sim/cluster/agent.h"

static json_t *item(uint64_t id, const char *state)
{
    return json_pack("{s:I, s:s}", "id", (json_int_t)id, "state", state);
}

/* Returns reports that all instances of the machine are over. */
static json_t *all_over(struct random_stream *rng, const struct sim_agent *a)
{
    json_t *items = json_array();
    for (size_t i = 0; i < a->machine.sim_instances.len; i++)
        (void)json_array_append_new(
            items, item(a->machine.sim_instances.at[i]->id, RANDOM_PICK(rng, char *, "failed", "ended", "stopped")));
    return items;
}

static char *report_text(uint64_t epoch, uint64_t seq, json_t *items)
{
    json_t *report =
        json_pack("{s:I, s:I, s:o}", "epoch", (json_int_t)epoch, "seq", (json_int_t)seq, "instances", items);
    char *text = json_dumps(report, JSON_COMPACT);
    json_decref(report);
    return text;
}

static void forged_report(struct sim_agent *a, const char *node, uint64_t epoch, uint64_t seq, json_t *items,
                          bool stale)
{
    struct forged_report forged_report = {
        .node = node, .epoch = epoch, .seq = seq, .text = report_text(epoch, seq, items), .stale = stale};
    a->w->counts.double_agents++;
    network_forged_report(a, &forged_report);
}

void agents_forge(struct sim_world *w, size_t which)
{
    struct random_stream *rng = &w->agents_rng;
    struct sim_agent *a = w->agents->at.at[which], *other = w->agents->at.at[random_below(rng, w->agents->at.len)];
    const struct accepted_reports *heard = agent_accepted_reports(a);
    world_trace(w, "somebody speaks as %s", a->node);
    switch (random_below(rng, 3)) {
    case 0: /* an agent that was replaced */
        forged_report(a, a->node, heard->epoch ? heard->epoch - 1 : 0, 1000000, all_over(rng, a), true);
        break;
    case 1: /* the number of the last report with other contents */
        forged_report(a, a->node, heard->epoch, heard->seq, all_over(rng, a), true);
        break;
    default: /* the name of another node */
        if (strcmp(other->node, a->node) != 0)
            forged_report(a, other->node, other->machine.epoch, 1000000, all_over(rng, other), false);
        break;
    }
}

/* A genuine agent sends wrong reports: about instances that are not its own, or that never existed. */
void agents_report_falsely(struct sim_world *w, size_t which)
{
    struct random_stream *rng = &w->agents_rng;
    struct sim_agent *a = w->agents->at.at[which], *other = w->agents->at.at[random_below(rng, w->agents->at.len)];
    uint64_t seq = agent_accepted_reports(a)->seq + 1;
    json_t *items = strcmp(other->node, a->node) != 0 ? all_over(rng, other) : json_array();
    world_trace(w, "%s lies", a->node);
    (void)json_array_append_new(items, item(UINT64_C(1) << 40, "running"));
    forged_report(a, a->node, agent_accepted_reports(a)->epoch, seq, items, false);
}
