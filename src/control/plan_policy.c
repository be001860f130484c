#include "control/plan_policy.h"

#include <string.h>

#include "control/settings_table.h"

#define SECOND_NS ((int64_t)1000000000)

static uint32_t number(const struct state *s, enum system_setting setting)
{
    return (uint32_t)system_setting_number(s, setting); /* within the bounds of its row */
}

static bool is_on(const struct state *s, enum system_setting setting)
{
    struct arena arena;
    arena_init(&arena);
    bool on = strcmp(system_setting_text(s, setting, &arena), "on") == 0;
    arena_done(&arena);
    return on;
}

void plan_policy_read(const struct state *s, struct plan_policy *ret)
{
    uint32_t high = number(s, SETTING_PRESSURE_PERCENT), low = number(s, SETTING_PRESSURE_LOW_PERCENT);
    uint32_t permille = number(s, SETTING_HEADROOM_PERCENT) * 10;

    *ret = (struct plan_policy){.policy = berth_policy_usual()};
    struct berth_policy *p = &ret->policy;
    p->pressure.high_percent = high;
    p->pressure.low_percent = low < high ? low : high;
    p->pressure.hold_ns = system_setting_number(s, SETTING_PRESSURE_HOLD_S) * SECOND_NS;
    p->shed = is_on(s, SETTING_SHED);
    p->rebalance.moves = is_on(s, SETTING_REBALANCE) ? number(s, SETTING_REBALANCE_MOVES) : 0;
    p->rebalance.gain_percent = number(s, SETTING_REBALANCE_GAIN_PERCENT);
    p->rebalance.age_ns = system_setting_number(s, SETTING_REBALANCE_AGE_S) * SECOND_NS;
    if (permille == 0)
        return;
    ret->reserves[0] = (struct berth_reserve){.resource = "cpu", .permille = permille};
    ret->reserves[1] = (struct berth_reserve){.resource = "memory", .permille = permille};
    p->headroom = (struct berth_headroom){ret->reserves, PLAN_RESERVES,
                                          (int32_t)system_setting_number(s, SETTING_HEADROOM_PRIORITY)};
}
