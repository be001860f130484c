/* net_limit.c - network limits of instances. */
#include "machine/net/net_limit.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/mem.h"
#include "base/vec.h"
#include "machine/cgroup/limit_names.h"
#include "machine/net/net_class.h"
#include "machine/net/net_share.h"
#include "wire/text/quantity.h"

/* ---- reading ---------------------------------------------------------------------------------------------------- */

enum { WEIGHT_MAX = 10000 };

static const char *const names[] = {"network", "network-in", "network-out", "traffic", "traffic-throttle"};

static int net_rate_read(const json_t *limits, const char *resource, struct net_rate *in, struct net_rate *out,
                         struct berth_err *err)
{
    const json_t *limit = json_object_get(limits, resource), *amount = json_object_get(limit, "amount"),
                 *weight = json_object_get(limit, "weight");
    int64_t number = json_integer_value(weight);
    if (!limit)
        return 0;
    if (!weight == !amount)
        return err_set(err, EINVAL, "limits: %s: set either an amount or a weight", resource);
    if (weight && (number < 1 || number > WEIGHT_MAX))
        return err_set(err, EINVAL, "limits: %s: weight: expected a whole number from 1 to %d", resource, WEIGHT_MAX);
    if (amount && (quantity_parse(resource, amount, &number, NULL) < 0 || number <= 0))
        return err_set(err, EINVAL, "limits: %s: expected bytes per second such as 10M", resource);
    struct net_rate *ways[] = {in, out};
    for (size_t i = 0; i < 2; i++)
        if (ways[i])
            *(weight ? &ways[i]->weight : &ways[i]->amount) = number;
    return 0;
}

static int sum_read(const json_t *limits, const char *resource, int64_t *ret, int64_t *ret_period_ns,
                    struct berth_err *err)
{
    const json_t *limit = json_object_get(limits, resource);
    if (!limit)
        return 0;
    if (quantity_parse(resource, json_object_get(limit, "amount"), ret, NULL) < 0 || *ret <= 0)
        return err_set(err, EINVAL, "limits: %s: expected a number of bytes such as 10G", resource);
    int64_t period_ns = json_integer_value(json_object_get(limit, "period_ns"));
    *ret_period_ns = period_ns > 0 ? period_ns : *ret_period_ns;
    return 0;
}

static bool is_handed(const json_t *config)
{
    const json_t *ports = json_object_get(config, "ports");
    for (size_t i = 0; i < json_array_size(ports); i++) {
        const char *listen = json_string_value(json_object_get(json_array_get(ports, i), "listen"));
        if (listen && strcmp(listen, "socket") == 0)
            return true;
    }
    return false;
}

int net_limits_read(const json_t *config, struct net_limits *ret, struct berth_err *err)
{
    const json_t *limits = json_object_get(config, "limits"), *requests = json_object_get(config, "requests");
    struct net_limits l = {.handed = is_handed(config)};
    int rc = net_rate_read(limits, "network", &l.in, &l.out, err);
    rc = rc < 0 ? rc : net_rate_read(limits, "network-in", &l.in, NULL, err);
    rc = rc < 0 ? rc : net_rate_read(limits, "network-out", NULL, &l.out, err);
    rc = rc < 0 ? rc : sum_read(limits, "traffic", &l.traffic_bytes, &l.period_ns, err);
    rc = rc < 0 ? rc : sum_read(limits, "traffic-throttle", &l.throttle_bytes, &l.period_ns, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        l.wanted = l.wanted || json_object_get(limits, names[i]) || json_object_get(requests, names[i]);
        if (json_object_get(limits, names[i]))
            limit_names_put(l.given, names[i]);
    }
    *ret = l;
    return 0;
}

/* ---- enforcement ------------------------------------------------------------------------------------------------ */

struct instance_net {
    uint64_t id;
    struct net_meter *meter;
    struct net_limits limits;
    uint32_t class;
    bool throttled, in_kept, out_kept;
    int64_t in_bound, in_rate, in_bytes; /* for sharing out received traffic */
};

struct net_limiter {
    pthread_mutex_t lock;
    char *device;                /* NULL: the device of the default route, which may change */
    int64_t capacity_given;      /* 0: not given */
    int64_t capacity;            /* of the device; 0: unknown */
    struct net_classes *classes; /* NULL: not needed yet, or no device */
    int64_t shared_ns;
    VEC(struct instance_net) at;
};

struct net_limiter *net_limiter_new(const char *device, int64_t capacity)
{
    struct net_limiter *n = mem_zalloc(sizeof *n);
    *n = (struct net_limiter){
        .device = device ? mem_strdup(device) : NULL, .capacity_given = capacity, .capacity = capacity};
    (void)pthread_mutex_init(&n->lock, NULL);
    return n;
}

void net_limiter_free(struct net_limiter *n)
{
    if (!n)
        return;
    for (size_t i = 0; i < n->at.len; i++)
        net_meter_close(n->at.at[i].meter);
    vec_done(&n->at);
    net_classes_close(n->classes);
    (void)pthread_mutex_destroy(&n->lock);
    mem_free(n->device);
    mem_free(n);
}

/* Opens the uplink when it is first needed, as it may come up after the agent. */
static bool classes_ensure(struct net_limiter *n)
{
    char found[NET_DEVICE_MAX];
    const char *device = n->device ? n->device : net_uplink(found);
    if (n->classes || !*device)
        return n->classes != NULL;
    n->capacity = n->capacity_given ? n->capacity_given : net_speed(device);
    return net_classes_open(device, n->capacity, &n->classes, NULL) == 0;
}

static struct instance_net *instance_net_find(struct net_limiter *n, uint64_t id)
{
    for (size_t i = 0; i < n->at.len; i++)
        if (n->at.at[i].id == id)
            return &n->at.at[i];
    return NULL;
}

static bool is_class_used(const struct net_limiter *n, uint32_t class)
{
    for (size_t i = 0; i < n->at.len; i++)
        if (n->at.at[i].class == class)
            return true;
    return false;
}

/* Returns a class number that no instance has, whether its class is in force or not. */
static uint32_t class_new(const struct net_limiter *n)
{
    uint32_t class = NET_CLASS_FIRST;
    while (is_class_used(n, class))
        class ++;
    return class;
}

static bool out_try(struct net_limiter *n, struct instance_net *k)
{
    int64_t bound = k->limits.out.amount;
    if (k->throttled && (!bound || bound > NET_THROTTLE_BYTES))
        bound = NET_THROTTLE_BYTES;
    if (!bound && !k->limits.out.weight) {
        if (k->class && classes_ensure(n))
            net_class_drop(n->classes, k->class);
        k->class = 0;
        net_meter_class(k->meter, 0);
        return true;
    }
    uint32_t class = k->class ? k->class : class_new(n);
    if (!classes_ensure(n) || net_class_put(n->classes, class, k->limits.out.weight, bound, NULL) < 0)
        return false;
    k->class = class;
    net_meter_class(k->meter, class);
    return true;
}

static int64_t in_limit(const struct instance_net *k)
{
    int64_t limit = k->limits.in.amount;
    return k->throttled && (!limit || limit > NET_THROTTLE_BYTES) ? NET_THROTTLE_BYTES : limit;
}

/* Sets its bound to its share as if all instances received at full rate; the next net_share_out corrects it. */
static void in_put(struct net_limiter *n, struct instance_net *k)
{
    int64_t limit = in_limit(k), weight = k->limits.in.weight, sum = weight;
    bool weighed = weight > 0 && classes_ensure(n) && n->capacity;
    for (size_t i = 0; i < n->at.len; i++)
        sum += &n->at.at[i] == k ? 0 : n->at.at[i].limits.in.weight;
    int64_t share = weighed ? (int64_t)((__int128)n->capacity * weight / sum) : limit;
    k->in_bound = limit && limit < share ? limit : share;
    net_meter_bound(k->meter, k->in_bound);
    k->in_kept = weighed || !weight;
}

static void out_put(struct net_limiter *n, struct instance_net *k)
{
    k->out_kept = out_try(n, k);
}

static void unenforced_of(const struct instance_net *k, char ret[static CGROUP_LIST_MAX])
{
    const char *given = k->limits.given;
    bool handed = k->limits.handed, both = k->in_kept && k->out_kept;
    const bool kept[] = {both, k->in_kept, k->out_kept, true, both};
    *ret = '\0';
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (limit_names_has(given, names[i]) && (handed || !kept[i]))
            limit_names_put(ret, names[i]);
}

/* NULL: its traffic cannot be counted here. */
static struct instance_net *instance_net_ensure(struct net_limiter *n, uint64_t id, const char *group)
{
    struct instance_net *known = instance_net_find(n, id), fresh = {.id = id};
    if (known || !group || net_meter_open(group, &fresh.meter, NULL) < 0)
        return known;
    fresh.class = net_meter_class_now(fresh.meter);
    if (is_class_used(n, fresh.class)) /* assigned to another instance before this one was found again */
        fresh.class = 0;
    fresh.in_bytes = net_meter_counts(fresh.meter).in;
    vec_push(&n->at, fresh);
    return &n->at.at[n->at.len - 1];
}

void net_limiter_put(struct net_limiter *n, uint64_t id, const char *group, const struct net_limits *limits,
                     int64_t now_ns, char ret_unenforced[static CGROUP_LIST_MAX])
{
    *ret_unenforced = '\0';
    (void)pthread_mutex_lock(&n->lock);
    struct instance_net *k = limits->wanted ? instance_net_ensure(n, id, group) : instance_net_find(n, id);
    if (k) {
        k->limits = *limits;
        if (!net_meter_base(k->meter).since_ns)
            net_meter_rebase(k->meter, (struct net_period_start){0, now_ns});
        in_put(n, k);
        out_put(n, k);
        unenforced_of(k, ret_unenforced);
    } else {
        limit_names_join(ret_unenforced, limits->given);
    }
    (void)pthread_mutex_unlock(&n->lock);
}

struct net_counts net_limiter_end(struct net_limiter *n, uint64_t id, const char *group)
{
    struct net_counts counts = {0};
    (void)pthread_mutex_lock(&n->lock);
    struct instance_net *k = instance_net_find(n, id);
    struct net_meter *meter = k ? k->meter : NULL;
    uint32_t class = k ? k->class : 0;
    if (k)
        *k = n->at.at[--n->at.len];
    else if (group && net_meter_find(group, &meter) == 0)
        class = net_meter_class_now(meter);
    if (meter)
        counts = net_meter_counts(meter);
    net_meter_close(meter);
    if (class && !is_class_used(n, class) && classes_ensure(n))
        net_class_drop(n->classes, class);
    (void)pthread_mutex_unlock(&n->lock);
    return counts;
}

/* ---- polling ---------------------------------------------------------------------------------------------------- */

/* Returns the bytes of the current period; starts a new one if it has ended. If the clock was set back, the period
 * restarts now. */
static int64_t period_bytes(struct instance_net *k, struct net_counts counts, int64_t now_ns)
{
    struct net_period_start base = net_meter_base(k->meter);
    int64_t total = counts.in + counts.out, period_ns = k->limits.period_ns;
    if (now_ns < base.since_ns) {
        base.since_ns = now_ns;
        net_meter_rebase(k->meter, base);
    }
    if (period_ns && now_ns - base.since_ns >= period_ns) {
        base.since_ns += (now_ns - base.since_ns) / period_ns * period_ns;
        base.bytes = total;
        net_meter_rebase(k->meter, base);
    }
    return total - base.bytes;
}

int net_limiter_poll(struct net_limiter *n, uint64_t id, int64_t now_ns, struct net_limit_status *ret)
{
    (void)pthread_mutex_lock(&n->lock);
    struct instance_net *k = instance_net_find(n, id);
    if (k) {
        struct net_limit_status look = {.counts = net_meter_counts(k->meter)};
        look.period_bytes = period_bytes(k, look.counts, now_ns);
        look.spent = k->limits.traffic_bytes && look.period_bytes >= k->limits.traffic_bytes;
        look.throttled = k->limits.throttle_bytes && look.period_bytes >= k->limits.throttle_bytes;
        if (look.throttled != k->throttled) {
            k->throttled = look.throttled;
            in_put(n, k);
            out_put(n, k);
        }
        unenforced_of(k, look.unenforced);
        *ret = look;
    }
    (void)pthread_mutex_unlock(&n->lock);
    return k ? 0 : -ENOENT;
}

static void share_all(struct net_limiter *n, int64_t passed_ns)
{
    struct net_share *shares = mem_zarray(n->at.len + 1, sizeof *shares);
    for (size_t i = 0; i < n->at.len; i++) {
        struct instance_net *k = &n->at.at[i];
        int64_t bytes = net_meter_counts(k->meter).in;
        k->in_rate = (int64_t)((__int128)(bytes - k->in_bytes) * 1000000000 / passed_ns);
        k->in_bytes = bytes;
        shares[i] = (struct net_share){k->limits.in.weight, in_limit(k), k->in_rate, k->in_bound};
    }
    net_share_out(n->capacity, shares, n->at.len);
    for (size_t i = 0; i < n->at.len; i++) {
        if (n->at.at[i].in_bound != shares[i].bound)
            net_meter_bound(n->at.at[i].meter, shares[i].bound);
        n->at.at[i].in_bound = shares[i].bound;
    }
    mem_free(shares);
}

/* Moves the classes to the new uplink when the default route has changed. Without a default route they stay. */
static void uplink_follow(struct net_limiter *n)
{
    char now[NET_DEVICE_MAX];
    if (!n->classes || n->device || !*net_uplink(now) || strcmp(now, net_classes_device(n->classes)) == 0)
        return;
    net_classes_end(n->classes);
    n->classes = NULL;
    if (!classes_ensure(n))
        n->capacity = n->capacity_given;
    for (size_t i = 0; i < n->at.len; i++) {
        in_put(n, &n->at.at[i]);
        out_put(n, &n->at.at[i]);
    }
}

/* Restores classes after the uplink or its qdisc was removed or replaced, and retries those that failed before. */
static void classes_renew(struct net_limiter *n)
{
    uplink_follow(n);
    bool held = n->classes && net_classes_hold(n->classes), missing = false;
    for (size_t i = 0; i < n->at.len; i++)
        missing = missing || !n->at.at[i].out_kept;
    if (held && !missing)
        return;
    if (!held) {
        net_classes_close(n->classes);
        n->classes = NULL;
    }
    for (size_t i = 0; i < n->at.len; i++)
        if (!held || !n->at.at[i].out_kept)
            out_put(n, &n->at.at[i]);
}

void net_limiter_share(struct net_limiter *n, int64_t steady_ns)
{
    (void)pthread_mutex_lock(&n->lock);
    if (n->at.len)
        classes_renew(n);
    if (n->shared_ns && n->at.len && steady_ns > n->shared_ns)
        share_all(n, steady_ns - n->shared_ns);
    n->shared_ns = steady_ns;
    (void)pthread_mutex_unlock(&n->lock);
}
