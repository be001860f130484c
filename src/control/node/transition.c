#include "control/node/transition.h"

#include <assert.h>
#include <string.h>

#include "base/plant.h"

#define BIT(state) (1u << (state))

static const unsigned node_next[] = {
    [BERTH_NODE_READY] = BIT(BERTH_NODE_CORDONED) | BIT(BERTH_NODE_DRAINING) | BIT(BERTH_NODE_LOST),
    [BERTH_NODE_JOINING] = BIT(BERTH_NODE_READY) | BIT(BERTH_NODE_CORDONED) | BIT(BERTH_NODE_LOST),
    [BERTH_NODE_CORDONED] = BIT(BERTH_NODE_READY) | BIT(BERTH_NODE_DRAINING) | BIT(BERTH_NODE_LOST),
    [BERTH_NODE_DRAINING] = BIT(BERTH_NODE_READY) | BIT(BERTH_NODE_CORDONED) | BIT(BERTH_NODE_LOST),
    [BERTH_NODE_LOST] =
        BIT(BERTH_NODE_READY) | BIT(BERTH_NODE_JOINING) | BIT(BERTH_NODE_CORDONED) | BIT(BERTH_NODE_DRAINING),
};

static const unsigned instance_next[] = {
    [BERTH_RESERVED] = BIT(BERTH_ASSIGNED),
    [BERTH_ASSIGNED] = BIT(BERTH_STARTING) | BIT(BERTH_RUNNING) | BIT(BERTH_STOPPING) | BIT(BERTH_ENDED),
    [BERTH_STARTING] = BIT(BERTH_RUNNING) | BIT(BERTH_STOPPING) | BIT(BERTH_ENDED),
    [BERTH_RUNNING] = BIT(BERTH_STARTING) | BIT(BERTH_STOPPING) | BIT(BERTH_ENDED),
    [BERTH_STOPPING] = BIT(BERTH_ENDED),
    [BERTH_ENDED] = 0,
};

bool node_transition_ok(enum berth_node_state from, enum berth_node_state to)
{
    assert(from < sizeof node_next / sizeof *node_next && to < sizeof node_next / sizeof *node_next);
    return from == to || (node_next[from] & BIT(to));
}

bool instance_transition_ok(enum berth_state from, enum berth_state to)
{
    assert(from < sizeof instance_next / sizeof *instance_next && to < sizeof instance_next / sizeof *instance_next);
    return from == to || (instance_next[from] & BIT(to)) || PLANTED(TRANSITION_ANY);
}

bool node_state_find(const char *name, enum berth_node_state *ret)
{
    for (unsigned state = 0; state < sizeof node_next / sizeof *node_next; state++)
        if (strcmp(berth_node_state_name((enum berth_node_state)state), name) == 0) {
            *ret = (enum berth_node_state)state;
            return true;
        }
    return false;
}
