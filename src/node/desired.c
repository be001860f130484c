/* desired.c - applies node_config: starts new instances, stops those that must not run, changes the others. */
#include <errno.h>
#include <inttypes.h>

#include "base/plant.h"
#include "node/node_parts.h"

/* Checks the id and the state of one instance of the list. */
static int item_check(const json_t *item, size_t i, struct berth_err *err)
{
    const char *state = json_string_value(json_object_get(item, "state"));
    if (json_integer_value(json_object_get(item, "id")) <= 0)
        return err_set(err, EINVAL, "instances[%zu]: id: expected a number above 0", i);
    if (!state || (strcmp(state, "run") != 0 && strcmp(state, "stop") != 0))
        return err_set(err, EINVAL, "instances[%zu]: state: expected \"run\" or \"stop\"", i);
    return 0;
}

static int config_check(const struct node_agent *n, const json_t *config, struct berth_err *err)
{
    const char *node = json_string_value(json_object_get(config, "node"));
    const json_t *items = json_object_get(config, "instances");
    if (!node || strcmp(node, n->id) != 0)
        return err_set(err, EINVAL, "the configuration is for %s, not for %s", node ? node : "no node", n->id);
    if (!json_is_array(items))
        return err_set(err, EINVAL, "instances: expected a list");
    for (size_t i = 0; i < json_array_size(items); i++) {
        int rc = item_check(json_array_get(items, i), i, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Reports an instance as stopped that the daemon wants stopped but that never started here, for example because a crash
 * intervened. */
static void report_never_started(struct node_agent *n, uint64_t id)
{
    struct node_instance *h = node_instance_add(n, id, NODE_OVER);
    h->end = NODE_STOPPED;
    h->listed = true;
    node_instance_changed(n, h);
}

static void start(struct node_agent *n, uint64_t id, const json_t *item)
{
    struct node_instance *h = node_instance_add(n, id, NODE_STARTING);
    h->listed = h->wanted = true;
    node_instance_set_config(h, item);
    node_instance_changed(n, h);
    log_write(n->env.log, n->env.clock_ns(n->env.ctx), LEVEL_INFO, "instance.start", LOG_NUMBER("id", (int64_t)id),
              LOG_TEXT("workload", json_string_value(json_object_get(item, "workload"))));
    n->machine->start(n->machine_ctx, id, item);
}

static void change(struct node_agent *n, struct node_instance *h, const json_t *item)
{
    if (h->config && json_equal(h->config, item))
        return;
    node_instance_set_config(h, item);
    n->machine->change(n->machine_ctx, h->id, item);
}

static void item_apply(struct node_agent *n, const json_t *item)
{
    uint64_t id = (uint64_t)json_integer_value(json_object_get(item, "id"));
    bool run = strcmp(json_string_value(json_object_get(item, "state")), "run") == 0;
    struct node_instance *h = node_instance_find(n, id);
    if (!h) {
        if (run || PLANTED(NODE_STARTS_STOPPED))
            start(n, id, item);
        else
            report_never_started(n, id);
        return;
    }
    h->listed = true;
    h->wanted = run && !h->asked;
    if (h->wanted && node_instance_is_alive(h))
        change(n, h, item);
}

void desired_apply(struct node_agent *n, const json_t *config)
{
    const json_t *items = json_object_get(config, "instances");
    for (size_t i = 0; i < n->node_instance.len; i++)
        n->node_instance.at[i]->listed = n->node_instance.at[i]->wanted = false;
    n->configured = true;
    /* Stops come first, because they free resources. */
    for (size_t i = 0; i < json_array_size(items); i++) {
        const json_t *item = json_array_get(items, i);
        struct node_instance *h = node_instance_find(n, (uint64_t)json_integer_value(json_object_get(item, "id")));
        if (h)
            item_apply(n, item);
    }
    node_settle(n);
    for (size_t i = 0; i < json_array_size(items); i++) {
        const json_t *item = json_array_get(items, i);
        if (!node_instance_find(n, (uint64_t)json_integer_value(json_object_get(item, "id"))))
            item_apply(n, item);
    }
}

int node_configure(struct node_agent *n, uint64_t revision, const char *hash, const json_t *config,
                   struct berth_err *err)
{
    int rc = config_check(n, config, err);
    if (rc < 0)
        return rc;
    bool old = (n->configured || n->pending) && revision < n->revision;
    if (n->superseded || (old && !PLANTED(NODE_OLD_CONFIG)))
        return 0;
    n->revision = revision;
    mem_free(n->hash);
    n->hash = mem_strdup(hash ? hash : "");
    if (!n->accepted) { /* another agent may have taken over this node; the first accepted report decides */
        json_decref(n->pending);
        n->pending = json_deep_copy(config);
        return 0;
    }
    desired_apply(n, config);
    node_tick(n);
    return 0;
}
