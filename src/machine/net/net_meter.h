/* net_meter.h - counts the traffic of a cgroup, assigns sent packets to a class, and bounds received traffic.
 *
 * Consists of two BPF programs (cgroup_skb), which the kernel runs for every packet of the cgroup's sockets, and one
 * page of memory that they share with the agent. They need a cgroup v2 hierarchy, which may be one without controllers
 * beside v1. They stay attached when the agent exits and are removed with the cgroup; net_meter_open finds them again,
 * so nothing is lost or counted twice. Loopback is not counted. A socket belongs to the cgroup of the process that
 * created it, also if it was passed on.
 *
 * The class is a number for the device's qdisc (net_class.h); rates are not decided here.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"

struct net_meter;

/* `group`: a directory of a cgroup v2 hierarchy. Uses its existing meter, or attaches a new one. -EOPNOTSUPP: the
 * kernel does not support it, or the agent lacks the privilege. */
int net_meter_open(const char *group, struct net_meter **ret, struct berth_err *err);
/* Opens the existing meter; -ENOENT: there is none. */
int net_meter_find(const char *group, struct net_meter **ret);
void net_meter_close(struct net_meter *m); /* the programs stay attached; NULL is fine */

/* Sets the class of packets that are sent from now on (net_class.h); 0: none. */
void net_meter_class(struct net_meter *m, uint32_t handle);
uint32_t net_meter_class_now(const struct net_meter *m);
/* Sets the bound of received bytes per second: packets above it are dropped, and TCP slows down. 0: no bound. */
void net_meter_bound(struct net_meter *m, int64_t bytes_per_s);

/* Bytes since the meter was attached. */
struct net_counts {
    int64_t in, out;
};
struct net_counts net_meter_counts(const struct net_meter *m);

/* Start of a counting period, stored with the counters so that it outlives the agent; initially zeros. */
struct net_period_start {
    int64_t bytes, since_ns;
};
void net_meter_rebase(struct net_meter *m, struct net_period_start base);
struct net_period_start net_meter_base(const struct net_meter *m);
