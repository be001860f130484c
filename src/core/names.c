/* names.c - the words for the numbers of berth.h. */
#include "berth.h"

static const char *name_at(const char *const *names, size_t len, unsigned i)
{
    return i < len ? names[i] : "?";
}
#define NAME(names, i) name_at(names, sizeof names / sizeof *names, (unsigned)(i))

const char *berth_op_name(enum berth_op op)
{
    static const char *const names[] = {"place", "reserve", "promote", "stop", "lose", "adjust"};
    return NAME(names, op);
}

const char *berth_cause_name(enum berth_cause cause)
{
    static const char *const names[] = {
        [BERTH_CAUSE_PENDING] = "pending",    [BERTH_CAUSE_REMOVED] = "removed",
        [BERTH_CAUSE_OUTDATED] = "outdated",  [BERTH_CAUSE_SUSPENDED] = "suspended",
        [BERTH_CAUSE_SCALED] = "scaled",      [BERTH_CAUSE_LOST] = "lost",
        [BERTH_CAUSE_DRAINED] = "drained",    [BERTH_CAUSE_MOVED] = "moved",
        [BERTH_CAUSE_BROKEN] = "gang-broken", [BERTH_CAUSE_INFEASIBLE] = "infeasible",
        [BERTH_CAUSE_BUSY] = "busy",          [BERTH_CAUSE_IDLE] = "idle",
    };
    return NAME(names, cause);
}

const char *berth_state_name(enum berth_state state)
{
    static const char *const names[] = {"reserved", "assigned", "starting", "running", "stopping", "ended"};
    return NAME(names, state);
}

const char *berth_node_state_name(enum berth_node_state state)
{
    static const char *const names[] = {"ready", "joining", "cordoned", "draining", "lost"};
    return NAME(names, state);
}

const char *berth_version(void)
{
    return BERTH_VERSION;
}
