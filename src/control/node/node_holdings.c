/* node_holdings.c - what instances on a node use of it, checked before its document changes; drain status. */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "control/control_parts.h"
#include "control/node/node.h"
#include "control/sched/migration.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"

json_t *instance_work_doc(const struct state *s, const struct object *instance)
{
    const struct instance_view *v = instance->instance;
    const struct object *work = state_find_work(s, v->workload);
    if (!work || work->work->generation != v->generation) {
        const struct object *spec = state_spec(s, v->workload, v->generation);
        work = spec ? spec : work;
    }
    return work ? object_doc(work) : NULL;
}

static bool is_any_address(const char *address)
{
    return !address || !*address || strcmp(address, "0.0.0.0") == 0;
}

static bool port_in(const struct berth_port *p, const struct berth_port *ports, size_t len, uint32_t *ret)
{
    uint32_t first = p->port, last = first + (p->count ? p->count : 1);
    for (size_t i = 0; i < len; i++) {
        uint32_t from = ports[i].port, to = from + (ports[i].count ? ports[i].count : 1);
        bool apart = !is_any_address(p->address) && !is_any_address(ports[i].address) &&
                     strcmp(p->address, ports[i].address) != 0;
        if (ports[i].protocol == p->protocol && first < to && from < last && !apart) {
            *ret = first > from ? first : from;
            return true;
        }
    }
    return false;
}

static int devices_check(struct request *c, const struct object *instance, size_t gpus_len)
{
    struct instance_doc d;
    CLEANUP(json) json_t *doc = object_doc(instance);
    int rc = instance_doc_read(doc, &c->arena, &d, &c->err);
    if (rc < 0)
        return rc;
    for (size_t i = gpus_len; i < BERTH_NODE_GPUS_MAX; i++)
        if (d.instance.gpus >> i & 1)
            return err_set(&c->err, EBUSY, "gpus: device %zu is allocated to instance %s of %s", i, instance->id,
                           instance->instance->workload);
    return 0;
}

static int ports_check(struct request *c, const struct object *instance, const struct berth_node *node)
{
    struct work_doc d;
    uint32_t port;
    CLEANUP(json) json_t *doc = instance_work_doc(c->state, instance);
    if (!doc || work_doc_read(doc, &c->arena, &d, NULL) < 0)
        return 0;
    for (size_t i = 0; i < d.workload.shape.ports_len; i++)
        if (port_in(&d.workload.shape.ports[i], node->ports, node->ports_len, &port))
            return err_set(&c->err, EBUSY, "ports: %u is in use by instance %s of %s", port, instance->id,
                           instance->instance->workload);
    return 0;
}

/* Returns whether the node has fewer devices than before, or more ports of its own. */
static bool removes_some(const struct berth_node *was, const struct berth_node *is)
{
    if (is->gpus_len < was->gpus_len)
        return true;
    for (size_t i = 0; i < is->ports_len; i++) {
        bool known = false;
        for (size_t j = 0; j < was->ports_len && !known; j++)
            known = is->ports[i].protocol == was->ports[j].protocol && is->ports[i].port == was->ports[j].port &&
                    is->ports[i].count == was->ports[j].count;
        if (!known)
            return true;
    }
    return false;
}

int node_check_in_use(struct request *c, const char *id, const json_t *old, const json_t *doc)
{
    const struct object *node = state_find(c->state, KIND_NODE, id);
    struct node_doc was = {0}, is = {0};
    int rc = node_doc_read(old, &c->arena, &was, &c->err);
    if (rc == 0)
        rc = node_doc_read(doc, &c->arena, &is, &c->err);
    if (rc < 0 || !node || !removes_some(&was.node, &is.node))
        return rc;
    /* A plan may be placing an instance there at this moment, which no document shows yet. */
    if (was.node.state == BERTH_NODE_READY)
        return err_set(&c->err, EBUSY, "node %s accepts new work; cordon it before removing GPUs or ports", id);
    for (size_t i = 0; rc == 0 && i < node->node->instances_len; i++) {
        if (node->node->instances[i]->instance->state == BERTH_ENDED)
            continue;
        rc = devices_check(c, node->node->instances[i], is.node.gpus_len);
        if (rc == 0)
            rc = ports_check(c, node->node->instances[i], &is.node);
    }
    return rc;
}

/* ---- drains ----------------------------------------------------------------------------------------------------- */

enum { WAITING_SHOWN_MAX = 20 };

bool instance_holds_node(const struct object *instance)
{
    return instance->instance->state != BERTH_ENDED;
}

size_t node_instances(const struct node_view *node)
{
    size_t n = 0;
    for (size_t i = 0; i < node->instances_len; i++)
        n += instance_holds_node(node->instances[i]);
    return n;
}

/* Returns what an instance without a replacement waits for. Only a plan made after the drain, all of whose batches are
 * committed, can tell that no node fits. */
static const char *waits_for_place(const struct request *c, const struct object *node, const char *workload)
{
    const struct scheduler_status status = scheduler_status(c->control->scheduler);
    struct berth_pending pending;
    bool known = status.revision >= node->revision && status.batches == 0 && !scheduler_planning(c->control->scheduler);
    return known && scheduler_pending(c->control->scheduler, workload, &pending) ? "place" : "plan";
}

static const char *waits_for(const struct request *c, const struct object *node, const struct object *instance)
{
    const struct state *s = c->state;
    const struct instance_view *v = instance->instance;
    CLEANUP(json) json_t *work = instance_work_doc(s, instance);
    const char *on_drain = json_string_value(json_object_get(work, "on_drain"));
    const char *gang = json_string_value(json_object_get(work, "gang"));
    const struct object *of = state_find_work(s, v->workload);
    if (node->node->state == BERTH_NODE_LOST)
        return "fence";
    if (v->state == BERTH_STOPPING)
        return "stop";
    bool moves = of && of->kind == KIND_APP && !(gang && *gang);
    if (on_drain && strcmp(on_drain, "move") == 0 && !(gang && *gang))
        moves = true;
    if (on_drain && strcmp(on_drain, "stop") == 0)
        return "stop";
    if (!moves || (on_drain && strcmp(on_drain, "wait") == 0))
        return "own end";
    return migration_successor(s, instance) ? "min_available" : waits_for_place(c, node, v->workload);
}

json_t *node_drain_status(const struct request *c, const struct object *node)
{
    json_t *waiting = json_array();
    json_int_t left = 0;
    for (size_t i = 0; i < node->node->instances_len; i++) {
        const struct object *instance = node->node->instances[i];
        if (!instance_holds_node(instance))
            continue;
        if (left++ < WAITING_SHOWN_MAX)
            (void)json_array_append_new(
                waiting, json_pack("{s:I, s:s, s:s}", "instance", (json_int_t)instance->instance->number, "workload",
                                   instance->instance->workload, "for", waits_for(c, node, instance)));
    }
    return json_pack("{s:I, s:o}", "left", left, "waiting", waiting);
}
