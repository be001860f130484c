/* names.c - names of the enum values of berth.h. */
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
        [BERTH_CAUSE_PENDING] = "pending",     [BERTH_CAUSE_REMOVED] = "removed",
        [BERTH_CAUSE_OUTDATED] = "outdated",   [BERTH_CAUSE_SUSPENDED] = "suspended",
        [BERTH_CAUSE_SCALED] = "scaled",       [BERTH_CAUSE_LOST] = "lost",
        [BERTH_CAUSE_DRAINED] = "drained",     [BERTH_CAUSE_MOVED] = "moved",
        [BERTH_CAUSE_BROKEN] = "gang-broken",  [BERTH_CAUSE_INFEASIBLE] = "infeasible",
        [BERTH_CAUSE_BUSY] = "busy",           [BERTH_CAUSE_IDLE] = "idle",
        [BERTH_CAUSE_PRESSURE] = "pressure",   [BERTH_CAUSE_OVER_CAPACITY] = "over",
        [BERTH_CAUSE_MANUAL] = "by-hand",      [BERTH_CAUSE_UNDONE] = "undone",
        [BERTH_CAUSE_PREEMPTED] = "preempted", [BERTH_CAUSE_EXPIRED] = "expired",
    };
    return NAME(names, cause);
}

/* The phase is in the low byte, so a value without a cause equals the phase. */
enum { CAUSE_SHIFT = 8, PHASE_MASK = 0xff };

int64_t berth_migration_value(enum berth_migration_phase phase, enum berth_cause cause)
{
    return (int64_t)cause << CAUSE_SHIFT | phase;
}

enum berth_migration_phase berth_migration_phase(int64_t value)
{
    return (enum berth_migration_phase)(value & PHASE_MASK);
}

enum berth_cause berth_migration_cause(int64_t value)
{
    return (enum berth_cause)(value >> CAUSE_SHIFT & PHASE_MASK);
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
