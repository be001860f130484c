/* net_limit.h - network limits: reads, enforces and counts them, and shares out bandwidth.
 *
 * `network`, `network-in` and `network-out` are bytes per second, as an amount or as a weight; `network` is for both
 * directions, and the limit of one direction takes precedence. `traffic` and `traffic-throttle` are bytes in both
 * directions together, per period: at the first the instance is stopped, at the second it is throttled. Sent traffic is
 * delayed by the qdisc of the uplink (net_class.h); received traffic above its bound is dropped (net_meter.h,
 * net_share.h). Loopback is not limited.
 *
 * Thread-safe.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "machine/cgroup/cgroup.h"
#include "machine/net/net_meter.h"

struct net_rate {
    int64_t amount, weight; /* bytes per second; 0: none */
};

struct net_limits {
    struct net_rate in, out;
    int64_t traffic_bytes, throttle_bytes; /* 0: none */
    int64_t period_ns;                     /* length after which counting restarts; 0: never */
    bool wanted;                           /* something is limited or requested: traffic is counted */
    bool handed;                 /* it gets sockets made by the agent, whose packets are not counted as its own */
    char given[CGROUP_LIST_MAX]; /* names of the limits that it has */
};

enum { NET_THROTTLE_BYTES = 65536 }; /* rate of a throttled instance: bytes per second in each direction */

/* Reads `requests`, `limits` and `ports` of an instance's object of node_config. -EINVAL with the name of the limit. */
int net_limits_read(const json_t *config, struct net_limits *ret, struct berth_err *err);

struct net_limiter;
/* `device` NULL: the device of the default route; `capacity` in bytes per second, 0: as the device reports. Changes
 * nothing on the machine yet. */
struct net_limiter *net_limiter_new(const char *device, int64_t capacity);
void net_limiter_free(struct net_limiter *n); /* limits stay in force; NULL is fine */

/* Applies or changes the limits of a cgroup v2 directory (NULL: there is none), or finds them as an earlier agent has
 * left them. `ret_unenforced`: those that are not enforced, or only partly. `now_ns`: since 1970. */
void net_limiter_put(struct net_limiter *n, uint64_t id, const char *group, const struct net_limits *limits,
                     int64_t now_ns, char ret_unenforced[static CGROUP_LIST_MAX]);
/* Removes the limits; called before the cgroup is removed. `group` is used if net_limiter_put was never called, because
 * an earlier agent applied the limits. An unknown id is fine. Returns the total traffic; zeros if it was not
 * counted. */
struct net_counts net_limiter_end(struct net_limiter *n, uint64_t id, const char *group);

struct net_limit_status {
    struct net_counts counts; /* since the start */
    int64_t period_bytes;     /* both directions, in this period */
    bool throttled, spent;
    char unenforced[CGROUP_LIST_MAX]; /* current unenforced limits */
};
/* Reads the usage; starts a new period if one has ended, and throttles the instance if needed. -ENOENT: its traffic is
 * not counted. */
int net_limiter_poll(struct net_limiter *n, uint64_t id, int64_t now_ns, struct net_limit_status *ret);
/* Shares out the receive bandwidth by the traffic since the last call, and restores limits that were removed by others.
 * To be called about every second. */
void net_limiter_share(struct net_limiter *n, int64_t steady_ns);
