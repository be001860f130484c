/* net_limit.h - limits of the network: read, put in force, counted, shared out.
 *
 * `network`, `network-in` and `network-out` are bytes a second, as an amount or as a weight; `network` is both ways, and what is said of
 * one way goes before it. `traffic` and `traffic-throttle` are bytes both ways together, in a period: at the one it is to be stopped, from the
 * other on it crawls. What is sent is held back by the queue of the uplink (net_class.h), what is received is dropped beyond its bound
 * (net_meter.h, net_share.h). Loopback is free.
 *
 * May be used by several threads at once.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "machine/cgroup/cgroup.h"
#include "machine/net/net_meter.h"

struct net_way {
    int64_t amount, weight; /* bytes a second; 0: none */
};

struct net_limits {
    struct net_way in, out;
    int64_t traffic_bytes, throttle_bytes; /* 0: none */
    int64_t period_ns;                     /* after which they count from zero again; 0: never */
    bool wanted;                           /* some of it is limited or asked for: it is counted */
    bool handed;                 /* it is given sockets that the agent has made, whose packets are not its own */
    char given[CGROUP_LIST_MAX]; /* names of these limits that it has */
};

enum { NET_THROTTLE_BYTES = 65536 }; /* a second, each way */

/* From `requests`, `limits` and `ports` of an instance's object of node_config. -EINVAL: names the limit. */
int net_limits_read(const json_t *config, struct net_limits *ret, struct berth_err *err);

struct nets;
/* `device` NULL: that of the default route; `capacity` in bytes a second, 0: as the device says. Touches nothing yet. */
struct nets *nets_new(const char *device, int64_t capacity);
void nets_free(struct nets *n); /* leaves all in force; NULL is fine */

/* Puts limits in force for a group of cgroup v2 (its folder; NULL: there is none), or changes them, or finds them as an earlier agent has
 * left them. `ret_unenforced`: which of them are not, or not wholly. `now_ns`: since 1970. */
void nets_put(struct nets *n, uint64_t id, const char *group, const struct net_limits *limits, int64_t now_ns,
              char ret_unenforced[static CGROUP_LIST_MAX]);
/* Before the group is removed; `group` is for one that was never put, as its agent went before it. One that is not known is fine. What it
 * has sent and received in all; zeroes where nobody counted. */
struct net_counts nets_end(struct nets *n, uint64_t id, const char *group);

struct net_look {
    struct net_counts counts; /* since it began */
    int64_t period_bytes;     /* both ways, in this period */
    bool throttled, spent;
    char unenforced[CGROUP_LIST_MAX]; /* of its limits, now */
};
/* What it has used; where a period has ended, another begins. It crawls from here on if it is to. -ENOENT: nothing is counted. */
int nets_look(struct nets *n, uint64_t id, int64_t now_ns, struct net_look *ret);
/* Shares out what is received, by what was received since the last time, and puts anew what somebody has taken away. To be called every second or
 * so. */
void nets_share(struct nets *n, int64_t steady_ns);
