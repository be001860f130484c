/* rules_resources.c - naive rules about what other pods hold: resources, GPUs, ports, volumes. */
#include <string.h>

#include "rules_parts.h"

int64_t amount_of(const struct berth_amount *list, size_t len, const char *resource)
{
    for (size_t i = 0; i < len; i++)
        if (text_same(list[i].resource, resource))
            return list[i].amount;
    return 0;
}

/* The period that began at consumed_ns ends at consumed_ns + period_ns. */
static int64_t node_consumed(const struct world *world, const struct berth_node *n, const char *resource)
{
    size_t r = world_find_resource(world, resource);
    if (r == NONE || world->resources[r].kind != BERTH_CUMULATIVE)
        return 0;
    int64_t period = world->resources[r].period_ns;
    if (period && world->now_ns - n->consumed_ns >= period)
        return 0;
    return amount_of(n->consumed, n->consumed_len, resource);
}

static bool node_lists(const struct berth_node *n, const char *resource)
{
    for (size_t i = 0; i < n->allocatable_len; i++)
        if (text_same(n->allocatable[i].resource, resource))
            return true;
    return false;
}

/* As in Kubernetes, a node that does not list `pods` or an `attach-` resource takes any number of pods or volumes. */
static bool resource_optional(const char *resource)
{
    return text_same(resource, "pods") || strncmp(resource, "attach-", 7) == 0;
}

int64_t rule_capacity(const struct world *world, size_t node, const char *resource)
{
    const struct berth_node *n = &world->nodes[node];
    int64_t ratio = amount_of(n->overcommit, n->overcommit_len, resource);
    __int128 whole = amount_of(n->allocatable, n->allocatable_len, resource);

    if (!node_lists(n, resource))
        return resource_optional(resource) ? BERTH_AMOUNT_MAX : 0;
    return (int64_t)(whole * (ratio ? ratio : BERTH_RATIO_ONE) / BERTH_RATIO_ONE) - node_consumed(world, n, resource);
}

static bool shape_lists_pods(const struct berth_shape *shape)
{
    for (size_t i = 0; i < shape->requests_len; i++)
        if (text_same(shape->requests[i].resource, "pods"))
            return true;
    return false;
}

size_t rule_requests_len(const struct berth_shape *shape)
{
    return shape->requests_len + !shape_lists_pods(shape);
}

struct berth_amount rule_request(const struct berth_shape *shape, size_t i)
{
    return i < shape->requests_len ? shape->requests[i] : (struct berth_amount){"pods", 1};
}

static int64_t inst_request(const struct inst *inst, const char *resource)
{
    for (size_t i = 0; i < rule_requests_len(inst->shape); i++)
        if (text_same(rule_request(inst->shape, i).resource, resource))
            return rule_request(inst->shape, i).amount;
    return 0;
}

int64_t rule_active(const struct placement_query *placement_query, size_t node, const char *resource)
{
    int64_t sum = 0;
    for (size_t i = 0; i < placement_query->world->instances_len; i++) {
        const struct inst *s = &placement_query->world->instances[i];
        if (s->node == node && query_counts(placement_query, s) && state_active(s->is.state))
            sum += inst_request(s, resource);
    }
    return sum;
}

int64_t rule_reserved(const struct placement_query *placement_query, size_t node, const char *resource)
{
    int64_t sum = 0;
    for (size_t i = 0; i < placement_query->world->instances_len; i++) {
        const struct inst *s = &placement_query->world->instances[i];
        if (s->node == node && query_counts(placement_query, s) && s->is.state != BERTH_STOPPING)
            sum += inst_request(s, resource);
    }
    return sum;
}

/* A request must fit with the present instances, and with those that are there after all stops and reservations are
 * done. */
bool request_refused(const struct placement_query *placement_query, size_t node, struct berth_amount request)
{
    int64_t capacity = rule_capacity(placement_query->world, node, request.resource);

    if (request.amount <= 0)
        return false;
    return rule_active(placement_query, node, request.resource) + request.amount > capacity ||
           rule_reserved(placement_query, node, request.resource) + request.amount > capacity;
}

static bool inst_mounts(const struct inst *inst, const char *volume)
{
    return text_in(volume, inst->shape->volumes, inst->shape->volumes_len);
}

static bool volume_attached(const struct placement_query *placement_query, size_t node, const char *volume)
{
    for (size_t i = 0; i < placement_query->world->instances_len; i++) {
        const struct inst *s = &placement_query->world->instances[i];
        if (s->node == node && query_counts(placement_query, s) && inst_mounts(s, volume))
            return true;
    }
    return false;
}

/* Returns true if the node has more volumes attached than it says it can attach. */
static bool is_over_attach_limit(const struct placement_query *placement_query, size_t node, const char *resource)
{
    int64_t len = 0;

    if (strncmp(resource, "attach-", 7) != 0)
        return false;
    for (size_t i = 0; i < placement_query->world->volumes_len; i++)
        len += text_same(placement_query->world->volumes[i].driver, resource + 7) &&
               volume_attached(placement_query, node, placement_query->world->volumes[i].id);
    return len > rule_capacity(placement_query->world, node, resource);
}

static bool is_over_capacity(const struct placement_query *placement_query, size_t node, const char *resource)
{
    int64_t capacity = rule_capacity(placement_query->world, node, resource);
    return rule_active(placement_query, node, resource) > capacity ||
           rule_reserved(placement_query, node, resource) > capacity;
}

/* A node gets no new pods, whatever they request, if it holds more of any resource than it has, now or after all stops
 * and reservations are done, or if more of a resource was consumed than it has. */
bool over_refuses(const struct placement_query *placement_query, size_t node)
{
    const struct berth_node *n = &placement_query->world->nodes[node];

    for (size_t i = 0; i < n->allocatable_len; i++)
        if (is_over_capacity(placement_query, node, n->allocatable[i].resource) ||
            is_over_attach_limit(placement_query, node, n->allocatable[i].resource))
            return true;
    for (size_t i = 0; i < placement_query->world->instances_len; i++) {
        const struct inst *s = &placement_query->world->instances[i];
        for (size_t k = 0; s->node == node && k < rule_requests_len(s->shape); k++)
            if (is_over_capacity(placement_query, node, rule_request(s->shape, k).resource))
                return true;
    }
    return false;
}

bool resources_refuse(const struct placement_query *placement_query, size_t node)
{
    const struct berth_shape *shape = query_shape(placement_query);

    for (size_t i = 0; i < rule_requests_len(shape); i++)
        if (request_refused(placement_query, node, rule_request(shape, i)))
            return true;
    return false;
}

uint32_t rule_gpu_share(const struct berth_shape *shape)
{
    if (!shape->gpu.count)
        return 0;
    return shape->gpu.milli ? shape->gpu.milli : BERTH_GPU_MILLI;
}

/* What instances hold of one device. `active` includes stopping instances, `promised` includes reserved ones
 * instead. */
struct gpu_held {
    int64_t milli_active, milli_promised, bytes_active, bytes_promised;
};

static struct gpu_held gpu_held(const struct placement_query *placement_query, size_t node, size_t device)
{
    struct gpu_held held = {0};
    for (size_t i = 0; i < placement_query->world->instances_len; i++) {
        const struct inst *s = &placement_query->world->instances[i];
        if (s->node != node || !query_counts(placement_query, s) || !(s->is.gpus >> device & 1))
            continue;
        int64_t milli = rule_gpu_share(s->shape), bytes = s->shape->gpu.memory_bytes;
        held.milli_active += state_active(s->is.state) ? milli : 0;
        held.bytes_active += state_active(s->is.state) ? bytes : 0;
        held.milli_promised += s->is.state != BERTH_STOPPING ? milli : 0;
        held.bytes_promised += s->is.state != BERTH_STOPPING ? bytes : 0;
    }
    return held;
}

/* Neither a share nor a whole device may need more memory than the device has. */
bool rule_gpu_suits(const struct berth_gpu *gpu, const struct berth_shape *shape)
{
    if (shape->gpu.models_len && !text_in(gpu->model, shape->gpu.models, shape->gpu.models_len))
        return false;
    return !gpu->unhealthy && shape->gpu.memory_bytes <= gpu->memory_bytes;
}

/* Returns true if the node has too few suitable devices, whether they are free or not. */
bool gpu_kind_refuses(const struct placement_query *placement_query, size_t node)
{
    const struct berth_shape *shape = query_shape(placement_query);
    uint32_t suited = 0;

    for (size_t d = 0; d < placement_query->world->nodes[node].gpus_len; d++)
        suited += rule_gpu_suits(&placement_query->world->nodes[node].gpus[d], shape);
    return suited < shape->gpu.count;
}

bool rule_gpu_free(const struct placement_query *placement_query, size_t node, size_t device,
                   const struct berth_shape *shape)
{
    const struct berth_gpu *gpu = &placement_query->world->nodes[node].gpus[device];
    struct gpu_held held = gpu_held(placement_query, node, device);
    int64_t milli = rule_gpu_share(shape), bytes = shape->gpu.memory_bytes;

    if (!rule_gpu_suits(gpu, shape))
        return false;
    if (held.milli_active + milli > BERTH_GPU_MILLI || held.milli_promised + milli > BERTH_GPU_MILLI)
        return false;
    return milli == BERTH_GPU_MILLI ||
           (held.bytes_active + bytes <= gpu->memory_bytes && held.bytes_promised + bytes <= gpu->memory_bytes);
}

uint64_t rule_gpu_pick(const struct placement_query *placement_query, size_t node)
{
    const struct berth_shape *shape = query_shape(placement_query);
    uint64_t picked = 0;
    uint32_t len = 0;

    for (size_t d = 0; d < placement_query->world->nodes[node].gpus_len && len < shape->gpu.count; d++)
        if (rule_gpu_free(placement_query, node, d, shape)) {
            picked |= UINT64_C(1) << d;
            len++;
        }
    return len == shape->gpu.count ? picked : 0;
}

bool gpu_refuses(const struct placement_query *placement_query, size_t node)
{
    return rule_gpu_share(query_shape(placement_query)) && !rule_gpu_pick(placement_query, node);
}

static bool port_at_all(const struct berth_port *p)
{
    return !text_given(p->address) || text_same(p->address, "0.0.0.0");
}

bool rule_ports_overlap(const struct berth_port *a, const struct berth_port *b)
{
    uint32_t a_end = a->port + (a->count ? a->count : 1u), b_end = b->port + (b->count ? b->count : 1u);
    bool all = port_at_all(a) || port_at_all(b);
    return a->protocol == b->protocol && a->port < b_end && b->port < a_end &&
           (all || text_same(a->address, b->address));
}

static bool ports_clash(const struct berth_shape *shape, const struct berth_port *taken, size_t taken_len)
{
    for (size_t i = 0; i < shape->ports_len; i++)
        for (size_t k = 0; k < taken_len; k++)
            if (rule_ports_overlap(&shape->ports[i], &taken[k]))
                return true;
    return false;
}

/* Ports of reserved pods are taken, too. */
bool ports_refuse(const struct placement_query *placement_query, size_t node)
{
    const struct berth_shape *shape = query_shape(placement_query);
    const struct berth_node *n = &placement_query->world->nodes[node];

    for (size_t i = 0; i < placement_query->world->instances_len; i++) {
        const struct inst *s = &placement_query->world->instances[i];
        if (s->node == node && query_counts(placement_query, s) &&
            ports_clash(shape, s->shape->ports, s->shape->ports_len))
            return true;
    }
    return ports_clash(shape, n->ports, n->ports_len);
}

/* Several pods may mount an unshared volume, but only on one node. */
bool volume_busy_refuses(const struct placement_query *placement_query, size_t node)
{
    const struct berth_shape *shape = query_shape(placement_query);

    for (size_t v = 0; v < shape->volumes_len; v++) {
        if (world_find_volume(placement_query->world, shape->volumes[v])->shared)
            continue;
        for (size_t i = 0; i < placement_query->world->instances_len; i++) {
            const struct inst *s = &placement_query->world->instances[i];
            if (s->node != node && query_counts(placement_query, s) && inst_mounts(s, shape->volumes[v]))
                return true;
        }
    }
    return false;
}

/* Returns the number of the driver's volumes attached to the node if the pod is placed there. */
static int64_t volumes_attached(const struct placement_query *placement_query, size_t node, const char *driver)
{
    const struct berth_shape *shape = query_shape(placement_query);
    int64_t len = 0;

    for (size_t i = 0; i < placement_query->world->volumes_len; i++) {
        const struct berth_volume *v = &placement_query->world->volumes[i];
        if (!text_same(v->driver, driver))
            continue;
        len += text_in(v->id, shape->volumes, shape->volumes_len) || volume_attached(placement_query, node, v->id);
    }
    return len;
}

/* As in Kubernetes, a node that does not list the resource attaches any number of volumes. An attached volume costs
 * nothing more, even if the node is over its limit. */
bool attach_refuses(const struct placement_query *placement_query, size_t node)
{
    const struct berth_shape *shape = query_shape(placement_query);
    const struct berth_node *n = &placement_query->world->nodes[node];

    for (size_t i = 0; i < shape->volumes_len; i++) {
        const struct berth_volume *v = world_find_volume(placement_query->world, shape->volumes[i]);
        if (!text_given(v->driver) || volume_attached(placement_query, node, v->id))
            continue;
        for (size_t k = 0; k < n->allocatable_len; k++) {
            const struct berth_amount *a = &n->allocatable[k];
            if (strncmp(a->resource, "attach-", 7) == 0 && text_same(a->resource + 7, v->driver) &&
                volumes_attached(placement_query, node, v->driver) >
                    rule_capacity(placement_query->world, node, a->resource))
                return true;
        }
    }
    return false;
}

bool max_per_node_refuses(const struct placement_query *placement_query, size_t node)
{
    uint32_t max = query_shape(placement_query)->max_per_node, len = 0;

    for (size_t i = 0; i < placement_query->world->instances_len; i++) {
        const struct inst *s = &placement_query->world->instances[i];
        len += s->node == node && s->workload == placement_query->workload && query_counts(placement_query, s);
    }
    return max && len >= max;
}
