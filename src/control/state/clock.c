#include "control/state/clock.h"

#include <inttypes.h>

#include "base/plant.h"
#include "control/control_parts.h"
#include "control/system/alarm.h"

#define SECOND INT64_C(1000000000)
#define JUMP_NS (2 * SECOND) /* smaller differences are applied at once: clocks are adjusted in small steps */

static bool some_node_is_lost(const struct state *s)
{
    size_t len;
    const struct object *const *nodes = state_list(s, KIND_NODE, &len);
    for (size_t i = 0; i < len; i++)
        if (nodes[i]->node->state == BERTH_NODE_LOST)
            return true;
    return false;
}

int64_t control_wall_ns(const struct control *c)
{
    return c->env.clock_ns(c->env.ctx);
}

/* Returns a clock that includes suspend if there is one, so that a suspended machine is no jump of the wall clock. */
static int64_t suspend_clock_ns(const struct control *c)
{
    return c->env.boot_ns ? c->env.boot_ns(c->env.ctx) : c->env.steady_ns(c->env.ctx);
}

/* While a node is lost the clock is never slewed forward: the agent of the node measures its fence with a steady
 * clock. */
int64_t control_now_ns(struct control *c)
{
    int64_t wall_ns = control_wall_ns(c), clock_ns = suspend_clock_ns(c);
    int64_t passed_ns = clock_ns - c->now_clock_ns, expected_ns = c->now_ns + passed_ns;
    c->now_clock_ns = clock_ns;
    if (PLANTED(CLOCK_JUMPS))
        return c->now_ns = wall_ns;
    if (!c->now_ns) {
        c->now_ns = wall_ns;
        return c->now_ns;
    }
    if (wall_ns > expected_ns + JUMP_NS)
        c->now_ns = expected_ns + (some_node_is_lost(c->state) ? 0 : passed_ns / 10);
    else if (wall_ns < expected_ns - JUMP_NS)
        c->now_ns += passed_ns / 10 * 9;
    else if (wall_ns > c->now_ns)
        c->now_ns = wall_ns;
    return c->now_ns;
}

void clock_tick(struct control *c)
{
    int64_t gap_ns = control_wall_ns(c) - control_now_ns(c);
    bool apart = gap_ns > JUMP_NS || gap_ns < -JUMP_NS;
    c->clock_ahead_ns = apart ? gap_ns : 0;
    if (!apart) {
        alarm_end(c, ALARM_CLOCK);
        return;
    }
    alarm_raise(c, ALARM_CLOCK,
                "the system clock of berthd's host has jumped and is %" PRId64
                " s %s the time that berthd uses; correct the clock, or, if it is correct, restart berthd",
                (gap_ns < 0 ? -gap_ns : gap_ns) / SECOND, gap_ns < 0 ? "behind" : "ahead of");
}
