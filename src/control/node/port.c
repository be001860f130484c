/* port.c - allocation of ports: the system's ports and the blocks of apps. */
#include "control/node/port.h"

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "wire/doc/api.h"

/* The system's own ports. A block that contains one of them is not given out. */
static const struct system_port ports[] = {
    {"berthd",        3980, BERTH_TCP},
    {"berth-agent",   3981, BERTH_TCP},
    {"berth-gateway", 3982, BERTH_TCP},
};

const struct system_port *system_port_at(size_t i)
{
    return i < sizeof ports / sizeof *ports ? &ports[i] : NULL;
}

enum { INDEXES = (PORT_END - PORT_BASE) / PORT_BLOCK };

static void add_used_port(uint64_t *taken, int64_t index)
{
    if (index >= 0 && index < INDEXES)
        bits_add(taken, (size_t)index);
}

/* Returns the index that a document of the transaction itself has; -1: none. */
static int64_t index_of(const json_t *doc)
{
    const json_t *index = json_object_get(doc, "index");
    return json_is_integer(index) ? json_integer_value(index) : -1;
}

/* Returns whether the transaction writes this workload; the state's version of it is then outdated. */
static bool rewritten(const struct change *c, const struct object *o)
{
    for (size_t i = 0; i < c->items.len; i++) {
        const struct change_item *item = &c->items.at[i];
        if (item->write && item->kind == o->kind && strcmp(item->id, o->id) == 0)
            return true;
    }
    return false;
}

static void workloads_add(const struct change *c, uint64_t *taken)
{
    static const enum kind holders[] = {KIND_APP, KIND_JOB, KIND_VM};

    for (size_t k = 0; k < sizeof holders / sizeof *holders; k++) {
        size_t len;
        const struct object *const *list = state_list(c->state, holders[k], &len);
        for (size_t i = 0; i < len; i++)
            if (list[i]->work->port_index >= 0 && !rewritten(c, list[i]))
                add_used_port(taken, list[i]->work->port_index);
    }
    for (size_t i = 0; i < c->items.len; i++)
        if (c->items.at[i].write && c->items.at[i].doc && kind_is_workload(c->items.at[i].kind))
            add_used_port(taken, index_of(c->items.at[i].doc));
}

/* Instances of an earlier version of a workload, or of a deleted one, still use the ports of that version. */
static void specs_add(const struct change *c, uint64_t *taken)
{
    size_t len;
    const struct object *const *list = state_list(c->state, KIND_SPEC, &len);

    for (size_t i = 0; i < len; i++)
        add_used_port(taken, list[i]->work->port_index);
}

int port_index_take(struct change *c, int32_t *ret, struct berth_err *err)
{
    uint64_t taken[(INDEXES + 63) / 64] = {0};
    const struct system_port *system;

    for (size_t i = 0; (system = system_port_at(i)); i++)
        if (system->port >= PORT_BASE && system->port < PORT_BASE + INDEXES * PORT_BLOCK)
            add_used_port(taken, (system->port - PORT_BASE) / PORT_BLOCK);
    workloads_add(c, taken);
    specs_add(c, taken);

    for (int32_t index = 0; index < INDEXES; index++) {
        if (bits_has(taken, (size_t)index))
            continue;
        /* Two concurrent transactions that take an index both write this key, so one of them is repeated. */
        (void)change_read(c, KIND_COUNTER, "ports");
        change_put(c, KIND_COUNTER, "ports", json_pack("{s:i}", "last", (int)index));
        *ret = index;
        return 0;
    }
    return err_set(err, EDQUOT, "all %d port blocks are in use; delete an app with endpoints that is no longer needed",
                   INDEXES);
}
